"""How the parts of a vCon hang together: sessions and what they cover, recording sets, transfers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain
from typing import Any

from onrecord.record.checks.context import Context, dialog_parties, event_sessions, indices
from onrecord.record.checks.graphs import components
from onrecord.record.checks.groups import Group
from onrecord.record.checks.values import is_uint
from onrecord.record.vcon.event_types import KNOWN_EVENTS

MAX_LISTED = 20
"""Parties named in the data of one finding; the rest is told by their number."""

MAX_COMPARED = 10_000_000
"""Parties compared for the second and further sessions that a dialog is in: a part of a second. A file may put every
dialog into every session, which would take the product; the sessions that were not compared with everything say so."""

_BEFORE_ALL_DATES = -(1 << 80)
_CONSULTING = ("consultation-start", "consultative-transfer", "transfer-abandoned")
_SETTABLE = ("recording", "recording-set", "text")
_REACHABLE = (*_SETTABLE, "incomplete")
_TRANSFER_REFERENCES = {
    "original": _SETTABLE,
    "consultation": _REACHABLE,
    "target_dialog": _REACHABLE,
    "target-dialog": _REACHABLE,
}
_RELATIONS = frozenset(
    [
        "originator",
        "session_id",
        "recordings",
        "recording_set",
        *_TRANSFER_REFERENCES,
    ]
)
"""Members of a dialog that stand in a relation to others."""


class _Span:
    """What a session says it covers, and what its dialogs and events come to. Times are in nanoseconds."""

    __slots__ = ("_parties", "_reached", "lasts_until", "not_compared", "seen", "start")

    def __init__(self, context: Context, session: Mapping[str, Any]) -> None:
        self.start = context.instants.ns(session.get("start"))
        length = length_ns(session.get("duration"))
        self.lasts_until = self.start + length if self.start is not None and length is not None else None
        parties = session.get("parties")
        self._parties = frozenset(indices(parties)) if isinstance(parties, list) else None
        self._reached: tuple[int, int] | None = None
        self.seen: set[int] = set()
        self.not_compared = 0

    @property
    def is_exceeded(self) -> bool:
        """Say whether something began before the session or lasted longer."""
        if self.start is None or self._reached is None:
            return False
        first, last = self._reached
        return first < self.start or (self.lasts_until is not None and last > self.lasts_until)

    def reach(self, moments: Iterable[int | None]) -> None:
        """Take moments at which something of the session happened."""
        known = [moment for moment in moments if moment is not None]
        if known:
            if self._reached is not None:
                known += self._reached
            self._reached = min(known), max(known)

    @property
    def missing(self) -> list[int]:
        """Return the parties that take part and are not listed, the first ones."""
        return [] if self._parties is None else nsmallest(MAX_LISTED, self.seen - self._parties)


def length_ns(duration: Any) -> int | None:
    """Return a duration in nanoseconds, None for what is none."""
    if type(duration) is int:
        return duration * 1_000_000_000 if -(10**15) < duration < 10**15 else None
    if type(duration) is float and -1e15 < duration < 1e15:
        return round(duration * 1_000_000) * 1_000
    return None


def check_indexes(context: Context) -> None:
    """Check sessions against their dialogs and events, and the references between dialogs and events."""
    _check_session_references(context)
    spans = {index: _Span(context, session) for index, session in context.elements("sessions")}
    _take_dialogs(context, spans)
    _take_events(context, spans)
    for index, span in spans.items():
        if span.is_exceeded:
            context.add("session-time", f"/sessions/{index}")
        missing = span.missing
        if missing or span.not_compared:
            data: dict[str, Any] = {"parties": missing}
            if span.not_compared:
                data["dialogs_not_compared"] = span.not_compared
            context.add("session-party-missing", f"/sessions/{index}/parties", data=data)
    _check_transfer_events(context)


def _take_dialogs(context: Context, spans: Mapping[int, _Span]) -> None:
    starts = context.moments("dialog")
    ends = _ends(context, starts)
    parties = _parties_of_dialogs(context)
    listed: set[int] = set()
    free = MAX_COMPARED + sum(map(len, parties))
    for index, session in context.elements("sessions"):
        span = spans[index]
        own = [dialog for dialog in set(indices(session.get("dialog"))) if 0 <= dialog < len(starts)]
        listed.update(own)
        span.reach(map(starts.__getitem__, own))
        span.reach(map(ends.__getitem__, own))
        lists = [parties[dialog] for dialog in own]
        free -= sum(map(len, lists))
        if free >= 0:
            span.seen.update(chain.from_iterable(lists))
        else:
            span.not_compared = len(own)
    if context.sizes["sessions"] and len(listed) < len(starts):
        for index, dialog in enumerate(context.vcon["dialog"]):
            if index not in listed and type(dialog) is dict and dialog:
                context.add("dialog-unreferenced", f"/dialog/{index}")
    groups, rest = context.grouped("dialog")
    related = [index for group in groups if not _RELATIONS.isdisjoint(group.names) for index in group.indices]
    for index in (*related, *(index for index, _ in rest)):
        check_relations(context, index, context.vcon["dialog"][index])


def _parties_of_dialogs(context: Context) -> list[Sequence[int]]:
    found: list[Sequence[int]] = [()] * context.sizes["dialog"]
    groups, rest = context.grouped("dialog")
    for group in groups:
        column = group.columns.get("parties", ())
        if {list}.issuperset(map(type, column)) and {int}.issuperset(map(type, chain.from_iterable(column))):
            for index, parties in zip(group.indices, column, strict=False):
                found[index] = parties
        else:
            for index in group.indices:
                found[index] = dialog_parties(context.vcon["dialog"][index])
    for index, dialog in rest:
        found[index] = dialog_parties(dialog)
    return found


def _ends(context: Context, starts: Sequence[int | None]) -> list[int | None]:
    ends = list(starts)
    groups, rest = context.grouped("dialog")
    timed = [index for group in groups if "duration" in group.names for index in group.indices]
    for index in (*timed, *(index for index, _ in rest)):
        start = starts[index]
        if start is not None:
            ends[index] = start + (length_ns(context.vcon["dialog"][index].get("duration")) or 0)
    return ends


def _take_events(context: Context, spans: Mapping[int, _Span]) -> None:
    moments = context.moments("events")
    groups, rest = context.grouped("events")
    for group in groups:
        if group.type in KNOWN_EVENTS and not _take_alike(group, spans, moments):
            items = context.vcon["events"]
            for index in group.indices:
                _take_event(items[index], spans, moments[index])
    for index, event in rest:
        if type(event.get("type")) is str and event["type"] in KNOWN_EVENTS:
            _take_event(event, spans, moments[index])


def _take_event(event: Mapping[str, Any], spans: Mapping[int, _Span], moment: int | None) -> None:
    party: Any = event.get("party")
    taking_part = int(party) if is_uint(party) else None
    for session in event_sessions(event):
        span = spans.get(session)
        if span is not None:
            span.reach([moment])
            if taking_part is not None:
                span.seen.add(taking_part)


def _take_alike(group: Group, spans: Mapping[int, _Span], moments: Sequence[int | None]) -> bool:
    """Take events that are all of one session and name it in one way. Returns whether they are."""
    sessions = group.columns.get("sessions") or group.columns.get("session") or ()
    parties = group.columns.get("party", ())
    first = sessions[0] if sessions else None
    own = first[0] if type(first) is list and len(first) == 1 else first
    if type(own) is not int or sessions.count(first) < len(sessions):
        return False
    # What is equal to a list of one number may still hold true, or the number as a float.
    kinds = set(map(type, chain.from_iterable(sessions) if type(first) is list else sessions))
    if kinds != {int} or not {int}.issuperset(map(type, parties)):
        return False
    span = spans.get(own)
    if span is not None:
        span.reach(map(moments.__getitem__, group.indices))
        span.seen.update(filter(is_uint, set(parties)))
    return True


def _check_session_references(context: Context) -> None:
    children: dict[int, list[int]] = {}
    edges: list[tuple[int, int, int, Any]] = []
    for index, session in context.elements("sessions"):
        references = session.get("sessions")
        for position, reference in enumerate(references if isinstance(references, list) else ()):
            if isinstance(reference, dict):
                for target in indices(reference.get("session")):
                    edges.append((index, position, target, reference.get("type")))
                    if reference.get("type") == "child":
                        children.setdefault(index, []).append(target)
    component = components(children)
    for index, position, target, kind in edges:
        same = index in component and component[index] == component.get(target)
        if index == target or (kind == "child" and same):
            context.add("session-cycle", f"/sessions/{index}/sessions/{position}")


def check_relations(context: Context, index: int, dialog: Mapping[str, Any]) -> None:
    """Check what a dialog says of others: its originator, its session ids, its set, what it transfers."""
    originator, parties = dialog.get("originator"), dialog.get("parties")
    if originator is not None and parties is not None:
        first = dialog_parties(dialog)[:1]
        if first and indices(originator) == first:
            context.add("originator-redundant", f"/dialog/{index}/originator")
    kind = dialog.get("type")
    if "session_id" in dialog and dialog["session_id"] is not None:
        _check_session_id_shape(context, index, dialog)
    if kind == "recording-set":
        _check_recording_set(context, index, dialog)
    elif kind == "recording" and dialog.get("recording_set") is not None:
        for owner in indices(dialog["recording_set"]):
            other = context.element("dialog", owner)
            if other and (
                other.get("type") != "recording-set" or index not in context.targets(owner, "recordings")
            ):
                context.add("recording-set-mismatch", f"/dialog/{index}")
    elif kind == "transfer":
        for name, allowed in _TRANSFER_REFERENCES.items():
            if dialog.get(name) is not None:
                _check_reference(context, dialog[name], f"/dialog/{index}/{name}", allowed)


def _check_reference(context: Context, value: Any, pointer: str, allowed: tuple[str, ...]) -> None:
    """Check what a transfer refers to: one dialog, or in older versions several."""
    for position, target in enumerate(value if isinstance(value, list) else [value]):
        other = context.element("dialog", target) if is_uint(target) else None
        if other and other.get("type") not in allowed:
            place = f"{pointer}/{position}" if isinstance(value, list) else pointer
            context.add("transfer-reference-type", place)


def _check_recording_set(context: Context, index: int, dialog: Mapping[str, Any]) -> None:
    for member in indices(dialog.get("recordings")):
        other = context.element("dialog", member)
        if other and (
            other.get("type") != "recording" or context.targets(member, "recording_set") != {index}
        ):
            context.add("recording-set-mismatch", f"/dialog/{index}")


def _check_session_id_shape(context: Context, index: int, dialog: Mapping[str, Any]) -> None:
    shape = dialog["session_id"]
    if dialog.get("type") == "recording-set":
        fits = not isinstance(shape, list)
    else:
        fits = _same_shape(shape, dialog.get("parties"))
    if not fits:
        context.add("session-id-shape", f"/dialog/{index}/session_id")


def _same_shape(ids: Any, parties: Any) -> bool:
    if not isinstance(ids, list):
        return not isinstance(parties, list)
    if not isinstance(parties, list) or len(ids) != len(parties):
        return False
    for own, party in zip(ids, parties, strict=True):
        if isinstance(own, list) != isinstance(party, list):
            return False
        if isinstance(own, list) and len(own) != len(party):
            return False
    return True


def _check_transfer_events(context: Context) -> None:
    """Later events of one transfer name the consultation session that its consultation-start named.

    "Later" is by time, ties by index; an event without a date stands where the one before it in the array does.
    """
    moments = context.moments("events")
    in_time: list[tuple[int, int, Mapping[str, Any]]] = []
    last = _BEFORE_ALL_DATES
    for index, event in context.elements("events"):
        moment = moments[index]
        last = last if moment is None else moment
        if event.get("type") in _CONSULTING:
            in_time.append((last, index, event))
    consultations: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for _, index, taken in sorted(in_time, key=lambda entry: entry[:2]):
        transfer = (event_sessions(taken), indices(taken.get("party")), indices(taken.get("transferee")))
        named = indices(taken.get("consultation"))
        if taken["type"] == "consultation-start":
            consultations[transfer] = named
        elif named and (consultations.get(transfer) or named) != named:
            context.add("transfer-consultation-mismatch", f"/events/{index}")
