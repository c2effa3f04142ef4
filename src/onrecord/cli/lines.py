"""Styled lines for a terminal, wrapped with an indent, or plain ones for a file; quick."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

Segment = tuple[str, str]
"""A piece of a line and its style: words of `ATTRIBUTES` and `COLOURS`, or nothing."""

ATTRIBUTES: Final = {"bold": "1", "dim": "2"}
COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "cyan": "36"}

_MIN_ROOM: Final = 20
"""Columns below which an indent would leave a column of syllables."""

_TOKEN: Final = re.compile(r"\s+|\S+")


class Lines:
    """Lines on the way to a console's file; `flush` writes what was added.

    A console that is no terminal gets each line whole and without styles, so that it can be searched.
    """

    def __init__(self, out: Console) -> None:
        self._file = out.file
        self._width = out.width if out.is_terminal else None
        coloured = out.is_terminal and out.color_system is not None
        self._codes = (ATTRIBUTES if out.no_color else ATTRIBUTES | COLOURS) if coloured else {}
        self._waiting: list[str] = []

    def add(self, head: Sequence[Segment], body: Sequence[Segment] = ()) -> None:
        """Add one line. On a terminal the body goes on below itself where the line is too long."""
        if self._width is None:
            self._waiting.append("".join(text for text, _ in (*head, *body)))
            return
        indent = sum(_cells(text) for text, _ in head)
        room = self._width - indent
        if room < _MIN_ROOM:
            indent, room = 0, max(self._width, 1)
        start = "".join(self._styled(head))
        for row in _rows(body, room):
            self._waiting.append((start + "".join(self._styled(row))).rstrip(" "))
            start = " " * indent

    def flush(self) -> None:
        """Write what was added."""
        if self._waiting:
            self._file.write("\n".join(self._waiting) + "\n")
            self._file.flush()
            self._waiting.clear()

    def _styled(self, segments: Iterable[Segment]) -> Iterator[str]:
        for style, pieces in groupby(segments, key=lambda segment: segment[1]):
            text = "".join(piece for piece, _ in pieces)
            codes = ";".join(self._codes[word] for word in style.split() if word in self._codes)
            yield f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def _rows(segments: Iterable[Segment], room: int) -> Iterator[list[Segment]]:
    """Yield the rows, one at least, of a line that is broken at blanks, or within a word that is wider than a row."""
    row: list[Segment] = []
    used = 0
    for whole, style in segments:
        for token in _TOKEN.findall(whole):
            width = _cells(token)
            if used + width > room and used:
                yield row
                row, used = [], 0
                if token.isspace():
                    continue
            rest = token
            while width > room:
                cut = _prefix(rest, room)
                yield [(cut, style)]
                rest = rest[len(cut) :]
                width = _cells(rest)
            if rest:
                row.append((rest, style))
                used += width
    yield row


def _cells(text: str) -> int:
    """Return the columns that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _prefix(text: str, room: int) -> str:
    """Return the longest beginning that fits, one character at least."""
    used = 0
    for index, char in enumerate(text):
        used += _cells(char)
        if used > room:
            return text[: max(index, 1)]
    return text
