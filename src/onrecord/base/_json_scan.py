"""Exact first fault of a refused JSON text, in text order. Slow, so it looks at the beginning of a long text only."""

from __future__ import annotations

import math
import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final

MAX_TURNS: Final = 10_000
"""Steps, about one for each token and bracket, that the exact search takes: some milliseconds. A text of a mebibyte
takes a hundred times as many, and whoever sends such texts must not hold up all others."""

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LITERAL = re.compile(r"true|false|null")
_MAX_SAFE = 2**53 - 1


def first_fault(text: str, *, found: str) -> str:
    """Return "syntax", "duplicate", "nonfinite" or "unsafe_integer", whichever comes first in the text.

    A duplicate counts where its second name stands. A text without any of these (which the caller has refused all
    the same, for instance for its recursion) is "syntax". `found` is the fault that the caller has met; it is the
    answer when none is found within `MAX_TURNS`.
    """
    stack: list[set[str] | None] = []  # names seen per open object, None for an array
    pos = _skip(text, 0)
    expect = "value"
    for _ in range(MAX_TURNS):
        if expect == "end":
            # The caller only comes here with a fault, so text after the value is the one that is left.
            return "syntax"
        char = text[pos : pos + 1]
        if expect == "name" or (expect == "name-or-end" and char != "}"):
            if char != '"':
                return "syntax"
            try:
                name, pos = scanstring(text, pos + 1, True)
            except (JSONDecodeError, ValueError):
                return "syntax"
            seen = stack[-1]
            if seen is None or name in seen:
                return "duplicate"
            seen.add(name)
            pos = _skip(text, pos)
            if text[pos : pos + 1] != ":":
                return "syntax"
            pos = _skip(text, pos + 1)
            expect = "value"
            continue
        if expect == "comma-or-end":
            if char == ",":
                pos = _skip(text, pos + 1)
                expect = "name" if stack[-1] is not None else "value"
                continue
            if char != ("}" if stack[-1] is not None else "]"):
                return "syntax"
        if expect in ("comma-or-end", "name-or-end") or (expect == "value-or-end" and char == "]"):
            stack.pop()
            pos += 1
        elif char == "{":
            stack.append(set())
            pos = _skip(text, pos + 1)
            expect = "name-or-end"
            continue
        elif char == "[":
            stack.append(None)
            pos = _skip(text, pos + 1)
            expect = "value-or-end"
            continue
        elif char == '"':
            try:
                _, pos = scanstring(text, pos + 1, True)
            except (JSONDecodeError, ValueError):
                return "syntax"
        elif match := _NUMBER.match(text, pos):
            if fault := _number_fault(match):
                return fault
            pos = match.end()
        elif match := _LITERAL.match(text, pos):
            pos = match.end()
        else:
            return "syntax"
        pos = _skip(text, pos)
        expect = "comma-or-end" if stack else "end"
    return found


def _number_fault(match: re.Match[str]) -> str | None:
    if match[1] or match[2]:
        return "nonfinite" if math.isinf(float(match[0])) else None
    if len(match[0]) > 17 or abs(int(match[0])) > _MAX_SAFE:
        return "unsafe_integer"
    return None


def _skip(text: str, pos: int) -> int:
    match = _SPACE.match(text, pos)
    return match.end() if match else pos
