"""One issue request on its way to a decision, with everything that was learned of it.

Source: call-proof.md 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onrecord.authorize.policy import CallRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onrecord.authorize.authority.approvals import Approval
    from onrecord.authorize.authority.callers import Visitor
    from onrecord.authorize.authority.decisions import Operation
    from onrecord.authorize.authority.params import IssueParams
    from onrecord.authorize.authority.state import PolicyInForce
    from onrecord.base.rpc_server import RpcConnection
    from onrecord.base.wire import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """What a request waited for, and until when it may wait in all (the loop's clock, in seconds)."""

    approval: Approval
    deadline: float


@dataclass(slots=True, kw_only=True)
class Asked:
    """A request that policy has looked at. `data` becomes the journal record; `started` is for latency alone."""

    connection: RpcConnection
    visitor: Visitor
    request: Request = field(repr=False)
    started: int
    params: IssueParams = field(repr=False)
    in_force: PolicyInForce = field(repr=False)
    caller: str
    data: dict[str, Any] = field(repr=False)
    operation: Operation
    round: int
    input_digest: str | None
    waited: Waited | None = None

    def call(
        self, advertised: Mapping[str, str] | None, *, approvals: frozenset[str] = frozenset()
    ) -> CallRequest:
        """Return the call as policy is asked about it, with what its server advertises now."""
        return CallRequest(
            caller=self.caller,
            server=self.params.server,
            name=self.params.name,
            arguments=self.params.arguments,
            round=self.round,
            advertised=advertised,
            approvals=approvals,
        )
