"""Signing vCons: the text as it is, in JWS General JSON.

Source: record.md D-22, D-23, D-25, D-27; RFC 7515 section 7.2.1.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.base.errors import BindingError, CertificateError, MalformedError, SignatureError, Where
from onrecord.base.jose import sign_general
from onrecord.base.keys import PublicKey, Signer, key_id
from onrecord.record.forms.certificates import STRICT, public_key_of
from onrecord.record.forms.compression import compress, decompress
from onrecord.record.forms.jose_headers import VCON, VCON_GZIP
from onrecord.record.forms.opening import MAX_NESTING, UNSIGNED, open_form, require_bytes
from onrecord.record.forms.signatures import verify


def sign(
    vcon: bytes,
    *,
    signer: Signer,
    chain: Sequence[x509.Certificate],
    uuid: str | None = None,
    alg: str | None = None,
    gzip: bool = False,
) -> bytes:
    """Return the signed form of a vCon: JWS General JSON, alg and cty protected, x5c and uuid beside.

    `vcon` is the text that is signed, byte for byte, or gzip of it with `gzip`; `chain` has the leaf first and no root.
    `uuid`, where it is given, must be the vCon's. `alg` defaults to RS256, ES256, ES384 or EdDSA by the key.

    Raises `BindingError` with code "uuid-mismatch" if the text has another uuid, `CertificateError` with code
    "chain-key-mismatch" if the leaf is for another key, `MalformedError` with code "form-not-unsigned", "uuid-missing",
    "json-lone-surrogate" or one of record.md 6.2 for a text that is no vCon to sign, `KeyAccessError` with code
    "key-alg", and `UsageError` with code "bytes-expected" for what are no bytes.

    Source: record.md D-22, D-23, D-25.
    """
    require_bytes(vcon)
    _require_own_leaf(signer, chain)
    if uuid is None or not _ends_with_uuid(vcon, uuid):
        stated = _uuid_to_sign(vcon)
        if uuid not in (None, stated):
            raise BindingError("the vCon has another uuid than the one to sign for", code="uuid-mismatch")
        uuid = stated
    return _signed(vcon, signer=signer, chain=chain, uuid=uuid, alg=alg, gzip=gzip)


def resign(
    signed: bytes,
    *,
    signer: Signer,
    chain: Sequence[x509.Certificate],
    anchors: Sequence[x509.Certificate],
    at: datetime | None = None,
    chain_profile: str = STRICT,
    crls: Sequence[x509.CertificateRevocationList] = (),
    alg: str | None = None,
    gzip: bool = False,
) -> bytes:
    """Verify a signed vCon and sign it anew around what is there, as an archive does before certificates expire.

    The inner bytes are not touched. `anchors`, `at`, `chain_profile` and `crls` are those of `verify`; the rest is as
    for `sign`.

    Raises `SignatureError` with code "resign-unverified" if it does not verify, or "resign-depth" if it is nested as
    deep as readers go, and otherwise as `sign` does.

    Source: record.md D-27.
    """
    _require_own_leaf(signer, chain)
    report = verify(signed, anchors=anchors, at=at, chain=chain_profile, crls=crls)
    if report.verdict != "verified" or report.payload is None:
        raise SignatureError(
            f"the vCon is not verified ({report.outcome}), so it is not signed anew",
            code="resign-unverified",
            hint="onrecord verify FILE says why; name the certificate that vouches for it with --anchor",
        )
    text = decompress(signed)
    form = open_form(text)
    if len(form.envelopes) >= MAX_NESTING:
        raise SignatureError(
            f"the vCon has {MAX_NESTING} envelopes already, and readers open no more", code="resign-depth"
        )
    uuid = form.payload.value.get("uuid") if form.payload is not None else None
    return _signed(text, signer=signer, chain=chain, uuid=_text_uuid(uuid), alg=alg, gzip=gzip)


def _signed(
    payload: bytes,
    *,
    signer: Signer,
    chain: Sequence[x509.Certificate],
    uuid: str,
    alg: str | None,
    gzip: bool,
) -> bytes:
    x5c = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode("ascii") for certificate in chain]
    return sign_general(
        compress(payload) if gzip else payload,
        signer=signer,
        alg=alg or _default_alg(signer),
        protected={"cty": VCON_GZIP if gzip else VCON},
        header={"x5c": x5c, "uuid": uuid},
    )


def _require_own_leaf(signer: Signer, chain: Sequence[x509.Certificate]) -> None:
    if not chain or key_id(_leaf_key(chain[0])) != key_id(signer.public_key):
        raise CertificateError(
            "the first certificate of the chain is not for the signing key",
            code="chain-key-mismatch",
            hint="put the leaf certificate of this key first",
        )


def _leaf_key(certificate: x509.Certificate) -> PublicKey:
    key = public_key_of(certificate)
    if key is None:
        raise CertificateError("the leaf certificate has a key that signs no JWS", code="chain-key-mismatch")
    return key


def _default_alg(signer: Signer) -> str:
    return "EdDSA" if "EdDSA" in signer.algs else signer.algs[0]


def _ends_with_uuid(vcon: bytes, uuid: str) -> bool:
    """Say whether this is plainly a canonical text of this vCon, which need not be parsed once more."""
    if not vcon.endswith(b'"uuid":"%b"}' % uuid.encode("utf-8", "replace")):
        return False
    return b"\\ud" not in vcon and b"\\uD" not in vcon


def _uuid_to_sign(vcon: bytes) -> str:
    """Return the uuid of a text that may be signed.

    Source: record.md 6.2 (what the writer refuses).
    """
    form = open_form(vcon)
    if form.kind != UNSIGNED or form.payload is None:
        raise MalformedError(
            f"the vCon is {form.kind} already",
            code="form-not-unsigned",
            hint="to sign a signed vCon anew use resign, which verifies it first",
        )
    if form.payload.raw is not vcon:
        raise MalformedError(
            "the text is compressed",
            code="form-not-unsigned",
            hint="decompress it; gzip=True compresses it again",
        )
    form.payload.require_whole_texts()
    return _text_uuid(form.payload.value.get("uuid"))


def _text_uuid(uuid: Any) -> str:
    if not isinstance(uuid, str):
        raise MalformedError(
            "the vCon has no uuid to sign for", code="uuid-missing", where=Where(pointer="/uuid")
        )
    return uuid
