"""The readable summary of a call for an approver, made from the call alone.

Nothing that the agent says about its call is used: there is no title, no description, no reason from the request.
Characters that could move, hide or reorder text on a terminal or a page are shown as `\\u{..}`.

Source: call-proof.md 9; CP-051, CP-080.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_VALUE_CHARACTERS: Final = 400
"""Characters shown of one value. What is cut is named with its length and hash, so nothing hides behind it."""

MAX_NAME_CHARACTERS: Final = 100
"""Characters shown of an argument name."""

MAX_LINES: Final = 100
"""Lines of arguments shown; more are counted. An approver cannot judge hundreds of lines."""

DIGEST_CHARACTERS: Final = 8
"""First characters of the digest that are shown, so that two displays of one call can be compared."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.$-]+", re.ASCII)
_OWN_LINES: Final = frozenset(
    {"server", "tool", "caller", "rule", "digest", "op", "impact", "path", "host", "argument"}
)
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_HIDDEN_LETTERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
"""Letters and marks that are drawn as nothing."""


def escape_hidden(text: str) -> str:
    """Return `text` with every control, bidi, zero-width and unassigned character as `\\u{hex}`.

    Combining marks at the start of the text, spaces other than U+0020, and variation selectors are escaped as well.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(char):x}}}" if _is_hidden(char, first=index == 0) else char
        for index, char in enumerate(text)
    )


def _is_hidden(char: str, *, first: bool) -> bool:
    category = unicodedata.category(char)
    return (
        category in _HIDDEN_CATEGORIES
        or char in _HIDDEN_LETTERS
        or (category == "Zs" and char != " ")
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
        or (first and category.startswith("M"))
    )


def value_text(value: Any) -> str:
    """Return one argument value as JSON on one line, escaped, cut with its length and hash if it is long."""
    data = orjson.dumps(value)
    text = escape_hidden(data.decode("utf-8"))
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    digest = hashlib.sha256(data).hexdigest()[:16]
    return f"{text[:MAX_VALUE_CHARACTERS]} … ({len(data)} bytes, sha-256 {digest})"


def summary_lines(
    *,
    server: str,
    tool: str,
    caller: str,
    arguments: Mapping[str, Any],
    facts: Sequence[tuple[str, str]],
    rules: Sequence[str],
    action_digest: str,
) -> tuple[str, ...]:
    """Return the lines that an approver sees, one fact of the call per line.

    `arguments` is the object that was digested; every member gives one line "name: JSON" and none is read as text
    about the call. `facts` are pairs of name and value that policy derived, `rules` the ids that ask for approval.
    """
    lines = [f"server: {escape_hidden(server)}", f"tool: {_cut(tool)}", f"caller: {escape_hidden(caller)}"]
    lines += [
        f"{_argument_name(name)}: {value_text(arguments[name])}" for name in list(arguments)[:MAX_LINES]
    ]
    if len(arguments) > MAX_LINES:
        lines.append(f"({len(arguments) - MAX_LINES} more arguments are not shown)")
    lines += [f"{name}: {escape_hidden(value)}" for name, value in facts]
    lines += [f"rule: {escape_hidden(rule)}" for rule in rules]
    lines.append(f"digest: {action_digest[:DIGEST_CHARACTERS]}")
    return tuple(lines)


def _argument_name(name: str) -> str:
    """An argument never looks like one of our own lines, whatever the agent calls it."""
    if name in _OWN_LINES:
        return f"argument {name}"
    return _cut(name) if _PLAIN_NAME.fullmatch(name) else _cut(orjson.dumps(name).decode("utf-8"))


def _cut(name: str) -> str:
    text = escape_hidden(name)
    if len(text) <= MAX_NAME_CHARACTERS:
        return text
    return f"{text[:MAX_NAME_CHARACTERS]} … ({len(name)} characters)"
