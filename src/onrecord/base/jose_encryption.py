"""Content encryption and key management of JWE (RFC 7518, 8037): bytes, keys and algorithms only.

    >>> key = new_content_key("A256GCM")
    >>> sealed = encrypt_content("A256GCM", key, b"text", aad=b"")
    >>> decrypt_content("A256GCM", key, sealed, aad=b"")
    b'text'

The structure of messages, and what their headers may say, belongs to the callers.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash
from cryptography.hazmat.primitives.padding import PKCS7

from onrecord.base.errors import KeyAccessError, MalformedError, VerificationError
from onrecord.base.hashes import b64url, b64url_decode_strict
from onrecord.base.jose import MIN_RSA_BITS

RecipientKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | x25519.X25519PublicKey
DecryptionKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | x25519.X25519PrivateKey

RSA_OAEP: Final = "RSA-OAEP"
RSA_OAEP_256: Final = "RSA-OAEP-256"
ECDH_ES: Final = "ECDH-ES+A256KW"

KEY_ALGS: Final = frozenset([RSA_OAEP, RSA_OAEP_256, ECDH_ES])
"""Key management that is written and read (record.md D-30). RSA1_5, dir and passwords are never on it."""

MAX_PARTY_INFO_CHARACTERS: Final = 1_024
"""Longest apu or apv read: a name of a party, which goes into a key derivation as it is."""

_OAEP: Final = {
    RSA_OAEP: padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None),  # noqa: S303 - RFC 7518 names it
    RSA_OAEP_256: padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None),
}
_CURVE_NAMES: Final = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
_WRAPPING_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class _Enc:
    """Sizes in bytes of a content encryption algorithm."""

    key: int
    iv: int
    tag: int


_ENCS: Final[Mapping[str, _Enc]] = {"A256CBC-HS512": _Enc(64, 16, 32), "A256GCM": _Enc(32, 12, 16)}

ENCS: Final = tuple(_ENCS)
"""Content encryption that is written and read (record.md D-30), the one that core names first."""


class DecryptionError(VerificationError):
    """Something encrypted cannot be opened. There is one message for all causes that depend on the key."""

    usual_hint = "use the private key of one of the recipients; if it is, ask for the file again"


@dataclass(frozen=True, slots=True)
class Sealed:
    """Encrypted content with what is needed beside the key."""

    iv: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)
    tag: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A content key as one recipient gets it, and the header parameters that go with it (`epk`)."""

    encrypted_key: bytes = field(repr=False)
    header: Mapping[str, Any]


def new_content_key(enc: str) -> bytes:
    """Return a random key for a content encryption algorithm of `ENCS`."""
    return os.urandom(_ENCS[enc].key)


def is_content_key(enc: str, key: bytes) -> bool:
    """Say whether a key has the length that the algorithm asks for."""
    return len(key) == _ENCS[enc].key


def encrypt_content(enc: str, key: bytes, plaintext: bytes, *, aad: bytes) -> Sealed:
    """Encrypt and authenticate; `aad` is authenticated and not encrypted. The initialization vector is random.

    Source: RFC 7518 sections 5.2.2.1 and 5.3.
    """
    iv = os.urandom(_ENCS[enc].iv)
    if enc == "A256GCM":
        sealed = AESGCM(key).encrypt(iv, plaintext, aad)
        return Sealed(iv, sealed[:-16], sealed[-16:])
    padder = PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES256(key[32:]), modes.CBC(iv)).encryptor()
    padded = padder.update(plaintext) + padder.finalize()
    ciphertext = encryptor.update(padded) + encryptor.finalize()
    return Sealed(iv, ciphertext, _mac(key, aad, iv, ciphertext))


def decrypt_content(enc: str, key: bytes, sealed: Sealed, *, aad: bytes) -> bytes:
    """Check the tag and decrypt.

    Raises `DecryptionError` with code "jwe-decrypt-failed", whatever the cause.

    Source: RFC 7518 sections 5.2.2.2 and 5.3.
    """
    sizes = _ENCS[enc]
    if (len(key), len(sealed.iv), len(sealed.tag)) != (sizes.key, sizes.iv, sizes.tag):
        raise undecryptable()
    try:
        if enc == "A256GCM":
            return AESGCM(key).decrypt(sealed.iv, sealed.ciphertext + sealed.tag, aad)
        if not hmac.compare_digest(_mac(key, aad, sealed.iv, sealed.ciphertext), sealed.tag):
            raise undecryptable()
        decryptor = Cipher(algorithms.AES256(key[32:]), modes.CBC(sealed.iv)).decryptor()
        unpadder = PKCS7(128).unpadder()
        padded = decryptor.update(sealed.ciphertext) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()
    except (InvalidTag, ValueError):
        raise undecryptable() from None


def undecryptable() -> DecryptionError:
    """Return the one error for a wrong key and for damage, so that no one learns which it was."""
    return DecryptionError("the content cannot be decrypted with this key", code="jwe-decrypt-failed")


def _mac(key: bytes, aad: bytes, iv: bytes, ciphertext: bytes) -> bytes:
    mac = hmac.new(key[:32], digestmod="sha512")
    for part in (aad, iv, ciphertext, (8 * len(aad)).to_bytes(8, "big")):
        mac.update(part)
    return mac.digest()[:32]


def key_alg(key: object) -> str | None:
    """Return the key management algorithm that is written for a public key by default, or None if there is none.

    RSA keys below 2048 bits, curves outside of RFC 7518 and keys that only sign have none.
    """
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= MIN_RSA_BITS:
        return RSA_OAEP
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVE_NAMES:
        return ECDH_ES
    return ECDH_ES if isinstance(key, x25519.X25519PublicKey) else None


def wrap_key(alg: str, key: RecipientKey, content_key: bytes) -> WrappedKey:
    """Encrypt a content key for one recipient.

    Raises `KeyAccessError` with code "key-alg" if the algorithm does not fit the key.

    Source: RFC 7518 sections 4.3 and 4.6.
    """
    fits = key_alg(key) is not None
    if isinstance(key, rsa.RSAPublicKey):
        if fits and alg in _OAEP:
            return WrappedKey(key.encrypt(content_key, _OAEP[alg]), {})
    elif fits and alg == ECDH_ES:
        shared, epk = _agree(key)
        return WrappedKey(keywrap.aes_key_wrap(_derive(shared, b"", b""), content_key), {"epk": epk})
    raise KeyAccessError("the key management algorithm does not fit this key", code="key-alg")


def _agree(key: ec.EllipticCurvePublicKey | x25519.X25519PublicKey) -> tuple[bytes, dict[str, str]]:
    """Return the secret shared with a new ephemeral key, and that key as a JWK."""
    if isinstance(key, ec.EllipticCurvePublicKey):
        own = ec.generate_private_key(key.curve)
        return own.exchange(ec.ECDH(), key), _ec_members(own.public_key())
    ephemeral = x25519.X25519PrivateKey.generate()
    epk = {"kty": "OKP", "crv": "X25519", "x": b64url(ephemeral.public_key().public_bytes_raw())}
    return ephemeral.exchange(key), epk


def unwrap_key(alg: str, key: DecryptionKey, encrypted_key: bytes, header: Mapping[str, Any]) -> bytes | None:
    """Return the content key that was encrypted for this private key, or None if it was not.

    `header` is the JOSE header of the recipient; `epk`, `apu` and `apv` are read from it.

    Source: RFC 7518 sections 4.3 and 4.6; RFC 8037 section 3.2.
    """
    try:
        if alg in _OAEP and isinstance(key, rsa.RSAPrivateKey):
            return key.decrypt(encrypted_key, _OAEP[alg])
        if alg == ECDH_ES and not isinstance(key, rsa.RSAPrivateKey):
            shared = _exchange(key, header.get("epk"))
            if shared is None:
                return None
            info = [_party_info(header.get(name)) for name in ("apu", "apv")]
            return keywrap.aes_key_unwrap(_derive(shared, *info), encrypted_key)
    except (ValueError, TypeError, keywrap.InvalidUnwrap, UnsupportedAlgorithm, MalformedError):
        return None
    return None


def _derive(shared: bytes, apu: bytes, apv: bytes) -> bytes:
    """Derive the wrapping key (Concat KDF; RFC 7518 section 4.6.2)."""
    parts = (ECDH_ES.encode("ascii"), apu, apv)
    info = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    info += (8 * _WRAPPING_KEY_BYTES).to_bytes(4, "big")
    return ConcatKDFHash(hashes.SHA256(), _WRAPPING_KEY_BYTES, info).derive(shared)


def _party_info(value: object) -> bytes:
    if value is None:
        return b""
    if not isinstance(value, str) or len(value) > MAX_PARTY_INFO_CHARACTERS:
        raise MalformedError("apu or apv is no short base64url", code="base64url-invalid")
    return b64url_decode_strict(value)


def _ec_members(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    numbers, size = key.public_numbers(), (key.curve.key_size + 7) // 8
    return {
        "kty": "EC",
        "crv": _CURVE_NAMES[key.curve.name],
        "x": b64url(numbers.x.to_bytes(size, "big")),
        "y": b64url(numbers.y.to_bytes(size, "big")),
    }


def _exchange(key: ec.EllipticCurvePrivateKey | x25519.X25519PrivateKey, epk: object) -> bytes | None:
    """Return the shared secret with an ephemeral key of the same curve; a point that is none on it raises."""
    if not isinstance(epk, dict):
        return None
    if isinstance(key, x25519.X25519PrivateKey):
        if epk.get("kty") != "OKP" or epk.get("crv") != "X25519":
            return None
        return key.exchange(x25519.X25519PublicKey.from_public_bytes(_coordinate(epk.get("x"))))
    if (epk.get("kty"), epk.get("crv")) != ("EC", _CURVE_NAMES.get(key.curve.name, "")):
        return None
    x, y = (int.from_bytes(_coordinate(epk.get(name)), "big") for name in ("x", "y"))
    return key.exchange(ec.ECDH(), ec.EllipticCurvePublicNumbers(x, y, key.curve).public_key())


def _coordinate(value: object) -> bytes:
    if not isinstance(value, str) or len(value) > MAX_PARTY_INFO_CHARACTERS:
        raise MalformedError("epk has a coordinate that is no base64url", code="base64url-invalid")
    return b64url_decode_strict(value)
