"""Tells a vCon: reads sessions, messages, calls and decisions, and puts each in its place.

Nothing is refused. What is missing or wrong is left out, and what cannot be told is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from onrecord.record.calls import Call, read_calls
from onrecord.record.operations import read_operations
from onrecord.record.story.entries import Entries
from onrecord.record.story.facts import (
    agent_name,
    analyses,
    attachments,
    party_lines,
    prior,
    removed,
    totals,
    unreadable,
)
from onrecord.record.story.model import Entry, Item, OperationStory, SessionStory, Story
from onrecord.record.story.steps import Steps
from onrecord.record.story.timeline import Timeline, objects
from onrecord.record.story.tree import entry_tree, session_tree
from onrecord.record.story.words import party_name, party_of
from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.views import Session, text_of


def tell(vcon: Vcon) -> Story:
    """Return the story of a vCon, of any version and in whatever state it is."""
    with paused_collection(len(vcon.raw or b"")):
        return _Teller(vcon).story()


class _Teller:
    def __init__(self, vcon: Vcon) -> None:
        self.vcon = vcon
        self.members = vcon.members
        self.instants = Instants()
        self.parties = [
            party_name(party, index) for index, party in enumerate(objects(self.members, "parties"))
        ]
        self.dialogs = objects(self.members, "dialog")
        self.events = objects(self.members, "events")
        self.timeline = Timeline(self.events, "time", self.instants)
        self.prior = prior(self.members)
        self.words = Entries(
            self.parties,
            self.instants,
            is_redacted=self.prior is not None and self.prior["kind"] == "redacted",
        )

    def story(self) -> Story:
        """Tell everything."""
        history = read_operations(self.events, extensions=self.vcon.extensions, instants=self.instants)
        calls = read_calls(
            self.events, history.operations, extensions=self.vcon.extensions, instants=self.instants
        )
        steps = Steps(self.events, history, timeline=self.timeline, parties=self.parties)
        operations = steps.operations(calls)
        standing = steps.standing()
        entries = tuple(
            sorted(
                self._entries(calls, operations, history.standing),
                key=lambda entry: (entry.ns, _place_in_log(entry.members)),
            )
        )
        sessions, order, elsewhere = self._sessions(entries, operations)
        return Story(
            uuid=self.vcon.uuid,
            version=self.vcon.version,
            created_at=self.vcon.created_at,
            updated_at=text_of(self.members.get("updated_at")),
            subject=text_of(self.members.get("subject")),
            extensions=self.vcon.extensions,
            recorded_by=agent_name(self.members.get("recording_agent")),
            prior=self.prior,
            parties=tuple(party_lines(self.members)),
            sessions=sessions,
            order=order,
            elsewhere=elsewhere,
            standing=standing,
            operations=operations,
            entries=entries,
            calls=calls,
            attachments=tuple(attachments(self.members, self.parties)),
            analyses=tuple(analyses(self.members)),
            counts=Counter(
                event["type"]
                for event in self.events
                if type(event) is dict and type(event.get("type")) is str
            ),
            totals=totals(self.dialogs, calls, self.timeline, self.instants, events=self.events),
            removed=removed(self.members),
            unreadable=unreadable(self.members),
        )

    def _entries(
        self, calls: Sequence[Call], operations: Sequence[OperationStory], standing: Sequence[Any]
    ) -> Iterator[Entry]:
        """Yield everything that no operation tells. A result is told with its call, a call with its operation."""
        of_dialog = self._sessions_of_dialogs()
        starts = Timeline(self.dialogs, "start", self.instants)
        for index, dialog in enumerate(self.dialogs):
            if type(dialog) is dict and dialog:
                own = tuple(of_dialog.get(index, ()))
                yield self.words.of_dialog(index, dialog, ns=starts.ns[index], sessions=own)
                yield from self.words.of_history(index, dialog, sessions=own[:1])
        stories = {operation.summary.operation_id: operation for operation in operations}
        told = {line.index for operation in operations for line in operation.lines}
        told.update(one.event for one in standing)
        made: dict[int, Call] = {}
        for call in calls:
            if call.call is not None:
                made[call.call] = call
            if call.result is not None and call.call is not None:
                told.add(call.result)
        for index, event in enumerate(self.events):
            if type(event) is not dict or not event or index in told:
                continue
            if index not in made:
                yield self.words.of_event(index, event, ns=self.timeline.ns[index])
                continue
            call = made[index]
            yield self.words.of_call(
                call,
                event,
                None if call.result is None else self.events[call.result],
                timeline=self.timeline,
                operation=None if call.operation is None else stories[call.operation.operation_id],
            )

    def _sessions_of_dialogs(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for session in self.vcon.sessions:
            for index in session.dialogs:
                own = found.setdefault(index, [])
                if not own or own[-1] != session.index:
                    own.append(session.index)
        return found

    def _sessions(
        self, entries: Sequence[Entry], operations: Sequence[OperationStory]
    ) -> tuple[tuple[SessionStory, ...], tuple[int, ...], SessionStory | None]:
        """Put every item into its first session, and return the sessions; without any, one over everything (D-05)."""
        sessions = self.vcon.sessions
        size = len(sessions)
        called = {entry.operation.summary.operation_id for entry in entries if entry.operation is not None}
        items: list[list[Item]] = [[] for _ in range(size)]
        elsewhere: list[Item] = []
        alone = [one for one in operations if one.summary.operation_id not in called]
        everything: list[Item] = [*entries, *alone]
        for item in everything:
            first = next((index for index in item.sessions if 0 <= index < size), None)
            (elsewhere if first is None else items[first]).append(item)
        counted = Counter(index for event in self.vcon.events for index in set(event.sessions))
        ids = [{item.entry_id for item in own if isinstance(item, Entry)} for own in items]
        tree = session_tree([session.references for session in sessions])
        told = tuple(
            self._session(
                session,
                items[session.index],
                parent=(parent := tree.parent.get(session.index)),
                spawned_by=None if parent is None else _spawning(items[session.index], ids[parent]),
                depth=tree.depth[session.index],
                entries=counted[session.index] + len(set(session.dialogs)),
            )
            for session in sessions
        )
        if not elsewhere and (size or not self.dialogs):
            return told, tree.order, None
        placed, roots = entry_tree(elsewhere, _answers(elsewhere))
        rest = SessionStory(
            index=None,
            is_virtual=not size,
            names=tuple(self.parties) if not size else (),
            start=next((one.item.time for one in placed), None) if not size else None,
            dialogs=len(self.dialogs) if not size else 0,
            entries=len(elsewhere),
            roots=roots,
            items=placed,
        )
        return (told, tree.order, rest) if size else ((rest,), (0,), None)

    def _session(
        self,
        session: Session,
        items: Sequence[Item],
        *,
        parent: int | None,
        spawned_by: str | None,
        depth: int,
        entries: int,
    ) -> SessionStory:
        placed, roots = entry_tree(items, _answers(items))
        environment = session.members.get("environment")
        return SessionStory(
            index=session.index,
            start=session.start,
            duration=session.duration,
            parties=session.parties,
            names=tuple(party_of(self.parties, party) for party in session.parties),
            agent_session_id=session.agent_session_id,
            format=session.text("format"),
            working_dir=text_of(environment.get("working_dir")) if type(environment) is dict else None,
            dialogs=len(session.dialogs),
            references=session.references,
            parent=parent,
            spawned_by=spawned_by,
            depth=depth,
            entries=entries,
            roots=roots,
            children=tuple(index for index, kind in session.references if kind == "child"),
            items=placed,
        )


def _answers(items: Sequence[Item]) -> dict[str, str]:
    """Return the entry ids of the results in a session, each with that of its call (record.md D-37)."""
    return {
        own: item.entry_id
        for item in items
        if isinstance(item, Entry)
        and item.result is not None
        and item.entry_id is not None
        and (own := text_of(item.result.get("entry_id"))) is not None
    }


def _spawning(items: Sequence[Item], ids: Collection[str | None]) -> str | None:
    """Return the entry of the parent session that an entry of this one answers, or None."""
    for item in items:
        if isinstance(item, Entry) and item.parent_id is not None and item.parent_id in ids:
            return item.parent_id
    return None


def _place_in_log(members: Mapping[str, Any]) -> tuple[int, ...]:
    """Return file, record and block of the native log that an object was made of: its order where times are equal."""
    own = members.get("onrecord")
    source = own.get("src") if type(own) is dict else None
    if type(source) is list and len(source) == 3 and all(type(number) is int for number in source):
        return tuple(source)
    return ()
