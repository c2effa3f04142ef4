"""What follows when a child of `onrecord up` ends. Pure: no process, no clock.

Source: running.md 1.1.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

Role = Literal["recorder", "authority", "guard"]

START_TIMEOUT_S: Final = 10.0
"""A child that is not ready by then has failed to start (running.md 12)."""

FIRST_DELAY_S: Final = 0.2
LONGEST_DELAY_S: Final = 5.0
"""Back-off between restarts, doubling: short enough for a crash, long enough for a full disk."""

MAX_RESTARTS: Final = 10
WINDOW_S: Final = 60.0
"""More restarts of one child than this in the window: it will not get better by itself."""

JOURNAL_CHECK_FAILED: Final = 1
CONFIGURATION_WRONG: Final = 2


class Next(Enum):
    """What to do after a child has ended."""

    RESTART = "restart"
    LEAVE = "leave it, the others run on"
    STOP_ALL = "stop everything"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do, after how many seconds, and why in words for a person."""

    next: Next
    delay_s: float
    reason: str


class Restarts:
    """The history of one child."""

    def __init__(
        self,
        role: Role,
        *,
        first_delay_s: float = FIRST_DELAY_S,
        longest_delay_s: float = LONGEST_DELAY_S,
        max_restarts: int = MAX_RESTARTS,
        window_s: float = WINDOW_S,
    ) -> None:
        self._role = role
        self._first_delay_s = first_delay_s
        self._longest_delay_s = longest_delay_s
        self._max_restarts = max_restarts
        self._window_s = window_s
        self._delay_s = first_delay_s
        self._times: deque[float] = deque()

    def after_exit(self, status: int, *, now_s: float) -> Verdict:
        """Judge an exit. `status` is negative for a signal; `now_s` is any clock that only goes forward.

        A child that has run for the whole window without a restart begins again with the first delay.

        Source: running.md 1.1.
        """
        if status == CONFIGURATION_WRONG:
            return Verdict(Next.STOP_ALL, 0, "its configuration is wrong (exit status 2)")
        if status == JOURNAL_CHECK_FAILED and self._role != "guard":
            reason = "its journal did not pass the check (exit status 1)"
            return Verdict(Next.LEAVE if self._role == "recorder" else Next.STOP_ALL, 0, reason)
        while self._times and now_s - self._times[0] > self._window_s:
            self._times.popleft()
        if not self._times:
            self._delay_s = self._first_delay_s
        if len(self._times) >= self._max_restarts:
            reason = f"more than {self._max_restarts} restarts in {self._window_s:g} s"
            return Verdict(Next.STOP_ALL, 0, reason)
        delay = self._delay_s
        self._delay_s = min(self._longest_delay_s, delay * 2)
        self._times.append(now_s)
        ended = f"signal {-status}" if status < 0 else f"exit status {status}"
        return Verdict(Next.RESTART, delay, ended)
