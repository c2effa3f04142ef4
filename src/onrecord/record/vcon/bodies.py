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

_STRICT: Final = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_LENIENT: Final = re.compile(r"[A-Za-z0-9+/_\s-]*=*\s*", re.ASCII)
_WHITE_SPACE: Final = re.compile(r"\s+")


def base64url_fault(text: str) -> str | None:
    """Return None for base64url without padding, else "base64url-lenient" or "base64url-invalid"."""
    if _STRICT.fullmatch(text):
        return "base64url-invalid" if len(text) % 4 == 1 else None
    if not _LENIENT.fullmatch(text):
        return "base64url-invalid"
    return "base64url-lenient" if len(_bare(text)) % 4 != 1 else "base64url-invalid"


def decode_base64url(text: str) -> bytes | None:
    """Return the bytes of a base64url text, read leniently, or None if it is none."""
    if base64url_fault(text) == "base64url-invalid":
        return None
    bare = _bare(text)
    try:
        return b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_")
    except (BinasciiError, ValueError):
        return None


def _bare(text: str) -> str:
    return _WHITE_SPACE.sub("", text).rstrip("=").replace("+", "-").replace("/", "_")


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


def body_bytes(item: Mapping[str, Any]) -> bytes | None:
    """Return the bytes that an inline body stands for, or None where they are not known (JSON) or cannot be decoded."""
    body = item.get("body")
    if not isinstance(body, str):
        return None
    encoding = item.get("encoding")
    if encoding not in ENCODINGS:
        encoding = derived_encoding(body, item.get("mediatype"))
    if encoding == "json":
        return None
    if encoding == "base64url":
        return decode_base64url(body)
    return body.encode("utf-8", "surrogatepass")
