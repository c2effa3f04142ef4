"""How what is added to a vCon hangs together with what is there, kept up to date instead of read anew each time.

What was observed is not judged here: that a call was answered twice is a fact, and `check` reports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.checks.context import Context, dialog_parties, event_sessions, indices
from onrecord.record.checks.indexes import check_relations, length_ns
from onrecord.record.vcon.instants import Instants

_Span = tuple[int, int]
"""First and last moment, in nanoseconds since 1970."""

_Name = tuple[str, Any, Any]
"""Something that must be unique: what it is, within what, and its value."""


class Relations:
    """What the sessions of one vCon must cover of events, and which names are taken."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members
        self._instants = Instants()
        self._covered: dict[int, _Span] = {}
        self._names: dict[_Name, tuple[str, int]] = {}
        self._dialogs: dict[int, set[int]] = {}
        self._consultations: dict[Any, tuple[int, ...]] = {}
        sessions_of: dict[int, list[int]] = {}
        for number, session in self._objects("sessions"):
            for dialog in set(indices(session.get("dialog"))):
                sessions_of.setdefault(dialog, []).append(number)
        for array in ("dialog", "events"):
            for index, item in self._objects(array):
                self.accept(array, item, index, sessions_of.get(index, ()))

    def _objects(self, name: str) -> list[tuple[int, dict[str, Any]]]:
        items = self._members.get(name)
        if not isinstance(items, list):
            return []
        return [(index, item) for index, item in enumerate(items) if isinstance(item, dict)]

    def check(
        self, context: Context, array: str, item: dict[str, Any], index: int, sessions: Sequence[int]
    ) -> None:
        """Report what does not go together with the rest. `sessions` are those that a dialog is put into."""
        pointer = f"/{array}/{index}"
        if array == "sessions":
            self._check_session(context, item, index)
            return
        if array not in ("dialog", "events"):
            return
        span = self._span(array, item)
        for number in _sessions_of(array, item, sessions):
            session = context.element("sessions", number)
            if session and span is not None and not self._covers(session, span):
                context.add("session-time", f"/sessions/{number}")
        for code, member, name in _names(array, item, sessions):
            if self._is_taken(name, (array, index)):
                context.add(code, f"{pointer}{member}")
        if array == "dialog":
            check_relations(context, index, item)
            _check_model(context, item, pointer)
        else:
            transfer, named = _consultation(item)
            if transfer and named and self._consultations.get(transfer, named) != named:
                context.add("transfer-consultation-mismatch", pointer)

    def accept(self, array: str, item: Mapping[str, Any], index: int, sessions: Sequence[int] = ()) -> None:
        """Remember what was added, or a session that was changed."""
        if array == "sessions":
            self._dialogs[index] = set()
            for number in indices(item.get("dialog")):
                dialog = self._dialog(number)
                if dialog is not None:
                    self.accept("dialog", dialog, number, (index,))
        if array not in ("dialog", "events"):
            return
        for number in sessions if array == "dialog" else ():
            self._dialogs.setdefault(number, set()).add(index)
        for _, _, name in _names(array, item, sessions):
            if not self._is_taken(name, (array, index)):
                self._names[name] = (array, index)
        if array == "events":
            self._accept_event(item)

    def _accept_event(self, event: Mapping[str, Any]) -> None:
        span = self._span("events", event)
        if span is not None:
            for number in event_sessions(event):
                known = self._covered.get(number, span)
                self._covered[number] = (min(known[0], span[0]), max(known[1], span[1]))
        transfer, named = _consultation(event)
        if transfer and event.get("type") == "consultation-start":
            self._consultations[transfer] = named

    def _is_taken(self, name: _Name, own: tuple[str, int]) -> bool:
        """Say whether another element has this name. A dialog may have been taken out of the session it had it in."""
        holder = self._names.get(name, own)
        if holder == own:
            return False
        if name[0] != "entry" or holder[0] != "dialog":
            return True
        return holder[1] in self._dialogs.get(name[1], ())

    def _dialog(self, index: int) -> dict[str, Any] | None:
        dialogs = self._members.get("dialog")
        item = dialogs[index] if isinstance(dialogs, list) and 0 <= index < len(dialogs) else None
        return item if isinstance(item, dict) else None

    def _check_session(self, context: Context, session: Mapping[str, Any], index: int) -> None:
        spans = [self._covered.get(index)]
        for number in indices(session.get("dialog")):
            dialog = self._dialog(number) or {}
            spans.append(self._span("dialog", dialog))
            for code, member, name in _names("dialog", dialog, (index,)):
                if self._is_taken(name, ("dialog", number)):
                    context.add(code, f"/dialog/{number}{member}")
        if not all(span is None or self._covers(session, span) for span in spans):
            context.add("session-time", f"/sessions/{index}")
        for position, child in _children(session):
            if child == index or self._leads_to(index, child):
                context.add("session-cycle", f"/sessions/{index}/sessions/{position}")

    def _leads_to(self, goal: int, start: int) -> bool:
        """Say whether a session contains another one, at whatever depth."""
        sessions = self._members.get("sessions")
        seen, work = {start}, [start]
        while work and isinstance(sessions, list):
            number = work.pop()
            session = sessions[number] if 0 <= number < len(sessions) else None
            for _, child in _children(session) if isinstance(session, dict) else ():
                if child == goal:
                    return True
                if child not in seen:
                    seen.add(child)
                    work.append(child)
        return False

    def _span(self, array: str, item: Mapping[str, Any]) -> _Span | None:
        start = self._instants.ns(item.get("start" if array == "dialog" else "time"))
        if start is None:
            return None
        length = length_ns(item.get("duration")) if array == "dialog" else None
        return start, start + (length or 0)

    def _covers(self, session: Mapping[str, Any], span: _Span) -> bool:
        start = self._instants.ns(session.get("start"))
        if start is None:
            return True
        length = length_ns(session.get("duration"))
        return start <= span[0] and (length is None or span[1] <= start + length)


def _sessions_of(array: str, item: Mapping[str, Any], sessions: Sequence[int]) -> Sequence[int]:
    return sessions if array == "dialog" else event_sessions(item)


def _children(session: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    references = session.get("sessions")
    for position, reference in enumerate(references if isinstance(references, list) else ()):
        if isinstance(reference, dict) and reference.get("type") == "child":
            for target in indices(reference.get("session")):
                yield position, target


def _names(array: str, item: Mapping[str, Any], sessions: Sequence[int]) -> Iterator[tuple[str, str, _Name]]:
    """Yield what an item calls its own: the finding for a second use, the member, and the name."""
    entry = item.get("entry_id")
    if type(entry) is str:
        for number in _sessions_of(array, item, sessions):
            yield "entry-id-duplicate", "/entry_id", ("entry", number, entry)
    if array != "events":
        return
    kind = item.get("type")
    if kind == "tool-invocation":
        operation, attempt = item.get("operation_id"), item.get("attempt")
        if type(operation) is str and type(attempt) is int:
            yield "operation-id-reused", "", ("operation", operation, attempt)
    elif kind in ("tool-call", "tool-result"):
        call = item.get("call_id")
        if type(call) is str:
            yield "call-id-duplicate", "/call_id", (AI_AGENT_EXTENSION, kind, call)


def _consultation(event: Mapping[str, Any]) -> tuple[Any, tuple[int, ...]]:
    """Return which transfer an event belongs to, None for other events, and the consultation session it names."""
    if event.get("type") not in ("consultation-start", "consultative-transfer", "transfer-abandoned"):
        return None, ()
    transfer = (event_sessions(event), indices(event.get("party")), indices(event.get("transferee")))
    return transfer, indices(event.get("consultation"))


def _check_model(context: Context, dialog: Mapping[str, Any], pointer: str) -> None:
    """A message that a model wrote is by a party that is an agent."""
    if dialog.get("model_id") is None or dialog.get("type") != "text":
        return
    parties = dialog_parties(dialog)
    author = context.element("parties", parties[0]) if parties else None
    if author and author.get("type") != "bot" and author.get("agent_meta") is None:
        context.add("model-id-on-user", f"{pointer}/model_id")
