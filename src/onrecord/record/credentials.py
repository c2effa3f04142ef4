"""Finds credentials in recorded values and replaces them visibly.

    >>> replace({"note": "use AKIAABCDEFGHIJKLMNOP", "password": "x"})
    ({'note': 'use [credential replaced: aws-key-id]', 'password': '[credential replaced: password]'}, 2)

`find` and `replace` go the same way through a value, so what one reports the other changes. Time is linear in the
size of the text, whatever it holds. A hit never carries the text that matched.

Source: record.md 7.2 and D-74; running.md 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from onrecord.record.credential_patterns import PATTERNS, URL_USERINFO, Pattern, Span, active_patterns
from onrecord.record.vcon.paths import Path, pointer_of

MARK: Final = "[credential replaced: {}]"
"""What stands in place of a credential; {} is the name of the pattern or member."""

REMOVED_MARKS: Final = ("[credential replaced:", "[credential removed]")
"""Beginnings of values that say that a credential was taken out before."""

MAX_DEPTH: Final = 256
"""Levels of arrays and objects that are searched. A value from the strict reader has at most half of them; deeper ones
are replaced whole."""

MEMBER_NAMES: Final = frozenset(
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "client_secret",
        "client_assertion",
        "access_token",
        "refresh_token",
        "id_token",
        "session_token",
        "auth_token",
        "api_key",
        "api-key",
        "x-api-key",
        "private_key",
        "credential",
        "credentials",
        "pin",
        "otp",
    ]
)
"""Names of members that hold a credential: whole names, in any case, their words joined in any way."""

_JOINERS: Final = str.maketrans("", "", "_-")
_BARE_NAMES: Final = frozenset(name.translate(_JOINERS) for name in MEMBER_NAMES)
_NAME_LENGTHS: Final = frozenset(len(name) + joiners for name in _BARE_NAMES for joiners in range(3))
_SCHEMA_TYPES: Final = frozenset(["string", "number", "integer", "boolean", "object", "array", "null"])
_SCHEMA_WORDS: Final = frozenset(
    [
        "$id",
        "$ref",
        "$schema",
        "additionalProperties",
        "allOf",
        "anyOf",
        "deprecated",
        "description",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "properties",
        "readOnly",
        "required",
        "title",
        "type",
        "uniqueItems",
        "writeOnly",
    ]
)
"""Words of JSON schemas that hold no value: an object with any other member beside its type may hold one."""

MIN_KEY_CHARACTERS: Final = 8
"""Shortest member name that is searched: no credential of the patterns is shorter."""


class Hit(NamedTuple):
    """A credential in a value: where, which pattern or member name, and if a "text", a "member" or a "url" gave it."""

    pointer: str
    pattern: str
    kind: str


def spans(text: str, patterns: tuple[Pattern, ...] = PATTERNS) -> list[Span]:
    """Return where credentials stand in a text, in order, without overlaps."""
    found: list[Span] = []
    for pattern in patterns:
        if pattern.trigger in (text.lower() if pattern.is_folded else text):
            found.extend(pattern.spans(text))
    if len(found) < 2:
        return found
    found.sort(key=lambda span: (span.start, -span.end))
    apart: list[Span] = []
    for span in found:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
        elif span.end > apart[-1].end:
            apart[-1] = apart[-1]._replace(end=span.end)
    return apart


def is_credential_name(name: str) -> bool:
    """Say whether a member of this name holds a credential: access_token, access-token, accessToken."""
    return len(name) in _NAME_LENGTHS and name.lower().translate(_JOINERS) in _BARE_NAMES


def is_replaced(value: Any) -> bool:
    """Say whether a value is the mark of a credential that was taken out, and nothing else."""
    return isinstance(value, str) and value.startswith(REMOVED_MARKS) and value.find("]") == len(value) - 1


def find(value: Any, *, pointer: str = "", patterns: tuple[Pattern, ...] = PATTERNS) -> list[Hit]:
    """Return the credentials in a JSON value, in document order, with pointers that begin with `pointer`."""
    hits = list(search(value, pointer=pointer, patterns=patterns))
    hits.reverse()
    return hits


def search(value: Any, *, pointer: str = "", patterns: tuple[Pattern, ...] = PATTERNS) -> Iterator[Hit]:
    """Yield what `find` returns, the last first, so that a file full of credentials need not fill memory with hits."""
    work: list[tuple[Any, Path, str]] = [(value, None, "")]
    while work:
        item, path, name = work.pop()
        kind = type(item)
        if kind is dict:
            inside = "" if _is_schema(item) else name
            for key, member in item.items():
                if patterns and len(key) >= MIN_KEY_CHARACTERS:
                    for span in spans(key, patterns):
                        # The place is the object: a pointer to the member would quote the credential.
                        yield Hit(pointer_of(path, pointer), span.pattern, _kind_of(span))
                own = key.lower() if is_credential_name(key) else inside
                kind = type(member)
                if own or kind is dict or kind is list or (patterns and kind is str):
                    work.append((member, (path, key), own))
        elif kind is list:
            for index, member in enumerate(item):
                kind = type(member)
                if name or kind is dict or kind is list or (patterns and kind is str):
                    work.append((member, (path, index), name))
        elif kind is str:
            if patterns:
                for span in reversed(spans(item, patterns)):
                    yield Hit(pointer_of(path, pointer), span.pattern, _kind_of(span))
            if name and item and not is_replaced(item):
                yield Hit(pointer_of(path, pointer), name, "member")
        elif name and _is_number(item):
            yield Hit(pointer_of(path, pointer), name, "member")


def _kind_of(span: Span) -> str:
    return "url" if span.pattern == URL_USERINFO else "text"


def replace(value: Any) -> tuple[Any, int]:
    """Return a copy of a JSON value with each credential replaced by its mark, and how many were replaced.

    In a member that is named like a credential every text and number is replaced, also inside of arrays and objects
    there; an object that describes a value (a JSON schema) is gone through like any other. A value in which nothing
    was replaced is returned as it is.

    Source: record.md D-74.
    """
    return _replace(value, "", 0)


def _replace(value: Any, name: str, depth: int) -> tuple[Any, int]:
    kind = type(value)
    if kind is str:
        if name and value and not is_replaced(value):
            return MARK.format(name), 1
        return replace_in_text(value)
    if kind is dict or kind is list:
        if depth >= MAX_DEPTH:
            return MARK.format("nested too deep"), 1
        return _replace_in_dict(value, name, depth) if kind is dict else _replace_in_list(value, name, depth)
    if name and _is_number(value):
        return MARK.format(name), 1
    return value, 0


def _replace_in_dict(value: dict[str, Any], name: str, depth: int) -> tuple[Any, int]:
    inside = "" if _is_schema(value) else name
    count = 0
    members: dict[str, Any] = {}
    used: dict[str, int] = {}
    for key, member in value.items():
        own = key.lower() if is_credential_name(key) else inside
        replaced, found = _replace(member, own, depth + 1)
        count += found
        if len(key) >= MIN_KEY_CHARACTERS:
            clean, found = replace_in_text(key)
            if found:
                count += found
                members[_unused(clean, used, value)] = replaced
                continue
        members[key] = replaced
    return (members, count) if count else (value, 0)


def _unused(name: str, used: dict[str, int], members: dict[str, Any]) -> str:
    """Return a name for a member whose own was replaced, so that it takes no other member's place."""
    used[name] = used.get(name, 0) + 1
    own = name if used[name] == 1 else f"{name} {used[name]}"
    while own in members:
        used[name] += 1
        own = f"{name} {used[name]}"
    return own


def _replace_in_list(value: list[Any], name: str, depth: int) -> tuple[Any, int]:
    count = 0
    items: list[Any] = []
    for item in value:
        replaced, found = _replace(item, name, depth + 1)
        items.append(replaced)
        count += found
    return (items, count) if count else (value, 0)


def replace_in_text(text: str) -> tuple[str, int]:
    """Return a text with each credential replaced by its mark, and how many were replaced."""
    found = spans(text)
    if not found:
        return text, 0
    parts: list[str] = []
    position = 0
    for span in found:
        parts += [text[position : span.start], MARK.format(span.pattern)]
        position = span.end
    parts.append(text[position:])
    return "".join(parts), len(found)


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_schema(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind in _SCHEMA_TYPES and value.keys() <= _SCHEMA_WORDS


__all__ = [
    "MARK",
    "MAX_DEPTH",
    "MEMBER_NAMES",
    "MIN_KEY_CHARACTERS",
    "PATTERNS",
    "REMOVED_MARKS",
    "URL_USERINFO",
    "Hit",
    "Pattern",
    "Span",
    "active_patterns",
    "find",
    "is_credential_name",
    "is_replaced",
    "replace",
    "replace_in_text",
    "search",
    "spans",
]
