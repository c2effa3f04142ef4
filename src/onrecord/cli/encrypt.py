"""`onrecord encrypt`: a signed vCon that only its recipients can open."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.base.errors import CertificateError, MalformedError, UsageError, Where
from onrecord.cli.files import OutOption, read_file, require_out, write_file
from onrecord.cli.output import JsonOption, emit, note
from onrecord.cli.sources import placed
from onrecord.record.forms import ENCRYPTED, encrypt, open_form
from onrecord.record.forms.certificates import load_certificates

if TYPE_CHECKING:
    from cryptography import x509


class Alg(Enum):
    """Key management that is written."""

    RSA_OAEP = "RSA-OAEP"
    RSA_OAEP_256 = "RSA-OAEP-256"
    ECDH_ES = "ECDH-ES+A256KW"


class Enc(Enum):
    """Content encryption that is written."""

    CBC = "A256CBC-HS512"
    GCM = "A256GCM"


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A signed vCon; - is standard input.", readable=False)
    ],
    recipient: Annotated[
        list[Path],
        typer.Option(
            "--recipient",
            metavar="CERT",
            help="Certificate of somebody who shall be able to open it; may be given several times.",
            show_default=False,
        ),
    ],
    alg: Annotated[
        Alg | None,
        typer.Option("--alg", help="Key management; default: the usual one of each key.", show_default=False),
    ] = None,
    enc: Annotated[Enc, typer.Option("--enc", help="Content encryption.")] = Enc.CBC,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the signed form first.")] = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Encrypt a signed vCon for its recipients. Of a file with several certificates the first counts.

    Whom a certificate belongs to is for you to know: nothing vouches for recipients.

    Exit 0 encrypted, 1 a certificate cannot be encrypted for, 2 not readable, or no signed vCon.
    """
    require_out(out, as_json=as_json)
    data = read_file(file)
    recipients = [_first_certificate(path) for path in recipient]
    try:
        encrypted = encrypt(
            data,
            recipients=recipients,
            alg=alg.value if alg is not None else None,
            enc=enc.value,
            gzip=gzip,
        )
        form = open_form(encrypted)
    except MalformedError as error:
        raise placed(error, file) from error
    except CertificateError as error:
        error.where = _place_of(error, recipient)
        raise
    write_file(out, encrypted)
    assert form.encrypted is not None  # what was just written is read again
    count = len(form.encrypted.recipients)
    algs = sorted({str(one.header["alg"]) for one in form.encrypted.recipients})
    if as_json:
        emit(
            {
                "file": str(file),
                "out": str(out),
                "form": ENCRYPTED,
                "uuid": form.encrypted.shared("uuid"),
                "alg": algs[0] if len(algs) == 1 else algs,
                "enc": enc.value,
                "recipients": count,
                "findings": [],
            }
        )
        return
    note(f"encrypted with {enc.value} for {count} recipient{'s'[: count > 1]} ({', '.join(algs)})")


def _place_of(error: CertificateError, named: Sequence[Path]) -> Where | None:
    """Return the file of the recipient that an error is about."""
    _, _, index = ((error.where.pointer if error.where is not None else None) or "").rpartition(
        "/recipients/"
    )
    return Where(file=str(named[int(index)])) if index.isdecimal() else error.where


def _first_certificate(path: Path) -> x509.Certificate:
    if path.is_dir():
        raise UsageError(
            "this is a folder, and a recipient is one certificate",
            code="recipient-folder",
            hint="name each file with --recipient",
            where=Where(file=str(path)),
        )
    certificates = load_certificates(path)
    if not certificates:
        raise CertificateError(
            "the file holds no certificate", code="certificate-malformed", where=Where(file=str(path))
        )
    return certificates[0]
