"""Building a vCon: each addition is checked before it stays, and what belongs together is written together.

Nothing is ever deleted or moved, since others point at it by its index. Redaction leaves `{}` in the place of what it
takes out, and amendment makes a new vCon.

Source: record.md 2.3 to 2.10, D-02, D-12, D-18, D-54.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from onrecord import __version__
from onrecord.base.dates import SYSTEM_CLOCK, Clock, epoch_ns, parse_date
from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.base.findings import Finding
from onrecord.base.ids import uuid7, uuid8
from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.vcon.contents import Content
from onrecord.record.vcon.event_types import KNOWN_EVENTS, kind_of, own_session_name
from onrecord.record.vcon.members import indices_of
from onrecord.record.vcon.plain import plain
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.reader import Document
from onrecord.record.vcon.versions import KNOWN, profile_of, unsupported_critical

if TYPE_CHECKING:
    from onrecord.record.checks.building import BuildingChecks

Undo = Callable[[], object]
"""Takes back what was written beside an element that was refused after all."""

SessionKey = Literal["auto", "session", "sessions"]
"""Name of the session member of events; "auto" is the one that the type's own draft asks for (record.md D-12)."""

_NULL_STAYS: Final = frozenset(["input", "output"])
"""Members whose null is written: the value was withheld (record.md D-09)."""

_NOT_YET: Final = frozenset(["session-required", "dialog-unreferenced", "conversation-empty"])
"""Findings about what is added later."""

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

_HINTS: Final = {
    "attachment-dialog-missing": "add the dialog that it belongs to first, and give its index as dialog=",
    "index-range": "add what it points at first; indices count from 0",
    "session-time": "give the session an earlier start, or set its duration when it has ended",
    "json-body-string": "Content.json takes the value itself, not a text of it",
}
"""What to do about a finding while building, where the catalogue speaks to those who have a file before them."""


class Builder:
    """What adds to a vCon. Use it by way of `Vcon`."""

    def __init__(
        self, members: dict[str, Any], *, document: Document | None = None, lenient: bool = False
    ) -> None:
        self._members = members
        self._document = document
        self._lenient = lenient
        self._is_new = self._is_present = False
        self._session_key: SessionKey = "auto"
        self._problems: list[Finding] = []
        self._begun: set[int] = set()
        self._listeners: dict[int, set[int]] = {}
        self._checks: BuildingChecks | None = None

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

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Return the findings about what was added in spite of them."""
        return tuple(self._problems)

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
                hint=_hint("event-type-unknown"),
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
        """Set a top-level member that is no array of objects, for instance `updated_at` or `subject`.

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
        changed = {**self._members, name: value}
        there = self._checks_at_hand().top(self._members)
        used = self._judge(step(name), lambda checks: checks.top(changed), there=there)
        self._members[name] = value
        self._list(used)
        self._document = None

    def update_session(self, index: int, **members: Any) -> None:
        """Set members of a session that was added before: its duration when it ends, its dialogs and parties.

        Raises `UsageError` with the finding's code if one is wrong, "index-range" if there is no such session.
        """
        self._require_present_version()
        sessions = self._members.get("sessions")
        if not isinstance(sessions, list) or not 0 <= index < len(sessions):
            raise UsageError("there is no such session", code="index-range", hint=_HINTS["index-range"])
        pointer = f"/sessions/{index}"
        given = {
            name: plain(value, pointer + step(name), lenient=self._lenient, depth=3)
            for name, value in members.items()
        }
        changed = {**sessions[index], **given}
        used = self._judge(pointer, lambda checks: checks.element("sessions", changed, index))
        sessions[index] = changed
        self._checks_at_hand().accept("sessions", changed, index)
        self._begun.discard(index)
        self._listeners.pop(index, None)
        self._list(used)
        self._document = None

    def _add(
        self,
        name: str,
        members: Mapping[str, Any],
        *,
        content: Content | None = None,
        sessions: Sequence[int] = (),
    ) -> int:
        self._require_present_version()
        self._checks_at_hand()
        items = self._members.get(name)
        if not isinstance(items, list):
            items = self._members[name] = []
        index = len(items)
        pointer = f"/{name}/{index}"
        given = members if content is None else {**members, **content.members}
        try:
            item = {
                key: plain(value, pointer + step(key), lenient=self._lenient, depth=3)
                for key, value in given.items()
                if value is not None
                or key in _NULL_STAYS
                or (key == "body" and given.get("encoding") == "json")
            }
            items.append(item)
            used = self._judge(pointer, lambda checks: checks.element(name, item, index, sessions))
        except UsageError:
            del items[index:]
            if not items:
                del self._members[name]
            raise
        self._list(used)
        self._checks_at_hand().accept(name, item, index, sessions)
        self._document = None
        return index

    def _judge(
        self,
        pointer: str,
        run: Callable[[BuildingChecks], Sequence[Finding]],
        *,
        there: Sequence[Finding] = (),
    ) -> list[str]:
        """Check what is added, and return the extensions that it uses and that are not listed.

        The first error or warning is raised, or all are kept where this vCon is lenient. `there` were there before.
        """
        used: list[str] = []
        found: list[Finding] = []
        for finding in run(self._checks_at_hand()):
            if finding.code == "extension-not-listed" and finding.data is not None:
                used.append(finding.data["extension"])
            elif finding.severity != "info" and finding.code not in _NOT_YET and finding not in there:
                found.append(finding)
        if found and not self._lenient:
            raise UsageError(
                f"{pointer or 'the vCon'} cannot be added: {found[0].message}",
                code=found[0].code,
                where=Where(pointer=found[0].pointer),
                hint=_hint(found[0].code),
            )
        self._problems += found
        return used

    def _checks_at_hand(self) -> BuildingChecks:
        if self._checks is None:
            from onrecord.record.checks.building import BuildingChecks

            self._checks = BuildingChecks(self._members)
        return self._checks

    def _require_present_version(self) -> None:
        """Refuse to add to a vCon of an older version, or one that may not be processed."""
        if self._is_present:
            return
        critical = unsupported_critical(self._members)
        if critical:
            raise UsageError(
                "the vCon calls an extension critical that is not supported, so it may not be processed",
                code="critical-unsupported",
                where=Where(pointer=critical[0]),
                hint=_hint("critical-unsupported"),
            )
        version = profile_of(self._members)
        if version != KNOWN[-1]:
            raise UsageError(
                f"the vCon is one of version {version}, and {KNOWN[-1]} is written",
                code="version-not-written",
                hint="upgrade it first: onrecord.record.migrate(vcon).vcon",
            )
        self._is_present = True

    def _list(self, used: Sequence[str]) -> None:
        """List extensions that are used now (record.md D-18)."""
        if not used:
            return
        listed = self._members.setdefault("extensions", [])
        if isinstance(listed, list):
            listed += [name for name in used if name not in listed]
        if AI_AGENT_EXTENSION in used:
            self._name_recorder()

    def _name_recorder(self) -> None:
        """Say which program recorded a vCon of agents that was begun here (AA 3.2)."""
        if self._is_new and "recording_agent" not in self._members:
            self._members["recording_agent"] = {"name": "onrecord", "version": __version__}

    def _kind_of(self, event: Mapping[str, Any]) -> str | None:
        listed = self._members.get("extensions")
        return kind_of(event, listed if isinstance(listed, list) else ())

    def _sessions_for(
        self, session: int | Sequence[int] | None, code: str, pointer: str
    ) -> tuple[int, ...] | None:
        """Return the sessions that are meant, None where one is still to begin."""
        items = self._members.get("sessions")
        size = len(items) if isinstance(items, list) else 0
        if session is None:
            if size < 2:
                return (0,) if size else None
            return self._unclear(f"there are {size} sessions", code, pointer, "name one with session=")
        chosen = (session,) if isinstance(session, int) else tuple(session)
        if any(type(number) is not int or not 0 <= number < size for number in chosen):
            return self._unclear("there is no such session", "index-range", pointer, _HINTS["index-range"])
        return tuple(dict.fromkeys(chosen))

    def _unclear(self, message: str, code: str, pointer: str, hint: str) -> tuple[int, ...]:
        if not self._lenient:
            raise UsageError(message, code=code, where=Where(pointer=pointer), hint=hint)
        return ()

    def _begin_session(self, start: Any, **members: Any) -> int:
        """Begin a session for a dialog or an event. One that begins later is found out when it is checked itself."""
        index = self._add("sessions", {"start": start if _moment(start) is not None else None, **members})
        self._begun.add(index)
        return index

    def _forget_session(self) -> None:
        sessions = self._members["sessions"]
        self._begun.discard(len(sessions) - 1)
        sessions.pop()
        if not sessions:
            del self._members["sessions"]

    def _reach_back(self, numbers: Sequence[int], start: Any) -> list[Undo]:
        """Let the sessions that were begun here start no later than what is added to them."""
        moment = _moment(start)
        undo: list[Undo] = []
        if moment is None or not self._begun:
            return undo
        for number in self._begun.intersection(numbers):
            session = self._members["sessions"][number]
            earliest = _moment(session.get("start"))
            if earliest is not None and moment < earliest:
                undo.append(partial(session.__setitem__, "start", session["start"]))
                session["start"] = plain(start, f"/sessions/{number}/start")
        return undo

    def _take_part(self, numbers: Sequence[int], parties: Sequence[int]) -> None:
        """Enter parties into the sessions in which they take part."""
        sessions = self._members.get("sessions")
        for number in numbers:
            session = _object_at(sessions, number)
            if session is None:
                continue
            present = self._listeners.get(number)
            if present is None:
                present = self._listeners[number] = set(indices_of(session.get("parties")))
            for party in parties:
                if party not in present:
                    listed = session.setdefault("parties", [])
                    if isinstance(listed, list):
                        listed.append(party)
                    present.add(party)

    def _link_recordings(self, dialog: Mapping[str, Any]) -> list[Undo]:
        """Let a recording set and its recordings point at each other."""
        dialogs = self._members.get("dialog")
        if not isinstance(dialogs, list):
            return []
        own = len(dialogs)
        undo: list[Undo] = []
        if dialog.get("type") == "recording-set":
            named = dialog.get("recordings")
            for number in indices_of(list(named) if isinstance(named, tuple) else named):
                other = _object_at(dialogs, number)
                if other is not None and other.get("type") == "recording" and "recording_set" not in other:
                    other["recording_set"] = own
                    undo.append(partial(other.pop, "recording_set"))
        elif dialog.get("type") == "recording":
            for number in indices_of(dialog.get("recording_set")):
                other = _object_at(dialogs, number)
                if other is not None and isinstance(other.get("recordings"), list):
                    other["recordings"].append(own)
                    undo.append(other["recordings"].pop)
        return undo


def _object_at(items: Any, number: int) -> dict[str, Any] | None:
    item = items[number] if isinstance(items, list) and 0 <= number < len(items) else None
    return item if isinstance(item, dict) else None


def _hint(code: str) -> str | None:
    """Return what to do about a finding."""
    if code in _HINTS:
        return _HINTS[code]
    from onrecord.record.checks.catalogue import CATALOGUE

    return CATALOGUE[code].change or None


def _moment(value: Any) -> int | None:
    """Return a date in nanoseconds, None for what is none."""
    try:
        moment = (
            value if isinstance(value, datetime) else parse_date(value) if isinstance(value, str) else None
        )
    except MalformedError:
        return None
    return epoch_ns(moment) if moment is not None and moment.tzinfo is not None else None
