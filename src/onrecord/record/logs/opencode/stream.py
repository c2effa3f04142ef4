"""The server's events: the newest state of each session, message and part, and what else happened (layout 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.opencode.items import Store
from onrecord.record.logs.opencode.members import EVENTS
from onrecord.record.logs.opencode.recognition import event_of
from onrecord.record.logs.opencode.units import Units
from onrecord.record.logs.reading.records import Record

HEARTBEAT: Final = "server.heartbeat"
"""An event that only says that the server is there; the first one is kept."""

_OF_PARTS: Final = frozenset({"sessionID", "messageID", "partID", "field", "delta"})
"""Members of an event that say what it is about."""

_RENAMED: Final = {"session.error": event_types.ERROR}


def enter_event(store: Store, units: Units, record: Record) -> None:
    """Enter a line of the stream."""
    event = event_of(record.value) or {}
    kind, told = event["type"], event["properties"]
    info, part = told.get("info"), told.get("part")
    if kind in ("session.created", "session.updated") and type(info) is dict:
        store.enter("session", _about(record, info, "info"), event=_around(record, "info"))
    elif kind == "message.updated" and type(info) is dict:
        around = _around(record, "info")
        store.enter("message", _about(record, info, "info"), session=told.get("sessionID"), event=around)
    elif kind == "message.part.updated" and type(part) is dict:
        about = _about(record, part, "part")
        item = store.enter(
            "part",
            about,
            session=told.get("sessionID"),
            time=told.get("time"),
            event=_around(record, "part"),
        )
        for number, _ in store.deltas.pop(item.id, ()) if item.id is not None else ():
            store.trace.duplicate(number, "older-version", of=f"record {item.number}")
    elif kind == "message.part.delta" and _is_addition(store, told):
        store.add_delta(record, told["partID"], {**_around(record, ""), "delta": told["delta"]})
    elif kind == HEARTBEAT and HEARTBEAT in store.seen_events:
        store.trace.duplicate(record, "heartbeat", of="the first heartbeat")
    else:
        store.seen_events.add(kind)
        _enter_other(store, units, record, kind, told)


def _enter_other(store: Store, units: Units, record: Record, kind: str, told: Mapping[str, Any]) -> None:
    if kind in ("message.removed", "message.part.removed"):
        removed = told.get("partID" if kind == "message.part.removed" else "messageID")
        if type(removed) is str:
            store.removed.add(removed)
    if kind not in EVENTS:
        store.trace.findings.add(
            "unknown-record-type",
            record=record.number,
            name=kind[:64],
            action="kept as a system-event",
        )
    units.other(record, _RENAMED.get(kind, kind), session=told.get("sessionID"), time=told.get("time"))


def _about(record: Record, value: dict[str, Any], member: str) -> Record:
    """Return what an event is about, as the record."""
    prefix = f"/properties/{member}"
    numbers = [pointer.removeprefix(prefix) for pointer in record.numbers]
    return Record(record.number, value, record.line, record.offset, record.size, numbers)


def _around(record: Record, member: str) -> dict[str, Any]:
    """Return what an event says beside what it is about: its own id and time, the folder of its project."""
    value = record.value
    event = event_of(value) or {}
    told = {
        name: inner for name, inner in event["properties"].items() if name != member and name not in _OF_PARTS
    }
    around = {name: inner for name, inner in event.items() if name not in ("type", "properties")}
    if event is not value:
        around = {name: inner for name, inner in value.items() if name != "payload"} | around
    return {**around, "properties": told} if told else around


def _is_addition(store: Store, told: Mapping[str, Any]) -> bool:
    part, member = told.get("partID"), told.get("field")
    return type(part) is str and type(told.get("delta")) is str and member == "text" and store.has_part(part)
