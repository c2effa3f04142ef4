"""Rewrites the texts of a value: in bodies of every encoding, in JSON within texts, in member names of free content.

Source: record.md 7.2, PR-08, PR-14.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onrecord.base.errors import MalformedError
from onrecord.base.hashes import b64url
from onrecord.record import credentials
from onrecord.record.redaction.decoding import BINARY, may_say_more, readings
from onrecord.record.redaction.patterns import Finder, mask_with
from onrecord.record.vcon.bodies import decode_base64url, mediatype_of
from onrecord.record.vcon.reader import read_json

MARK: Final = "[redacted]"
"""What stands in place of a whole text."""

MAX_NESTED_TEXTS: Final = 4
"""JSON within a text within JSON …: levels that are taken apart. Deeper ones are searched as they stand."""

MIN_NUMBER: Final = 1_000
"""Numbers from here on are looked at like texts: smaller ones are counts and sizes, and name nobody."""

MAX_NUMBER: Final = 1e40
"""Numbers from here on are no telephone numbers, cards or accounts."""

BINARY_CHARACTERS: Final = 512
"""From this length on a text of base64 characters alone counts as binary content that nobody searched."""

_USERINFO: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]*@", re.ASCII)
_TOKEN: Final = re.compile(r"[^\s\"'<>]+")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{512,}={0,2}", re.ASCII)
_TEXT_TYPES: Final = ("text/", "message/", "multipart/")
_JSON_TYPE: Final = re.compile(
    r"application/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|javascript|sql)\s*(?:;|\Z)", re.IGNORECASE
)

_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)
_CHARSETS: Final = frozenset(
    ["utf-8", "utf-16", "utf-16le", "utf-16be", "utf-32", "us-ascii", "ascii", "shift_jis", "euc-jp", "iso-2022-jp",
     "gb2312", "gbk", "gb18030", "big5", "euc-kr", "koi8-r", "koi8-u"]
)  # fmt: skip
"""Character sets that are read, beside those of `_CHARSET_FAMILIES`. Others of Python are slow, or no such sets."""

_CHARSET_FAMILIES: Final = re.compile(r"iso-8859-(?:[1-9]|1[0-6])|windows-125[0-8]")


class TextRewriter:
    """Takes out of any value what the finders find, and credentials where that is asked for."""

    def __init__(self, finders: Sequence[Finder], *, has_credentials: bool) -> None:
        self._finders = finders
        self._has_credentials = has_credentials

    def text(self, text: str) -> tuple[str, int]:
        """Return a single text without what was found, and how many places there were.

        It is also looked for behind escapes and in base64.
        Of what is found behind escapes the whole word goes, or the whole text where it is no word.
        """
        new, count = self._plain(text)
        if not may_say_more(new):
            return new, count
        new, hidden = self._without_hiding_words(new)
        if self._hides(new):
            return MARK, count + hidden + 1
        return new, count + hidden

    def _without_hiding_words(self, text: str) -> tuple[str, int]:
        parts: list[str] = []
        position = 0
        for match in _TOKEN.finditer(text):
            if self._hides(match[0]):
                parts += [text[position : match.start()], MARK]
                position = match.end()
        parts.append(text[position:])
        return "".join(parts), len(parts) // 2

    def _hides(self, text: str) -> bool:
        """Say whether something is found in another reading of a text. Binary content is not looked into."""
        for form, reading in readings(text):
            if form == "same" or (form == BINARY and len(text) >= BINARY_CHARACTERS):
                continue
            if self._plain(reading)[1] or (self._has_credentials and _holds_credentials(reading)):
                return True
        return False

    def _plain(self, text: str) -> tuple[str, int]:
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
        new, found = self._inner(value, level)
        return new, count + found

    def _inner(self, value: Any, level: int) -> tuple[Any, int]:
        kind = type(value)
        if kind is str:
            return self._text(value, level)
        if kind is list:
            return self._items(value, level)
        if kind is dict:
            return self._members(value, level)
        return self._number(value) if kind is int or kind is float else (value, 0)

    def _number(self, value: float) -> tuple[Any, int]:
        """Return a number, or what stands in its place if it is a telephone number, a card, or one of the values."""
        if self._finders and not -MIN_NUMBER < value < MIN_NUMBER and abs(value) < MAX_NUMBER:
            spelled = str(value)
            new, count = mask_with(spelled, self._finders)
            if count:
                return new, count
        return value, 0

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
            own, renamed = self.text(name)
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
        return new_text, count + found

    def _nested(self, value: Any, level: int) -> tuple[Any, int]:
        count = 0
        if self._has_credentials:
            value, count = credentials.replace(value)
        new, found = self._inner(value, level)
        return new, count + found


def _holds_credentials(text: str) -> bool:
    """Say whether a text is JSON in which a member is named like a credential, or holds one."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        return credentials.replace(read_json(text.encode("utf-8", "surrogatepass")).value)[1] > 0
    except MalformedError as error:
        return error.code != "json-invalid"


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
    """Return the text that a base64url body stands for, None if it is binary or of an unknown character set."""
    data = decode_base64url(item["body"])
    charset = _charset_of(item)
    if data is None or charset is None:
        return None
    try:
        text = data.decode(charset)
    except ValueError:
        return None
    return None if "\0" in text else text


def body_of_text(text: str, item: Mapping[str, Any]) -> str:
    """Return a text as a base64url body, in the character set that the object names."""
    charset = _charset_of(item) or "utf-8"
    errors = "surrogatepass" if charset.startswith("utf-8") else "replace"
    return b64url(text.encode(charset, errors))


def _charset_of(item: Mapping[str, Any]) -> str | None:
    """Return the character set of a body that is text, None for one that is not or that is not known."""
    kind = mediatype_of(item)
    if kind is None:
        return "utf-8"
    if not kind.lower().startswith(_TEXT_TYPES) and _JSON_TYPE.match(kind) is None:
        return None
    named = _CHARSET.search(kind)
    if named is None:
        return "utf-8"
    name = named[1].lower()
    return name if name in _CHARSETS or _CHARSET_FAMILIES.fullmatch(name) else None


def bytes_of(value: Any) -> bytes:
    """Return the bytes that a value is hashed by: a text as UTF-8, anything else as compact JSON."""
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
