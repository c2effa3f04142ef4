"""Building a vCon: each addition is checked before it stays, and what belongs together is written together.

Nothing is ever deleted or moved, since others point at it by its index. Redaction leaves `{}` in the place of what it
takes out, and amendment makes a new vCon.

Source: record.md 2.3 to 2.10, D-02, D-12, D-18, D-54.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self

from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import UsageError, Where
from onrecord.base.ids import uuid7, uuid8
from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.vcon.additions import hint_of
from onrecord.record.vcon.contents import Content
from onrecord.record.vcon.event_types import KNOWN_EVENTS, kind_of, own_session_name
from onrecord.record.vcon.members import indices_of, texts_of
from onrecord.record.vcon.plain import plain
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.reader import Document
from onrecord.record.vcon.session_entries import SessionEntries, Undo

SessionKey = Literal["auto", "session", "sessions"]
"""Name of the session member of events; "auto" is the one that the type's own draft asks for (record.md D-12)."""

_NOT_SET: Final = {
    **dict.fromkeys(("redacted_from", "redacted"), "onrecord.record.redact makes a redacted vCon"),
    **dict.fromkeys(("amended_from", "amended", "appended"), "onrecord.record.amend makes an amended vCon"),
    **dict.fromkeys(("uuid", "created_at"), "give it to Vcon.new; a vCon keeps the one it has"),
    "vcon": "since 0.5.0 no version is written",
    "extensions": "what is used is listed by itself; give others to Vcon.new",
    "critical": "give it to Vcon.new",
    "parties": "use add_party",
    "sessions": "use add_session and update_session",
    "dialog": "use add_dialog or add_message",
    "events": "use add_event",
    "attachments": "use add_attachment",
    "analysis": "use add_analysis",
}
"""Members that `set_member` leaves alone, and what to do."""


class Builder(SessionEntries):
    """What adds to a vCon. Use it by way of `Vcon`."""

    def __init__(
        self, members: dict[str, Any], *, document: Document | None = None, lenient: bool = False
    ) -> None:
        super().__init__(members, document=document, lenient=lenient)
        self._session_key: SessionKey = "auto"

    @classmethod
    def new(
        cls,
        *,
        uuid: str | None = None,
        created_at: str | datetime | None = None,
        domain: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
        extensions: Sequence[str] = (),
        critical: Sequence[str] = (),
        recording_agent: Mapping[str, Any] | None = None,
        subject: str | None = None,
        event_session_key: SessionKey = "auto",
        lenient: bool = False,
    ) -> Self:
        """Begin a vCon of core 0.5.0, written without a `vcon` member (record.md D-02).

        Without `uuid` it gets a new one: of version 7, or of version 8 with `domain`, the DNS name that the signing
        certificate is for. Without `created_at` it is created now, by `clock`. Extensions whose members or events are
        used are listed by themselves; those in `critical` are listed too, and readers that do not know them refuse the
        vCon. Once ai_agent is used, `recording_agent` says which program recorded, this package unless given.

        Each `add_` method checks what it adds and raises `UsageError` with the finding's code; then nothing of it
        stays. With `lenient`, for a recorder that must not lose an event, it adds all the same and keeps the finding in
        `problems`.

        Raises `UsageError` with the finding's code for a wrong argument, "event-session-key-unknown" for another key.
        """
        if event_session_key not in ("auto", "session", "sessions"):
            raise UsageError(
                "there is no such name of the session member",
                code="event-session-key-unknown",
                hint="auto, session or sessions",
            )
        if uuid is None:
            uuid = uuid8(domain, clock=clock) if domain is not None else uuid7(clock=clock)
        if created_at is None:
            created_at = datetime.fromtimestamp(clock.now_ns() // 1_000_000 / 1000, tz=UTC)
        listed = list(dict.fromkeys((*extensions, *critical)))
        given = {
            "uuid": uuid,
            "created_at": created_at,
            "extensions": listed or None,
            "critical": list(critical) or None,
            "subject": subject,
            "recording_agent": recording_agent,
        }
        vcon = cls({}, lenient=lenient)
        vcon._is_new = vcon._is_present = True
        vcon._session_key = event_session_key
        members = {
            name: plain(value, step(name), lenient=lenient)
            for name, value in given.items()
            if value is not None
        }
        used = vcon._judge("", lambda checks: checks.top(members))
        vcon._members.update(members)
        vcon._list(used)
        if AI_AGENT_EXTENSION in listed:
            vcon._name_recorder()
        return vcon

    def add_party(self, **members: Any) -> int:
        """Add a party and return its index. Without members it is one that is not known."""
        return self._add("parties", members)

    def add_session(self, **members: Any) -> int:
        """Add a session and return its index."""
        return self._add("sessions", members)

    def add_dialog(
        self,
        type: str,
        *,
        session: int | Sequence[int] | None = None,
        content: Content | None = None,
        **members: Any,
    ) -> int:
        """Add a dialog of a type and return its index.

        It is entered into `session`, one or several, and its parties into those of the session. Without `session` it is
        the one session that there is, or a new one that begins with this dialog; `()` is none. A recording set and
        its recordings are made to point at each other.

        Raises `UsageError` with the code of the first finding, "dialog-unreferenced" if the session is not clear.
        """
        dialog = {"type": type, **members}
        sessions = self._sessions_for(session, "dialog-unreferenced", "/dialog")
        undo = self._link_recordings(dialog) + self._reach_back(sessions or (), dialog.get("start"))
        try:
            index = self._add("dialog", dialog, content=content, sessions=sessions or ())
        except UsageError:
            for step_back in undo:
                step_back()
            raise
        added = self._members["dialog"][index]
        if sessions is None:
            sessions = (self._begin_session(added.get("start"), dialog=[index]),)
        else:
            for number in sessions:
                listed = self._members["sessions"][number].setdefault("dialog", [])
                if isinstance(listed, list):
                    listed.append(index)
        self._take_part(sessions, indices_of(added.get("parties")))
        return index

    def add_message(
        self,
        text: str,
        *,
        start: str | datetime,
        sender: int,
        to: Sequence[int] = (),
        session: int | Sequence[int] | None = None,
        mediatype: str = "text/plain",
        **members: Any,
    ) -> int:
        """Add a text dialog and return its index: one message, from a party to others, who may be left out.

        `members` are further ones of the dialog, for instance `message_id` or `model_id`. Otherwise as `add_dialog`.
        """
        return self.add_dialog(
            "text",
            session=session,
            content=Content.text(text, mediatype=mediatype),
            start=start,
            parties=[sender, *to],
            **members,
        )

    def add_attachment(self, *, content: Content | None = None, **members: Any) -> int:
        """Add an attachment and return its index.

        `start` and `party` say who gave it when, `dialog` names the dialog that it belongs to.
        """
        return self._add("attachments", members, content=content)

    def add_analysis(self, type: str, *, vendor: str, content: Content | None = None, **members: Any) -> int:
        """Add an analysis of a type, such as transcript or summary, and return its index.

        `dialog` or `attachment` says what was analysed: one index or several.
        """
        return self._add("analysis", {"type": type, "vendor": vendor, **members}, content=content)

    def add_event(self, type: str, *, content: Any = None, **members: Any) -> int:
        """Add an event of a type and return its index.

        The session index or indices may be given as `session` or `sessions`; they are written under the name that
        the type asks for, or that `event_session_key` says. Without them it is the one session that there is, or a new
        one that begins with this event. `content` is a `Content`, or the text of a reasoning event.

        Raises `UsageError` with the code of the first finding, "event-type-unknown" for a type of no known draft,
        "event-session-missing" if the session is not clear.
        """
        event: dict[str, Any] = {"type": type, **members}
        if content is not None and not isinstance(content, Content):
            event["content"], content = content, None
        if type not in KNOWN_EVENTS and not self._lenient:
            raise UsageError(
                "the event type belongs to no draft that is known here",
                code="event-type-unknown",
                where=Where(pointer="/events/type"),
                hint=hint_of("event-type-unknown"),
            )
        own = self._session_key
        if own == "auto":
            own = "session" if own_session_name(self._kind_of(event)) == "session" else "sessions"
        other = "sessions" if own == "session" else "session"
        if event.get(own) is None and event.get(other) is not None:
            event[own] = event.pop(other)
        undo: list[Undo] = []
        if event.get(own) is None:
            chosen = self._sessions_for(None, "event-session-missing", "/events")
            if chosen is None:
                chosen = (self._begin_session(event.get("time")),)
                undo.append(self._forget_session)
            if chosen:
                event[own] = chosen[0] if own == "session" else list(chosen)
        undo += self._reach_back(indices_of(event.get(own)), event.get("time"))
        try:
            index = self._add("events", event, content=content)
        except UsageError:
            for step_back in undo:
                step_back()
            raise
        added = self._members["events"][index]
        self._take_part(indices_of(added.get(own)), indices_of(added.get("party")))
        return index

    def set_member(self, name: str, value: Any) -> None:
        """Set a top-level member that is no array of objects, for instance `updated_at`; None takes it away.

        Raises `UsageError` with the finding's code if the value is wrong, "member-not-set" for a member that is not set
        this way.
        """
        if name in _NOT_SET:
            raise UsageError(
                f"{name} is not set by hand",
                code="member-not-set",
                where=Where(pointer=step(name)),
                hint=_NOT_SET[name],
            )
        self._require_present_version()
        value = plain(value, step(name), lenient=self._lenient)
        changed = _with(self._members, {name: value})
        there = self._checks_at_hand().top(self._members)
        used = self._judge(step(name), lambda checks: checks.top(changed), there=there)
        if value is None:
            self._members.pop(name, None)
        else:
            self._members[name] = value
        self._list(used)
        self._document = None

    def update_session(self, index: int, **members: Any) -> None:
        """Set members of a session that was added before: its duration when it ends, its dialogs and parties.

        None takes a member away.

        Raises `UsageError` with the finding's code if one is wrong, "index-range" if there is no such session.
        """
        self._require_present_version()
        sessions = self._members.get("sessions")
        if not isinstance(sessions, list) or not 0 <= index < len(sessions):
            raise UsageError("there is no such session", code="index-range", hint=hint_of("index-range"))
        pointer = f"/sessions/{index}"
        given = {
            name: plain(value, pointer + step(name), lenient=self._lenient, depth=3)
            for name, value in members.items()
        }
        changed = _with(sessions[index] if isinstance(sessions[index], dict) else {}, given)
        used = self._judge(pointer, lambda checks: checks.element("sessions", changed, index))
        sessions[index] = changed
        self._checks_at_hand().accept("sessions", changed, index)
        self._begun.discard(index)
        self._listeners.pop(index, None)
        self._list(used)
        self._document = None

    def _kind_of(self, event: Mapping[str, Any]) -> str | None:
        return kind_of(event, texts_of(self._members.get("extensions")))


def _with(members: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return members with others in their place; null is not written (record.md D-09)."""
    return {
        name: value for name, value in {**members, **given}.items() if value is not None or name not in given
    }
