"""Getting at the vCon in a file that a new one is made from: opened, and verified where it is signed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from onrecord.base.errors import MalformedError, SignatureError, UsageError, Where
from onrecord.cli.output import note
from onrecord.cli.trust import anchors_of, crls_of
from onrecord.record.forms import ENCRYPTED, SIGNED, Form, open_form, verify
from onrecord.record.vcon.reader import Document

if TYPE_CHECKING:
    from cryptography import x509

UnverifiedOption = Annotated[
    bool, typer.Option("--unverified", help="Take a signed vCon as it is, without verifying it.")
]

_COMPACT: Final = "convert_compact of onrecord.record.forms makes the general JSON form of it"


def open_source(
    data: bytes,
    file: Path,
    *,
    anchors: Sequence[Path] = (),
    chain: str = "strict",
    unverified: bool = False,
    at: datetime | None = None,
    crls: Sequence[Path] = (),
    config: Path | None = None,
) -> Form:
    """Return the opened form of a file, which holds a vCon. A signed one is verified unless `unverified`.

    `anchors` are files or folders of trusted certificates, by default those of the configuration `config` or the one
    found. `chain` is "strict" or "compat", `at` the check time, by default now; `crls` are lists of revoked
    certificates.

    Raises `UsageError` with code "form-encrypted" or "anchor-missing", `SignatureError` with code
    "source-not-verified", and `MalformedError` for what cannot be read.
    """
    try:
        form = open_form(data)
    except MalformedError as error:
        raise placed(error, file) from error
    if form.kind == ENCRYPTED:
        raise UsageError(
            "the file is an encrypted vCon",
            code="form-encrypted",
            hint="decrypt it first; onrecord decrypt FILE --key KEY --out SIGNED gives the signed vCon inside",
            where=Where(file=str(file)),
        )
    try:
        vcon_in(form)
    except MalformedError as error:
        raise placed(error, file) from error
    if form.kind == SIGNED:
        if unverified:
            note("onrecord: the signature was not verified")
        else:
            _require_good_signature(
                data, file, anchors=anchors_of(anchors, config), chain=chain, at=at, crls=crls_of(crls)
            )
    elif anchors:
        raise SignatureError(
            "the file is not signed, so there is nothing that the anchor could vouch for",
            code="source-not-verified",
            hint="leave --anchor out for an unsigned vCon",
            where=Where(file=str(file)),
        )
    return form


def vcon_in(form: Form) -> Document:
    """Return the vCon in a file that is not encrypted.

    Raises `MalformedError` with the code of what is wrong with it, "form-compact", or "jws-payload-invalid".
    """
    if form.payload_error is not None:
        raise form.payload_error
    if form.payload is None:
        compact = form.envelope is not None and form.envelope.has("form-compact")
        raise MalformedError(
            "the file is a compact JWS" if compact else "there is no vCon in the envelope",
            code="form-compact" if compact else "jws-payload-invalid",
            hint=_COMPACT if compact else None,
        )
    return form.payload


def placed(error: MalformedError, file: Path) -> MalformedError:
    """Return an error about a file's content with the file's name."""
    return MalformedError(
        str(error),
        code=error.code,
        hint=error.hint or "onrecord check FILE shows what is wrong with it",
        where=Where(file=str(file), pointer=error.where.pointer if error.where else None),
    )


def _require_good_signature(
    data: bytes,
    file: Path,
    *,
    anchors: Sequence[x509.Certificate],
    chain: str,
    at: datetime | None,
    crls: Sequence[x509.CertificateRevocationList],
) -> None:
    if not anchors:
        raise UsageError(
            "the file is signed, and no certificate is known that could vouch for it",
            code="anchor-missing",
            hint="--anchor CERT verifies it first; --unverified takes it as it is",
            where=Where(file=str(file)),
        )
    report = verify(data, anchors=anchors, at=at, chain=chain, crls=crls)
    if report.verdict != "verified":
        raise SignatureError(
            f"the signature was not found good: {report.outcome}",
            code="source-not-verified",
            hint="onrecord verify FILE --anchor CERT says why; nothing was written",
            where=Where(file=str(file)),
        )
