"""The records of one session of Gemini CLI, written in the order of their first appearance."""

from __future__ import annotations

from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.gemini import places
from onrecord.record.logs.gemini.links import Copies, Links
from onrecord.record.logs.gemini.message import Message
from onrecord.record.logs.gemini.messages import Messages
from onrecord.record.logs.gemini.replay import Replay
from onrecord.record.logs.gemini.shelf import Place
from onrecord.record.logs.reading.records import Record, Unreadable
from onrecord.record.logs.sessions import NO_TIME, NativeSession
from onrecord.record.logs.trace import Trace

_INTERACTIVE: Final = frozenset(["main", "chat"])
_SET: Final = frozenset(["lastUpdated", "messages", "summary", "directories", "memoryScratchpad"])


class Timeline:
    """Writes the timeline of one session."""

    def __init__(self, trace: Trace, session: NativeSession, replay: Replay, links: Links) -> None:
        self._trace = trace
        self._session = session
        self._replay = replay
        self._links = links

    def write(self) -> None:
        """Write everything."""
        trace, replay = self._trace, self._replay
        messages: Messages | None = None
        superseded = 0
        known = self._links.copies(self._session)
        for item in replay.timeline:
            if isinstance(item, Unreadable):
                for _ in trace.accepted(iter([item])):
                    pass
            elif isinstance(item, Message):
                if item.is_copy:
                    continue
                if messages is None:
                    self._links.join(self._session, trace)
                    messages = Messages(self._session, replay, known=known, spawned=self._spawned)
                is_equal = known.is_equal(item)
                if is_equal:
                    if item.is_superseded:
                        self._supersede(item)
                    trace.findings.count("duplicate-entry", record=item.record, action="skipped as duplicate")
                    trace.duplicate(item.record, "duplicate-entry")
                    continue
                if is_equal is False:
                    trace.findings.add(
                        "duplicate-entry-differs", record=item.record, action="what is new in it was added"
                    )
                superseded += item.is_superseded
                messages.write(item, is_again=is_equal is False)
            else:
                self._event(*item, known=known)
        if messages is not None:
            messages.edits.finish()
        if superseded:
            trace.findings.count("superseded", superseded, action="kept with flag superseded")
        if replay.restored:
            trace.findings.count(
                "checkpoint-restored", replay.restored, action="the richest version of each was kept"
            )
        if replay.last_heartbeat is not None and self._session.has_begun:
            self._session.start_data["last_heartbeat"] = replay.last_heartbeat

    def _spawned(self, agent: str, call_id: str) -> None:
        self._links.spawned(self._session, agent, call_id)

    def _supersede(self, message: Message) -> None:
        """Mark what an earlier file has told before the rewind."""
        node = self._session.node_of(message.id) if message.id is not None else None
        if node is not None:
            self._session.flag_entry(node, "superseded")

    def _event(self, record: Record, place: Place, *, known: Copies) -> None:
        value = self._replay.shelf.get(place)
        if known.is_event_told(value, file=self._trace.file_number):
            self._trace.findings.count("duplicate-entry", record=record.number, action="skipped as duplicate")
            self._trace.duplicate(record, "duplicate-entry")
            return
        if "$checkpoint" in value:
            self._set(record, value["$set"], checkpoint=value["$checkpoint"])
        elif isinstance(value.get("$set"), dict) and len(value) == 1:
            self._set(record, value["$set"])
        elif "$rewindTo" in value and len(value) == 1:
            self._session.entry(record).event(event_types.REWIND, value)
        elif "$odd" in value and len(value) == 1:
            self._session.entry(record).event("message", value["$odd"])
        elif "sessionId" in value and "type" not in value:
            self._begin(record, value)
        else:
            kind = next((name for name in value if name.startswith("$")), None) or value.get("type")
            shown = kind[:64] if isinstance(kind, str) and kind else "none"
            self._trace.findings.add(
                "unknown-record-type", record=record.number, name=shown, action="kept as system-event"
            )
            time = value.get("timestamp", NO_TIME)
            self._session.entry(record, time=time).event(kind, value)

    def _begin(self, record: Record, value: dict[str, Any]) -> None:
        session = self._session
        kind = value.get("kind")
        if kind == "subagent":
            session.format = "autonomous"
            session.is_child = True
            parent = places.parent_of(self._trace.path)
            if parent is not None and parent != session.agent_session_id:
                session.child_of(parent)
        elif isinstance(kind, str) and kind in _INTERACTIVE:
            session.format = "interactive"
        self._links.join(session, self._trace)
        entry = session.entry(record, time=value.get("startTime", NO_TIME))
        session.begin(entry, value)
        directory = places.working_dir(self._trace.path, value)
        session.saw_working_dir(entry, directory)
        if isinstance(value.get("summary"), str):
            session.title(entry, value["summary"], rank=2, data={"summary": value["summary"]}, block=1)

    def _set(
        self, record: Record, changes: dict[str, Any], *, checkpoint: dict[str, Any] | None = None
    ) -> None:
        """Write what `$set` sets, each as an event of its own."""
        session, block = self._session, 0
        entry = session.entry(record, time=changes.get("lastUpdated", NO_TIME))
        rest = {name: member for name, member in changes.items() if name not in _SET or name == "messages"}
        for name in rest:
            self._trace.findings.add(
                "unknown-member", name=f"$set.{name}"[:64], action="kept in onrecord.rest"
            )
        if "lastUpdated" in changes:
            rest["lastUpdated"] = changes["lastUpdated"]
        if checkpoint is not None:
            entry.event("checkpoint", checkpoint, rest=rest)
            rest, block = {}, 1
        for name, kind in (
            ("summary", event_types.TITLE),
            ("directories", event_types.WORKING_DIR_CHANGE),
            ("memoryScratchpad", "memory-scratchpad"),
        ):
            if name not in changes:
                continue
            data = {name: changes[name]}
            if kind == event_types.TITLE:
                session.title(entry, changes[name], rank=2, data=data, block=block, rest=rest)
            else:
                if name == "directories" and session.working_dir is None:
                    session.saw_working_dir(entry, places.first_directory(changes))
                entry.event(kind, data, block=block, rest=rest)
            rest, block = {}, block + 1
        if not block:
            entry.event("$set", changes)
