"""Sources of entries: one per process start of a guard, one per epoch of the authority's journal.

Source: running.md 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.sockets import process_start_time
from onrecord.base.wire import RpcError
from onrecord.record.recorder.entries import Entry, Gap, entry_number, read_entry
from onrecord.record.recorder.members import BadEntryError
from onrecord.record.recorder.recorded import Origin

RECORD_GAP: Final = -33201
"""A number is missing: what lies between must come first, or a gap entry must say that it is lost."""

RECORD_UNAVAILABLE: Final = -33202
"""The journal cannot be written now."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An entry that is new: its number, what came, and the entry, or the member that makes it unreadable."""

    n: int
    raw: Any = field(repr=False)
    entry: Entry | None
    bad_member: str | None = None


@dataclass(slots=True, eq=False)
class Source:
    """What the recorder has of one source. `through` is the last number taken, `last_seq` where it stands."""

    origin: Origin
    through: int = 0
    committed: int = 0
    last_seq: int = -1
    is_after_gap: bool = False
    last_mono_ns: int = 0
    last_append_ns: int = 0
    hello_ns: int = 0
    lost_ns: int | None = None
    pid: int = 0
    start_time: int | None = None
    connections: int = 0

    @property
    def is_live(self) -> bool:
        """Say whether a connection of this source is open."""
        return self.connections > 0

    def is_gone(self) -> bool:
        """Say whether the process behind the last connection has exited."""
        return self.start_time is not None and process_start_time(self.pid) != self.start_time

    def take(self, raws: list[Any]) -> list[Arrival]:
        """Return the entries that are new, in order; repeats are left out.

        Raises `RpcError` with reason "record_gap" if a number is missing; nothing of the batch is taken then.
        """
        arrivals: list[Arrival] = []
        through, is_after_gap = self.through, self.is_after_gap
        for n, raw in zip(_numbers(raws, through), raws, strict=True):
            if n <= through:
                continue
            entry: Entry | None = None
            member: str | None = None
            try:
                entry = read_entry(raw)
            except BadEntryError as error:
                member = error.member
            is_gap = isinstance(entry, Gap)
            if n != through + 1 and not is_after_gap and not is_gap:
                raise RpcError(
                    RECORD_GAP, "An entry is missing", {"reason": "record_gap", "through": self.through}
                )
            arrivals.append(Arrival(n, raw, entry, member))
            through, is_after_gap = n, is_gap
        return arrivals

    def took(self, arrival: Arrival, *, seq: int, now_ns: int) -> None:
        """Remember that an arrival was appended to the journal."""
        self.through = arrival.n
        self.last_seq = seq
        self.is_after_gap = isinstance(arrival.entry, Gap)
        self.last_append_ns = now_ns
        if arrival.entry is not None:
            self.last_mono_ns = max(self.last_mono_ns, arrival.entry.mono_ns)

    def safe_through(self, journal_size: int) -> int:
        """Return the last number that is on disk, as far as the journal's size tells."""
        if self.last_seq < journal_size:
            self.committed = self.through
        return self.committed


def _numbers(raws: list[Any], through: int) -> list[int]:
    """Return a number for each entry; one without stands for the one that is missing in its place.

    It never takes the number of an entry that has one: a batch that is sent again is the same batch.
    """
    numbers = [entry_number(raw) for raw in raws]
    following: int | None = None
    highest: list[int | None] = []
    for number in reversed(numbers):
        following = number if number is not None else following - 1 if following is not None else None
        highest.append(following)
    found: list[int] = []
    previous = through
    for number, limit in zip(numbers, reversed(highest), strict=True):
        missing = previous + 1 if limit is None else min(previous + 1, limit)
        previous = missing if number is None else number
        found.append(previous)
    return found


class Sources:
    """All sources that were ever seen. A source belongs to the uid and server that it came with."""

    def __init__(self) -> None:
        self._sources: dict[Origin, Source] = {}

    def __iter__(self) -> Iterator[Source]:
        return iter(self._sources.values())

    def get(self, origin: Origin) -> Source | None:
        """Return a source that has appended something, or is connected."""
        return self._sources.get(origin)

    def of(self, origin: Origin) -> Source:
        """Return a source, new if it was never seen."""
        source = self._sources.get(origin)
        if source is None:
            source = self._sources[origin] = Source(origin)
        return source

    def connected(self, source: Source, *, pid: int, now_ns: int) -> None:
        """Count a connection of a source in."""
        source.connections += 1
        source.hello_ns = now_ns
        source.lost_ns = None
        source.pid, source.start_time = pid, process_start_time(pid)

    def disconnected(self, source: Source, *, now_ns: int) -> None:
        """Count a connection out; a source that never appended anything is forgotten with its last one."""
        source.connections -= 1
        if source.connections <= 0:
            source.connections = 0
            source.lost_ns = now_ns
            if source.through == 0:
                self._sources.pop(source.origin, None)

    def authority_has_passed(self, moment_ns: int, *, now_ns: int, grace_ns: int, patience_ns: int) -> bool:
        """Say whether all that the authority decided before a moment is here, as far as one can know.

        It is when an entry from later came, or when a connected authority has been silent for the grace time (it
        sends at once). An authority that is away is waited for, but not for ever.
        """
        is_connected = False
        for source in self._sources.values():
            if source.origin.server is not None:
                continue
            if source.last_mono_ns >= moment_ns:
                return True
            if source.is_live:
                is_connected = True
                if now_ns - max(source.hello_ns, source.last_append_ns) >= grace_ns:
                    return True
        return not is_connected and now_ns - moment_ns >= patience_ns
