"""What a story is made of: parties, sessions with their entries in a tree, operations with their attempts.

Everything that people read is made from these, on a terminal and in `show --json`. Excerpts of content are made when
they are asked for, since of a long record few are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.record.calls import Call
from onrecord.record.operations import OperationSummary, StandingSummary
from onrecord.record.story.words import content_of

ATTENTION: Final = frozenset(
    ["failed", "errored", "denied", "unfinished", "not-performed", "error", "disallowed", "withheld"]
)
"""States of entries and operations that a reader of a long record wants to see before all others."""


_GAPS: Final = ("recording-policy", "recording-gap", "credentials-replaced")
"""System events that say what is not in the record (record.md D-38)."""


def known(**members: Any) -> dict[str, Any]:
    """Return the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Line:
    """One event of an operation: its time as written, what happened, the state after it, and findings about it."""

    index: int
    time: str | None
    what: str
    state: str | None
    took_ms: int | None
    note: str | None
    remarks: tuple[str, ...]
    members: Mapping[str, Any] = field(repr=False)

    @property
    def content(self) -> str | None:
        """Return an excerpt of the content."""
        return content_of(self.members)

    def to_json(self) -> dict[str, Any]:
        """Return the members that are known."""
        return known(
            event=self.index,
            time=self.time,
            what=self.what,
            state=self.state,
            took=self.took_ms,
            note=self.note,
            remarks=list(self.remarks) or None,
            content=self.content,
        )


@dataclass(frozen=True, slots=True)
class StandingStory:
    """A standing decision: when and why it was made, for whom, how often it was the one that counted."""

    summary: StandingSummary
    line: Line
    party: str
    governed: int

    def to_json(self) -> dict[str, Any]:
        """Return the decision with its time and reason. `governed` counts attempts that started under it."""
        return {**self.line.to_json(), **self.summary.to_json(), "governed": self.governed}


@dataclass(frozen=True, slots=True)
class OperationStory:
    """An operation and its events in order of time; `call` is the model's view of it, if that was recorded."""

    summary: OperationSummary
    lines: tuple[Line, ...]
    who: str
    ns: int
    sessions: tuple[int, ...]
    took_ms: int | None = None
    """From its first tool-invocation to its last event, if its last attempt has ended."""
    call: Call | None = None

    @property
    def time(self) -> str | None:
        """Return the time of its first event."""
        return self.lines[0].time if self.lines else None

    @property
    def needs_attention(self) -> bool:
        """Say whether it went otherwise than a call that is allowed, answered and done."""
        return (
            self.summary.outcome in ATTENTION
            or self.summary.decision == "disallowed"
            or len(self.summary.attempts) > 1
            or any(attempt.late for attempt in self.summary.attempts)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the summary with the events."""
        document = {
            **self.summary.to_json(),
            "who": self.who,
            "took": self.took_ms,
            "sessions": list(self.sessions),
        }
        if self.call is not None:
            document["tool_call"] = known(call=self.call.call, result=self.call.result)
        return {**document, "events": [line.to_json() for line in self.lines]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message, or an event that belongs to no operation; a tool call with its result is one entry.

    `place` is "dialog" or "events", the array in which `index` counts. `operation` is the host's view of a call.
    """

    place: str
    index: int
    kind: str
    time: str | None
    ns: int
    who: str
    what: str
    details: tuple[str, ...] = ()
    state: str | None = None
    took_ms: int | None = None
    sessions: tuple[int, ...] = ()
    entry_id: str | None = None
    parent_id: str | None = None
    history_index: int | None = None
    members: Mapping[str, Any] = field(repr=False)
    call: Call | None = None
    result: Mapping[str, Any] | None = field(default=None, repr=False)
    operation: OperationStory | None = None

    @property
    def content(self) -> str | None:
        """Return an excerpt of the content."""
        return content_of(self.members)

    @property
    def answer(self) -> str | None:
        """Return an excerpt of the result of a call."""
        return None if self.result is None else content_of(self.result)

    @property
    def needs_attention(self) -> bool:
        """Say whether it failed, was refused or withheld, or tells of a gap in the record."""
        return (
            (self.state or "").rpartition(": ")[2] in ATTENTION
            or self.kind == "incomplete"
            or (self.kind == "system-event" and self.members.get("event_type") in _GAPS)
            or (self.operation is not None and self.operation.needs_attention)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the members that are known."""
        return known(
            **{"dialog" if self.place == "dialog" else "event": self.index},
            party_history=self.history_index,
            time=self.time,
            type=self.kind,
            who=self.who,
            what=f"{self.who}: {', '.join((self.what, *self.details))}",
            state=self.state,
            took=self.took_ms,
            sessions=list(self.sessions),
            entry_id=self.entry_id,
            parent_id=self.parent_id,
            content=self.content,
            result=None if self.call is None else self.call.result,
            answer=self.answer,
            operation_id=None if self.operation is None else self.operation.summary.operation_id,
        )


Item = Entry | OperationStory


@dataclass(frozen=True, slots=True)
class Placed:
    """An item where the tree of its session has it; `depth` counts from 0 and grows only where there are branches."""

    item: Item
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStory:
    """A session with what happened in it. `index` is None for the virtual session, and for what is in no session."""

    index: int | None
    start: str | None = None
    duration: float | None = None
    parties: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    agent_session_id: str | None = None
    format: str | None = None
    working_dir: str | None = None
    dialogs: int = 0
    references: tuple[tuple[int, str | None], ...] = ()
    parent: int | None = None
    spawned_by: str | None = None
    """The entry of the parent session that the first entry of this one answers (record.md D-37)."""
    depth: int = 0
    is_virtual: bool = False
    entries: int = 0
    roots: tuple[str, ...] = ()
    children: tuple[int, ...] = ()
    items: tuple[Placed, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the session; `items` name, in the order of the story, what happened in it."""
        return {
            "index": self.index,
            **({"virtual": True} if self.is_virtual else {}),
            "start": self.start,
            "duration": self.duration,
            "parties": list(self.parties),
            "agent_session_id": self.agent_session_id,
            "format": self.format,
            "dialogs": self.dialogs,
            "references": [{"session": index, "type": kind} for index, kind in self.references],
            "parent": self.parent,
            "spawned_by": self.spawned_by,
            "children": list(self.children),
            "entries": self.entries,
            "roots": list(self.roots),
            "items": [_reference(placed) for placed in self.items],
        }


def _reference(placed: Placed) -> dict[str, Any]:
    item = placed.item
    if isinstance(item, OperationStory):
        return {"operation": item.summary.operation_id, "depth": placed.depth}
    document = {"dialog" if item.place == "dialog" else "event": item.index, "depth": placed.depth}
    return document if item.history_index is None else {**document, "party_history": item.history_index}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What a vCon tells."""

    uuid: str | None
    version: str
    created_at: str | None
    updated_at: str | None
    subject: str | None
    extensions: tuple[str, ...]
    recorded_by: str | None
    prior: Mapping[str, Any] | None
    parties: tuple[str, ...]
    sessions: tuple[SessionStory, ...]
    order: tuple[int, ...]
    """Positions in `sessions`, each after the session that contains it."""
    elsewhere: SessionStory | None
    """What happened in no session of the file."""
    standing: tuple[StandingStory, ...]
    operations: tuple[OperationStory, ...]
    entries: tuple[Entry, ...]
    calls: tuple[Call, ...]
    attachments: tuple[Mapping[str, Any], ...]
    analyses: tuple[Mapping[str, Any], ...]
    counts: Mapping[str, int]
    totals: Mapping[str, Any]
    removed: Mapping[str, int]
    unreadable: Mapping[str, int]

    def json_members(self) -> dict[str, Any]:
        """Return the members of the JSON form. Arrays that may be long are iterators, to be used once."""
        return {
            "uuid": self.uuid,
            "version": self.version,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "subject": self.subject,
            "extensions": list(self.extensions),
            "recorded_by": self.recorded_by,
            "prior": None if self.prior is None else dict(self.prior),
            "parties": list(self.parties),
            "sessions": (session.to_json() for session in self.sessions),
            "elsewhere": None if self.elsewhere is None else self.elsewhere.to_json(),
            "standing_decisions": (decision.to_json() for decision in self.standing),
            "operations": (operation.to_json() for operation in self.operations),
            "entries": (entry.to_json() for entry in self.entries),
            "tool_pairs": (
                call.to_json() for call in self.calls if call.call is not None or call.result is not None
            ),
            "attachments": (dict(attachment) for attachment in self.attachments),
            "analysis": (dict(analysis) for analysis in self.analyses),
            "counts": dict(self.counts),
            "totals": dict(self.totals),
            "removed": dict(self.removed),
            "unreadable": dict(self.unreadable),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of `show --json`. Times are as written, `took` is in milliseconds."""
        return {
            name: list(value) if isinstance(value, Iterator) else value
            for name, value in self.json_members().items()
        }
