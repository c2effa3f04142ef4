"""Transfer dialogs: the calls that they name, and the events that tell the same.

Source: record.md 1.4, 2.5; the cases of the core draft's transfer events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from onrecord.record.migration.dialogs import TRANSFER_ROLES, Unknown
from onrecord.record.migration.draft import Draft
from onrecord.record.migration.sessions import Plan, normal_date
from onrecord.record.vcon.views import indices_of

_SEVERAL_ALLOWED: Final = "consultation"
"""The one role that may be filled several times: consultations may follow each other."""

MAX_CONSULTATIONS: Final = 16
"""Consultations of one transfer that become events: more than people hold. Each index, two bytes of a file, would
become an event of a hundred and fifty."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event that was derived, with the dialog that says so and, if it is not that dialog's, whose time it has."""

    event: dict[str, Any]
    dialog: int
    time_from: str | None = None


class Transfers:
    """The transfer dialogs of a vCon without sessions."""

    def __init__(self, draft: Draft, plan: Plan, unknown: Unknown) -> None:
        self._draft = draft
        self._plan = plan
        self._unknown = unknown
        self._parties = len(draft.array("parties"))
        self._may_add_parties: bool | None = None
        self._added = 0

    def tell(self) -> Iterator[Told]:
        """Give each call that is named its session, and yield the events of each transfer."""
        transfers = [
            (index, dialog)
            for index, dialog in self._draft.objects("dialog")
            if dialog.get("type") == "transfer"
        ]
        for index, dialog in transfers:
            calls = [
                self._plan.session_of_call(call)
                for role in ("original", "consultation", "target_dialog")
                for call in self._calls(dialog, role)
            ]
            if calls:
                self._plan.put(index, calls[0])
        for index, dialog in transfers:
            reason = self._hindrance(index, dialog)
            if reason is None:
                yield from self._events(index, dialog)
            else:
                self._draft.note("transfer-kept", f"/dialog/{index}", reason=reason)
        if self._added:
            self._add_parties()

    def _calls(self, dialog: dict[str, Any], role: str) -> list[int]:
        return [index for index in indices_of(dialog.get(role)) if self._plan.is_call(index)]

    def _hindrance(self, index: int, dialog: dict[str, Any]) -> str | None:
        """Return why no events tell what a transfer dialog says, or None."""
        if any(len(indices_of(dialog.get(role))) > 1 for role in TRANSFER_ROLES if role != _SEVERAL_ALLOWED):
            return "several-indices"
        if len(indices_of(dialog.get(_SEVERAL_ALLOWED))) > MAX_CONSULTATIONS:
            return "many-consultations"
        if self._time(index, dialog)[0] is None:
            return "no-time"
        if any(self._party(dialog, role) is None for role in self._roles(index, dialog)):
            return None if self._can_add_parties() else "party-unknown"
        return None

    def _has(self, index: int, dialog: dict[str, Any], role: str) -> bool:
        return (index, role) in self._unknown or bool(indices_of(dialog.get(role)))

    def _roles(self, index: int, dialog: dict[str, Any]) -> tuple[str, ...]:
        """Return the parties that the events must name. Who a transfer given up at once was for, need not be known."""
        abandoned = not any(self._has(index, dialog, role) for role in ("consultation", "target_dialog"))
        return ("transferor", "transferee") if abandoned else ("transferor", "transferee", "transfer_target")

    def _time(self, index: int, dialog: dict[str, Any]) -> tuple[str | None, str | None]:
        """Return when a transfer happened, and from which role's dialog this is known if not from its own."""
        if self._draft.instants.ns(dialog.get("start")) is not None:
            return normal_date(dialog["start"]), None
        for call in self._calls(dialog, "target_dialog"):
            start = self._start(call)
            if start is not None:
                return start, "target_dialog"
        return None, None

    def _start(self, call: int) -> str | None:
        item = self._draft.array("dialog")[call]
        start = item.get("start") if type(item) is dict else None
        return (
            normal_date(start) if type(start) is str and self._draft.instants.ns(start) is not None else None
        )

    def _party(self, dialog: dict[str, Any], role: str) -> int | None:
        return next((party for party in indices_of(dialog.get(role)) if 0 <= party < self._parties), None)

    def _can_add_parties(self) -> bool:
        """Say whether a party may be added: not where an index leads nowhere now and would lead to it then."""
        if self._may_add_parties is None:
            self._may_add_parties = self._draft.can_append("parties") and all(
                party < self._parties for party in _party_references(self._draft)
            )
        return self._may_add_parties

    def _events(self, index: int, dialog: dict[str, Any]) -> Iterator[Told]:
        original = self._session(index, dialog, "original")
        roles = self._roles(index, dialog)
        common: dict[str, Any] = {"sessions": original, "party": self._party_or_new(dialog, "transferor")}
        common["transferee"] = self._party_or_new(dialog, "transferee")
        target = self._party(dialog, "transfer_target")
        if target is None and "transfer_target" in roles:
            target = self._party_or_new(dialog, "transfer_target")
        if target is not None:
            common["transfer_target"] = target
        last: dict[str, Any] = {}
        for start, session in self._consultations(index, dialog):
            last = {"consultation": session}
            if start is not None:
                yield Told({"type": "consultation-start", "time": start, **common, **last}, index)
        time, time_from = self._time(index, dialog)
        kind = "transfer-abandoned"
        if self._has(index, dialog, "target_dialog"):
            kind = "consultative-transfer" if last else "blind-transfer"
            last["target_session"] = self._session(index, dialog, "target_dialog")
        yield Told({"type": kind, "time": time, **common, **last}, index, time_from)

    def _session(self, index: int, dialog: dict[str, Any], role: str) -> int:
        calls = self._calls(dialog, role)
        return self._plan.session_of_call(calls[0]) if calls else self._plan.placeholder()

    def _consultations(self, index: int, dialog: dict[str, Any]) -> list[tuple[str | None, int]]:
        """Return the consultations of a transfer in the order of their times, each with its start and session."""
        calls = list(dict.fromkeys(self._calls(dialog, "consultation")))
        if not calls:
            known = self._has(index, dialog, "consultation")
            return [(None, self._plan.placeholder())] if known else []
        found = [(self._start(call), self._plan.session_of_call(call)) for call in calls]
        return sorted(found, key=lambda entry: self._draft.instants.ns(entry[0]) or 0)

    def _party_or_new(self, dialog: dict[str, Any], role: str) -> int:
        party = self._party(dialog, role)
        if party is not None:
            return party
        self._added += 1
        return self._parties + self._added - 1

    def _add_parties(self) -> None:
        parties = self._draft.make_array("parties")
        for _ in range(self._added):
            self._draft.note("party-added", f"/parties/{len(parties)}")
            parties.append({})


def _party_references(draft: Draft) -> Iterator[int]:
    """Yield every index of a party that a vCon without sessions and events holds."""
    for _, dialog in draft.objects("dialog"):
        for name in ("parties", "originator", "transferee", "transferor", "transfer_target"):
            yield from indices_of(dialog.get(name))
        history = dialog.get("party_history")
        for entry in history if type(history) is list else ():
            if type(entry) is dict:
                yield from indices_of(entry.get("party"))
    for _, attachment in draft.objects("attachments"):
        yield from indices_of(attachment.get("party"))
