"""Inline content: the encodings of a body, what it decodes to, and how far a lenient reader goes."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import Mapping
from typing import Any, Final

import orjson

ENCODINGS: Final = ("base64url", "json", "none")
"""Values of `encoding` (record.md 2.7)."""

BASE64: Final = "base64"
"""A value of `encoding` that no draft has and files do. It is read as base64url, and reported (record.md D-16)."""

_STRICT: Final = re.compile(r"[A-Za-z0-9_-]*+", re.ASCII)
_WHITE_SPACE: Final = re.compile(r"\s+")
_URL_SAFE: Final = str.maketrans("+/", "-_")


def base64url_fault(text: str) -> str | None:
    """Return None for base64url without padding, else "base64url-lenient" or "base64url-invalid"."""
    if _STRICT.fullmatch(text):
        return "base64url-invalid" if len(text) % 4 == 1 else None
    bare = bare_base64url(text)
    return "base64url-lenient" if _STRICT.fullmatch(bare) and len(bare) % 4 != 1 else "base64url-invalid"


def bare_base64url(text: str) -> str:
    """Return base64 of any kind in the characters of base64url, without padding and white space."""
    return _WHITE_SPACE.sub("", text).rstrip("=").translate(_URL_SAFE)


def decode_base64url(text: str) -> bytes | None:
    """Return the bytes of a base64url text, read leniently, or None if it is none."""
    bare = bare_base64url(text)
    if not _STRICT.fullmatch(bare) or len(bare) % 4 == 1:
        return None
    try:
        return b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_")
    except (BinasciiError, ValueError):
        return None


def derived_encoding(body: Any, mediatype: Any) -> str:
    """Return the encoding that a body without one is read with (record.md D-16)."""
    if not isinstance(body, str):
        return "json"
    if isinstance(mediatype, str):
        return "none" if mediatype[:5].lower() == "text/" else "base64url"
    return "base64url" if body and base64url_fault(body) is None else "none"


def holds_json(text: str) -> bool:
    """Say whether a text is itself a JSON object or array: the body of core drafts before -03 (record.md D-15)."""
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return False
    try:
        return isinstance(orjson.loads(text), (dict, list))
    except (orjson.JSONDecodeError, RecursionError):
        return False


def has_body(item: Mapping[str, Any]) -> bool:
    """Say whether an object has inline content. A null body is content only with encoding json."""
    return "body" in item and (item["body"] is not None or item.get("encoding") == "json")


def encoding_of(item: Mapping[str, Any]) -> str:
    """Return the encoding with which the body of an object is read: "base64url", "json" or "none".

    One that is stated and known holds; base64 is base64url. Otherwise it is derived from body and media type.

    Source: record.md 1.3, D-16.
    """
    encoding = item.get("encoding")
    if type(encoding) is str:
        if encoding in ENCODINGS:
            return encoding
        if encoding == BASE64:
            return "base64url"
    return derived_encoding(item.get("body"), mediatype_of(item))


def mediatype_of(item: Mapping[str, Any]) -> str | None:
    """Return the media type under its present or its old name, as written, or None."""
    for name in ("mediatype", "mimetype"):
        value = item.get(name)
        if value is not None:
            return value if type(value) is str else None
    return None


def body_bytes(item: Mapping[str, Any]) -> bytes | None:
    """Return the bytes that an inline body stands for, or None where they are not known (JSON) or cannot be decoded."""
    body = item.get("body")
    if type(body) is not str:
        return None
    encoding = encoding_of(item)
    if encoding == "json":
        return None
    return decode_base64url(body) if encoding == "base64url" else body.encode("utf-8", "surrogatepass")
