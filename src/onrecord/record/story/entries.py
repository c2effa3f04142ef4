"""Messages, recordings, calls and events in words: who did what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onrecord.record.calls import Call
from onrecord.record.story.model import Entry, OperationStory
from onrecord.record.story.timeline import BEFORE_ALL_DATES, Timeline
from onrecord.record.story.words import name, names, party_of, tokens
from onrecord.record.vcon.bodies import mediatype_of
from onrecord.record.vcon.event_types import KEY_EVENTS, TRANSFER_EVENTS
from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.views import Dialog, Event, index_of, indices_of, text_of


class Entries:
    """Makes the entries of a story."""

    def __init__(self, parties: Sequence[str], instants: Instants, *, is_redacted: bool) -> None:
        self._parties = parties
        self._instants = instants
        self._is_redacted = is_redacted

    def of_dialog(
        self, index: int, dialog: Mapping[str, Any], *, ns: int, sessions: tuple[int, ...]
    ) -> Entry:
        """Return a dialog as an entry."""
        kind = text_of(dialog.get("type")) or "dialog"
        who, what, details = self._dialog_words(kind, dialog)
        usage = tokens(dialog.get("token_usage"))
        duration = dialog.get("duration")
        return Entry(
            place="dialog",
            index=index,
            kind=kind,
            time=text_of(dialog.get("start")),
            ns=ns,
            who=who,
            what=what,
            details=(*details, usage) if usage else details,
            state=self._withheld(dialog, ("body", "url", "content_hash"))
            if kind in ("text", "recording")
            else None,
            took_ms=milliseconds(duration) or None,
            sessions=sessions,
            entry_id=text_of(dialog.get("entry_id")),
            parent_id=text_of(dialog.get("parent_id")),
            members=dialog,
        )

    def of_history(
        self, index: int, dialog: Mapping[str, Any], *, sessions: tuple[int, ...]
    ) -> Iterator[Entry]:
        """Yield the events that older versions keep in the dialog (record.md 1.3)."""
        for event in Dialog(index, dialog).party_history:
            kind = event.type or "event"
            ns = self._instants.ns(event.time)
            yield Entry(
                place="dialog",
                index=index,
                history_index=event.index,
                kind=kind,
                time=event.time,
                ns=BEFORE_ALL_DATES if ns is None else ns,
                who=party_of(self._parties, event.party),
                what=f"{kind} {name(event.button)}" if event.button and kind in KEY_EVENTS else kind,
                sessions=sessions,
                members={},
            )

    def of_event(self, index: int, event: Mapping[str, Any], *, ns: int) -> Entry:
        """Return an event of no operation as an entry."""
        kind = text_of(event.get("type")) or "event without type"
        return Entry(
            place="events",
            index=index,
            kind=kind,
            time=text_of(event.get("time")),
            ns=ns,
            who=party_of(self._parties, index_of(event.get("party"))),
            what=self._event_words(kind, event),
            details=tuple(_transfer_sessions(event)) if kind in TRANSFER_EVENTS else (),
            state=self._event_state(kind, event),
            sessions=Event(index, event).sessions,
            entry_id=text_of(event.get("entry_id")),
            parent_id=text_of(event.get("parent_id")),
            members=event,
        )

    def of_call(
        self,
        call: Call,
        event: Mapping[str, Any],
        result: Mapping[str, Any] | None,
        *,
        timeline: Timeline,
        operation: OperationStory | None,
    ) -> Entry:
        """Return a tool call with its result, and with the operation that the host recorded for it, as one entry."""
        assert call.call is not None
        took = None if call.result is None else timeline.took_ms(call.call, call.result)
        return Entry(
            place="events",
            index=call.call,
            kind="tool-call",
            time=text_of(event.get("time")),
            ns=timeline.ns[call.call],
            who=party_of(self._parties, index_of(event.get("party"))),
            what=self._event_words("tool-call", event),
            state=call.outcome if operation is None else None,
            took_ms=took if operation is None else None,
            sessions=Event(call.call, event).sessions,
            entry_id=text_of(event.get("entry_id")),
            parent_id=text_of(event.get("parent_id")),
            members=event,
            call=call,
            result=result,
            operation=operation,
        )

    def _dialog_words(self, kind: str, dialog: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
        """Return who, what and details: writer and addressees of a message, everybody in a recording or transfer."""
        parties = [party_of(self._parties, party) for party in indices_of(dialog.get("parties"))]
        if kind == "transfer":
            return self._transfer_words(dialog)
        if kind in ("recording", "recording-set"):
            words = kind
            if kind == "recording-set":
                words += f" of {len(indices_of(dialog.get('recordings')))}"
            mediatype = mediatype_of(dialog)
            return names(parties) or "unknown", words, (name(mediatype),) if mediatype else ()
        originator = index_of(dialog.get("originator"))
        who = (
            name(party_of(self._parties, originator))
            if originator is not None
            else name(parties[0] if parties else "unknown")
        )
        others = [party for party in parties if name(party) != who] if originator is not None else parties[1:]
        if others and kind in ("text", "incomplete"):
            who += f" → {names(others)}"
        if kind == "incomplete":
            return who, f"incomplete: {name(text_of(dialog.get('disposition')) or 'unknown')}", ()
        return who, name(kind), ()

    def _transfer_words(self, dialog: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
        transfer = Dialog(0, dialog)
        words = f"transfer of {self._first(transfer.transferee)}"
        target = self._first(transfer.transfer_target)
        if target != "unknown":
            words += f" to {target}"
        calls = tuple(
            f"{label} dialog {found[0]}"
            for label, found in (
                ("from", transfer.original),
                ("after", transfer.consultation),
                ("into", transfer.target_dialog),
            )
            if found
        )
        return self._first(transfer.transferor), words, calls

    def _first(self, parties: Sequence[int]) -> str:
        return name(party_of(self._parties, parties[0])) if parties else "unknown"

    def _event_words(self, kind: str, event: Mapping[str, Any]) -> str:
        if kind in KEY_EVENTS:
            return f"{kind} {name(text_of(event.get('button')) or '')}".rstrip()
        if kind in TRANSFER_EVENTS:
            view = Event(0, event)
            words = f"{kind}: {self._first(view.places('transferee'))}"
            if view.has("transfer_target"):
                words += f" to {self._first(view.places('transfer_target'))}"
            return words
        detail = {"tool-call": "tool_name", "system-event": "event_type", "reasoning": "subject"}.get(kind)
        text = text_of(event.get(detail)) if detail else None
        words = f"{name(kind)} {name(text)}" if text else name(kind)
        server, tool = text_of(event.get("server")), text_of(event.get("tool"))
        if kind == "policy-decision":
            words += f" about {name(text_of(event.get('operation')) or 'an operation')}"
        if server is not None:
            words += f" {name(server)}" + (f" › {name(tool)}" if tool is not None else "")
        return words

    def _event_state(self, kind: str, event: Mapping[str, Any]) -> str | None:
        if kind == "tool-result":
            return "failed" if event.get("is_error") is True else text_of(event.get("status"))
        if kind == "policy-decision":
            return text_of(event.get("decision"))
        if kind == "reasoning":
            if event.get("content") in (None, "") and text_of(event.get("encrypted")):
                return "encrypted"
            return self._withheld(event, ("content",))
        return None

    def _withheld(self, members: Mapping[str, Any], places: Sequence[str]) -> str | None:
        """Say that content was taken out, of a vCon that says it was redacted."""
        if not self._is_redacted or any(members.get(place) is not None for place in places):
            return None
        return "removed"


def _transfer_sessions(event: Mapping[str, Any]) -> Iterator[str]:
    for member, words in (("consultation", "consultation in session"), ("target_session", "into session")):
        session = index_of(event.get(member))
        if session is not None:
            yield f"{words} {session}"


def milliseconds(seconds: Any) -> int | None:
    """Return a duration in milliseconds, or None where it is no number of seconds."""
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e15:
        return None
    return int(seconds * 1_000)
