"""The approval socket: what waits for people, and their decisions.

An approver sees and decides only what a rule gives to one of their groups. Who it is follows from the peer's uid (user
mode: from the socket), never from the request.

Source: call-proof.md 4.4, 9; running.md 6.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from onrecord.authorize.authority.approvals import Approval, ApprovalState
from onrecord.authorize.authority.callers import Role
from onrecord.authorize.authority.params import RefusedRequest
from onrecord.authorize.authority.reasons import Reason, RecordType
from onrecord.authorize.authority.refusals import refusal_line
from onrecord.authorize.authority.summaries import DIGEST_CHARACTERS, full_lines
from onrecord.base.escapes import escape_hidden
from onrecord.base.wire import error_line, result_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from onrecord.authorize.authority.approval_ends import ApprovalEnds
    from onrecord.authorize.authority.callers import Identity, Visitor
    from onrecord.authorize.authority.refusals import Refusals
    from onrecord.authorize.authority.state import AuthorityState
    from onrecord.base.rpc_server import Answer, RpcConnection
    from onrecord.base.wire import Request

LIST_BYTES: Final = 600_000
"""Size of one page of `approval/list`: it must fit into a line, and one summary has less than 400,000 bytes."""

SHOWN_CHARACTERS: Final = 50_000
"""Characters of a call in one answer of `approval/show`, before escaping, which makes up to ten of one."""

_APPROVAL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


class ApprovalDesk:
    """Answers approval/* for approvers."""

    def __init__(self, state: AuthorityState, refusals: Refusals, ends: ApprovalEnds) -> None:
        self._state = state
        self._refusals = refusals
        self._ends = ends
        self._methods: dict[str, Callable[[Visitor, str, Request], Answer]] = {
            "approval/list": self._list,
            "approval/show": self._show,
            "approval/decide": self._decide,
        }

    def handle(self, connection: RpcConnection, request: Request) -> Answer:
        """Answer one request of a visitor whose process is alive."""
        visitor: Visitor = connection.state
        identity: Identity | None = self._state.identity(visitor)
        if identity is None or self._state.in_force is None:
            return refusal_line(request.id, Reason.POLICY_UNAVAILABLE)
        if not identity.is_known:
            return self._refusals.unknown_caller(visitor, request)
        if identity.role is not Role.APPROVER or identity.approver is None:
            return self._refusals.not_authorized(visitor, request)
        method = self._methods.get(request.method)
        if method is None:
            self._state.count(Reason.UNKNOWN_METHOD)
            return refusal_line(request.id, Reason.UNKNOWN_METHOD)
        self._ends.sweep()
        try:
            return method(visitor, identity.approver, request)
        except RefusedRequest as refusal:
            self._state.count(refusal.refusal)
            return error_line(request.id, refusal.rpc_code, str(refusal), refusal.data)

    def _list(self, visitor: Visitor, approver: str, request: Request) -> Answer:
        """approval/list {after?}: pending approvals that this approver may decide, oldest first, page by page."""
        after = request.params.get("after", 0)
        if type(after) is not int or after < 0:
            raise RefusedRequest(Reason.INVALID_PARAMS, detail="after")
        entries: list[bytes] = []
        size, last, more = 0, 0, False
        for approval in self._state.approvals.pending():
            if approval.number <= after or not may_decide(approval, approver):
                continue
            entry = orjson.dumps(self._entry(approval, approver))
            if entries and size + len(entry) > LIST_BYTES:
                more = True
                break
            entries.append(entry)
            size += len(entry)
            last = approval.number
        result: dict[str, Any] = {"approvals": [orjson.Fragment(entry) for entry in entries]}
        if more:
            result["next"] = last
        return result_line(request.id, result)

    def _entry(self, approval: Approval, approver: str) -> dict[str, Any]:
        key = approval.key
        return {
            "approvalId": approval.id,
            "ageMs": (self._state.clock.boottime_ns() - approval.created_ns) // 1_000_000,
            "expiresAt": approval.expires_at,
            "caller": key.caller,
            "server": key.server,
            "tool": approval.tool,
            "rules": [need.rule for need in approval.needed],
            "needed": approval.needed_count,
            "granted": approval.given_count,
            "approvedByYou": approver in approval.approved_by,
            "digestStart": key.action_digest[:DIGEST_CHARACTERS],
            "summary": list(approval.summary),
        }

    def _show(self, visitor: Visitor, approver: str, request: Request) -> Answer:
        """approval/show {approvalId, offset?}: the summary, and the arguments and inputs of the call in full."""
        approval = self._asked_for(request)
        if not may_decide(approval, approver):
            return self._refusals.not_authorized(visitor, request, {"approvalId": approval.id})
        offset = request.params.get("offset", 0)
        if type(offset) is not int or offset < 0:
            raise RefusedRequest(Reason.INVALID_PARAMS, detail="offset")
        if approval.state is not ApprovalState.PENDING:
            raise _is_over(approval)
        call = orjson.loads(approval.call)
        text = "\n".join(full_lines(call["arguments"], call["inputs"]))
        part = text[offset : offset + SHOWN_CHARACTERS]
        result: dict[str, Any] = {
            "approval": self._entry(approval, approver),
            "call": "\n".join(map(escape_hidden, part.split("\n"))),
        }
        if offset + SHOWN_CHARACTERS < len(text):
            result["next"] = offset + SHOWN_CHARACTERS
        return result_line(request.id, result)

    def _decide(self, visitor: Visitor, approver: str, request: Request) -> Answer:
        """approval/decide {approvalId, decision}: approve or reject; a rejection also takes a grant back."""
        approval = self._asked_for(request)
        decision = request.params.get("decision")
        if decision not in ("approve", "reject"):
            raise RefusedRequest(Reason.INVALID_PARAMS, detail="decision")
        if not may_decide(approval, approver):
            return self._refusals.not_authorized(visitor, request, {"approvalId": approval.id})
        if decision == "approve":
            return self._approve(visitor, approver, request, approval)
        return self._reject(visitor, approver, request, approval)

    def _asked_for(self, request: Request) -> Approval:
        approval_id = request.params.get("approvalId")
        if type(approval_id) is not str or not _APPROVAL_ID.fullmatch(approval_id):
            raise RefusedRequest(Reason.INVALID_PARAMS, detail="approvalId")
        approval = self._state.approvals.get(approval_id)
        if approval is None:
            raise RefusedRequest(Reason.INVALID_PARAMS, detail="unknown_approval")
        return approval

    def _approve(self, visitor: Visitor, approver: str, request: Request, approval: Approval) -> Answer:
        state = self._state
        if approval.state in (ApprovalState.GRANTED, ApprovalState.USED):
            return self._outcome(request, approval)
        if approval.state is not ApprovalState.PENDING:
            raise _is_over(approval)
        if approver in approval.approved_by or visitor.peer.uid in approval.approved_by.values():
            # In user mode and in system mode alike one person counts once.
            return self._outcome(request, approval)

        def handed_over(_seq: int) -> None:
            if state.approvals.approve(approval, approver, visitor.peer.uid):
                approval.wake()
            state.count("approval.granted")

        return self._journal(
            visitor, approver, request, approval, RecordType.APPROVAL_GRANTED, handed_over, detail=None
        )

    def _reject(self, visitor: Visitor, approver: str, request: Request, approval: Approval) -> Answer:
        state = self._state
        if approval.state is ApprovalState.REJECTED:
            return self._outcome(request, approval)
        if approval.state is ApprovalState.USED and approval.proof is not None and approval.proof.used:
            raise RefusedRequest(Reason.INVALID_PARAMS, detail="already_executed")
        if approval.state in (ApprovalState.EXPIRED, ApprovalState.VOID):
            raise _is_over(approval)
        assert state.in_force is not None
        hold_seconds = state.in_force.bundle.limits.rejection_hold_seconds

        def handed_over(_seq: int) -> None:
            state.approvals.reject(approval, hold_seconds=hold_seconds, now_ns=state.clock.boottime_ns())
            state.count("approval.rejected")
            approval.wake()

        was_granted = approval.state is not ApprovalState.PENDING
        return self._journal(
            visitor,
            approver,
            request,
            approval,
            RecordType.APPROVAL_REJECTED,
            handed_over,
            detail="withdrawn" if was_granted else None,
        )

    def _journal(
        self,
        visitor: Visitor,
        approver: str,
        request: Request,
        approval: Approval,
        type_: RecordType,
        handed_over: Callable[[int], None],
        *,
        detail: str | None,
    ) -> Answer:
        """Journal a decision. It counts from the hand-over on, and is answered as the level says."""
        data = dict(approval.record)
        data |= {"approver": approver, "platform": visitor.platform}
        if type_ is RecordType.APPROVAL_GRANTED:
            data |= {"count": len(approval.approved_by) + 1, "needed": approval.needed_count}
        if detail is not None:
            data["detail"] = detail
        line: list[bytes] = []

        def take(seq: int) -> None:
            handed_over(seq)
            line.append(self._outcome(request, approval))

        return self._state.audit.answer(
            type_, data, request_id=request.id, finish=lambda _receipt: line[0], handed_over=take
        )

    def _outcome(self, request: Request, approval: Approval) -> bytes:
        state = ApprovalState.GRANTED if approval.state is ApprovalState.USED else approval.state
        return result_line(
            request.id,
            {"state": state, "needed": approval.needed_count, "granted": approval.given_count},
        )


def may_decide(approval: Approval, approver: str) -> bool:
    """Say whether a rule gives this approval to a group of this approver. It was settled when the call was asked."""
    return any(approver in people for people in approval.designated.values())


def _is_over(approval: Approval) -> RefusedRequest:
    """Return the refusal for an approval that cannot be decided any more."""
    if approval.state is ApprovalState.REJECTED:
        return RefusedRequest(Reason.APPROVAL_REJECTED, approvalId=approval.id)
    if approval.state in (ApprovalState.GRANTED, ApprovalState.USED):
        return RefusedRequest(Reason.INVALID_PARAMS, detail="already_decided")
    return RefusedRequest(Reason.APPROVAL_EXPIRED, detail=approval.cause, approvalId=approval.id)
