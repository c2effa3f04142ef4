"""One line on a terminal that says how far a long run has come."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from onrecord.cli.output import visible

_SHOWN_AFTER: Final = 0.3
"""Seconds until the line appears: a run that ends before does not need it."""

_BETWEEN: Final = 0.1
"""Seconds between two changes of the line: a person reads no faster."""


class Progress:
    """Files and bytes done so far, on standard error if that is a terminal. Whoever prints calls `clear` first."""

    def __init__(
        self, word: str, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.files = 0
        self.bytes = 0
        self._word = word
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._next = clock() + _SHOWN_AFTER
        self._is_shown = False
        self._is_terminal = self._stream.isatty()

    def begin(self, name: str) -> None:
        """Say which file is next."""
        if self.is_due():
            files = "1 file" if self.files == 1 else f"{self.files} files"
            self.show(f"{self._word}: {files}, {size_text(self.bytes)}; {visible(name[-200:])}")

    def is_due(self) -> bool:
        """Say whether the line may change now; asked for each change, it says so only now and then."""
        if not self._is_terminal:
            return False
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + _BETWEEN
        return True

    def show(self, text: str) -> None:
        """Put this text, which is safe for a terminal, in place of the line."""
        self._write("\r" + _cut(text, self._width()) + "\x1b[K")
        self._is_shown = True

    def end(self, size_bytes: int) -> None:
        """Count a file."""
        self.files += 1
        self.bytes += size_bytes

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._write("\r\x1b[K")
            self._is_shown = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def _cut(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    room = max(width - 1, 1)
    return text if cell_len(text) <= room else set_cell_size(text, room)


def size_text(size_bytes: int) -> str:
    """Return a number of bytes for people, in powers of ten.

    >>> size_text(1_234_567)
    '1.2 MB'
    """
    if size_bytes < 1_000:
        return f"{size_bytes} bytes"
    for unit, size in (("kB", 1_000), ("MB", 1_000_000)):
        if size_bytes < 999.95 * size:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes / 1_000_000_000:.1f} GB"
