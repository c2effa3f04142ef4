"""The signature file of a policy bundle: one line per signature, `kid base64url-signature`.

Source: call-proof.md 8.1; running.md 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from onrecord.authorize.policy.model import FORMAT
from onrecord.base.errors import MalformedError, PolicyError, Where
from onrecord.base.hashes import b64url, b64url_decode_strict
from onrecord.base.keys import Signer, ed25519_public_bytes

MAX_SIGNATURE_BYTES: Final = 65_536
"""Largest signature file read: some hundred signatures."""


def signed_bytes(bundle: bytes) -> bytes:
    """Return what is signed: the format name, a line feed, and the bytes of the file."""
    return FORMAT.encode() + b"\n" + bundle


def sign(bundle: bytes, *, signer: Signer) -> str:
    """Return one line of a signature file, with its line feed.

    Raises `KeyAccessError` with code "key-alg" if the key is not Ed25519.
    """
    ed25519_public_bytes(signer)
    return f"{signer.kid} {b64url(signer.sign(signed_bytes(bundle), alg='Ed25519'))}\n"


def verify(
    bundle: bytes,
    signature_file: bytes,
    trusted: Mapping[str, Ed25519PublicKey],
    *,
    where: Where | None = None,
) -> tuple[str, ...]:
    """Return the key ids whose signatures are good, at least one.

    Lines of unknown keys are passed over; one bad line of a known key refuses all, since somebody altered something.

    Raises `PolicyError` with code "policy-signature" or "policy-key-unknown".
    """
    try:
        lines = signature_file.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise PolicyError(
            "the signature file is not ASCII text", code="policy-signature", where=where
        ) from None
    good: list[str] = []
    for number, line in enumerate(lines, 1):
        kid, _, text = line.partition(" ")
        key = trusted.get(kid)
        if key is None:
            continue
        place = Where(file=where.file if where else None, line=number)
        try:
            key.verify(b64url_decode_strict(text), signed_bytes(bundle))
        except (InvalidSignature, MalformedError):
            raise PolicyError(
                f"the signature of key {kid} does not fit the policy bundle",
                code="policy-signature",
                where=place,
                hint="bundle or signature was altered; sign again from the source",
            ) from None
        good.append(kid)
    if not good:
        raise PolicyError(
            "no signature of the policy bundle is by a trusted key",
            code="policy-key-unknown",
            where=where,
            hint="the file trust.policy lists the keys that may sign policy",
        )
    return tuple(good)
