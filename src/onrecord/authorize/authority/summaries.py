"""The readable summary of a call for an approver, made from the call alone.

Nothing that the agent says about its call is used: there is no title, no description, no reason from the request.
Characters that could move, hide or reorder text on a terminal or a page are shown as `\\u{..}`.

Source: call-proof.md 9; CP-051, CP-080.
"""

from __future__ import annotations

import hashlib
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from onrecord.base.escapes import escape_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from onrecord.authorize.policy.facts import Reading

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
    {"server", "tool", "caller", "rule", "digest", "argument", "input", "round", "op", "impact", "unknown"}
    | {"path", "host", "amount", "command", "resource"}
)


def value_text(value: Any) -> str:
    """Return one argument value as JSON on one line, escaped, cut with its length and hash if it is long."""
    data = orjson.dumps(value)
    whole = data.decode("utf-8")
    # Only the part that can be shown is escaped: an agent may send a mebibyte.
    text = escape_hidden(whole[: MAX_VALUE_CHARACTERS + 1])
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    digest = hashlib.sha256(data).hexdigest()[:16]
    return f"{text[:MAX_VALUE_CHARACTERS]} … ({len(data)} bytes, sha-256 {digest})"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode("utf-8")


def summary_lines(
    *,
    server: str,
    tool: str,
    caller: str,
    arguments: Mapping[str, Any],
    facts: Sequence[tuple[str, str]],
    rules: Sequence[str],
    action_digest: str,
    inputs: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Return the lines that an approver sees, one fact of the call per line.

    `arguments` is the object that was digested; every member gives one line "name: JSON" and none is read as text
    about the call. `inputs` are the members of a later round (inputResponses, requestState). `facts` are pairs of
    name and value that policy derived, `rules` the ids that ask for approval.
    """
    # The tool's name is never cut: it says what runs, and a request with more than 256 bytes of it is refused.
    lines = [
        f"server: {escape_hidden(server)}",
        f"tool: {escape_hidden(tool)}",
        f"caller: {escape_hidden(caller)}",
    ]
    lines += [
        f"{_argument_name(name)}: {value_text(arguments[name])}" for name in list(arguments)[:MAX_LINES]
    ]
    if len(arguments) > MAX_LINES:
        lines.append(f"({len(arguments) - MAX_LINES} more arguments are not shown)")
    lines += list(islice(_input_lines(inputs or {}, value_text, MAX_NAME_CHARACTERS), MAX_LINES))
    lines += [f"{name}: {_cut(value, MAX_VALUE_CHARACTERS)}" for name, value in facts[:MAX_LINES]]
    if len(facts) > MAX_LINES:
        lines.append(f"({len(facts) - MAX_LINES} more facts are not shown)")
    lines += [f"rule: {escape_hidden(rule)}" for rule in rules]
    lines.append(f"digest: {action_digest[:DIGEST_CHARACTERS]}")
    return tuple(lines)


def full_lines(arguments: Mapping[str, Any], inputs: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield every argument and input of a call in full, one line "name: JSON" each. They are not escaped yet.

    Whoever shows a part of them escapes that part: a whole call may have a mebibyte.
    """
    for name, value in arguments.items():
        yield f"{_argument_name(name, None)}: {_json(value)}"
    yield from _input_lines(inputs or {}, _json, None)


def _input_lines(inputs: Mapping[str, Any], text: Callable[[Any], str], limit: int | None) -> Iterator[str]:
    """Yield one line for each input; a name with a blank is quoted, so none can pose as the request's state."""
    if "requestState" in inputs:
        yield f"input request state: {text(inputs['requestState'])}"
    for name, value in inputs.get("inputResponses", {}).items():
        yield f"input {_argument_name(name, limit)}: {text(value)}"


def fact_pairs(reading: Reading, *, round_: int) -> tuple[tuple[str, str], ...]:
    """Return what policy derived of a call, as pairs of name and value to show."""
    pairs = [("round", str(round_))] if round_ > 1 else []
    pairs += [("op", reading.op), ("impact", str(reading.impact))]
    pairs += [("unknown", name) for name in reading.unknown]
    seen = dict.fromkeys(
        (name, _fact_text(name, fact)) for touch in reading.touches for name, fact in touch.items()
    )
    return (*pairs, *seen)


def _fact_text(name: str, fact: Any) -> str:
    if name == "path":
        marks = [mark for mark in ("dotdot", "hidden") if fact[mark]]
        return f"{fact['root']}/{fact['rel']} ({', '.join([fact['mode'], *marks])})"
    return fact if type(fact) is str else orjson.dumps(fact).decode("utf-8")


def _argument_name(name: str, limit: int | None = MAX_NAME_CHARACTERS) -> str:
    """An argument never looks like one of our own lines, whatever the agent calls it."""
    if name.lower() in _OWN_LINES:
        return f"argument {name}"
    text = name if _PLAIN_NAME.fullmatch(name) else orjson.dumps(name).decode("utf-8")
    return text if limit is None else _cut(text, limit)


def _cut(name: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    text = escape_hidden(name[: limit + 1])
    if len(text) <= limit:
        return text
    return f"{text[:limit]} … ({len(name)} characters)"
