"""What the writers of one session share: its entries, what was told before, and the times of the log."""

from __future__ import annotations

from typing import Any, Literal

from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.opencode.items import Item, Kind, Store
from onrecord.record.logs.opencode.tools import Changes
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import NO_TIME, Entry, NativeSession


class Links:
    """What task calls say about the sessions that they started, by the id of those."""

    def __init__(self) -> None:
        self.prompts: dict[str, set[str]] = {}
        """Prompts that the agent above gave to a session."""
        self.calls: dict[str, tuple[str, str | None]] = {}
        """Session and call that started a session."""


class Context:
    """One session while it is written."""

    def __init__(self, store: Store, session: NativeSession, links: Links) -> None:
        self.store = store
        self.trace = store.trace
        self.session = session
        self.links = links
        self.attribution: Attribution | None = None
        self._seen = store.trace.run.seen(session.format_id)
        self._changes: Changes | None = None

    def entry(
        self,
        record: Record,
        *,
        id: str | None = None,
        parent: str | None = None,
        time: Any = NO_TIME,
        time_from: Literal["message"] | None = None,
    ) -> Entry:
        """Begin an entry; the session begins with its first one if there is no record of the session."""
        entry = self.session.entry(record, id=id, parent=parent, time=time, time_from=time_from)
        if not self.session.has_begun:
            self.session.begin(entry)
        return entry

    def is_new(self, kind: Kind, item: Item) -> bool:
        """Say whether no other source of the run told of this; of two versions the one told first stays."""
        if item.id is None:
            return True
        key = hash((kind, item.id))
        known = self._seen.get(key)
        if known is None:
            self._seen[key] = item.digest
            return True
        if known == item.digest:
            self.trace.duplicate(item.number, "duplicate-entry", of="another source", report=True)
        else:
            self.trace.findings.add(
                "duplicate-entry-differs", record=item.number, action="the version told first is kept"
            )
            self.trace.duplicate(item.number, "older-version", of="another source")
        return False

    def time(self, record: Record, holder: Any, name: str) -> Any:
        """Return a native time that can be read, `NO_TIME` otherwise."""
        if type(holder) is not dict or name not in holder:
            return NO_TIME
        if self.store.ns(holder[name]) is None:
            self.trace.findings.add("time-missing", record=record.number, action="derived")
            return NO_TIME
        return holder[name]

    def row_time(self, item: Item) -> Any:
        """Return the time of a row, or of the event that told something."""
        return NO_TIME if self.store.ns(item.time) is None else item.time

    def changes(self) -> Changes:
        """Return what was changed in files so far."""
        if self._changes is None:
            session = self.session
            root = session.root_dir or session.working_dir
            self.attribution = Attribution(root, self.trace.findings, base=session.working_dir)
            self._changes = Changes(self.attribution)
        return self._changes
