"""The key that signs finished vCons, looked up anew for each, since it may be away or expire while we run.

Source: running.md 9, 12 (signing key missing or expired).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, Protocol

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import KeyAccessError, Where
from onrecord.base.files import read_regular
from onrecord.base.keys import Signer, signer_from_uri

MAX_CHAIN_BYTES: Final = 1 << 20
"""Largest certificate file read: a chain has a few kilobytes."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key with its certificates, leaf first."""

    signer: Signer
    chain: tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class NoSigningKey:
    """Why nothing can be signed now. `code` is that of the error."""

    state: Literal["missing", "expired", "unusable"]
    code: str


class Signing(Protocol):
    """Gives the signing key of this moment."""

    def now(self) -> SigningKey | NoSigningKey:
        """Return the key, or why there is none."""


class FileSigning:
    """A key URI and a PEM file of certificates, read at each use."""

    def __init__(self, uri: str, chain: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._uri = uri
        self._chain = chain
        self._clock = clock

    def now(self) -> SigningKey | NoSigningKey:
        """Return the key, or why there is none."""
        try:
            signer = signer_from_uri(self._uri, purpose="record")
            chain = load_chain(self._chain)
        except KeyAccessError as error:
            missing = error.code in ("key-missing", "chain-missing")
            return NoSigningKey("missing" if missing else "unusable", error.code)
        leaf = chain[0]
        if _raw(leaf) != _raw(signer):
            return NoSigningKey("unusable", "chain-key")
        moment = datetime.fromtimestamp(self._clock.now_ns() / 1e9, tz=UTC)
        if moment > leaf.not_valid_after_utc:
            return NoSigningKey("expired", "certificate-expired")
        if moment < leaf.not_valid_before_utc:
            return NoSigningKey("unusable", "certificate-not-yet-valid")
        return SigningKey(signer, tuple(chain))


def load_chain(path: Path) -> Sequence[x509.Certificate]:
    """Read the leaf and its intermediates.

    Raises `KeyAccessError` with code "chain-missing" or "chain-malformed".
    """
    where = Where(str(path))
    try:
        data = read_regular(path, limit_bytes=MAX_CHAIN_BYTES)
    except OSError as error:
        raise KeyAccessError(
            f"the certificates of the record key cannot be read ({error.strerror})",
            code="chain-missing",
            where=where,
            hint="onrecord init makes them; keys.record_chain names the file",
        ) from error
    try:
        chain = x509.load_pem_x509_certificates(data)
    except ValueError:
        chain = []
    if not chain:
        raise KeyAccessError("the file holds no PEM certificates", code="chain-malformed", where=where)
    return chain


def _raw(holder: x509.Certificate | Signer) -> bytes:
    key = holder.public_key if isinstance(holder, Signer) else holder.public_key()
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
