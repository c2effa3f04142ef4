"""Typed views of a vCon's objects: names instead of keys, whatever version the file is of.

A view keeps the object as it was parsed in `members`. A member of the wrong type reads as absent; the checks report it.
Indices are tuples where a draft or an older version allows several. Names of older versions are read like the present
ones, in every file (record.md 1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onrecord.record.vcon.agent_views import AgentMeta, Environment
from onrecord.record.vcon.content_view import ContentView
from onrecord.record.vcon.dialog_view import Dialog
from onrecord.record.vcon.event_views import Event, HistoryEvent
from onrecord.record.vcon.members import View, index_of, indices_of, objects_of, text_of
from onrecord.record.vcon.session_ids import SessionId


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
    def tel(self) -> str | None:
        """Return the telephone number or tel URL."""
        return self.text("tel")

    @property
    def sip(self) -> str | None:
        """Return the SIP address."""
        return self.text("sip")

    @property
    def stir(self) -> str | None:
        """Return the PASSporT that vouches for the caller's number."""
        return self.text("stir")

    @property
    def mailto(self) -> str | None:
        """Return the e-mail address or mailto URL."""
        return self.text("mailto")

    @property
    def did(self) -> str | None:
        """Return the decentralized identifier."""
        return self.text("did")

    @property
    def validation(self) -> str | None:
        """Return the method by which the name was validated."""
        return self.text("validation")

    @property
    def gmlpos(self) -> str | None:
        """Return latitude and longitude at the start of the conversation."""
        return self.text("gmlpos")

    @property
    def civic_address(self) -> Mapping[str, str] | None:
        """Return the Strings of the civic address, for instance country."""
        value = self.inner("civicaddress")
        return None if value is None else {key: item for key, item in value.items() if type(item) is str}

    @property
    def uuid(self) -> str | None:
        """Return what names the party in several vCons: free text."""
        return self.text("uuid")

    @property
    def org(self) -> str | None:
        """Return the organization."""
        return self.text("org")

    @property
    def dept(self) -> str | None:
        """Return the department."""
        return self.text("dept")

    @property
    def agent_meta(self) -> AgentMeta | None:
        """Return Agent_Meta, which says that the party is an agent."""
        value = self.inner("agent_meta")
        return None if value is None else AgentMeta(0, value)


@dataclass(frozen=True, slots=True)
class SessionReference(View):
    """What a session says of another one. Its index is the position in the session's `sessions`."""

    @property
    def session(self) -> int | None:
        """Return the index of the other session."""
        return self.place("session")

    @property
    def type(self) -> str | None:
        """Return what the other one is to this: child, peer, precursor, breakout or another value."""
        return self.text("type")

    @property
    def description(self) -> str | None:
        """Return the description."""
        return self.text("description")


@dataclass(frozen=True, slots=True)
class Session(View):
    """A span of the conversation."""

    is_virtual: bool = False
    """Whether it stands in no file: the one session of a vCon without sessions (record.md D-05)."""

    @property
    def start(self) -> str | None:
        """Return the date at which it began, as written."""
        return self.text("start")

    @property
    def duration(self) -> float | None:
        """Return its length in seconds."""
        return self.number("duration")

    @property
    def parties(self) -> tuple[int, ...]:
        """Return the indices of its parties."""
        return self.places("parties")

    @property
    def dialogs(self) -> tuple[int, ...]:
        """Return the indices of its dialogs."""
        return self.places("dialog")

    @property
    def session_id(self) -> SessionId | None:
        """Return its session id of SIP."""
        return SessionId.read(self.members.get("session_id"))

    @property
    def agent_session_id(self) -> str | None:
        """Return the agent's own id of the session."""
        return self.text("agent_session_id")

    @property
    def format(self) -> str | None:
        """Return how the agent was used: interactive, autonomous or another word. Nothing depends on it."""
        return self.text("format")

    @property
    def environment(self) -> Environment | None:
        """Return where the agent worked."""
        value = self.inner("environment")
        return None if value is None else Environment(0, value)

    @property
    def session_references(self) -> tuple[SessionReference, ...]:
        """Return what it says of other sessions."""
        found = objects_of(self.members.get("sessions"))
        return tuple(SessionReference(index, item) for index, item in found)

    @property
    def references(self) -> tuple[tuple[int, str | None], ...]:
        """Return the sessions it names, each with the type of the reference."""
        found = ((reference.session, reference.type) for reference in self.session_references)
        return tuple((session, kind) for session, kind in found if session is not None)


@dataclass(frozen=True, slots=True)
class Attachment(ContentView):
    """A file that belongs to the conversation."""

    @property
    def start(self) -> str | None:
        """Return the date at which it was provided, as written."""
        return self.text("start")

    @property
    def party(self) -> int | None:
        """Return the index of who provided it."""
        return self.place("party")

    @property
    def dialog(self) -> int | None:
        """Return the index of the dialog in which it was provided."""
        return self.place("dialog")

    @property
    def purpose(self) -> str | None:
        """Return what it is for."""
        return self.text("purpose")


@dataclass(frozen=True, slots=True)
class Analysis(ContentView):
    """A result of processing the conversation."""

    @property
    def type(self) -> str | None:
        """Return the kind of analysis."""
        return self.text("type")

    @property
    def vendor(self) -> str | None:
        """Return who made what analysed."""
        return self.text("vendor")

    @property
    def product(self) -> str | None:
        """Return the product that analysed."""
        return self.text("product")

    @property
    def schema(self) -> str | None:
        """Return the form of the result, where the media type does not say it."""
        return self.text("schema")

    @property
    def dialogs(self) -> tuple[int, ...]:
        """Return the indices of the dialogs that were analysed."""
        return self.places("dialog")

    @property
    def attachments(self) -> tuple[int, ...]:
        """Return the indices of the attachments that were analysed."""
        return self.places("attachment")


__all__ = [
    "Analysis",
    "Attachment",
    "ContentView",
    "Dialog",
    "Event",
    "HistoryEvent",
    "Party",
    "Session",
    "SessionReference",
    "View",
    "index_of",
    "indices_of",
    "text_of",
]
