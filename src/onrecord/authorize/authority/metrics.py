"""Counters per reason and latency percentiles for `control/metrics`.

Source: call-proof.md 5.1 (CP-079); DESIGN.md, shape of `control status`.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Any, Final

LATENCY_SAMPLES: Final = 4096
"""Durations kept per method. Percentiles over the last few thousand requests say what is true now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """Milliseconds; zero samples give None."""

    count: int
    p50_ms: float | None
    p99_ms: float | None

    def to_json(self) -> dict[str, Any]:
        """Return {"count", "p50", "p99"} in milliseconds."""
        return {"count": self.count, "p50": self.p50_ms, "p99": self.p99_ms}


class Latency:
    """The newest durations of one method, in nanoseconds from the request to its answer."""

    __slots__ = ("_samples_ns", "count")

    def __init__(self) -> None:
        self._samples_ns: deque[int] = deque(maxlen=LATENCY_SAMPLES)
        self.count = 0

    def add(self, duration_ns: int) -> None:
        """Note one duration."""
        self._samples_ns.append(duration_ns)
        self.count += 1

    def summary(self) -> LatencySummary:
        """Return percentiles over the samples that are kept, by the nearest rank."""
        ordered = sorted(self._samples_ns)
        if not ordered:
            return LatencySummary(count=0, p50_ms=None, p99_ms=None)
        return LatencySummary(
            count=self.count, p50_ms=_rank(ordered, 50) / 1e6, p99_ms=_rank(ordered, 99) / 1e6
        )


def _rank(ordered: list[int], percent: int) -> int:
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


class Metrics:
    """What the authority counts. Counter names are reasons, with `issue.` or `verify.` in front."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.issue = Latency()
        self.verify = Latency()

    def to_json(self) -> dict[str, Any]:
        """Return {"counters", "latency"}."""
        return {
            "counters": dict(sorted(self.counters.items())),
            "latency": {
                "issue": self.issue.summary().to_json(),
                "verify": self.verify.summary().to_json(),
            },
        }
