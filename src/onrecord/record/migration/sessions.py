"""Sessions for a vCon that has none: one for each recording set, one for each call of a transfer, one for the rest.

Source: record.md 1.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.record.instances import copy_json
from onrecord.record.migration.draft import Draft
from onrecord.record.vcon.views import index_of, indices_of

_SECOND: Final = 1_000_000_000
_MICROSECOND: Final = 1_000
_EXACT_SECONDS: Final = 2**31
"""Spans from here on are rounded up to whole seconds: a double of so many seconds keeps no microseconds."""

_LONGEST_SECONDS: Final = 10**15
"""Durations from here on are no conversation's; the checks do not reckon with them either."""

_ZERO_FRACTION: Final = re.compile(r"\.0+(?![0-9])")

_POINTS: Final = ("text", "transfer")
"""Dialogs that end when they start, if they have no duration. How long a recording without one is, nobody knows."""


@dataclass(slots=True)
class DerivedSession:
    """A session in the making. One without dialogs is the placeholder of a call that is not known."""

    dialogs: list[int] = field(default_factory=list)
    session_id: Any = None
    parties: dict[int, None] = field(default_factory=dict)
    start: tuple[int, str] | None = None
    end: int | None = None
    is_timed: bool = False
    latest_open: int | None = None

    def cover(self, draft: Draft, start: Any, *, length: int | None, parties: Iterable[int]) -> None:
        """Take in a dialog or an event. `length` is in nanoseconds; None if nobody knows when it ended."""
        self.parties.update(dict.fromkeys(parties))
        moment = draft.instants.ns(start)
        if moment is None:
            return
        if self.start is None or moment < self.start[0]:
            self.start = (moment, normal_date(start))
        if length is None:
            self.latest_open = max(moment, moment if self.latest_open is None else self.latest_open)
        else:
            self.end = max(moment + length, moment + length if self.end is None else self.end)
            self.is_timed |= length > 0

    def to_json(self) -> dict[str, Any]:
        """Return the Session Object."""
        if not self.dialogs:
            return {}
        session: dict[str, Any] = {}
        if self.start is not None:
            session["start"] = self.start[1]
            duration = self._duration(self.start[0])
            if duration is not None:
                session["duration"] = duration
        if self.parties:
            session["parties"] = sorted(self.parties)
        session["dialog"] = sorted(self.dialogs)
        if self.session_id is not None:
            session["session_id"] = self.session_id
        return session

    def _duration(self, start: int) -> int | float | None:
        """Return the seconds from the start to the last known end, or None if what began last has no known end."""
        if self.end is None or (self.latest_open is not None and self.latest_open >= self.end):
            return None
        span = self.end - start
        if not span and not self.is_timed:
            return None
        if span % _SECOND == 0 or span >= _EXACT_SECONDS * _SECOND:
            return -(-span // _SECOND)
        return -(-span // _MICROSECOND) / 1_000_000


def normal_date(text: str) -> str:
    """Return a date-time that was read in its normal form: capital letters, no fraction of zeros."""
    return _ZERO_FRACTION.sub("", text.upper())


class Plan:
    """Which session each dialog belongs to, for a vCon without sessions."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.sessions: list[DerivedSession] = []
        self.owner: dict[int, int] = {}
        self._kinds = [item.get("type") if type(item) is dict else None for item in draft.array("dialog")]
        self._add_recording_sets()

    def _add_recording_sets(self) -> None:
        members: dict[int, list[int]] = {}
        for index, dialog in self.draft.objects("dialog"):
            kind = self._kinds[index]
            if kind == "recording-set":
                members.setdefault(index, [])[:0] = indices_of(dialog.get("recordings"))
            elif kind == "recording":
                owner = index_of(dialog.get("recording_set"))
                if owner is not None:
                    members.setdefault(owner, []).append(index)
        for index, dialog in self.draft.objects("dialog"):
            if self._kinds[index] == "recording-set":
                session = self._open(index)
                session_id = dialog.get("session_id")
                if type(session_id) is dict:
                    session.session_id = copy_json(session_id)
                for member in members[index]:
                    if self.is_call(member) and self._kinds[member] != "recording-set":
                        self.put(member, self.owner[index])

    def is_call(self, index: int) -> bool:
        """Say whether there is a dialog at an index that is no transfer."""
        return 0 <= index < len(self._kinds) and self._kinds[index] != "transfer"

    def session_of_call(self, index: int) -> int:
        """Return the session of a call that a transfer names; one of its own if it has none."""
        if index not in self.owner:
            self._open(index)
        return self.owner[index]

    def placeholder(self) -> int:
        """Return a new session for a call that is not known."""
        self.sessions.append(DerivedSession())
        return len(self.sessions) - 1

    def put(self, dialog: int, session: int) -> None:
        """Put a dialog into a session, unless it is in one."""
        if dialog not in self.owner:
            self.owner[dialog] = session
            self.sessions[session].dialogs.append(dialog)

    def _open(self, dialog: int) -> DerivedSession:
        session = DerivedSession()
        self.sessions.append(session)
        self.put(dialog, len(self.sessions) - 1)
        return session

    def close(self) -> None:
        """Put what is left into one session, and take in the times and parties of all dialogs."""
        rest = [index for index in range(len(self._kinds)) if index not in self.owner]
        if rest:
            self._open(rest[0])
            for index in rest[1:]:
                self.put(index, self.owner[rest[0]])
        size = len(self.draft.array("parties"))
        for index, dialog in self.draft.objects("dialog"):
            kind = self._kinds[index]
            parties = (party for party in indices_of(dialog.get("parties")) if 0 <= party < size)
            length = _nanoseconds(dialog.get("duration"))
            if length is None and kind in _POINTS:
                length = 0
            self.sessions[self.owner[index]].cover(
                self.draft, dialog.get("start"), length=length, parties=parties
            )


def _nanoseconds(duration: Any) -> int | None:
    if type(duration) not in (int, float) or not 0 <= duration < _LONGEST_SECONDS:
        return None
    return duration * _SECOND if type(duration) is int else round(duration * 1_000_000) * _MICROSECOND


def sessions_of_dialogs(draft: Draft) -> dict[int, list[int]]:
    """Return the sessions that list each dialog, in a vCon that has sessions."""
    found: dict[int, list[int]] = {}
    for index, session in draft.objects("sessions"):
        for dialog in dict.fromkeys(indices_of(session.get("dialog"))):
            found.setdefault(dialog, []).append(index)
    return found
