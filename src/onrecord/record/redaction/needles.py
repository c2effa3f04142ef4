"""Searches one text for many given texts at once: what was taken out, in what is still there.

    >>> needles = Needles(["Ana Silva", "HERON-7"], shortest=3)
    >>> [(hit.start, hit.end, hit.text) for hit in needles.find("ana silva asked about heron-7")]
    [(0, 9, 'ana silva'), (22, 29, 'heron-7')]

Letters count as equal in either case, with accents and without (see `folding`). Time is linear in the texts: each
place of a text is looked up once, and what comparing long texts may cost in all has a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from onrecord.record.redaction.folding import Folded, fold, folded

LONG_CHARACTERS: Final = 64
"""From this length on a text is looked up by its beginning and then compared."""

WORK_FACTOR: Final = 4_096
"""Characters compared, per character searched, before a beginning of 64 equal ones counts as a hit: less than a
microsecond."""


class Hit(NamedTuple):
    """A place where a searched text stands: from `start` to before `end`.

    `text` is in the folded form, whose length may be another. `is_whole` is false if only its beginning was compared,
    because the texts are made to take long.
    """

    start: int
    end: int
    text: str
    is_whole: bool = True


class Needles:
    """The texts to look for. Those below `shortest` characters are left out."""

    def __init__(self, texts: Iterable[str], *, shortest: int) -> None:
        self._head = shortest
        self._lengths: dict[str, list[int]] = {}
        self._short: set[str] = set()
        self._long: dict[str, list[str]] = {}
        self._work = 0
        for text in dict.fromkeys(map(fold, texts)):
            if len(text) >= shortest:
                self._put(text)
                self._work += len(text) * WORK_FACTOR
        for lengths in self._lengths.values():
            lengths.sort(reverse=True)

    def __bool__(self) -> bool:
        return bool(self._lengths)

    def _put(self, text: str) -> None:
        length = min(len(text), LONG_CHARACTERS)
        lengths = self._lengths.setdefault(text[: self._head], [])
        if length not in lengths:
            lengths.append(length)
        if len(text) < LONG_CHARACTERS:
            self._short.add(text)
        else:
            self._long.setdefault(text[:LONG_CHARACTERS], []).append(text)

    def find(self, text: str) -> Iterator[Hit]:
        """Yield the hits in a text by their start, longest first."""
        head, known = self._head, self._lengths
        if not known:
            return
        searched = folded(text)
        inside = searched.text
        self._work += len(inside) * WORK_FACTOR
        for start in range(len(inside) - head + 1):
            lengths = known.get(inside[start : start + head])
            if lengths is not None:
                for length in lengths:
                    part = inside[start : start + length]
                    if len(part) < length:
                        continue
                    if length == LONG_CHARACTERS:
                        yield from self._find_long(searched, start, part)
                    elif part in self._short:
                        yield Hit(*searched.place(start, start + length), part)

    def _find_long(self, searched: Folded, start: int, part: str) -> Iterator[Hit]:
        for text in self._long.get(part, ()):
            if self._work <= 0:
                yield Hit(*searched.place(start, start + len(part)), text, is_whole=False)
                return
            self._work -= len(text)
            if searched.text.startswith(text, start):
                yield Hit(*searched.place(start, start + len(text)), text)
