"""Content for what is built: text, JSON and bytes inside of the vCon, or a file outside of it with its hash.

>>> Content.text("hello").members
{'mediatype': 'text/plain', 'encoding': 'none', 'body': 'hello'}
>>> Content.binary(b"\\x00\\x01", mediatype="audio/x-wav").members["body"]
'AAE'

Source: record.md 2.7, D-15.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from onrecord.base.errors import UsageError
from onrecord.base.hashes import ContentHash, b64url


@dataclass(frozen=True, slots=True)
class Content:
    """The members that say what a dialog, an attachment, an analysis or a tool event holds."""

    members: Mapping[str, Any]

    @classmethod
    def text(cls, body: str, *, mediatype: str = "text/plain", filename: str | None = None) -> Self:
        """Return content that is a text."""
        return cls._inline(body, "none", mediatype, filename)

    @classmethod
    def json(cls, body: Any, *, mediatype: str = "application/json", filename: str | None = None) -> Self:
        """Return content that is a JSON value, not a text of it."""
        return cls._inline(body, "json", mediatype, filename)

    @classmethod
    def binary(cls, data: bytes, *, mediatype: str, filename: str | None = None) -> Self:
        """Return content of bytes, written as base64url. Raises `UsageError` with code "bytes-expected"."""
        _require_bytes("data", data)
        return cls._inline(b64url(data), "base64url", mediatype, filename)

    @classmethod
    def external(
        cls,
        url: str,
        *,
        data: bytes | None = None,
        content_hash: str | None = None,
        mediatype: str | None = None,
        filename: str | None = None,
    ) -> Self:
        """Return content that lies at an https URL. Nothing is fetched.

        `data` are the bytes as they are served there, of which the SHA-512 is written; or `content_hash` is that hash.

        Raises `UsageError` with code "content-hash-missing" unless exactly one of the two is given, "bytes-expected"
        for other data.
        """
        if (data is None) == (content_hash is None):
            raise UsageError(
                "a file outside of the vCon is written with its hash",
                code="content-hash-missing",
                hint="give the bytes as data=, or their hash as content_hash=",
            )
        if data is not None:
            _require_bytes("data", data)
        known = {"url": url, "content_hash": content_hash if data is None else str(ContentHash.of(data))}
        return cls(_present({"mediatype": mediatype, "filename": filename, **known}))

    @classmethod
    def _inline(cls, body: Any, encoding: str, mediatype: str, filename: str | None) -> Self:
        named = _present({"mediatype": mediatype, "filename": filename, "encoding": encoding})
        return cls({**named, "body": body})


def _require_bytes(name: str, data: object) -> None:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError(
            f"{name}: expected bytes, found {type(data).__name__}",
            code="bytes-expected",
            hint='encode a text: text.encode("utf-8"); Content.text takes it as it is',
        )


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
