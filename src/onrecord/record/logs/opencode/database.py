"""OpenCode's SQLite store, as since version 1.2, and the renamed tables of version 2 (layouts 4 and 5)."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from onrecord.base.strict_json import MAX_SAFE_INTEGER
from onrecord.record.logs.opencode.items import Store
from onrecord.record.logs.opencode.units import Units
from onrecord.record.logs.reading import sqlite as stores
from onrecord.record.logs.reading.parsing import parse
from onrecord.record.logs.reading.pieces import ACTIONS
from onrecord.record.logs.reading.records import NotJson, Record

SECRETS: Final = ("account", "control_account", "credential", "session_share")
"""Tables of which nothing but the number of rows is asked."""

_SESSION: Final = {
    "id": "id",
    "parent_id": "parentID",
    "project_id": "projectID",
    "workspace_id": "workspaceID",
}
_SESSION_GROUPS: Final = {
    "time_created": ("time", "created"),
    "time_updated": ("time", "updated"),
    "time_compacting": ("time", "compacting"),
    "time_archived": ("time", "archived"),
    "summary_additions": ("summary", "additions"),
    "summary_deletions": ("summary", "deletions"),
    "summary_files": ("summary", "files"),
    "summary_diffs": ("summary", "diffs"),
    "tokens_input": ("tokens", "input"),
    "tokens_output": ("tokens", "output"),
    "tokens_reasoning": ("tokens", "reasoning"),
    "share_url": ("share", "url"),
}
_CACHE: Final = {"tokens_cache_read": "read", "tokens_cache_write": "write"}
_JSON: Final = frozenset({"permission", "revert", "model", "metadata", "summary_diffs"})
_IDS: Final = {"id": "id", "session_id": "sessionID", "message_id": "messageID"}


_Row = tuple[dict[str, Any], list[str]]
"""The cells of a row by column, and the pointers of those that no JSON reader keeps."""


def is_store(names: frozenset[str]) -> bool:
    """Say whether an SQLite file with these tables is a store of either version."""
    return {"message", "part"} <= names or {"session_v2", "session_message"} <= names


def read_database(store: Store) -> None:
    """Enter the rows of the tables that hold sessions, messages and parts."""
    trace = store.trace
    units = Units(store)
    with stores.open_copy(trace.path, trace.findings, follow=True) as connection:
        names = stores.table_names(connection)
        for table in ("session", "session_v2"):
            if table in names:
                for row in _rows(connection, table, store):
                    _enter_session(store, row)
        messages = 0
        if "message" in names:
            for row in _rows(connection, "message", store):
                messages += 1
                _enter_row(store, units, row, "message")
        if "part" in names:
            for row in _rows(connection, "part", store):
                _enter_row(store, units, row, "part")
        # Version 1.18 has both tables and writes the first only; what told of both would tell everything twice.
        if not messages and "session_message" in names:
            for row in _rows(connection, "session_message", store):
                _enter_new_message(store, units, row)
        for table in SECRETS:
            if table in names:
                _report_secrets(connection, table, store)


def _rows(connection: sqlite3.Connection, table: str, store: Store) -> Iterator[_Row]:
    columns = stores.column_names(connection, table)
    for row in stores.rows(connection, table, store.trace.findings, columns=columns):
        cells: dict[str, Any] = {}
        changed = []
        for name, cell in zip(columns, row, strict=True):
            kept = cells[name] = _kept(cell)
            if kept is not cell and type(cell) is not bytes:
                changed.append(f"/{name}")
        yield cells, changed


def _kept(cell: Any) -> Any:
    """Return a cell as a vCon may hold it (D-LOG-24, D-LOG-25)."""
    if type(cell) is bytes:
        return cell.decode("utf-8", "replace")
    if type(cell) is int and abs(cell) > MAX_SAFE_INTEGER:
        return str(cell)
    if type(cell) is float and not math.isfinite(cell):
        return None
    return cell


def _report_secrets(connection: sqlite3.Connection, table: str, store: Store) -> None:
    try:
        ((count,),) = connection.execute(f'SELECT count(*) FROM "{table}"').fetchall()  # noqa: S608 - a constant
    except sqlite3.DatabaseError:
        return
    if count:
        store.trace.findings.add(
            "share-secret-dropped",
            name=table,
            count=count,
            message="a table that is not read",
            action="left out",
        )


def _enter_session(store: Store, row: _Row) -> None:
    cells, changed = row
    value: dict[str, Any] = {}
    for name, cell in cells.items():
        if cell is None:
            continue
        group = _SESSION_GROUPS.get(name)
        told = _json(cell) if name in _JSON and type(cell) is str else cell
        if group is not None:
            value.setdefault(group[0], {})[group[1]] = told
        elif name in _CACHE:
            value.setdefault("tokens", {}).setdefault("cache", {})[_CACHE[name]] = told
        else:
            value[_SESSION.get(name, name)] = told
    store.enter("session", store.trace.new_record(value, numbers=changed))


def _enter_row(store: Store, units: Units, row: _Row, table: Any) -> None:
    record = _record(store, units, row)
    if record is not None:
        units.enter(record, table, time=row[0].get("time_created"))


def _enter_new_message(store: Store, units: Units, row: _Row) -> None:
    """Enter a message of version 2, whose text or content stands in it and whose type is its role."""
    role = row[0].pop("type", None)
    record = _record(store, units, row)
    if record is None:
        return
    value, time = record.value, row[0].get("time_created")
    if role not in ("user", "assistant"):
        value["type"] = role
        units.other(
            record,
            role if type(role) is str and role else "unknown",
            session=value.get("sessionID"),
            time=time,
        )
        return
    content = value.pop("content", None)
    parts = content if type(content) is list else []
    if type(value.get("text")) is str:
        parts = [{"type": "text", "text": value.pop("text")}, *parts]
    value["role"] = role
    item = store.enter("message", record, time=time)
    for block, part in enumerate(parts):
        about = part if type(part) is dict else {"type": "unknown", "value": part}
        if about.get("type") == "tool" and type(about.get("tool")) is not str and "name" in about:
            about = {**about, "tool": about["name"], "callID": about.get("callID", about.get("id"))}
            del about["name"]
        inner = Record(record.number, about, 0, 0, 0)
        store.enter("part", inner, session=item.session, message=item.message, time=time, block=block)


def _record(store: Store, units: Units, row: _Row) -> Record | None:
    """Return the record in a row's JSON, with the ids that stand in columns; None when it cannot be read."""
    trace = store.trace
    cells, changed = row
    data = cells.pop("data", None)
    text = data if type(data) is str else "" if data is None else str(data)
    raw = text.encode("utf-8", "replace")
    try:
        parsed = parse(raw)
    except NotJson as fault:
        code = "malformed-line" if fault.code == "truncated-tail" else fault.code
        units.rejected(raw, code, str(fault), session=cells.get("session_id"))
        return None
    if type(parsed.value) is not dict:
        units.not_an_object(parsed.value, session=cells.get("session_id"))
        return None
    columns = {_IDS.get(name, name): cell for name, cell in cells.items() if cell is not None}
    record = trace.new_record(parsed.value | columns, numbers=parsed.numbers + changed)
    for code, count in parsed.faults.items():
        trace.findings.add(code, record=record.number, action=ACTIONS[code], count=count)
    return record


def _json(cell: str) -> Any:
    """Return the value of a column that holds JSON, or its text where it holds none."""
    try:
        return parse(cell.encode("utf-8", "replace")).value
    except NotJson:
        return cell
