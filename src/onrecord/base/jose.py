"""JWS General JSON and signature checks (RFC 7515, 7518, 8037, 9864), without the caps of JOSE libraries.

Certificates, header styles and verdicts belong to the callers; here are bytes, keys and algorithms only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from onrecord.base.canonical import compact
from onrecord.base.errors import SignatureError
from onrecord.base.hashes import b64url
from onrecord.base.keys import PublicKey, Signer

_HASHES: Final = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_CURVES: Final[Mapping[str, type[ec.EllipticCurve]]] = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1}

ALLOWED_ALGS: Final = frozenset(
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA", "Ed25519"]
)
"""Algorithms that verification accepts (record.md D-23). "none", HMAC and SHA-1 are never on it."""

MIN_RSA_BITS: Final = 2048
"""Smallest RSA key accepted (record.md D-23)."""


def sign_general(
    payload: bytes, *, signer: Signer, alg: str, protected: Mapping[str, Any], header: Mapping[str, Any]
) -> bytes:
    """Return a JWS in General JSON serialization with one signature.

    `protected` goes under the signature with `alg` added, `header` stands beside it; a name must not be in both.

    Raises `SignatureError` with code "jws-header-duplicate" if one is.

    Source: RFC 7515 sections 5.1 and 7.2.1.
    """
    if ("alg" in header) or (set(protected) & set(header)):
        raise SignatureError("a header name stands in both headers", code="jws-header-duplicate")
    protected_part = b64url(compact({"alg": alg, **protected}))
    payload_part = b64url(payload)
    signature = signer.sign(f"{protected_part}.{payload_part}".encode("ascii"), alg=alg)
    entry = {"header": dict(header), "protected": protected_part, "signature": b64url(signature)}
    return compact({"payload": payload_part, "signatures": [entry]})


def verify_signature(alg: str, public_key: PublicKey, signing_input: bytes, signature: bytes) -> None:
    """Check one signature; returning means that it verifies.

    Raises `SignatureError` with code "jws-alg-refused" (algorithm not allowed, or it does not fit the key) or
    "jws-signature-invalid".

    Source: RFC 7518 section 3, RFC 8037 section 3.1, RFC 9864; record.md D-23.
    """
    if alg not in ALLOWED_ALGS:
        raise SignatureError("the algorithm is not allowed", code="jws-alg-refused")
    try:
        if alg in ("EdDSA", "Ed25519") and isinstance(public_key, ed25519.Ed25519PublicKey):
            public_key.verify(signature, signing_input)
        elif alg in _CURVES and isinstance(public_key, ec.EllipticCurvePublicKey):
            _verify_ecdsa(alg, public_key, signing_input, signature)
        elif alg[:2] in ("RS", "PS") and isinstance(public_key, rsa.RSAPublicKey):
            if public_key.key_size < MIN_RSA_BITS:
                raise SignatureError("the RSA key is shorter than 2048 bits", code="jws-alg-refused")
            digest = _HASHES[alg[2:]]
            scheme = (
                padding.PKCS1v15()
                if alg[0] == "R"
                else padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
            )
            public_key.verify(signature, signing_input, scheme, digest)
        else:
            raise SignatureError("the algorithm does not fit the key", code="jws-alg-refused")
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        raise SignatureError("the signature does not verify", code="jws-signature-invalid") from None


def _verify_ecdsa(
    alg: str, public_key: ec.EllipticCurvePublicKey, signing_input: bytes, signature: bytes
) -> None:
    if not isinstance(public_key.curve, _CURVES[alg]):
        raise SignatureError("the algorithm does not fit the key", code="jws-alg-refused")
    size = (public_key.curve.key_size + 7) // 8
    r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
    if len(signature) != 2 * size or not r or not s:
        raise SignatureError("the signature does not verify", code="jws-signature-invalid")
    digest = _HASHES[alg[2:]]
    public_key.verify(encode_dss_signature(r, s), signing_input, ec.ECDSA(digest))
