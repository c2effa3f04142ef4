"""Parts of messages in the SDK's stream, which the finished messages repeat.

Source: native-logs.md 4.2 (`stream_event`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.trace import Trace

MAX_PARTS: Final = 100_000
"""Parts of one message that wait for it to be finished."""


class Parts:
    """The parts that came so far: duplicates of messages that are finished, else kept until that is known."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._finished: set[int] = set()
        self._open: dict[str, tuple[str | None, list[Record]]] = {}

    def part(self, record: Record) -> list[Record]:
        """Take a part. Returns the parts of messages that will not be finished any more; they must be written."""
        value = record.value
        sender = _sender(value)
        event = value.get("event")
        left: list[Record] = []
        if type(event) is dict and event.get("type") == "message_start":
            left = self._open.pop(sender, (None, []))[1]
            message = event.get("message")
            message_id = message.get("id") if type(message) is dict else None
            self._open[sender] = message_id if type(message_id) is str else None, []
        message_id, parts = self._open.setdefault(sender, (None, []))
        if message_id is not None and hash(message_id) in self._finished:
            self._trace.duplicate(record, "twin", of="the finished message")
        else:
            parts.append(record)
            if len(parts) > MAX_PARTS:
                left += self._open.pop(sender)[1]
        return left

    def finished(self, value: Mapping[str, Any], message_id: str) -> None:
        """Note a finished message: its parts, before and after, are its duplicates."""
        self._finished.add(hash(message_id))
        known, parts = self._open.get(_sender(value), (None, []))
        if known == message_id:
            for record in parts:
                self._trace.duplicate(record, "twin", of="the finished message")
            parts.clear()

    def unfinished(self) -> list[Record]:
        """Return the parts of messages that were never finished."""
        return [record for _, parts in self._open.values() for record in parts]


def _sender(value: Mapping[str, Any]) -> str:
    """Return the call above a record, "" for the session's own agent."""
    call_id = value.get("parent_tool_use_id")
    return call_id if type(call_id) is str else ""
