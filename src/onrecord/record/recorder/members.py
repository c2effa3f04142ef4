"""Reading single members of an entry, with an error that names the member and never its value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from onrecord.base.dates import epoch_ns, parse_date
from onrecord.base.errors import MalformedError

_SHA256 = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]", re.ASCII)
"""32 bytes in base64url without padding; the last character has two bits that must be zero."""

_MONO = re.compile(r"[0-9]{1,19}", re.ASCII)

MAX_NUMBER: Final = 2**53 - 1
_MAX_MONO: Final = 2**63 - 1
_EPOCH_MS: Final = range(253_402_300_800_000)
"""1970 to 9999: what a date of four digits can say."""


class BadEntryError(MalformedError):
    """An entry that cannot be read. `member` names the first member that is missing or wrong."""

    def __init__(self, member: str) -> None:
        super().__init__(f"the entry's member {member} is missing or wrong", code="entry-invalid")
        self.member = member


def wall_ms(value: dict[str, Any]) -> int:
    """Return `time` in ms since 1970."""
    text = value.get("time")
    if not isinstance(text, str):
        raise BadEntryError("time")
    try:
        # The form that our own senders write, second by second; any other goes the long way.
        if len(text) == 24 and text[19] == "." and text[23] == "Z" and (ms := text[20:23]).isdecimal():
            return _second_ms(text[:19] + "Z") + int(ms)
        return _instant_ms(text)
    except MalformedError:
        raise BadEntryError("time") from None


@lru_cache(maxsize=256)
def _second_ms(text: str) -> int:
    return _instant_ms(text)


def _instant_ms(text: str) -> int:
    wall = epoch_ns(parse_date(text)) // 1_000_000
    if wall not in _EPOCH_MS:
        raise BadEntryError("time")
    return wall


def mono_ns(value: dict[str, Any]) -> int:
    """Return `mono_ns`, a number or, beyond 2^53-1, a string of its digits."""
    # A machine that runs for more than 104 days counts beyond 2^53-1; senders then write a string.
    mono = value.get("mono_ns")
    if isinstance(mono, str) and _MONO.fullmatch(mono):
        mono = int(mono)
    if type(mono) is not int or not 0 <= mono <= _MAX_MONO:
        raise BadEntryError("mono_ns")
    return mono


def text_member(value: Mapping[str, Any], name: str, limit: int) -> str:
    """Return a string of 1 to `limit` characters without control characters."""
    text = value.get(name)
    if not isinstance(text, str) or not 1 <= len(text) <= limit or not is_clean(text):
        raise BadEntryError(name)
    return text


def is_clean(text: str) -> bool:
    """Say whether a name is free of control characters and of unpaired surrogates."""
    return text.isprintable() or not any(
        char < " " or char == "\x7f" or "\ud800" <= char <= "\udfff" for char in text
    )


def optional_text(value: Mapping[str, Any], name: str, limit: int) -> str | None:
    """Return a string as `text_member` does, None if it is absent or empty."""
    return None if value.get(name) in (None, "") else text_member(value, name, limit)


def matching(value: Mapping[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    """Return a string that matches `pattern` whole."""
    text = value.get(name)
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise BadEntryError(name)
    return text


def digest(value: Mapping[str, Any], name: str) -> str:
    """Return a SHA-256 value of 43 base64url characters."""
    text = value.get(name)
    if not isinstance(text, str) or not _SHA256.fullmatch(text):
        raise BadEntryError(name)
    return text


def action_digest(value: Mapping[str, Any], *, is_optional: bool) -> str | None:
    """Return the Action Digest; with `is_optional`, None if it is absent."""
    if is_optional and value.get("actionDigest") is None:
        return None
    return digest(value, "actionDigest")


def uid(value: Mapping[str, Any], name: str) -> int:
    """Return a uid."""
    uid = value.get(name)
    if type(uid) is not int or not 0 <= uid < 2**32:
        raise BadEntryError(name)
    return uid


def optional_uint(value: Mapping[str, Any], name: str) -> int | None:
    """Return a number from 0 on, None if it is absent."""
    number = value.get(name)
    if number is None:
        return None
    if type(number) is not int or not 0 <= number <= MAX_NUMBER:
        raise BadEntryError(name)
    return number


def optional_date(value: Mapping[str, Any], name: str) -> str | None:
    """Return an RFC 3339 date, None if it is absent or no string."""
    text = value.get(name)
    if not isinstance(text, str):
        return None  # numbers of entries are accepted, and of no use in a vCon
    try:
        parse_date(text)
    except MalformedError:
        raise BadEntryError(name) from None
    return text


def object_member(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object."""
    member = value.get(name)
    if not isinstance(member, dict):
        raise BadEntryError(name)
    return member


def optional_object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object, an empty one if it is absent."""
    return {} if value.get(name) is None else object_member(value, name)
