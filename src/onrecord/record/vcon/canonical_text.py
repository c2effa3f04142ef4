"""The canonical text of a vCon (RFC 8785), by the fast writer where its bytes are the same.

They are the same unless a member name leaves the Basic Multilingual Plane (the order of names then differs) or a
number is a float that is integral or needs an exponent (the spelling then differs).
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Final

import orjson

from onrecord.base.canonical import canonicalize
from onrecord.base.errors import MalformedError

_BELOW_FOUR_BYTES: Final = bytes(range(0xF0))
_SUSPECT: Final = (b"null", b".0,", b".0]", b".0}")
_SHAPES: Final = bytes(
    ord("0") if chr(byte) in "0123456789+-" else ord(",") if chr(byte) in ",]}" else byte
    for byte in range(256)
)
"""Makes digits and signs zeros, and whatever ends a value a comma: then a plain text search finds most exponents."""

_EXPONENT: Final = re.compile(rb"0e0+,")


def canonical_text(value: Any) -> bytes:
    """Return the canonical bytes of a parsed vCon.

    Raises `MalformedError` with code "not-canonical" for integers beyond 2^53-1, lone surrogates, and whatever else
    has no canonical form.

    Source: record.md D-25.
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedError("the vCon has no canonical JSON form", code="not-canonical") from error
    numbers = (type(value) is dict and _is_plain(text)) or not _has_odd_number(value)
    if numbers and (text.isascii() or not text.translate(None, _BELOW_FOUR_BYTES)):
        return text
    return canonicalize(value)


def is_canonical(value: Any, text: bytes) -> bool:
    """Say whether a text is the canonical form of its value."""
    try:
        return canonical_text(value) == text
    except MalformedError:
        return False


def _is_plain(text: bytes) -> bool:
    """Say whether no number in the text of an object can be odd. A null may be what became of infinity."""
    if any(ending in text for ending in _SUSPECT):
        return False
    shapes = text.translate(_SHAPES)
    return b"0e0" not in shapes or _EXPONENT.search(shapes) is None


def _has_odd_number(value: Any) -> bool:
    work = [value]
    while work:
        item = work.pop()
        if type(item) is dict:
            work += item.values()
        elif type(item) is list:
            work += item
        elif type(item) is float and (item.is_integer() or not isfinite(item) or "e" in repr(item)):
            return True
    return False
