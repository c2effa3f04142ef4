"""callProof/issue: may exactly this call run now? If so, a proof for it.

Source: call-proof.md 5.2, 5.3, 8.6; running.md R-06, R-07.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from onrecord.authorize import digest
from onrecord.authorize.authority.approval_gate import ApprovalGate, line_of
from onrecord.authorize.authority.asking import Asked
from onrecord.authorize.authority.callers import Role
from onrecord.authorize.authority.decisions import DecisionKey
from onrecord.authorize.authority.granting import Granter
from onrecord.authorize.authority.params import IssueParams, RefusedRequest, read_issue
from onrecord.authorize.authority.reasons import Reason
from onrecord.authorize.authority.tools import TOOLS_WAIT_MS

if TYPE_CHECKING:
    from onrecord.authorize.authority.asking import Waited
    from onrecord.authorize.authority.callers import Visitor
    from onrecord.authorize.authority.refusals import Refusals
    from onrecord.authorize.authority.state import AuthorityState
    from onrecord.authorize.policy import Decision
    from onrecord.base.rpc_server import Answer, RpcConnection
    from onrecord.base.wire import Request

SLOW_DECISION_NS: Final = 100_000_000
"""A policy decision that takes longer is counted (call-proof.md 11)."""


class Issuer:
    """Answers callProof/issue."""

    def __init__(self, state: AuthorityState, refusals: Refusals) -> None:
        self._state = state
        self._refusals = refusals
        self._granter = Granter(state, refusals)
        self.gate = ApprovalGate(
            state, refusals, self._granter, decide_with=self._decide_with, resume=self._resume
        )

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
        return self._decide(connection, request, started, params)

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
        return await line_of(self._decide_again(connection, request, started, params, None))

    def _resume(self, asked: Asked, waited: Waited) -> Answer:
        """Decide a request anew that was held open; policy, tools and approvals may be others now."""
        return self._decide_again(asked.connection, asked.request, asked.started, asked.params, waited)

    def _decide_again(
        self,
        connection: RpcConnection,
        request: Request,
        started: int,
        params: IssueParams,
        waited: Waited | None,
    ) -> Answer:
        state = self._state
        visitor: Visitor = connection.state
        identity = state.identity(visitor)
        if identity is None or state.in_force is None:
            return self._refusals.issue(visitor, request, started, Reason.POLICY_UNAVAILABLE)
        if identity.role is not Role.AGENT:
            return self._refusals.not_authorized(visitor, request)
        if params.server not in state.in_force.bundle.servers:
            return self._refusals.issue(visitor, request, started, Reason.UNKNOWN_SERVER)
        return self._decide(connection, request, started, params, waited)

    def _decide(
        self,
        connection: RpcConnection,
        request: Request,
        started: int,
        params: IssueParams,
        waited: Waited | None = None,
    ) -> Answer:
        state = self._state
        visitor: Visitor = connection.state
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
        asked = Asked(
            visitor=visitor,
            connection=connection,
            request=request,
            started=started,
            params=params,
            in_force=in_force,
            caller=caller,
            data=data,
            operation=operation,
            round=round_,
            input_digest=input_digest,
            waited=waited,
        )
        decision, detail = self._ask(asked)
        if decision is not None:
            data["rules"] = list(decision.rules)
            if decision.effect == "allow":
                return self._granter.grant(asked)
            if decision.effect == "approval":
                return self.gate.answer(asked, decision)
        return self._granter.deny(asked, detail)

    def _ask(self, asked: Asked) -> tuple[Decision | None, str | None]:
        """Return the decision and, for a denial, the detail for the journal. Any error denies."""
        state, params = self._state, asked.params
        if asked.request.facts.floats:
            return self._decide_with(asked, frozenset())
        key = DecisionKey(
            asked.caller,
            params.server,
            state.tools.generation(params.server),
            params.name,
            asked.data["actionDigest"],
            asked.round,
        )
        decision = state.decisions.get(key)
        if decision is not None:
            return decision, decision.detail
        decision, detail = self._decide_with(asked, frozenset())
        if decision is not None:
            state.decisions.put(key, decision)
        return decision, detail

    def _decide_with(self, asked: Asked, approvals: frozenset[str]) -> tuple[Decision | None, str | None]:
        """Ask policy about a call for which the approvals of these rules were granted; nothing is cached."""
        state = self._state
        before = state.ticks_ns()
        try:
            advertised = state.tools.advertised(asked.params.server)
            decision = asked.in_force.policy.decide(asked.call(advertised, approvals=approvals))
        except Exception as error:
            state.count(f"policy_error.{type(error).__name__}")
            return None, "policy_error"
        if state.ticks_ns() - before > SLOW_DECISION_NS:
            state.count("policy_slow")
        return decision, decision.detail
