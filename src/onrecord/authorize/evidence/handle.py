"""Opaque handles: base64url of the start id and 16 random bytes. The record under the value says the rest.

Source: call-proof.md 7.1, first column.
"""

from __future__ import annotations

import re
import secrets
from binascii import a2b_base64
from typing import TYPE_CHECKING, ClassVar, Final, Self

from onrecord.authorize.evidence.interface import (
    START_ID_BYTES,
    EvidenceProfile,
    ProfileFacts,
    ProfileSupplies,
    ProofClaims,
    ProofKey,
)
from onrecord.base.errors import MalformedError
from onrecord.base.hashes import b64url
from onrecord.base.namespaces import HANDLE_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM_BYTES: Final = 16
"""128 bits: nobody guesses a handle within the seconds that it lives."""

VALUE_CHARACTERS: Final = 27
"""Base64url of 20 bytes without padding."""

READY_HANDLES: Final = 32
"""Random bytes are fetched for so many handles at once; each is used once and in order."""

_CANONICAL: Final = re.compile(r"[A-Za-z0-9_-]{26}[AEIMQUYcgkosw048]", re.ASCII)
_TO_PLAIN_BASE64: Final = str.maketrans("-_", "+/")


class HandleProfile(EvidenceProfile):
    """Values that mean nothing outside the authority and need no key."""

    type: ClassVar[str] = HANDLE_TYPE
    short_name: ClassVar[str] = "handle"
    min_characters: ClassVar[int] = VALUE_CHARACTERS
    max_characters: ClassVar[int] = VALUE_CHARACTERS
    facts: ClassVar[ProfileFacts] = ProfileFacts(
        identifier=HANDLE_TYPE,
        format="base64url without padding of start id (4 bytes) and 16 random bytes; 27 characters",
        commitment="by the record that the authority holds under this value",
        validity="proofSeconds of the policy bundle, 15 by default, 30 at most, from issue",
        keys="none; 16 bytes of the operating system's random source for each value",
        single_use="the record is marked used in the step that answers valid",
    )

    def __init__(self, *, randomness: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._randomness = randomness
        self._ready = b""

    @classmethod
    def make(cls, supplies: ProfileSupplies) -> Self:
        return cls(randomness=supplies.randomness)

    def mint(self, claims: ProofClaims, *, start_id: bytes) -> tuple[str, ProofKey]:
        if not self._ready:
            self._ready = self._randomness(RANDOM_BYTES * READY_HANDLES)
        data = start_id + self._ready[:RANDOM_BYTES]
        self._ready = self._ready[RANDOM_BYTES:]
        return b64url(data), ProofKey(start_id, data)

    def read(self, value: str) -> ProofKey:
        if not _CANONICAL.fullmatch(value):
            raise MalformedError(
                f"a handle is canonical base64url of {VALUE_CHARACTERS} characters", code="handle-malformed"
            )
        data = a2b_base64(value.translate(_TO_PLAIN_BASE64) + "=")
        return ProofKey(data[:START_ID_BYTES], data)
