"""One session of OpenCode, written in its order: the session, its messages with their parts, what has no message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.opencode.context import Context, Links
from onrecord.record.logs.opencode.frames import first_entry
from onrecord.record.logs.opencode.items import Item, Store, Told
from onrecord.record.logs.opencode.members import SESSION, look_over
from onrecord.record.logs.opencode.messages import MessageWriter
from onrecord.record.logs.opencode.units import host_of, without_shares
from onrecord.record.logs.sessions import Entry
from onrecord.record.logs.usage import opencode

_WITH_HOME: Final = frozenset(
    ("id", "title", "directory", "version", "parentID", "cost", "tokens", "share", "revert")
)
_TEXTS: Final = ("id", "directory", "version", "parentID", "title")
_DEFAULT_TITLE: Final = re.compile(r"(?:New|Child) session - \d{4}-")
_BY_MODEL: Final = 1
_BY_PROGRAM: Final = 2


class SessionWriter:
    """Writes one session."""

    def __init__(self, store: Store, told: Told, links: Links) -> None:
        self.store = store
        self.trace = store.trace
        self.told = told
        self.session = self.trace.session(told.id)
        self.context = Context(store, self.session, links)
        self.messages = MessageWriter(self.context)

    def write(self) -> None:
        """Write everything, in order."""
        told, messages = self.told, self.messages
        for item, parts in told.messages:
            if item.id is not None:
                messages.first_entries[item.id] = first_entry(item, parts)
        self._link_by_call()
        start = None if told.session is None else self._write_session(told.session)
        self._write_others(None)
        for item, parts in told.messages:
            messages.write(item, parts)
            self._write_others(item.message)
        for part in told.orphans:
            messages.write_orphan(part)
        for message in list(told.others):
            self._write_others(message)
        if start is not None:
            self._write_end(start)
        if messages.superseded:
            self.trace.findings.count("superseded", messages.superseded, action="flagged as superseded")
        if self.context.attribution is not None:
            self.session.file_attribution += self.context.attribution.result()

    def _write_session(self, item: Item) -> Entry | None:
        record = self.store.record(item)
        value, trace, session = record.value, self.trace, self.session
        share = value.get("share")
        if share is not None:
            trace.findings.add(
                "share-secret-dropped", record=record.number, action="left out; the host is kept"
            )
        look_over(value, SESSION, trace.findings, record=record.number, where="session")
        if not self.context.is_new("session", item):
            return None
        entry = session.entry(
            record, id=item.id, time=self.context.time(record, value.get("time"), "created")
        )
        data = {name: member for name, member in value.items() if name not in _WITH_HOME}
        for name in _TEXTS:
            if value.get(name) is not None and type(value[name]) is not str:
                data[name] = value[name]
        data, dropped = without_shares(data)
        if dropped:
            trace.findings.add(
                "share-secret-dropped",
                record=record.number,
                count=dropped,
                action="left out; the host is kept",
            )
        host = host_of(share.get("url")) if type(share) is dict else None
        if host is not None:
            data["share"] = {"host": host}
        if opencode(value.get("tokens"), cost=value.get("cost")).is_empty:
            data |= {name: value[name] for name in ("tokens", "cost") if value.get(name) is not None}
        session.begin(entry, data)
        version = value.get("version")
        if type(version) is str and version:
            session.agent.cli_version = version
            trace.generation = trace.generation or version
        session.saw_working_dir(entry, value.get("directory"))
        self._link_by_parent(value)
        title = value.get("title")
        if type(title) is str and title:
            rank = _BY_PROGRAM if _DEFAULT_TITLE.match(title) else _BY_MODEL
            session.title(entry, title, rank=rank, data={"title": title})
        if type(value.get("revert")) is dict:
            self.messages.revert = value["revert"]
        return entry

    def _write_end(self, entry: Entry) -> None:
        """Write what the session's record says about all of it."""
        value = entry.record.value
        updated = self.context.time(entry.record, value.get("time"), "updated")
        usage = opencode(value.get("tokens"), cost=value.get("cost"))
        if not usage.is_empty:
            native = {name: value[name] for name in ("tokens", "cost") if name in value}
            entry.token_count("session", usage, native, time=updated)
        revert = value.get("revert")
        if revert is not None:
            entry.event(event_types.REWIND, revert, time=updated)
            if not self.messages.is_taken_back:
                self.trace.findings.add(
                    "rewind-target-missing", record=entry.record.number, action="nothing is flagged"
                )

    def _write_others(self, message: str | None) -> None:
        for item in self.told.others.pop(message, ()):
            record = self.store.record(item)
            entry = self.context.entry(record, time=self.context.row_time(item))
            entry.event(item.event_type, record.value)

    # -- sub-agents

    def _link_by_call(self) -> None:
        """Link a session to the call that names it, which was written before."""
        parent, call = self.context.links.calls.get(self.told.id, (None, None))
        if parent is not None and self.session.parent_id is None:
            self.session.child_of(parent, call_id=call)
            self.session.format = "autonomous"

    def _link_by_parent(self, value: Mapping[str, Any]) -> None:
        parent, session = value.get("parentID"), self.session
        if type(parent) is not str or not parent or parent == session.agent_session_id:
            return
        named, call = self.context.links.calls.get(self.told.id, (None, None))
        session.child_of(parent, call_id=call if named == parent else None)
        session.format = "autonomous"
        if type(value.get("agent")) is str:
            session.agent.name = value["agent"]
        if self.trace.run.known_session(session.format_id, parent) is None:
            session.start_data["parent"] = {"agent_session_id": parent}


def write_all(store: Store) -> None:
    """Write all sessions of a source."""
    links = Links()
    for told in store.told():
        SessionWriter(store, told, links).write()
