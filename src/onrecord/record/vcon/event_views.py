"""Typed views of events: those of vCon core, of tool-invocation and of ai_agent, and of the older Party_History.

A member that the event's type does not have reads as absent, like any other that is not there.

Source: record.md 2.5, 3.6, 4.2, 5.1.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from onrecord.record.vcon.content_view import ContentView
from onrecord.record.vcon.event_types import kind_of
from onrecord.record.vcon.members import View
from onrecord.record.vcon.names import KEY_EVENT_ALIASES


@dataclass(frozen=True, slots=True)
class Event(ContentView):
    """Something that happened."""

    json_strings: ClassVar[bool] = False

    listed: Collection[str] = field(default=frozenset(), repr=False, compare=False)
    """Extensions that the vCon lists: they tell whose a bare tool-result is."""

    @property
    def type(self) -> str | None:
        """Return the event type."""
        return self.text("type")

    @property
    def kind(self) -> str | None:
        """Return "core", "tool-invocation", "ai_agent", "merged", "ambiguous", or None if no draft has the type.

        Source: record.md D-67.
        """
        return kind_of(self.members, self.listed)

    @property
    def time(self) -> str | None:
        """Return the date, as written."""
        return self.text("time")

    @property
    def party(self) -> int | None:
        """Return the index of the party; for tools that is the agent, also for answers."""
        return self.place("party")

    @property
    def sessions(self) -> tuple[int, ...]:
        """Return the indices of its sessions, under whichever name they stand."""
        return self.places("sessions" if self.has("sessions") else "session")

    @property
    def dialog(self) -> int | None:
        """Return the index of the dialog that a party or key event belongs to."""
        return self.place("dialog")

    @property
    def button(self) -> str | None:
        """Return the key of a keydown or keyup."""
        return self.text("button")

    @property
    def transferee(self) -> int | None:
        """Return the index of the party that is transferred."""
        return self.place("transferee")

    @property
    def transfer_target(self) -> int | None:
        """Return the index of the party that the transfer is to."""
        return self.place("transfer_target")

    @property
    def consultation(self) -> int | None:
        """Return the index of the session in which the transferor asked the target."""
        return self.place("consultation")

    @property
    def target_session(self) -> int | None:
        """Return the index of the session that the transfer led into."""
        return self.place("target_session")

    @property
    def decision(self) -> str | None:
        """Return what a policy decision says: allowed, permission-required or disallowed."""
        return self.text("decision")

    @property
    def policy_life(self) -> str | None:
        """Return how long a policy decision holds: once or standing."""
        return self.text("policy_life")

    @property
    def operation(self) -> str | None:
        """Return what kind of operation a policy decision is about."""
        return self.text("operation")

    @property
    def reason(self) -> str | None:
        """Return why a policy decision was made."""
        return self.text("reason")

    @property
    def operation_id(self) -> str | None:
        """Return the operation that a tool event belongs to."""
        return self.text("operation_id")

    @property
    def attempt(self) -> int | None:
        """Return the attempt that a tool event belongs to."""
        return self.place("attempt")

    @property
    def server(self) -> str | None:
        """Return who provides the tool: a URL, a name, or !host."""
        return self.text("server")

    @property
    def tool(self) -> str | None:
        """Return the tool's name as its server knows it."""
        return self.text("tool")

    @property
    def attachments(self) -> tuple[int, ...]:
        """Return the indices of the attachments with content of a tool event."""
        return self.places("attachment")

    @property
    def tool_name(self) -> str | None:
        """Return the tool of a tool-call of ai_agent, as the model calls it."""
        return self.text("tool_name")

    @property
    def input(self) -> Any:
        """Return the arguments of a tool-call, any JSON value; None also if they were withheld."""
        return self.members.get("input")

    @property
    def output(self) -> Any:
        """Return the output of a tool-result of ai_agent, any JSON value; None also if it was withheld."""
        return self.members.get("output")

    @property
    def call_id(self) -> str | None:
        """Return what joins tool-call and tool-result of ai_agent."""
        return self.text("call_id")

    @property
    def status(self) -> str | None:
        """Return how a tool-result of ai_agent says that the call went: success, error or another word."""
        return self.text("status")

    @property
    def is_error(self) -> bool | None:
        """Return whether a tool-result of ai_agent says that the call failed."""
        value = self.members.get("is_error")
        return value if type(value) is bool else None

    @property
    def reasoning(self) -> Any:
        """Return the member `content` of a reasoning event, any JSON value; None also if it was withheld."""
        return self.members.get("content")

    @property
    def encrypted(self) -> str | None:
        """Return reasoning that only its provider can read."""
        return self.text("encrypted")

    @property
    def subject(self) -> str | None:
        """Return what reasoning is about."""
        return self.text("subject")

    @property
    def event_type(self) -> str | None:
        """Return what a system-event tells of."""
        return self.text("event_type")

    @property
    def data(self) -> dict[str, Any] | None:
        """Return the particulars of a system-event."""
        return self.inner("data")

    @property
    def entry_id(self) -> str | None:
        """Return the entry's id in its session."""
        return self.text("entry_id")

    @property
    def parent_id(self) -> str | None:
        """Return the id of the entry that it follows or answers."""
        return self.text("parent_id")


@dataclass(frozen=True, slots=True)
class HistoryEvent(View):
    """An event that versions before 0.5.0 keep in a dialog. Its index is the position in `party_history`."""

    @property
    def type(self) -> str | None:
        """Return the event under its present name: dtmfdown is keydown, dtmfup is keyup."""
        name = self.text("event")
        return KEY_EVENT_ALIASES.get(name, name) if name is not None else None

    @property
    def time(self) -> str | None:
        """Return the date, as written."""
        return self.text("time")

    @property
    def party(self) -> int | None:
        """Return the index of the party."""
        return self.place("party")

    @property
    def button(self) -> str | None:
        """Return the key of a keydown or keyup."""
        return self.text("button") if self.has("button") else self.text("dtmf")
