"""The call-proof extension on the wire: advertising it, taking a proof out of a request, rejecting.

Source: call-proof.md 6.1 to 6.3 (CP section 10).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from onrecord.authorize.guard.reading import CAPABILITIES_META, Call, Id, write_value
from onrecord.base.errors import ConfigurationError
from onrecord.base.namespaces import (
    CALL_PROOF_EXTENSION,
    CALL_PROOF_META,
    CALL_PROOF_REJECTED,
    PROTOCOL_VERSION,
    RECORD_SESSION_META,
)
from onrecord.base.wire import error_line

COVERED_METHODS: Final = ("tools/call",)
"""Methods that need a proof in version 1 (call-proof.md 6.1)."""

PROOF_BYTES: Final = 4096
"""Longest proof value (call-proof.md 4.5); stdio carries a message a line, so proofs are short."""

REQUIRED_CAPABILITIES: Final[dict[str, Any]] = {"extensions": {CALL_PROOF_EXTENSION: {}}}
"""What a modern client must declare (call-proof.md 6.3)."""

_LABEL = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)
_PRINTABLE = re.compile(r"[ -~]+", re.ASCII)


class Evidence(NamedTuple):
    """A proof as a request carries it. It is never logged and never recorded."""

    type: str
    value: str

    def __repr__(self) -> str:
        return f"Evidence({self.type!r}, ...)"


class Malformed(NamedTuple):
    """Something in the place of a proof that is none. `reported` is what the authority may see of it."""

    reported: dict[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertisement:
    """What the relay adds to a server's capabilities. `authority` is a unix:// URI, for information only."""

    required: bool
    methods: tuple[str, ...]
    authority: str
    server: str

    def __post_init__(self) -> None:
        """Raise `ConfigurationError` with code "methods-unknown" for a method that version 1 does not cover."""
        if self.methods != COVERED_METHODS:
            raise ConfigurationError(
                "only tools/call can be covered by call proofs",
                code="methods-unknown",
                hint="leave the methods at tools/call; refuse_methods blocks others",
            )

    def to_json(self) -> dict[str, Any]:
        """Return the value of the extension's capability."""
        return {
            "required": self.required,
            "methods": list(self.methods),
            "authority": self.authority,
            "version": PROTOCOL_VERSION,
            "server": self.server,
        }

    def add_to(self, answer: dict[str, Any], *, is_initialize: bool) -> bytes | None:
        """Return the line of an initialize or server/discover answer with the extension; None if it is no success.

        A legacy client finds it in `experimental` too.
        """
        result = answer.get("result")
        if type(result) is not dict:
            return None
        capabilities = result.get("capabilities")
        capabilities = dict(capabilities) if type(capabilities) is dict else {}
        for member in ("extensions", "experimental") if is_initialize else ("extensions",):
            present = capabilities.get(member)
            capabilities[member] = {
                **(present if type(present) is dict else {}),
                CALL_PROOF_EXTENSION: self.to_json(),
            }
        return write_value({**answer, "result": {**result, "capabilities": capabilities}}) + b"\n"


def take_evidence(call: Call) -> tuple[Evidence | Malformed | None, str | None]:
    """Take proof and record-session label out of a call's `_meta`, which is changed; return both, or None.

    Source: call-proof.md 6.2.
    """
    meta = call.meta
    if meta is None:
        return None, None
    label = meta.pop(RECORD_SESSION_META, None)
    if type(label) is not str or not _LABEL.fullmatch(label):
        label = None
    if CALL_PROOF_META not in meta:
        evidence: Evidence | Malformed | None = None
    else:
        evidence = read_evidence(meta.pop(CALL_PROOF_META))
    if not meta:
        del call.params["_meta"]
    return evidence, label


def read_evidence(value: Any) -> Evidence | Malformed:
    """Read the value of the proof member: two strings, the second printable ASCII; other members say nothing."""
    if type(value) is not dict:
        return Malformed(None)
    kind, proof = value.get("type"), value.get("value")
    if type(kind) is not str or type(proof) is not str:
        return Malformed(None)
    if kind and len(kind) <= PROOF_BYTES and len(proof) <= PROOF_BYTES and _PRINTABLE.fullmatch(proof):
        return Evidence(kind, proof)
    return Malformed({"type": kind[:64], "value": proof} if len(proof) <= PROOF_BYTES else None)


def is_label(text: str) -> bool:
    """Say whether a text can name a record session (running.md R-06)."""
    return _LABEL.fullmatch(text) is not None


def rejection(request_id: Id, reason: str, *, is_modern: bool) -> bytes:
    """Return the line that rejects a call. Source: call-proof.md 6.3."""
    data: dict[str, Any] = {"reason": reason}
    if is_modern:
        data["requiredCapabilities"] = REQUIRED_CAPABILITIES
    return error_line(request_id, CALL_PROOF_REJECTED, "Call proof rejected", data)


def declare(meta: dict[str, Any]) -> None:
    """Declare the extension in the client capabilities of a modern request's `_meta`, which is changed."""
    capabilities = meta.get(CAPABILITIES_META)
    if type(capabilities) is not dict:
        return
    extensions = capabilities.get("extensions")
    if type(extensions) is not dict:
        extensions = capabilities["extensions"] = {}
    extensions.setdefault(CALL_PROOF_EXTENSION, {})
