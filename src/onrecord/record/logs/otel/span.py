"""One span in one form, whatever exporter wrote it.

    >>> span = read_span({"context": {"trace_id": "0xA1", "span_id": "0xB2"}, "start_time": "2026-07-01T10:00:00Z"})
    >>> span.trace, span.id, span.start
    ('a1', 'b2', 1782900000000000000)

Source: native-logs.md 4.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.otel.values import plain
from onrecord.record.logs.times import Time, Times, from_ns

AGENT: Final = 1
"""A run of an agent."""

RESPONSE: Final = 2
"""An answer of a model."""

TOOL: Final = 3
"""A run of a tool."""

OTHER: Final = 4
"""Everything else: kept, not interpreted."""

LOG: Final = 5
"""A log record that belongs to a span."""

_TRACE: Final = ("traceId", "trace_id")
_ID: Final = ("spanId", "span_id")
_PARENT: Final = ("parentSpanId", "parent_span_id", "parent_id", "parentId")
_START: Final = ("startTimeUnixNano", "startTime", "start_time", "start_time_ms", "timeUnixNano", "timestamp")
_END: Final = ("endTimeUnixNano", "endTime", "end_time", "end_time_ms")
_EVENT_TIME: Final = ("timeUnixNano", "time", "timestamp", "timestamp_ms", "observedTimeUnixNano")
_CONTEXTS: Final = ("spanContext", "context")
_HOMED: Final = frozenset(["attributes", "events"])
_IDENTIFIERS: Final = frozenset([*_ID, *_PARENT])

_MEMBERS: Final = frozenset(
    [
        "events",
        "name",
        "parentSpanContext",
        "status",
        "status_code",
        "status_message",
        *_TRACE,
        *_IDENTIFIERS,
        *_START,
        *_END,
        *_CONTEXTS,
    ]
)
"""Members of a span beside its attributes."""

_OPERATIONS: Final = {
    "invoke_agent": AGENT,
    "chat": RESPONSE,
    "text_completion": RESPONSE,
    "generate_content": RESPONSE,
    "execute_tool": TOOL,
}
_KINDS: Final = {"AGENT": AGENT, "LLM": RESPONSE, "TOOL": TOOL}
_TELLING: Final = (
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.prompt.0.role",
    "gen_ai.completion.0.role",
)
"""Attributes that only an answer of a model has."""

_ERROR_CODES: Final = frozenset([2, "2", "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR", "error", "Error"])
_OK_CODES: Final = frozenset([1, "1", "OK", "STATUS_CODE_OK", "StatusCode.OK", "ok", "Ok"])


class Span:
    """A span. `rest` are its native members that are neither attributes nor events and have no other home."""

    __slots__ = (
        "attributes",
        "end",
        "events",
        "has_start",
        "id",
        "is_log",
        "message",
        "name",
        "numbers",
        "parent",
        "rest",
        "start",
        "status",
        "trace",
    )

    def __init__(self) -> None:
        self.trace = self.id = self.parent = self.name = ""
        self.start: int | None = None
        self.end: int | None = None
        self.has_start = False
        self.status: str | None = None
        self.message: Any = None
        self.attributes: dict[str, Any] = {}
        self.events: list[Any] = []
        self.rest: dict[str, Any] = {}
        self.numbers: list[str] = []
        self.is_log = False

    def to_row(self) -> list[Any]:
        """Return what `from_row` makes the span of again: times as text, they may have more than 64 bits."""
        row = [getattr(self, name) for name in self.__slots__]
        for place in _TIMES:
            row[place] = None if row[place] is None else str(row[place])
        return row

    @classmethod
    def from_row(cls, row: list[Any]) -> Span:
        """Return the span of a row."""
        span = cls.__new__(cls)
        for name, value in zip(cls.__slots__, row, strict=True):
            setattr(span, name, value)
        for name in ("start", "end"):
            text = getattr(span, name)
            setattr(span, name, None if text is None else int(text))
        return span

    @property
    def start_text(self) -> str | None:
        """The start as a Date."""
        return _text(self.start)

    @property
    def end_text(self) -> str | None:
        """The end as a Date."""
        return _text(self.end)

    @property
    def operation(self) -> str:
        """What the span does: the operation, else the kind, else the name."""
        attributes = self.attributes
        for name in ("gen_ai.operation.name", "openinference.span.kind", "ai.operationId"):
            value = attributes.get(name)
            if isinstance(value, str) and value:
                return value.lower() if name == "openinference.span.kind" else value
        return self.name or ("log" if self.is_log else "unnamed")

    @property
    def role(self) -> int:
        """Whether the span is a run of an agent, an answer, a run of a tool, or something else."""
        if self.is_log:
            return LOG
        attributes = self.attributes
        operation = attributes.get("gen_ai.operation.name")
        if isinstance(operation, str) and operation:
            return _OPERATIONS.get(operation, OTHER)
        kind = attributes.get("openinference.span.kind", self.rest.get("span_kind"))
        if isinstance(kind, str) and kind and kind.upper() != "UNKNOWN":
            return _KINDS.get(kind.upper(), OTHER)
        vercel = attributes.get("ai.operationId", self.name)
        if isinstance(vercel, str) and vercel.startswith("ai."):
            if vercel == "ai.toolCall":
                return TOOL
            return RESPONSE if vercel.endswith((".doGenerate", ".doStream")) else OTHER
        return RESPONSE if any(name in attributes for name in _TELLING) else OTHER

    def everything(self) -> dict[str, Any]:
        """Return the span as the data of an event that keeps it whole."""
        made: dict[str, Any] = {"name": self.name} if self.name else {}
        made |= self.rest
        if self.attributes:
            made["attributes"] = self.attributes
        if self.events:
            made["events"] = self.events
        return made


_TIMES: Final = tuple(Span.__slots__.index(name) for name in ("start", "end"))


def is_span(value: Mapping[str, Any]) -> bool:
    """Say whether an object is a span of some exporter: one that has an id, or attributes and a start."""
    if any(isinstance(value.get(name), str) for name in _ID):
        return True
    for name in _CONTEXTS:
        context = value.get(name)
        if isinstance(context, dict) and any(isinstance(context.get(member), str) for member in _ID):
            return True
    return isinstance(value.get("attributes"), dict | list) and any(name in value for name in _START)


def read_span(value: Mapping[str, Any], faults: list[str] | None = None) -> Span:
    """Return the span that an object is; what is odd about its members is named in `faults`."""
    faults = [] if faults is None else faults
    span = Span()
    span.trace = _identifier(value, _TRACE)
    span.id = _identifier(value, _ID)
    span.parent = _parent(value)
    name = value.get("name")
    span.name = name if isinstance(name, str) else ""
    homed = set(_HOMED)
    if isinstance(name, str):
        homed.add("name")
    start = _first(value, _START)
    if start is not None:
        span.has_start = True
        read = _time(value[start])
        if read is not None:
            span.start = read.ns
            if not read.lost:
                homed.add(start)
    end = _first(value, _END)
    if end is not None:
        read = _time(value[end])
        span.end = None if read is None else read.ns
    span.status, span.message = _status(value)
    attributes = _plain(value.get("attributes"), faults)
    if attributes is None:
        homed.discard("attributes")
    else:
        span.attributes = attributes
    events = value.get("events")
    if isinstance(events, list):
        span.events = [_event(event, faults) for event in events]
    elif events is not None:
        homed.discard("events")
        faults.append("odd-shape")
    span.rest = {
        name: inner
        for name, inner in value.items()
        if name not in homed
        and (name not in _IDENTIFIERS or (inner is not None and not isinstance(inner, str)))
    }
    return span


def read_log(value: Mapping[str, Any], faults: list[str]) -> Span:
    """Return a log record of OTLP as a span that happens at one moment below the span that it belongs to."""
    span = read_span(value, faults)
    span.is_log = True
    span.parent, span.id = span.id, ""
    name = value.get("eventName") or span.attributes.get("event.name")
    span.name = name if isinstance(name, str) else ""
    body = value.get("body")
    found = plain_body(body)
    if found is not None:
        span.rest["body"] = found
    if span.parent:
        span.rest.setdefault("spanId", span.parent)
    return span


def plain_body(body: Any) -> Any:
    """Return the body of a log record as a plain value."""
    found = plain([{"key": "body", "value": body}])
    return None if found is None else found[0]["body"]


def flat_span(value: Mapping[str, Any]) -> Span:
    """Return a flat map of attributes as a span, with what a span's own members beside them say."""
    span = read_span({name: inner for name, inner in value.items() if name in _MEMBERS})
    attributes = {name: inner for name, inner in value.items() if name not in _MEMBERS}
    found = plain(attributes)
    span.attributes = attributes if found is None else found[0]
    return span


def event_time(event: Mapping[str, Any]) -> str | None:
    """Return the time of a span event as a Date."""
    name = _first(event, _EVENT_TIME)
    read = None if name is None else _time(event[name])
    return None if read is None else read.text


def _event(event: Any, faults: list[str]) -> Any:
    if not isinstance(event, dict):
        faults.append("odd-shape")
        return event
    if not isinstance(event.get("attributes"), list):
        return event
    attributes = _plain(event["attributes"], faults)
    return event if attributes is None else {**event, "attributes": attributes}


def _plain(attributes: Any, faults: list[str]) -> dict[str, Any] | None:
    if attributes is None:
        return None
    found = plain(attributes)
    if found is None:
        faults.append("odd-shape")
        return None
    if found[1]:
        faults.append("duplicate-member")
    return found[0]


def _identifier(value: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for holder in (value, *(value.get(name) for name in _CONTEXTS)):
        if isinstance(holder, dict):
            for name in names:
                found = holder.get(name)
                if isinstance(found, str) and found:
                    return _hex(found)
    return ""


def _parent(value: Mapping[str, Any]) -> str:
    for name in _PARENT:
        found = value.get(name)
        if isinstance(found, str) and found:
            return _hex(found)
    context = value.get("parentSpanContext")
    return _identifier(context, _ID) if isinstance(context, dict) else ""


def _hex(text: str) -> str:
    text = text.lower().removeprefix("0x")
    return text if text.strip("0") else ""


def _first(value: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if value.get(name) is not None), None)


_times: Final = Times()


def _time(value: Any) -> Time | None:
    if isinstance(value, list):
        if len(value) != 2 or any(type(part) is not int for part in value):
            return None
        seconds, nanoseconds = value
        if not (0 <= seconds < 10**12 and 0 <= nanoseconds < 10**9):
            return None
        return from_ns(seconds * 10**9 + nanoseconds)
    return _times.read(value, is_text_format=False)


def _text(ns: int | None) -> str | None:
    read = None if ns is None else from_ns(ns)
    return None if read is None else read.text


def _status(value: Mapping[str, Any]) -> tuple[str | None, Any]:
    status = value.get("status")
    if isinstance(status, dict):
        code = status.get("code", status.get("status_code"))
        message = status.get("message", status.get("description"))
    else:
        code = value.get("status_code", status)
        message = value.get("status_message")
    if not isinstance(code, str | int):
        return None, message
    return ("error" if code in _ERROR_CODES else "ok" if code in _OK_CODES else None), message
