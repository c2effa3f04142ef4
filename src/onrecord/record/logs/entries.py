"""Entries: the objects of a vCon that one native record becomes.

    entry = session.entry(record, id=native["uuid"], parent=native["parentUuid"], time=native["timestamp"])
    entry.text("hello", by=USER)
    entry.call("Read", {"path": "a.txt"}, call_id="c1")

Ids, parents, times, sources and counts are worked out here, alike for every format (native-logs.md D-LOG-01, 04, 05,
13, 17; R-14, R-18, R-19).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.spool import ATTACHMENT, DIALOG, EVENT
from onrecord.record.logs.usage import Usage, to_token_usage
from onrecord.record.logs.usage_sums import Scope

if TYPE_CHECKING:
    from onrecord.record.logs.reading.records import Record
    from onrecord.record.logs.sessions import NativeSession

USER: Final = 0
"""Speaker of a text: the human, or whoever called the agent."""

AGENT: Final = 1
"""Speaker of a text: the session's own agent."""

PARENT: Final = 2
"""Speaker of a text: the agent of the session that this one is a child of."""

FIRST_OTHER: Final = 3
"""Speakers from here on are other agents of the session, in the order in which they were named."""

MAX_EVENT_TYPE: Final = 256
"""Longest native type that names an event; its record stands in `data` whole."""

_NOTHING: Final = ""
"""What stands for null in members that a vCon must have: there null is the same as absent."""

NO_TIME: Final = object()
"""The time of a record in whose format there is none. A member that is null or nonsense is given as it is."""


class Entry:
    """The objects that one native record becomes, in block order."""

    __slots__ = (
        "_count",
        "_derived",
        "_id",
        "_is_beside",
        "_native_time",
        "_parent",
        "_time",
        "first_id",
        "flags",
        "record",
        "session",
        "trace",
    )

    def __init__(
        self,
        session: NativeSession,
        record: Record,
        id: Any,
        parent: Any,
        time: Any,
        time_from: str | None,
    ) -> None:
        self.session = session
        self.trace = session.trace
        if self.trace.unanchored is not None:
            self.trace.anchor()
        self.record = record
        self._id = id if type(id) is str and id else f"L{record.number}"
        self._parent = parent if type(parent) is str and parent else None
        self.first_id: str | None = None
        self._count = 0
        self._is_beside = False
        self.flags: tuple[str, ...] = ()
        """Flags that all objects get which are written from now on."""
        self._time, self._derived, is_lossy = self.trace.entry_time(session, record, time, time_from)
        self._native_time = time if is_lossy else None

    def beside(self, id: str) -> Entry:
        """Return an entry of the same record and time with an id of its own and no parent."""
        other = copy(self)
        other._become(id)  # noqa: SLF001 - one of its own kind
        return other

    def _become(self, id: str) -> None:
        self._id, self._parent, self.first_id, self._count = id, None, None, 0
        self._native_time, self.flags, self._is_beside = None, (), True

    # -- objects

    def text(
        self,
        body: str,
        *,
        by: int = AGENT,
        block: int = 0,
        model: Any = None,
        id: str | None = None,
        time: Any = NO_TIME,
        rest: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
    ) -> int | None:
        """Write one text block as a Dialog and return its number; white space alone becomes an `empty-text` event."""
        if not body.strip():
            self.event(event_types.EMPTY_TEXT, {"text": body}, block=block, rest=rest, flags=flags, time=time)
            return None
        members: dict[str, Any] = {
            "type": "text",
            "mediatype": "text/plain",
            "encoding": "none",
            "body": self.trace.shown(body),
        }
        if by == AGENT and type(model) is str and model:
            members["model_id"] = model
            self.session.agent.saw_model(model)
        counts = self.session.counts
        counts["dialogs"] += 1
        if by == USER:
            self.session.has_human_text = True
        counts["agent_turns" if by == AGENT else "user_turns"] += 1
        return self._put(DIALOG, members, by, block, id, time, rest, flags, None, None)

    def call(
        self,
        name: Any,
        input: Any,
        *,
        call_id: Any = None,
        block: int = 0,
        id: str | None = None,
        time: Any = NO_TIME,
        origin: Mapping[str, Any] | None = None,
        rest: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
    ) -> int:
        """Write a tool-call. One without a name becomes a `block/tool_use` event: its name is not made up."""
        if type(name) is not str or not name:
            self.trace.findings.add("odd-shape", record=self.record.number, action="kept as block/tool_use")
            told = {"name": name, "input": input, "id": call_id}
            data = {member: value for member, value in told.items() if value is not None}
            return self.event("block/tool_use", data, block=block, rest=rest, time=time)
        members: dict[str, Any] = {"type": "tool-call", "tool_name": name, "input": self.trace.shown(input)}
        if input is None:
            members["input"], rest = _NOTHING, {**(rest or {}), "input": None}
        key = _identifier(call_id)
        session = self.session
        session.counts["tool_calls"] += 1
        if key is not None:
            members["call_id"] = key
        number = self._put(EVENT, members, AGENT, block, id, time, rest, flags, origin or _HOST, None)
        if key is not None:
            if session.calls.setdefault(hash(key), number) != number:
                self.trace.findings.add("duplicate-call", record=self.record.number, action="kept as it is")
        else:
            self.trace.findings.count("call-without-result", action="kept open")
        return number

    def result(
        self,
        output: Any,
        *,
        call_id: Any = None,
        status: str | None = None,
        block: int = 0,
        id: str | None = None,
        time: Any = NO_TIME,
        origin: Mapping[str, Any] | None = None,
        rest: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
        media: Sequence[Mapping[str, Any]] = (),
    ) -> int:
        """Write a tool-result; `is_error` follows from the status "error" (D-LOG-17)."""
        members: dict[str, Any] = {"type": "tool-result", "output": self.trace.shown(output)}
        if output is None:
            members["output"], rest = _NOTHING, {**(rest or {}), "output": None}
        session = self.session
        key = _identifier(call_id)
        if key is not None:
            members["call_id"] = key
            mark = hash(key)
            if mark in session.results:
                self.trace.findings.add("duplicate-result", record=self.record.number, action="kept as it is")
            session.results.add(mark)
        else:
            self.trace.findings.count("result-without-call", action="kept as it is")
        if status:
            members["status"] = status
            if status == "error":
                members["is_error"] = True
        session.counts["tool_results"] += 1
        return self._put(EVENT, members, AGENT, block, id, time, rest, flags, origin or _HOST, media)

    def reasoning(
        self,
        content: Any,
        *,
        encrypted: Any = None,
        subject: Any = None,
        block: int = 0,
        id: str | None = None,
        time: Any = NO_TIME,
        rest: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
    ) -> int:
        """Write a reasoning event; `content` is "" when only protected content exists."""
        members: dict[str, Any] = {"type": "reasoning", "content": self.trace.shown(content)}
        if content is None:
            members["content"], rest = _NOTHING, {**(rest or {}), "content": None}
        if type(encrypted) is str and encrypted:
            members["encrypted"] = encrypted
        if type(subject) is str and subject:
            members["subject"] = self.trace.shown(subject)
        self.session.counts["reasoning"] += 1
        return self._put(EVENT, members, AGENT, block, id, time, rest, flags, None, None)

    def event(
        self,
        event_type: Any,
        data: Any = None,
        *,
        block: int = 0,
        id: str | None = None,
        time: Any = NO_TIME,
        rest: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
    ) -> int:
        """Write a system-event. `data` that is no object becomes the member `value` of one."""
        if type(event_type) is not str or not event_type:
            event_type = "unknown"
        members: dict[str, Any] = {"type": "system-event", "event_type": event_type[:MAX_EVENT_TYPE]}
        if data is not None:
            members["data"] = self.trace.shown(data if isinstance(data, dict) else {"value": data})
        self.session.counts["system_events"] += 1
        return self._put(EVENT, members, AGENT, block, id, time, rest, flags, None, None)

    def system_prompt(self, text: str, role: str, **options: Any) -> int:
        """Write a system-prompt event; the same text again in the session is told by its hash (D-LOG-06)."""
        text = self.trace.shown(text)
        raw = text.encode("utf-8")
        digest = hashlib.sha256(raw)
        data: dict[str, Any] = {"role": role}
        if digest.digest() in self.session.prompts:
            data |= {"sha256": digest.hexdigest(), "bytes": len(raw)}
        else:
            self.session.prompts.add(digest.digest())
            data |= {"text": text, "sha256": digest.hexdigest()}
        return self.event(event_types.SYSTEM_PROMPT, data, **options)

    def tool_definitions(self, definitions: Any, names: Sequence[str], **options: Any) -> int:
        """Write a tool-definitions event; the same definitions again in the session are told by their hash."""
        raw = orjson.dumps(definitions, option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(raw)
        data: dict[str, Any] = {"names": list(names), "sha256": digest.hexdigest()}
        if digest.digest() not in self.session.prompts:
            self.session.prompts.add(digest.digest())
            data["definitions"] = definitions
        return self.event(event_types.TOOL_DEFINITIONS, data, **options)

    def token_count(
        self,
        scope: Scope,
        usage: Usage,
        native: Any,
        *,
        response_id: Any = None,
        counted: bool = True,
        **options: Any,
    ) -> int:
        """Write a token-count event and count it in the report, unless `counted` is off (sums that repeat others)."""
        data: dict[str, Any] = {"scope": scope}
        if isinstance(response_id, str) and response_id:
            data["response_id"] = response_id
        members = to_token_usage(usage, None)
        if members is not None and (counted or scope != "response"):  # else readers would count it again
            data["usage"] = members
        data["native"] = native
        if counted:
            self.session.add_usage(scope, usage)
        else:
            self.session.report_invalid(usage)
        return self.event(event_types.TOKEN_COUNT, data, **options)

    def attachment(
        self,
        mediatype: str,
        body: str,
        *,
        by: int = USER,
        block: int = 0,
        rest: Mapping[str, Any] | None = None,
    ) -> int:
        """Write an Attachment Object with a base64url body; it belongs to the entry's first text (D-LOG-14)."""
        if self.first_id is None:
            self.trace.unanchored = self
        members = {"mediatype": mediatype, "encoding": "base64url", "body": body}
        return self._put(ATTACHMENT, members, by, block, None, NO_TIME, rest, (), None, None)

    # -- the writing

    def _put(
        self,
        kind: int,
        members: dict[str, Any],
        speaker: int,
        block: int,
        id: str | None,
        time: Any,
        rest: Mapping[str, Any] | None,
        flags: Sequence[str],
        origin: Mapping[str, Any] | None,
        media: Sequence[Mapping[str, Any]] | None,
    ) -> int:
        trace, session, record = self.trace, self.session, self.record
        node = waits_for = -1
        ext: dict[str, Any] = {"src": [trace.file_number, record.number, block]}
        when, derived = self._time, self._derived
        lost_time = None
        if time is not NO_TIME:
            when, derived, is_lost = trace.block_time(session, record, time, (when, derived))
            lost_time = time if is_lost else None
        if when is not None:
            members["start" if kind != EVENT else "time"] = when
            if derived is not None:
                ext["time"] = derived
        if kind != ATTACHMENT:
            if self.first_id is None:
                self.first_id, node = session.tree.register(id or self._id)
                members["entry_id"] = self.first_id
                if self._parent is not None:
                    link = session.tree.link(node, self._parent)
                    waits_for = link.waits_for
                    if link.parent_id is not None:
                        members["parent_id"] = link.parent_id
                    elif link.closes_circle:
                        ext["parent"] = self._parent
                        trace.findings.add(
                            "parent-cycle", record=record.number, action="kept in onrecord.parent"
                        )
            else:
                self._count += 1
                members["entry_id"], node = session.tree.register(
                    id or f"{self._id}#{self._count}", is_further=True
                )
                members["parent_id"] = self.first_id
        numbers = [] if self._is_beside else record.numbers
        if rest or numbers or self._native_time is not None or lost_time is not None:
            if trace.run.options.with_rest:
                kept = dict(trace.shown(rest)) if rest else {}
                if lost_time is not None:
                    kept.setdefault("time", lost_time)
                if self._native_time is not None:
                    kept.setdefault("record_time" if lost_time is not None else "time", self._native_time)
                    self._native_time = None
                if numbers:
                    kept["numbers"] = numbers
                    record.numbers = []
                ext["rest"] = kept
            else:
                trace.findings.count("rest-omitted")
        if origin is not None:
            ext["origin"] = origin
        if media:
            ext["media"] = list(media)
        if self.flags or flags:
            flags = (*self.flags, *flags)
        trace.mapped(record.number, is_conversation=kind != EVENT or members["type"] != "system-event")
        session.files.setdefault(trace.file_number)
        number = trace.run.spool.put(
            kind,
            session=session.index,
            entry=record.number,
            speaker=speaker,
            members=members,
            ext=ext,
            flags=tuple(flags),
        )
        if node >= 0:
            session.tree.settle(node, number, members["entry_id"])
        if waits_for >= 0:
            session.tree.wait(waits_for, number=number, parent=str(self._parent), record=record.number)
        if session.first_object is None:
            session.first_object = number
        if when is None:
            trace.untimed.append((number, session))
        return number


_HOST: Final[dict[str, Any]] = {"kind": "host"}


def _identifier(value: Any) -> str | None:
    """Return a call id as text, None for what is none."""
    if type(value) is str:
        return value or None
    return str(value) if type(value) is int else None
