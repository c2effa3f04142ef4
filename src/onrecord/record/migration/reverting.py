"""Undoing a migration: from the result and its report back to the old forms, where the report says reversible.

>>> from onrecord.record.migration.migrations import migrate
>>> from onrecord.record.vcon.model import Vcon
>>> old = Vcon.read(b'{"vcon":"0.4.0","uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd","amended":{"uuid":"x"}}')
>>> done = migrate(old)
>>> revert(done.vcon, done.report).members == old.members
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any, Final

from onrecord.record.instances import copy_json
from onrecord.record.migration.content import BASE64_SPELLINGS, JSON_SPELLINGS, part_hash
from onrecord.record.migration.dialogs import joined_session_id
from onrecord.record.migration.draft import place_of, rename
from onrecord.record.migration.events import OLD_BUTTON
from onrecord.record.migration.report import Change, MigrationReport, invalid_report
from onrecord.record.vcon.model import Vcon

_HISTORY: Final = re.compile(r"/dialog/([0-9]{1,9})/party_history/([0-9]{1,9})", re.ASCII)
_DERIVED: Final = re.compile(r"/(events|sessions|parties)/([0-9]{1,9})", re.ASCII)
_NOT_IN_HISTORY: Final = frozenset(["type", "sessions", "session", "dialog"])
_EMPTY: Final[tuple[Any, ...]] = (None, {}, [], "")

Members = dict[str, Any]


def revert(vcon: Vcon, report: MigrationReport) -> Vcon:
    """Return a vCon with every reversible change undone; the one that is given stays as it is.

    Each value of the source is back, in members whose order may differ. What is not reversible stays as it was
    converted.

    Raises `MalformedError` with code "migration-report-invalid" if the report does not fit the vCon.
    """
    members: Members = copy_json(dict(vcon.members))
    changes = [change for change in report.changes if change.reversible]
    try:
        _take_back_events(members, changes)
        for change in reversed(changes):
            undo = _UNDO.get(change.code)
            if undo is not None:
                undo(members, change)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise invalid_report("a change does not fit what stands there") from error
    return Vcon(members)


def _take_back_events(members: Members, changes: list[Change]) -> None:
    """Put the history of parties back into dialogs, and remove what was derived."""
    derived: dict[str, set[int]] = {"events": set(), "sessions": set(), "parties": set()}
    entries: list[tuple[int, int, Any]] = []
    for change in changes:
        if change.code in ("party-history-moved", "party-history-dropped"):
            place, target = _HISTORY.fullmatch(change.pointer), _DERIVED.fullmatch(_data(change)["to"])
            if place is None or target is None or target[1] != "events":
                raise ValueError("no place of a party_history")
            event = members["events"][int(target[2])]
            entries.append((int(place[1]), int(place[2]), _history_entry(event, _data(change))))
            if change.code == "party-history-moved":
                derived["events"].add(int(target[2]))
        elif change.code in ("transfer-told", "session-derived", "party-added"):
            target = _DERIVED.fullmatch(change.pointer)
            if target is None:
                raise ValueError("no place of something derived")
            derived[target[1]].add(int(target[2]))
    entries.sort(key=lambda place: place[:2])
    for dialog, group in groupby(entries, key=lambda place: place[0]):
        item = members["dialog"][dialog]
        item["party_history"] = _merged(item.get("party_history", []), [place[1:] for place in group])
    for name, indices in derived.items():
        if indices:
            members[name] = [item for index, item in enumerate(members[name]) if index not in indices]
            if not members[name]:
                del members[name]


def _merged(left: list[Any], entries: list[tuple[int, Any]]) -> list[Any]:
    """Return a list with entries put back at their indices, among those that were left, in order."""
    merged: list[Any] = []
    stayed = iter(left)
    for position, entry in entries:
        while len(merged) < position:
            merged.append(next(stayed))
        merged.append(entry)
    return merged + list(stayed)


def _history_entry(event: Any, data: Mapping[str, Any]) -> Members:
    entry = {name: copy_json(value) for name, value in event.items() if name not in _NOT_IN_HISTORY}
    entry["event"] = data.get("event", event["type"])
    if data.get("button") == OLD_BUTTON:
        entry[OLD_BUTTON] = entry.pop("button")
    return entry


def _data(change: Change) -> Mapping[str, Any]:
    return change.data or {}


def _version(members: Members, change: Change) -> None:
    members["vcon"] = _data(change)["value"]


def _old_name(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    new = _data(change)["to"]
    if new not in holder or name in holder:
        raise KeyError(new)
    rename(holder, new, name)


def _twin_name(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    holder[name] = copy_json(holder[_data(change)["to"]])


def _empty(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    value = _data(change)["value"]
    if value not in _EMPTY:
        raise ValueError("not an empty value")
    if name not in holder:  # else it gave way to something that stays
        holder[name] = copy_json(value)


def _hash(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    part_hash(holder[name])


def _absent(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    del holder[name]


def _base64(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    holder[name] = "base64"


def _respelled(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    holder[name] = BASE64_SPELLINGS[_data(change)["spelling"]](holder[name])


def _json_text(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    holder[name] = JSON_SPELLINGS[_data(change)["spelling"]](holder[name])


def _session_id(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    holder[name] = joined_session_id(holder[name], _data(change)["spelling"])


def _wrapped(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    holder[name] = [holder[name]]


def _unknown_index(members: Members, change: Change) -> None:
    holder, name = place_of(members, change.pointer)
    value = _data(change)["value"]
    if value not in (-1, [-1]):
        raise ValueError("not an index for what is not known")
    holder[name] = copy_json(value)


def _identity(members: Members, _change: Change) -> None:
    if members.get("amended_from"):
        members["uuid"] = members["amended_from"]["uuid"]


def _reference(members: Members, _change: Change) -> None:
    members["uuid"] = members.pop("amended_from")["uuid"]


def _date(members: Members, change: Change) -> None:
    data, (holder, name) = _data(change), place_of(members, change.pointer)
    if "previous" in data:
        holder[name] = data["previous"]
    else:
        del holder[name]


_UNDO: Final[Mapping[str, Callable[[Members, Change], None]]] = {
    "version-dropped": _version,
    "member-renamed": _old_name,
    "duplicate-dropped": _twin_name,
    "empty-dropped": _empty,
    "hash-joined": _hash,
    "encoding-derived": _absent,
    "encoding-converted": _base64,
    "body-respelled": _respelled,
    "json-parsed": _json_text,
    "session-id-split": _session_id,
    "index-unwrapped": _wrapped,
    "index-unknown-dropped": _unknown_index,
    "uuid-renewed": _identity,
    "amended-from-set": _reference,
    "created-at-set": _date,
    "updated-at-set": _date,
}
