"""A vCon: read and kept as it came, or built so that wrong ones do not get written.

>>> vcon = Vcon.new(
...     uuid="01a19b83-0f20-8b33-832a-bc92ac6830cd",
...     created_at="2026-11-02T09:00:00Z",
...     extensions=["tool-invocation"],
... )
>>> agent = vcon.add_party(type="bot", name="agent")
>>> session = vcon.add_session(start="2026-11-02T09:00:00Z", parties=[agent])
>>> vcon.add_event("tool-invocation", time="2026-11-02T09:00:01Z", sessions=[session], party=agent,
...     operation_id="op-1", attempt=1, server="clock", tool="now")
0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from onrecord.base.errors import MalformedError, Where
from onrecord.record.vcon.agent_views import FileAttribution, RecordingAgent, VcsContext
from onrecord.record.vcon.building import Builder
from onrecord.record.vcon.members import texts_of
from onrecord.record.vcon.reader import MAX_BYTES, Document
from onrecord.record.vcon.references import PriorVersion, amended_from, critical, redacted_from
from onrecord.record.vcon.versions import profile_of
from onrecord.record.vcon.views import Analysis, Attachment, Dialog, Event, Party, Session
from onrecord.record.vcon.virtual_session import virtual_session
from onrecord.record.vcon.writing import vcon_text


class Vcon(Builder):
    """An unsigned vCon.

    Made by `Vcon.read` or `Vcon.new`. What was read and not changed is written back byte for byte; once changed, the
    whole is written in canonical form, with unknown members and array positions kept.
    """

    @classmethod
    def read(cls, data: bytes, *, max_bytes: int = MAX_BYTES) -> Self:
        """Read an unsigned vCon.

        Raises `MalformedError` with a code of record.md 6.2, or "form-not-unsigned" for a signed or encrypted one.
        """
        from onrecord.record.forms.opening import UNSIGNED, open_form

        form = open_form(data, max_bytes=max_bytes)
        if form.kind != UNSIGNED or form.payload is None:
            raise MalformedError(
                f"the file is a {form.kind} vCon, not an unsigned one",
                code="form-not-unsigned",
                hint="verify it; the report holds the vCon inside",
            )
        return cls(form.payload.value, document=form.payload)

    @classmethod
    def of_document(cls, document: Document) -> Self:
        """Return the vCon of a text that was parsed before. Raises `MalformedError` with code "form-unknown"."""
        if not isinstance(document.value, dict):
            raise MalformedError("the text is no vCon", code="form-unknown", where=Where(pointer=""))
        return cls(document.value, document=document)

    @property
    def members(self) -> Mapping[str, Any]:
        """Return the top-level members."""
        return self._members

    @property
    def raw(self) -> bytes | None:
        """Return the bytes that were read, or None once it is changed or if it is new."""
        return self._document.raw if self._document is not None else None

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Return what the reader found odd: finding codes and pointers."""
        return self._document.notes if self._document is not None else ()

    @property
    def version(self) -> str:
        """Return the core version whose rules hold (record.md D-01)."""
        return profile_of(self._members)

    @property
    def uuid(self) -> str | None:
        """Return the uuid."""
        value = self._members.get("uuid")
        return value if isinstance(value, str) else None

    @property
    def created_at(self) -> str | None:
        """Return the date of creation, as written."""
        value = self._members.get("created_at")
        return value if isinstance(value, str) else None

    @property
    def updated_at(self) -> str | None:
        """Return the date of the last change, as written."""
        value = self._members.get("updated_at")
        return value if isinstance(value, str) else None

    @property
    def subject(self) -> str | None:
        """Return what the conversation is about."""
        value = self._members.get("subject")
        return value if isinstance(value, str) else None

    @property
    def extensions(self) -> tuple[str, ...]:
        """Return the extensions that it lists."""
        return texts_of(self._members.get("extensions"))

    @property
    def critical(self) -> tuple[str, ...]:
        """Return the extensions that a reader must know, also under the older name of the list."""
        return critical(self._members)

    @property
    def redacted_from(self) -> PriorVersion | None:
        """Return the less redacted version, under any of its names, or None if this one is not redacted."""
        return redacted_from(self._members)

    @property
    def amended_from(self) -> PriorVersion | None:
        """Return the version that was added to, under any of its names, or None."""
        return amended_from(self._members)

    @property
    def recording_agent(self) -> RecordingAgent | None:
        """Return the program that made the record."""
        value = self._members.get("recording_agent")
        return RecordingAgent(0, value) if isinstance(value, dict) else None

    @property
    def vcs(self) -> VcsContext | None:
        """Return the state of the repository that the conversation was about."""
        value = self._members.get("vcs")
        return VcsContext(0, value) if isinstance(value, dict) else None

    @property
    def file_attribution(self) -> FileAttribution | None:
        """Return which lines of which files came out of the conversation."""
        value = self._members.get("file_attribution")
        return FileAttribution(0, value) if isinstance(value, dict) else None

    @property
    def parties(self) -> tuple[Party, ...]:
        """Return the parties."""
        return tuple(Party(index, item) for index, item in self._objects("parties"))

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Return the sessions that are in the file."""
        return tuple(Session(index, item) for index, item in self._objects("sessions"))

    @property
    def sessions_or_virtual(self) -> tuple[Session, ...]:
        """Return the sessions or, of a vCon without any, one over all dialogs that is in no file (record.md D-05)."""
        virtual = virtual_session(self._members)
        return self.sessions if virtual is None else (virtual,)

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """Return the dialogs."""
        return tuple(Dialog(index, item) for index, item in self._objects("dialog"))

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the events."""
        listed = frozenset(self.extensions)
        return tuple(Event(index, item, listed) for index, item in self._objects("events"))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """Return the attachments."""
        return tuple(Attachment(index, item) for index, item in self._objects("attachments"))

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """Return the analyses."""
        return tuple(Analysis(index, item) for index, item in self._objects("analysis"))

    def _objects(self, name: str) -> list[tuple[int, dict[str, Any]]]:
        items = self._members.get(name)
        if not isinstance(items, list):
            return []
        return [(index, item if isinstance(item, dict) else {}) for index, item in enumerate(items)]

    def to_bytes(self) -> bytes:
        """Return the bytes that were read if nothing changed, else the canonical text (RFC 8785).

        Integers beyond 2^53-1 have no canonical form; a vCon that holds some is written as compact JSON.

        Raises `MalformedError` with code "not-canonical" for half surrogate pairs and numbers beyond a double.
        """
        return self._document.raw if self._document is not None else vcon_text(self._members)
