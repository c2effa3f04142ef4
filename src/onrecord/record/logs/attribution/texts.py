"""Texts of changed files: in memory while they are few, on disk behind that, and limits for what a log can ask for."""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import IO, Final

MAX_IN_MEMORY: Final = 32 << 20
"""Bytes of texts kept in memory; what comes later lies in a temporary file."""

SMALL: Final = 256
"""Texts below this size stay in memory all the same: what stands around them is larger."""

MAX_TEXT: Final = 16 << 20
"""Largest file that is followed line by line; no person and no agent edits larger ones."""

MAX_LINES: Final = 500_000
"""Most lines of a file that is followed line by line."""

MAX_SEARCHED: Final = 4 << 30
"""Bytes that one log may make us search for texts without line numbers, some seconds' work.

Further ones count as not found.
"""


class LineText:
    """Lines of a logged text, as one string of bytes with a line feed after each line."""

    __slots__ = ("_data", "_file", "_place", "starts")

    def __init__(self, data: bytes, starts: array[int]) -> None:
        self._data: bytes | None = data
        self._file: IO[bytes] | None = None
        self._place = 0
        self.starts = starts

    @classmethod
    def of(cls, lines: Sequence[str]) -> LineText:
        """Return the text of these lines, which hold no line feeds."""
        return cls.of_data("\n".join([*lines, ""]).encode("utf-8", "replace"))

    @classmethod
    def of_data(cls, data: bytes) -> LineText:
        """Return a text whose every line ends with a line feed."""
        lengths = (len(line) + 1 for line in data.split(b"\n"))
        starts = array("Q", accumulate(lengths, initial=0))
        starts.pop()
        return cls(data, starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def move(self, file: IO[bytes]) -> None:
        """Put the text at the end of a file and forget it here."""
        self._place = file.seek(0, os.SEEK_END)
        file.write(self.bytes_of(0, len(self)))
        self._data, self._file = None, file

    def bytes_of(self, start: int, length: int) -> bytes:
        """Return some lines, each with its line feed."""
        first, end = self.starts[start], self.starts[start + length]
        if self._file is None:
            return (self._data or b"")[first:end]
        self._file.seek(self._place + first)
        return self._file.read(end - first)

    def size_of(self, start: int, length: int) -> int:
        """Return how many bytes some lines have."""
        return self.starts[start + length] - self.starts[start]


class Texts:
    """The texts of one log's edits, and how much may still be searched in them."""

    def __init__(self) -> None:
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._searched = 0

    def keep(self, text: LineText) -> LineText:
        """Return the text, moved to the disk when many are in memory."""
        size = text.size_of(0, len(text))
        if self._in_memory + size <= MAX_IN_MEMORY:
            self._in_memory += size
        elif size >= SMALL:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
                weakref.finalize(self, self._file.close)
            text.move(self._file)
        return text

    def spend(self, size: int) -> bool:
        """Return whether this many bytes may be searched, and note it."""
        self._searched += size
        return self._searched <= MAX_SEARCHED


def is_followed(data: bytes) -> bool:
    """Return whether a file with this text is small enough to be followed line by line."""
    return len(data) <= MAX_TEXT and data.count(b"\n") <= MAX_LINES
