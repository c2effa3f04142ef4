"""The stream of `cursor-agent --output-format stream-json`.

Source: native-logs.md 4.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.cursor.blocks import read_input
from onrecord.record.logs.cursor.edits import Edits
from onrecord.record.logs.cursor.places import stem
from onrecord.record.logs.inference import CURSOR
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.media import in_output
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import AGENT, NO_TIME, USER, Entry
from onrecord.record.logs.trace import Trace

_TYPES: Final = frozenset(["system", "user", "assistant", "tool_call", "thinking", "result"])
_SUFFIX: Final = "ToolCall"
_FUNCTION: Final = "function"
_MESSAGE: Final = frozenset(["type", "message", "session_id", "timestamp_ms", "model"])
_CALL: Final = frozenset(["type", "subtype", "call_id", "tool_call", "session_id", "timestamp_ms"])
_THINKING: Final = frozenset(["type", "subtype", "text", "session_id", "timestamp_ms"])


@register
class CursorStream(Importer):
    """Event streams of cursor-agent."""

    format = "cursor-stream-json"
    title = "cursor-agent stream-json"
    agent_kind = CURSOR
    carriers: ClassVar[frozenset[str]] = frozenset(["lines"])
    has_text_times = False

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._edits: dict[int, Edits] = {}
        self._thought: _Thought | None = None
        self._args: dict[int, int] = {}

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is a tool call with its two halves, or the beginning without tools."""
        if value.get("type") == "tool_call":
            return "subtype" in value and "call_id" in value
        return (
            value.get("type") == "system"
            and value.get("subtype") == "init"
            and "apiKeySource" in value
            and "tools" not in value
        )

    @classmethod
    def without_hashed(cls, value: Any) -> Any:
        """Return a record without the text of a piece of reasoning: the pieces stand in one text (4.6)."""
        if isinstance(value, dict) and value.get("type") == "thinking" and value.get("subtype") == "delta":
            return _others(value, "text")
        return value

    # -- records

    def record(self, record: Record) -> None:
        """Map one record."""
        value = record.value
        kind = value.get("type")
        is_own = isinstance(kind, str) and kind in _TYPES
        if (not is_own or "session_id" not in value) and self._is_foreign(value):
            self.trace.reported(record, "foreign-record")
            return
        if not is_own:
            kind = "unknown"
        entry = self._entry(record, value)
        if kind == "thinking" and self._thinking(entry, value):
            return
        self._end_thought()
        if kind == "system" and value.get("subtype") == "init":
            self._init(entry, value)
            return
        if not entry.session.has_begun:
            entry.session.begin(entry)
        if kind in ("user", "assistant"):
            self._message(entry, value, kind)
        elif kind == "tool_call" and self._tool_call(entry, value):
            pass
        elif kind == "result":
            entry.session.format = "autonomous"
            entry.event(event_types.SESSION_END, value)
        else:
            self._unknown(entry, value)

    def _is_foreign(self, value: dict[str, Any]) -> bool:
        return not self.recognises(value) and any(
            other is not type(self) and other.recognises(value) for other in importers()
        )

    def finish(self) -> None:
        """Close reasoning that the stream left open, and give the edits to their sessions."""
        self._end_thought()
        for edits in self._edits.values():
            edits.finish()

    def _entry(self, record: Record, value: dict[str, Any]) -> Entry:
        native = value.get("session_id")
        if not isinstance(native, str) or not native:
            last = next(reversed(self.trace.sessions), None)
            native = stem(self.trace.path) if last is None else last
        return self.trace.session(native).entry(record, time=value.get("timestamp_ms", NO_TIME))

    def _init(self, entry: Entry, value: dict[str, Any]) -> None:
        session = entry.session
        session.format = "autonomous"
        session.begin(entry, value)
        session.agent.saw_model(value.get("model"))
        session.saw_working_dir(entry, value.get("cwd"))

    def _unknown(self, entry: Entry, value: dict[str, Any]) -> None:
        kind, subtype = value.get("type"), value.get("subtype")
        name = kind if isinstance(kind, str) and kind else "unknown"
        if isinstance(subtype, str) and subtype:
            name = f"{name}/{subtype}"
        self.trace.findings.add("unknown-record-type", name=name[:64], action="kept as system-event")
        entry.event(name, value)

    # -- messages

    def _message(self, entry: Entry, value: dict[str, Any], role: str) -> None:
        message = value.get("message")
        rest = _others(value, *_MESSAGE) | _odd_session(value)
        if not isinstance(message, dict):
            self._odd(entry, "read as the content")
            message = {"content": message}
        inner = {name: member for name, member in message.items() if name not in ("role", "content")}
        if inner or message.get("role", role) != role:
            rest["message"] = inner | ({"role": message["role"]} if message.get("role", role) != role else {})
        if "model" in value:
            entry.session.agent.saw_model(value["model"])
            rest["model"] = value["model"]
        content = message.get("content")
        items = content if isinstance(content, list) else [] if content in (None, "") else [content]
        by = USER if role == "user" else AGENT
        model = next(reversed(entry.session.agent.models), None)
        for number, item in enumerate(items):
            text = item if isinstance(item, str) else item.get("text") if isinstance(item, dict) else None
            kind = item.get("type", "text") if isinstance(item, dict) else "text"
            if kind == "text" and isinstance(text, str):
                own = _others(item, "type", "text") if isinstance(item, dict) else {}
                entry.text(text, by=by, model=model, block=number, rest=rest | own)
            elif isinstance(kind, str) and isinstance(item, dict) and kind != "text":
                self.trace.findings.add("unknown-block-type", name=kind[:64], action="kept as system-event")
                entry.event(f"block/{kind}", item, block=number, rest=rest)
            else:
                self._odd(entry, "kept as block/content")
                entry.event("block/content", item, block=number, rest=rest)
            rest = {}
        if not items:
            entry.event("message", {"role": role, "content": content}, rest=rest)

    def _odd(self, entry: Entry, action: str) -> None:
        self.trace.findings.add("odd-shape", record=entry.record.number, action=action)

    # -- calls

    def _tool_call(self, entry: Entry, value: dict[str, Any]) -> bool:
        """Write a call at its first sight and its result when it is completed; say whether it is either."""
        subtype, call_id, holder = value.get("subtype"), value.get("call_id"), value.get("tool_call")
        holder = _as_tool_call(holder)
        if subtype not in ("started", "completed"):
            return False
        name, body = _tool(holder)
        if name is None or not isinstance(holder, dict) or not isinstance(call_id, str) or not call_id:
            self._odd(entry, "kept as system-event")
            entry.event(f"tool_call/{subtype}", value)
            return True
        session = entry.session
        rest = (
            _others(value, *_CALL)
            | _odd_session(value)
            | {key: member for key, member in holder.items() if member is not body}
        )
        if not session.has_call(call_id):
            own = {key: member for key, member in body.items() if key not in ("args", "result")}
            self._args[hash(call_id)] = _digest(body.get("args"))
            rest |= own
            entry.call(name, read_input(entry, body.get("args"), rest), call_id=call_id, rest=rest)
            rest = {}
        elif subtype == "started":
            entry.event("tool_call/started", value)
            return True
        if subtype == "completed":
            self._completed(entry, call_id, body, rest, name=name)
        return True

    def _completed(
        self, entry: Entry, call_id: str, body: dict[str, Any], rest: dict[str, Any], *, name: str
    ) -> None:
        result = body.get("result")
        if result is None:
            entry.event("tool_call/completed", {"call_id": call_id, **body}, rest=rest)
            return
        status = None
        if isinstance(result, dict):
            if "error" in result or "rejected" in result:
                status = "error"
            elif "success" in result:
                status = "success"
        output, media = in_output(entry, result)
        if body.get("args") is not None and self._args.get(hash(call_id)) != _digest(body["args"]):
            # The call has the arguments, unless the end says others.
            rest = rest | {"args": body["args"]}
        rest = rest | {key: member for key, member in body.items() if key not in ("args", "result")}
        entry.result(output, call_id=call_id, status=status, media=media, rest=rest, block=1)
        if status == "success":
            session = entry.session
            edits = self._edits.setdefault(session.index, Edits(session))
            edits.applied(name, body.get("args"), result["success"], record=entry.record.number)

    # -- thinking

    def _thinking(self, entry: Entry, value: dict[str, Any]) -> bool:
        """Gather the pieces of one reasoning; say whether the record is one of them."""
        subtype, text = value.get("subtype"), value.get("text")
        if subtype not in ("delta", "completed") or not isinstance(text, str | None):
            return False
        if self._thought is not None and self._thought.entry.session is not entry.session:
            self._end_thought()
        if self._thought is None:
            if not entry.session.has_begun:
                entry.session.begin(entry)
            self._thought = _Thought(entry)
        self._thought.add(entry.record, value, text or "")
        if subtype == "completed":
            self._end_thought()
        return True

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.write(self.trace)
            self._thought = None


class _Thought:
    """Pieces of one reasoning; it stands in the place of the first."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._texts: list[str] = []
        self._records: list[int] = []
        self._times: list[Any] = []
        self._rest: dict[str, Any] = {}

    def add(self, record: Record, value: dict[str, Any], text: str) -> None:
        """Add a piece."""
        self._texts.append(text)
        self._records.append(record.number)
        self._times.append(value.get("timestamp_ms"))
        others = _others(value, *_THINKING) | _odd_session(value)
        if others:
            self._rest.setdefault("others", {})[str(record.number)] = others

    def write(self, trace: Trace) -> None:
        """Write the reasoning; all its records are mapped by it."""
        rest = dict(self._rest)
        if len(self._records) > 1:
            rest["records"] = self._records
            if any(time is not None for time in self._times):
                rest["times"] = self._times
        self.entry.reasoning("".join(self._texts), rest=rest)
        for number in self._records:
            trace.mapped(number, is_conversation=True)


def _tool(holder: Any) -> tuple[str | None, dict[str, Any]]:
    """Return the name of a tool and what is said about the call; a name that is not told is None."""
    if isinstance(holder, dict):
        for key, body in holder.items():
            if key.endswith(_SUFFIX) and len(key) > len(_SUFFIX) and isinstance(body, dict):
                return key.removesuffix(_SUFFIX), body
        if len(holder) == 1:
            key, body = next(iter(holder.items()))
            if key and isinstance(body, dict):
                return key, body
    return None, {}


def _as_tool_call(holder: Any) -> Any:
    """Return a call that is told as a function's name and arguments in the form of the others."""
    function = holder.get(_FUNCTION) if isinstance(holder, dict) else None
    if not isinstance(function, dict) or any(key.endswith(_SUFFIX) for key in holder):
        return holder
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return holder
    body = _others(function, "name", "arguments") | {"args": function.get("arguments")}
    if "result" not in body and "result" in holder:
        return {name + _SUFFIX: body | {"result": holder["result"]}, **_others(holder, _FUNCTION, "result")}
    return {name + _SUFFIX: body, **_others(holder, _FUNCTION)}


def _odd_session(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the id of a session if it is none."""
    native = value.get("session_id")
    return {} if native in (None, "") or isinstance(native, str) else {"session_id": native}


def _digest(value: Any) -> int:
    return hash(orjson.dumps(value))


def _others(value: Mapping[str, Any], *mapped: str) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in mapped}
