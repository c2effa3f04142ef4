"""Claude Code's session files (`claude-jsonl`).

Source: native-logs.md 4.1.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from onrecord.record.logs.claude import graph, records, user_text
from onrecord.record.logs.claude.bookkeeping import Bookkeeping
from onrecord.record.logs.claude.messages import Messages
from onrecord.record.logs.claude.places import lies_beside_logs, quotes_agents
from onrecord.record.logs.claude.states import State
from onrecord.record.logs.inference import CLAUDE_CODE
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.trace import Trace

FORMAT: Final = "claude-jsonl"
"""The format id."""

MAX_HELD: Final = 200
"""Records without session id that wait for the first one that has one."""

MAX_HELD_BYTES: Final = 2_000_000
"""Bytes of records that wait."""

_MESSAGES: Final = frozenset(["user", "assistant"])
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
_DOCUMENT: Final = re.compile(rb'\s*\{\s*(?:\r?\n|"loglines"\s*:)')


@register
class ClaudeCode(Importer):
    """Importer of Claude Code's session files, sub-agent files, workflow journals and web exports."""

    format = FORMAT
    title = "Claude Code session"
    agent_kind = CLAUDE_CODE
    provider = "anthropic"
    carriers = frozenset(["lines", "document"])
    is_grouped_by_folder = True

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._messages = Messages(trace, FORMAT)
        self._bookkeeping = Bookkeeping(self._messages)
        self._held: list[Record] = []
        self._held_bytes = 0
        self._state: State | None = None
        self._handlers = self._bookkeeping.handlers

    # -- detection

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is decisive (native-logs.md section 3)."""
        kind = value.get("type")
        if type(kind) is not str:
            return records.is_workflow_run(value) or type(value.get("loglines")) is list
        if "systemPayload" in value or _has_parts(value.get("message")):
            return False  # Qwen Code, whose records have the same envelope
        if type(value.get("sessionId")) is str:
            return "projectHash" not in value
        if kind == "summary":
            return "leafUuid" in value
        if kind == "file-history-snapshot":
            return "messageId" in value
        if kind in _MESSAGES:
            return (
                type(value.get("message")) is dict
                and ("uuid" in value or "timestamp" in value)
                and "session_id" not in value
            )
        return records.is_workflow_step(value)

    @classmethod
    def recognises_members(cls, names: frozenset[str]) -> bool:
        """Say whether a large object is an export or a workflow run."""
        return "loglines" in names or {"runId", "taskId", "workflowName"} <= names

    @classmethod
    def hints_at(cls, path: Path) -> bool:
        """Say whether a file lies in Claude Code's folder of projects."""
        return path.suffix == ".jsonl" and ".claude" in path.parts and "projects" in path.parts

    @classmethod
    def is_side_file(cls, path: Path) -> bool:
        """Say whether a file is read with a session, or lies in Claude Code's folder and is no log.

        Read with sessions are what describes sub-agents, overflow texts and workflow scripts.
        """
        if path.name.startswith("agent-") and path.name.endswith(".meta.json"):
            return True
        if path.suffix == ".txt" and path.parent.name == "tool-results":
            return True
        if path.suffix == ".js" and path.parts[-3:-1] == ("workflows", "scripts"):
            return True
        return lies_beside_logs(path)

    @classmethod
    def comes_last(cls, path: Path) -> bool:
        """Say whether a file quotes sub-agents, whose own files tell more."""
        return quotes_agents(path)

    @classmethod
    def without_hashed(cls, value: Any) -> Any:
        """Return a record with the texts of its message in the pieces that they become."""
        return user_text.in_pieces(value)

    # -- reading

    def read(self) -> None:
        """Read a file of lines, or of JSON values that are spread over lines."""
        is_spread = _DOCUMENT.match(self.trace.file.head(4096))
        for record in self.trace.values() if is_spread else self.trace.records():
            self.record(record)
        self.finish()

    def record(self, record: Record) -> None:
        """Map one record."""
        value = record.value
        kind = value.get("type")
        handler = self._handlers.get(kind) if type(kind) is str else None
        if handler is not None or (type(kind) is str and kind in _MESSAGES):
            if self._state is None and type(value.get("sessionId")) is not str:
                self._hold(record)
            elif handler is None:
                mark = graph.mark_of(value)
                if not self._is_known(record, value, mark):
                    self._messages.message(record, value, self._enter(value), mark)
            elif not self._is_known(record, value, None):
                handler(record, value, self._enter(value))
        elif type(kind) is not str and type(value.get("loglines")) is list:
            self._export(record, value)
        else:
            self._other(record, value)

    def finish(self) -> None:
        """Map what was held back, and what is only known at the end."""
        self._release()
        self._messages.finish()

    def _is_known(self, record: Record, value: dict[str, Any], mark: int | None) -> bool:
        """Say whether the run has the record already; then it is accounted (R-16, R-17)."""
        uuid = value.get("uuid")
        if type(uuid) is str and uuid:
            if mark is None:
                mark = graph.mark_of(value)
            elif type(value.get("message")) is not dict:
                # What cannot be read stands for nobody: a readable record of the same id is the entry.
                return False
            return self._messages.is_repeated(record, uuid, mark)
        session_id = value.get("sessionId")
        if type(session_id) is not str and self._state is not None:
            session_id = self._state.root_id
        if self._messages.identities.is_from_before(session_id, value):
            self.trace.duplicate(record, "duplicate-entry", of="the same record of another file", report=True)
            return True
        return False

    def _other(self, record: Record, value: dict[str, Any]) -> None:
        """Map a record of a type that is not known, or report it as one of another format."""
        place = None
        if records.is_workflow_run(value) or records.is_workflow_step(value):
            place = records.session_above(self.trace.path)
        elif type(value.get("sessionId")) is not str and "uuid" not in value and _is_foreign(value):
            self.trace.reported(record, "foreign-record")
            return
        elif self._state is None and type(value.get("sessionId")) is not str:
            self._hold(record)
            return
        if type(value.get("type")) is str and self._is_known(record, value, None):
            return
        state = self._messages.states.of_main(place) if place is not None else self._enter(value)
        self._bookkeeping.other(record, value, state)

    def _export(self, record: Record, value: dict[str, Any]) -> None:
        """Map the export of a web session: one object with the lines of the session in it."""
        lines = value["loglines"]
        first = next((line for line in lines if type(line) is dict), {})
        own = {name: member for name, member in value.items() if name != "loglines"}
        named = next(
            (
                line["sessionId"]
                for line in lines
                if type(line) is dict and type(line.get("sessionId")) is str
            ),
            None,
        )
        state = self._messages.states.of_main(named or self._own_id(first))
        self._state = self._state or state
        self._bookkeeping.export(record, own, state)
        for line in lines:
            inner = self.trace.new_record(line)
            if type(line) is not dict:
                self._bookkeeping.value(inner, line, state)
            elif type(line.get("type")) is not str and type(line.get("loglines")) is list:
                # An export in an export would be read as deep as it goes.
                self._bookkeeping.other(inner, line, state)
            else:
                self.record(inner)

    # -- whose a record is

    def _enter(self, value: Mapping[str, Any]) -> State:
        """Return the session that a record belongs to."""
        states = self._messages.states
        session_id = value.get("sessionId")
        if type(session_id) is not str or not session_id:
            if self._state is None:
                self._state = states.of_main(self._own_id(value))
            session_id = self._state.root_id
        side = value.get("isSidechain")
        if side is True or (side is not False and type(value.get("agentId")) is str):
            state = states.of_child(session_id, value)
        else:
            state = states.of_main(session_id)
        if self._state is None:
            self._state = state
            self._release()
        elif not state.session.is_child:
            self._state = state
        return state

    def _hold(self, record: Record) -> None:
        """Keep a record until it is known whose it is: bookkeeping without session id stands first in many files."""
        self._held.append(record)
        self._held_bytes += record.size
        if len(self._held) > MAX_HELD or self._held_bytes > MAX_HELD_BYTES:
            self._release()

    def _release(self) -> None:
        """Map the records that waited: with the first session of the file, else with one named after the file."""
        held, self._held, self._held_bytes = self._held, [], 0
        if held and self._state is None:
            self._state = self._messages.states.of_main(self._own_id(held[0].value))
        for record in held:
            self.record(record)

    def _own_id(self, value: Mapping[str, Any]) -> str:
        """Return a session id for a file that tells none: its name if that is one, else told apart by its content."""
        stem = self.trace.path.name.partition(".")[0]
        if _UUID.fullmatch(stem):
            return stem
        return f"{stem or 'session'}-{hashlib.sha256(orjson.dumps(value)).hexdigest()[:16]}"


def _is_foreign(value: Mapping[str, Any]) -> bool:
    """Say whether a record is decisive for another format."""
    return any(other.format != FORMAT and other.recognises(value) for other in importers())


def _has_parts(message: Any) -> bool:
    return type(message) is dict and "parts" in message and "content" not in message
