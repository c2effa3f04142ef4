"""JSON Web Encryption, JSON serializations: reading and writing the structure, whatever the style of its headers.

Keys, and what a header may say in a vCon, belong to the callers. What was authenticated is the ASCII text as received.

Source: RFC 7516 sections 4, 5 and 7.2.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.canonical import compact
from onrecord.base.errors import MalformedError
from onrecord.base.hashes import b64url
from onrecord.base.jose_encryption import Sealed
from onrecord.record.forms._rfc7515 import MAX_HEADER_BYTES, Report, decode, equal_values
from onrecord.record.vcon.reader import read_json

MAX_RECIPIENTS: Final = 256
"""Recipients read and written per message: each costs an operation with the private key."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """One recipient of a message.

    `header` is the JOSE header, its three parts together. `is_usable` is false when its structure is refused, so that
    there is nothing to decrypt with.
    """

    index: int
    header: Mapping[str, Any] = field(repr=False)
    encrypted_key: bytes = field(repr=False)
    is_usable: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """A JWE: its headers, its recipients, what is encrypted and the text that is authenticated beside it.

    `sealed` is None when a part of it is missing or no base64url.
    """

    protected: Mapping[str, Any] = field(repr=False)
    unprotected: Mapping[str, Any] = field(repr=False)
    recipients: tuple[Recipient, ...]
    sealed: Sealed | None = field(repr=False)
    aad: bytes = field(repr=False)
    is_usable: bool = True

    @property
    def headers(self) -> tuple[Mapping[str, Any], ...]:
        """Return the header of each recipient, or what all would share if there is none."""
        if self.recipients:
            return tuple(recipient.header for recipient in self.recipients)
        return ({**self.unprotected, **self.protected},)

    def shared(self, name: str) -> Any:
        """Return a parameter that is meant for the whole message, from whichever header has it."""
        return next((header[name] for header in self.headers if name in header), None)


def read_message(members: Mapping[str, Any], report: Report) -> Message:
    """Read a General (or flattened) JWE object, reporting what is wrong with its structure.

    Source: record.md 2.12 and 6.12.
    """
    reader = _Reader(members, report)
    protected_text = reader.protected_text()
    protected = reader.protected(protected_text)
    unprotected = reader.header(members, "unprotected")
    reader.compare("/unprotected", unprotected, {"protected": protected})
    recipients = reader.recipients(protected, unprotected)
    sealed = reader.sealed()
    aad = protected_text
    if "aad" in members:
        reader.binary(members, "aad")
        aad += f".{members['aad']}"
    return Message(
        protected,
        unprotected,
        recipients,
        sealed,
        aad.encode("utf-8", "replace"),
        is_usable=reader.is_usable and sealed is not None,
    )


def write_message(
    sealed: Sealed,
    *,
    protected_text: str,
    unprotected: Mapping[str, Any],
    recipients: Sequence[tuple[Mapping[str, Any], bytes]],
) -> bytes:
    """Return a JWE in General JSON serialization.

    `protected_text` is the base64url text that was authenticated; each recipient has its own header, which is left out
    when it is empty, and an encrypted key.

    Source: RFC 7516 section 7.2.1.
    """
    entries: list[dict[str, Any]] = []
    for header, encrypted_key in recipients:
        own = {"header": dict(header)} if header else {}
        entries.append({**own, "encrypted_key": b64url(encrypted_key)})
    return compact(
        {
            "protected": protected_text,
            "unprotected": dict(unprotected),
            "recipients": entries,
            "iv": b64url(sealed.iv),
            "ciphertext": b64url(sealed.ciphertext),
            "tag": b64url(sealed.tag),
        }
    )


class _Reader:
    """Reads the members of one message and remembers whether something forbids to decrypt it."""

    def __init__(self, members: Mapping[str, Any], report: Report) -> None:
        self._members = members
        self._report = report
        self.is_usable = True

    def missing(self, name: str, pointer: str = "") -> None:
        """Report a member that is missing or unreadable, without which nothing can be decrypted."""
        self.is_usable = False
        self._report("jwe-decrypt-failed", pointer, data={"member": name})

    def protected_text(self) -> str:
        """Return the protected header as it was received, which is what the tag is over."""
        text = self._members.get("protected", "")
        if isinstance(text, str) and text.isascii():
            return text
        self.missing("protected")
        return ""

    def protected(self, text: str) -> Mapping[str, Any]:
        """Return the protected header."""
        if text == "":
            return {}
        data, padded = decode(text)
        if padded:
            self._report("jws-padding", "/protected")
        try:
            header = read_json(data, max_bytes=MAX_HEADER_BYTES).value if data is not None else None
        except MalformedError:
            header = None
        if isinstance(header, dict):
            return header
        self.missing("protected")
        return {}

    def header(self, members: Mapping[str, Any], name: str, pointer: str = "") -> dict[str, Any]:
        """Return an unprotected header, empty if there is none."""
        header = members.get(name)
        if header is None:
            return {}
        if isinstance(header, dict):
            return header
        self.missing(name, pointer)
        return {}

    def binary(self, members: Mapping[str, Any], name: str, pointer: str = "") -> bytes | None:
        """Return a base64url member, or None if it is missing or none."""
        text = members.get(name)
        data = None
        if isinstance(text, str):
            data, padded = decode(text)
            if padded:
                self._report("jws-padding", f"{pointer}/{name}")
        if data is None:
            self.missing(name, pointer)
        return data

    def sealed(self) -> Sealed | None:
        """Return what is encrypted, or None if a part of it cannot be read."""
        iv, ciphertext, tag = (self.binary(self._members, name) for name in ("iv", "ciphertext", "tag"))
        if iv is None or ciphertext is None or tag is None:
            return None
        return Sealed(iv, ciphertext, tag)

    def compare(self, place: str, header: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]) -> bool:
        """Report names that stand in several headers (RFC 7516: the parts are disjoint); say whether none conflicts.

        `place` is the pointer of the header that repeats what stands in `others`.
        """
        agrees = True
        for name in header:
            for other in others.values():
                if name not in other:
                    continue
                equal = equal_values(header[name], other[name])
                code = "jwe-header-duplicate" if equal else "jwe-header-conflict"
                self._report(code, "", data={"name": name, "header": place})
                self.is_usable &= equal
                agrees &= equal
                break
        return agrees

    def recipients(
        self, protected: Mapping[str, Any], unprotected: Mapping[str, Any]
    ) -> tuple[Recipient, ...]:
        """Read the recipients, or in the flattened form the one whose members stand at the top."""
        entries = self._members.get("recipients")
        if "recipients" not in self._members:
            names = ("header", "encrypted_key")
            entries = [{name: self._members[name] for name in names if name in self._members}]
        if not isinstance(entries, list) or not entries:
            self.missing("recipients")
            return ()
        if len(entries) > MAX_RECIPIENTS:
            self.is_usable = False
            self._report("jwe-decrypt-failed", "", data={"recipients": len(entries), "limit": MAX_RECIPIENTS})
            return ()
        shared = {**unprotected, **protected}  # one for all: a copy for each would be their product in size
        found: list[Recipient] = []
        for index, entry in enumerate(entries):
            pointer = f"/recipients/{index}"
            if not isinstance(entry, dict):
                self.missing("recipient", pointer)
                continue
            own = self.header(entry, "header", pointer)
            agrees = self.compare(f"{pointer}/header", own, {"shared": shared})
            key = self.binary(entry, "encrypted_key", pointer)
            found.append(
                Recipient(index, ChainMap(shared, own), key or b"", is_usable=agrees and key is not None)
            )
        return tuple(found)
