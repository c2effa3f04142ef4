"""Cuts a byte stream into lines without ever holding more than one limit, and goes on after a line that is too long."""

from __future__ import annotations

from typing import Final, NamedTuple

HEAD_BYTES: Final = 65536
"""What is kept of a line over the limit: enough to find its id near the front, little enough to be free."""


class Overlong(NamedTuple):
    """A line over the limit: its first bytes, and how long it was without LF."""

    head: bytes
    size_bytes: int


class LineBuffer:
    """A reader of lines for one direction of one connection. `limit` counts a line with its LF."""

    __slots__ = ("_head", "_limit", "_parts", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Take bytes in; return complete lines without LF, and what is left of those over the limit, in order."""
        pieces = data.split(b"\n")
        rest = pieces.pop()
        done: list[bytes | Overlong] = []
        for piece in pieces:
            if self._size or self._head is not None or len(piece) >= self._limit:
                self._add(piece)
                done.append(self._finish())
            else:
                done.append(piece)
        if rest:
            self._add(rest)
        return done

    def end(self) -> bytes | Overlong | None:
        """Return the last line if the stream ended without LF."""
        return self._finish() if self._size else None

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head is None:
            self._parts.append(piece)
            if self._size >= self._limit:
                self._head = b"".join(self._parts)[:HEAD_BYTES]
                self._parts = []

    def _finish(self) -> bytes | Overlong:
        line: bytes | Overlong
        line = b"".join(self._parts) if self._head is None else Overlong(self._head, self._size)
        self._parts, self._size, self._head = [], 0, None
        return line


class Pieces:
    """Stands in the place of a `LineBuffer` where bytes pass as they come."""

    __slots__ = ()

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Return the bytes."""
        return [data]

    def end(self) -> bytes | Overlong | None:
        """Return None: nothing is kept."""
        return None
