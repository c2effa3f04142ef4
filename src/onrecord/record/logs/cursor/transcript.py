"""Transcripts of Cursor's agent: messages with few ids, no usage, and mostly neither times nor results.

Source: native-logs.md 4.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import orjson

from onrecord.record.logs.cursor.blocks import REDACTED, Blocks
from onrecord.record.logs.cursor.places import parent_of, stem
from onrecord.record.logs.inference import CURSOR
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import NO_TIME, NativeSession
from onrecord.record.logs.times import from_text_tag
from onrecord.record.logs.trace import Trace

_STRANGERS: Final = ("sessionId", "session_id", "type", "timestamp", "uuid")
_ROLES: Final = frozenset(["user", "assistant"])
_MAPPED: Final = frozenset(["role", "message", "id", "timestamp", "model"])
_IN_MESSAGE: Final = frozenset(["content", "role", "model"])


@register
class CursorTranscript(Importer):
    """Agent transcripts of Cursor."""

    format = "cursor-jsonl"
    title = "Cursor agent transcripts"
    agent_kind = CURSOR
    carriers: ClassVar[frozenset[str]] = frozenset(["lines"])

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._session: NativeSession | None = None
        self._blocks: Blocks | None = None
        self._is_copy: bool | None = None

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is a message, or the end of a turn."""
        if value.get("type") == "turn_ended":
            return True
        if "role" not in value or any(name in value for name in _STRANGERS):
            return False
        message = value.get("message")
        return value["role"] in ("user", "assistant") and isinstance(message, dict) and "content" in message

    @classmethod
    def hints_at(cls, path: Path) -> bool:
        """Say whether the file lies in a folder of transcripts."""
        return "agent-transcripts" in path.parts

    @classmethod
    def is_side_file(cls, path: Path) -> bool:
        """Say whether a file is the note beside a chat store: `chats/<project>/<id>/meta.json`."""
        return path.name == "meta.json" and path.parent.parent.parent.name == "chats"

    @classmethod
    def without_hashed(cls, value: Any) -> Any:
        """Return a record with a line break for each marker of withheld text, which leaves the text (4.6)."""
        message = value.get("message") if isinstance(value, dict) else None
        if not isinstance(message, dict) or value.get("role") != "assistant":
            return value
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        shown = [_unmarked(part) for part in parts]
        return {**value, "message": {**message, "content": shown}} if shown != parts else value

    # -- records

    def record(self, record: Record) -> None:
        """Map one record."""
        value = record.value
        if self._is_repeated(record):
            self.trace.duplicate(record, "duplicate-entry")
            self.trace.findings.count("duplicate-entry", record=record.number, action="skipped as duplicate")
            return
        role = value.get("role")
        if isinstance(role, str) and role in _ROLES:
            self._message(record, value, role)
        elif "role" in value:
            self._unknown(record, value, f"role/{role[:64]}" if isinstance(role, str) else "role")
        elif value.get("type") == "turn_ended":
            self._event(record, "turn-ended", value)
        elif value.get("type") == "error":
            self._event(record, "error", value)
        elif any(other is not type(self) and other.recognises(value) for other in importers()):
            self.trace.reported(record, "foreign-record")
        else:
            kind = value.get("type")
            self._unknown(record, value, kind if isinstance(kind, str) and kind else "unknown")

    def _is_repeated(self, record: Record) -> bool:
        """Say whether an earlier file of the run has told the session up to here in the same words."""
        native = stem(self.trace.path)
        if self._is_copy is None:
            known = self.trace.run.known_session(self.format, native)
            self._is_copy = known is not None and known.first_object is not None
        seen = self.trace.run.seen(self.format)
        key, digest = hash((native, record.number)), hash(orjson.dumps(record.value))
        if self._is_copy and seen.get(key) == digest:
            return True
        if self._is_copy and key in seen:
            self.trace.findings.add(
                "duplicate-entry-differs",
                record=record.number,
                action="added to the session of another file of this name",
            )
        self._is_copy = False
        seen[key] = digest
        return False

    def _open(self, record: Record) -> tuple[NativeSession, Blocks]:
        if self._session is None or self._blocks is None:
            session = self._session = self.trace.session(stem(self.trace.path))
            parent = parent_of(self.trace.path)
            if parent is not None and parent != session.agent_session_id:
                session.child_of(parent)
                session.format = "autonomous"
            self._blocks = Blocks(self.trace, session)
        return self._session, self._blocks

    def _event(self, record: Record, kind: str, value: dict[str, Any]) -> None:
        session, blocks = self._open(record)
        entry = session.entry(record, id=value.get("id"), time=value.get("timestamp", NO_TIME))
        blocks.begin(entry)
        entry.event(kind, value)

    def _unknown(self, record: Record, value: dict[str, Any], kind: str) -> None:
        self.trace.findings.add("unknown-record-type", name=kind[:64], action="kept as system-event")
        self._event(record, kind, value)

    def _message(self, record: Record, value: dict[str, Any], role: str) -> None:
        message = value.get("message")
        if not isinstance(message, dict):
            self.trace.findings.add("odd-shape", record=record.number, action="read as the content")
            message = {"content": message}
        session, blocks = self._open(record)
        content = message.get("content")
        time, time_from = value.get("timestamp", NO_TIME), None
        tag = blocks.time_tag(content) if role == "user" else None
        if tag is not None and time is NO_TIME:
            read = from_text_tag(tag)
            time, time_from = (tag, None) if read is None else (read.text, "tag")
            if read is not None and read.note is not None:
                self.trace.findings.add(read.note, record=record.number, action="read as UTC")
        entry = session.entry(record, id=value.get("id"), time=time, time_from=time_from)  # type: ignore[arg-type]
        blocks.begin(entry)
        rest = {name: member for name, member in value.items() if name not in _MAPPED}
        if not isinstance(value.get("id", ""), str):
            rest["id"] = value["id"]
        inner = {name: member for name, member in message.items() if name not in _IN_MESSAGE}
        if inner or message.get("role", role) != role:
            rest["message"] = inner | ({"role": message["role"]} if message.get("role", role) != role else {})
        model = _model(message, rest.setdefault("message", {})) or _model(value, rest)
        if not rest["message"]:
            del rest["message"]
        session.agent.saw_model(model)
        blocks.write(entry, content, role=role, model=model, rest=rest)


def _model(members: Mapping[str, Any], rest: dict[str, Any]) -> str | None:
    """Return the model that is named; one of a wrong kind stays in the rest."""
    model = members.get("model")
    if isinstance(model, str) and model:
        return model
    if model is not None:
        rest["model"] = model
    return None


def _unmarked(part: Any) -> Any:
    if isinstance(part, str):
        return part.replace(REDACTED, "\n")
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return {**part, "text": _unmarked(part["text"])}
    return part
