"""What an evidence profile owes: the six points that CP section 9 asks for, minting, and reading back.

A profile knows the form of the proof value and nothing of policy, time or use: records, freshness and single use
belong to the authority's proof store, so they hold for every profile alike. A new profile is one new module here
and one line in the registry.

Source: CP section 9; call-proof.md 5.4, 5.6, 7.1.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onrecord.base.keys import Signer

START_ID_BYTES: Final = 4
"""Every proof value carries the start id of the authority that made it, so an older one is told from a forged one."""

MAX_PROFILE_VALUE_CHARACTERS: Final = 512
"""Longest value that a profile of this project makes for server and caller ids of up to 30 characters each.

stdio carries one message per line (call-proof.md 4.5). A profile that writes ids into the value makes longer ones for
longer ids; its `max_characters` says how long.
"""

TYPE_NAME: Final = re.compile(
    r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+/[a-z0-9][a-z0-9._-]*"
)
"""An evidence type: a domain that the author of the profile controls, a slash, a name (CP section 9, point 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFacts:
    """The six answers that CP section 9 asks of a profile, as text for documents and tests."""

    identifier: str
    format: str
    commitment: str
    validity: str
    keys: str
    single_use: str


class ProofClaims(NamedTuple):
    """What a proof is for. A profile may write these into the value; an opaque one does not."""

    action_digest: str
    input_digest: str | None
    server: str
    caller: str
    issued_seconds: int
    """Wall clock, seconds since 1970; for display only."""
    window_seconds: int


class ProofKey(NamedTuple):
    """What a value says about itself: the start it is from, and the key of its record."""

    start_id: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSupplies:
    """What an authority has for its profiles: its proof key, opened when a profile asks, and random bytes.

    `proof_key` raises `KeyAccessError` if the key cannot be used.
    """

    proof_key: Callable[[], Signer]
    randomness: Callable[[int], bytes] = secrets.token_bytes


class ForeignEvidence(Exception):
    """The value has the right form but was not made by this authority (reason `invalid`)."""


class EvidenceProfile(ABC):
    """One form of a call proof.

    `type` is the name on the wire; `short_name` the name in the configuration. `min_characters` and
    `max_characters` bound every value that `mint` returns.
    """

    type: ClassVar[str]
    short_name: ClassVar[str]
    min_characters: ClassVar[int]
    max_characters: ClassVar[int]
    facts: ClassVar[ProfileFacts]

    @classmethod
    @abstractmethod
    def make(cls, supplies: ProfileSupplies) -> Self:
        """Make the profile of one start of the authority.

        Raises `KeyAccessError` if the profile needs a key and cannot use it.
        """

    def published(self) -> Mapping[str, str]:
        """Return what auditors need to check values of this profile later: public keys by name, never secrets."""
        return {}

    @abstractmethod
    def mint(self, claims: ProofClaims, *, start_id: bytes) -> tuple[str, ProofKey]:
        """Make a new value and the key under which its record is kept.

        Raises `KeyAccessError` if the profile's key cannot be used now.
        """

    @abstractmethod
    def read(self, value: str) -> ProofKey:
        """Parse a presented value and check that it is authentic as far as the value alone can tell.

        `value` is printable ASCII and not longer than the hard limit of the authority.

        Raises `MalformedError` for another form, the non-canonical spelling of a good value included, and
        `ForeignEvidence` for a good form that was not made by this authority.
        """
