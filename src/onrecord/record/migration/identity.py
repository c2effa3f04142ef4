"""Who the result is: the same vCon, or a new instance that names the one it was made from.

Source: record.md D-32, 2.3, 2.10.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from onrecord.base.dates import Clock
from onrecord.record.instances import new_identity
from onrecord.record.migration.draft import Draft, is_empty
from onrecord.record.migration.report import Change
from onrecord.record.vcon.instants import MAX_REMEMBERED_CHARACTERS
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.references import NAMES

_REFERENCES: Final = frozenset(map(step, NAMES["amended_from"]))
_OF_REFERENCE: Final = frozenset(["member-renamed", "duplicate-dropped", "hash-joined"])


def settle_identity(draft: Draft, *, is_new: bool, domain: str | None, clock: Clock) -> None:
    """Set `updated_at`, and for a new instance `uuid`, `created_at` and `amended_from`."""
    identity = new_identity(domain=domain, clock=clock)
    if is_new:
        _renew(draft, identity["uuid"])
        _set_date(draft, "created_at", identity["created_at"])
    _set_date(draft, "updated_at", identity["updated_at"])


def _set_date(draft: Draft, name: str, moment: str) -> None:
    """Set a date. The one before it is told, so that it can be put back, unless it was none."""
    previous = draft.members.get(name)
    was_date = _is_date(draft, previous)
    draft.note(
        f"{name.replace('_', '-')}-set",
        f"/{name}",
        reversible=was_date or name not in draft.members,
        **({"previous": previous} if was_date else {}),
    )
    draft.members[name] = moment


def _is_date(draft: Draft, value: Any) -> bool:
    return (
        type(value) is str
        and len(value) <= MAX_REMEMBERED_CHARACTERS
        and draft.instants.read(value) is not None
    )


def _renew(draft: Draft, uuid: str) -> None:
    members = draft.members
    old = members.get("uuid")
    is_named = type(old) is str and old != "" and is_empty(members.get("redacted_from"))
    members["uuid"] = uuid
    draft.note("uuid-renewed", "/uuid", reversible=is_named)
    if not is_named:
        draft.note("amended-from-left-out", "/amended_from")
        return
    if not is_empty(members.get("amended_from")):
        draft.changes = [_without_way_back(change) for change in draft.changes]
        draft.note("amended-from-replaced", "/amended_from", reversible=False)
    else:
        if "amended_from" in members:
            draft.drop_empty(members, "", "amended_from")
        draft.note("amended-from-set", "/amended_from")
    members["amended_from"] = {"uuid": old}


def _without_way_back(change: Change) -> Change:
    """Return a change; one of the reference that is replaced is undone no more."""
    lost = change.code in _OF_REFERENCE and change.pointer in _REFERENCES
    return replace(change, reversible=False) if lost else change
