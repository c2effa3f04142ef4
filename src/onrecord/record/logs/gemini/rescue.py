"""What can be read of a chat in one object that is cut or damaged: the header, and each message for itself."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.extents import NOT_YET, Extent, scalar_end, skip_blanks
from onrecord.record.logs.reading.records import NotJson, Unreadable, head_of
from onrecord.record.logs.reading.values import clean

if TYPE_CHECKING:
    from onrecord.record.logs.reading.opening import NativeFile

CODES: Final = frozenset(["truncated-tail", "malformed-line", "too-deep"])
"""Faults of a value whose parts may be whole."""

_SLACK: Final = 1 << 16
_COMMA, _COLON, _QUOTE, _END = b",", b":", 0x22, b"]"


class Part(NamedTuple):
    """One part of a damaged object: its bytes, where they begin in it, and its value unless it is unreadable."""

    data: bytes
    at: int
    value: Any = None
    numbers: list[str] | None = None
    code: str | None = None


class Rescued(NamedTuple):
    """The members in front of the damage without the messages, the messages, and what comes behind them."""

    header: dict[str, Any]
    messages: list[Part]
    rest: Part


def rescue(file: NativeFile, piece: Unreadable, findings: FileFindings, *, record: int) -> Rescued | None:
    """Return what can be read of an unreadable piece, None when it is no session.

    What was mended is reported about the given record.
    """
    if piece.code not in CODES or '"sessionId"' not in piece.head:
        return None
    with file.open() as stream:
        data = _bytes_of(stream, piece)
    return _Reading(data, findings, record).read()


def unreadable(piece: Part, number: int, *, base: int) -> Unreadable:
    """Return a part that cannot be read as a record of its own; `base` is where the object begins in the file."""
    digest = hashlib.sha256(piece.data).hexdigest()
    return Unreadable(
        number,
        0,
        base + piece.at,
        len(piece.data),
        piece.code or "malformed-line",
        digest,
        head_of(piece.data),
    )


def _bytes_of(stream: BinaryIO, piece: Unreadable) -> bytes:
    left = piece.offset
    while left > 0 and (block := stream.read(min(left, 1 << 20))):
        left -= len(block)
    return stream.read(piece.size + _SLACK).replace(b"\0", b"")[: piece.size]


class _Reading:
    """Goes through an object from its beginning, as far as its parts can be told apart."""

    def __init__(self, data: bytes, findings: FileFindings, record: int) -> None:
        self._data = data
        self._findings = findings
        self._record = record
        self._header: dict[str, Any] = {}
        self._messages: list[Part] = []
        self._at = 0
        """The end of what was read."""

    def read(self) -> Rescued | None:
        data = self._data
        at = skip_blanks(data, 0)
        if data[at : at + 1] != b"{":
            return None
        self._at = at + 1
        while self._member() and self._goes_on():
            pass
        if not isinstance(self._header.get("sessionId"), str) or "projectHash" not in self._header:
            return None
        rest = skip_blanks(data, self._at)
        return Rescued(self._header, self._messages, Part(data[rest:].rstrip(), rest))

    def _goes_on(self) -> bool:
        """Go behind a comma."""
        at = skip_blanks(self._data, self._at)
        if self._data[at : at + 1] != _COMMA:
            return False
        self._at = at + 1
        return True

    def _member(self) -> bool:
        data = self._data
        start = skip_blanks(data, self._at)
        if start >= len(data) or data[start] != _QUOTE:
            return False
        name = self._value(start)
        if name is None or name.code is not None:
            return False
        colon = skip_blanks(data, start + len(name.data))
        if data[colon : colon + 1] != _COLON:
            return False
        at = skip_blanks(data, colon + 1)
        if name.value == "messages" and data[at : at + 1] == b"[":
            self._at = at + 1
            return self._elements()
        found = self._value(at)
        if found is None or found.code is not None:
            return False
        self._header[name.value] = found.value
        self._at = at + len(found.data)
        return True

    def _elements(self) -> bool:
        data = self._data
        while True:
            at = skip_blanks(data, self._at)
            if data[at : at + 1] == _END:
                self._at = at + 1
                return True
            found = self._value(at)
            if found is None:
                return False
            self._messages.append(found)
            self._at = at + len(found.data)
            if not self._goes_on() and data[skip_blanks(data, self._at) :][:1] != _END:
                return False

    def _value(self, at: int) -> Part | None:
        """Return the value at a place, None when its end is not there."""
        data = self._data
        if at >= len(data):
            return None
        end = Extent().scan(data, at) if data[at] in b"[{" else scalar_end(data, at)
        if end in (NOT_YET, at) or end == len(data):
            # What ends with the text may be cut.
            return None
        piece = data[at:end]
        try:
            value, numbers = clean(piece, self._findings, record=self._record)
        except NotJson as fault:
            return Part(piece, at, code=fault.code)
        return Part(piece, at, value, numbers)
