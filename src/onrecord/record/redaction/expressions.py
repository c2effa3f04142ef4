"""Regular expressions of rule files. Content is hostile, so an expression must be harmless on any text.

    >>> finder = compile_expression("Project [A-Z]{1,20}", label="project")
    >>> [(part.start, part.end) for part in finder("on Project HERON now")]
    [(3, 16)]

Python's expressions backtrack. An expression is taken only if, at each place of a text, it can take few steps in all
ways to match it; texts are gone through in blocks, so that also an unbounded repeat has a bound. Time is then linear in
the text.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn

from onrecord.base.errors import UsageError
from onrecord.record.redaction.patterns import MARK, Finder, Found

BLOCK_CHARACTERS: Final = 2_048
"""Characters that an expression sees at once. It bounds what an unbounded repeat can cost."""

MAX_MATCH_CHARACTERS: Final = 512
"""Longest match that is found whole wherever it stands. A longer one is replaced in pieces, or from where it fits."""

MAX_WORK: Final = 5_000
"""Steps at one place of a text. Names, numbers and words need fewer; repeats in repeats or in a row need more."""

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
            cost = cost_of(importlib.import_module("re._parser").parse(text, compiled.flags))
        matches_nothing = cost.work <= MAX_WORK and compiled.match("") is not None
    except (re.error, OverflowError, RecursionError):
        _refuse("redaction-pattern-invalid", "this is no regular expression")
    if matches_nothing:
        _refuse("redaction-pattern-invalid", "the expression matches the empty text")
    if cost.work > MAX_WORK:
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


class Cost(NamedTuple):
    """What an expression can cost at one place: ways to match it, and steps in all of them. Both are bounds."""

    ways: int
    work: int


_STEP: Final = Cost(1, 1)
_TOO_MUCH: Final = Cost(MAX_WORK + 1, MAX_WORK + 1)
_REPEATS: Final = frozenset(["MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"])
_CATEGORIES: Final = {
    "CATEGORY_WORD": re.compile(r"\w"),
    "CATEGORY_NOT_WORD": re.compile(r"\W"),
    "CATEGORY_DIGIT": re.compile(r"\d"),
    "CATEGORY_NOT_DIGIT": re.compile(r"\D"),
    "CATEGORY_SPACE": re.compile(r"\s"),
    "CATEGORY_NOT_SPACE": re.compile(r"\S"),
}
ASCII_END: Final = 0x80
"""Beyond ASCII, letters of either case are not told apart here."""

_ASSERTIONS: Final = frozenset(["ASSERT", "ASSERT_NOT"])


def cost_of(items: Any) -> Cost:
    """Return what a parsed expression can cost: each part is tried once for every way to match those before it."""
    ways, work = 1, 0
    repeated: Any = None
    ways_before = 1
    for operator, argument in items:
        part = _cost_of_one(str(operator), argument)
        work = min(work + ways * part.work, MAX_WORK + 1)
        if str(operator) == "LITERAL" and repeated is not None and not _admits(repeated, argument):
            ways = ways_before  # only the end of the repeat can come before this character
        else:
            ways_before = ways
            ways = min(ways * part.ways, MAX_WORK + 1)
        repeated = _repeated_set(str(operator), argument)
    return Cost(ways, work)


def _repeated_set(operator: str, argument: Any) -> Any:
    """Return the one set of characters that is repeated, None for any other part."""
    if operator not in _REPEATS or len(argument[2]) != 1:
        return None
    inner, members = argument[2][0]
    if str(inner) == "LITERAL":
        return [(inner, members)]
    return members if str(inner) == "IN" else None


def _admits(members: Any, code: int) -> bool:
    """Say whether a set of characters may hold a character, in either case. What is not plain counts as yes."""
    if code >= ASCII_END:
        return True
    negated = any(str(operator) == "NEGATE" for operator, _ in members)
    codes = {code} if negated else {code, ord(chr(code).lower()), ord(chr(code).upper())}
    found = False
    for operator, argument in members:
        name = str(operator)
        if name == "NEGATE":
            continue
        if name == "LITERAL" and argument < ASCII_END:
            found = found or argument in codes
        elif name == "RANGE" and argument[1] < ASCII_END:
            found = found or any(argument[0] <= one <= argument[1] for one in codes)
        elif name == "CATEGORY" and str(argument) in _CATEGORIES:
            found = found or _CATEGORIES[str(argument)].match(chr(code)) is not None
        else:
            return True
    return not found if negated else found


def _cost_of_one(operator: str, argument: Any) -> Cost:
    if operator in _REPEATS:
        return _cost_of_repeat(*argument)
    if operator == "SUBPATTERN":
        return cost_of(argument[-1])
    if operator == "ATOMIC_GROUP":
        return cost_of(argument)
    if operator == "BRANCH":
        branches = [cost_of(branch) for branch in argument[1]]
        return Cost(sum(one.ways for one in branches), sum(one.work for one in branches) + len(branches))
    if operator in _ASSERTIONS:
        return cost_of(argument[1])
    if operator.startswith("GROUPREF"):
        return _TOO_MUCH  # what a back-reference costs depends on the text
    return _STEP


def _cost_of_repeat(low: int, high: int, items: Any) -> Cost:
    inner = cost_of(items)
    most = min(int(high), BLOCK_CHARACTERS)
    counts = most - min(int(low), most) + 1
    ways, work = 1, 1
    for _ in range(most):  # every round may go another way
        work += ways * max(inner.work, 1)
        ways *= inner.ways
        if work > MAX_WORK:
            return _TOO_MUCH
    return Cost(min(ways * counts, MAX_WORK + 1), work)


def _refuse(code: str, message: str) -> NoReturn:
    raise UsageError(
        message,
        code=code,
        hint=r"give repeats an upper bound, like \w{1,40}, and put no repeat inside of a repeat",
    ) from None
