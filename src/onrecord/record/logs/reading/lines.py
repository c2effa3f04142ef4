"""JSON lines: a record for each value, whatever bytes stand around it (native-logs.md R-01 to R-10).

>>> import io
>>> findings = FileFindings("a.jsonl")
>>> [item.number for item in read_lines(io.BytesIO(b'{"a":1}\\n\\n{"a":'), findings)]
[1, 2]
>>> [finding.code for finding in findings.listed()]
['truncated-tail']
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, Final

import orjson

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.blocks import BLOCK_BYTES, Blocks
from onrecord.record.logs.reading.parsing import is_deep
from onrecord.record.logs.reading.pieces import Pieces
from onrecord.record.logs.reading.records import HEAD_BYTES, Record, Unreadable

MAX_LINE: Final = 256 << 20
"""Longest line that is read (R-05); real ones have 15 MB."""

_STRICT = orjson.OPT_STRICT_INTEGER


def read_lines(
    stream: BinaryIO, findings: FileFindings, *, max_line: int = MAX_LINE, objects: bool = True
) -> Iterator[Record | Unreadable]:
    """Yield the records of JSON lines in file order, and what is none in its place; all of it is reported.

    `stream` gives UTF-8. With `objects`, which is usual, every record's value is a dict and other values are
    unreadable with the code "not-an-object".

    Source: native-logs.md R-01 to R-10, D-LOG-24, 25, 27.
    """
    pieces = Pieces(findings, objects=objects)
    blocks = Blocks(stream, findings, block_bytes=min(BLOCK_BYTES, max_line))
    line = 0
    position = 0
    pending: list[bytes] = []
    pending_bytes = 0
    long: _LongLine | None = None
    for block in blocks:
        lines = block.split(b"\n")
        if pending_bytes:
            if long is not None:
                long.add(lines[0])
            else:
                pending.append(lines[0])
            pending_bytes += len(lines[0])
            if long is None and pending_bytes > max_line:
                long = _LongLine(pending)
                pending = []
            if len(lines) == 1:
                continue
            if long is not None:
                line += 1
                yield long.reported(pieces, line=line, offset=blocks.offset(position))
                position += pending_bytes + 1
                del lines[0]
                long = None
            else:
                lines[0] = b"".join(pending)
        last = lines.pop()
        pending = [last]
        pending_bytes = len(last)
        for whole in lines:
            line += 1
            start = position
            position += len(whole) + 1
            if not whole:
                continue
            data = whole[:-1] if whole.endswith(b"\r") else whole
            # A fast reader is believed when writing its value gives the same bytes again: see `parse`, which
            # does this too and all the rest.
            try:
                value = orjson.loads(data)
                is_plain = (
                    type(value) is dict and orjson.dumps(value, option=_STRICT) == data and not is_deep(value)
                )
            except (ValueError, TypeError):
                is_plain = False
            if is_plain:
                pieces.number += 1
                yield Record(pieces.number, value, line, blocks.offset(start), len(data))
            else:
                yield from pieces.line(data, line=line, offset=blocks.offset(start), is_tail=False)
    if long is not None:
        yield long.reported(pieces, line=line + 1, offset=blocks.offset(position))
    elif pending_bytes:
        yield from pieces.line(b"".join(pending), line=line + 1, offset=blocks.offset(position), is_tail=True)


class _LongLine:
    """What is kept of a line beyond the guard: its beginning and its hash."""

    def __init__(self, parts: list[bytes]) -> None:
        self._hash = hashlib.sha256()
        self._head = b""
        self._size = 0
        for part in parts:
            self.add(part)

    def add(self, part: bytes) -> None:
        self._hash.update(part)
        self._size += len(part)
        if len(self._head) < HEAD_BYTES:
            self._head += part[: HEAD_BYTES - len(self._head)]

    def reported(self, pieces: Pieces, *, line: int, offset: int) -> Unreadable:
        return pieces.unreadable(
            "too-long",
            f"a line of {self._size} bytes",
            self._head,
            line=line,
            offset=offset,
            size=self._size,
            sha256=self._hash.hexdigest(),
        )
