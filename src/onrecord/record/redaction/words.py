"""Takes given words out of texts: those of a rule, and those that a rule has taken out elsewhere.

>>> from onrecord.record.redaction.patterns import mask_with
>>> mask_with("Heron and herons", [word_finder(["heron"], label="project")])
('[project removed] and herons', 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from onrecord.record.redaction.needles import Needles, fold
from onrecord.record.redaction.patterns import MARK, Finder, Found

SHORTEST: Final = 2
"""Characters of the shortest word that is looked for. A single letter stands in every text."""

INSIDE_FROM: Final = 8
"""Characters from which on a word is also found inside of a longer one: shorter ones are parts of others by chance."""


def word_finder(words: Iterable[str], *, label: str) -> Finder:
    """Return what finds these words, in either case, and replaces them by a mark with the label."""
    mark = MARK.format(label)
    return Replacer(dict.fromkeys(words, mark), exact={}).find


class Replacer:
    """Replaces words by what is given for each: those in `replacements` in either case, those in `exact` as written."""

    def __init__(self, replacements: Mapping[str, str], *, exact: Mapping[str, str]) -> None:
        self._marks = {fold(word): mark for word, mark in replacements.items()}
        self._exact = dict(exact)
        self._needles = Needles([*self._marks, *self._exact], shortest=SHORTEST)

    def __bool__(self) -> bool:
        return bool(self._needles)

    def find(self, text: str) -> Iterator[Found]:
        """Yield the words in a text, longest first where several begin."""
        done = 0
        for hit in self._needles.find(text):
            if hit.start < done or not _stands_alone(text, hit.start, hit.end):
                continue
            mark = self._marks.get(hit.text) or self._exact.get(text[hit.start : hit.end])
            if mark is not None:
                done = hit.end
                yield Found(hit.start, hit.end, mark)


def _stands_alone(text: str, start: int, end: int) -> bool:
    if end - start >= INSIDE_FROM:
        return True
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not (before or after)
