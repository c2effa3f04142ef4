"""What single records show: their form, order and time, sessions, heartbeats, and the bodies beside them."""

from __future__ import annotations

import hashlib
import sqlite3
from bisect import bisect_right
from typing import Final

from onrecord.base.dates import epoch_ns, parse_date
from onrecord.base.errors import LogError, MalformedError
from onrecord.record.ledger import records, schema
from onrecord.record.ledger.audit import Audit
from onrecord.record.ledger.records import BodyReference, Record

CLOCK_STEP_NS: Final = 1_000_000_000
"""Difference between wall clock and boot clock, from one record to the next, that is reported as a step."""

HEARTBEAT_GAP_NS: Final = 150_000_000_000
"""Heartbeats come every 60 s; after two missed ones there is a gap."""


class RecordAudit:
    """Looks at the records of one file in order."""

    def __init__(self, audit: Audit, file: str, *, origin: str) -> None:
        self._audit = audit
        self._file = file
        self._origin = origin
        self._last: Record | None = None
        self._last_wall_ns = 0
        self._last_heartbeat: Record | None = None
        self._open_sessions: dict[str, int] = {}

    def look(self, seq: int, data: bytes) -> Record | None:
        """Look at the next record; None if it cannot be read."""
        try:
            record = Record.read(data)
            wall_ns = epoch_ns(parse_date(record.time))
        except (LogError, MalformedError) as error:
            self._failed("records", "record-malformed", str(error), seq)
            return None
        if record.seq != seq:
            self._failed("order", "record-sequence", f"record {seq} says that it is record {record.seq}", seq)
        elif f"{record.recorder}/journal/{record.epoch}" != self._origin:
            self._failed("order", "record-sequence", f"record {seq} is of another journal", seq)
        else:
            self._look_at_clocks(record, wall_ns)
        self._look_at_type(record)
        if "gap" in record.data and record.type != "gap":
            self._note("write-gap", "before this record the journal could not be written for a while", seq)
        self._last, self._last_wall_ns = record, wall_ns
        return record

    def finish(self) -> None:
        """Report what is still open after the last record."""
        for seq in self._open_sessions.values():
            self._note("session-open", "this session has no close", seq)

    def _look_at_clocks(self, record: Record, wall_ns: int) -> None:
        last = self._last
        if last is not None and last.boot == record.boot:
            if record.mono_ns < last.mono_ns:
                self._failed("order", "record-order", "the boot clock runs backwards", record.seq)
                return
            drift_ns = (wall_ns - self._last_wall_ns) - (record.mono_ns - last.mono_ns)
            if abs(drift_ns) > CLOCK_STEP_NS:
                self._note("clock-step", f"the wall clock was set by {drift_ns / 1e9:+.1f} s", record.seq)
        self._audit.verified("order")

    def _look_at_type(self, record: Record) -> None:
        if record.type == records.JOURNAL_OPEN:
            if self._last is not None and self._last.type != records.JOURNAL_CLOSE:
                self._note(
                    "journal-not-closed", "the writer had stopped without closing the journal", record.seq
                )
            self._last_heartbeat = None
        elif record.type == records.HEARTBEAT:
            self._look_at_heartbeat(record)
        elif record.type == records.SESSION_OPEN and record.session is not None:
            self._open_sessions.setdefault(record.session, record.seq)
        elif record.type == records.SESSION_CLOSE and record.session is not None:
            if self._open_sessions.pop(record.session, None) is None:
                self._note("session-close", "this session is not open", record.seq)
            else:
                self._audit.verified("sessions")

    def _look_at_heartbeat(self, record: Record) -> None:
        self._audit.has_heartbeats = True
        last = self._last_heartbeat
        if last is not None and last.boot == record.boot:
            silence_ns = record.mono_ns - last.mono_ns
            if silence_ns > HEARTBEAT_GAP_NS:
                self._note("heartbeat-gap", f"no heartbeat for {silence_ns // 1_000_000_000} s", record.seq)
        self._last_heartbeat = record

    def _failed(self, axis: str, code: str, message: str, seq: int) -> None:
        self._audit.failed(axis, code, message, pointer=f"/record/{seq}", file=self._file)

    def _note(self, code: str, message: str, seq: int) -> None:
        self._audit.report(code, message, pointer=f"/record/{seq}", file=self._file)


class BodyAudit:
    """Compares the body table with what the records say of it, in step with the records."""

    def __init__(self, audit: Audit, file: str, connection: sqlite3.Connection) -> None:
        self._audit = audit
        self._file = file
        rows = connection.execute("SELECT seq, part, salt, bytes FROM body ORDER BY seq, part")
        self._rows = schema.typed(rows, int, str, bytes | None, bytes | None)
        self._next = next(self._rows, None)
        self._erased: list[int] = []
        self._announced: list[tuple[int, int]] = []

    def look(self, record: Record) -> None:
        """Check the bodies of the next record."""
        if record.type == records.ERASURE:
            self._announced += _ranges(record)
        named = {reference.part: reference for reference in record.bodies}
        while self._next is not None and self._next[0] <= record.seq:
            seq, part, salt, data = self._next
            self._next = next(self._rows, None)
            reference = named.pop(part, None) if seq == record.seq else None
            if reference is None:
                self._failed("body-unnamed", "there is a body that no record names", seq)
            elif salt is None and data is None:
                self._erased.append(seq)
            elif salt is None or data is None or not _fits(reference, salt, data):
                self._failed("body-mismatch", "a body is not the one that the record names", seq)
            else:
                self._audit.verified("bodies")
        for _ in named:
            self._failed("body-missing", "the record names a body that has no row", record.seq)

    def finish(self) -> None:
        """Make sure that each erased body stands in an erasure record, and count."""
        if self._next is not None:
            self._failed("body-unnamed", "there is a body that no record names", self._next[0])
        ranges = sorted(self._announced)
        starts = [first for first, _ in ranges]
        reach = _running_maximum([last for _, last in ranges])
        count = 0
        for seq in self._erased:
            at = bisect_right(starts, seq) - 1
            if at >= 0 and reach[at] >= seq:
                count += 1
            else:
                self._failed("erasure-unrecorded", "a body was erased, and no record says so", seq)
        if count:
            self._audit.tallies["bodies"].remarks.append(f"{count} erased")

    def _failed(self, code: str, message: str, seq: int) -> None:
        self._audit.failed("bodies", code, message, pointer=f"/record/{seq}", file=self._file)


def _fits(reference: BodyReference, salt: bytes, data: bytes) -> bool:
    return len(data) == reference.length and hashlib.sha256(salt + data).hexdigest() == reference.sha256


def _ranges(record: Record) -> list[tuple[int, int]]:
    """Return the closed ranges that an erasure record names; those not of our form name nothing."""
    seqs = record.data.get("seqs")
    if not isinstance(seqs, list):
        return []
    pairs = (pair for pair in seqs if isinstance(pair, list) and len(pair) == 2)
    return [(first, last) for first, last in pairs if isinstance(first, int) and isinstance(last, int)]


def _running_maximum(numbers: list[int]) -> list[int]:
    reach: list[int] = []
    for number in numbers:
        reach.append(max(number, reach[-1]) if reach else number)
    return reach
