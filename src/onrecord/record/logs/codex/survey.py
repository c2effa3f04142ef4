"""A first look at a rollout: what its records say about each other, so that the second look can write in file order.

Kept are hashes and record numbers, about 100 bytes for each call and 12 for each other record (native-logs.md R-20).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import orjson

from onrecord.record.logs.codex import outcomes
from onrecord.record.logs.codex.names import (
    CALLS,
    ENDS,
    ITEMS,
    OUTPUTS,
    TALK_EVENTS,
    TALK_ITEMS,
    TOOL_ITEMS,
    key_of,
    type_of,
)
from onrecord.record.logs.codex.talk import Talk
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.times import Times

_TURN_STARTS: Final = ("task_started", "turn_started")
_SEARCHES: Final = ("web_search_call", "web_search_end", "WebSearch", "Extension")


class Survey:
    """What a rollout holds."""

    def __init__(self) -> None:
        self.keys = array("q")
        """Hash of type and payload of each record but the session metas; it tells copies whatever their time is."""
        self.numbers = array("I")
        """Record numbers of `keys`."""
        self.meta: Mapping[str, Any] | None = None
        """The first session meta, which is the session's own."""
        self.meta_number = 0
        self.copied: list[str] = []
        """Ids of the session metas of other sessions, in order."""
        self.own_by_ordinal: int | None = None
        self.own_by_task: int | None = None
        self.own_by_context: int | None = None
        self.talk = Talk()
        self.usage_from: int | None = None
        """Record from which on usage records tell the usage, so that token counts are their twins."""
        self.calls: set[int] = set()
        self.outputs: set[int] = set()
        self.ends: set[int] = set()
        self.outcomes: dict[int, str] = {}
        """How calls ended by their end events."""
        self.servers: dict[int, tuple[str, str]] = {}
        """Server and tool of calls that went to an MCP server."""
        self.searches: dict[int, deque[str]] = {}
        """Ids of web searches that are calls, by what they did."""
        self.search_ends: dict[int, deque[str]] = {}
        """Ids of web searches in end events, by what they did."""
        self._nameless: dict[int, int] = {}
        self._count: tuple[int, Mapping[str, Any]] | None = None
        self._start_ordinal: Any = None
        self._copied_at: int | None = None
        self._times = Times()

    # -- the look

    def look_at(self, record: Record) -> None:
        """Note what one record says about others."""
        value = record.value
        kind = value.get("type")
        if type(kind) is not str:
            kind = None
        payload = value.get("payload")
        if type(payload) is not dict:
            if self.meta is None and is_bare_meta(value):
                self._meta(record, value)
                return
            payload, kind = value, "response_item" if kind in ITEMS else kind
        elif kind == "session_meta":
            self._meta(record, payload)
            return
        self.keys.append(hash((kind, orjson.dumps(payload))))
        self.numbers.append(record.number)
        if self._start_ordinal is not None and self.own_by_ordinal is None:
            ordinal = value.get("ordinal")
            if type(ordinal) is int and ordinal >= self._start_ordinal:
                self.own_by_ordinal = record.number
        if kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(record.number, payload)
        elif kind == "token_usage_record" and self.usage_from is None:
            same = self._count is not None and self._count[1] == payload.get("usage")
            self.usage_from = self._count[0] if self._count is not None and same else record.number
        if self._copied_at is not None:
            self._look_for_turn(record, kind, payload)

    def finish(self) -> None:
        """Give web searches without an id those of the events that tell of the same search, and find twins."""
        self.talk.finish()
        for action, number in self._nameless.items():
            self.calls.update(hash(key) for key in islice(self.search_ends.get(action, ()), number))

    def _meta(self, record: Record, payload: Mapping[str, Any]) -> None:
        if self.meta is None:
            self.meta, self.meta_number = payload, record.number
            start = payload.get("subagent_history_start_ordinal")
            self._start_ordinal = start if type(start) is int else None
            return
        own, other = id_of(self.meta), id_of(payload)
        if other is not None and other != own:
            self.copied.append(other)
            if self._copied_at is None:
                time = self._times.read(record.value.get("timestamp"))
                self._copied_at = time.ns if time is not None else None

    def _look_for_turn(self, record: Record, kind: Any, payload: Mapping[str, Any]) -> None:
        """Note the first turn that began later than the copied session meta was written."""
        is_task = kind == "event_msg" and payload.get("type") in _TURN_STARTS
        if not is_task and kind != "turn_context":
            return
        if (self.own_by_task if is_task else self.own_by_context) is not None:
            return
        time = self._times.read(record.value.get("timestamp"))
        if time is None or self._copied_at is None or time.ns <= self._copied_at:
            return
        if is_task:
            self.own_by_task = record.number
        else:
            self.own_by_context = record.number

    def _item(self, payload: Mapping[str, Any]) -> None:
        kind = type_of(payload)
        if type(kind) is not str:
            return
        if kind not in OUTPUTS:
            self._count = None
        if kind == "message":
            role = payload.get("role")
            if role in ("assistant", "user"):
                self.talk.item(role, payload)
        elif kind == "reasoning":
            self.talk.item(kind, payload)
        elif kind in CALLS:
            key = key_of(payload)
            if key is not None:
                self.calls.add(hash(key))
                if kind == "image_generation_call" and payload.get("result"):
                    self.outputs.add(hash(key))
            if kind == "web_search_call":
                action = search_of(payload)
                if action is None:
                    return
                if key is not None:
                    self.searches.setdefault(action, deque()).append(key)
                else:
                    self._nameless[action] = self._nameless.get(action, 0) + 1
        elif kind in OUTPUTS:
            key = key_of(payload) if "call_id" in payload else None
            if key is not None:
                self.outputs.add(hash(key))

    def _event(self, number: int, payload: Mapping[str, Any]) -> None:
        kind = payload.get("type")
        if type(kind) is not str:
            return
        if kind in TALK_EVENTS:
            self.talk.event(number, payload)
        elif kind in ENDS:
            self._end(payload)
        elif kind == "item_completed":
            item = payload.get("item")
            if type(item) is not dict or type(item.get("type")) is not str:
                return
            if item["type"] in TOOL_ITEMS:
                self._end(item)
            elif item["type"] in TALK_ITEMS:
                self.talk.event(number, payload)
        elif kind == "token_count" and self.usage_from is None:
            info = payload.get("info")
            last = info.get("last_token_usage") if type(info) is dict else None
            if type(last) is dict and (self._count is None or self._count[1] != last):
                self._count = number, last

    def _end(self, payload: Mapping[str, Any]) -> None:
        key = key_of(payload)
        if key is None:
            return
        mark = hash(key)
        self.ends.add(mark)
        status = outcomes.of_end(payload)
        if status is not None and self.outcomes.get(mark) in (None, outcomes.COMPLETED):
            self.outcomes[mark] = status
        server = server_of(payload)
        if server is not None:
            self.servers[mark] = server
        action = search_of(payload)
        if action is not None:
            keys = self.search_ends.setdefault(action, deque())
            if not keys or keys[-1] != key:
                keys.append(key)


def survey(file: NativeFile) -> Survey:
    """Take a first look at a rollout. What cannot be read is reported by the second one.

    Raises `OSError` as reading does.
    """
    found = Survey()
    findings = FileFindings(file.name)
    with file.open() as stream:
        for record in read_lines(stream, findings):
            if type(record) is Record:
                found.look_at(record)
    found.finish()
    return found


def is_bare_meta(value: Mapping[str, Any]) -> bool:
    """Say whether a record is the first line of a log without envelopes."""
    return (
        "type" not in value
        and "record_type" not in value
        and "id" in value
        and "timestamp" in value
        and ("instructions" in value or "git" in value)
    )


def id_of(meta: Mapping[str, Any]) -> str | None:
    """Return the session id of a session meta."""
    for name in ("id", "session_id"):
        value = meta.get(name)
        if type(value) is str and value:
            return value
    return None


def search_of(payload: Mapping[str, Any]) -> int | None:
    """Return what a web search did, as a hash, None where nothing says so. Older ends have the query only."""
    action = payload.get("action")
    if type(action) is not dict:
        query = payload.get("query") if payload.get("type") in _SEARCHES else None
        return hash(("search", query)) if type(query) is str and query else None
    if action.get("type") == "search":
        query, queries = action.get("query"), action.get("queries")
        if query is None and type(queries) is list and len(queries) == 1:
            (query,) = queries
        if type(query) is str and query:
            return hash(("search", query))
    return hash(orjson.dumps(action, option=orjson.OPT_SORT_KEYS))


def server_of(payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return server and tool of an event or completed item about a call to an MCP server."""
    invocation = payload.get("invocation")
    holder = invocation if type(invocation) is dict else payload
    server, tool = holder.get("server"), holder.get("tool")
    return (server, tool) if type(server) is str and type(tool) is str and server and tool else None
