"""The stream of Claude's SDK and of `claude -p --output-format stream-json`, and captures of it.

Source: native-logs.md 4.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from onrecord.record.logs import event_types, usage
from onrecord.record.logs.claude import graph, user_text
from onrecord.record.logs.claude.blocks import Blocks
from onrecord.record.logs.claude.calls import Calls
from onrecord.record.logs.claude.members import IN_RECORD, message_rest
from onrecord.record.logs.claude.messages import SYNTHETIC
from onrecord.record.logs.claude.parts import Parts
from onrecord.record.logs.claude.pictures import without_copies
from onrecord.record.logs.claude.responses import Responses
from onrecord.record.logs.inference import CLAUDE_CODE
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import NO_TIME, Entry, NativeSession
from onrecord.record.logs.trace import Trace

FORMAT: Final = "claude-stream-json"
"""The format id."""

MAX_HELD: Final = 200
"""Records without session id that wait for the first one that has one."""

SYSTEM: Final[Mapping[str, str]] = {
    "task_notification": event_types.TASK_NOTIFICATION,
    **{
        name: f"system/{name}"
        for name in (
            "thinking_tokens",
            "status",
            "hook_started",
            "hook_progress",
            "hook_response",
            "task_started",
            "task_progress",
            "task_updated",
            "compact_boundary",
        )
    },
}
"""Subtypes of `system` records beside `init`."""

_CONTROL: Final = frozenset(["control_request", "control_response", "control_cancel_request"])


@register
class ClaudeStream(Importer):
    """Importer of the SDK's stream. Most of its records have no time."""

    format = FORMAT
    title = "Claude SDK stream"
    agent_kind = CLAUDE_CODE
    provider = "anthropic"
    carriers = frozenset(["lines", "document"])

    @classmethod
    def without_hashed(cls, value: Any) -> Any:
        """Return a record with the texts of its message in the pieces that they become."""
        return user_text.in_pieces(value)

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._calls = Calls(trace)
        self._blocks = Blocks(trace, self._calls)
        self._responses = Responses(trace, FORMAT)
        self._identities = graph.Identities(trace.run.seen(FORMAT), trace.file_number)
        self._session: NativeSession | None = None
        self._session_id: str | None = None
        self._held: list[Record] = []
        self._parts = Parts(trace)
        self._handlers: dict[str, Callable[[Record, dict[str, Any]], None]] = {
            "system": self._system,
            "assistant": self._message,
            "user": self._message,
            "result": self._result,
            "rate_limit_event": self._rate_limits,
            "stream_event": self._stream_event,
            **dict.fromkeys(_CONTROL, self._control),
        }

    # -- detection

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is decisive (native-logs.md section 3)."""
        kind = value.get("type")
        if type(value.get("session_id")) is str and "sessionId" not in value:
            if kind == "system":
                # Cursor's beginning has the same type, no tools, and says where the key comes from.
                return value.get("subtype") == "init" and ("tools" in value or "apiKeySource" not in value)
            if kind in ("assistant", "user"):
                return "parent_tool_use_id" in value
            return kind in ("result", "rate_limit_event", "stream_event") and _is_own(kind, value)
        return _is_capture(value)

    # -- reading

    def read(self) -> None:
        """Read lines, or one object with captured messages."""
        head = self.trace.file.head(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
        is_spread = head.startswith((b"{\n", b"{\r\n"))
        for record in self.trace.values() if is_spread else self.trace.records():
            self.record(record)
        self.finish()

    def record(self, record: Record) -> None:
        """Map one record."""
        value = record.value
        kind = value.get("type")
        if _is_capture(value):
            self._capture(record, value)
            return
        if self._session is None and type(value.get("session_id")) is not str:
            self._hold(record)
            return
        self._note_session(value)
        if self._session is None:
            self._hold(record)
            return
        self._release()
        handler = self._handlers.get(kind) if type(kind) is str else None
        if handler is not None:
            if not self._is_repeated(record, value):
                handler(record, value)
        elif "session_id" not in value and "uuid" not in value and _is_foreign(value):
            self.trace.reported(record, "foreign-record")
        else:
            name = kind if type(kind) is str and kind else "unknown"
            self._unknown(record, name)
            self._event(record, value, name)

    def finish(self) -> None:
        """Write what is still open."""
        if self._session is None and self._held:
            self._session_id = self._own_id(self._held[0].value)
            self._session = self.trace.session(self._session_id)
        self._release()
        for left in self._parts.unfinished():
            self._event(left, left.value, "stream_event")
        self._responses.finish()
        self._calls.finish()

    # -- sessions

    def _note_session(self, value: Mapping[str, Any]) -> None:
        session_id = value.get("session_id")
        if type(session_id) is str and session_id and session_id != self._session_id:
            self._session_id = session_id
            self._session = self.trace.session(session_id)
            if self._session.format is None:
                self._session.format = "autonomous"

    def _of(self, value: Mapping[str, Any]) -> NativeSession:
        """Return the session of a record: that of a sub-agent if a call stands above it."""
        session = self._session
        assert session is not None
        call_id = value.get("parent_tool_use_id")
        if type(call_id) is not str or not call_id:
            return session
        child = self.trace.session(f"{self._session_id}/{call_id}")
        if not child.is_child:
            child.format = "autonomous"
            owner = self._calls.owner(call_id) or session
            kind = value.get("subagent_type")
            note = value.get("task_description")
            child.child_of(
                owner if owner is not child else session,
                call_id=call_id,
                description=note if type(note) is str and note else None,
            )
            if type(kind) is str and kind:
                child.agent.name = kind
        return child

    def _hold(self, record: Record) -> None:
        self._held.append(record)
        if len(self._held) > MAX_HELD:
            self._session_id = self._own_id(self._held[0].value)
            self._session = self.trace.session(self._session_id)
            self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for record in held:
            self.record(record)

    def _own_id(self, value: Mapping[str, Any]) -> str:
        """Return a session id for a stream that tells none."""
        stem = self.trace.path.name.partition(".")[0]
        return f"{stem or 'stream'}-{hashlib.sha256(orjson.dumps(value)).hexdigest()[:16]}"

    # -- records

    def _entry(self, record: Record, value: Mapping[str, Any], session: NativeSession) -> Entry:
        entry = session.entry(record, id=value.get("uuid"), time=value.get("timestamp", NO_TIME))
        if not session.has_begun:
            session.begin(entry, {})
        return entry

    def _event(self, record: Record, value: dict[str, Any], name: str, data: Any = None) -> Entry:
        entry = self._entry(record, value, self._of(value))
        entry.event(name, without_copies(entry, value if data is None else data, None))
        return entry

    def _unknown(self, record: Record, name: str) -> None:
        self.trace.findings.add(
            "unknown-record-type", name=name[:64], record=record.number, action="kept as system-event"
        )

    def _is_repeated(self, record: Record, value: dict[str, Any]) -> bool:
        """Say whether the run has a record of this id already; then it is accounted (R-16, R-17)."""
        uuid = value.get("uuid")
        if type(uuid) is not str or not uuid:
            return False
        found = self._identities.compare(uuid, graph.mark_of(value))
        if found == graph.SAME:
            self.trace.duplicate(record, "duplicate-entry", of="the entry of the same id", report=True)
        elif found == graph.DIFFERENT:
            self.trace.duplicate(record, "duplicate-entry")
            self.trace.findings.add(
                "duplicate-entry-differs", record=record.number, action="the oldest one is kept"
            )
        return found != graph.NEW

    def _system(self, record: Record, value: dict[str, Any]) -> None:
        subtype = value.get("subtype")
        if subtype == "init":
            self._init(record, value)
            return
        name = SYSTEM.get(subtype) if type(subtype) is str else None
        if name is None:
            name = f"system/{subtype}" if type(subtype) is str and subtype else "system/unknown"
            if not name.startswith("system/hook_"):
                self._unknown(record, name)
        self._event(record, value, name)

    def _init(self, record: Record, value: dict[str, Any]) -> None:
        session = self._of(value)
        entry = session.entry(record, id=value.get("uuid"), time=value.get("timestamp", NO_TIME))
        tools = value.get("tools")
        names = tools if type(tools) is list and all(type(name) is str for name in tools) else None
        data = {name: member for name, member in value.items() if name not in ("type", "subtype")}
        if names is not None:
            del data["tools"]
        session.begin(entry, data)
        session.agent.saw_model(value.get("model"))
        version = value.get("claude_code_version")
        if type(version) is str:
            session.agent.cli_version = version
        if names is not None:
            entry.tool_definitions(names, names)
        session.saw_working_dir(entry, value.get("cwd"))

    def _message(self, record: Record, value: dict[str, Any]) -> None:
        session = self._of(value)
        entry = self._entry(record, value, session)
        rest = IN_RECORD.rest(value, self.trace.findings, record=record.number)
        rest.pop("session_id", None)
        rest.pop("parent_tool_use_id", None)
        message = value.get("message")
        if type(message) is not dict:
            if "message" not in value:
                self.trace.findings.add(
                    "odd-shape", record=record.number, pointer="/message", action="kept as system-event"
                )
            entry.event(value["type"], value)
            return
        own = message_rest(message, self.trace.findings, kind=value["type"], record=record.number)
        if own:
            rest["message"] = own
        if value["type"] == "user":
            self._user(entry, value, message, rest)
            return
        if type(message.get("id")) is str:
            self._parts.finished(value, message["id"])
        if message.get("model") == SYNTHETIC or value.get("isApiErrorMessage") is True:
            if message.get("usage") is not None:
                rest["message"] = {**rest.get("message", {}), "usage": message["usage"]}
            is_error = value.get("isApiErrorMessage") is True or value.get("error") is not None
            kind = event_types.ERROR if is_error else event_types.META
            self._blocks.synthetic(entry, message.get("content"), kind, rest)
            return
        session.agent.saw_model(message.get("model"))
        text = self._blocks.assistant(entry, message.get("content"), message.get("model"), rest)
        native = message.get("usage")
        if type(native) is dict:
            self._responses.line(entry, id=message.get("id"), request=None, native=native, text=text)
        elif text is not None:
            self._responses.belongs(session, message.get("id"), None, text)

    def _user(
        self, entry: Entry, value: dict[str, Any], message: dict[str, Any], rest: dict[str, Any]
    ) -> None:
        content = message.get("content")
        if type(content) is str:
            content = [content]
        if type(content) is not list or not content:
            self._blocks.empty(entry, content, rest)
            return
        details = self._blocks.details(entry, content, value, "tool_use_result")
        rest = without_copies(entry, rest, content)
        is_synthetic = value.get("isSynthetic") is True or value.get("isMeta") is True
        for index, block in enumerate(content):
            text = block
            if type(block) is dict:
                kind = block.get("type")
                if kind == "tool_result":
                    self._blocks.result(entry, block, index, rest, details, None)
                    rest, details = {}, None
                    continue
                if kind in ("image", "document") and self._blocks.medium(entry, block, index, rest):
                    rest = {}
                    continue
                text = block.get("text") if kind == "text" else None
            if type(text) is not str:
                self._blocks.unknown(entry, block, index, rest)
            elif is_synthetic:
                entry.event(event_types.META, {"text": text}, block=index, rest=rest)
            else:
                self._blocks.human(entry, text, index, rest)
            rest = {}

    def _rate_limits(self, record: Record, value: dict[str, Any]) -> None:
        self._event(record, value, event_types.RATE_LIMITS)

    def _result(self, record: Record, value: dict[str, Any]) -> None:
        """Write the end of a run: its sums repeat those of the responses, its text the last Dialog."""
        entry = self._event(record, value, event_types.SESSION_END)
        native = value.get("usage")
        if type(native) is dict:
            entry.token_count("session", usage.claude(native, cost=value.get("total_cost_usd")), native)
        denials = value.get("permission_denials")
        for denial in denials if type(denials) is list else ():
            entry.event(event_types.PERMISSION_CHANGE, {"denied": denial})

    def _control(self, record: Record, value: dict[str, Any]) -> None:
        inner = value.get("request", value.get("response"))
        subtype = inner.get("subtype") if type(inner) is dict else None
        name = subtype if type(subtype) is str and subtype else str(value["type"]).removeprefix("control_")
        self._event(record, value, f"control/{name}")

    def _stream_event(self, record: Record, value: dict[str, Any]) -> None:
        for left in self._parts.part(record):
            self._event(left, left.value, "stream_event")

    # -- captures

    def _capture(self, record: Record, value: dict[str, Any]) -> None:
        """Map a capture: one object with the messages of both directions."""
        own = {name: member for name, member in value.items() if name != "messages"}
        items = value["messages"]
        first = next(
            (
                item["message"]["session_id"]
                for item in items
                if type(item) is dict
                and type(item.get("message")) is dict
                and type(item["message"].get("session_id")) is str
            ),
            None,
        )
        if self._session is None:
            self._session_id = first or self._own_id(own)
            self._session = self.trace.session(self._session_id)
            self._session.format = "autonomous"
        entry = self._entry(record, {}, self._session)
        entry.event(event_types.META, own)
        for item in items:
            message = item.get("message") if type(item) is dict else None
            inner = self.trace.new_record(message if type(message) is dict else item)
            if type(message) is not dict:
                self.trace.reported(inner, "not-an-object")
                continue
            time = item.get("timestamp")
            if "timestamp" not in message and time is not None:
                inner.value = {**message, "timestamp": time}
            self.record(inner)


def _is_own(kind: Any, value: Mapping[str, Any]) -> bool:
    """Tell the records of the stream from those of neighbours with the same types."""
    if kind == "result":
        return "total_cost_usd" in value or "modelUsage" in value
    return "rate_limit_info" in value if kind == "rate_limit_event" else type(value.get("event")) is dict


def _is_capture(value: Mapping[str, Any]) -> bool:
    items = value.get("messages")
    if type(items) is not list or not items or "type" in value:
        return False
    first = items[0]
    return type(first) is dict and "direction" in first and type(first.get("message")) is dict


def _is_foreign(value: Mapping[str, Any]) -> bool:
    """Say whether a record is decisive for another format."""
    return any(other.format != FORMAT and other.recognises(value) for other in importers())
