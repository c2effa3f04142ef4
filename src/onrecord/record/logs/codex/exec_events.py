"""The event stream of `codex exec --json`: threads, turns and items, without times (native-logs.md 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.codex import outcomes
from onrecord.record.logs.codex.edits import Edits
from onrecord.record.logs.codex.items import reasoned
from onrecord.record.logs.codex.media import in_output
from onrecord.record.logs.inference import CODEX_CLI
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import AGENT, Entry, NativeSession
from onrecord.record.logs.usage import codex

_DECISIVE: Final = frozenset(
    [
        "thread.started",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "item.started",
        "item.updated",
        "item.completed",
    ]
)
_ITEMS: Final = ("item.started", "item.updated", "item.completed")
_COMPLETED: Final = "item.completed"
_TEXT: Final = frozenset(["type", "id", "text"])

_CALLS: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "command_execution": ("command_execution", ("command", "cwd"), ("aggregated_output",)),
    "file_change": ("file_change", ("changes",), ()),
    "mcp_tool_call": ("", ("arguments",), ("result", "error")),
    "web_search": ("web_search", ("query", "action"), ("results",)),
    "collab_tool_call": ("", ("prompt", "receiver_thread_ids"), ("agents_states",)),
}
"""Items that are calls: the tool's name, the members that are its input, and those that are its output."""


@register
class ExecEvents(Importer):
    """Reads one event stream. Item ids restart with each thread, and so does everything else."""

    format: ClassVar[str] = "codex-exec-json"
    title: ClassVar[str] = "Codex exec event stream"
    agent_kind: ClassVar[str] = CODEX_CLI

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is one of the stream's events."""
        kind = value.get("type")
        if type(kind) is not str or kind not in _DECISIVE or "payload" in value:
            return False
        if kind == "thread.started":
            return type(value.get("thread_id")) is str
        return type(value.get("item")) is dict if kind in _ITEMS else True

    def read(self) -> None:
        """Map the records; those before any thread belong to one named by the file."""
        self._session: NativeSession | None = None
        self._edits: dict[str, Edits] = {}
        self._calls: set[int] = set()
        self._said: set[int] = set()
        self._mappers: Mapping[str, Callable[[Record], None]] = {
            "thread.started": self._thread,
            "turn.completed": self._turn,
            "turn.failed": self._failed,
            "error": self._failed,
            **dict.fromkeys(_ITEMS, self._item),
        }
        super().read()

    def record(self, record: Record) -> None:
        """Map one event."""
        kind = record.value.get("type")
        if type(kind) is str and kind in self._mappers:
            self._mappers[kind](record)
        elif kind == "turn.started":
            self._entry(record).event("turn.started", record.value)
        elif any(
            importer.format != self.format and importer.recognises(record.value) for importer in importers()
        ):
            self.trace.reported(record, "foreign-record")
        else:
            self._unknown(record, kind if type(kind) is str and kind else "unknown")

    def finish(self) -> None:
        """Give the sessions their File Objects."""
        for edits in self._edits.values():
            edits.finish()

    # -- frames

    def _thread(self, record: Record) -> None:
        thread_id = record.value.get("thread_id")
        if type(thread_id) is not str or not thread_id:
            self._odd(record, "thread.started")
            return
        session = self.trace.session(thread_id)
        if session is not self._session:
            self._session = session
            self._calls, self._said = set(), set()
        session.format = "autonomous"
        if session.has_begun:
            self.trace.findings.add("resumed-session", record=record.number, action="kept in the session")
            self._calls, self._said = set(), set()
        session.begin(session.entry(record), record.value)

    def _current(self, record: Record) -> NativeSession:
        if self._session is None:
            name = Path(self.trace.path).name
            self._session = self.trace.session(name.removesuffix(".jsonl") or "log")
            self._session.format = "autonomous"
        if not self._session.has_begun:
            self._session.begin(self._session.entry(record))
        return self._session

    def _entry(self, record: Record, id: Any = None) -> Entry:
        return self._current(record).entry(record, id=id)

    def _turn(self, record: Record) -> None:
        native = record.value.get("usage")
        if type(native) is not dict:
            if native is not None:
                self._odd(record, "turn.completed")
            else:
                self._entry(record).event("turn.completed", record.value)
            return
        usage = codex(native)
        if not usage.is_consistent:
            self.trace.findings.add("usage-inconsistent", record=record.number, action="our sum stands")
        rest = {name: value for name, value in record.value.items() if name not in ("type", "usage")}
        self._entry(record).token_count("turn", usage, native, counted=not usage.is_empty, rest=rest)

    def _failed(self, record: Record) -> None:
        self._entry(record).event(event_types.ERROR, record.value)

    # -- items

    def _item(self, record: Record) -> None:
        item = record.value.get("item")
        kind = item.get("type", item.get("item_type")) if type(item) is dict else None
        if type(item) is not dict or type(kind) is not str:
            self._odd(record, str(record.value["type"]))
            return
        self._current(record)
        if kind in _CALLS:
            self._call(record, item, kind)
        elif kind in ("agent_message", "assistant_message", "reasoning"):
            self._text(record, item, kind)
        elif kind == "todo_list":
            self._entry(record).event("todo_list", record.value)
        elif kind == "error":
            self._entry(record).event(event_types.ERROR, record.value)
        else:
            self._unknown(record, f"item/{kind}")

    def _text(self, record: Record, item: Mapping[str, Any], kind: str) -> None:
        """Map a text. What is not complete is told again by the completed item, so it is kept as an event."""
        text = item.get("text")
        if type(text) is not str:
            self._odd(record, f"item/{kind}")
            return
        if record.value["type"] != _COMPLETED:
            self._entry(record).event(str(record.value["type"]), record.value)
            return
        entry = self._entry(record, self._own_id(item))
        rest = {name: value for name, value in item.items() if name not in _TEXT}
        if kind == "reasoning":
            reasoned(entry, [text], rest=rest)
        else:
            entry.text(text, by=AGENT, rest=rest)

    def _call(self, record: Record, item: Mapping[str, Any], kind: str) -> None:
        """Map a call: it is written at the first sight of its id, and its result when it is completed."""
        key = self._own_id(item)
        mark = None if key is None else hash(key)
        entry = self._entry(record)
        is_first = mark is None or mark not in self._calls
        is_end = record.value["type"] == _COMPLETED
        if mark is not None:
            self._calls.add(mark)
        tool, inputs, outputs = _CALLS[kind]
        origin = _origin(item, kind)
        used = {"type", "id"}
        if is_first:
            value: Any = {name: item[name] for name in inputs if name in item}
            if kind == "mcp_tool_call":
                value = item.get("arguments")
            used |= {*inputs, "server", "tool"}
            entry.call(item.get("tool") or tool, value, call_id=key, origin=origin, rest=None)
        rest = {name: value for name, value in item.items() if name not in used}
        if is_end:
            self._result(entry, item, outputs, key=key, origin=origin, rest=rest)
        elif not is_first:
            entry.event(str(record.value["type"]), record.value)
        elif rest:
            entry.event("item.started", {"item": rest})

    def _result(
        self,
        entry: Entry,
        item: Mapping[str, Any],
        outputs: tuple[str, ...],
        *,
        key: str | None,
        origin: dict[str, str],
        rest: dict[str, Any],
    ) -> None:
        member = next((name for name in outputs if item.get(name) is not None), None)
        output = rest.pop(member, item[member]) if member is not None else ""
        shown, media = in_output(entry, output)
        status = outcomes.of_end(item)
        entry.result(shown, call_id=key, status=status, origin=origin, rest=rest, media=media)
        if item.get("type") == "file_change" and status != outcomes.ERROR and not outcomes.is_open(item):
            session = self._current(entry.record)
            edits = self._edits.setdefault(session.agent_session_id, Edits(self.trace, session))
            edits.changed(
                None if key is None else hash(key),
                item.get("changes"),
                model=None,
                record=entry.record.number,
            )

    def _own_id(self, item: Mapping[str, Any]) -> str | None:
        value = item.get("id")
        return value if type(value) is str and value else None

    # -- what is not known

    def _unknown(self, record: Record, event_type: str) -> None:
        self.trace.findings.add(
            "unknown-record-type", name=event_type[:64], record=record.number, action="kept as system-event"
        )
        self._entry(record).event(event_type, record.value)

    def _odd(self, record: Record, event_type: str) -> None:
        self.trace.findings.add("odd-shape", record=record.number, action="kept as system-event")
        self._entry(record).event(event_type, record.value)


def _origin(item: Mapping[str, Any], kind: str) -> dict[str, str]:
    server, tool = item.get("server"), item.get("tool")
    if kind == "mcp_tool_call" and type(server) is str and type(tool) is str:
        return {"kind": "mcp", "server": server, "tool": tool}
    return {"kind": "provider" if kind == "web_search" else "host"}
