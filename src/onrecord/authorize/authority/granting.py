"""The two ends of an issue request: a proof, or a denial. Each is journaled before its answer leaves.

Source: call-proof.md 5.2, 5.3, 10.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onrecord.authorize.authority.approvals import ApprovalState
from onrecord.authorize.authority.proofs import IssueFacts
from onrecord.authorize.authority.reasons import CODES, MESSAGES, Reason, RecordType
from onrecord.authorize.authority.refusals import audit_unavailable
from onrecord.authorize.evidence import ProofClaims
from onrecord.base.dates import seconds_text
from onrecord.base.errors import KeyAccessError, OnrecordError
from onrecord.base.ids import opaque_ref
from onrecord.base.wire import error_line, result_line

if TYPE_CHECKING:
    from onrecord.authorize.authority.approvals import Approval
    from onrecord.authorize.authority.asking import Asked
    from onrecord.authorize.authority.refusals import Refusals
    from onrecord.authorize.authority.state import AuthorityState
    from onrecord.authorize.evidence import EvidenceProfile
    from onrecord.base.rpc_server import Answer

OUTSTANDING_RETRY_MS: Final = 1000
"""Hint to a caller with too many unused proofs: they end by themselves within seconds."""


class Granter:
    """Issues proofs and denies calls."""

    def __init__(self, state: AuthorityState, refusals: Refusals) -> None:
        self._state = state
        self._refusals = refusals

    def refuse_evidence(self, asked: Asked) -> Answer:
        """Return the refusal if there is no evidence type that the request accepts, else None."""
        state = self._state
        if not state.profiles:
            return self._refusals.issue(asked.visitor, asked.request, asked.started, Reason.KEY_UNAVAILABLE)
        if self._profile(asked) is None:
            return self._refusals.issue(
                asked.visitor,
                asked.request,
                asked.started,
                Reason.UNSUPPORTED_TYPE,
                extra={"supported": [one.type for one in state.profiles]},
            )
        return None

    def _profile(self, asked: Asked) -> EvidenceProfile | None:
        types = asked.params.evidence_types
        return next(
            (profile for profile in self._state.profiles if types is None or profile.type in types), None
        )

    def grant(self, asked: Asked, *, approval: Approval | None = None) -> Answer:
        """Issue a proof; with `approval` it is the one that this approval releases, and it is used up by that.

        Nothing else runs between the record, the proof and the mark on the approval: an approval gives one proof.
        """
        state, params, data = self._state, asked.params, asked.data
        bundle = asked.in_force.bundle
        profile = self._profile(asked)
        if profile is None:
            return self.refuse_evidence(asked)
        if approval is not None and approval.state is not ApprovalState.GRANTED:
            raise AssertionError("only a granted approval releases a proof")
        now_ns = state.clock.boottime_ns()
        state.proofs.sweep(
            now_ns=now_ns,
            tombstone_seconds=bundle.limits.tombstone_seconds,
            tombstones=bundle.limits.tombstones,
        )
        if state.proofs.outstanding(asked.caller) >= bundle.limits.outstanding_proofs_per_caller:
            return self._refusals.issue(
                asked.visitor,
                asked.request,
                asked.started,
                Reason.RATE_LIMITED,
                detail="outstanding_proofs",
                extra={"retryAfterMs": OUTSTANDING_RETRY_MS},
            )
        wall_seconds = state.clock.now_ns() // 1_000_000_000
        try:
            value, record = state.proofs.issue(
                profile,
                ProofClaims(
                    data["actionDigest"],
                    asked.input_digest,
                    params.server,
                    asked.caller,
                    wall_seconds,
                    bundle.proof_seconds,
                ),
                IssueFacts(
                    now_ns,
                    asked.visitor.peer.uid,
                    params.method,
                    params.name,
                    bundle.version,
                    state.tools.revision(params.server, params.name),
                    asked.operation.id,
                    data["rules"],
                ),
                approval_id=None if approval is None else approval.id,
            )
        except KeyAccessError:
            return self._refusals.issue(asked.visitor, asked.request, asked.started, Reason.KEY_UNAVAILABLE)
        data["evidenceType"] = profile.type
        data["proofRef"] = record.proof_ref
        data["entry"] = state.feed.next_number
        try:
            seq = state.audit.write(RecordType.ISSUE_GRANTED, data, can_wait=True)
        except OnrecordError:
            state.count(f"issue.{Reason.AUDIT_UNAVAILABLE}")
            return audit_unavailable(asked.request.id)
        state.feed.add(seq, RecordType.ISSUE_GRANTED, data)
        state.proofs.keep(record)
        if approval is not None:
            state.approvals.use(approval, record, now_ns=now_ns)
        state.count("issue.granted")
        answer = result_line(
            asked.request.id,
            {
                "actionDigest": data["actionDigest"],
                "server": params.server,
                "evidence": {"type": profile.type, "value": value},
                "expiresAt": seconds_text(wall_seconds + bundle.proof_seconds),
                "operationId": asked.operation.id,
                **({} if approval is None else {"approvalId": approval.id}),
            },
        )
        state.metrics.issue.add(state.ticks_ns() - asked.started)
        return answer

    def deny(self, asked: Asked, detail: str | None) -> Answer:
        """Deny the call. `detail` is for the journal alone."""
        state, data, request = self._state, asked.data, asked.request
        ref = opaque_ref(12)
        data |= {"reason": Reason.DENIED, "ref": ref, "entry": state.feed.next_number}
        data.setdefault("rules", [])
        if detail is not None:
            data["detail"] = detail
        line = error_line(
            request.id,
            CODES[Reason.DENIED],
            MESSAGES[Reason.DENIED],
            {"reason": Reason.DENIED, "ref": ref, "operationId": asked.operation.id},
        )

        def finish(_receipt: Any) -> bytes:
            state.count("issue.denied")
            state.metrics.issue.add(state.ticks_ns() - asked.started)
            return line

        return state.audit.answer(
            RecordType.ISSUE_DENIED,
            data,
            request_id=request.id,
            finish=finish,
            handed_over=lambda seq: state.feed.add(seq, RecordType.ISSUE_DENIED, data),
        )
