"""issue, where policy says that people must approve: asks them once, holds the call open, releases one proof.

Source: call-proof.md 4.5, 5.2, 5.3, 8.6, 9, 12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from onrecord.authorize.authority.approval_ends import ApprovalEnds
from onrecord.authorize.authority.approval_waiting import WaitingRoom
from onrecord.authorize.authority.approvals import (
    MAX_HELD_BYTES,
    OPEN,
    Approval,
    ApprovalKey,
    ApprovalState,
)
from onrecord.authorize.authority.reasons import CODES, MESSAGES, Reason, RecordType
from onrecord.authorize.authority.summaries import fact_pairs, summary_lines
from onrecord.base.dates import seconds_text
from onrecord.base.wire import error_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from onrecord.authorize.authority.asking import Asked, Waited
    from onrecord.authorize.authority.granting import Granter
    from onrecord.authorize.authority.refusals import Refusals
    from onrecord.authorize.authority.state import AuthorityState
    from onrecord.authorize.policy import Bundle, Decision, NeededApproval
    from onrecord.base.rpc_server import Answer, RpcConnection

    DecideWith: TypeAlias = Callable[[Asked, frozenset[str]], tuple[Decision | None, str | None]]

PENDING_RETRY_MS: Final = 1000
"""Hint to a caller whose call waits for people; with waitMs it asks less often and learns sooner."""

FULL_RETRY_MS: Final = 5000
"""Hint to a caller with too many pending approvals: people take their time."""

RECORD_MEMBERS: Final = (
    "caller", "session", "server", "method", "name", "actionDigest", "policyVersion", "operationId", "inputs",
    "inputDigest", "round", "rules", "approvalId",
)  # fmt: skip
"""What the journal records of an approval take over from the request that opened it."""


class ApprovalGate:
    """Answers issue requests that need approvals."""

    def __init__(
        self,
        state: AuthorityState,
        refusals: Refusals,
        granter: Granter,
        *,
        decide_with: DecideWith,
        resume: Callable[[Asked, Waited], Answer],
    ) -> None:
        """`decide_with` asks policy with the approvals of some rules granted, `resume` decides a request anew."""
        self._state = state
        self._refusals = refusals
        self._granter = granter
        self._decide_with = decide_with
        self._resume = resume
        self.waiting = WaitingRoom()
        self.ends = ApprovalEnds(state)

    def answer(self, asked: Asked, decision: Decision) -> Answer:
        """Answer a request for which policy wants the approvals of `decision`."""
        state = self._state
        self.ends.sweep()
        key = ApprovalKey(
            asked.caller,
            asked.params.server,
            asked.data["actionDigest"],
            asked.input_digest,
            asked.in_force.bundle.version,
        )
        waited = None if asked.waited is None else asked.waited.approval
        if waited is not None and waited.state is ApprovalState.EXPIRED:
            return self._refuse_expired(asked, waited)
        approval = state.approvals.find(key)
        if approval is not None and approval.state in OPEN and not self._is_same(approval, asked, decision):
            # What policy asks for is another thing than what people were shown.
            self.ends.void(lambda one: one is approval, cause="changed")
            approval = None
        if approval is None:
            if waited is not None and waited.state is ApprovalState.USED:
                # Another request got its proof. Whoever is still there asks again; nobody is asked for one who left.
                return self._still_pending(asked, waited)
            return self._open(asked, decision, key)
        if approval.state is ApprovalState.EXPIRED:
            return self._refuse_expired(asked, approval)
        self._join(asked, approval)
        if approval.state is ApprovalState.REJECTED:
            return self._refuse(asked, approval, Reason.APPROVAL_REJECTED)
        if approval.state is ApprovalState.GRANTED:
            return self._release(asked, approval)
        if self.waiting.admits(asked):
            return self._held(asked, approval, self.waiting.enter(asked, approval), None)
        return self._still_pending(asked, approval)

    def _is_same(self, approval: Approval, asked: Asked, decision: Decision) -> bool:
        revision = self._state.tools.revision(asked.params.server, asked.params.name)
        return approval.needed == decision.approvals and approval.tool_revision == revision

    def _join(self, asked: Asked, approval: Approval) -> None:
        """Make the request part of the operation that the approval was asked for, in the same record session."""
        if approval.operation.call != asked.operation.call:
            return
        asked.operation = approval.operation
        asked.data["operationId"] = approval.operation.id
        if asked.input_digest is not None:
            asked.round = asked.data["round"] = approval.operation.round_of(asked.input_digest)

    # Asking people -------------------------------------------------------------------------------------------

    def _open(self, asked: Asked, decision: Decision, key: ApprovalKey) -> Answer:
        state, bundle = self._state, asked.in_force.bundle
        designated = {
            need.rule: designated_approvers(
                bundle, need, caller=asked.caller, is_user_mode=state.is_user_mode
            )
            for need in decision.approvals
        }
        if any(len(designated[need.rule]) < need.number for need in decision.approvals):
            return self._granter.deny(asked, "approvers_too_few")
        refused = self._granter.refuse_evidence(asked)
        if refused is not None:
            return refused  # no person is asked about a call that could not get a proof
        call = orjson.dumps({"arguments": asked.params.arguments, "inputs": _inputs(asked.request.params)})
        limited = self._limited(asked, designated, len(call))
        if limited is not None:
            return limited
        now_ns, seconds = state.clock.boottime_ns(), bundle.limits.approval_seconds
        id_, number = state.approvals.next_identity()
        data = asked.data
        data |= {"approvalId": id_, "entry": state.feed.next_number}
        approval = Approval(
            id=id_,
            number=number,
            key=key,
            tool=asked.params.name,
            tool_revision=state.tools.revision(asked.params.server, asked.params.name),
            needed=decision.approvals,
            designated=designated,
            operation=asked.operation,
            record={member: data[member] for member in RECORD_MEMBERS if member in data},
            created_ns=now_ns,
            expires_ns=now_ns + seconds * 1_000_000_000,
            expires_at=seconds_text(state.clock.now_ns() // 1_000_000_000 + seconds),
            summary=self._summary(asked, decision),
            call=call,
        )
        line = self._pending_line(asked, approval)
        is_held = self.waiting.admits(asked)

        def handed_over(seq: int) -> None:
            state.approvals.open(approval)
            state.feed.add(seq, RecordType.APPROVAL_PENDING, data)
            state.count("approval.pending")
            self.ends.schedule()

        def finish(_receipt: Any) -> bytes:
            if not is_held:
                state.count(f"issue.{Reason.APPROVAL_PENDING}")
                state.metrics.issue.add(state.ticks_ns() - asked.started)
            return line

        answer = state.audit.answer(
            RecordType.APPROVAL_PENDING,
            data,
            request_id=asked.request.id,
            finish=finish,
            handed_over=handed_over,
        )
        if is_held and approval.due_ns:  # without a date its record could not be handed over
            return self._held(asked, approval, self.waiting.enter(asked, approval), answer)
        return answer

    def _limited(
        self, asked: Asked, designated: Mapping[str, frozenset[str]], call_bytes: int
    ) -> Answer | None:
        """Return the refusal if this caller, these approvers or the memory have enough pending approvals."""
        state, limits = self._state, asked.in_force.bundle.limits
        book = state.approvals
        detail, wait_ms = "", 0
        if book.pending_of(asked.caller) >= limits.pending_approvals_per_caller:
            detail, wait_ms = "pending_approvals", FULL_RETRY_MS
        elif book.held_bytes + call_bytes > MAX_HELD_BYTES:
            detail, wait_ms = "approvals_full", FULL_RETRY_MS
        else:
            wait_ms = book.rates.wait_ms(
                frozenset().union(*designated.values()),
                caller=asked.caller,
                per_minute=limits.approval_requests_per_approver_minute,
                is_shared=not state.is_user_mode
                and any(one.id != asked.caller for one in asked.in_force.bundle.callers),
                now_ns=state.clock.boottime_ns(),
            )
            detail = "approval_requests"
        if not wait_ms:
            return None
        return self._refusals.issue(
            asked.visitor,
            asked.request,
            asked.started,
            Reason.RATE_LIMITED,
            detail=detail,
            extra={"retryAfterMs": wait_ms},
        )

    def _summary(self, asked: Asked, decision: Decision) -> tuple[str, ...]:
        params = asked.params
        reading = asked.in_force.policy.read(asked.call(self._state.tools.advertised(params.server)))
        return summary_lines(
            server=params.server,
            tool=params.name,
            caller=asked.caller,
            arguments=params.arguments,
            inputs=_inputs(asked.request.params),
            facts=fact_pairs(reading, round_=asked.round),
            rules=decision.rules,
            action_digest=asked.data["actionDigest"],
        )

    # Answering -----------------------------------------------------------------------------------------------

    def _pending_line(self, asked: Asked, approval: Approval) -> bytes:
        reason = Reason.APPROVAL_PENDING
        return error_line(
            asked.request.id,
            CODES[reason],
            MESSAGES[reason],
            {
                "reason": reason,
                "approvalId": approval.id,
                "retryAfterMs": PENDING_RETRY_MS,
                "expiresAt": approval.expires_at,
                "operationId": asked.operation.id,
            },
        )

    def _still_pending(self, asked: Asked, approval: Approval) -> Answer:
        line = self._pending_line(asked, approval)
        return self._refused(asked, approval, Reason.APPROVAL_PENDING, line)

    def _refuse_expired(self, asked: Asked, approval: Approval) -> Answer:
        """Say once that nobody decided in time; the same call may start again."""
        self._join(asked, approval)
        self._state.approvals.forget_key(approval)
        return self._refuse(asked, approval, Reason.APPROVAL_EXPIRED)

    def _refuse(self, asked: Asked, approval: Approval, reason: Reason) -> Answer:
        data = {"reason": reason, "approvalId": approval.id, "operationId": asked.operation.id}
        line = error_line(asked.request.id, CODES[reason], MESSAGES[reason], data)
        return self._refused(asked, approval, reason, line)

    def _refused(self, asked: Asked, approval: Approval, reason: Reason, line: bytes) -> Answer:
        state = self._state
        data = asked.data | {"reason": reason, "approvalId": approval.id}

        def finish(_receipt: Any) -> bytes:
            state.count(f"issue.{reason}")
            state.metrics.issue.add(state.ticks_ns() - asked.started)
            return line

        return state.audit.answer(RecordType.ISSUE_REFUSED, data, request_id=asked.request.id, finish=finish)

    def _release(self, asked: Asked, approval: Approval) -> Answer:
        """Evaluate again with what was granted; only Allow issues (call-proof.md 8.6, step 5)."""
        asked.data["approvalId"] = approval.id
        granted = frozenset(need.rule for need in approval.needed)
        decision, detail = self._decide_with(asked, granted)
        if decision is None or decision.effect != "allow":
            return self._granter.deny(asked, detail or "approval_insufficient")
        asked.data["rules"] = decision.rules
        if asked.operation is approval.operation:
            asked.data["afterApproval"] = True
        return self._granter.grant(asked, approval=approval)

    # Waiting -------------------------------------------------------------------------------------------------

    async def _held(
        self, asked: Asked, approval: Approval, waiting: Awaitable[bool], answer: Answer
    ) -> bytes:
        """Answer a request that is held open. `answer` is the one for when its time is up, if there is one yet."""
        if not await waiting:
            return b""  # nobody would get the proof, or somebody else
        asked.started = self._state.ticks_ns()
        self.ends.sweep()
        if approval.state is not ApprovalState.PENDING:
            assert asked.waited is not None
            return await line_of(self._resume(asked, asked.waited))
        if answer is None:
            return await line_of(self._still_pending(asked, approval))
        self._state.count(f"issue.{Reason.APPROVAL_PENDING}")
        return await line_of(answer)

    def forget(self, connection: RpcConnection) -> None:
        """Let go of what waits for a connection that has ended. Its approvals stay."""
        self.waiting.forget(connection)

    def close(self) -> None:
        """Let go of everything: the authority ends."""
        self.ends.close()
        self.waiting.close()


def designated_approvers(
    bundle: Bundle, need: NeededApproval, *, caller: str, is_user_mode: bool
) -> frozenset[str]:
    """Return the ids of the approvers that may lift a rule for a call of `caller`.

    In system mode nobody who is the caller, by id or by uid, and nobody whose uid has another role. In user mode
    there is one approver, under the caller's uid.
    """
    people = [person for person in bundle.approvers_of(need.group) if "terminal" in person.channels]
    if is_user_mode:
        mine = None if bundle.user_mode is None else bundle.user_mode.approver
        return frozenset(person.id for person in people if person.id == mine)
    uids = {entry.uid for entry in bundle.callers if entry.id == caller}
    return frozenset(
        person.id
        for person in people
        if person.id != caller and person.uid not in uids and bundle.approver_by_uid(person.uid) is person
    )


def _inputs(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a later round, as far as there are any (call-proof.md 5.5)."""
    return {member: params[member] for member in ("inputResponses", "requestState") if member in params}


async def line_of(answer: Answer) -> bytes:
    """Return the line of an answer, now or when it is there."""
    if answer is None or isinstance(answer, bytes):
        return answer or b""
    return await answer
