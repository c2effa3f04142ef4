"""What a reader gives: records that could be read, and pieces that could not.

>>> Record(1, {"type": "user"}, 1, 0, 15).value
{'type': 'user'}
"""

from __future__ import annotations

from typing import Any, Final

HEAD_CHARACTERS: Final = 256
"""Longest beginning of an unreadable piece that is kept (native-logs.md D-LOG-27)."""

HEAD_BYTES: Final = HEAD_CHARACTERS * 4
"""Bytes that are enough for such a beginning."""


class Record:
    """One native record: its number from 1 in the file, its clean value, and where it stands.

    `line` counts from 1; `offset` and `size` are bytes of the decompressed UTF-8 text, the size without NUL bytes and
    line end. `numbers` are the JSON pointers of numbers that no JSON reader keeps and that were changed (D-LOG-24).
    """

    __slots__ = ("line", "number", "numbers", "offset", "size", "value")

    def __init__(
        self, number: int, value: Any, line: int, offset: int, size: int, numbers: list[str] | None = None
    ) -> None:
        self.number = number
        self.value = value
        self.line = line
        self.offset = offset
        self.size = size
        self.numbers: list[str] = numbers or []

    def __repr__(self) -> str:
        return f"Record({self.number}, line={self.line}, offset={self.offset}, size={self.size})"


class Unreadable:
    """One piece that is no record (D-LOG-27): `code` names the finding, which the reader has reported already.

    `size` and `sha256` (in hex) are about all its bytes, `head` are its first characters with U+FFFD for what is not
    text, `detail` says in words what is wrong and quotes nothing.
    """

    __slots__ = ("code", "detail", "head", "line", "number", "offset", "sha256", "size")

    def __init__(
        self,
        number: int,
        line: int,
        offset: int,
        size: int,
        code: str,
        sha256: str,
        head: str,
        detail: str | None = None,
    ) -> None:
        self.number = number
        self.line = line
        self.offset = offset
        self.size = size
        self.code = code
        self.sha256 = sha256
        self.head = head
        self.detail = detail

    def __repr__(self) -> str:
        return f"Unreadable({self.number}, code={self.code!r}, line={self.line}, offset={self.offset})"


def head_of(data: bytes) -> str:
    """Return the beginning of an unreadable piece as text."""
    return data[:HEAD_BYTES].decode("utf-8", "replace")[:HEAD_CHARACTERS]


class NotJson(ValueError):
    """A text that gives no value; `code` is the code of the finding about it."""

    def __init__(self, code: str, detail: str, *, ends_inside: bool = False) -> None:
        super().__init__(detail)
        self.code = code
        self.ends_inside = ends_inside
