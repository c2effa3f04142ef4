"""For people and programs that decide approvals: a connection to the authority's approval socket.

    with ApproverClient.connect(Configuration.load()) as approver:
        for approval in approver.pending():
            print("\n".join(approval.summary))
            approver.approve(approval.id)

Who the approver is follows from the uid of this process, by the signed policy. Texts come from the authority, which
escapes what the agent wrote; they are escaped once more here, so that no authority can steer a terminal either.

Source: call-proof.md 9; running.md 6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from onrecord.base.daemon_clients import connect_to_authority
from onrecord.base.errors import NetworkError, OnrecordError, UsageError, Where
from onrecord.base.escapes import escape_hidden
from onrecord.base.rpc_client import BlockingRpcClient
from onrecord.base.wire import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from onrecord.base.configuration import Configuration

CALL_TIMEOUT_MS: Final = 5000
"""An answer waits for a commit of the decision journal, and for nothing else."""

MAX_PAGES: Final = 1000
"""Pages of one list or of one call: an authority that never comes to an end is not listened to any longer."""

MIN_PREFIX: Final = 4
"""Fewest characters of an approval id that a person may type in place of the whole."""

_HINTS: Final = {
    "not_authorized": "no rule of the signed policy asks a group of yours about this call",
    "unknown_caller": "your uid is no approver of the signed policy",
    "policy_unavailable": "no policy is in force: see the authority's log",
    "audit_unavailable": "the authority cannot write its journal: is the disk full?",
    "approval_expired": "the agent has to ask again: repeat the call",
    "approval_rejected": "it was rejected, and that stays for some minutes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """One call that waits for people. `summary` is made by the authority from the call alone; times are display.

    `granted` of `needed` approvals were given. `digest_start` are the first characters of the Action Digest.
    """

    id: str
    caller: str
    server: str
    tool: str
    rules: tuple[str, ...]
    needed: int
    granted: int
    is_approved_by_me: bool
    age_ms: int
    expires_at: str
    digest_start: str
    summary: tuple[str, ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the members as the authority names them."""
        return {
            "approvalId": self.id,
            "ageMs": self.age_ms,
            "expiresAt": self.expires_at,
            "caller": self.caller,
            "server": self.server,
            "tool": self.tool,
            "rules": list(self.rules),
            "needed": self.needed,
            "granted": self.granted,
            "approvedByYou": self.is_approved_by_me,
            "digestStart": self.digest_start,
            "summary": list(self.summary),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a decision led to: state "pending" (others have to approve too), "granted" or "rejected"."""

    state: str
    needed: int
    granted: int

    def to_json(self) -> dict[str, Any]:
        """Return {"state", "needed", "granted"}."""
        return {"state": self.state, "needed": self.needed, "granted": self.granted}


class ApproverClient:
    """A connection to the approval socket. Make it with `connect`; calls block.

    The authority closes a connection on which nothing happens for a while, and people think for longer. So a call
    that meets a closed connection is sent once more on a new one; a decision that comes twice counts once.
    """

    def __init__(self, open_client: Callable[[], BlockingRpcClient]) -> None:
        """`open_client` connects, now and again after the connection was closed."""
        self._open_client = open_client
        self._client = open_client()

    @classmethod
    def connect(cls, configuration: Configuration) -> Self:
        """Connect to the authority of a configuration, which its uid must serve.

        Raises `NetworkError` with code "authority-unreachable" or "peer-uid".
        """
        return cls(partial(_open_client, configuration))

    def pending(self) -> tuple[PendingApproval, ...]:
        """Return the calls that wait and that this approver may decide, oldest first. Raises as `decide` does."""
        found: list[PendingApproval] = []
        after = 0
        for _ in range(MAX_PAGES):
            page = self._call("approval/list", {"after": after} if after else {})
            found += [_approval(entry) for entry in _member(page, "approvals", list)]
            if "next" not in page:
                break
            after = _member(page, "next", int)
        return tuple(found)

    def find(self, name: str) -> PendingApproval:
        """Return the pending approval with this id, or the only one whose id begins with `name`.

        Raises `UsageError` with code "approval-unknown" or "approval-ambiguous".
        """
        pending = self.pending()
        exact = [one for one in pending if one.id == name]
        near = exact or [one for one in pending if len(name) >= MIN_PREFIX and one.id.startswith(name)]
        if len(near) > 1:
            raise UsageError("several approvals begin so", code="approval-ambiguous", hint=_ids(near))
        if not near:
            raise UsageError(
                "no pending approval of yours has this id",
                code="approval-unknown",
                hint=_ids(pending) if pending else "nothing waits for you",
            )
        return near[0]

    def full_call(self, approval_id: str) -> tuple[str, ...]:
        """Return all arguments and inputs of a pending call, one line each, nothing cut. Raises as `decide` does."""
        text, offset = "", 0
        for _ in range(MAX_PAGES):
            params = {"approvalId": approval_id, "offset": offset}
            part = self._call("approval/show", params)
            text += _member(part, "call", str)
            if "next" not in part:
                break
            offset = _member(part, "next", int)
        return tuple(escape_hidden(line) for line in text.split("\n")) if text else ()

    def approve(self, approval_id: str) -> Outcome:
        """Approve exactly this call, once. Raises as `decide` does."""
        return self.decide(approval_id, "approve")

    def reject(self, approval_id: str) -> Outcome:
        """Reject a call, or take a grant back as long as the call has not run. Raises as `decide` does."""
        return self.decide(approval_id, "reject")

    def decide(self, approval_id: str, decision: str) -> Outcome:
        """Decide an approval: "approve" or "reject".

        Raises `OnrecordError` with the authority's reason as its code ("not-authorized", "approval-expired",
        "approval-rejected", "unknown-approval", "already-executed" …), or `NetworkError` with code
        "authority-unreachable" or "answer-unreadable".
        """
        answer = self._call("approval/decide", {"approvalId": approval_id, "decision": decision})
        return Outcome(
            state=_member(answer, "state", str),
            needed=_member(answer, "needed", int),
            granted=_member(answer, "granted", int),
        )

    def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            result = self._call_anew(method, params)
        except RpcError as error:
            raise _explain(error) from error
        except NetworkError as error:
            if error.code in ("authority-unreachable", "peer-uid"):
                raise
            raise NetworkError(
                f"the authority did not answer: {error}",
                code="authority-unreachable",
                hint="is `onrecord up` still running?",
                where=Where(str(self._client.path)),
            ) from error
        if not isinstance(result, dict):
            raise NetworkError("the authority's answer cannot be read", code="answer-unreadable")
        return result

    def _call_anew(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return self._client.call(method, params, timeout_ms=CALL_TIMEOUT_MS)
        except NetworkError as error:
            if error.code != "closed":
                raise
        self._client.close()
        self._client = self._open_client()
        return self._client.call(method, params, timeout_ms=CALL_TIMEOUT_MS)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _open_client(configuration: Configuration) -> BlockingRpcClient:
    return connect_to_authority(configuration, configuration.approval_socket(), group="approval_group")


def _explain(error: RpcError) -> OnrecordError:
    detail = error.data.get("detail")
    word = error.reason or "failed"
    if word == "invalid_params" and detail in ("unknown_approval", "already_decided", "already_executed"):
        texts = {
            "unknown_approval": ("no such approval", "onrecord approvals list shows what waits for you"),
            "already_decided": ("it was decided already", None),
            "already_executed": ("too late: the call has been executed", None),
        }
        text, hint = texts[detail]
        return UsageError(text, code=detail.replace("_", "-"), hint=hint)
    return OnrecordError(str(error), code=word.replace("_", "-"), hint=_HINTS.get(word))


def _member(value: Any, name: str, kind: type) -> Any:
    member = value.get(name) if isinstance(value, dict) else None
    if type(member) is not kind:
        raise NetworkError("the authority's answer cannot be read", code="answer-unreadable")
    return member


def _approval(entry: Any) -> PendingApproval:
    return PendingApproval(
        id=escape_hidden(_member(entry, "approvalId", str)),
        caller=escape_hidden(_member(entry, "caller", str)),
        server=escape_hidden(_member(entry, "server", str)),
        tool=escape_hidden(_member(entry, "tool", str)),
        rules=tuple(escape_hidden(str(rule)) for rule in _member(entry, "rules", list)),
        needed=_member(entry, "needed", int),
        granted=_member(entry, "granted", int),
        is_approved_by_me=_member(entry, "approvedByYou", bool),
        age_ms=_member(entry, "ageMs", int),
        expires_at=escape_hidden(_member(entry, "expiresAt", str)),
        digest_start=escape_hidden(_member(entry, "digestStart", str)),
        summary=tuple(escape_hidden(str(line)) for line in _member(entry, "summary", list)),
    )


def _ids(approvals: Iterable[PendingApproval]) -> str:
    return "pending: " + ", ".join(one.id for one in approvals)
