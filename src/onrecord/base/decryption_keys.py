"""Private keys that open what was encrypted for them, by URI.

Users may add a scheme: `SCHEMES["vault"] = open_vault_key`, a function from the part after the colon to a `Decrypter`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519

from onrecord.base.errors import KeyAccessError, Where
from onrecord.base.jose_encryption import DecryptionKey, key_alg, unwrap_key
from onrecord.base.key_uris import load_key_file, open_key


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
    return open_key(uri, schemes=SCHEMES, purpose=purpose)


def _open_file_key(path_text: str) -> Decrypter:
    key = load_key_file(path_text)
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
