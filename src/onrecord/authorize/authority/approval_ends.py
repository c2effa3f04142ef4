"""How approvals end without a decision: by time, by another policy, by another tool. Each end is journaled.

Source: call-proof.md 5.7, 8.2, 9, 10.1.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from onrecord.authorize.authority.approvals import Approval, ApprovalState
from onrecord.authorize.authority.reasons import RecordType
from onrecord.base.errors import OnrecordError

if TYPE_CHECKING:
    from collections.abc import Callable

    from onrecord.authorize.authority.state import AuthorityState
    from onrecord.authorize.policy import Bundle

LONGEST_PAUSE_SECONDS: Final = 3600.0
"""Longest pause between two looks for expired approvals: the timer's clock stands still while the machine sleeps."""

RETRY_SECONDS: Final = 1.0
"""Pace of tries to journal an end while the journal cannot be written."""


class ApprovalEnds:
    """Ends approvals whose time or ground is gone, and wakes who waits for them."""

    def __init__(self, state: AuthorityState) -> None:
        self._state = state
        self._unwritten: list[Approval] = []
        self._timer: asyncio.TimerHandle | None = None

    def sweep(self) -> None:
        """End what has expired by now. Called before every look at an approval, and by a timer."""
        for approval in self._state.approvals.expire(now_ns=self._state.clock.boottime_ns()):
            self._unwritten.append(approval)
            approval.wake()
        self._write()

    def void(self, chosen: Callable[[Approval], bool], *, cause: str) -> None:
        """Void open approvals: what people were asked is not what would run now."""
        now_ns = self._state.clock.boottime_ns()
        for approval in self._state.approvals.void(chosen, cause=cause, now_ns=now_ns):
            self._unwritten.append(approval)
            approval.wake()
        self._write()

    def policy_changed(self, bundle: Bundle) -> None:
        """Void everything that was asked under another policy (call-proof.md 8.2)."""
        self.void(lambda one: one.key.policy_version != bundle.version, cause="policy_changed")
        self._state.approvals.rates.keep(person.id for person in bundle.approvers)

    def tools_changed(self, server: str, tools: tuple[str, ...]) -> None:
        """Void what was asked of tools that are other ones now."""
        names = frozenset(tools)
        self.void(lambda one: one.key.server == server and one.tool in names, cause="tool_changed")

    def _write(self) -> None:
        """Journal what has ended. What cannot be stored now is tried again; it has ended all the same."""
        state = self._state
        while self._unwritten:
            approval = self._unwritten[0]
            data = dict(approval.record)
            if approval.cause is not None:
                data["detail"] = approval.cause
            try:
                state.audit.write(RecordType.APPROVAL_EXPIRED, data, can_wait=True)
            except OnrecordError:
                break
            del self._unwritten[0]
            is_void = approval.state is ApprovalState.VOID
            state.count("approval.void" if is_void else "approval.expired")
        self.schedule()

    def schedule(self) -> None:
        """Look again when the next approval is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ns = self._state.approvals.next_due_ns()
        pauses = [RETRY_SECONDS] if self._unwritten else []
        if due_ns is not None:
            wait_ns = due_ns - self._state.clock.boottime_ns()
            pauses.append(min(LONGEST_PAUSE_SECONDS, max(0.0, wait_ns / 1e9) + 0.001))
        if pauses:
            self._timer = asyncio.get_running_loop().call_later(min(pauses), self.sweep)

    def close(self) -> None:
        """Stop looking: the authority ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
