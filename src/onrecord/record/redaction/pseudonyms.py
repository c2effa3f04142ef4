"""Replacements that stay the same for equal values within one export, and differ from export to export.

    >>> pseudonyms = Pseudonyms()
    >>> [pseudonyms.numbered("party", name) for name in ("Ana", "Ben", "Ana")]
    ['party-1', 'party-2', 'party-1']

The map from replacement to value is a secret of the export's owner: it is kept in memory and handed out on request,
and never in a report.

Source: record.md PR-08; AA 7.6.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Mapping
from typing import Final

from onrecord.base.errors import UsageError
from onrecord.base.hashes import b64url

HASH_PREFIX: Final = "salted-sha256:"
"""Beginning of a salted hash, so that nobody takes it for a content hash."""

SALT_BYTES: Final = 32
"""Length of the salt of one export: a hash without it can be looked up in a list of guesses."""


class Pseudonyms:
    """The replacements of one export. `salt` makes hashes comparable between exports that share it.

    Raises `UsageError` with code "redaction-salt-short" for a salt of less than 16 bytes.
    """

    def __init__(self, *, salt: bytes | None = None) -> None:
        if salt is not None and len(salt) < 16:
            raise UsageError(
                "the salt has less than 16 bytes",
                code="redaction-salt-short",
                hint="make one with: head -c 32 /dev/urandom",
            )
        self._salt = salt or secrets.token_bytes(SALT_BYTES)
        self._numbers: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._random: dict[str, str] = {}

    def numbered(self, label: str, value: str) -> str:
        """Return the label and a number, the same for equal values."""
        own = self._numbers.get((label, value))
        if own is None:
            self._counts[label] = self._counts.get(label, 0) + 1
            own = self._numbers[label, value] = f"{label}-{self._counts[label]}"
        return own

    def random(self, value: str) -> str:
        """Return a random UUID, the same for equal values: an id that nobody can correlate with another export."""
        return self._random.setdefault(value, str(uuid.uuid4()))

    def salted(self, data: bytes) -> str:
        """Return a salted SHA-256 of some bytes (HMAC, RFC 2104)."""
        return HASH_PREFIX + b64url(hmac.new(self._salt, data, hashlib.sha256).digest())

    @property
    def originals(self) -> Mapping[str, str]:
        """Return what each pseudonym and random id stands for. Whoever has this can undo them."""
        numbered = {pseudonym: value for (_, value), pseudonym in self._numbers.items()}
        return {**numbered, **{new: old for old, new in self._random.items()}}
