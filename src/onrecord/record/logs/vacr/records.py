"""VACR records: one JSON object with the session, its entries, and what else is known of the work.

Source: native-logs.md 4.10; record.md section 9; AA appendix C.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.interface import Importer, register
from onrecord.record.logs.reading.records import Record, head_of
from onrecord.record.logs.reading.values import read_values
from onrecord.record.logs.sessions import NO_TIME, Entry, NativeSession
from onrecord.record.logs.trace import Trace
from onrecord.record.logs.vacr.entries import EntryWriter
from onrecord.record.logs.vacr.facts import Facts, time_of, uuid_of

_NO_FILE: Final = ("odd-shape", "attribution-path-outside-root")
"""Findings about what was left out of a File Object, or about one that could not be made."""


class _Place(NamedTuple):
    """An entry with what stands above it."""

    native: Any
    above: int
    """Number of the entry that it is a child of, 0 at the top."""


@register
class VacrImporter(Importer):
    """Reads records of version 3, and what is near enough to one."""

    format = "ietf-vac-v3.0"
    title = "Verifiable Agent Conversation Record, version 3"
    agent_kind = "vacr"
    carriers = frozenset(["lines", "document", "values"])
    has_text_times = False

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        session = value.get("session")
        return (
            isinstance(session, dict) and "session-id" in session and isinstance(session.get("entries"), list)
        )

    @classmethod
    def recognises_members(cls, names: frozenset[str]) -> bool:
        return {"version", "id", "session"} <= names and not names & {"messages", "info"}

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._times: dict[int, Any] = {}
        """Times of entries by their record numbers, for the children that have none."""

    @classmethod
    def records_in(cls, value: Any) -> Iterator[Any]:
        """Yield what each record of one JSON value holds, for the content check."""
        session = value.get("session") if isinstance(value, dict) else None
        if not isinstance(session, dict):
            yield value
            return
        around = {name: inner for name, inner in session.items() if name != "entries"}
        yield {
            **value,
            "session": around,
            "file-attribution": _without_algorithms(value.get("file-attribution")),
        }
        for place in _flattened(session.get("entries"), {}):
            native = place.native
            if isinstance(native, dict) and isinstance(native.get("children"), list):
                native = {name: inner for name, inner in native.items() if name != "children"}
            yield native

    def read(self) -> None:
        trace = self.trace
        with trace.file.open(trace.findings) as stream:
            for found in read_values(stream, trace.findings):
                if not isinstance(found, Record):
                    trace.unreadable(
                        code=found.code,
                        sha256=found.sha256,
                        head=found.head,
                        size=found.size,
                        offset=found.offset,
                    )
                    continue
                record = trace.new_record(found.value, numbers=found.numbers)
                if isinstance(found.value.get("session"), dict):
                    self._document(record)
                else:
                    trace.reported(record, "foreign-record")

    def _document(self, record: Record) -> None:
        """Map one record. Its id is its identity: several may tell of one session."""
        trace, native = self.trace, record.value
        told = native["session"]
        odd: dict[str, Any] = {}
        entries = list(_flattened(told.get("entries"), odd))
        records = [trace.new_record(place.native) for place in entries]
        identity = uuid_of(native.get("id")) or f"sha256-{trace.file.sha256[:32]}"
        if self._is_known(identity, native):
            for each in (record, *records):
                trace.duplicate(each, "duplicate-entry")
            return
        session = trace.session(identity)
        session.agent_session_id = self._session_id(told.get("session-id"), record, odd) or identity
        version = native.get("version")
        if isinstance(version, str):
            trace.generation = version[:64]
        facts = Facts(session, trace.findings, record.number)
        facts.document(native)
        facts.session(told)
        start = told.get("session-start")
        entry = session.entry(record, time=NO_TIME if time_of(start) is None else start)
        session.begin(entry, {"version": version} if version is not None else {})
        self._entries(session, entries, records)
        facts.times(told)
        facts.models(told.get("agent-meta"))
        self._attribution(session, native.get("file-attribution"), record, odd)
        session.rest = {**facts.rest, **odd}

    def _is_known(self, identity: str, native: Mapping[str, Any]) -> bool:
        """Say whether the run had this record before (R-16, R-17)."""
        seen = self.trace.run.seen(self.format)
        content = hash(orjson.dumps(native))
        known = seen.setdefault(hash(identity), content)
        if self.trace.run.known_session(self.format, identity) is None:
            return False
        code = "duplicate-entry" if known == content else "duplicate-entry-differs"
        self.trace.findings.add(code, action="a record of this id was read before; the first one kept")
        return True

    def _session_id(self, value: Any, record: Record, odd: dict[str, Any]) -> str | None:
        if isinstance(value, str) and value:
            return value
        self.trace.findings.add(
            "odd-shape", record=record.number, action="session-id made of the record's id"
        )
        odd["session-id"] = value
        return None

    def _entries(self, session: NativeSession, entries: list[_Place], records: list[Record]) -> None:
        written: list[Entry | None] = []
        known: dict[str, Any] = {}
        skipped: set[int] = set()
        for number, (place, record) in enumerate(zip(entries, records, strict=True), 1):
            native = place.native
            above = written[place.above - 1] if place.above else None
            written.append(None)
            if place.above in skipped:
                skipped.add(number)
                self.trace.duplicate(record, "duplicate-entry")
            elif not isinstance(native, dict):
                self._no_entry(session, native, record, number)
            elif self._is_repeated(native, known, record):
                skipped.add(number)
            else:
                written[-1] = self._entry(session, native, record, number, above)

    def _no_entry(self, session: NativeSession, native: Any, record: Record, number: int) -> None:
        """Report a value that stands where an entry should, and keep its beginning (D-LOG-27)."""
        self.trace.reported(record, "not-an-object", action="kept as unreadable-record")
        text = orjson.dumps(native)
        data = {
            "record": record.number,
            "offset": 0,
            "bytes": len(text),
            "sha256": hashlib.sha256(text).hexdigest(),
            "head": head_of(text),
        }
        place = Record(record.number, {}, 0, 0, 0, record.numbers)
        session.entry(place, id=f"L{number}").event(event_types.UNREADABLE_RECORD, data)

    def _entry(
        self,
        session: NativeSession,
        native: Mapping[str, Any],
        record: Record,
        number: int,
        above: Entry | None,
    ) -> Entry:
        more: dict[str, Any] = {}
        identity, parent = native.get("id"), native.get("parent-id")
        for name, value in (("id", identity), ("parent-id", parent)):
            if value is not None and not isinstance(value, str):
                self.trace.findings.add("odd-shape", record=record.number, action=f"{name} kept in rest")
                more[name] = value
        if above is not None and above.first_id is not None:
            if isinstance(parent, str) and parent != above.first_id:
                more["parent-id"] = parent
            parent = above.first_id
        if "children" in native and not isinstance(native["children"], list):
            self.trace.findings.add("odd-shape", record=record.number, action="children kept in rest")
            more["children"] = native["children"]
        stamp = native.get("timestamp")
        time_from: Literal["message"] | None = None
        if stamp is None and above is not None:
            stamp, time_from = self._times.get(above.record.number), "message"
        if stamp is not None and time_of(stamp) is not None:
            self._times[record.number] = stamp
        elif stamp is not None:
            more["timestamp"] = stamp
        entry = session.entry(
            record,
            id=identity if isinstance(identity, str) and identity else f"L{number}",
            parent=parent,
            time=NO_TIME if stamp is None else stamp,
            time_from=time_from,
        )
        EntryWriter(entry, native, more).write()
        return entry

    def _is_repeated(self, native: Mapping[str, Any], known: dict[str, Any], record: Record) -> bool:
        """Say whether an entry is there again as it is; one that differs stays and gets an id of its own."""
        identity = native.get("id")
        if not isinstance(identity, str) or not identity:
            return False
        first = known.setdefault(identity, native)
        if first is native:
            return False
        if orjson.dumps(first) == orjson.dumps(native):
            self.trace.duplicate(record, "duplicate-entry", of="the entry of the same id", report=True)
            return True
        self.trace.findings.add(
            "duplicate-entry-differs", record=record.number, action="kept under an id of its own"
        )
        return False

    def _attribution(self, session: NativeSession, native: Any, record: Record, odd: dict[str, Any]) -> None:
        if native is None:
            return
        files = native.get("files") if isinstance(native, dict) else None
        if not isinstance(files, list):
            self.trace.findings.add("odd-shape", record=record.number, action="file-attribution kept in rest")
            odd["file-attribution"] = native
            return
        left = {name: value for name, value in native.items() if name != "files"}
        findings = self.trace.findings
        attribution = Attribution(session.working_dir, findings)
        for file in files:
            before = [findings.total(code) for code in _NO_FILE]
            if isinstance(file, dict):
                attribution.imported(file, record=record.number)
            else:
                findings.add("odd-shape", record=record.number, action="no File Object")
            if before != [findings.total(code) for code in _NO_FILE]:
                left.setdefault("files", []).append(file)
        if left:
            odd["file-attribution"] = left
        session.file_attribution = attribution.result()


def _flattened(entries: Any, odd: dict[str, Any]) -> Iterator[_Place]:
    """Yield entries and their children, depth first."""
    if not isinstance(entries, list):
        if entries is not None:
            odd["entries"] = entries
        return
    waiting = [_Place(native, 0) for native in reversed(entries)]
    number = 0
    while waiting:
        place = waiting.pop()
        number += 1
        yield place
        children = place.native.get("children") if isinstance(place.native, dict) else None
        if isinstance(children, list):
            waiting += [_Place(child, number) for child in reversed(children)]


def _without_algorithms(value: Any) -> Any:
    """Return a file attribution as F-04 takes it over, without the algorithms before its hashes."""
    if isinstance(value, list):
        return [_without_algorithms(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    made = {name: _without_algorithms(inner) for name, inner in value.items()}
    digest = made.get("content-hash")
    if isinstance(digest, str):
        made["content-hash"] = digest.rpartition(":")[2]
    return made
