"""Who has how many of a listening guard's connections, and what is refused: one agent must not lock out the others.

Source: running.md 12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from onrecord.authorize.guard.log import GuardLog
from onrecord.base.dates import SYSTEM_CLOCK, Clock

GUARD_CONNECTIONS: Final = 32
"""Clients at one time (running.md 12): each one has a real server of its own."""

GUARD_CONNECTIONS_OF_ONE: Final = 24
"""Clients of one uid, three quarters of all, where callers have several uids: the rest stays free for the others."""

_SECOND_NS: Final = 1_000_000_000


class Places:
    """The places of one guard. Refusals are counted, and logged once a second at most."""

    def __init__(self, *, log: GuardLog, clock: Clock = SYSTEM_CLOCK) -> None:
        self._log = log
        self._clock = clock
        self._taken: Counter[int] = Counter()
        self._refused = 0
        self._told = 0
        self._told_ns: int | None = None

    def has_room(self, uid: int, *, caller_uids: Collection[int]) -> bool:
        """Say whether one more client of `uid` is served; `caller_uids` are all uids of the policy's callers.

        A "no" is counted as a refused connection.
        """
        if self._taken.total() >= GUARD_CONNECTIONS:
            self._refuse(uid, "too many")
            return False
        if len(caller_uids) > 1 and self._taken[uid] >= GUARD_CONNECTIONS_OF_ONE:
            self._refuse(uid, "too many of one uid")
            return False
        return True

    def take(self, uid: int) -> None:
        """Give a place to a client of `uid`."""
        self._taken[uid] += 1

    def give_back(self, uid: int) -> None:
        """Free a place of `uid`."""
        self._taken[uid] -= 1
        if not self._taken[uid]:
            del self._taken[uid]

    def close(self) -> None:
        """Log the number of refusals that were not told yet."""
        if self._refused > self._told:
            self._told = self._refused
            self._log.event("connection.refused", total=self._refused)

    def _refuse(self, uid: int, reason: str) -> None:
        self._refused += 1
        now = self._clock.boottime_ns()
        if self._told_ns is None or now - self._told_ns >= _SECOND_NS:
            self._told, self._told_ns = self._refused, now
            self._log.alert("connection.refused", reason=reason, uid=uid, total=self._refused)
