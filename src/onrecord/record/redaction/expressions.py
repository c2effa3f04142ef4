"""Regular expressions of rule files. Content is hostile, so an expression must be harmless on any text.

    >>> finder = compile_expression("Project [A-Z]{1,20}", label="project")
    >>> [(part.start, part.end) for part in finder("on Project HERON now")]
    [(3, 16)]

Python's expressions backtrack. An expression is taken only if, at each place of a text, there are few ways to match
it; texts are gone through in blocks, so that also an unbounded repeat has a bound. Time is then linear in the text.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from onrecord.base.errors import UsageError
from onrecord.record.redaction.patterns import MARK, Finder, Found

BLOCK_CHARACTERS: Final = 2_048
"""Characters that an expression sees at once. It bounds what an unbounded repeat can cost."""

MAX_MATCH_CHARACTERS: Final = 512
"""Longest match that is found whole wherever it stands. A longer one is replaced in pieces, or from where it fits."""

MAX_WAYS: Final = 5_000
"""Ways to match at one place of a text. Names, numbers and words need fewer; nested repeats need more."""

MAX_EXPRESSION_CHARACTERS: Final = 1_000
"""Length of an expression. Longer ones are lists, for which there is `words`."""


def compile_expression(text: str, *, label: str) -> Finder:
    """Return what finds the matches of an expression; each is replaced by a mark with the label.

    Raises `UsageError` with code "redaction-pattern-invalid" for what is no expression or matches the empty text, and
    "redaction-pattern-slow" for what could take long on some text.
    """
    if len(text) > MAX_EXPRESSION_CHARACTERS:
        _refuse(
            "redaction-pattern-invalid",
            f"the expression has more than {MAX_EXPRESSION_CHARACTERS} characters",
        )
    try:
        with warnings.catch_warnings(action="ignore"):
            compiled = re.compile(text)
            ways = _Ways().of(importlib.import_module("re._parser").parse(text, compiled.flags))
        matches_nothing = compiled.match("") is not None
    except (re.error, OverflowError, RecursionError):
        _refuse("redaction-pattern-invalid", "this is no regular expression")
    if matches_nothing:
        _refuse("redaction-pattern-invalid", "the expression matches the empty text")
    if ways > MAX_WAYS:
        _refuse("redaction-pattern-slow", "the expression can take too long on some texts")
    mark = MARK.format(label)

    def find(searched: str) -> Iterator[Found]:
        start = 0
        length = len(searched)
        while start < length:
            end = min(start + BLOCK_CHARACTERS, length)
            edge = end if end == length else end - MAX_MATCH_CHARACTERS
            following = edge
            for match in compiled.finditer(searched, start, end):
                if match.start() >= edge:
                    break
                if match.end() > match.start():
                    yield Found(match.start(), match.end(), mark)
                    following = max(following, match.end())
            start = following

    return find


class _Ways:
    """Counts in how many ways an expression can match at one place, from above."""

    def of(self, items: Any) -> int:
        ways = 1
        for operator, argument in items:
            ways = min(ways * self._one(str(operator), argument), MAX_WAYS + 1)
        return ways

    def _one(self, operator: str, argument: Any) -> int:
        if operator in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeat(*argument)
        if operator == "SUBPATTERN":
            return self.of(argument[-1])
        if operator == "ATOMIC_GROUP":
            return self.of(argument)
        if operator == "BRANCH":
            return sum(self.of(branch) for branch in argument[1])
        if operator in ("ASSERT", "ASSERT_NOT"):
            return self.of(argument[1])
        if operator in ("GROUPREF", "GROUPREF_EXISTS", "GROUPREF_IGNORE"):
            return MAX_WAYS + 1  # what a back-reference costs depends on the text
        return 1

    def _repeat(self, low: int, high: int, items: Any) -> int:
        inner = self.of(items)
        most = min(int(high), BLOCK_CHARACTERS)
        counts = most - min(int(low), most) + 1
        if inner == 1:
            return counts
        ways = 1
        for _ in range(most):  # every round may go another way
            ways *= inner
            if ways > MAX_WAYS:
                return MAX_WAYS + 1
        return min(ways * counts, MAX_WAYS + 1)


def _refuse(code: str, message: str) -> NoReturn:
    raise UsageError(
        message,
        code=code,
        hint=r"give repeats an upper bound, like \w{1,40}, and put no repeat inside of a repeat",
    ) from None
