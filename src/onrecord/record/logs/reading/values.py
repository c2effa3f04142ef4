"""JSON values that are no lines: glued one behind the other, spread over many lines, or embedded in strings.

>>> import io
>>> findings = FileFindings("a.json")
>>> [item.value for item in read_values(io.BytesIO(b'{\\n "a":1}{"b":\\n2}'), findings)]
[{'a': 1}, {'b': 2}]
>>> arguments_of('{"path":"a.txt"}'), arguments_of("not JSON")
(({'path': 'a.txt'}, None), ('not JSON', 'not JSON'))
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.blocks import Blocks
from onrecord.record.logs.reading.extents import NOT_YET, Extent, skip_blanks
from onrecord.record.logs.reading.parsing import MAX_DEPTH, TOO_DEEP, Fault, parse, try_parse
from onrecord.record.logs.reading.pieces import ACTIONS, Pieces
from onrecord.record.logs.reading.records import HEAD_BYTES, NotJson, Record, Unreadable

MAX_VALUE: Final = 256 << 20
"""Largest value that is read: a whole export in one object may be as long as a line."""

_CONTAINER = re.compile(rb"[\[{]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_values(
    stream: BinaryIO, findings: FileFindings, *, max_value: int = MAX_VALUE, objects: bool = True
) -> Iterator[Record | Unreadable]:
    """Yield the values of a text in file order, whatever blanks are between them; what is no value in its place.

    Memory is that of the largest value. With `objects` every record's value is a dict and other values are unreadable
    with the code "not-an-object". A text that ends inside a value gives "truncated-tail".

    Source: native-logs.md R-06 to R-10 and 4.5 (layout 3).
    """
    text = _Text(stream, findings)
    pieces = Pieces(findings, objects=objects)
    while text.has_value():
        line, offset = text.line, text.offset
        cut = text.cut(max_value)
        if cut.skipped is not None:
            detail = f"a value of {cut.skipped} bytes"
            yield pieces.unreadable(
                "too-long", detail, cut.data, line=line, offset=offset, size=cut.skipped, sha256=cut.sha256
            )
            continue
        data = cut.data.rstrip(b" \t\r\n")
        read = TOO_DEEP if cut.deepest > MAX_DEPTH else try_parse(data)
        if isinstance(read, Fault):
            code = "truncated-tail" if text.is_at_end and read.ends_inside else read.code
            yield pieces.unreadable(code, read.detail, data, line=line, offset=offset)
        else:
            yield pieces.value(read, data, line=line, offset=offset)


def clean(data: bytes, findings: FileFindings, *, record: int) -> tuple[Any, list[str]]:
    """Return the clean value of one JSON text and the pointers of its changed numbers; what was mended is reported.

    For columns of tables, side files and strings that hold JSON. Raises `NotJson`.
    """
    parsed = parse(data.replace(b"\0", b"").removeprefix(_BYTE_ORDER_MARK))
    for code, count in parsed.faults.items():
        findings.add(code, record=record, action=ACTIONS[code], count=count)
    return parsed.value, parsed.numbers


def arguments_of(raw: Any) -> tuple[Any, str | None]:
    """Return the input of a call and the raw text, if that has to be kept in `rest.arguments` (D-LOG-18).

    A string that does not parse is its own input: then both are the same object.
    """
    if not isinstance(raw, str):
        return raw, None
    try:
        parsed = parse(raw.encode("utf-8", "replace"))
    except NotJson:
        return raw, raw
    return parsed.value, raw if parsed.faults else None


class _Cut:
    """One value's bytes; of one that is too long its beginning, length and hash."""

    __slots__ = ("data", "deepest", "sha256", "skipped")

    def __init__(
        self, data: bytes, deepest: int, *, skipped: int | None = None, sha256: str | None = None
    ) -> None:
        self.data = data
        self.deepest = deepest
        self.skipped = skipped
        self.sha256 = sha256


class _Text:
    """The text from the place where the next value begins."""

    def __init__(self, stream: BinaryIO, findings: FileFindings) -> None:
        self._blocks = Blocks(stream, findings)
        self._more = iter(self._blocks)
        self._buffer = bytearray()
        self._position = 0
        self.line = 1
        self.is_at_end = False

    @property
    def offset(self) -> int:
        """The place of the next value in the stream."""
        return self._blocks.offset(self._position)

    def has_value(self) -> bool:
        """Say whether there is anything but blanks, and go to its beginning."""
        while True:
            self._drop(skip_blanks(self._buffer, 0))
            if self._buffer:
                return True
            if not self._read():
                return False

    def cut(self, limit: int) -> _Cut:
        """Take the next value: a container by its brackets, or whatever is there before the next container."""
        extent = Extent() if self._buffer[0] in b"[{" else None
        searched = 0
        head = b""
        skipped = 0
        digest = hashlib.sha256()
        while True:
            if extent is not None:
                end = extent.scan(self._buffer, 0)
                searched = extent.at
            else:
                found = _CONTAINER.search(self._buffer, searched)
                end = found.start() if found else NOT_YET
                searched = len(self._buffer)
            if end != NOT_YET:
                break
            if searched > limit or skipped:
                head = head or bytes(self._buffer[:HEAD_BYTES])
                skipped += searched
                digest.update(memoryview(self._buffer)[:searched])
                self._drop(searched)
                searched = 0
                if extent is not None:
                    extent.at = 0
            if not self._read():
                end = len(self._buffer)
                break
        data = bytes(memoryview(self._buffer)[:end])
        self._drop(end)
        if not skipped:
            return _Cut(data, extent.deepest if extent is not None else 0)
        digest.update(data)
        return _Cut(head, 0, skipped=skipped + len(data), sha256=digest.hexdigest())

    def _read(self) -> bool:
        block = next(self._more, None)
        if block is None:
            self.is_at_end = True
            return False
        self._buffer += block
        return True

    def _drop(self, count: int) -> None:
        self.line += self._buffer.count(b"\n", 0, count)
        self._position += count
        del self._buffer[:count]
