"""Signing keys by URI, and files of trusted public keys.

Users may add a scheme: `SCHEMES["vault"] = open_vault_key`, a function from the part after the colon to a `Signer`.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from onrecord.base.errors import ConfigurationError, KeyAccessError, MalformedError, Where
from onrecord.base.files import read_regular
from onrecord.base.hashes import b64url, b64url_decode_strict
from onrecord.base.key_uris import load_key_file, open_key

PublicKey = ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey
PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

MAX_TRUST_BYTES: Final = 1_048_576
"""Largest trust file read: some thousand lines."""


class Signer(ABC):
    """A private key that signs and is never handed out."""

    @property
    @abstractmethod
    def public_key(self) -> PublicKey:
        """Return the public key."""

    @property
    @abstractmethod
    def algs(self) -> tuple[str, ...]:
        """Return the JOSE algorithm names that this key can sign with, the preferred one first."""

    @abstractmethod
    def sign(self, data: bytes, *, alg: str) -> bytes:
        """Sign `data` and return the raw JOSE form (for ECDSA r and s, each of the field length).

        Raises `KeyAccessError` with code "key-alg" if the key cannot sign with `alg`.
        """

    @property
    def kid(self) -> str:
        """Return the first 16 hex characters of SHA-256 of the public key (running.md 4.2)."""
        return key_id(self.public_key)


def key_id(public_key: PublicKey) -> str:
    """Return the key id: 16 hex characters of SHA-256 of the raw key (Ed25519) or its DER form (others)."""
    if isinstance(public_key, ed25519.Ed25519PublicKey):
        data = public_key.public_bytes_raw()
    else:
        data = public_key.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    return hashlib.sha256(data).hexdigest()[:16]


class PrivateKeySigner(Signer):
    """A signer over a private key in memory."""

    def __init__(self, private_key: PrivateKey) -> None:
        self._private_key = private_key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.algs[0]} {self.kid}>"

    @property
    def public_key(self) -> PublicKey:
        """Return the public key."""
        return self._private_key.public_key()

    @property
    def algs(self) -> tuple[str, ...]:
        """Return the JOSE algorithm names for this kind of key."""
        key = self._private_key
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return ("Ed25519", "EdDSA")
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return ("ES384",) if isinstance(key.curve, ec.SECP384R1) else ("ES256",)
        return ("RS256", "PS256")

    def sign(self, data: bytes, *, alg: str) -> bytes:
        """Sign as `Signer.sign` says."""
        key = self._private_key
        if alg not in self.algs:
            raise KeyAccessError(f"this key signs with {', '.join(self.algs)}, not {alg}", code="key-alg")
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return key.sign(data)
        if isinstance(key, ec.EllipticCurvePrivateKey):
            digest = hashes.SHA384() if alg == "ES384" else hashes.SHA256()
            r, s = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
            size = (key.curve.key_size + 7) // 8
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        if alg == "PS256":
            pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
            return key.sign(data, pss, hashes.SHA256())
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())


def signer_from_uri(uri: str, *, purpose: str) -> Signer:
    """Open a signing key.

    `uri` is "scheme:rest"; "file:/absolute/path" is a PEM file in PKCS #8 of mode 0600 or stricter whose owner is
    this process's uid. `purpose` names what the key is for, in errors.

    Raises `KeyAccessError` with code "key-scheme-unknown", "key-missing", "key-owner", "key-mode" or
    "key-malformed".

    Source: transparency.md 5.1.
    """
    return open_key(uri, schemes=SCHEMES, purpose=purpose)


def _open_file_key(path_text: str) -> Signer:
    key = load_key_file(path_text)
    if (
        isinstance(key, ed25519.Ed25519PrivateKey)
        or (
            isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1)
        )
        or (isinstance(key, rsa.RSAPrivateKey) and key.key_size >= 2048)
    ):
        return PrivateKeySigner(key)
    raise KeyAccessError(
        "the key is neither Ed25519, P-256, P-384 nor RSA of 2048 bits",
        code="key-malformed",
        where=Where(file=path_text),
    )


SCHEMES: dict[str, Callable[[str], Signer]] = {"file": _open_file_key}
"""Key schemes by name. Add to it to sign with another kind of key store."""


def generate_private_key(
    kind: Literal["ed25519", "p256"],
) -> ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey:
    """Make a new private key of this kind."""
    return (
        ed25519.Ed25519PrivateKey.generate() if kind == "ed25519" else ec.generate_private_key(ec.SECP256R1())
    )


def generate_key_file(path: Path, kind: Literal["ed25519", "p256"] = "ed25519") -> Signer:
    """Make a key and write it as PKCS #8 PEM with mode 0600; a file that exists is never overwritten.

    Raises `KeyAccessError` with code "key-exists" or "key-unwritable".
    """
    key = generate_private_key(kind)
    write_private_key(path, key)
    return PrivateKeySigner(key)


def write_private_key(path: Path, key: PrivateKey) -> None:
    """Write a private key as PKCS #8 PEM into a new file of mode 0600.

    Raises `KeyAccessError` with code "key-exists" or "key-unwritable".
    """
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(descriptor)
    except FileExistsError:
        raise KeyAccessError(
            "the key file exists already", code="key-exists", where=Where(str(path))
        ) from None
    except OSError as error:
        raise KeyAccessError(
            f"cannot write the key file ({error.strerror})", code="key-unwritable", where=Where(str(path))
        ) from error


def ed25519_public_bytes(signer: Signer) -> bytes:
    """Return the 32 bytes of an Ed25519 signer's public key.

    Raises `KeyAccessError` with code "key-alg" for another kind of key.
    """
    if not isinstance(signer.public_key, ed25519.Ed25519PublicKey):
        raise KeyAccessError("an Ed25519 key is needed here", code="key-alg")
    return signer.public_key.public_bytes_raw()


def require_distinct(signers: Mapping[str, Signer]) -> None:
    """Make sure that no two purposes share one public key (RFC 9943; transparency.md 5.1).

    Raises `KeyAccessError` with code "key-shared".
    """
    seen: dict[str, str] = {}
    for purpose, signer in signers.items():
        other = seen.setdefault(signer.kid, purpose)
        if other != purpose:
            raise KeyAccessError(
                f"the keys for {other} and {purpose} are one key",
                code="key-shared",
                hint="make one key for each purpose",
            )


def format_trusted_key(public_key: bytes, comment: str) -> str:
    """Return the line of a trust file for a 32-byte Ed25519 public key: kid, key, comment."""
    kid = hashlib.sha256(public_key).hexdigest()[:16]
    return f"{kid} {b64url(public_key)} {comment}".rstrip() + "\n"


def read_trusted_keys(path: Path) -> Mapping[str, ed25519.Ed25519PublicKey]:
    """Read a trust file: lines `kid base64url-public-key comment`; blank lines and lines with # are skipped.

    Raises `ConfigurationError` with code "trust-unreadable", or "trust-malformed" with the line.
    """
    try:
        text = read_regular(path, limit_bytes=MAX_TRUST_BYTES, follow=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "cannot read the trust file", code="trust-unreadable", where=Where(str(path))
        ) from error
    keys: dict[str, ed25519.Ed25519PublicKey] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = line.split(maxsplit=2)
        try:
            raw = b64url_decode_strict(parts[1]) if len(parts) > 1 else b""
        except MalformedError:
            raw = b""
        if len(raw) != 32 or parts[0] != hashlib.sha256(raw).hexdigest()[:16]:
            raise ConfigurationError(
                "expected a key id, its 32-byte Ed25519 key in base64url, and a comment",
                code="trust-malformed",
                where=Where(str(path), line=number),
            )
        keys[parts[0]] = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    return keys
