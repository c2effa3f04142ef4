"""Texts without the differences that people do not see: accents apart or not, wide letters, unseen characters, case.

    >>> fold("Jos\u0065\u0301 \uff2d\u00fcller\u200b") == fold("JOS\u00c9 M\u00dcLLER")
    True
    >>> folded = plain("a\u200bb")
    >>> folded.text, folded.place(0, 2)
    ('ab', (0, 3))

Every folded text remembers where each of its characters stood, so that what is found in it can be taken out.

Source: Unicode normalization form NFKD, case folding.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

_BLANKS: Final = str.maketrans("\t\n\v\f\r\x85\u2028\u2029", " " * 8)
"""White space that counts as a blank: a name may stand at the end of a line."""

_MARKS: Final = (
    (0x300, 0x36F),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE2F),
    (0xE0100, 0xE01EF),
)
"""Accents and variation selectors. The signs of scripts in which they are letters are not among them."""

_UNSPACED: Final = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1100, 0x11FF),
    (0x1780, 0x17FF),
    (0x2E80, 0xA4CF),
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Scripts that put no blanks between words, or join endings to names: of South-East Asia, China, Japan, Korea."""

_plain: dict[str, str] = {}
_folded: dict[str, str] = {}

MAX_KEPT: Final = 65_536
"""Characters whose folded form is kept: more than the scripts of any conversation."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text. `starts` has the place of each of its characters in the original, None if all are in place."""

    text: str
    starts: list[int] | None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return start and end in the original of a part of the folded text that is not empty."""
        return (start, end) if self.starts is None else (self.starts[start], self.starts[end - 1] + 1)


def plain(text: str) -> Folded:
    """Return a text in plain letters and digits, with case."""
    return Folded(text, None) if text.isascii() else _by_character(text, _plain, folds_case=False)


def folded(text: str) -> Folded:
    """Return a text in plain letters and digits of one case; any white space is a blank."""
    if text.isascii():
        return Folded(text.lower().translate(_BLANKS), None)
    return _by_character(text, _folded, folds_case=True)


def fold(text: str) -> str:
    """Return the text of `folded`."""
    return folded(text).text


def is_unspaced(char: str) -> bool:
    """Say whether a character is of a script in which no blank need stand beside a name."""
    code = ord(char)
    return code >= _UNSPACED[0][0] and any(low <= code <= high for low, high in _UNSPACED)


def _by_character(text: str, known: dict[str, str], *, folds_case: bool) -> Folded:
    parts: list[str] = []
    starts: list[int] = []
    for start, char in enumerate(text):
        part = known.get(char)
        if part is None:
            part = _of_character(char, folds_case=folds_case)
            if len(known) < MAX_KEPT:
                known[char] = part
        parts.append(part)
        if len(part) == 1:
            starts.append(start)
        else:
            starts += [start] * len(part)
    return Folded("".join(parts), starts)


def _of_character(char: str, *, folds_case: bool) -> str:
    if folds_case:
        char = char.casefold().translate(_BLANKS)
    kept = [one for one in unicodedata.normalize("NFKD", char) if not _is_unseen(one)]
    text = "".join(str(unicodedata.decimal(one, one)) for one in kept)
    return text.casefold() if folds_case else text


def _is_unseen(char: str) -> bool:
    code = ord(char)
    return unicodedata.category(char) == "Cf" or any(low <= code <= high for low, high in _MARKS)
