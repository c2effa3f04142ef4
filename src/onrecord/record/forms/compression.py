"""gzip around a vCon: of a whole file, of what is signed, of what is encrypted.

    >>> decompress(compress(b"{}"))
    b'{}'

Source: record.md D-31.
"""

from __future__ import annotations

import zlib
from typing import Final, NoReturn

from onrecord.base.errors import MalformedError, Where
from onrecord.record.vcon.reader import MAX_BYTES

MAX_RATIO: Final = 1_000
"""Largest growth by decompression (record.md D-31): text reaches about 100, a bomb starts at 1,000."""

_MAGIC: Final = b"\x1f\x8b"


def compress(data: bytes) -> bytes:
    """Return the data as gzip of one member whose time field is 0, so that the same data give the same bytes.

    Data that would shrink further than a reader lets them grow again are packed less tightly.
    """
    packed = b""
    for level in (9, 1, 0):
        packed = zlib.compress(data, level, wbits=31)
        if len(data) <= len(packed) * MAX_RATIO:
            break
    return packed


def is_compressed(data: bytes) -> bool:
    """Say whether the data begin like gzip, which no JSON text does."""
    return data.startswith(_MAGIC)


def decompress(data: bytes, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a gzip file of one member, or the data itself if it is not gzip.

    Raises `MalformedError` with code "gzip-limit" or "gzip-invalid".
    """
    if not is_compressed(data):
        return data
    limit = min(max_bytes, max(len(data), 1) * MAX_RATIO)
    inflate = zlib.decompressobj(wbits=31)
    try:
        text = inflate.decompress(data, limit + 1)
    except zlib.error:
        _refuse("gzip-invalid", "the gzip data are damaged")
    if len(text) > limit:
        _refuse("gzip-limit", f"the gzip data grow beyond {limit} bytes")
    if not inflate.eof:
        _refuse("gzip-invalid", "the gzip data are cut off")
    if inflate.unused_data:
        _refuse("gzip-invalid", "data follow after the gzip member")
    return text


def _refuse(code: str, message: str) -> NoReturn:
    raise MalformedError(message, code=code, where=Where(pointer="")) from None
