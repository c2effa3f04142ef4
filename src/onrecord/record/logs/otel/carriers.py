"""How spans come: OTLP exports, objects of SDK exporters, flat attribute maps; in lines, in lists, or in one value.

Source: native-logs.md 4.9 and section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.otel.span import Span, flat_span, is_span, read_log, read_span
from onrecord.record.logs.otel.values import is_about_agents, plain
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.reading.parsing import parse
from onrecord.record.logs.reading.records import NotJson, Record, Unreadable
from onrecord.record.logs.reading.values import read_values

HEAD_BYTES: Final = 1 << 16
"""Bytes that decide whether a file is one of lines."""

SPANS: Final = "resourceSpans"
"""Member of an OTLP export of spans."""

LOGS: Final = "resourceLogs"
"""Member of an OTLP export of log records."""


class Found(NamedTuple):
    """A span, or a value that is none, with what is odd about it and the numbers that were changed."""

    span: Span | None
    value: Any
    faults: list[str]
    numbers: list[str]


def is_decisive(value: Mapping[str, Any]) -> bool:
    """Say whether an object can only be OpenTelemetry's or OpenInference's (native-logs.md section 3)."""
    if isinstance(value.get(SPANS), list) or is_about_agents(value):
        return True
    if not is_span(value):
        return False
    found = plain(value.get("attributes"))
    return found is not None and is_about_agents(found[0])


def values(file: NativeFile, findings: FileFindings) -> Iterator[Record | Unreadable]:
    """Yield the JSON values of a file, of whatever kind: lines, or values that go over several lines."""
    stream: BinaryIO
    with file.open(findings) as stream:
        if _is_lines(file.head(HEAD_BYTES)):
            yield from read_lines(stream, findings, objects=False)
        else:
            yield from read_values(stream, findings, objects=False)


def spans_of(record: Record) -> Iterator[Found]:
    """Yield what stands in one JSON value. An export without any span is told as the value that it is."""
    numbers = record.numbers
    if isinstance(record.value, list):
        for item in record.value:
            yield from _of_value(item, numbers)
            numbers = []
        if not record.value:
            yield Found(None, record.value, [], numbers)
    else:
        yield from _of_value(record.value, numbers)


def _of_value(value: Any, numbers: list[str]) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield Found(None, value, [], numbers)
    elif SPANS in value or LOGS in value:
        yield from _of_export(value, numbers)
    elif "attributes" not in value and is_about_agents(value):
        yield Found(flat_span(value), value, [], numbers)
    elif is_span(value):
        faults: list[str] = []
        yield Found(read_span(value, faults), value, faults, numbers)
    elif is_about_agents(value) or plain(value.get("attributes")) is not None:
        span = flat_span(value) if is_about_agents(value) else read_span(value)
        yield Found(span, value, [], numbers)
    else:
        yield Found(None, value, [], numbers)


def _of_export(value: dict[str, Any], numbers: list[str]) -> Iterator[Found]:
    """Yield the spans and log records of an OTLP export, each with its resource and its scope."""
    told = False
    for member, scopes, items, read in (
        (SPANS, "scopeSpans", "spans", read_span),
        (LOGS, "scopeLogs", "logRecords", read_log),
    ):
        for around, item in _items(value.get(member), scopes, items):
            faults: list[str] = []
            if isinstance(item, dict):
                span = read(item, faults)
                for name, told_once in around.items():
                    span.rest.setdefault(name, told_once)
                yield Found(span, item, faults, numbers)
            else:
                yield Found(None, item, faults, numbers)
            numbers = []
            told = True
    if not told or any(name not in (SPANS, LOGS) for name in value):
        left = (
            value if not told else {name: inner for name, inner in value.items() if name not in (SPANS, LOGS)}
        )
        yield Found(None, left, [], numbers)


def _items(groups: Any, scopes: str, items: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Walk an export: what is told once for many items, and each item.

    What stands where a list of objects should stand is given as an item of its own.
    """
    for group in groups if isinstance(groups, list) else [] if groups is None else [groups]:
        inner = (
            group.get(scopes, group.get("instrumentationLibrarySpans")) if isinstance(group, dict) else None
        )
        if not isinstance(inner, list):
            if not isinstance(group, dict) or inner is not None:
                yield {}, [group]
            continue
        above = _told_once(group, "resource", "resourceSchemaUrl")
        for scoped in inner:
            found = scoped.get(items) if isinstance(scoped, dict) else None
            if not isinstance(found, list):
                if not isinstance(scoped, dict) or found is not None:
                    yield above, [scoped]
                continue
            around = above | _told_once(scoped, "scope", "scopeSchemaUrl")
            for item in found:
                yield around, item if isinstance(item, dict) else [item]


def _told_once(group: Mapping[str, Any], member: str, schema: str) -> dict[str, Any]:
    """Return the resource or the scope of a group, and the address of its schema."""
    told = {member: _around(group.get(member)), schema: group.get("schemaUrl")}
    return {name: value for name, value in told.items() if value not in (None, "")}


def _around(value: Any) -> Any:
    """Return a resource or scope with plain attributes."""
    if not isinstance(value, dict) or not isinstance(value.get("attributes"), list):
        return value
    found = plain(value["attributes"])
    return value if found is None else {**value, "attributes": found[0]}


def _is_lines(head: bytes) -> bool:
    """Say whether the first line is a value of its own, or at least does not only begin one.

    A first line that breaks off is followed by one that is a span, and does not end where a value may be continued.
    """
    head = head.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").lstrip(b" \t\r\n")
    lines = head.split(b"\n", 2)
    if len(lines) == 1:
        return True
    try:
        parse(lines[0].rstrip(b"\r"))
    except NotJson as fault:
        return not fault.ends_inside or (
            not lines[0].rstrip().endswith(_OPEN) and len(lines) > 2 and _is_record(lines[1])
        )
    return True


_OPEN: Final = (b"[", b"{", b",", b":")


def _is_record(line: bytes) -> bool:
    try:
        value = parse(line.rstrip(b"\r")).value
    except NotJson:
        return False
    return isinstance(value, dict) and is_decisive(value)
