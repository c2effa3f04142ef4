"""callProof/issue: may exactly this call run now? If so, a proof for it.

Source: call-proof.md 5.2, 5.3, 8.6; running.md R-06, R-07, 13.
"""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from onrecord.authorize import digest
from onrecord.authorize.authority.callers import Role
from onrecord.authorize.authority.decisions import DecisionKey
from onrecord.authorize.authority.params import IssueParams, RefusedRequest, read_issue
from onrecord.authorize.authority.proofs import IssueFacts
from onrecord.authorize.authority.reasons import CODES, MESSAGES, Reason, RecordType
from onrecord.authorize.authority.refusals import Refusals, audit_unavailable
from onrecord.authorize.authority.tools import TOOLS_WAIT_MS
from onrecord.authorize.evidence import ProofClaims
from onrecord.authorize.policy import CallRequest
from onrecord.base.errors import KeyAccessError, OnrecordError
from onrecord.base.ids import opaque_ref
from onrecord.base.wire import error_line, result_line

if TYPE_CHECKING:
    from onrecord.authorize.authority.callers import Visitor
    from onrecord.authorize.authority.decisions import Operation
    from onrecord.authorize.authority.state import AuthorityState, PolicyInForce
    from onrecord.authorize.evidence import EvidenceProfile
    from onrecord.authorize.policy import Decision
    from onrecord.base.rpc_server import Answer, RpcConnection
    from onrecord.base.wire import Request

SLOW_DECISION_NS: Final = 100_000_000
"""A policy decision that takes longer is counted (call-proof.md 11)."""

OUTSTANDING_RETRY_MS: Final = 1000
"""Hint to a caller with too many unused proofs: they end by themselves within seconds."""


class Issuer:
    """Answers callProof/issue."""

    def __init__(self, state: AuthorityState, refusals: Refusals) -> None:
        self._state = state
        self._refusals = refusals

    def handle(self, connection: RpcConnection, request: Request) -> Answer:
        """Answer one request of a visitor whose process is alive."""
        state = self._state
        started = state.ticks_ns()
        visitor: Visitor = connection.state
        identity = state.identity(visitor)
        if identity is None or state.in_force is None:
            return self._refusals.issue(visitor, request, started, Reason.POLICY_UNAVAILABLE)
        if not identity.is_known:
            return self._refusals.unknown_caller(visitor, request)
        if identity.role is not Role.AGENT or identity.caller is None:
            return self._refusals.not_authorized(visitor, request)
        limits = state.in_force.bundle.limits
        wait_ms = state.rates.take(
            identity.caller,
            rate_per_second=limits.issue_per_second,
            burst=limits.issue_burst,
            now_ns=state.clock.boottime_ns(),
        )
        if wait_ms:
            return self._refusals.issue(
                visitor, request, started, Reason.RATE_LIMITED, extra={"retryAfterMs": wait_ms}
            )
        try:
            params = read_issue(request.params)
        except RefusedRequest as refusal:
            return self._refusals.issue(visitor, request, started, refusal.refusal, detail=refusal.detail)
        if params.server not in state.in_force.bundle.servers:
            return self._refusals.issue(visitor, request, started, Reason.UNKNOWN_SERVER)
        if state.tools.advertised(params.server) is None:
            return self._wait_for_tools(connection, request, started, params)
        return self._decide(visitor, request, started, params)

    async def _wait_for_tools(
        self, connection: RpcConnection, request: Request, started: int, params: IssueParams
    ) -> bytes:
        """Wait for the first report of the server, at most TOOLS_WAIT_MS, then decide with what is known."""
        loop = asyncio.get_running_loop()
        reported: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not reported.done():
                reported.set_result(None)

        take_back = self._state.tools.wait(params.server, wake)
        timer = loop.call_later(TOOLS_WAIT_MS / 1000, wake)
        try:
            await reported
        finally:
            timer.cancel()
            take_back()
        if connection.transport is None or connection.transport.is_closing() or connection.gone():
            return b""  # nobody would get the proof, or somebody else
        visitor: Visitor = connection.state
        identity = self._state.identity(visitor)
        if identity is None or self._state.in_force is None:
            return await _line(self._refusals.issue(visitor, request, started, Reason.POLICY_UNAVAILABLE))
        if identity.role is not Role.AGENT:
            return await _line(self._refusals.not_authorized(visitor, request))
        if params.server not in self._state.in_force.bundle.servers:
            return await _line(self._refusals.issue(visitor, request, started, Reason.UNKNOWN_SERVER))
        return await _line(self._decide(visitor, request, started, params))

    def _decide(self, visitor: Visitor, request: Request, started: int, params: IssueParams) -> Answer:
        state = self._state
        in_force = state.in_force
        identity = visitor.identity
        assert in_force is not None and identity is not None and identity.caller is not None  # noqa: PT018
        caller = identity.caller
        facts = request.facts
        action_digest = digest.action_digest(params.method, params.name, params.arguments, facts)
        input_digest = digest.input_digest(request.params, facts)
        label = params.record_session or visitor.label
        operation, continues = state.operations.enter(
            params.operation_id,
            uid=identity.uid,
            label=label,
            server=params.server,
            name=params.name,
            action_digest=action_digest,
        )
        round_ = operation.round_of(input_digest)
        data: dict[str, Any] = {
            "caller": caller,
            "platform": visitor.platform,
            "session": label,
            "server": params.server,
            "method": params.method,
            "name": params.name,
            "actionDigest": action_digest,
            "policyVersion": in_force.bundle.version,
            "operationId": operation.id,
        }
        if input_digest is not None:
            data |= {"inputs": True, "inputDigest": input_digest, "round": round_}
        if continues:
            data["continues"] = True
        elif params.operation_id is not None:
            data["operationLabel"] = params.operation_id
        decision, detail = self._ask(
            in_force, caller, params, action_digest, round_, cachable=not facts.floats
        )
        if decision is None or decision.effect != "allow":
            data["rules"] = [] if decision is None else list(decision.rules)
            return self._deny(request, started, data, operation, detail)
        data["rules"] = decision.rules
        profile = self._profile(params.evidence_types)
        if profile is None:
            return self._refusals.issue(
                visitor,
                request,
                started,
                Reason.UNSUPPORTED_TYPE,
                extra={"supported": [one.type for one in state.profiles]},
            )
        return self._grant(visitor, request, started, data, params, operation, profile, input_digest)

    def _ask(
        self,
        in_force: PolicyInForce,
        caller: str,
        params: IssueParams,
        action_digest: str,
        round_: int,
        *,
        cachable: bool,
    ) -> tuple[Decision | None, str | None]:
        """Return the decision and, where it is no plain one, the detail for the journal. Any error denies."""
        state = self._state
        key = DecisionKey(
            caller, params.server, state.tools.generation(params.server), params.name, action_digest, round_
        )
        decision = state.decisions.get(key) if cachable else None
        if decision is None:
            before = state.ticks_ns()
            try:
                decision = in_force.policy.decide(
                    CallRequest(
                        caller=caller,
                        server=params.server,
                        name=params.name,
                        arguments=params.arguments,
                        round=round_,
                        advertised=state.tools.advertised(params.server),
                    )
                )
            except Exception as error:
                state.count(f"policy_error.{type(error).__name__}")
                return None, "policy_error"
            if state.ticks_ns() - before > SLOW_DECISION_NS:
                state.count("policy_slow")
            if cachable:
                state.decisions.put(key, decision)
        if decision.effect == "allow":
            return decision, None
        if decision.effect == "approval":
            return decision, "approvals_unavailable"
        return decision, decision.detail

    def _profile(self, types: tuple[str, ...] | None) -> EvidenceProfile | None:
        if types is None:
            return self._state.profiles[0]
        return next((profile for profile in self._state.profiles if profile.type in types), None)

    def _grant(
        self,
        visitor: Visitor,
        request: Request,
        started: int,
        data: dict[str, Any],
        params: IssueParams,
        operation: Operation,
        profile: EvidenceProfile,
        input_digest: str | None,
    ) -> Answer:
        state = self._state
        assert state.in_force is not None
        bundle = state.in_force.bundle
        now_ns = state.clock.boottime_ns()
        state.proofs.sweep(
            now_ns=now_ns,
            tombstone_seconds=bundle.limits.tombstone_seconds,
            tombstones=bundle.limits.tombstones,
        )
        caller = data["caller"]
        if state.proofs.outstanding(caller) >= bundle.limits.outstanding_proofs_per_caller:
            return self._refusals.issue(
                visitor,
                request,
                started,
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
                    input_digest,
                    params.server,
                    caller,
                    wall_seconds,
                    bundle.proof_seconds,
                ),
                IssueFacts(
                    now_ns,
                    visitor.peer.uid,
                    params.method,
                    params.name,
                    bundle.version,
                    state.tools.revision(params.server, params.name),
                    operation.id,
                    data["rules"],
                ),
            )
        except KeyAccessError:
            return self._refusals.issue(visitor, request, started, Reason.KEY_UNAVAILABLE)
        data["evidenceType"] = profile.type
        data["proofRef"] = record.proof_ref
        data["entry"] = state.feed.next_number
        try:
            seq = state.audit.write(RecordType.ISSUE_GRANTED, data, can_wait=True)
        except OnrecordError:
            state.count(f"issue.{Reason.AUDIT_UNAVAILABLE}")
            return audit_unavailable(request.id)
        state.feed.add(seq, RecordType.ISSUE_GRANTED, data)
        state.proofs.keep(record)
        state.count("issue.granted")
        answer = result_line(
            request.id,
            {
                "actionDigest": data["actionDigest"],
                "server": params.server,
                "evidence": {"type": profile.type, "value": value},
                "expiresAt": _seconds_text(wall_seconds + bundle.proof_seconds),
                "operationId": operation.id,
            },
        )
        state.metrics.issue.add(state.ticks_ns() - started)
        return answer

    def _deny(
        self, request: Request, started: int, data: dict[str, Any], operation: Operation, detail: str | None
    ) -> Answer:
        state = self._state
        ref = opaque_ref(12)
        data |= {"reason": Reason.DENIED, "ref": ref, "entry": state.feed.next_number}
        if detail is not None:
            data["detail"] = detail
        line = error_line(
            request.id,
            CODES[Reason.DENIED],
            MESSAGES[Reason.DENIED],
            {"reason": Reason.DENIED, "ref": ref, "operationId": operation.id},
        )

        def finish(_receipt: Any) -> bytes:
            state.count("issue.denied")
            state.metrics.issue.add(state.ticks_ns() - started)
            return line

        return state.audit.answer(
            RecordType.ISSUE_DENIED,
            data,
            request_id=request.id,
            finish=finish,
            handed_over=lambda seq: state.feed.add(seq, RecordType.ISSUE_DENIED, data),
        )


async def _line(answer: Answer) -> bytes:
    if answer is None or isinstance(answer, bytes):
        return answer or b""
    return await answer


@lru_cache(8)
def _seconds_text(epoch_seconds: int) -> str:
    """Return RFC 3339 UTC without a fraction: for display only. The same second is asked for thousands of times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_seconds))
