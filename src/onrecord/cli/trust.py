"""Options of the commands that verify: whom to trust, at which time, and how strictly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from onrecord.base.configuration import Configuration
from onrecord.base.dates import parse_date
from onrecord.base.errors import ConfigurationError, MalformedError, UsageError, Where
from onrecord.base.reports import Report
from onrecord.cli.output import note, visible
from onrecord.record.forms.certificates import load_certificates
from onrecord.record.forms.revocation import load_crls

if TYPE_CHECKING:
    from cryptography import x509

NO_ANCHOR: Final = "name the certificate you trust with --anchor, or a configuration with --config"


class ChainProfile(Enum):
    """How certificates are held to account."""

    STRICT = "strict"
    COMPAT = "compat"


AnchorOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--anchor",
        metavar="CERT",
        help="Trust this certificate, or those of a folder; may be given several times; "
        "default: trust.vcon of the configuration.",
        show_default=False,
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="TIME", help="Check certificates at this RFC 3339 time.", show_default=False
    ),
]
ChainOption = Annotated[
    ChainProfile,
    typer.Option("--chain", help="compat accepts issuers that are no CAs, with a warning."),
]
CrlOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--crl",
        metavar="FILE",
        help="Look up certificates in this list of revoked ones; may be given several times; none is ever fetched.",
        show_default=False,
    ),
]


def anchors_of(
    paths: Sequence[Path] | None, config: Path | None, *, whole: bool = False
) -> tuple[x509.Certificate, ...]:
    """Return the trusted certificates: those named, else those of the configuration found, else none.

    With `whole` a configuration that is there and cannot be used is an error, for callers that go on without anchors.

    Raises `ConfigurationError` for a file that cannot be read, for a folder without certificates, and for the
    configuration if it was named.
    """
    if paths:
        return named_certificates(paths)
    try:
        return load_certificates(Configuration.load(config).trust.vcon)
    except ConfigurationError as error:
        if config is not None or (whole and error.code != "configuration-missing"):
            raise
        if error.code not in ("configuration-missing", "certificate-missing"):
            note(f"onrecord: the configuration is not used: {visible(str(error))} [{error.code}]")
        return ()


def named_certificates(paths: Sequence[Path]) -> tuple[x509.Certificate, ...]:
    """Return the certificates of the files and folders named. One without any is refused: who names it means to trust.

    Raises `ConfigurationError` with code "certificate-missing" or "certificate-malformed".
    """
    found: list[x509.Certificate] = []
    for path in paths:
        certificates = load_certificates(path)
        if not certificates:
            raise ConfigurationError(
                "there is no certificate in it",
                code="certificate-missing",
                hint="put files that end in .pem, .crt, .cer or .der there, or name another folder",
                where=Where(file=str(path)),
            )
        found += certificates
    return tuple(found)


def crls_of(paths: Sequence[Path] | None) -> tuple[x509.CertificateRevocationList, ...]:
    """Return the lists of revoked certificates of the files named."""
    return tuple(crl for path in paths or () for crl in load_crls(path))


def time_of(text: str | None, option: str) -> datetime | None:
    """Read the value of an option that is a time.

    Raises `UsageError` with code "date-invalid".
    """
    if text is None:
        return None
    try:
        return parse_date(text)
    except MalformedError:
        raise UsageError(
            f"{option} is no RFC 3339 date-time with offset",
            code="date-invalid",
            hint="write it like 2026-11-30T00:00:00Z",
        ) from None


def next_step(report: Report, anchors: Sequence[x509.Certificate]) -> str:
    """Return what a person can do about a file that was not evaluated."""
    if report.outcome == "unsigned":
        return "an unsigned vCon has nothing to verify; ask for the signed form"
    if report.outcome == "encrypted":
        return "onrecord decrypt FILE --key KEY --out SIGNED opens it and verifies what is inside"
    return NO_ANCHOR if not anchors else "the findings above say what could not be told"
