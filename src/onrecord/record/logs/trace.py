"""The import of one source: its records, the fate of each, and the sessions that it tells.

Every record has exactly one fate: mapped to objects, a duplicate of something named, or reported (native-logs.md A-02).
The sums are compared at the end of each source, always (A-03).
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onrecord.base.errors import OnrecordError
from onrecord.record.credentials import replace as replace_credentials
from onrecord.record.logs import event_types
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.records import Record, Unreadable
from onrecord.record.logs.reading.values import read_values
from onrecord.record.logs.sessions import NO_TIME, NativeSession
from onrecord.record.logs.times import Time, Times, from_file_name, from_ns

if TYPE_CHECKING:
    from onrecord.record.logs.entries import Entry
    from onrecord.record.logs.interface import Importer
    from onrecord.record.logs.reading.opening import NativeFile
    from onrecord.record.logs.runs import Run

_EPOCH: Final = Time("1970-01-01T00:00:00Z", 0, None, lost=True)
"""Time of what has none where the file's own time is none that a Date can say."""

_OPEN: Final = 0
_SYSTEM: Final = 1
_CONVERSATION: Final = 2
_REPORTED: Final = 3
_DUPLICATE: Final = 4
"""Fates; the reasons of duplicates are numbered from here on."""

DUPLICATES: Final = (
    "duplicate-entry",
    "older-version",
    "twin",
    "replayed-entry",
    "fork-replay",
    "repeated-input",
    "usage-repeated",
    "heartbeat",
    "file-twin",
)
"""Reasons for which a record is a duplicate (native-logs.md A-02)."""

_REASONS: Final = {reason: _DUPLICATE + number for number, reason in enumerate(DUPLICATES)}


class Trace:
    """One source on its way into vCons."""

    def __init__(
        self, run: Run, importer: type[Importer], file: NativeFile, *, name: str, file_number: int
    ) -> None:
        self.run = run
        self.importer = importer
        self.file = file
        self.path: Path = file.path
        self.findings = FileFindings(name)
        self.file_number = file_number
        """Index of the source in the report's `files`."""
        self.generation: str | None = None
        """Version of the program that wrote the log, for the report."""
        self.sessions: dict[str, NativeSession] = {}
        """The sessions that this source tells, by native id, in order of appearance."""
        self.untimed: list[tuple[int, NativeSession]] = []
        """Objects without a time of their own or before them; they get the next one."""
        self._times = Times()
        self._fates = array("B", [_REPORTED])
        self._last: tuple[int, str] | None = None
        self._derived = 0
        self._unplaced: list[Unreadable] = []
        self.unanchored: Entry | None = None
        """Entry of which there are attachments only, so far: nothing in it can be a parent."""
        self._is_redacting = run.options.redact
        self._replaced = 0

    # -- records

    def records(self) -> Iterator[Record]:
        """Yield the JSON objects of a file of lines. What cannot be read is put into the vCon and accounted here."""
        with self.file.open(self.findings) as stream:
            yield from self.accepted(read_lines(stream, self.findings))

    def values(self) -> Iterator[Record]:
        """Yield the JSON objects of a file in which they are spread over lines or glued together, like `records`."""
        with self.file.open(self.findings) as stream:
            yield from self.accepted(read_values(stream, self.findings))

    def accepted(self, records: Iterator[Record | Unreadable]) -> Iterator[Record]:
        """Enter records into the account and yield those that could be read."""
        fates = self._fates
        for record in records:
            while len(fates) <= record.number:
                fates.append(_OPEN)
            if type(record) is Record:
                yield record
            else:
                self._unreadable(record)  # type: ignore[arg-type]

    def new_record(self, value: Any, *, numbers: list[str] | None = None) -> Record:
        """Enter a record that is no line of its own (a message of a document, a row of a table) into the account."""
        number = len(self._fates)
        self._fates.append(_OPEN)
        return Record(number, value, 0, 0, 0, numbers or [])

    def unreadable(
        self, *, code: str, sha256: str, head: str, size: int, offset: int = 0, place: bool = True
    ) -> int:
        """Enter a piece that is no line of its own and cannot be read; return its record number.

        Its finding is the caller's. With `place` off so is its `unreadable-record` event.
        """
        number = len(self._fates)
        self._fates.append(_REPORTED)
        if place:
            self._unreadable(Unreadable(number, 0, offset, size, code, sha256, head, None))
        return number

    def _unreadable(self, record: Unreadable) -> None:
        self._fates[record.number] = _REPORTED
        session = next(reversed(self.sessions.values()), None)
        if session is None:
            self._unplaced.append(record)
        else:
            self._place(record, session)

    def _place(self, record: Unreadable, session: NativeSession) -> None:
        place = Record(record.number, {}, record.line, record.offset, record.size, [])
        data = {
            "record": record.number,
            "offset": record.offset,
            "bytes": record.size,
            "sha256": record.sha256,
            "head": record.head,
        }
        session.entry(place).event(event_types.UNREADABLE_RECORD, data)

    def anchor(self) -> None:
        """Give an entry of attachments alone an event, so that others can hang below it."""
        entry, self.unanchored = self.unanchored, None
        if entry is not None and entry.first_id is None:
            entry.event(event_types.META, {"attachments": True})

    # -- fates

    def mapped(self, record: int, *, is_conversation: bool) -> None:
        """Note that a record has an object. What was reported stays so, although an event tells of it."""
        fate = self._fates[record]
        if fate == _REPORTED:
            return
        if is_conversation:
            self._fates[record] = _CONVERSATION
        elif fate != _CONVERSATION:
            self._fates[record] = _SYSTEM

    def duplicate(self, record: Record | int, reason: str, *, of: str = "", report: bool = False) -> None:
        """Account a record as a duplicate (one of `DUPLICATES`), unless it has objects; `of` names what it repeats.

        With `report` the reason is reported at this place as a finding of that code.
        """
        number = record if isinstance(record, int) else record.number
        if self._fates[number] == _OPEN:
            self._fates[number] = _REASONS[reason]
            if report:
                self.findings.add(
                    reason, record=number, action=f"skipped as duplicate of {of}" if of else "skipped"
                )

    def reported(self, record: Record | int, code: str, *, action: str = "reported, not interpreted") -> None:
        """Account a record as reported, with its finding."""
        number = record if isinstance(record, int) else record.number
        self._fates[number] = _REPORTED
        self.findings.add(code, record=number, action=action)

    def is_open(self, record: Record | int) -> bool:
        """Say whether a record has no fate yet."""
        return self._fates[record if isinstance(record, int) else record.number] == _OPEN

    def is_mapped(self, record: int) -> bool:
        """Say whether a record has an object; one that was reported has not."""
        return record < len(self._fates) and self._fates[record] in (_SYSTEM, _CONVERSATION)

    def accounting(self) -> dict[str, Any]:
        """Return the account of the report.

        Raises `OnrecordError` with code "accounting-broken" when a record has no fate.
        """
        counts = [0] * 256
        for fate in memoryview(self._fates)[1:]:
            counts[fate] += 1
        records = len(self._fates) - 1
        of_duplicates = {reason: counts[number] for reason, number in _REASONS.items() if counts[number]}
        mapped, duplicates = counts[_SYSTEM] + counts[_CONVERSATION], sum(of_duplicates.values())
        if records != mapped + duplicates + counts[_REPORTED]:
            raise OnrecordError(
                f"{counts[_OPEN]} of {records} records have no fate, the first is record {self._fates.index(_OPEN)}",
                code="accounting-broken",
                hint="please report this, with the format and the version of the program that wrote the log",
            )
        return {
            "records": records,
            "mapped": mapped,
            "of_mapped": {"conversation": counts[_CONVERSATION], "system_event": counts[_SYSTEM]},
            "duplicates": duplicates,
            "of_duplicates": of_duplicates,
            "reported": counts[_REPORTED],
        }

    # -- sessions

    def session(self, agent_session_id: str) -> NativeSession:
        """Return the session of this native id; one that is told for the first time begins here."""
        session = self.sessions.get(agent_session_id)
        if session is None:
            if not agent_session_id.isascii():  # it may come from a file name that is not UTF-8
                agent_session_id = agent_session_id.encode("utf-8", "replace").decode("utf-8")
            session = self.run.session(self, agent_session_id)
            self.sessions[agent_session_id] = session
            for record in self._unplaced:
                self._place(record, session)
            self._unplaced.clear()
        return session

    # -- times

    def entry_time(
        self, session: NativeSession, record: Record, native: Any, time_from: str | None
    ) -> tuple[str | None, str | None, bool]:
        """Return the time of an entry, how it was derived, and whether its native form says more (D-LOG-04, R-14)."""
        is_lost = False
        if native is not NO_TIME:
            read = self._times.read(native, is_text_format=self.importer.has_text_times)
            if read is not None:
                if read.note is not None:
                    self.findings.add(read.note, record=record.number, action="read as UTC")
                last = self._last
                if last is None or read.ns >= last[0]:
                    self._saw(session, read.ns, read.text)
                elif time_from is None:
                    self.findings.count("out-of-order", record=record.number, action="file order kept")
                    self._saw(session, read.ns, read.text)
                else:  # a borrowed time says nothing about the order of the file
                    session.saw_time(read.ns, read.text)
                return read.text, time_from, read.lost
            self.findings.add("time-missing", record=record.number, action="derived")
            is_lost = native is not None and native != ""
        self.findings.count("time-derived", record=record.number)
        if self._last is not None:
            if session.borrowed is None:
                session.borrowed = self._last
            return self._last[1], "previous", is_lost
        return None, None, is_lost

    def block_time(
        self, session: NativeSession, record: Record, native: Any, otherwise: tuple[str | None, str | None]
    ) -> tuple[str | None, str | None, bool]:
        """Return the time of a block that has its own, or that of its entry, and whether its native form says more."""
        read = self._times.read(native, is_text_format=self.importer.has_text_times)
        if read is None:
            is_lost = native is not None and native != ""
            if is_lost:
                self.findings.add("time-missing", record=record.number, action="that of the record written")
            return *otherwise, is_lost
        if read.note is not None:
            self.findings.add(read.note, record=record.number, action="read as UTC")
        session.saw_time(read.ns, read.text)
        return read.text, None, read.lost

    def _saw(self, session: NativeSession, ns: int, text: str) -> None:
        self._last = (ns, text)
        session.saw_time(ns, text)
        if self.untimed:
            self._fill(text, "next")

    def _fill(self, text: str, derived: str) -> None:
        spool = self.run.spool
        for number, _ in self.untimed:
            name = "time" if spool.kinds[number] == 1 else "start"
            spool.late(number, {name: text}, {"time": derived})
        self.untimed.clear()

    # -- the end

    def finish(self) -> None:
        """Give what has no time yet one, place what could not be placed, and close the source's findings."""
        self.anchor()
        if self._replaced:
            self.findings.count("credential-replaced", self._replaced)
        if self._unplaced:
            session = self.session(self.path.name or "log")
            for record in self._unplaced:
                self._place(record, session)
            self._unplaced.clear()
        self._fill_from_sessions()
        if self.untimed:
            named = from_file_name(self.path.name)
            fallback = named or from_ns(os.stat(self.path).st_mtime_ns) or _EPOCH
            for session in {id(session): session for _, session in self.untimed}.values():
                session.saw_time(fallback.ns, fallback.text)
            self._fill(fallback.text, "mtime" if named is None else "name")

    def _fill_from_sessions(self) -> None:
        """Give objects the start of their session where another source told it (D-LOG-04)."""
        if not self.untimed or from_file_name(self.path.name) is not None:
            return
        waiting = self.untimed
        left = [item for item in waiting if item[1].first is None]
        for item in waiting:
            if item[1].first is not None:
                self.untimed = [item]
                self._fill(item[1].first[1], "session")
        self.untimed = left

    def shown(self, value: Any) -> Any:
        """Return a value as it is written: with `--redact` its credentials are replaced visibly (D-LOG-13)."""
        if not self._is_redacting:
            return value
        clean, count = replace_credentials(value)
        self._replaced += count
        return clean
