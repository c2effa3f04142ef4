"""Limits that keep one agent from hammering the authority: rates, outstanding proofs, connections.

Source: call-proof.md 1.1 (A5), 4.5; running.md 4.1 (names and defaults).
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

RATED_CALLERS: Final = 10_000
"""Token buckets kept. Callers come from the bundle, so a larger number means that nothing is cleaned up."""

MAX_WAIT_MS: Final = 60_000
"""Longest long poll that issue accepts (call-proof.md 5.2)."""


class TokenBucket:
    """Tokens that come back at a steady rate up to a burst; time is CLOCK_BOOTTIME in nanoseconds."""

    __slots__ = ("_filled_ns", "_tokens")

    def __init__(self, *, burst: float, now_ns: int) -> None:
        self._tokens = float(burst)
        self._filled_ns = now_ns

    def take(self, *, rate_per_second: float, burst: float, now_ns: int) -> int:
        """Take one token. Return 0 if there was one, else the milliseconds until there will be one."""
        tokens = self._tokens + (now_ns - self._filled_ns) * rate_per_second / 1e9
        self._tokens = tokens = min(tokens, burst)
        self._filled_ns = now_ns
        if tokens >= 1.0:
            self._tokens = tokens - 1.0
            return 0
        return max(1, math.ceil((1.0 - tokens) * 1000.0 / rate_per_second))


class IssueRates:
    """One token bucket per caller id."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, caller: str, *, rate_per_second: float, burst: float, now_ns: int) -> int:
        """Take one token of `caller`. Return 0, or the milliseconds to wait."""
        bucket = self._buckets.get(caller)
        if bucket is None:
            if len(self._buckets) >= RATED_CALLERS:
                self._buckets.clear()
            bucket = self._buckets[caller] = TokenBucket(burst=burst, now_ns=now_ns)
        return bucket.take(rate_per_second=rate_per_second, burst=burst, now_ns=now_ns)


class ConnectionCount:
    """Open connections of all sockets, in all and per peer uid."""

    def __init__(self) -> None:
        self._per_uid: Counter[int] = Counter()
        self._total = 0

    @property
    def total(self) -> int:
        """Open connections now."""
        return self._total

    def admit(self, uid: int, *, per_uid: int, total: int) -> bool:
        """Count one more connection, unless a limit is reached."""
        if self._total >= total or self._per_uid[uid] >= per_uid:
            return False
        self._total += 1
        self._per_uid[uid] += 1
        return True

    def release(self, uid: int) -> None:
        """Forget one connection that `admit` counted."""
        self._total -= 1
        self._per_uid[uid] -= 1
        if not self._per_uid[uid]:
            del self._per_uid[uid]
