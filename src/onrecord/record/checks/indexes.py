"""How the parts of a vCon hang together: sessions and what they cover, recording sets, transfers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from onrecord.record.checks.context import Context, dialog_parties, event_sessions, indices
from onrecord.record.checks.graphs import components
from onrecord.record.vcon.event_types import KNOWN_EVENTS

MAX_LISTED = 20
"""Parties named in the data of one finding; the rest is told by their number."""

_CONSULTING = ("consultation-start", "consultative-transfer", "transfer-abandoned")
_SETTABLE = ("recording", "recording-set", "text")
_REACHABLE = (*_SETTABLE, "incomplete")


class _Span:
    """A session's interval in nanoseconds, its parties, and what was found missing."""

    __slots__ = ("end", "listed", "missing", "start", "uncovered")

    def __init__(self, context: Context, session: Mapping[str, Any]) -> None:
        self.start = context.instants.ns(session.get("start"))
        length = _length(session.get("duration"))
        self.end = self.start + length if self.start is not None and length is not None else None
        parties = session.get("parties")
        self.listed: frozenset[int] | None = (
            frozenset(indices(parties)) if isinstance(parties, list) else None
        )
        self.missing: set[int] = set()
        self.uncovered = False

    def cover(self, start: int | None, end: int | None, parties: Iterable[int]) -> None:
        """Take a dialog or event of the session."""
        if start is not None and self.start is not None and end is not None:
            low, high = (start, end) if start <= end else (end, start)
            if low < self.start or (self.end is not None and high > self.end):
                self.uncovered = True
        if self.listed is not None:
            for party in parties:
                if party not in self.listed:
                    self.missing.add(party)


def _length(duration: Any) -> int | None:
    if type(duration) is int:
        return duration * 1_000_000_000 if -(10**15) < duration < 10**15 else None
    if type(duration) is float and -1e15 < duration < 1e15:
        return round(duration * 1_000_000) * 1_000
    return None


def check_indexes(context: Context) -> None:
    """Check sessions against their dialogs and events, and the references between dialogs and events."""
    _check_session_references(context)
    spans = {index: _Span(context, session) for index, session in context.elements("sessions")}
    referenced = _dialog_sessions(context)
    for index, dialog in context.elements("dialog"):
        sessions = referenced.get(index, ())
        if not sessions and context.sizes["sessions"]:
            context.add("dialog-unreferenced", f"/dialog/{index}")
        if sessions:
            start = context.instants.ns(dialog.get("start"))
            length = _length(dialog.get("duration"))
            end = start if start is None or length is None else start + length
            parties = dialog_parties(dialog)
            for session in sessions:
                if session in spans:
                    spans[session].cover(start, end, parties)
        _check_dialog(context, index, dialog)
    for _, event in context.elements("events"):
        name = event.get("type")
        if type(name) is str and name in KNOWN_EVENTS:
            moment = context.instants.ns(event.get("time"))
            party = indices(event.get("party"))
            for session in event_sessions(event):
                if session in spans:
                    spans[session].cover(moment, moment, party)
    for index, span in spans.items():
        if span.uncovered:
            context.add("session-time", f"/sessions/{index}")
        if span.missing:
            data = {"parties": sorted(span.missing)[:MAX_LISTED]}
            context.add("session-party-missing", f"/sessions/{index}/parties", data=data)
    _check_transfer_events(context)


def _dialog_sessions(context: Context) -> dict[int, list[int]]:
    """Return the sessions that list each dialog."""
    found: dict[int, list[int]] = {}
    for index, session in context.elements("sessions"):
        for dialog in set(indices(session.get("dialog"))):
            found.setdefault(dialog, []).append(index)
    return found


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


def _check_dialog(context: Context, index: int, dialog: Mapping[str, Any]) -> None:
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
        for name, allowed in (
            ("original", _SETTABLE),
            ("consultation", _REACHABLE),
            ("target_dialog", _REACHABLE),
        ):
            for target in indices(dialog.get(name)):
                other = context.element("dialog", target)
                if other and other.get("type") not in allowed:
                    context.add("transfer-reference-type", f"/dialog/{index}/{name}")


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
    """Later events of one transfer name the consultation session that its consultation-start named."""
    consultations: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for index, event in context.elements("events"):
        name = event.get("type")
        if name not in _CONSULTING:
            continue
        transfer = (event_sessions(event), indices(event.get("party")), indices(event.get("transferee")))
        named = indices(event.get("consultation"))
        if name == "consultation-start":
            consultations[transfer] = named
        elif named and consultations.get(transfer, named) != named:
            context.add("transfer-consultation-mismatch", f"/events/{index}")
