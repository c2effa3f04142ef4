"""How one message is written: numbered blocks, and members without a home on the first object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.gemini.message import Message
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import Entry

_MAPPED: Final = frozenset(["id", "timestamp", "type", "content", "thoughts", "tokens", "toolCalls"])
_MEMBERS: Final = _MAPPED | {"model", "displayContent", "id"}


class Writer:
    """The entry of one message, the number of its next block, and members that go to the first object."""

    def __init__(self, entry: Entry, value: Mapping[str, Any], message: Message) -> None:
        self.message = message
        self.entry = entry
        self.rest: dict[str, Any] = {
            name: member for name, member in value.items() if name not in _MAPPED and name != "model"
        }
        self.twin: str | None = None
        self.has_own = False
        """Whether an object names the message's own record as its source."""
        self.elsewhere = 0
        """The other record that an object names."""
        self._block = 0
        self._own = entry.record
        native = value.get("id")
        if native is not None and native != "" and not isinstance(native, str):
            self.odd("id", native)
        for name in self.rest:
            if name not in _MEMBERS:
                entry.trace.findings.add("unknown-member", name=name[:64], action="kept in onrecord.rest")

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return self._block == 0

    def next(self, rest: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return block number and rest of the next object."""
        options = {"block": self._block, "rest": {**self.rest, **(rest or {})}}
        self.rest = {}
        self._block += 1
        if self.entry.record is self._own:
            self.has_own = True
        else:
            self.elsewhere = self.entry.record.number
        return options

    def event(self, kind: str, data: Any, rest: Mapping[str, Any] | None = None) -> None:
        """Write a system-event."""
        self.entry.event(kind, data, **self.next(rest))

    def odd(self, name: str, value: Any) -> None:
        """Keep a member of a wrong kind."""
        self.entry.trace.findings.add("odd-shape", record=self._own.number, action="kept in onrecord.rest")
        self.rest[name] = value

    def odd_event(self, kind: str, value: Any) -> None:
        """Keep a block of a wrong kind."""
        self.entry.trace.findings.add("odd-shape", record=self._own.number, action=f"kept as {kind}")
        self.event(kind, value)

    def at(self, record: int) -> Elsewhere:
        """Return a context in which objects name another record as their source."""
        return Elsewhere(self.entry, record)


class Elsewhere:
    """Objects name another record as their source."""

    def __init__(self, entry: Entry, record: int) -> None:
        self._entry = entry
        self._own = entry.record
        self._other = self._own if record == self._own.number else Record(record, {}, 0, 0, 0, [])

    def __enter__(self) -> None:
        self._entry.record = self._other

    def __exit__(self, *_: object) -> None:
        self._entry.record = self._own


def others(native: Mapping[str, Any], *mapped: str) -> dict[str, Any]:
    """Return the members that have no home."""
    return {name: value for name, value in native.items() if name not in mapped}
