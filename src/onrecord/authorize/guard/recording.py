"""What the guard writes down about calls: entries with number and times, on the spool before their effect.

Source: running.md 5.4, 8.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any, Final

import orjson

from onrecord.authorize.guard.mcp_events import ABSENT, Observation
from onrecord.authorize.guard.spool import Spool, wide_number
from onrecord.base.dates import SYSTEM_CLOCK, Clock, format_ms
from onrecord.base.hashes import ContentHash

SPOOL_SYNC_SECONDS: Final = 0.01
"""When fdatasync begins after a write; with its own duration that is the 20 ms of running.md R-05."""

MAX_CONTENT_BYTES: Final = 16 * 1_048_576
"""Largest content in an entry, so that it fits into a line of record/append; larger content becomes its hash."""


class Recording:
    """The entries of one guard process."""

    def __init__(
        self,
        spool: Spool,
        *,
        is_required: bool,
        is_durable: bool,
        written: Callable[[], None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._spool = spool
        self._written = written
        self._clock = clock
        self._syncer = concurrent.futures.ThreadPoolExecutor(1, "spool-sync") if is_durable else None
        self._sync_planned = False
        self.is_required = is_required

    def moment(self) -> tuple[int, int]:
        """Return wall time and boot time, in nanoseconds."""
        return self._clock.now_ns(), self._clock.boottime_ns()

    def admits(self, size_bytes: int) -> bool:
        """Say whether a call of this size may begin. False only when recording is required and there is no room."""
        if not self.is_required or self._spool.has_room(size_bytes):
            return True
        self._spool.refuse()
        return False

    def write(self, *entries: bytes) -> bool:
        """Write entries that `entry` made; False when they are lost (and counted)."""
        if not self._spool.append(*entries):
            return False
        self._written()
        if self._syncer is not None and not self._sync_planned:
            self._sync_planned = True
            asyncio.get_running_loop().call_later(SPOOL_SYNC_SECONDS, self._sync)
        return True

    def entry(self, kind: str, moment: tuple[int, int] | None = None, **members: Any) -> bytes:
        """Return the JSON of an entry without its number; `moment` is now unless one is given."""
        wall_ns, boot_ns = self.moment() if moment is None else moment
        return orjson.dumps(
            {"kind": kind, "time": format_ms(wall_ns), "mono_ns": wide_number(boot_ns), **members}
        )

    def observed(self, connection: str, observations: list[Observation]) -> bool:
        """Write observations of one moment."""
        moment = self.moment()
        entries = []
        for kind, call, content in observations:
            if content is ABSENT:
                entries.append(self.entry(kind, moment, connection=connection, call=call))
            else:
                entries.append(
                    self.entry(kind, moment, connection=connection, call=call, content=bounded(content))
                )
        return self.write(*entries)

    def close(self) -> None:
        """Sync a last time and end the thread."""
        if self._syncer is not None:
            self._syncer.shutdown(wait=True)
            if self._spool.is_dirty:
                self._spool.sync()

    def _sync(self) -> None:
        self._sync_planned = False
        if self._syncer is not None and self._spool.is_dirty:
            self._syncer.submit(self._spool.sync)


def bounded(content: Any, *, limit_bytes: int = MAX_CONTENT_BYTES) -> Any:
    """Return content as a fragment of JSON, or its size and hash if it is larger than the limit (running.md 3)."""
    data = orjson.dumps(content)
    if len(data) > limit_bytes:
        return {"omitted_bytes": len(data), "content_hash": ContentHash.of(data)}
    return orjson.Fragment(data)
