"""The ways in which a text may say something: as it stands, behind escapes of any kind, in base64 or hexadecimal.

>>> [(form, text) for form, text in readings('aGVsbG8gd29ybGQhISE') if form != "same"]
[('base64', 'hello world!!!')]

Source: record.md PR-12, 7.2.
"""

from __future__ import annotations

import html
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from onrecord.record.vcon.bodies import decode_base64url

MAX_LAYERS: Final = 3
"""Escapes within escapes that are undone."""

MAX_ENCODINGS: Final = 2
"""Base64 within base64 that is decoded."""

MIN_BASE64_CHARACTERS: Final = 12
"""Shortest run that is decoded: it holds 9 bytes, and what is searched has 8 characters or more."""

MAX_SHIFTED_CHARACTERS: Final = 16_384
"""Longest run that is also read from its second to fourth character, since a path may stand before the base64."""

MAX_WORD_CHARACTERS: Final = 64
"""Runs of small letters up to this length are words and paths: base64 of that length has capitals or digits."""

MAX_UNPACKED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of gzip content that are looked at."""

BINARY: Final = "binary"
"""The form of a reading that is made of the readable parts of bytes that are no text."""

_ESCAPES: Final = re.compile(r"[\\%&=]")
_ESCAPE: Final = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(["\\/bfnrt]))')
_PLAIN: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}", re.ASCII)
_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});", re.ASCII)
_QUOTED: Final = re.compile(rb"=(?:([0-9A-F]{2})|\r?\n)")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{12,}", re.ASCII)
_WRAPPED_BASE64: Final = re.compile(
    r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{60,76}\r?\n)+[A-Za-z0-9+/]{1,76}", re.ASCII
)
_HEXADECIMAL: Final = re.compile(r"(?:[0-9A-Fa-f]{2}){8,}", re.ASCII)
_READABLE: Final = re.compile(rb"[\t\n\r\x20-\x7e]{8,}")
_MIXED: Final = re.compile(r"[A-Z0-9]", re.ASCII)


def may_say_more(text: str) -> bool:
    """Say whether a text can have another reading than itself. Most have none, and are known fast."""
    return _ESCAPES.search(text) is not None or any(map(_may_be_base64, _BASE64.findall(text)))


def _may_be_base64(run: str) -> bool:
    return len(run) >= MAX_WORD_CHARACTERS or _MIXED.search(run, 1) is not None


def readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the readings of a text with what they are called.

    These are "same", "json", "url", "html" and "quoted" for escapes, each undone on top of those before, "base64",
    "hex" and "gzip" for what is decoded and everything below that, and "binary" (see `BINARY`).
    """
    yield "same", text
    if may_say_more(text):
        yield from _others(text, MAX_ENCODINGS)


def _others(text: str, levels: int) -> Iterator[tuple[str, str]]:
    innermost = text
    for form, innermost in _unescaped(text):
        yield form, innermost
    if levels:
        for form, decoded in _decoded(innermost):
            yield form, decoded
            yield from ((form, inner) for _, inner in _others(decoded, levels - 1))


def _unescaped(text: str) -> Iterator[tuple[str, str]]:
    for _ in range(MAX_LAYERS):
        before = text
        for form, undo in _UNDO.items():
            plain = undo(text)
            if plain != text:
                text = plain
                yield form, text
        if text == before:
            return


def _without_escapes(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    return chr(int(digits, 16)) if digits else _PLAIN.get(match[3], match[3])


def _without_percent(text: str) -> str:
    return unquote(text, errors="replace") if _PERCENT.search(text) else text


def _without_entities(text: str) -> str:
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def _without_quoting(text: str) -> str:
    if "=" not in text:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if _QUOTED.search(data) is None:
        return text
    plain = _QUOTED.sub(lambda match: bytes.fromhex(match[1].decode("ascii")) if match[1] else b"", data)
    return plain.decode("utf-8", "replace")


_UNDO: Final[Mapping[str, Callable[[str], str]]] = {
    "json": _without_escapes,
    "url": _without_percent,
    "html": _without_entities,
    "quoted": _without_quoting,
}


def _decoded(text: str) -> Iterator[tuple[str, str]]:
    for match in _WRAPPED_BASE64.finditer(text):
        yield from _decoded_base64("".join(match[0].split()))
    for match in _BASE64.finditer(text):
        if _may_be_base64(match[0]):
            yield from _decoded_base64(match[0])
    for match in _HEXADECIMAL.finditer(text):
        for form, decoded in _of_bytes(bytes.fromhex(match[0]), "hex"):
            if form != BINARY:
                yield form, decoded


def _decoded_base64(run: str) -> Iterator[tuple[str, str]]:
    for shift in range(4 if len(run) <= MAX_SHIFTED_CHARACTERS else 1):
        size = len(run) - shift
        data = decode_base64url(run[shift : len(run) - (size % 4 == 1)])
        if data is None:
            continue
        is_text = False
        for form, decoded in _of_bytes(data, "base64"):
            is_text = is_text or form != BINARY
            yield form, decoded
        if is_text:
            return


def _of_bytes(data: bytes, form: str) -> Iterator[tuple[str, str]]:
    if data[:2] == b"\x1f\x8b":
        unpacked = _unpacked(data)
        if unpacked:
            form, data = "gzip", unpacked
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and "\0" not in text:
        yield form, text
        return
    if b"\0" in data:
        yield BINARY, data.decode("utf-16-le", "replace")
        yield BINARY, data.decode("utf-16-be", "replace")
    readable = b"\n".join(_READABLE.findall(data))
    if readable:
        yield BINARY, readable.decode("ascii")


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(data, MAX_UNPACKED_BYTES)
    except zlib.error:
        return b""
