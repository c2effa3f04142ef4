"""Opening encrypted vCons, and verifying what is inside.

Source: record.md 2.12, D-29, D-30; RFC 7516 section 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from onrecord.base.decryption_keys import Decrypter, PrivateKeyDecrypter
from onrecord.base.errors import MalformedError
from onrecord.base.findings import Finding
from onrecord.base.jose_encryption import (
    DecryptionError,
    DecryptionKey,
    decrypt_content,
    is_content_key,
    new_content_key,
    undecryptable,
)
from onrecord.base.reports import Axis
from onrecord.record.forms._rfc7516 import Message
from onrecord.record.forms.compression import decompress
from onrecord.record.forms.opening import ENCRYPTED, SIGNED, Form, open_form, require_bytes
from onrecord.record.forms.signatures import verify
from onrecord.record.forms.signers import SignedReport
from onrecord.record.forms.verification import AXIS_OF, REQUIRED
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.reader import MAX_BYTES


class UndecryptedError(DecryptionError):
    """An encrypted vCon that was not opened: `findings` says all that is wrong with it, `code` the first of it."""

    def __init__(self, message: str, *, code: str, findings: tuple[Finding, ...]) -> None:
        super().__init__(message, code=code)
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Decrypted:
    """What was inside of an encrypted vCon: the signed form, which nobody has verified yet.

    `uuid` is that of the vCon inside. `findings` are about the envelope around it; `jwe-uuid-mismatch` among them
    means that the envelope belongs to another vCon.
    """

    signed: bytes = field(repr=False)
    uuid: str | None
    alg: str
    enc: str
    findings: tuple[Finding, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Say whether an error was found about the envelope, so that what is inside must not be relied on."""
        return any(finding.severity == "error" for finding in self.findings)


def decrypt(
    data: bytes,
    *,
    key: Decrypter | DecryptionKey,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Decrypted:
    """Open an encrypted vCon with the private key of one of its recipients.

    What comes out is the signed form, not verified; `decrypt_and_verify` does both.

    Raises `UndecryptedError` with the code of the first error: "jwe-decrypt-failed" for another key, a damaged file and
    every other cause that the key could tell apart, "encrypted-not-signed" if something else than a signed vCon was
    inside; "jwe-header-conflict", "jwe-alg-refused", "jwe-enc-refused", "jwe-zip-refused", "form-compact" and others
    before the key is used. Raises `MalformedError` with code "form-not-encrypted", or for input that cannot be read;
    `UsageError` with code "bytes-expected" for a text or a path.

    Source: record.md D-29, D-30; RFC 7516 sections 5.2 and 11.5.
    """
    require_bytes(data)
    with paused_collection(len(data)):
        form = open_form(data, max_bytes=max_bytes, strict=strict)
    if form.kind != ENCRYPTED:
        raise MalformedError(
            f"the vCon is {form.kind}, there is nothing to decrypt",
            code="form-not-encrypted",
            hint="onrecord verify FILE" if form.kind == SIGNED else None,
        )
    message = form.encrypted
    if message is None or not message.is_usable:
        raise _undecrypted(form, "the encrypted form has errors, so no key was used")
    own = key if isinstance(key, Decrypter) else PrivateKeyDecrypter(key)
    enc = str(message.shared("enc"))
    try:
        alg, plaintext = _open(message, own, enc)
    except DecryptionError as error:
        raise _undecrypted(form, str(error), code=error.code) from None
    try:
        signed = decompress(plaintext, max_bytes=max_bytes)
        with paused_collection(len(signed)):
            inner = open_form(signed, max_bytes=max_bytes)
    except MalformedError as error:
        if error.code in ("gzip-limit", "size-limit"):
            raise
        inner = None
    if inner is None or inner.kind != SIGNED or not any(one.signatures for one in inner.envelopes[:1]):
        raise _undecrypted(form, "what was encrypted is no signed vCon", code="encrypted-not-signed")
    uuid = inner.payload.value.get("uuid") if inner.payload is not None else None
    if any(header["uuid"] != uuid for header in message.headers if header.get("uuid") is not None):
        _add(form, "jwe-uuid-mismatch", "/unprotected/uuid")
    return Decrypted(signed, uuid if isinstance(uuid, str) else None, alg, enc, _findings(form))


def _open(message: Message, key: Decrypter, enc: str) -> tuple[str, bytes]:
    """Decrypt a message whose headers are in order.

    Every recipient is tried and the content is always gone through, with a random key if none was unwrapped: neither
    error nor effort tells whether the key or the content was wrong (RFC 7516 section 11.5).
    """
    assert message.sealed is not None  # a message without is not usable
    alg, content_key = "", b""
    for recipient in message.recipients:
        if not recipient.is_usable:
            continue
        unwrapped = key.unwrap(recipient.header["alg"], recipient.encrypted_key, recipient.header)
        if unwrapped is not None and is_content_key(enc, unwrapped) and not alg:
            alg, content_key = recipient.header["alg"], unwrapped
    plaintext = decrypt_content(enc, content_key or new_content_key(enc), message.sealed, aad=message.aad)
    if not alg:
        raise undecryptable()
    return alg, plaintext


def _add(form: Form, code: str, pointer: str) -> None:
    if form.envelope is not None:
        form.envelope.add(code, pointer)


def _findings(form: Form) -> tuple[Finding, ...]:
    return form.envelope.in_order(form.envelope_document) if form.envelope is not None else ()


def _first_error(findings: tuple[Finding, ...]) -> str | None:
    return next((finding.code for finding in findings if finding.severity == "error"), None)


def _undecrypted(form: Form, message: str, *, code: str | None = None) -> UndecryptedError:
    """Return the error with its finding among those of the file."""
    if code is not None:
        _add(form, code, "")
    findings = _findings(form)
    return UndecryptedError(
        message, code=code or _first_error(findings) or "jwe-decrypt-failed", findings=findings
    )


def decrypt_and_verify(
    data: bytes,
    *,
    key: Decrypter | DecryptionKey,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
    **how: Any,
) -> SignedReport:
    """Open an encrypted vCon, verify what is inside, and compare the uuids. `how` is what `verify` takes.

    The report is that of `verify` with the axis "decryption" before the others. The vCon to go on with is
    `Report.payload`, set only when the verdict is verified.

    Raises `MalformedError` and `UsageError` as `decrypt` and `verify` do.

    Source: record.md D-30.
    """
    try:
        decrypted = decrypt(data, key=key, strict=strict, max_bytes=max_bytes)
    except UndecryptedError as error:
        axes = {"decryption": Axis("failed", str(error))}
        return SignedReport(
            axes, REQUIRED, not_checked=("signature",), findings=error.findings, outcome_word=error.code
        )
    report = verify(decrypted.signed, strict=strict, max_bytes=max_bytes, **how)
    return with_envelope(report, decrypted)


def with_envelope(report: SignedReport, decrypted: Decrypted) -> SignedReport:
    """Return the report of `verify` about what was decrypted, with what was found about the envelope around it."""
    failed = {AXIS_OF.get(one.code, "decryption") for one in decrypted.findings if one.severity == "error"}
    axes = {"decryption": Axis("verified", f"opened with {decrypted.alg} and {decrypted.enc}"), **report.axes}
    for name in failed & axes.keys():
        axes[name] = replace(axes[name], result="failed")
    whole = replace(report, axes=axes, findings=(*decrypted.findings, *report.findings))
    if not failed:
        return whole
    first = _first_error(whole.findings)
    return replace(whole, payload=None, outcome_word=first)
