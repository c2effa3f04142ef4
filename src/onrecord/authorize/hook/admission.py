"""The last gate in front of a tool: only a call that the strict transport has let through gets past.

It knows nothing of proofs. Whatever else brings a tools/call (another transport, a test client in memory, a
notification) is refused here, so that a way around the check does not exist.

Source: mcp.md 3 (3, 6, 7), 10.1; call-proof.md 6.3.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from onrecord.authorize.guard.authority_link import UNREACHABLE
from onrecord.authorize.guard.extension import REQUIRED_CAPABILITIES
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.reading import TOOLS_CALL
from onrecord.base.namespaces import CALL_PROOF_META, CALL_PROOF_REJECTED, RECORD_SESSION_META

if TYPE_CHECKING:
    from onrecord.authorize.hook.protection import Protection

_LEGACY_LAST: Final = "2025-11-25"


class Admitted:
    """What the strict transport attaches to a call that may run. It is good for one call of one server."""

    __slots__ = ("_gate",)

    def __init__(self, gate: AdmissionGate) -> None:
        self._gate: AdmissionGate | None = gate

    def take(self, gate: AdmissionGate) -> bool:
        """Use it up; say whether it was meant for this gate and unused."""
        is_good = self._gate is gate
        self._gate = None
        return is_good


class AdmissionGate:
    """A middleware of the SDK's server, the outermost one. Holds the protection that it belongs to."""

    def __init__(self, protection: Protection, *, log: GuardLog) -> None:
        self.protection = protection
        self._log = log

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Pass everything but a tools/call without admission."""
        if ctx.method != TOOLS_CALL:
            return await call_next(ctx)
        _hide(ctx.params.get("_meta") if isinstance(ctx.params, dict) else None)
        _hide(ctx.meta)
        admitted = ctx.request
        if type(admitted) is not Admitted or not admitted.take(self):
            return self._refuse(ctx)
        return await call_next(replace(ctx, request=None))

    def _refuse(self, ctx: Any) -> None:
        from mcp import MCPError

        self._log.event("call.rejected", method=TOOLS_CALL, reason=UNREACHABLE, note=self.protection.note)
        if ctx.request_id is None:
            return
        data: dict[str, Any] = {"reason": UNREACHABLE, "detail": self.protection.note}
        if ctx.protocol_version > _LEGACY_LAST:
            data["requiredCapabilities"] = REQUIRED_CAPABILITIES
        raise MCPError(code=CALL_PROOF_REJECTED, message="Call proof rejected", data=data)


def _hide(meta: Any) -> None:
    """Take proof and label out of one of the two copies of `_meta`; tool code reads both."""
    if isinstance(meta, dict):
        meta.pop(CALL_PROOF_META, None)
        meta.pop(RECORD_SESSION_META, None)
