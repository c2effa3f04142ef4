"""OpenTelemetry GenAI and OpenInference: spans in the order in which they began, as sessions.

Source: native-logs.md 4.9.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.otel import store
from onrecord.record.logs.otel.carriers import SPANS, Found, is_decisive, spans_of, values
from onrecord.record.logs.otel.index import SpanIndex
from onrecord.record.logs.otel.lookup import model_of, provider_of, text_of, usage_of
from onrecord.record.logs.otel.messages import read_conversation, read_event
from onrecord.record.logs.otel.span import AGENT, LOG, RESPONSE, TOOL, Span
from onrecord.record.logs.otel.telling import Telling
from onrecord.record.logs.otel.values import PREFIXES
from onrecord.record.logs.reading import sqlite
from onrecord.record.logs.reading.records import Record, head_of
from onrecord.record.logs.sessions import NO_TIME, Entry, NativeSession

_AGENT_MEMBERS: Final = "gen_ai.agent."
_FEW: Final = 20
"""Elements of a list that are looked at to know what it holds."""


@register
class OtelImporter(Importer):
    """Reads spans, whatever exporter wrote them, and log records that stand beside them."""

    format = "otel"
    title = "OpenTelemetry GenAI and OpenInference spans"
    agent_kind = "otel"
    has_text_times = False
    carriers = frozenset(["lines", "document", "values", "sqlite"])
    tables = store.TABLES

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        return is_decisive(value)

    @classmethod
    def recognises_document(cls, value: Any) -> bool:
        if isinstance(value, list):
            return any(isinstance(item, dict) and is_decisive(item) for item in value[:_FEW])
        return isinstance(value, dict) and is_decisive(value)

    @classmethod
    def recognises_members(cls, names: frozenset[str]) -> bool:
        return SPANS in names or any(name.startswith(PREFIXES) for name in names)

    @classmethod
    def records_in(cls, value: Any) -> Iterator[Any]:
        """Yield what each record of one JSON value holds, for the content check."""
        for found in spans_of(Record(1, value, 0, 0, 0, [])):
            yield found.value if found.span is None else found.span.everything()

    def read(self) -> None:
        trace = self.trace
        with SpanIndex() as index:
            if trace.file.head(len(sqlite.MAGIC)) == sqlite.MAGIC:
                self._unplaced = self._read_store(index)
            else:
                self._unplaced = self._read_values(index)
            self._index = index
            self._calls: dict[int, str] = {}
            self._runs: list[tuple[int, Entry, Span, NativeSession, bool]] = []
            self._waiting: dict[tuple[int, str], tuple[Entry, dict[str, Any]]] = {}
            self._asked: dict[NativeSession, str] = {}
            self._seen = trace.run.seen("otel/texts")
            self._messages: dict[int, tuple[int, ...]] = trace.run.memory("otel").setdefault("messages", {})
            self._begun: set[int] = trace.run.memory("otel").setdefault("begun", set())
            for number in index.settle(f"sha256-{trace.file.sha256[:32]}"):
                self._tell(number, index.read(number))
            self._finish()

    # -- the spans in file order

    def _read_values(self, index: SpanIndex) -> list[tuple[int, Any]]:
        """Enter all spans into the index; return the values that are none."""
        trace = self.trace
        others: list[tuple[int, Any]] = []
        for record in values(trace.file, trace.findings):
            if not isinstance(record, Record):
                trace.unreadable(
                    code=record.code,
                    sha256=record.sha256,
                    head=record.head,
                    size=record.size,
                    offset=record.offset,
                )
                continue
            for found in spans_of(record):
                number = trace.new_record({}).number
                if found.span is None:
                    others.append((number, found.value))
                else:
                    self._enter(index, found.span, found, number)
        return others

    def _read_store(self, index: SpanIndex) -> list[tuple[int, Any]]:
        trace = self.trace
        others: list[tuple[int, Any]] = []
        with sqlite.open_copy(trace.path, trace.findings) as connection:
            for row in store.spans(connection, trace.findings):
                number = trace.new_record({}).number
                parts = [trace.new_record({}).number for _ in range(row.parts)]
                if row.span is None:
                    trace.findings.add("orphan-part", record=number, action="kept as an event")
                    others.append((number, row.value))
                    continue
                is_entered = self._enter(index, row.span, Found(row.span, row.value, [], []), number)
                for part in parts:
                    if is_entered:
                        trace.mapped(part, is_conversation=False)
                    else:
                        trace.duplicate(part, "duplicate-entry")
        return others

    def _enter(self, index: SpanIndex, span: Span, found: Found, number: int) -> bool:
        """Take a span unless its id was seen before in the run (R-16, R-17)."""
        findings = self.trace.findings
        for fault in found.faults:
            findings.add(fault, record=number, action="kept as it is")
        span.numbers = found.numbers
        text = orjson.dumps(span.to_row())
        if span.id:
            seen = self.trace.run.seen("otel")
            key, content = hash((span.trace, span.id)), hash(text)
            known = seen.get(key)
            if known is not None:
                self.trace.duplicate(
                    number, "duplicate-entry", of="a span of the same id", report=known == content
                )
                if known != content:
                    findings.add("duplicate-entry-differs", record=number, action="the first one kept")
                return False
            seen[key] = content
        index.add(span, text, number)
        return True

    # -- the spans in the order in which they began

    def _tell(self, number: int, span: Span) -> None:
        index = self._index
        session = self._session(number, span)
        session.agent.saw_model(None, provider_of(span))
        above = index.parent(number)
        is_here = above is None or index.session(above) == index.session(number)
        if not is_here:
            span.rest.setdefault("parentSpanId", span.parent)
        entry = session.entry(
            Record(index.records[number], {}, 0, 0, 0, span.numbers),
            id=span.id,
            parent=span.parent if is_here else None,
            time=span.start_text if span.has_start else NO_TIME,
        )
        role = index.roles[number]
        model = model_of(span)
        if model is not None and "embed" not in span.operation:
            self._asked.setdefault(session, model)
        if role != AGENT and session.index not in self._begun:
            session.begin(entry, {"trace_id": span.trace} if span.trace else {})
        self._begun.add(session.index)
        if span.attributes.get("gen_ai.conversation.id") == session.agent_session_id:
            del span.attributes["gen_ai.conversation.id"]
        telling = Telling(entry, span, self._seen, self._waiting, self._messages)
        if role == AGENT:
            self._run(number, span, telling)
        elif role == RESPONSE:
            session.agent.saw_model(model)
            telling.take_usage()
            telling.usage(telling.conversation(read_conversation(span)))
            telling.failure()
        elif role == TOOL:
            self._calls[number] = telling.tool()
        elif role == LOG:
            is_told = above is not None and index.has_messages(above)
            telling.conversation(read_event(span), outputs_are_new=not is_told)
        if not telling.has_told:
            telling.whole()

    def _session(self, number: int, span: Span) -> NativeSession:
        """Return the session of a span; that of a run below another is a child of the other's."""
        index = self._index
        session = self.trace.session(index.session(number))
        if session.first_object is None:
            session.agent.cli_name, session.agent.cli_version = _service(span)
            self.trace.generation = self.trace.generation or session.agent.cli_version
        above = index.agent_above(number)
        if above is not None and index.roles[number] == AGENT and not session.is_child:
            parent = self.trace.session(index.session(above))
            if parent is not session:
                session.child_of(parent, call_id=self._call_above(number))
                session.format = "autonomous"
        return session

    def _call_above(self, number: int) -> str | None:
        """Return the call that a run of an agent was started by: the nearest tool between it and the run above."""
        index = self._index
        above = index.parent(number)
        while above is not None and index.roles[above] != AGENT:
            if above in self._calls:
                return self._calls[above]
            above = index.parent(above)
        return None

    def _run(self, number: int, span: Span, telling: Telling) -> None:
        """Begin the session of an agent's run; its messages are told only where the answers below do not tell them."""
        session, attributes = telling.session, span.attributes
        agent = session.agent
        about = {name: value for name, value in attributes.items() if name.startswith(_AGENT_MEMBERS)}
        about |= {name: attributes[name] for name in ("agent.name", "service.name") if name in attributes}
        name = text_of(attributes, ("gen_ai.agent.name", "agent.name"))
        agent.name = agent.name or name
        agent.cli_version = text_of(attributes, ("gen_ai.agent.version",)) or agent.cli_version
        identity = text_of(attributes, ("gen_ai.agent.id",))
        if identity is not None:
            agent.more.setdefault("agent_id", identity)
        if session.is_child and session.child_note is None and name is not None:
            session.child_note = self.trace.shown(name)
        told = None if self._index.has_answers_below(number) else read_conversation(span)
        telling.used.update(about)
        if told is not None:
            telling.used |= told.used
            telling.used_events |= told.used_events
        start = {"agent": about} if about else None
        telling.entry.event(event_types.SESSION_START, start, rest=telling.rest())
        if told is not None:
            telling.conversation(told)
        self._runs.append((number, telling.entry, span, session, self._index.has_usage_below(number)))

    # -- the end

    def _finish(self) -> None:
        for entry, made in self._waiting.values():
            entry.result(None, **made)
        ended = [run for run in self._runs if run[2].end is not None]
        for _, entry, span, _, is_told in sorted(ended, key=lambda run: (run[2].end or 0, -run[0])):
            usage, native = usage_of(span)
            if not usage.is_empty:
                entry.token_count("turn", usage, native, counted=not is_told, time=span.end_text)
            data: dict[str, Any] = {"status": span.status, "message": span.message}
            data = {name: value for name, value in data.items() if value not in (None, "")}
            entry.event(event_types.SESSION_END, data or None, time=span.end_text)
        for session, model in self._asked.items():
            if not session.agent.models:
                session.agent.saw_model(model)
        self._tell_others()

    def _tell_others(self) -> None:
        """Write the values that are no spans as events of the source's first session."""
        trace = self.trace
        for number, value in self._unplaced:
            if not isinstance(value, dict):
                self._tell_no_object(number, value)
                continue
            if any(other.recognises(value) for other in importers() if other is not type(self)):
                trace.reported(number, "foreign-record")
                continue
            session = self._first_session()
            kind = value.get("type")
            name = kind if isinstance(kind, str) and kind else next(iter(value), "empty")
            trace.findings.add("unknown-record-type", name=name[:64], action="kept as an event")
            session.entry(Record(number, {}, 0, 0, 0, [])).event(name, value)

    def _tell_no_object(self, number: int, value: Any) -> None:
        """Report a value that stands where an object should, and keep its beginning (D-LOG-27)."""
        text = orjson.dumps(value)
        self.trace.reported(number, "not-an-object", action="kept as unreadable-record")
        data = {
            "record": number,
            "offset": 0,
            "bytes": len(text),
            "sha256": hashlib.sha256(text).hexdigest(),
            "head": head_of(text),
        }
        entry = self._first_session().entry(Record(number, {}, 0, 0, 0, []))
        entry.event(event_types.UNREADABLE_RECORD, data)

    def _first_session(self) -> NativeSession:
        """Return the session of what belongs to none: the first of the source."""
        trace = self.trace
        first = next(iter(trace.sessions.values()), None)
        return first or trace.session(f"sha256-{trace.file.sha256[:32]}")


def _service(span: Span) -> tuple[str | None, str | None]:
    """Return name and version of the program that made a span, as its resource tells them."""
    resource = span.rest.get("resource")
    attributes = resource.get("attributes") if isinstance(resource, dict) else None
    if not isinstance(attributes, dict):
        return None, None
    name = text_of(attributes, ("service.name",))
    return name, None if name is None else text_of(attributes, ("service.version",))
