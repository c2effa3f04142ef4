"""Signing vCons: the text as it is, in JWS General JSON.

Source: record.md D-22, D-23, D-25; RFC 7515 section 7.2.1.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.base.errors import BindingError, CertificateError
from onrecord.base.jose import sign_general
from onrecord.base.keys import PublicKey, Signer, key_id
from onrecord.record.certificates import public_key_of
from onrecord.record.vcon.reader import read_json

CTY: Final = "application/vcon"
"""Content type of the payload (record.md D-22)."""


def sign(
    vcon: bytes, *, signer: Signer, chain: Sequence[x509.Certificate], uuid: str, alg: str | None = None
) -> bytes:
    """Return the signed form of a vCon: JWS General JSON, alg and cty protected, x5c and uuid beside.

    `vcon` is the text that is signed, byte for byte; `chain` has the leaf first and no root; `uuid` is the vCon's.
    `alg` defaults to RS256, ES256, ES384 or EdDSA by the key.

    Raises `BindingError` with code "uuid-mismatch" if the text has another uuid, `CertificateError` with code
    "chain-key-mismatch" if the leaf is for another key, `MalformedError` if the text is no vCon, and
    `KeyAccessError` with code "key-alg".

    Source: record.md D-22, D-23, D-25.
    """
    if not chain or key_id(_leaf_key(chain[0])) != key_id(signer.public_key):
        raise CertificateError(
            "the first certificate of the chain is not for the signing key",
            code="chain-key-mismatch",
            hint="put the leaf certificate of this key first",
        )
    if not vcon.endswith(b'"uuid":"%b"}' % uuid.encode("utf-8", "replace")) and _stated_uuid(vcon) != uuid:
        raise BindingError("the vCon has another uuid than the one to sign for", code="uuid-mismatch")
    x5c = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode("ascii") for certificate in chain]
    return sign_general(
        vcon,
        signer=signer,
        alg=alg or _default_alg(signer),
        protected={"cty": CTY},
        header={"x5c": x5c, "uuid": uuid},
    )


def _leaf_key(certificate: x509.Certificate) -> PublicKey:
    key = public_key_of(certificate)
    if key is None:
        raise CertificateError("the leaf certificate has a key that signs no JWS", code="chain-key-mismatch")
    return key


def _default_alg(signer: Signer) -> str:
    return "EdDSA" if "EdDSA" in signer.algs else signer.algs[0]


def _stated_uuid(vcon: bytes) -> Any:
    value = read_json(vcon).value
    return value.get("uuid") if isinstance(value, dict) else None
