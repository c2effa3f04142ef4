"""The append log of a session played again: the messages at its end, and what its checkpoints lost.

A message keeps the id and the place of its first appearance. A later line of the same id is a newer version; a line of
another id that says the same is a copy that a checkpoint made (native-logs.md 4.4, B-11).
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from onrecord.record.logs.gemini.calls import Call
from onrecord.record.logs.gemini.message import Message, continued, id_of, joined_of, names_of, next_of
from onrecord.record.logs.gemini.parts import CALL, RESULT, Likeness, Part, likeness
from onrecord.record.logs.gemini.shelf import Place, Shelf
from onrecord.record.logs.reading.records import Record, Unreadable

if TYPE_CHECKING:
    from onrecord.record.logs.trace import Trace

CONVERSATION: Final = ("user", "gemini")
"""Types of the messages that people and the model write."""

_ALWAYS: Final = frozenset(["id", "timestamp", "type", "content", "toolCalls"])
"""Members of a copy that are its own or are looked at apart."""

_LOST: Final = ("tokens", "thoughts", "model")
"""Members that checkpoints lose."""


class Replay:
    """What one session's log says, until it is written."""

    def __init__(self, trace: Trace, shelf: Shelf) -> None:
        self.trace = trace
        self.shelf = shelf
        self.agent_session_id: str | None = None
        self.calls: dict[str, Call] = {}
        self.timeline: list[Message | tuple[Record, Place] | Unreadable] = []
        """Messages and other records in the order in which they came."""
        self.last_heartbeat: str | None = None
        self._messages: dict[str, Message] = {}
        self._telling: dict[int, Message] = {}
        self._current: list[Message] = []
        self._before: list[Message] = []
        self._since: list[tuple[str | None, Likeness]] = []
        """Ids and likenesses of the messages since the last checkpoint."""
        self._all_names: dict[frozenset[str], frozenset[str]] = {}
        self._first_copy: int | None = None

    def event(self, record: Record, value: Any) -> None:
        """Keep a record that is no message."""
        bare = Record(record.number, {}, record.line, record.offset, record.size, record.numbers)
        self.timeline.append((bare, self.shelf.put(value)))

    # -- messages

    def knows(self, value: dict[str, Any]) -> bool:
        """Say whether a record has the id of a message."""
        return id_of(value) in self._messages

    def message(self, record: Record, value: dict[str, Any], *, is_log: bool = True) -> None:
        """Take a message: a new one, a newer version, or a copy of one that is known."""
        native = id_of(value)
        like = likeness(value)
        known = self._messages.get(native) if native is not None else None
        if known is not None:
            self._newer(known, value, like, record, is_log=is_log)
            return
        if is_log and like.is_telling:
            known = self._telling.get(like.key)
            if known is not None and native is not None and not self._is_another(known, value):
                self._absorb(known, value, like, record.number)
                self._messages[native] = known
                self._copied(record)
                if self._first_copy is None:
                    self._first_copy = len(self._since)
                self._since.append((native, like._replace(parts=())))
                return
        message = self._new(native, value, like, record.number, record.numbers)
        self._current.append(message)
        if is_log:
            self._since.append((native, like._replace(parts=())))

    def _is_another(self, known: Message, value: dict[str, Any]) -> bool:
        """Say whether a message is not a copy, since its calls are others although they have the same ids."""
        recorded = value.get("toolCalls")
        if not isinstance(recorded, list):
            return False
        named = ((known.calls.get(native["id"]), native) for native in recorded if _has_id(native))
        if not any(call is not None and call.is_another(native) for call, native in named):
            return False
        del self._telling[known.key]
        return True

    def _new(
        self, id: str | None, value: dict[str, Any], like: Likeness, record: int, numbers: Sequence[str]
    ) -> Message:
        message = Message(id, value.get("type"))
        message.digest = hash(orjson.dumps(value))
        self._place(message, value, like, record, numbers)
        self.timeline.append(message)
        if id is not None:
            self._messages[id] = message
        return message

    def _place(
        self, message: Message, value: dict[str, Any], like: Likeness, record: int, numbers: Sequence[str]
    ) -> None:
        """Put the newest version of a message away, and its calls and results beside it."""
        message.record = record
        message.numbers = tuple(numbers)
        if value.get("type") is not None:
            message.kind = value["type"]
        names = names_of(value)
        message.likeness = continued(message.likeness, like, has_content="content" in names)
        if like.is_telling:
            self._telling.setdefault(message.key, message)
        if value.get("type") == "gemini" and isinstance(value.get("toolCalls"), list):
            value = {**value, "toolCalls": self._recorded_calls(message, value["toolCalls"], record)}
        self._saw_parts(message, like.parts, record)
        self._add(message, value, names)

    def _add(self, message: Message, value: dict[str, Any], names: frozenset[str]) -> None:
        """Put a version beside the older ones, or in their place when it says all that they say."""
        place = self.shelf.put(value)
        if message.names <= names:
            message.versions = [place]
            message.names = self._all_names.setdefault(names, names)
            return
        message.versions.append(place)
        if not isinstance(message.names, set):
            message.names = set(message.names)
        message.names |= names

    def _newer(
        self, message: Message, value: dict[str, Any], like: Likeness, record: Record, *, is_log: bool
    ) -> None:
        digest = hash(orjson.dumps(value))
        if digest == message.digest and message.is_current:
            self.trace.duplicate(record, "duplicate-entry", of=f"record {message.record}", report=True)
            return
        if not is_log:
            self.trace.findings.add(
                "duplicate-entry-differs", record=record.number, action="the later one holds"
            )
        if not message.is_current:
            message.is_current = True
            message.is_superseded = False
            self._current.append(message)
        if message.id == id_of(value) or like.key != message.key:
            self.trace.duplicate(message.record, "older-version", of=f"record {record.number}")
            message.digest = digest
            self._place(message, value, like, record.number, record.numbers)
        else:
            self._absorb(message, value, like, record.number)
            self._copied(record)

    def _absorb(self, message: Message, value: dict[str, Any], like: Likeness, record: int) -> bool:
        """Take from a copy what is richer than what is known; say whether the copy had lost something."""
        names = names_of(value)
        is_poorer = any(name in message.names and name not in names for name in _LOST)
        extra = names - message.names - _ALWAYS
        if extra:
            self._add(message, {name: member for name, member in value.items() if name in extra}, extra)
        recorded = value.get("toolCalls")
        if isinstance(recorded, list) and value.get("type") == "gemini":
            self._recorded_calls(message, recorded, record)
        is_poorer |= self._saw_parts(message, like.parts, record)
        message.is_restored |= is_poorer
        return is_poorer

    def _recorded_calls(self, message: Message, recorded: list[Any], record: int) -> list[Any]:
        """Take the elements of `toolCalls`; return the ids in their place, and what is no call as it is."""
        order: list[Any] = []
        for number, native in enumerate(recorded, 1):
            if not isinstance(native, dict):
                order.append(native)
                continue
            call_id = native.get("id")
            if not isinstance(call_id, str) or not call_id:
                call_id = f"{message.id or f'L{record}'}#{number}"
            call = message.calls.get(call_id)
            if call is None:
                call = self.calls.get(call_id)
                if call is None:
                    call = self.calls[call_id] = Call(call_id)
                elif call.is_recorded:
                    call.is_id_reused = True
                    call = self.calls[call_id] = Call(call_id)
                    call.is_id_reused = True
                message.calls[call_id] = call
            bare = {name: value for name, value in native.items() if name != "result"}
            call.saw_call(self.shelf, bare, record=record, is_recorded=True)
            output = native.get("result")
            if output is not None:
                call.saw_result(self.shelf, output, record=record)
            order.append({"id": call_id})
        return order

    def _saw_parts(self, message: Message, parts: Iterable[Part], record: int) -> bool:
        """Take the calls and results that stand in the content; say whether a result is poorer than the known one."""
        is_poorer = False
        for part in parts:
            if part.call_id is None or part.kind not in (CALL, RESULT):
                continue
            call = message.calls.get(part.call_id) or self.calls.setdefault(part.call_id, Call(part.call_id))
            if part.kind == CALL:
                if call.is_id_reused and call.versions:
                    continue
                call.saw_call(self.shelf, part.native[CALL], record=record, is_recorded=False)
            elif call.result is None or not call.is_id_reused:
                is_poorer |= call.saw_result(self.shelf, [part.native], record=record)
        return is_poorer

    # -- checkpoints and rewinds

    def checkpoint(self, record: Record, messages: list[Any], others: dict[str, Any]) -> None:
        """Take the whole list anew: known messages under new ids, and those that only it has."""
        left_out = self._match([item for item in messages if isinstance(item, dict)], record)
        data: dict[str, Any] = {
            "messages": len(messages),
            "sha256": hashlib.sha256(orjson.dumps(messages)).hexdigest(),
        }
        if left_out:
            data["left_out"] = left_out
        odd = [item for item in messages if not isinstance(item, dict)]
        if odd:
            self.trace.findings.add("odd-shape", record=record.number, action="kept in checkpoint")
            data["odd"] = odd
        self.event(record, {"$checkpoint": data, "$set": others})
        self._before = list(self._current)
        self._since.clear()
        self._first_copy = None

    def _match(self, items: list[dict[str, Any]], record: Record) -> int:
        likenesses = [(item, likeness(item), record.number) for item in items]
        matched, has_new = self._find(likenesses, may_add=True)
        kept = {id(message) for message in matched}
        gone = [message for message in self._current if id(message) not in kept and not message.is_copy]
        last = max((n for n, message in enumerate(self._current) if id(message) in kept), default=-1)
        tail = {id(message) for message in self._current[last + 1 :]} if last >= 0 and not has_new else set()
        for message in gone:
            message.is_current = False
            if id(message) in tail and message.kind in CONVERSATION:
                message.is_superseded = True
        self._current = matched
        return len(gone)

    def _find(
        self, items: list[tuple[dict[str, Any], Likeness, int]], *, may_add: bool
    ) -> tuple[list[Message], bool]:
        """Find the known messages of a list, in order; those that only it has are added."""
        fresh = {native for native, _ in self._since if native is not None}
        waiting: dict[int, deque[Message]] = {}
        for known in self._current:
            waiting.setdefault(known.key, deque()).append(known)
        taken: set[int] = set()
        found: list[Message] = []
        has_new = False
        for value, like, record in items:
            native = id_of(value)
            named = self._messages.get(native) if native is not None else None
            # A line since the last checkpoint may itself be a copy that was made for this one.
            message = named if native not in fresh else None
            joined: list[Message] = []
            if message is None or id(message) in taken:
                message = next_of(waiting.get(like.key), taken)
                if message is None or message is named:
                    joined = joined_of(like.pieces, waiting, taken, named)
                message = joined[0] if joined else named if message is None else message
            if message is None or id(message) in taken:
                if not may_add:
                    continue
                message = self._new(native, value, like, record, ())
                has_new = True
            elif may_add:
                self._absorb(message, value, like, record)
            for part in joined or [message]:
                taken.add(id(part))
                part.is_current = True
                part.is_superseded = False
                found.append(part)
            if native is not None and named is not message:
                if named is not None and not named.is_copy and id(named) not in taken:
                    self._leave_out(named)
                self._messages[native] = message
        return found, has_new

    def _leave_out(self, message: Message) -> None:
        """Leave out a message that turned out to be the copy of an earlier one."""
        message.is_copy = True
        message.is_current = False
        self.trace.duplicate(message.record, "replayed-entry")
        self.trace.findings.count("replayed-entry", action="skipped as duplicate")

    def _copied(self, record: Record) -> None:
        self.trace.duplicate(record, "replayed-entry")
        self.trace.findings.count("replayed-entry", action="skipped as duplicate")

    def rewind(self, target: str) -> int | None:
        """Drop a message and all later ones; return how many, None when there is no such message."""
        message = self._messages.get(target)
        if message is None or not message.is_current:
            return None
        dropped = 0
        while self._current:
            last = self._current.pop()
            last.is_current = False
            last.is_superseded = True
            dropped += not last.is_copy
            if last is message:
                break
        self._since.clear()
        self._first_copy = None
        return dropped

    # -- the end

    def close(self) -> None:
        """Leave out the copies of a checkpoint whose list is no longer in the log."""
        known = self._before or self._current
        if self._first_copy is None or not known:
            return
        # The copies begin with the session's first message, in front of the first copy that a call gives away.
        first = known[0].key
        for number in range(self._first_copy, -1, -1):
            like = self._since[number][1]
            if first in (like.key, *like.pieces[:1]):
                items = [({"id": native}, like, 0) for native, like in self._since[number:]]
                self._find(items, may_add=False)
                break

    def forget(self) -> None:
        """Free the index that is only needed while reading."""
        self._messages.clear()
        self._telling.clear()
        self._since.clear()

    @property
    def restored(self) -> int:
        """How many messages have content that a checkpoint had lost."""
        return sum(1 for item in self.timeline if isinstance(item, Message) and item.is_restored)


def _has_id(native: Any) -> bool:
    return isinstance(native, dict) and isinstance(native.get("id"), str)
