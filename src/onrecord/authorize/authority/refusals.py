"""Refusals that are no decision of policy: each is journaled with its reason and answered with a fixed text.

Source: call-proof.md 4.3, 4.4, 5.3, 10.1.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from onrecord.authorize.authority.params import loggable
from onrecord.authorize.authority.reasons import CODES, MESSAGES, Reason, RecordType
from onrecord.base.wire import error_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onrecord.authorize.authority.callers import Visitor
    from onrecord.authorize.authority.state import AuthorityState
    from onrecord.base.rpc_server import Answer
    from onrecord.base.wire import Request


class Refusals:
    """Journals and answers refusals of all methods."""

    def __init__(self, state: AuthorityState) -> None:
        self._state = state

    def issue(
        self,
        visitor: Visitor,
        request: Request,
        started: int,
        reason: Reason,
        *,
        detail: str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> Answer:
        """Refuse an issue request. `detail` goes to the caller and the journal, `extra` to the caller alone."""
        answer: dict[str, Any] = {"reason": reason}
        if detail is not None:
            answer["detail"] = detail
        line = error_line(request.id, CODES[reason], MESSAGES[reason], answer | (extra or {}))
        return self._issue_refused(
            visitor,
            request.id,
            line,
            reason=reason,
            detail=detail,
            asked=loggable(request.params),
            started=started,
        )

    def broken_issue(self, visitor: Visitor, request_id: Any, line: bytes, detail: str | None) -> Answer:
        """Journal an issue request whose text the strict reader refused; `line` is the answer it made."""
        return self._issue_refused(
            visitor, request_id, line, reason=Reason.INVALID_ARGUMENTS, detail=detail, asked={}, started=None
        )

    def _issue_refused(
        self,
        visitor: Visitor,
        request_id: Any,
        line: bytes,
        *,
        reason: Reason,
        detail: str | None,
        asked: dict[str, str],
        started: int | None,
    ) -> Answer:
        state = self._state
        data: dict[str, Any] = {"platform": visitor.platform, "reason": reason, **asked}
        if visitor.identity is not None and visitor.identity.caller is not None:
            data["caller"] = visitor.identity.caller
        if detail is not None:
            data["detail"] = detail

        def finish(_receipt: Any) -> bytes:
            state.count(f"issue.{reason}")
            if started is not None:
                state.metrics.issue.add(state.ticks_ns() - started)
            return line

        return state.audit.answer(RecordType.ISSUE_REFUSED, data, request_id=request_id, finish=finish)

    def unknown_caller(self, visitor: Visitor, request: Request) -> Answer:
        """Answer `unknown_caller`: no role anywhere belongs to this peer."""
        return self._outsider(visitor, request, Reason.UNKNOWN_CALLER, RecordType.CALLER_UNKNOWN)

    def not_authorized(
        self, visitor: Visitor, request: Request, members: Mapping[str, str] | None = None
    ) -> Answer:
        """Answer `not_authorized`: the peer has another role, or another server's. `members` are journaled as well."""
        return self._outsider(visitor, request, Reason.NOT_AUTHORIZED, RecordType.ROLE_REFUSED, members)

    def _outsider(
        self,
        visitor: Visitor,
        request: Request,
        reason: Reason,
        type_: RecordType,
        members: Mapping[str, str] | None = None,
    ) -> Answer:
        line = error_line(request.id, CODES[reason], MESSAGES[reason], {"reason": reason})
        return self.role_refused(
            visitor, request, line, reason=str(reason), type_=type_, members=members or {}
        )

    def role_refused(
        self,
        visitor: Visitor,
        request: Request,
        line: bytes,
        *,
        reason: str,
        type_: RecordType = RecordType.ROLE_REFUSED,
        members: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Journal that a peer asked for what its role does not allow, then answer with `line`."""
        state = self._state
        data: dict[str, Any] = {
            "platform": visitor.platform,
            "reason": reason,
            "asked": request.method[:64],
            "door": visitor.door.kind.value,
            **loggable(request.params),
        }
        data.pop("method", None)
        data |= members
        if visitor.identity is not None and visitor.identity.caller is not None:
            data["caller"] = visitor.identity.caller
        if visitor.identity is not None and visitor.identity.approver is not None:
            data["approver"] = visitor.identity.approver

        def finish(_receipt: Any) -> bytes:
            state.count(reason)
            return line

        return state.audit.answer(type_, data, request_id=request.id, finish=finish)


def refusal_line(request_id: Any, reason: Reason, **extra: Any) -> bytes:
    """Return the error line of a reason, without journaling."""
    return error_line(request_id, CODES[reason], MESSAGES[reason], {"reason": reason, **extra})


def audit_unavailable(request_id: Any) -> bytes:
    """Return the answer for a request whose record cannot be stored."""
    return refusal_line(request_id, Reason.AUDIT_UNAVAILABLE)
