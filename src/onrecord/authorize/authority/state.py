"""What the parts of one running authority share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onrecord.authorize.authority.callers import Identity, Visitor, identify
from onrecord.authorize.authority.decisions import DecisionCache, Operations
from onrecord.authorize.authority.limits import ConnectionCount, IssueRates
from onrecord.authorize.authority.metrics import Metrics
from onrecord.authorize.authority.tools import ToolReports
from onrecord.base.dates import format_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from onrecord.authorize.authority.approvals import ApprovalBook
    from onrecord.authorize.authority.audit import Audit
    from onrecord.authorize.authority.proofs import ProofRecord, ProofStore
    from onrecord.authorize.authority.recorder_feed import RecorderFeed
    from onrecord.authorize.evidence import EvidenceProfile
    from onrecord.authorize.policy import Bundle, Policy
    from onrecord.base.dates import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    """A bundle that was accepted, and its rules ready to be asked."""

    bundle: Bundle
    policy: Policy


class AuthorityState:
    """The memory of one start of the authority. The event loop's thread alone reads and changes it."""

    def __init__(
        self,
        *,
        is_user_mode: bool,
        own_uid: int,
        clock: Clock,
        profiles: tuple[EvidenceProfile, ...],
        shares_uids: bool = False,
        ticks_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.is_user_mode = is_user_mode
        self.shares_uids = shares_uids or is_user_mode
        """Whether two roles of the configuration have one uid, so that isolation is degraded (call-proof.md 1.5)."""
        self.own_uid = own_uid
        self.clock = clock
        self.profiles = profiles
        self.ticks_ns = ticks_ns
        """Clock for latency measurements alone."""
        self.since = format_ms(clock.now_ns())
        self.in_force: PolicyInForce | None = None
        self.tools = ToolReports()
        self.decisions = DecisionCache()
        self.operations = Operations(clock=clock)
        self.rates = IssueRates()
        self.connections = ConnectionCount()
        self.metrics = Metrics()
        self.approvals: ApprovalBook
        self.proofs: ProofStore
        self.audit: Audit
        self.feed: RecorderFeed

    @property
    def isolation(self) -> str | None:
        """What journal records say: "degraded" where roles share one uid, else nothing."""
        return "degraded" if self.shares_uids else None

    @property
    def status(self) -> str:
        """ok, degraded or not_ready (call-proof.md 5.1)."""
        if self.in_force is None or not self.audit.is_available or not self.profiles:
            return "not_ready"
        if self.shares_uids or not self.feed.is_connected:
            return "degraded"
        return "ok"

    def identity(self, visitor: Visitor) -> Identity | None:
        """Return who a visitor is under the policy in force; None while there is no policy to say so."""
        version = None if self.in_force is None else self.in_force.bundle.version
        if visitor.identity is None or visitor.identity_version != version:
            visitor.identity_version = version
            visitor.identity = identify(
                visitor.peer.uid,
                door=visitor.door,
                bundle=None if self.in_force is None else self.in_force.bundle,
                is_user_mode=self.is_user_mode,
                own_uid=self.own_uid,
            )
        return visitor.identity

    def is_revoked(self, record: ProofRecord) -> bool:
        """Say whether the grounds of a proof have changed: policy, the tool's schema, or an approval taken back."""
        return (
            self.in_force is None
            or record.issue.policy_version != self.in_force.bundle.version
            or record.issue.tool_revision != self.tools.revision(record.server, record.issue.name)
            or (record.approval_id is not None and self.approvals.is_withdrawn(record.approval_id))
        )

    def count(self, reason: Any) -> None:
        """Count one outcome."""
        self.metrics.counters[str(reason)] += 1
