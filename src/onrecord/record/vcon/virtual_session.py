"""The one session that a vCon without sessions stands for, so that a program needs no second way to ask.

Source: record.md D-05.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.members import objects_of
from onrecord.record.vcon.views import Session

_ARRAYS: Final = ("sessions", "dialog", "parties", "events")


def virtual_session(members: Mapping[str, Any]) -> Session | None:
    """Return a session over all dialogs and parties of a vCon, or None if it has sessions or nothing to span.

    It starts with the earliest dialog or event. Its members are made here; the vCon is not changed.
    """
    sessions, dialogs, parties, events = (_size(members.get(name)) for name in _ARRAYS)
    if sessions or not (dialogs or events):
        return None
    made: dict[str, Any] = {}
    start = _earliest(members)
    if start is not None:
        made["start"] = start
    if parties:
        made["parties"] = list(range(parties))
    if dialogs:
        made["dialog"] = list(range(dialogs))
    return Session(0, made, is_virtual=True)


def _size(value: Any) -> int:
    return len(value) if type(value) is list else 0


def _earliest(members: Mapping[str, Any]) -> str | None:
    """Return the earliest date of a dialog or an event, as written. Of equal ones it is the first."""
    instants = Instants()
    dates = [
        item.get(name)
        for array, name in (("dialog", "start"), ("events", "time"))
        for _, item in objects_of(members.get(array))
    ]
    known = [(moment, date) for date in dates if (moment := instants.ns(date)) is not None]
    return min(known, key=lambda entry: entry[0])[1] if known else None
