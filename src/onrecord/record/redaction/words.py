"""Takes given words out of texts: those of a rule, and those that a rule has taken out elsewhere.

>>> from onrecord.record.redaction.patterns import mask_with
>>> mask_with("Heron and herons", [word_finder(["heron"], label="project")])
('[project removed] and herons', 1)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from onrecord.record.redaction.folding import fold, is_unspaced, plain
from onrecord.record.redaction.needles import Needles
from onrecord.record.redaction.patterns import MARK, Finder, Found

SHORTEST: Final = 2
"""Characters of the shortest word that is looked for. A single letter stands in every text."""

INSIDE_FROM: Final = 8
"""Characters from which on a word is also found inside of a longer one: shorter ones are parts of others by chance."""

EITHER_CASE_FROM: Final = 5
"""Letters from which on a word of a name is found in either case. Shorter ones are often words of every day (will,
rose), and are only found with a capital, in capitals, or as a part of an identifier or a path."""

MIN_DIGITS: Final = 7
"""Digits of a number that is found in whatever way it is written."""

_JOINERS: Final = frozenset("_/\\@")
_NAME_WORD: Final = re.compile(r"[^\W\d_]['\u2019\w-]*")
_NO_NAMES: Final = frozenset(
    ["al", "bin", "da", "dal", "das", "de", "del", "della", "den", "der", "di", "dos", "dr", "du", "el", "ibn", "ii",
     "iii", "iv", "jr", "la", "le", "lo", "los", "med", "miss", "mr", "mrs", "ms", "of", "prof", "san", "sr", "st",
     "ten", "ter", "the", "und", "van", "vom", "von", "zu", "zum", "zur"]
)  # fmt: skip
"""Words between and around names that stand in every text of their language."""

_NUMBER: Final = re.compile(r"\+?[0-9(](?:[ ().\-/]{0,3}[0-9]){6,40}")
_NUMBER_ALONE: Final = re.compile(r"(?:tel:|sip:|\+)*[0-9 ().\-/+]{7,60}", re.IGNORECASE)
"""Numbers as people write them, of `MIN_DIGITS` digits or more, within a text and alone."""


def word_finder(words: Iterable[str], *, label: str) -> Finder:
    """Return what finds these words, in either case, and replaces them by a mark with the label."""
    mark = MARK.format(label)
    return Replacer(dict.fromkeys(words, mark), names={}).find


def words_of_name(name: str) -> Iterator[str]:
    """Yield the words of a name by which it is known: no titles, no single letters.

    >>> list(words_of_name("Dr. Ana-Maria de Silva, J."))
    ['Ana', 'Maria', 'Silva']
    """
    for word in _NAME_WORD.findall(plain(name).text):
        parts = word.split("-")
        if not all(
            part[:1].isupper() for part in parts
        ):  # some-id is one word, Ana-Maria may be called Maria
            parts = [word]
        for part in parts:
            if len(part) >= SHORTEST and fold(part) not in _NO_NAMES:
                yield part


class Replacer:
    """Replaces words by what is given for each.

    Those in `replacements` are found in either case, the words of names in `names` where they are written like names,
    telephone numbers in any spelling.
    """

    def __init__(self, replacements: Mapping[str, str], *, names: Mapping[str, str]) -> None:
        self._marks: dict[str, str] = {}
        for word, mark in replacements.items():
            self._marks.setdefault(fold(word), mark)
        self._names: dict[str, dict[str, str]] = {}
        for word, mark in names.items():
            self._names.setdefault(fold(word), {}).setdefault(plain(word).text, mark)
        self._needles = Needles([*self._marks, *self._names], shortest=SHORTEST)
        self._numbers: dict[str, str] = {}
        for word, mark in self._marks.items():
            if _NUMBER_ALONE.fullmatch(word):
                digits = digits_of(word)
                for start in range(len(digits) - MIN_DIGITS + 1):
                    self._numbers.setdefault(digits[start:], mark)

    def __bool__(self) -> bool:
        return bool(self._needles)

    def find(self, text: str) -> Iterator[Found]:
        """Yield the words in a text, longest first where several begin, and then numbers."""
        done = 0
        for hit in self._needles.find(text):
            if hit.start < done or not _stands_alone(text, hit.start, hit.end):
                continue
            mark = self._marks.get(hit.text) or self._name(text, hit.start, hit.end, hit.text)
            if mark is not None:
                done = hit.end
                yield Found(hit.start, hit.end, mark)
        if self._numbers:
            yield from self._find_numbers(text)

    def _name(self, text: str, start: int, end: int, folded: str) -> str | None:
        """Return the mark for a word of a name, None where it is written like another word."""
        spellings = self._names.get(folded)
        if spellings is None:
            return None
        first = next(iter(spellings.values()))
        if (
            len(folded) >= EITHER_CASE_FROM
            or text[start - 1 : start] in _JOINERS
            or text[end : end + 1] in _JOINERS
        ):
            return first
        written = plain(text[start:end]).text
        if len(written) > SHORTEST and written.isupper():
            return first
        return spellings.get(written)

    def _find_numbers(self, text: str) -> Iterator[Found]:
        for match in _NUMBER.finditer(text):
            digits = digits_of(match[0])
            mark = self._numbers.get(digits) or next(
                (
                    self._numbers[digits[start:]]
                    for start in range(1, len(digits) - MIN_DIGITS + 1)
                    if digits[start:] in self._numbers
                ),
                None,
            )
            if mark is not None:
                yield Found(match.start(), match.end(), mark)


def digits_of(text: str) -> str:
    """Return the digits of a text, in ASCII."""
    return "".join(char for char in plain(text).text if "0" <= char <= "9")


def _stands_alone(text: str, start: int, end: int) -> bool:
    if end - start >= INSIDE_FROM:
        return True
    return not (
        _is_joined(text[start - 1 : start], text[start]) or _is_joined(text[end - 1], text[end : end + 1])
    )


def _is_joined(left: str, right: str) -> bool:
    """Say whether two characters belong to one word."""
    return left.isalnum() and right.isalnum() and not (is_unspaced(left) or is_unspaced(right))
