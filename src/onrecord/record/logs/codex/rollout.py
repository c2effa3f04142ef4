"""Rollouts of Codex: one file a session, with copies of its parent's history if it was forked (native-logs.md 4.3)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.codex.events import event
from onrecord.record.logs.codex.forks import Origin, Own, memory_of, origin_of, own_part
from onrecord.record.logs.codex.frames import session_meta, turn_context
from onrecord.record.logs.codex.items import item
from onrecord.record.logs.codex.messages import talk
from onrecord.record.logs.codex.names import ENVELOPES, ITEMS, OTHER_ENVELOPES
from onrecord.record.logs.codex.survey import id_of, is_bare_meta, survey
from onrecord.record.logs.codex.thread import Line, Thread
from onrecord.record.logs.codex.tokens import pass_over, usage_record
from onrecord.record.logs.inference import CODEX_CLI
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import NO_TIME

MAX_HISTORY: Final = 1 << 20
"""Bytes of a replacement history that are kept; of a longer one its hash and size stand (B-15)."""

_NAME: Final = re.compile(
    r"rollout-.*?([0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})\.jsonl(?:\.zst|\.gz)?", re.ASCII
)
_NO_LOGS: Final = frozenset(
    [
        "auth.json",
        "history.jsonl",
        "session_index.jsonl",
        "models_cache.json",
        "version.json",
        "internal_storage.json",
    ]
)
_NO_ORIGIN: Final = Origin(None, None, None, {}, is_child=False)


@register
class Rollout(Importer):
    """Reads one rollout file."""

    format: ClassVar[str] = "codex-jsonl"
    title: ClassVar[str] = "Codex rollout"
    agent_kind: ClassVar[str] = CODEX_CLI

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record has Codex's envelope, or is the first line or the state of a log without one."""
        kind = value.get("type")
        if type(kind) is str and kind in ENVELOPES:
            return type(value.get("payload")) is dict
        return is_bare_meta(value) or value.get("record_type") == "state"

    @classmethod
    def hints_at(cls, path: Path) -> bool:
        """Say whether a file is named like a rollout."""
        return path.name.startswith("rollout-")

    @classmethod
    def is_side_file(cls, path: Path) -> bool:
        """Say whether a file of the program's folder is no log of a session, such as its keys."""
        return path.parent.name == ".codex" and path.name in _NO_LOGS

    def read(self) -> None:
        """Look at the file once, then map its records."""
        trace = self.trace
        found = survey(trace.file)
        meta = found.meta
        named = id_of(meta) if meta is not None else None
        agent_session_id = named or _id_in(trace.path)
        self._origin = origin_of(meta) if meta is not None else _NO_ORIGIN
        memory = memory_of(trace.run)
        self._own: Own = own_part(found, agent_session_id, self._origin, memory)
        self._meta_number = found.meta_number
        self._copies = 0
        session = trace.session(agent_session_id)
        self._is_known = session.has_begun and self._own.reason == "duplicate-entry"
        self._thread = Thread(trace, session, found, self._origin)
        self._mappers: Mapping[str, Callable[[Thread, Line], None]] = {
            "response_item": item,
            "event_msg": event,
            "session_meta": session_meta,
            "turn_context": turn_context,
            "token_usage_record": usage_record,
            "compacted": _compacted,
            "inter_agent_communication": _communication,
            **dict.fromkeys(OTHER_ENVELOPES, _named),
        }
        super().read()

    def record(self, record: Record) -> None:
        """Map one record, or account it as a copy."""
        thread = self._thread
        value = record.value
        kind, payload = value.get("type"), value.get("payload")
        is_bare = type(payload) is not dict
        if is_bare and (kind in ITEMS if type(kind) is str else kind is None):
            kind = "response_item" if kind is not None else kind
            payload = value
        if record.number < self._own.first and (record.number != self._meta_number or self._is_known):
            self._copied(record, kind, payload)
            return
        if not thread.session.has_begun and record.number != self._meta_number:
            thread.session.begin(thread.session.entry(record, time=value.get("timestamp", NO_TIME)))
        if is_bare and not (kind == "response_item" and payload is value):
            self._bare(record, kind)
            return
        mapper = self._mappers.get(kind) if type(kind) is str else None
        line = Line(record, payload, is_bare=is_bare)
        if mapper is not None:
            mapper(thread, line)
        else:
            thread.unknown(line, kind if type(kind) is str and kind else "unknown")

    def _bare(self, record: Record, kind: Any) -> None:
        """Map a record without envelope and without an item."""
        thread, value = self._thread, record.value
        line = Line(record, value, is_bare=True)
        if is_bare_meta(value):
            session_meta(thread, line)
        elif value.get("record_type") == "state":
            thread.told(line, "state")
        elif type(kind) is str and kind in self._mappers:
            thread.odd(line, kind)
        elif _is_foreign(value):
            self.trace.reported(record, "foreign-record")
        else:
            thread.unknown(line, kind if type(kind) is str and kind else "unknown")

    def _copied(self, record: Record, kind: Any, payload: Any) -> None:
        """Account a record of the part that another file tells; what goes on from it is noted."""
        thread = self._thread
        self.trace.duplicate(record, self._own.reason)
        self._copies += 1
        if type(payload) is not dict:
            return
        if kind == "turn_context" and type(payload.get("model")) is str:
            thread.model = payload["model"] or thread.model
        elif kind == "event_msg" and payload.get("type") == "token_count":
            pass_over(thread, payload)

    def finish(self) -> None:
        """Report the copies, and give the session what is only known now."""
        findings, own = self.trace.findings, self._own
        if self._copies:
            findings.count(
                own.reason,
                self._copies,
                action="skipped as the history of the session it was forked from"
                if own.reason == "fork-replay"
                else "skipped; another file of this session tells it",
            )
        if own.is_suspected:
            findings.count("fork-replay-suspected", action="nothing was cut")
        self._thread.finish()


def _id_in(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    if match is not None:
        return match[1]
    return path.name.removesuffix(".zst").removesuffix(".gz").removesuffix(".jsonl") or "log"


def _is_foreign(value: Mapping[str, Any]) -> bool:
    return any(importer.format != Rollout.format and importer.recognises(value) for importer in importers())


def _named(thread: Thread, line: Line) -> None:
    thread.told(line, line.record.value["type"])


def _compacted(thread: Thread, line: Line) -> None:
    """Map a compaction. The history that replaces the old one is data: its turns were told when they happened."""
    data = dict(line.payload)
    message = data.get("message")
    history = data.get("replacement_history")
    if history is not None:
        raw = orjson.dumps(history)
        if len(raw) > MAX_HISTORY:
            data["replacement_history"] = {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
            thread.trace.findings.add(
                "media-omitted", record=line.record.number, action="size and SHA-256 of the history kept"
            )
    entry = thread.entry(line, data.get("id"))
    has_summary = type(message) is str and message.strip() != ""
    if has_summary:
        del data["message"]
    entry.event(event_types.COMPACTION, data, rest=line.more)
    if has_summary:
        entry.event(event_types.COMPACTION_SUMMARY, {"text": message})


def _communication(thread: Thread, line: Line) -> None:
    content = line.payload.get("content", line.payload.get("message"))
    if content:
        talk(thread, line, content, rest=line.rest(frozenset(["id", "author", "content", "message"])))
    else:
        thread.told(line, "inter_agent_communication")
