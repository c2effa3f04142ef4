"""Encrypting signed vCons for their readers.

Source: record.md 2.12, D-29, D-30; RFC 7516 sections 5.1 and 7.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from onrecord.base.canonical import compact
from onrecord.base.dates import utc_now
from onrecord.base.errors import CertificateError, MalformedError, UsageError, Where
from onrecord.base.hashes import b64url
from onrecord.base.jose_encryption import (
    ECDH_ES,
    ENCS,
    KEY_ALGS,
    RSA_OAEP,
    RecipientKey,
    encrypt_content,
    key_alg,
    new_content_key,
    wrap_key,
)
from onrecord.record.forms._rfc7516 import MAX_RECIPIENTS, write_message
from onrecord.record.forms.compression import compress, decompress
from onrecord.record.forms.jose_headers import VCON, VCON_GZIP
from onrecord.record.forms.opening import SIGNED, UNSIGNED, open_form, require_bytes

DEFAULT_ENC: Final = "A256CBC-HS512"
"""Content encryption that core names (record.md 2.12)."""


def encrypt(
    signed: bytes,
    *,
    recipients: Sequence[x509.Certificate],
    alg: str | None = None,
    enc: str = DEFAULT_ENC,
    gzip: bool = False,
    at: datetime | None = None,
) -> bytes:
    """Return the encrypted form of a signed vCon: JWE General JSON that each recipient can open alone.

    `alg` is "RSA-OAEP", "RSA-OAEP-256" or "ECDH-ES+A256KW", by default the first for RSA keys and the last for others;
    `enc` is "A256CBC-HS512" or "A256GCM". With `gzip` the signed form is compressed first. `at` is the time at which
    the certificates must be valid, now by default; whom they belong to is for the caller to know. A certificate that is
    given twice is one recipient.

    Raises `MalformedError` with code "form-not-signed", or that of the first error, for what is no signed vCon;
    `CertificateError` with code "recipient-key", "recipient-usage" or "recipient-expired", at the pointer
    "/recipients/0" for the first of `recipients`; `UsageError` with code "recipients-missing", "recipients-many",
    "jwe-alg-unknown", "jwe-enc-unknown" or "bytes-expected".

    Source: record.md D-29 (style P, or R for recipients of different algorithms), D-30.
    """
    require_bytes(signed)
    if enc not in ENCS:
        raise UsageError(
            "there is no such content encryption", code="jwe-enc-unknown", hint=" or ".join(ENCS)
        )
    if alg is not None and alg not in KEY_ALGS:
        raise UsageError(
            "there is no such key management", code="jwe-alg-unknown", hint=", ".join(sorted(KEY_ALGS))
        )
    if not recipients:
        raise UsageError(
            "nobody is named who could open it", code="recipients-missing", hint="name a certificate"
        )
    if len(recipients) > MAX_RECIPIENTS:
        raise UsageError(
            f"{len(recipients)} recipients are too many",
            code="recipients-many",
            hint=f"name {MAX_RECIPIENTS}",
        )
    keys = _recipient_keys(recipients, at or utc_now(), alg)
    text = decompress(signed)
    uuid = _uuid_of_signed(text)
    algs = {own for own, _ in keys}
    protected = {"enc": enc, "alg": next(iter(algs))} if len(algs) == 1 else {"enc": enc}
    protected_text = b64url(compact(protected))
    content_key = new_content_key(enc)
    sealed = encrypt_content(
        enc, content_key, compress(text) if gzip else text, aad=protected_text.encode("ascii")
    )
    entries: list[tuple[dict[str, Any], bytes]] = []
    for own, key in keys:
        wrapped = wrap_key(own, key, content_key)
        named = {} if len(algs) == 1 else {"alg": own}
        entries.append(({**named, **wrapped.header}, wrapped.encrypted_key))
    unprotected = {"cty": VCON_GZIP if gzip else VCON, **({"uuid": uuid} if uuid is not None else {})}
    return write_message(sealed, protected_text=protected_text, unprotected=unprotected, recipients=entries)


def _recipient_keys(
    recipients: Sequence[x509.Certificate], at: datetime, alg: str | None
) -> list[tuple[str, RecipientKey]]:
    """Return algorithm and key of each recipient, once."""
    found: dict[x509.Certificate, tuple[str, RecipientKey]] = {}
    for index, certificate in enumerate(recipients):
        if certificate in found:
            continue
        try:
            found[certificate] = _recipient_key(certificate, at, alg)
        except CertificateError as error:
            error.where = Where(pointer=f"/recipients/{index}")
            raise
    return list(found.values())


def _recipient_key(certificate: x509.Certificate, at: datetime, alg: str | None) -> tuple[str, RecipientKey]:
    """Return the algorithm and the key of a recipient."""
    try:
        key: Any = certificate.public_key()
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        usage = None
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension):
        raise CertificateError("a recipient's certificate cannot be read", code="recipient-key") from None
    own = key_alg(key)
    if own is None or (alg is not None and (alg == ECDH_ES) != (own == ECDH_ES)):
        raise CertificateError(
            "a recipient's certificate has a key that this algorithm cannot encrypt for",
            code="recipient-key",
            hint="RSA keys of 2048 bits take RSA-OAEP and RSA-OAEP-256, P-256, P-384, P-521 and X25519 ECDH-ES+A256KW",
        )
    if usage is not None and not (usage.key_encipherment if own == RSA_OAEP else usage.key_agreement):
        raise CertificateError(
            "a recipient's certificate is for signatures, its key usage does not admit encryption",
            code="recipient-usage",
            hint="ask the recipient for the certificate to encrypt with",
        )
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        raise CertificateError(
            "a recipient's certificate is not valid now",
            code="recipient-expired",
            hint="ask the recipient for the present one",
        )
    return alg or own, key


def _uuid_of_signed(text: bytes) -> str | None:
    form = open_form(text)
    if form.kind != SIGNED:
        raise MalformedError(
            f"the vCon is {form.kind}, and only signed ones are encrypted",
            code="form-not-signed",
            hint="sign it first: onrecord sign FILE"
            if form.kind == UNSIGNED
            else "more readers: onrecord decrypt FILE --key KEY --out SIGNED, then encrypt SIGNED for all of them",
        )
    if form.payload_error is not None:
        raise form.payload_error
    findings = form.envelope.in_order(form.envelope_document) if form.envelope is not None else ()
    code = next((finding.code for finding in findings if finding.severity == "error"), None)
    if code is not None or form.payload is None:
        raise MalformedError(
            "the signed form has errors",
            code=code or "jws-payload-invalid",
            hint="onrecord check FILE names them",
        )
    uuid = form.payload.value.get("uuid")
    return uuid if isinstance(uuid, str) else None
