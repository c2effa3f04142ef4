"""Text that somebody else wrote, made safe to show: nothing in it moves, hides or reorders what a person sees.

    >>> escape_hidden("a\\u202eb")
    'a\\\\u{202e}b'

Source: call-proof.md 9.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_MARKS: Final = 3
"""Combining marks in a row that are drawn. More of them grow over the lines above and below."""

_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_HIDDEN_LETTERS: Final = frozenset(
    "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f\u2d7f\U0001107f\U00016fe4\U0001d159"
)
"""Letters, signs and marks that are drawn as nothing, the Mongolian variation selectors among them."""


def escape_hidden(text: str) -> str:
    """Return `text` with every control, bidi, zero-width and unassigned character as `\\u{hex}`.

    Combining marks at the start of the text and beyond `MAX_MARKS` in a row, spaces other than U+0020, and variation
    selectors are escaped as well.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = MAX_MARKS
    for char in text:
        if unicodedata.category(char).startswith("M"):
            marks += 1
        else:
            marks = 0
        shown.append(f"\\u{{{ord(char):x}}}" if marks > MAX_MARKS or _is_hidden(char) else char)
    return "".join(shown)


def _is_hidden(char: str) -> bool:
    category = unicodedata.category(char)
    return (
        category in _HIDDEN_CATEGORIES
        or char in _HIDDEN_LETTERS
        or (category == "Zs" and char != " ")
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    )
