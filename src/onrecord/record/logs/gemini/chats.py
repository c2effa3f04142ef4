"""Chats of Gemini CLI: append logs, whole objects of older versions, and the list of prompts beside them.

Source: native-logs.md 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from onrecord.record.logs.gemini import places
from onrecord.record.logs.gemini.links import Links
from onrecord.record.logs.gemini.prompts import Prompts, is_prompt
from onrecord.record.logs.gemini.replay import Replay
from onrecord.record.logs.gemini.rescue import Rescued, rescue, unreadable
from onrecord.record.logs.gemini.shelf import Shelf
from onrecord.record.logs.gemini.timeline import Timeline
from onrecord.record.logs.inference import GEMINI_CLI
from onrecord.record.logs.interface import Importer, importers, register
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.records import Record, Unreadable
from onrecord.record.logs.reading.values import read_values
from onrecord.record.logs.trace import Trace

_HEAD_BYTES: Final = 1 << 16
_LOOKED_AT: Final = 5
"""How many elements of a list are looked at; most of them must be prompts."""
_TYPES: Final = frozenset(["user", "gemini", "info", "warning", "error"])


@register
class GeminiChats(Importer):
    """Chats of Gemini CLI."""

    format = "gemini-json"
    title = "Gemini CLI chats"
    agent_kind = GEMINI_CLI
    carriers: ClassVar[frozenset[str]] = frozenset(["lines", "document", "values"])

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._shelf = Shelf()
        self._replays: dict[str | None, Replay] = {}
        self._now: Replay | None = None
        self._shift = 0
        self._damaged: list[tuple[Unreadable, Rescued]] = []
        self._links = Links.of(trace.run)

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is a header, an operation, or an answer of the model."""
        if "sessionId" in value:
            return "projectHash" in value
        return "$set" in value or "$rewindTo" in value or value.get("type") == "gemini"

    @classmethod
    def recognises_document(cls, value: Any) -> bool:
        """Say whether one value is a session, or a list of prompts."""
        if isinstance(value, list):
            head = value[:_LOOKED_AT]
            return sum(map(is_prompt, head)) * 2 > len(head)
        return isinstance(value, dict) and cls.recognises(value)

    @classmethod
    def recognises_members(cls, names: frozenset[str]) -> bool:
        """Say whether an object with these members is a session."""
        return {"sessionId", "projectHash", "messages"} <= names

    @classmethod
    def hints_at(cls, path: Path) -> bool:
        """Say whether the file lies in a folder of chats."""
        return "chats" in path.parts and ".gemini" in path.parts

    @classmethod
    def comes_last(cls, path: Path) -> bool:
        """Say whether a file repeats the prompts of chats."""
        return path.name == "logs.json"

    @classmethod
    def is_side_file(cls, path: Path) -> bool:
        """Say whether a file is the table of projects, or lies in Gemini CLI's own folder and is no log."""
        return path.parent.name == ".gemini" and path.name in places.BESIDE

    @classmethod
    def without_hashed(cls, value: Any) -> Any:
        """Return a record without what is told by its hash: the list of a checkpoint."""
        changes = value.get("$set") if isinstance(value, dict) else None
        if not isinstance(changes, dict) or not isinstance(changes.get("messages"), list):
            return value
        return {"$set": {name: member for name, member in changes.items() if name != "messages"}}

    @classmethod
    def records_in(cls, value: Any) -> Iterator[Any]:
        """Yield the records of a value: a list's prompts, an object's header and messages, else the value."""
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict) and "sessionId" in value and isinstance(value.get("messages"), list):
            yield {name: member for name, member in value.items() if name != "messages"}
            yield from value["messages"]
        else:
            yield value

    # -- reading

    def read(self) -> None:
        """Read the file whatever carrier it has, and write the sessions at its end."""
        with self._shelf:
            shape = places.shape_of(self.trace.file.head(_HEAD_BYTES))
            with self.trace.file.open(self.trace.findings) as stream:
                findings = self.trace.findings
                items = (
                    read_lines(stream, findings)
                    if shape == "lines"
                    else read_values(stream, findings, objects=shape != "list")
                )
                for record in self.trace.accepted(self._readable(items)):
                    self.record(record)
            for item, found in self._damaged:
                self._take_rescued(item, found)
            self.finish()

    def _readable(self, items: Iterator[Record | Unreadable]) -> Iterator[Record]:
        """Yield what can be read; keep the place of the rest. Messages inside a record are numbered behind it."""
        for item in items:
            item.number += self._shift
            if isinstance(item, Record):
                yield item
            elif (
                found := rescue(self.trace.file, item, self.trace.findings, record=item.number)
            ) is not None:
                # At the end of the file, so that what comes behind keeps its number.
                self._enter(item.number)
                self._damaged.append((item, found))
            else:
                self._replay().timeline.append(item)
                self._enter(item.number)

    def _take_rescued(self, item: Unreadable, found: Rescued) -> None:
        """Take what is whole in a damaged object; the number of the object goes to what is not."""
        trace = self.trace
        self._header(trace.new_record(found.header), found.header)
        replay, number = self._replay(), item.number
        for part in [*found.messages, found.rest]:
            if part is not found.rest and part.code is None:
                self._inner(replay, part.value, part.numbers)
            elif number or part.data.strip(b"]} \t\r\n,"):
                if not number:
                    number = trace.new_record(None).number
                    code = part.code or "malformed-line"
                    trace.findings.add(code, record=number, action="kept as unreadable-record")
                replay.timeline.append(unreadable(part, number, base=item.offset))
                number = 0

    def _enter(self, number: int) -> None:
        """Let the account know of a number before its record is placed."""
        for _ in self.trace.accepted(iter([Record(number, {}, 0, 0, 0)])):
            pass

    def record(self, record: Record) -> None:
        """Take one record."""
        value = record.value
        if isinstance(value, list):
            self._prompts(record, value)
        elif not isinstance(value, dict):
            self.trace.reported(record, "not-an-object")
        elif any(name.startswith("$") for name in value):
            self._operation(record, value)
        elif "sessionId" in value and "type" not in value and "id" not in value:
            self._header(record, value)
        elif self._is_message(value) or self._replay_knows(value):
            self._replay().message(record, value)
        elif self._is_foreign(value):
            self.trace.reported(record, "foreign-record")
        else:
            self._replay().event(record, value)

    def _is_message(self, value: dict[str, Any]) -> bool:
        if "type" not in value or not ("id" in value or "content" in value):
            return False
        kind = value["type"]
        return (isinstance(kind, str) and kind in _TYPES) or not self._is_foreign(value)

    def _replay_knows(self, value: dict[str, Any]) -> bool:
        """Say whether a record without a type is a newer version of a message."""
        return self._now is not None and "type" not in value and self._now.knows(value)

    def _is_foreign(self, value: dict[str, Any]) -> bool:
        return any(other is not type(self) and other.recognises(value) for other in importers())

    def _replay(self) -> Replay:
        if self._now is None:
            self._now = self._replays.setdefault(None, Replay(self.trace, self._shelf))
        return self._now

    def _header(self, record: Record, value: dict[str, Any]) -> None:
        native = value["sessionId"]
        if not isinstance(native, str) or not native:
            self.trace.findings.add("odd-shape", record=record.number, action="session named after the file")
            native = None
        replay = self._replays.get(native)
        if replay is None:
            # Messages in front of the first header belong to it.
            replay = self._replays.pop(None, None) or Replay(self.trace, self._shelf)
            self._replays[native] = replay
        replay.agent_session_id = native
        self._now = replay
        messages = value.get("messages")
        bare = {name: member for name, member in value.items() if name != "messages"}
        numbers = record.numbers
        if isinstance(messages, list):
            record.numbers = [text for text in numbers if not text.startswith("/messages/")]
        elif "messages" in value:
            self.trace.findings.add("odd-shape", record=record.number, action="kept in session-start")
            bare["messages"] = messages
        replay.event(record, bare)
        if isinstance(messages, list):
            pointers = places.by_element(numbers, "/messages/")
            for index, message in enumerate(messages):
                self._inner(replay, message, pointers.get(index))

    def _inner(self, replay: Replay, message: Any, numbers: list[str] | None) -> None:
        """Take one message of an object."""
        self._shift += 1
        inner = self.trace.new_record(message, numbers=numbers)
        if isinstance(message, dict):
            replay.message(inner, message, is_log=False)
        else:
            self.trace.findings.add("odd-shape", record=inner.number, action="kept as message")
            replay.event(inner, {"$odd": message})

    def _operation(self, record: Record, value: dict[str, Any]) -> None:
        replay = self._replay()
        changes = value.get("$set")
        if isinstance(changes, dict) and len(value) == 1:
            messages = changes.get("messages")
            if isinstance(messages, list):
                others = {name: member for name, member in changes.items() if name != "messages"}
                replay.checkpoint(record, messages, others)
                return
            updated = changes.get("lastUpdated")
            if len(changes) == 1 and isinstance(updated, str):
                replay.last_heartbeat = updated
                self.trace.duplicate(record, "heartbeat")
                return
        target = value.get("$rewindTo")
        if "$rewindTo" in value and len(value) == 1:
            if not isinstance(target, str):
                self.trace.findings.add("odd-shape", record=record.number, action="kept as rewind")
            elif replay.rewind(target) is None:
                self.trace.findings.add(
                    "rewind-target-missing", record=record.number, action="nothing marked as superseded"
                )
        replay.event(record, value)

    def _prompts(self, record: Record, value: list[Any]) -> None:
        pointers = places.by_element(record.numbers, "/")
        Prompts(self.trace).write(record, value, pointers)
        self._shift += max(len(value) - 1, 0)

    # -- writing

    def finish(self) -> None:
        """Write the sessions that were read."""
        for native, replay in self._replays.items():
            replay.close()
            replay.forget()
            session = self.trace.session(native or places.stem(self.trace.path))
            Timeline(self.trace, session, replay, self._links).write()
