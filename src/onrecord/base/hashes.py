"""Typed hashes. Each hash format of the drafts is a type of its own, so that one never stands in for another."""

from __future__ import annotations

import hashlib
import re
from binascii import Error as BinasciiError
from binascii import a2b_base64, b2a_base64
from typing import Self

from onrecord.base.errors import MalformedError

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_B64URL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)


def b64url(data: bytes) -> str:
    """Return base64url without padding (RFC 4648 section 5)."""
    return b2a_base64(data, newline=False).rstrip(b"=").translate(_URL_SAFE).decode("ascii")


def b64url_decode_strict(text: str) -> bytes:
    """Decode canonical base64url: no padding, no other characters, unused bits zero.

    Raises `MalformedError` with code "base64url-invalid".
    """
    if not _B64URL.fullmatch(text) or len(text) % 4 == 1:
        raise MalformedError("not base64url without padding", code="base64url-invalid")
    try:
        data = a2b_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
    except BinasciiError:
        raise MalformedError("not base64url without padding", code="base64url-invalid") from None
    if b64url(data) != text:
        raise MalformedError("base64url with bits that say nothing", code="base64url-invalid")
    return data


class _Sha256Text(str):
    """SHA-256 as 43 characters of base64url."""

    __slots__ = ()

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return the hash of these bytes."""
        return cls(b64url(hashlib.sha256(data).digest()))

    @classmethod
    def read(cls, text: object) -> Self:
        """Return a received value as this type. Raises `MalformedError` with code "hash-malformed"."""
        if not isinstance(text, str) or len(text) != 43:
            raise MalformedError(f"{cls.__name__}: expected 43 base64url characters", code="hash-malformed")
        try:
            b64url_decode_strict(text)
        except MalformedError:
            raise MalformedError(
                f"{cls.__name__}: expected 43 base64url characters", code="hash-malformed"
            ) from None
        return cls(text)


class ActionDigest(_Sha256Text):
    """Hash of method, name and arguments (CP section 5)."""

    __slots__ = ()


class InputDigest(_Sha256Text):
    """Hash of inputResponses and requestState (call-proof.md 5.5)."""

    __slots__ = ()


class ProofRef(_Sha256Text):
    """Hash of an evidence value, by which records name a proof without holding it (running.md R-09)."""

    __slots__ = ()


class SchemaHash(str):
    """A tool's pin: "sha-256:" and base64url of SHA-256 over the canonical inputSchema (running.md 4.4)."""

    __slots__ = ()

    @classmethod
    def of(cls, canonical_schema: bytes) -> Self:
        """Return the hash of an inputSchema in RFC 8785 form."""
        return cls("sha-256:" + b64url(hashlib.sha256(canonical_schema).digest()))

    @classmethod
    def read(cls, text: object) -> Self:
        """Return a received value as this type. Raises `MalformedError` with code "hash-malformed"."""
        if isinstance(text, str) and text.startswith("sha-256:"):
            ActionDigest.read(text[8:])
            return cls(text)
        raise MalformedError("SchemaHash: expected sha-256: and 43 characters", code="hash-malformed")


class ContentHash(str):
    """vCon content_hash: "sha512-" and base64url without padding (record.md 2.2)."""

    __slots__ = ()

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return the sha512 hash of these bytes."""
        return cls("sha512-" + b64url(hashlib.sha512(data).digest()))
