"""Where a JSON value ends in bytes, without reading it: in one pass, in pieces, whatever its depth and length.

>>> Extent().scan(b'{"a":"}"} {"b":2}', 0)
9
"""

from __future__ import annotations

import re
from typing import Final

NOT_YET: Final = -1
"""The value goes on behind the bytes that there are."""

# A string without escapes is passed at once; a quote alone is the start of one with escapes.
_TOKENS = re.compile(rb'"[^"\\]*"|[\[{]+|[\]}]+|"')
_SCALAR = re.compile(rb"[-+.\w]+")
_BLANKS = re.compile(rb"[ \t\r\n]*")


class Extent:
    """The extent of one array or object; brackets are counted, not matched: the parser does that."""

    __slots__ = ("_in_string", "at", "deepest", "depth")

    def __init__(self) -> None:
        self.depth = 0
        self.deepest = 0
        self.at = 0
        """Where a scan goes on; whoever removes bytes before the value lowers it by their number."""
        self._in_string = False

    def scan(self, data: bytes | bytearray, start: int) -> int:
        """Return the end of the value that begins at `start`, or `NOT_YET`.

        After that, call it again with the same start and the same bytes with more behind them.
        """
        at = max(start, self.at)
        while True:
            if self._in_string:
                at = _string_end(data, at)
                if at < 0:
                    self.at = -at - 1
                    return NOT_YET
                self._in_string = False
            for token in _TOKENS.finditer(data, at):
                first = data[token.start()]
                if first == 0x22:
                    if token.end() - token.start() > 1:
                        continue
                    at = token.end()
                    self._in_string = True
                    break
                count = token.end() - token.start()
                if first in b"[{":
                    self.depth += count
                    self.deepest = max(self.deepest, self.depth)
                elif count >= self.depth:
                    return token.start() + self.depth
                else:
                    self.depth -= count
            else:
                self.at = len(data)
                return NOT_YET


def _string_end(data: bytes | bytearray, at: int) -> int:
    """Return the end of the string whose inside goes on at `at`; -(place to go on) - 1 when it is not there yet."""
    while True:
        quote = data.find(b'"', at)
        if quote < 0:
            # An escape may be cut in two: the place to go on is before it.
            return -(len(data) - _ends_escaping(data, at, len(data))) - 1
        if quote == at or data[quote - 1] != 0x5C or not _ends_escaping(data, at, quote):
            return quote + 1
        at = quote + 1


def _ends_escaping(data: bytes | bytearray, start: int, end: int) -> bool:
    """Say whether what comes at `end` is escaped: an odd number of backslashes lies right before it."""
    part = data[start:end]
    return (len(part) - len(part.rstrip(b"\\"))) % 2 == 1


def skip_blanks(data: bytes | bytearray, start: int) -> int:
    """Return the place of the first byte that is no blank."""
    return _BLANKS.match(data, start).end()  # type: ignore[union-attr]


def scalar_end(data: bytes | bytearray, start: int) -> int:
    """Return the end of the string, number or word at `start`; `NOT_YET` when a string is not closed."""
    if data[start] == 0x22:
        return max(_string_end(data, start + 1), NOT_YET)
    word = _SCALAR.match(data, start)
    return word.end() if word else start
