"""The sessions of what is added: which one is meant, when it begins, who takes part; and sets of recordings.

What is written beside an element that is then refused is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from onrecord.base.dates import epoch_ns, parse_date
from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.record.vcon.additions import Additions, hint_of
from onrecord.record.vcon.members import indices_of
from onrecord.record.vcon.plain import plain
from onrecord.record.vcon.reader import Document

Undo = Callable[[], object]
"""Takes back what was written beside an element that was refused after all."""


class SessionEntries(Additions):
    """What the builder needs to enter dialogs and events into sessions."""

    def __init__(
        self, members: dict[str, Any], *, document: Document | None = None, lenient: bool = False
    ) -> None:
        super().__init__(members, document=document, lenient=lenient)
        self._begun: set[int] = set()
        self._listeners: dict[int, set[int]] = {}

    def _sessions_for(
        self, session: int | Sequence[int] | None, code: str, pointer: str
    ) -> tuple[int, ...] | None:
        """Return the sessions that are meant, None where one is still to begin."""
        items = self._members.get("sessions")
        size = len(items) if isinstance(items, list) else 0
        if session is None:
            if size < 2:
                return (0,) if size else None
            return self._unclear(f"there are {size} sessions", code, pointer, "name one with session=")
        chosen = tuple(session) if isinstance(session, Sequence) else (session,)
        if any(type(number) is not int or not 0 <= number < size for number in chosen):
            return self._unclear("there is no such session", "index-range", pointer, hint_of("index-range"))
        return tuple(dict.fromkeys(chosen))

    def _unclear(self, message: str, code: str, pointer: str, hint: str | None) -> tuple[int, ...]:
        if not self._lenient:
            raise UsageError(message, code=code, where=Where(pointer=pointer), hint=hint)
        return ()

    def _begin_session(self, start: Any, **members: Any) -> int:
        """Begin a session for a dialog or an event. One that begins later is found out when it is checked itself."""
        index = self._add("sessions", {"start": start if _moment(start) is not None else None, **members})
        self._begun.add(index)
        return index

    def _forget_session(self) -> None:
        sessions = self._members["sessions"]
        self._begun.discard(len(sessions) - 1)
        sessions.pop()
        if not sessions:
            del self._members["sessions"]

    def _reach_back(self, numbers: Sequence[int], start: Any) -> list[Undo]:
        """Let the sessions that were begun here start no later than what is added to them."""
        moment = _moment(start)
        undo: list[Undo] = []
        if moment is None or not self._begun:
            return undo
        for number in self._begun.intersection(numbers):
            session = self._members["sessions"][number]
            earliest = _moment(session.get("start"))
            if earliest is not None and moment < earliest:
                undo.append(partial(session.__setitem__, "start", session["start"]))
                session["start"] = plain(start, f"/sessions/{number}/start")
        return undo

    def _take_part(self, numbers: Sequence[int], parties: Sequence[int]) -> None:
        """Enter parties into the sessions in which they take part."""
        sessions = self._members.get("sessions")
        for number in numbers:
            session = _object_at(sessions, number)
            if session is None:
                continue
            present = self._listeners.get(number)
            if present is None:
                present = self._listeners[number] = set(indices_of(session.get("parties")))
            for party in parties:
                if party not in present:
                    listed = session.setdefault("parties", [])
                    if isinstance(listed, list):
                        listed.append(party)
                    present.add(party)

    def _link_recordings(self, dialog: Mapping[str, Any]) -> list[Undo]:
        """Let a recording set and its recordings point at each other."""
        dialogs = self._members.get("dialog")
        if not isinstance(dialogs, list):
            return []
        own = len(dialogs)
        undo: list[Undo] = []
        if dialog.get("type") == "recording-set":
            named = dialog.get("recordings")
            for number in indices_of(list(named) if isinstance(named, tuple) else named):
                other = _object_at(dialogs, number)
                if other is not None and other.get("type") == "recording" and "recording_set" not in other:
                    other["recording_set"] = own
                    undo.append(partial(other.pop, "recording_set"))
        elif dialog.get("type") == "recording":
            for number in indices_of(dialog.get("recording_set")):
                other = _object_at(dialogs, number)
                if other is not None and isinstance(other.get("recordings"), list):
                    other["recordings"].append(own)
                    undo.append(other["recordings"].pop)
        return undo


def _object_at(items: Any, number: int) -> dict[str, Any] | None:
    item = items[number] if isinstance(items, list) and 0 <= number < len(items) else None
    return item if isinstance(item, dict) else None


def _moment(value: Any) -> int | None:
    """Return a date in nanoseconds, None for what is none."""
    try:
        moment = (
            value if isinstance(value, datetime) else parse_date(value) if isinstance(value, str) else None
        )
    except MalformedError:
        return None
    return epoch_ns(moment) if moment is not None and moment.tzinfo is not None else None
