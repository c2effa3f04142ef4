"""callProof/verify: is this a proof for exactly this call, and is it unused? And callProof/tools.

Source: call-proof.md 5.4, 5.5, 5.7, 10.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onrecord.authorize.authority.callers import Role
from onrecord.authorize.authority.params import RefusedRequest, read_server, read_tools, read_verify
from onrecord.authorize.authority.reasons import Reason, RecordType
from onrecord.authorize.authority.refusals import audit_unavailable, refusal_line
from onrecord.base.errors import OnrecordError
from onrecord.base.wire import error_line, result_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from onrecord.authorize.authority.callers import Visitor
    from onrecord.authorize.authority.params import VerifyParams
    from onrecord.authorize.authority.proofs import Presented
    from onrecord.authorize.authority.refusals import Refusals
    from onrecord.authorize.authority.state import AuthorityState
    from onrecord.base.rpc_server import Answer, RpcConnection
    from onrecord.base.wire import Request
    from onrecord.record.ledger.journal import Receipt


class Verifier:
    """Answers callProof/verify."""

    def __init__(self, state: AuthorityState, refusals: Refusals) -> None:
        self._state = state
        self._refusals = refusals

    def handle(self, connection: RpcConnection, request: Request) -> Answer:
        """Answer one request of a visitor whose process is alive."""
        state = self._state
        started = state.ticks_ns()
        visitor: Visitor = connection.state
        identity = state.identity(visitor)
        if identity is not None and not identity.is_known:
            return self._refusals.unknown_caller(visitor, request)
        if identity is not None and identity.role is not Role.TOOL_SERVER:
            return self._refusals.not_authorized(visitor, request)
        if identity is None or state.in_force is None:
            state.count(f"verify.{Reason.POLICY_UNAVAILABLE}")
            return refusal_line(request.id, Reason.POLICY_UNAVAILABLE)
        try:
            params = read_verify(request.params)
        except RefusedRequest as refusal:
            state.count(f"verify.{refusal.refusal}")
            return error_line(request.id, refusal.rpc_code, str(refusal), refusal.data)
        if params.server not in identity.servers:
            return self._refusals.not_authorized(visitor, request)
        now_ns = state.clock.boottime_ns()
        presented = state.proofs.check(
            params.evidence,
            action_digest=params.action_digest,
            input_digest=params.input_digest,
            server=params.server,
            peer_uid=params.peer_uid,
            max_value_characters=state.in_force.bundle.limits.proof_bytes,
            now_ns=now_ns,
        )
        data = self._record(visitor, params, presented)
        if presented.reason is not None:
            type_ = RecordType.VERIFY_INVALID
            if params.without_id and params.evidence is None:
                type_ = RecordType.CALL_WITHOUT_ID
            return self._invalid(request, started, type_, data, str(presented.reason))
        return self._valid(request, started, data, params.server, presented, now_ns)

    def _record(self, visitor: Visitor, params: VerifyParams, presented: Presented) -> dict[str, Any]:
        state = self._state
        assert state.in_force is not None
        data: dict[str, Any] = {
            "platform": visitor.platform,
            "server": params.server,
            "actionDigest": params.action_digest,
            "policyVersion": state.in_force.bundle.version,
        }
        if presented.type is not None:
            data["evidenceType"] = presented.type
        if presented.proof_ref is not None:
            data["proofRef"] = presented.proof_ref
        if params.input_digest is not None:
            data["inputs"] = True
        if params.peer_uid is not None:
            data["peerUid"] = params.peer_uid
        record = presented.record
        if record is not None:
            data |= {
                "caller": record.caller,
                "method": record.issue.method,
                "name": record.issue.name,
                "operationId": record.issue.operation_id,
            }
            if presented.reason is None:
                return data
        if params.method is not None:
            data["method"] = params.method
        if params.name is not None:
            data["name"] = params.name
        if record is None and params.peer_uid is not None:
            # An attempt without a proof of ours is still somebody's: the relay knows who is connected to it.
            caller = state.in_force.bundle.caller_by_uid(params.peer_uid)
            if caller is not None:
                data["caller"] = caller.id
        return data

    def _invalid(
        self, request: Request, started: int, type_: RecordType, data: dict[str, Any], reason: str
    ) -> Answer:
        state = self._state
        data["reason"] = reason

        def finish(receipt: Receipt | None) -> bytes:
            state.count(f"verify.{reason}")
            state.metrics.verify.add(state.ticks_ns() - started)
            return result_line(request.id, _with_checkpoint({"valid": False, "reason": reason}, receipt))

        return state.audit.answer(type_, data, request_id=request.id, finish=finish)

    def _valid(
        self,
        request: Request,
        started: int,
        data: dict[str, Any],
        server: str,
        presented: Presented,
        now_ns: int,
    ) -> Answer:
        state = self._state
        record = presented.record
        assert record is not None and state.in_force is not None  # noqa: PT018
        result: dict[str, Any] = {"valid": True}
        if record.approval_id is not None:
            result["approved"] = True
            data["approvalId"] = record.approval_id
        if state.in_force.bundle.servers[server].disclose_caller:
            result["caller"] = record.caller

        def finish(receipt: Receipt | None) -> bytes:
            state.count("verify.valid")
            state.metrics.verify.add(state.ticks_ns() - started)
            return result_line(request.id, _with_checkpoint(result, receipt))

        # The record is handed over and the proof is marked used in one step: nothing else runs in between, so of
        # any number of presentations exactly one gets here, and a refused record leaves the proof unspent.
        return state.audit.answer(
            RecordType.VERIFY_VALID,
            data,
            request_id=request.id,
            finish=finish,
            handed_over=lambda _seq: state.proofs.consume(record, now_ns=now_ns),
        )


class ToolsReporter:
    """Answers callProof/tools. `tools_changed` is told the names of tools that went or are other ones now."""

    def __init__(
        self,
        state: AuthorityState,
        refusals: Refusals,
        *,
        tools_changed: Callable[[str, tuple[str, ...]], None],
    ) -> None:
        self._state = state
        self._refusals = refusals
        self._tools_changed = tools_changed

    def handle(self, connection: RpcConnection, request: Request) -> Answer:
        """Take the list of what a server advertises now; a fault in it leaves the list before in place."""
        state = self._state
        visitor: Visitor = connection.state
        identity = state.identity(visitor)
        if identity is None:
            return refusal_line(request.id, Reason.POLICY_UNAVAILABLE)
        if not identity.is_known:
            return self._refusals.unknown_caller(visitor, request)
        if identity.role is not Role.TOOL_SERVER:
            return self._refusals.not_authorized(visitor, request)
        try:
            server = read_server(request.params)
            if server not in identity.servers:
                return self._refusals.not_authorized(visitor, request)
            hashes = read_tools(request.params)
        except RefusedRequest as refusal:
            return error_line(request.id, refusal.rpc_code, str(refusal), refusal.data)
        change = state.tools.report(server, hashes)
        if change.is_news:
            data: dict[str, Any] = {
                "platform": visitor.platform,
                "server": server,
                "count": len(hashes),
                "first": change.first,
                "added": len(change.added),
                "removed": list(change.removed[:64]),
                "changed": list(change.changed[:64]),
            }
            if change.removed or change.changed:
                state.count("tools.changed")
                self._tools_changed(server, (*change.removed, *change.changed))
            try:
                state.audit.write(RecordType.TOOLS_CHANGED, data)
            except OnrecordError:
                return audit_unavailable(request.id)
        return result_line(request.id, {"received": len(hashes)})


def _with_checkpoint(result: dict[str, Any], receipt: Receipt | None) -> dict[str, Any]:
    if receipt is not None:
        result["checkpoint"] = {"seq": receipt.seq, "size": receipt.size, "note": receipt.note}
    return result


__all__ = ["ToolsReporter", "Verifier"]
