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

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Self

from onrecord.base.dates import format_date
from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.base.findings import Finding
from onrecord.record.vcon.canonical_text import canonical_text
from onrecord.record.vcon.event_types import KNOWN_EVENTS, kind_of, own_session_name
from onrecord.record.vcon.reader import MAX_BYTES, Document
from onrecord.record.vcon.versions import profile_of
from onrecord.record.vcon.views import Analysis, Attachment, Dialog, Event, Party, Session

_NULL_STAYS: Final = frozenset(["input", "output"])
"""Members whose null is written: the value was withheld (record.md D-09)."""

_NOT_YET: Final = frozenset(["session-required", "dialog-unreferenced", "conversation-empty"])


class Vcon:
    """An unsigned vCon.

    Made by `Vcon.read` or `Vcon.new`. What was read and not changed is written back byte for byte; once changed, the
    whole is written in canonical form, with unknown members and array positions kept.
    """

    def __init__(
        self, members: dict[str, Any], *, document: Document | None = None, lenient: bool = False
    ) -> None:
        self._members = members
        self._document = document
        self._lenient = lenient
        self._problems: list[Finding] = []
        self._checks: Any = None

    @classmethod
    def read(cls, data: bytes, *, max_bytes: int = MAX_BYTES) -> Self:
        """Read an unsigned vCon.

        Raises `MalformedError` with a code of record.md 6.2, or "form-not-unsigned" for a signed or encrypted one.
        """
        from onrecord.record.opening import UNSIGNED, open_form

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

    @classmethod
    def new(
        cls,
        *,
        uuid: str,
        created_at: str | datetime,
        extensions: Sequence[str] = (),
        recording_agent: Mapping[str, Any] | None = None,
        subject: str | None = None,
        lenient: bool = False,
    ) -> Self:
        """Begin a vCon of core 0.5.0, written without a `vcon` member (record.md D-02).

        Each `add_` method checks what it adds and raises `UsageError` with the finding's code. With `lenient`, for a
        recorder that must not lose an event, it adds all the same and keeps the finding in `problems`.
        """
        members: dict[str, Any] = {"uuid": uuid, "created_at": _plain(created_at)}
        if extensions:
            members["extensions"] = list(extensions)
        if subject is not None:
            members["subject"] = subject
        if recording_agent is not None:
            members["recording_agent"] = dict(recording_agent)
        vcon = cls(members, lenient=lenient)
        vcon._judge("", lambda checks: checks.top(members))
        return vcon

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Return the findings about what was added in spite of them."""
        return tuple(self._problems)

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
    def extensions(self) -> tuple[str, ...]:
        """Return the extensions that it lists."""
        value = self._members.get("extensions")
        return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()

    @property
    def parties(self) -> tuple[Party, ...]:
        """Return the parties."""
        return tuple(Party(index, item) for index, item in self._objects("parties"))

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Return the sessions."""
        return tuple(Session(index, item) for index, item in self._objects("sessions"))

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """Return the dialogs."""
        return tuple(Dialog(index, item) for index, item in self._objects("dialog"))

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the events."""
        return tuple(Event(index, item) for index, item in self._objects("events"))

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

    def add_party(self, **members: Any) -> int:
        """Add a party and return its index."""
        return self._add("parties", members)

    def add_session(self, **members: Any) -> int:
        """Add a session and return its index."""
        return self._add("sessions", members)

    def add_dialog(self, type: str, **members: Any) -> int:
        """Add a dialog of a type and return its index."""
        return self._add("dialog", {"type": type, **members})

    def add_attachment(self, **members: Any) -> int:
        """Add an attachment and return its index."""
        return self._add("attachments", members)

    def add_event(self, type: str, **members: Any) -> int:
        """Add an event of a type and return its index.

        The session index or indices may be given as `session` or `sessions`; they are written under the name that
        the type asks for.

        Raises `UsageError` with the code of the first finding, "event-type-unknown" for a type of no known draft.
        """
        event: dict[str, Any] = {"type": type, **members}
        own = own_session_name(kind_of(event, self.extensions))
        other = "sessions" if own == "session" else "session"
        if event.get(own) is None and event.get(other) is not None:
            event[own] = event.pop(other)
        if type not in KNOWN_EVENTS and not self._lenient:
            raise UsageError(
                "the event type belongs to no draft that is known here",
                code="event-type-unknown",
                where=Where(pointer="/events/type"),
            )
        return self._add("events", event)

    def set_member(self, name: str, value: Any) -> None:
        """Set a top-level member that is no array of objects, for instance `updated_at` or a session's duration.

        Raises `UsageError` with the finding's code if the value is wrong.
        """
        value = _plain(value)
        self._judge(f"/{name}", lambda checks: checks.top({**self._members, name: value}))
        self._members[name] = value
        self._document = None

    def update_session(self, index: int, **members: Any) -> None:
        """Set members of a session that was added before: its duration when it ends, its dialogs and parties.

        Raises `UsageError` with the finding's code if one is wrong, "index-range" if there is no such session.
        """
        sessions = self._members.get("sessions")
        if not isinstance(sessions, list) or not 0 <= index < len(sessions):
            raise UsageError("there is no such session", code="index-range")
        changed = {**sessions[index], **{name: _plain(value) for name, value in members.items()}}
        self._judge(f"/sessions/{index}", lambda checks: checks.element("sessions", changed, index))
        sessions[index] = changed
        self._document = None

    def _add(self, name: str, members: Mapping[str, Any]) -> int:
        item = {
            key: _plain(value) for key, value in members.items() if value is not None or key in _NULL_STAYS
        }
        items = self._members.get(name)
        if not isinstance(items, list):
            items = self._members[name] = []
        index = len(items)
        items.append(item)
        try:
            self._judge(f"/{name}/{index}", lambda checks: checks.element(name, item, index))
        except UsageError:
            items.pop()
            if not items:
                del self._members[name]
            raise
        self._document = None
        return index

    def _judge(self, pointer: str, run: Any) -> None:
        """Check what is added. The first error or warning is raised, or kept where this vCon is lenient."""
        if self._checks is None:
            from onrecord.record.checks.building import BuildingChecks

            self._checks = BuildingChecks(self._members)
        found = [
            finding
            for finding in run(self._checks)
            if finding.severity != "info" and finding.code not in _NOT_YET
        ]
        if found and not self._lenient:
            raise UsageError(
                f"{pointer or 'the vCon'} cannot be added: {found[0].message}",
                code=found[0].code,
                where=Where(pointer=found[0].pointer),
            )
        self._problems += found

    def to_bytes(self) -> bytes:
        """Return the bytes that were read if nothing changed, else the canonical text (RFC 8785).

        Raises `MalformedError` with code "not-canonical" for values that have no canonical form: lone surrogates,
        integers beyond 2^53-1.
        """
        return self._document.raw if self._document is not None else canonical_text(self._members)


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it: dates as text, an integral number as an integer, tuples as arrays."""
    if isinstance(value, datetime):
        return format_date(value)
    if type(value) is float and value.is_integer():
        return int(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) and type(value) is not dict else value
