"""For agent programs that get and attach their proofs themselves (`onrecord connect ID --pipe` carries them).

    client = await CallProofClient.connect(Configuration.load())
    proof = await client.issue("filesystem", "read_file", {"path": "repo/README.md"})
    result = await session.call_tool("read_file", arguments, meta=client.proof_meta(proof))

A proof is for one call with exactly these arguments, works once, and for seconds. Each further round of a call
(inputResponses, requestState) needs a proof of its own: pass `continues=proof`.

Source: call-proof.md 5.2, 5.3, 6.2, 6.3.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

import orjson

from onrecord.authorize import digest as digests
from onrecord.base import strict_json
from onrecord.base.configuration import Configuration
from onrecord.base.errors import BindingError, NetworkError, UsageError
from onrecord.base.hashes import ActionDigest
from onrecord.base.namespaces import (
    CALL_PROOF_EXTENSION,
    CALL_PROOF_META,
    CALL_PROOF_REASONS,
    CALL_PROOF_REJECTED,
    RECORD_SESSION_META,
)
from onrecord.base.rpc_client import RpcClient
from onrecord.base.wire import RpcError

TOOLS_CALL: Final = "tools/call"
ISSUE_TIMEOUT_MS: Final = 2000
"""How long callProof/issue may take beyond its waitMs (call-proof.md 4.5)."""

APPROVAL_WAIT_MS: Final = 25_000
"""How long one callProof/issue is held open while a person decides (running.md 6)."""


class Advice(StrEnum):
    """What to do after a rejection (call-proof.md 6.3)."""

    RETRY_ONCE = "retry-once"
    DO_NOT_RETRY = "do-not-retry"


_RETRY_ONCE: Final = frozenset(("missing", "expired", "replayed", "revoked", "authority_unreachable"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """An issued proof. `evidence` is copied unchanged into the call; `expires_at` is for display (RFC 3339).

    `approval_id` names the approval that released it; None when no person was asked.
    """

    evidence: Mapping[str, str] = field(repr=False)
    action_digest: ActionDigest
    operation_id: str
    expires_at: str
    server: str
    approval_id: str | None = None


class CallProofClient:
    """A connection to the Call Authority for one agent process. Make it with `connect`."""

    def __init__(self, client: RpcClient, *, record_session: str, authority: str) -> None:
        self._client = client
        self.record_session = record_session
        self.authority = authority

    @classmethod
    async def connect(
        cls,
        configuration: Configuration | None = None,
        *,
        socket: Path | None = None,
        expected_uid: int | None = None,
        record_session: str | None = None,
        timeout_ms: int = 1000,
    ) -> Self:
        """Connect to the authority of a configuration, or to `socket`, which `expected_uid` must serve.

        `record_session` is the label under which calls are grouped; without it `$ONRECORD_RECORD_SESSION`, else this
        process.

        Raises `UsageError` with code "authority-unnamed" or "record-session-label", `NetworkError` with code
        "unreachable", "peer-uid" or "timeout".
        """
        from onrecord.authorize.guard.extension import is_label
        from onrecord.base.sockets import process_label

        if configuration is not None:
            socket, expected_uid = configuration.agent_socket(), configuration.authority_uid
        if socket is None or expected_uid is None:
            raise UsageError(
                "a configuration, or a socket with the uid that serves it, is needed",
                code="authority-unnamed",
            )
        label = record_session or os.environ.get("ONRECORD_RECORD_SESSION") or process_label(os.getpid())
        if not is_label(label):
            raise UsageError(
                "the record session must be 1 to 64 of A-Z a-z 0-9 . _ : -", code="record-session-label"
            )
        client = await RpcClient.connect(socket, expected_uid=expected_uid, timeout_ms=timeout_ms)
        return cls(client, record_session=label, authority=f"unix://{socket}")

    @property
    def closed(self) -> bool:
        """Say whether the connection is gone."""
        return self._client.closed

    async def issue(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
        continues: Proof | None = None,
        evidence_types: tuple[str, ...] = (),
        wait_ms: int = 0,
    ) -> Proof:
        """Ask for a proof of one call. None for `arguments` means that the call has no such member.

        `continues` is the proof of an earlier try or round of the same call. `wait_ms` (0..60000) holds the question
        open while a person decides.

        Raises `strict_json.Refused` for arguments that no proof can be bound to, `RpcError` with the refusal's reason,
        `NetworkError` with code "timeout", "closed" or "answer-unreadable", and `BindingError` with code
        "digest-mismatch" if the authority answers for another call.
        """
        digest = _digest(name, arguments)
        params: dict[str, Any] = {"method": TOOLS_CALL, "name": name, "server": server}
        if arguments is not None:
            params["arguments"] = arguments
        if input_responses is not None:
            params["inputResponses"] = input_responses
        if request_state is not None:
            params["requestState"] = request_state
        if continues is not None:
            params["operationId"] = continues.operation_id
        if evidence_types:
            params["evidenceTypes"] = evidence_types
        if wait_ms:
            params["waitMs"] = wait_ms
        params["recordSession"] = self.record_session
        answer = await self._client.call("callProof/issue", params, timeout_ms=ISSUE_TIMEOUT_MS + wait_ms)
        return _read_proof(answer, digest=digest, server=server)

    def proof_meta(self, proof: Proof) -> dict[str, Any]:
        """Return the members for `_meta` of the tools/call that the proof is for."""
        return {CALL_PROOF_META: dict(proof.evidence), RECORD_SESSION_META: self.record_session}

    def check_advertised(self, capabilities: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the extension that a server advertises, or None; its authority must be the one that is connected.

        `capabilities` are those of the initialize or server/discover result; `extensions` is looked at first.

        Raises `BindingError` with code "authority-differs": the address of a server is never connected to.

        Source: call-proof.md 6.1 (CP-123).
        """
        for member in ("extensions", "experimental"):
            group = capabilities.get(member)
            found = group.get(CALL_PROOF_EXTENSION) if isinstance(group, Mapping) else None
            if isinstance(found, Mapping):
                advertised = found.get("authority")
                if advertised is not None and advertised != self.authority:
                    raise BindingError(
                        "the server advertises another authority than the configured one",
                        code="authority-differs",
                        hint="do not call covered tools of this server; tell the operator",
                    )
                return found
        return None

    async def close(self) -> None:
        """Close the connection."""
        self._client.close()


def rejection_reason(error: Mapping[str, Any]) -> str | None:
    """Return the reason of a rejected call from a JSON-RPC error object, or None if it is no such rejection.

    The reason decides, not the code alone; case, "-" and space are folded (call-proof.md 6.3).
    """
    data = error.get("data")
    reason = data.get("reason") if isinstance(data, Mapping) else None
    if not isinstance(reason, str):
        return None
    folded = reason.lower().replace("-", "_").replace(" ", "_")
    if folded not in CALL_PROOF_REASONS:
        return None
    return folded if error.get("code") in (CALL_PROOF_REJECTED, -31021) else None


def advice(reason: str) -> Advice:
    """Say whether a call may be sent once more with a new proof after a rejection (CP-130)."""
    return Advice.RETRY_ONCE if reason in _RETRY_ONCE else Advice.DO_NOT_RETRY


def _digest(name: str, arguments: Mapping[str, Any] | None) -> ActionDigest:
    """Digest what will be sent; a value that the strict reader refuses is refused here, before it is sent."""
    value = {} if arguments is None else arguments
    try:
        text = orjson.dumps(value)
        json.dumps(value, allow_nan=False)  # orjson writes null for what is no number
    except ValueError:
        raise strict_json.Refused("nonfinite") from None
    except TypeError:
        raise strict_json.Refused("surrogate" if strict_json.has_surrogate(value) else "syntax") from None
    return digests.digest_of_text(name, text)


def _read_proof(answer: Any, *, digest: ActionDigest, server: str) -> Proof:
    evidence = answer.get("evidence") if isinstance(answer, dict) else None
    if not isinstance(evidence, dict) or not all(
        isinstance(evidence.get(part), str) for part in ("type", "value")
    ):
        raise NetworkError("the authority sent no proof and no refusal", code="answer-unreadable")
    if answer.get("actionDigest") != digest or answer.get("server") != server:
        raise BindingError("the authority answered for another call", code="digest-mismatch")
    approval = answer.get("approvalId")
    return Proof(
        evidence={"type": evidence["type"], "value": evidence["value"]},
        action_digest=digest,
        operation_id=str(answer.get("operationId", "")),
        expires_at=str(answer.get("expiresAt", "")),
        server=server,
        approval_id=None if approval is None else str(approval),
    )


__all__ = ["Advice", "CallProofClient", "Proof", "RpcError", "advice", "rejection_reason"]
