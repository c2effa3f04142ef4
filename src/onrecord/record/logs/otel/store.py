"""Spans in SQLite: a table of spans, one of their attributes and one of their events.

Columns win over attributes of the same meaning. The tables are read side by side in the order of the span ids, so that
no more than one span is held.

Source: native-logs.md 4.9, R-12.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final, NamedTuple

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.otel.lookup import USAGE
from onrecord.record.logs.otel.span import Span, read_span
from onrecord.record.logs.otel.values import MAX_SAFE, embedded, integer
from onrecord.record.logs.reading import sqlite

TABLES: Final = frozenset(["spans", "span_attributes"])
"""Tables that such a store has at least."""

EVENTS: Final = "span_events"
"""Table of the events of spans."""

_COLUMNS: Final = {
    "operation_name": "gen_ai.operation.name",
    "provider_name": "gen_ai.provider.name",
    "agent_name": "gen_ai.agent.name",
    "conversation_id": "gen_ai.conversation.id",
    "chat_session_id": "session.id",
    "request_model": "gen_ai.request.model",
    "response_model": "gen_ai.response.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "tool_name": "gen_ai.tool.name",
    "tool_call_id": "gen_ai.tool.call.id",
    "tool_type": "gen_ai.tool.type",
}
"""Columns that mean what an attribute means."""


class Row(NamedTuple):
    """A span with the number of its rows in the other tables; or one such row whose span is not there, as `value`."""

    span: Span | None
    value: dict[str, Any]
    parts: int


def spans(connection: sqlite3.Connection, findings: FileFindings) -> Iterator[Row]:
    """Yield the spans of a store in the order of their ids, and the rows that belong to none."""
    names = sqlite.table_names(connection)
    attributes = _Side(connection, "span_attributes", names, findings)
    events = _Side(connection, EVENTS, names, findings)
    for native in _rows(connection, "spans", names, findings):
        key = _key(native.get("span_id"))
        for side in (attributes, events):
            yield from side.orphans(key)
        own = attributes.of(key)
        told = events.of(key)
        yield Row(_span(native, own, told), native, len(own) + len(told))
    for side in (attributes, events):
        yield from side.orphans(None)


def _span(native: dict[str, Any], attributes: list[dict[str, Any]], events: list[dict[str, Any]]) -> Span:
    made: dict[str, Any] = {}
    overruled: dict[str, Any] = {}
    for row in attributes:
        name = row.get("key")
        value = row.get("value")
        if isinstance(name, str):
            made[name] = integer(value) if name.startswith(USAGE) else value
        else:
            overruled[str(len(overruled))] = row
    for column, name in _COLUMNS.items():
        value = native.get(column)
        if value is None:
            continue
        if made.get(name, value) != value:
            overruled[name] = made[name]
        made[name] = value
    rest = {name: value for name, value in native.items() if value is not None and name not in _COLUMNS}
    span = read_span({**rest, "attributes": made, "events": [_event(row) for row in events]})
    if overruled:
        span.rest["span_attributes"] = overruled
    return span


def _event(row: dict[str, Any]) -> dict[str, Any]:
    found = embedded(row.get("attributes"))
    left = {name: value for name, value in row.items() if name != "span_id"}
    return {**left, "attributes": found[0]} if found is not None and isinstance(found[0], dict) else left


class _Side:
    """The rows of a table beside that of the spans."""

    def __init__(
        self, connection: sqlite3.Connection, table: str, names: frozenset[str], findings: FileFindings
    ) -> None:
        self._rows = _rows(connection, table, names, findings)
        self._table = table
        self._next = next(self._rows, None)

    def of(self, key: tuple[int, Any]) -> list[dict[str, Any]]:
        """Return the rows of a span, and go behind them."""
        found: list[dict[str, Any]] = []
        while self._next is not None and _key(self._next.get("span_id")) == key:
            found.append(self._next)
            self._next = next(self._rows, None)
        return found

    def orphans(self, key: tuple[int, Any] | None) -> Iterator[Row]:
        """Yield the rows before those of a span, or all that are left."""
        while self._next is not None and (key is None or _key(self._next.get("span_id")) < key):
            yield Row(None, {self._table: self._next}, 0)
            self._next = next(self._rows, None)


def _rows(
    connection: sqlite3.Connection, table: str, names: frozenset[str], findings: FileFindings
) -> Iterator[dict[str, Any]]:
    if table not in names:
        return
    columns = sqlite.column_names(connection, table)
    order = ["span_id"] if "span_id" in columns else []
    for row in sqlite.rows(connection, table, findings, columns=columns, order=order):
        yield {name: _cell(value) for name, value in zip(columns, row, strict=True)}


def _cell(value: Any) -> Any:
    """Return a cell as a JSON value: bytes as hex, an integer that no JSON reader keeps as its digits."""
    if isinstance(value, bytes):
        return value.hex()
    if type(value) is int and not -MAX_SAFE <= value <= MAX_SAFE:
        return str(value)
    if type(value) is float and not isfinite(value):
        return None
    return value


def _key(value: Any) -> tuple[int, Any]:
    """Return what orders a cell as SQLite does: nothing, numbers, then text by its bytes."""
    if value is None:
        return 0, 0
    if isinstance(value, str):
        return 2, value.encode("utf-8")
    return 1, value
