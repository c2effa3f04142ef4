"""Lines of a terminal: never wider than it is, whatever they hold. Into a file or a pipe nothing is cut.

Texts are made safe before they come here; rich is given segments, so no markup is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

STATE_STYLES: Final[Mapping[str, str]] = {
    "allowed": "green",
    "completed": "green",
    "success": "green",
    "permission-required": "yellow",
    "pending": "yellow",
    "input-required": "yellow",
    "timed-out": "yellow",
    "cancel-requested": "yellow",
    "unfinished": "yellow",
    "encrypted": "dim",
    "removed": "dim",
    "not-performed": "dim",
    "disallowed": "red",
    "failed": "red",
    "errored": "red",
    "error": "red",
    "denied": "red",
}
"""Styles of states: green went well, yellow waits or was left open, red was refused or failed."""

NARROW: Final = 72
"""Width in cells below which the columns of times are no longer kept free."""

_CONTINUED: Final = 4
_NARROW_INDENT: Final = 4

Part = tuple[str, str]
"""A text and its style."""


@dataclass(frozen=True, slots=True)
class Margin:
    """What a line begins with: blanks, the bars of a tree, and blanks again. On a narrow terminal there are fewer."""

    indent: int = 0
    bars: str = ""
    inner: int = 0

    def parts(self, *, is_narrow: bool) -> list[Part]:
        """Return it as parts of a line."""
        indent, inner = self.indent, self.inner
        if is_narrow:
            indent, inner = min(indent, _NARROW_INDENT), min(inner, _NARROW_INDENT)
        return [(" " * indent, ""), (self.bars, "dim"), (" " * inner, "")]


NO_MARGIN: Final = Margin()


@dataclass(frozen=True, slots=True)
class Row:
    """One line, cut with an ellipsis where the terminal ends."""

    parts: Sequence[Part]
    margin: Margin = NO_MARGIN

    def plain(self) -> str:
        """Return the line whole and without styles, as files and pipes get it."""
        return _text([*self.margin.parts(is_narrow=False), *self.parts])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = [*self.margin.parts(is_narrow=_is_narrow(options)), *self.parts]
        yield from _line(console, parts, None if options.no_wrap else options.max_width)


@dataclass(frozen=True, slots=True)
class Flow:
    """A head and parts that all must be seen: where there is no room for them they go on in further lines.

    `gap` stands between parts of one line. The first line begins with `first`, the others with `margin`.
    Blanks that only align a part are left out on a narrow terminal.
    """

    head: Sequence[Part]
    parts: Sequence[Part]
    gap: str = "  "
    margin: Margin = NO_MARGIN
    first: Margin = NO_MARGIN

    def plain(self) -> str:
        """Return everything on one line and without styles, as files and pipes get it."""
        parts = _joined(self.parts, self.gap)
        return _text([*self.first.parts(is_narrow=False), *self.head, *parts])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_narrow = _is_narrow(options)
        margin = self.margin.parts(is_narrow=is_narrow)
        line = [*self.first.parts(is_narrow=is_narrow), *self.head]
        if options.no_wrap:
            yield from _line(console, [*line, *_joined(self.parts, self.gap)], None)
            return
        width = options.max_width
        further = [*margin, (" " * _CONTINUED, "")]
        used = _cells(line)
        begins = True
        for text, style in self.parts:
            shown = text.rstrip(" ") if is_narrow else text
            if not shown:
                continue
            cells = cell_len(shown)
            if not begins and used + len(self.gap) + cell_len(shown.rstrip(" ")) > width:
                yield from _line(console, line, width)
                line, used, begins = [*further], _cells(further), True
            if not begins:
                line.append((self.gap, ""))
                used += len(self.gap)
            line.append((shown, style))
            used += cells
            begins = False
        yield from _line(console, line, width)


def _is_narrow(options: ConsoleOptions) -> bool:
    return options.max_width < NARROW and not options.no_wrap


def _cells(parts: Sequence[Part]) -> int:
    return sum(cell_len(text) for text, _ in parts)


def _joined(parts: Sequence[Part], gap: str) -> list[Part]:
    line: list[Part] = []
    for text, style in parts:
        if text:
            line += [(gap if line else "", ""), (text, style)]
    return line


def _kept(parts: Sequence[Part]) -> list[Part]:
    """Return the parts without the empty ones, and without blanks at the end."""
    kept = [part for part in parts if part[0]]
    while kept and not kept[-1][0].strip(" "):
        kept.pop()
    return kept


def _text(parts: Sequence[Part]) -> str:
    return "".join(text for text, _ in _kept(parts))


def _line(console: Console, parts: Sequence[Part], width: int | None) -> RenderResult:
    kept = _kept(parts)
    left = width
    for number, (text, style) in enumerate(kept):
        shown = text
        if left is not None:
            cells = cell_len(text)
            more = number + 1 < len(kept)
            if cells > left or (more and cells == left):
                yield Segment(f"{set_cell_size(text, max(left - 1, 0))}…", console.get_style(style))
                break
            left -= cells
        yield Segment(shown, console.get_style(style))
    yield Segment.line()


def padded(text: str, cells: int) -> str:
    """Return a text filled with blanks up to a width in cells."""
    return text + " " * (cells - cell_len(text))
