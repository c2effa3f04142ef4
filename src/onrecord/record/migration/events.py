"""Sessions and events of the present version, from what older versions said in dialogs.

Source: record.md 1.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from onrecord.record.checks.event_tables import EVENT
from onrecord.record.migration.dialogs import Unknown
from onrecord.record.migration.draft import Draft, is_empty, same_json
from onrecord.record.migration.sessions import Plan, sessions_of_dialogs
from onrecord.record.migration.transfers import Told, Transfers
from onrecord.record.vcon.event_types import KEY_EVENTS, PARTY_EVENTS
from onrecord.record.vcon.names import KEY_EVENT_ALIASES
from onrecord.record.vcon.views import index_of

OLD_BUTTON: Final = "dtmf"
"""What `button` was called beside dtmfdown and dtmfup (core-01)."""

MAX_EVENT_SESSIONS: Final = 64
"""Sessions that a derived event names. A dialog that is in more keeps its party_history: n entries of a dialog in n
sessions would become a file of n times n indices."""

_OF_HISTORY: Final = frozenset(["party", "time", "event", "button", OLD_BUTTON])
_EVENT_MEMBERS: Final = frozenset([*EVENT.kinds, "type", "sessions", "session", "dialog"]) - _OF_HISTORY
"""Members that would say something else in an event than in an entry of a party_history, where they are unknown."""

_SESSION_MEMBERS: Final = ("sessions", "session")


@dataclass(frozen=True, slots=True)
class _New:
    """An event to be added, and its change: where it came from if it was moved, and what else is told of it."""

    event: dict[str, Any]
    source: str | None
    data: Mapping[str, Any]


def derive_events(draft: Draft, unknown: Unknown) -> None:
    """Derive sessions if there are none, and events from transfers and from the history of parties."""
    plan = _plan(draft)
    told = [] if plan is None else list(Transfers(draft, plan, unknown).tell())
    if plan is not None:
        plan.close()
        owners: Mapping[int, list[int]] = {dialog: [session] for dialog, session in plan.owner.items()}
    else:
        owners = sessions_of_dialogs(draft)
    new = list(_History(draft, owners).move()) + [_of_transfer(entry) for entry in told]
    _append(draft, new)
    if plan is not None:
        for entry in new:
            session = plan.sessions[entry.event["sessions"]]
            party = index_of(entry.event["party"])
            session.cover(draft, entry.event["time"], length=0, parties=() if party is None else (party,))
        sessions = draft.make_array("sessions")
        for session in plan.sessions:
            draft.note("session-derived", f"/sessions/{len(sessions)}")
            sessions.append(session.to_json())


def _plan(draft: Draft) -> Plan | None:
    """Return a plan of sessions for a vCon that needs some and has none, nor events that may count on theirs."""
    free = all(is_empty(draft.members.get(name)) for name in ("sessions", "events"))
    return Plan(draft) if free and draft.array("dialog") else None


def _of_transfer(told: Told) -> _New:
    data: dict[str, Any] = {"dialog": told.dialog}
    if told.time_from is not None:
        data["time_from"] = told.time_from
    return _New(told.event, None, data)


def _append(draft: Draft, new: list[_New]) -> None:
    """Append the events, those of one transfer together: two transfers of the same parties stay apart."""
    events = draft.make_array("events") if new else []
    for entry in new:
        place = f"/events/{len(events)}"
        if entry.source is not None:
            draft.note("party-history-moved", entry.source, to=place, **entry.data)
        else:
            draft.note("transfer-told", place, **entry.data)
        events.append(entry.event)


class _History:
    """The party_history of all dialogs."""

    def __init__(self, draft: Draft, owners: Mapping[int, list[int]]) -> None:
        self._draft = draft
        self._owners = owners
        self._parties = len(draft.array("parties"))
        self._can_add = draft.can_append("events")
        self._known: dict[tuple[Any, ...], int] | None = None

    def move(self) -> Iterator[_New]:
        """Take every entry that makes a correct event out of its dialog, and yield the events."""
        for index, dialog in self._draft.objects("dialog"):
            history = dialog.get("party_history")
            if type(history) is not list:
                continue
            if not history:
                self._draft.drop_empty(dialog, f"/dialog/{index}", "party_history")
                continue
            left: list[Any] = []
            for position, entry in enumerate(history):
                pointer = f"/dialog/{index}/party_history/{position}"
                made = self._event(entry, index)
                if isinstance(made, str):
                    self._draft.note("party-history-kept", pointer, reason=made)
                    left.append(entry)
                    continue
                names = {"event": entry["event"]} if entry["event"] in KEY_EVENT_ALIASES else {}
                if OLD_BUTTON in entry:
                    names["button"] = OLD_BUTTON
                twin = self._twin(made)
                if twin is not None:
                    self._draft.note("party-history-dropped", pointer, to=f"/events/{twin}", **names)
                else:
                    yield _New(made, pointer, names)
            if left:
                dialog["party_history"] = left
            else:
                del dialog["party_history"]

    def _event(self, entry: Any, dialog: int) -> dict[str, Any] | str:
        """Return the event that an entry stands for, or why it makes none."""
        if not self._can_add:
            return "events"
        if type(entry) is not dict or any(name in _EVENT_MEMBERS for name in entry):
            return "shape"
        kind, party = entry.get("event"), index_of(entry.get("party"))
        kind = KEY_EVENT_ALIASES.get(kind, kind) if type(kind) is str else None
        if kind not in PARTY_EVENTS and kind not in KEY_EVENTS:
            return "event-type"
        if party is None or not 0 <= party < self._parties:
            return "party"
        if self._draft.instants.ns(entry.get("time")) is None:
            return "time"
        buttons = [entry[name] for name in ("button", OLD_BUTTON) if name in entry]
        if len(buttons) != (kind in KEY_EVENTS) or not all(type(button) is str for button in buttons):
            return "button"
        sessions = self._owners.get(dialog)
        if not sessions:
            return "session"
        if len(sessions) > MAX_EVENT_SESSIONS:
            return "sessions"
        event: dict[str, Any] = {
            "type": kind,
            "time": entry["time"],
            "sessions": sessions[0] if len(sessions) == 1 else list(sessions),
            "party": entry["party"],
            "dialog": dialog,
        }
        if buttons:
            event["button"] = buttons[0]
        taken = ("event", "button", OLD_BUTTON)
        event.update(
            (name, value) for name, value in entry.items() if name not in event and name not in taken
        )
        return event

    def _twin(self, event: dict[str, Any]) -> int | None:
        """Return the index of an event of the source that says the same, or None."""
        if self._known is None:
            self._known = {}
            for index, known in self._draft.objects("events"):
                if type(known.get("dialog")) is int:
                    self._known.setdefault(_key(known), index)
        twin = self._known.get(_key(event)) if self._known else None
        if twin is None:
            return None
        return twin if _is_same_event(self._draft.array("events")[twin], event) else None


def _key(event: Mapping[str, Any]) -> tuple[Any, ...]:
    values = (event.get(name) for name in ("type", "time", "party", "dialog", "button"))
    return tuple(value if type(value) in (str, int) else None for value in values)


def _is_same_event(known: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Say whether two events say the same, whatever their sessions. Never slower than the new event is long."""
    own = [name for name in event if name not in _SESSION_MEMBERS]
    return len(known) - sum(name in known for name in _SESSION_MEMBERS) == len(own) and all(
        name in known and same_json(event[name], known[name]) for name in own
    )
