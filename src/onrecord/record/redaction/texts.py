"""Rewrites the texts of a value: in bodies of every encoding, in JSON within texts, in member names of free content.

Source: record.md 7.2, PR-08, PR-14.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from onrecord.base.errors import MalformedError
from onrecord.base.hashes import b64url
from onrecord.record import credentials
from onrecord.record.redaction.patterns import Finder, mask_with
from onrecord.record.vcon.bodies import decode_base64url
from onrecord.record.vcon.reader import read_json

MARK: Final = "[redacted]"
"""What stands in place of a whole text."""

MAX_NESTED_TEXTS: Final = 4
"""JSON within a text within JSON …: levels that are taken apart. Deeper ones are searched as they stand."""

BINARY_CHARACTERS: Final = 512
"""From this length on a text of base64 characters alone counts as binary content that nobody searched."""

_USERINFO: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]*@", re.ASCII)
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{512,}={0,2}", re.ASCII)
_TEXT_TYPES: Final = ("text/", "message/", "multipart/")
_JSON_TYPE: Final = re.compile(
    r"application/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|javascript|sql)\s*(?:;|\Z)", re.IGNORECASE
)

Rewrite = Callable[[str], tuple[str, int]]


class TextRewriter:
    """Takes out of any value what the finders find, and credentials where that is asked for."""

    def __init__(self, finders: Sequence[Finder], *, has_credentials: bool) -> None:
        self._finders = finders
        self._has_credentials = has_credentials

    def text(self, text: str) -> tuple[str, int]:
        """Return a single text without what was found, and how many places there were."""
        count = found = 0
        if self._has_credentials:
            text, count = credentials.replace_in_text(text)
        if self._finders:
            text, found = mask_with(text, self._finders)
        return text, count + found

    def value(self, value: Any) -> tuple[Any, int]:
        """Return a JSON value without what was found in its texts and member names, and how many places there were."""
        return self._value(value, 0)

    def _value(self, value: Any, level: int) -> tuple[Any, int]:
        count = 0
        if self._has_credentials and level == 0:
            value, count = credentials.replace(value)
        kind = type(value)
        if kind is str:
            value, found = self._text(value, level)
        elif kind is list:
            value, found = self._items(value, level)
        elif kind is dict:
            value, found = self._members(value, level)
        else:
            found = 0
        return value, count + found

    def _inner(self, value: Any, level: int) -> tuple[Any, int]:
        kind = type(value)
        if kind is str:
            return self._text(value, level)
        if kind is list:
            return self._items(value, level)
        return self._members(value, level) if kind is dict else (value, 0)

    def _items(self, value: list[Any], level: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        count = 0
        for item in value:
            new, found = self._inner(item, level)
            items.append(new)
            count += found
        return (items, count) if count else (value, 0)

    def _members(self, value: dict[str, Any], level: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        used: dict[str, int] = {}
        count = 0
        for name, item in value.items():
            new, found = self._inner(item, level)
            own, renamed = mask_with(name, self._finders) if self._finders else (name, 0)
            if renamed:
                own = _unused(own, used, value)
            members[own] = new
            count += found + renamed
        return (members, count) if count else (value, 0)

    def _text(self, text: str, level: int) -> tuple[str, int]:
        count = 0
        if level < MAX_NESTED_TEXTS and text.lstrip()[:1] in ("{", "["):
            try:
                inside = read_json(text.encode("utf-8", "surrogatepass")).value
            except MalformedError as error:
                if error.code != "json-invalid":
                    return MARK, 1  # two members of one name: one could hide the other
            else:
                new, count = self._nested(inside, level + 1)
                if count:
                    text = _json_text(new)
        new_text, found = self.text(text)
        if not found and "\\u" in text and self.text(_ESCAPE.sub(_character, text))[1]:
            return MARK, 1  # something is hidden behind escapes in what is no JSON as a whole
        return new_text, count + found

    def _nested(self, value: Any, level: int) -> tuple[Any, int]:
        count = 0
        if self._has_credentials:
            value, count = credentials.replace(value)
        new, found = self._inner(value, level)
        return new, count + found


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a number that no JSON text of ours can spell again
        return MARK


def _unused(name: str, used: dict[str, int], others: dict[str, Any]) -> str:
    """Return a name for a member whose own was masked, so that it takes no other member's place."""
    own = name
    while own in others or own in used:
        used[name] = used.get(name, 1) + 1
        own = f"{name} {used[name]}"
    used.setdefault(own, 1)
    return own


def without_userinfo(text: str) -> tuple[str, int]:
    """Return a URL without user and password, and 1 if it had them (AA-122, PR-06)."""
    match = _USERINFO.match(text)
    if match is None:
        return text, 0
    return text[: text.index("://") + 3] + text[match.end() :], 1


def is_binary(text: str) -> bool:
    """Say whether a text is so long and of such characters that it stands for bytes."""
    return len(text) >= BINARY_CHARACTERS and _BASE64.fullmatch(text) is not None


def text_of_body(item: Mapping[str, Any]) -> str | None:
    """Return the text that a base64url body stands for, None if it is binary."""
    data = decode_base64url(item["body"])
    if data is None:
        return None
    kind = item.get("mediatype", item.get("mimetype"))
    if isinstance(kind, str) and not kind.lower().startswith(_TEXT_TYPES) and _JSON_TYPE.match(kind) is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def body_of_text(text: str) -> str:
    """Return a text as a base64url body."""
    return b64url(text.encode("utf-8", "surrogatepass"))


def bytes_of(value: Any) -> bytes:
    """Return the bytes that a value is hashed by: a text as UTF-8, anything else as compact JSON."""
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
