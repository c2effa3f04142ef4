"""Content of dialogs, attachments, analyses and tool events: decoded if it is inline, never fetched if it is not.

>>> message = ContentView(0, {"mediatype": "text/plain", "encoding": "base64url", "body": "SGVsbG8"})
>>> message.content()
b'Hello'

Source: record.md 1.3, 2.7, D-15, D-16, D-17.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Self

from onrecord.base.errors import MalformedError, OnrecordError, UsageError
from onrecord.base.hashes import ContentHash
from onrecord.record.vcon.bodies import (
    bare_base64url,
    body_bytes,
    decode_base64url,
    encoding_of,
    has_body,
    holds_json,
    mediatype_of,
)
from onrecord.record.vcon.members import View, text_of
from onrecord.record.vcon.names import SHA512_ALG

SHA512: Final = "sha512"
"""The one algorithm of content hashes that every implementation must support (record.md 2.2)."""


class HashToken(NamedTuple):
    """A content hash in its parts. The value is base64url without padding."""

    algorithm: str
    value: str

    def __str__(self) -> str:
        return f"{self.algorithm}-{self.value}"

    @classmethod
    def read(cls, token: Any) -> Self | None:
        """Return one token of `content_hash` as this type, None if it has no algorithm."""
        if type(token) is not str:
            return None
        algorithm, separator, value = token.partition("-")
        return cls(algorithm, value) if separator and algorithm else None


def hashes_of(item: Mapping[str, Any]) -> tuple[HashToken, ...]:
    """Return the content hashes of an object. `alg` SHA-512 with `signature`, of version 0.0.1, is one.

    Any other `alg` names a signature, which is no hash.
    """
    stated = item.get("content_hash")
    if stated is not None:
        tokens = stated if type(stated) is list else [stated]
        return tuple(found for token in tokens if (found := HashToken.read(token)) is not None)
    signature = item.get("signature")
    if item.get("alg") == SHA512_ALG and type(signature) is str:
        return (HashToken(SHA512, bare_base64url(signature)),)
    return ()


def decode_body(item: Mapping[str, Any], *, json_strings: bool = True) -> Any:
    """Return what an inline body stands for: bytes for base64url, a str for none, a JSON value for json.

    With `json_strings` a String that holds a JSON object or array is that value: so it stood in the drafts before
    core-03. In events a String is a String.

    Raises `MalformedError` with code "encoding-body-type" if the body is no String where its encoding asks for one,
    "base64url-invalid" if it cannot be decoded.

    Source: record.md D-15, D-16.
    """
    body, encoding = item.get("body"), encoding_of(item)
    if encoding == "json":
        return _inner_json(body) if json_strings and type(body) is str and holds_json(body) else body
    if type(body) is not str:
        raise MalformedError(
            f"a body with encoding {encoding} must be a String", code="encoding-body-type", hint=_CHECK
        )
    if encoding == "none":
        return body
    data = decode_base64url(body)
    if data is None:
        raise MalformedError("the body is not base64url", code="base64url-invalid", hint=_CHECK)
    return data


_CHECK: Final = "onrecord check FILE names the place; the body as it stands is in .members"


def _inner_json(body: str) -> Any:
    """Return the value that a String holds, or the String where the strict reader refuses it."""
    from onrecord.record.vcon.reader import read_json

    try:
        return read_json(body.encode("utf-8")).value
    except (OnrecordError, UnicodeEncodeError):
        return body


@dataclass(frozen=True, slots=True)
class ContentView(View):
    """An object that may have content."""

    json_strings: ClassVar[bool] = True
    """Whether a String that holds JSON is that JSON (record.md D-15)."""

    @property
    def has_body(self) -> bool:
        """Say whether it has inline content."""
        return has_body(self.members)

    @property
    def mediatype(self) -> str | None:
        """Return the media type as written, also under its name in version 0.0.1."""
        return mediatype_of(self.members)

    @property
    def filename(self) -> str | None:
        """Return the file's name. Never a path to open."""
        return self.text("filename")

    @property
    def encoding(self) -> str | None:
        """Return how the body is read: "base64url", "json" or "none", derived where it is not stated (D-16)."""
        return encoding_of(self.members) if self.has_body else None

    @property
    def url(self) -> str | None:
        """Return where external content lies, as written. It is never fetched."""
        return self.text("url")

    @property
    def hashes(self) -> tuple[HashToken, ...]:
        """Return the hashes of external content."""
        return hashes_of(self.members)

    def content(self) -> Any:
        """Return inline content: bytes for base64url, a str for none, a JSON value for json.

        Raises `UsageError` with code "content-missing" if there is none here: ask `has_body` first. Raises
        `MalformedError` with code "encoding-body-type" or "base64url-invalid" if it cannot be decoded.
        """
        if not self.has_body:
            where = "get what lies at its url yourself" if text_of(self.members.get("url")) else "it has none"
            raise UsageError(
                "there is no content in the vCon itself",
                code="content-missing",
                hint=f"{where}; has_body tells the one from the other",
            )
        return decode_body(self.members, json_strings=self.json_strings)

    def content_bytes(self) -> bytes | None:
        """Return the bytes of inline content: what base64url stands for, or a text as UTF-8.

        None for JSON, whose bytes are not known, for what cannot be decoded, and without inline content.
        """
        return body_bytes(self.members) if self.has_body else None

    def fits(self, data: bytes) -> bool | None:
        """Say whether these bytes, got from elsewhere, are the content that the hashes speak of.

        Every sha512 must fit; other algorithms are passed over. None if no hash is a sha512, so that nothing can be
        said.

        Source: record.md D-17.
        """
        known = [str(token) for token in self.hashes if token.algorithm == SHA512]
        if not known:
            return None
        own = str(ContentHash.of(data))
        return all(token == own for token in known)
