"""Typed views of a vCon's objects: names instead of keys, and tuples of indices whatever the spelling.

A view keeps the object as it was parsed in `members`. A member of the wrong type reads as absent; the checks report it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onrecord.record.vcon.bodies import has_body


def index_of(value: Any) -> int | None:
    """Return a member that is read as an index, or None."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None


def indices_of(value: Any) -> tuple[int, ...]:
    """Return the indices of a member that is one index or nested arrays of them, in order."""
    if type(value) is list:
        return tuple(index for item in value for index in indices_of(item))
    index = index_of(value)
    return () if index is None else (index,)


def text_of(value: Any) -> str | None:
    """Return a member that is a String, or None."""
    return value if type(value) is str else None


@dataclass(frozen=True, slots=True)
class View:
    """An object of a vCon: its index in its array and its members as parsed."""

    index: int
    members: Mapping[str, Any] = field(repr=False)

    @property
    def is_placeholder(self) -> bool:
        """Say whether redaction left nothing of it."""
        return not self.members

    def text(self, name: str) -> str | None:
        """Return a String member, or None."""
        return text_of(self.members.get(name))


@dataclass(frozen=True, slots=True)
class Party(View):
    """A person, agent or organization that takes part."""

    @property
    def name(self) -> str | None:
        """Return the name."""
        return self.text("name")

    @property
    def type(self) -> str | None:
        """Return person, bot, organization or another value."""
        return self.text("type")

    @property
    def agent_meta(self) -> Mapping[str, Any] | None:
        """Return Agent_Meta, which says that the party is an agent."""
        value = self.members.get("agent_meta")
        return value if type(value) is dict else None


@dataclass(frozen=True, slots=True)
class Session(View):
    """A span of the conversation."""

    @property
    def start(self) -> str | None:
        """Return the date at which it began, as written."""
        return self.text("start")

    @property
    def duration(self) -> float | None:
        """Return its length in seconds."""
        value = self.members.get("duration")
        return value if type(value) in (int, float) else None

    @property
    def parties(self) -> tuple[int, ...]:
        """Return the indices of its parties."""
        return indices_of(self.members.get("parties"))

    @property
    def dialogs(self) -> tuple[int, ...]:
        """Return the indices of its dialogs."""
        return indices_of(self.members.get("dialog"))

    @property
    def agent_session_id(self) -> str | None:
        """Return the agent's own id of the session."""
        return self.text("agent_session_id")

    @property
    def references(self) -> tuple[tuple[int, str | None], ...]:
        """Return the sessions it names, each with the type of the reference."""
        value = self.members.get("sessions")
        return tuple(
            (index, text_of(item.get("type")))
            for item in (value if type(value) is list else ())
            if type(item) is dict and (index := index_of(item.get("session"))) is not None
        )


@dataclass(frozen=True, slots=True)
class Dialog(View):
    """A recording, a message, a transfer or a call that came to nothing."""

    @property
    def type(self) -> str | None:
        """Return the kind of dialog."""
        return self.text("type")

    @property
    def start(self) -> str | None:
        """Return the date at which it began, as written."""
        return self.text("start")

    @property
    def parties(self) -> tuple[int, ...]:
        """Return the indices of its parties, all channels in order; for a message the writer comes first."""
        return indices_of(self.members.get("parties"))

    @property
    def has_body(self) -> bool:
        """Say whether it has inline content."""
        return has_body(self.members)


@dataclass(frozen=True, slots=True)
class Event(View):
    """Something that happened."""

    @property
    def type(self) -> str | None:
        """Return the event type."""
        return self.text("type")

    @property
    def time(self) -> str | None:
        """Return the date, as written."""
        return self.text("time")

    @property
    def party(self) -> int | None:
        """Return the index of the party; for tools that is the agent, also for answers."""
        return index_of(self.members.get("party"))

    @property
    def sessions(self) -> tuple[int, ...]:
        """Return the indices of its sessions, under whichever name they stand."""
        value = self.members.get("sessions")
        return indices_of(self.members.get("session") if value is None else value)

    @property
    def operation_id(self) -> str | None:
        """Return the operation that a tool event belongs to."""
        return self.text("operation_id")

    @property
    def attempt(self) -> int | None:
        """Return the attempt that a tool event belongs to."""
        return index_of(self.members.get("attempt"))

    @property
    def has_body(self) -> bool:
        """Say whether it has inline content."""
        return has_body(self.members)


@dataclass(frozen=True, slots=True)
class Attachment(View):
    """A file that belongs to the conversation."""

    @property
    def party(self) -> int | None:
        """Return the index of who provided it."""
        return index_of(self.members.get("party"))

    @property
    def filename(self) -> str | None:
        """Return the file's name. Never a path to open."""
        return self.text("filename")


@dataclass(frozen=True, slots=True)
class Analysis(View):
    """A result of processing the conversation."""

    @property
    def type(self) -> str | None:
        """Return the kind of analysis."""
        return self.text("type")
