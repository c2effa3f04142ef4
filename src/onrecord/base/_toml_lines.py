"""Finds the line of a key in TOML text; the standard library's reader keeps no positions.

A guide for people only: it is asked after the text has been parsed, and a wrong answer costs a wrong line number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BARE: Final = r"[A-Za-z0-9_-]+"
_PART: Final = rf"(?:{_BARE}|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_DOTTED: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER: Final = re.compile(rf"^\s*\[\[?\s*({_DOTTED})\s*\]\]?")
_ASSIGNMENT: Final = re.compile(rf"^\s*({_DOTTED})\s*=")
_TRIPLE: Final = re.compile(r"\"\"\"|'''")


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _keys(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield line number (from 1) and full path of every header and every key that starts a line."""
    table: tuple[str, ...] = ()
    fence: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if fence is None:
            if header := _HEADER.match(line):
                table = _parts(header[1])
                yield number, table
            elif assignment := _ASSIGNMENT.match(line):
                yield number, table + _parts(assignment[1])
        for mark in _TRIPLE.findall(line):
            if fence is None:
                fence = mark
            elif fence == mark:
                fence = None


def line_of(text: str, path: Sequence[str]) -> int | None:
    """Return the line of the key at `path`, or of the longest part of the path that has one."""
    wanted = tuple(path)
    best: tuple[int, int] | None = None
    for number, found in _keys(text):
        shared = 0
        for one, other in zip(found, wanted, strict=False):
            if one != other:
                break
            shared += 1
        # A header above the key is a worse answer than the key; a sibling is no answer at all.
        if shared == 0 or (shared < len(found) and shared < len(wanted)):
            continue
        if best is None or shared > best[0]:
            best = (shared, number)
    return None if best is None else best[1]
