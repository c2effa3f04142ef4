"""Private keys that open what was encrypted for them, by URI.

Users may add a scheme: `SCHEMES["vault"] = open_vault_key`, a function from the part after the colon to a `Decrypter`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519

from onrecord.base.errors import KeyAccessError, Where
from onrecord.base.jose_encryption import DecryptionKey, key_alg, unwrap_key
from onrecord.base.keys import read_private_file


class Decrypter(ABC):
    """A private key that decrypts and is never handed out."""

    @abstractmethod
    def unwrap(self, alg: str, encrypted_key: bytes, header: Mapping[str, Any]) -> bytes | None:
        """Return the content key that was encrypted for this key with `alg`, or None if it was not.

        `header` is the JOSE header of the recipient. Nothing is raised: a caller must not learn why.
        """


class PrivateKeyDecrypter(Decrypter):
    """A decrypter over a private key in memory."""

    def __init__(self, private_key: DecryptionKey) -> None:
        self._private_key = private_key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {type(self._private_key).__name__}>"

    def unwrap(self, alg: str, encrypted_key: bytes, header: Mapping[str, Any]) -> bytes | None:
        """Unwrap as `Decrypter.unwrap` says."""
        return unwrap_key(alg, self._private_key, encrypted_key, header)


def decrypter_from_uri(uri: str, *, purpose: str) -> Decrypter:
    """Open a private key for decryption.

    `uri` is "scheme:rest"; "file:/absolute/path" is a PEM file of mode 0600 or stricter whose owner is this process's
    uid, with an RSA key of at least 2048 bits, an EC key of P-256, P-384 or P-521, or an X25519 key. `purpose` names
    what the key is for, in errors.

    Raises `KeyAccessError` with code "key-scheme-unknown", "key-missing", "key-owner", "key-mode" or "key-malformed".
    """
    scheme, colon, rest = uri.partition(":")
    opener = SCHEMES.get(scheme) if colon else None
    if opener is None:
        raise KeyAccessError(
            f"the {purpose} key has a scheme that is not known; known are {', '.join(sorted(SCHEMES))}",
            code="key-scheme-unknown",
            hint="write it as file:/absolute/path/to/key.pem",
        )
    try:
        return opener(rest)
    except KeyAccessError as error:
        raise KeyAccessError(
            f"the {purpose} key: {error}", code=error.code, hint=error.hint, where=error.where
        ) from error


def _open_file_key(path_text: str) -> Decrypter:
    path = Path(path_text)
    try:
        key = serialization.load_pem_private_key(read_private_file(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyAccessError(
            "not a PEM private key without passphrase", code="key-malformed", where=Where(file=path_text)
        ) from None
    if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | x25519.X25519PrivateKey) and (
        key_alg(key.public_key()) is not None
    ):
        return PrivateKeyDecrypter(key)
    raise KeyAccessError(
        "the key is neither RSA of 2048 bits, P-256, P-384, P-521 nor X25519, so it decrypts nothing",
        code="key-malformed",
        where=Where(file=path_text),
    )


SCHEMES: dict[str, Callable[[str], Decrypter]] = {"file": _open_file_key}
"""Key schemes by name. Add to it to decrypt with another kind of key store."""
