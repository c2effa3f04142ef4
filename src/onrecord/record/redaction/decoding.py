"""The ways in which a text may say something: as it stands, behind JSON or URL escapes, in base64.

>>> [(form, text) for form, text in readings('aGVsbG8gd29ybGQhISE') if form != "same"]
[('base64', 'hello world!!!')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from onrecord.record.vcon.bodies import decode_base64url

MAX_LAYERS: Final = 3
"""Escapes within escapes that are undone."""

MIN_BASE64_CHARACTERS: Final = 12
"""Shortest run that is decoded: it holds 9 bytes, and what is searched has 8 characters or more."""

_ESCAPE: Final = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|(["\\/bfnrt]))')
_PLAIN: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}", re.ASCII)
_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}", re.ASCII)


def readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the readings of a text with what they are called: "same", "json", "url", "base64"."""
    yield "same", text
    yield from _unescaped(text)
    for match in _BASE64.finditer(text):
        decoded = _decoded(match[0])
        if decoded is not None:
            yield "base64", decoded
            yield from (("base64", inner) for _, inner in _unescaped(decoded))


def _unescaped(text: str) -> Iterator[tuple[str, str]]:
    for _ in range(MAX_LAYERS):
        if "\\" not in text:
            break
        plain = _ESCAPE.sub(_character, text)
        if plain == text:
            break
        text = plain
        yield "json", text
    if _PERCENT.search(text):
        yield "url", unquote(text, errors="replace")


def _character(match: re.Match[str]) -> str:
    if match[1] is not None:
        return chr(int(match[1], 16))
    return _PLAIN.get(match[2], match[2])


def _decoded(run: str) -> str | None:
    """Return the text that a run of base64 characters stands for, None if it stands for none."""
    if len(run.rstrip("=")) % 4 == 1:
        run = run.rstrip("=")[:-1]
    data = decode_base64url(run)
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
