"""`onrecord verify`: is this signed vCon what its signer signed, and who vouches for the signer."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from onrecord.base.configuration import Configuration
from onrecord.base.dates import parse_date
from onrecord.base.errors import ConfigurationError, MalformedError, UsageError, Where
from onrecord.base.reports import Report
from onrecord.cli.check import print_findings
from onrecord.cli.files import read_file
from onrecord.cli.output import ConfigOption, JsonOption, console, emit, exit_with, note, visible
from onrecord.record.certificates import load_certificates
from onrecord.record.forms import verify

if TYPE_CHECKING:
    from cryptography import x509

_STYLES: Final = {
    "verified": "green",
    "failed": "bold red",
    "not-checked": "dim",
    "not-evaluated": "yellow",
}
_NO_ANCHOR: Final = "name the certificate you trust with --anchor, or a configuration with --config"


class ChainProfile(Enum):
    """How certificates are held to account."""

    STRICT = "strict"
    COMPAT = "compat"


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A signed vCon; - is standard input.")],
    anchor: Annotated[
        list[Path] | None,
        typer.Option(
            "--anchor",
            metavar="CERT",
            help="Trust this certificate, or those of a folder; default: trust.vcon of the configuration.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="Check certificates at this RFC 3339 time.", show_default=False
        ),
    ] = None,
    chain: Annotated[
        ChainProfile,
        typer.Option("--chain", help="compat accepts issuers that are no CAs, with a warning."),
    ] = ChainProfile.STRICT,
    strict: Annotated[
        bool, typer.Option("--strict", help="Raise warnings about lenient and legacy forms to errors.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify a signed vCon.

    Exit 0 verified, 1 failed, 2 not readable, 3 not evaluated: no anchor is known, or the file is not signed.
    """
    data = read_file(file)
    anchors = _anchors(anchor, config)
    try:
        report = verify(data, anchors=anchors, at=_check_time(at), chain=chain.value, strict=strict)
    except MalformedError as error:
        raise MalformedError(
            str(error),
            code=error.code,
            hint=error.hint or "onrecord check FILE shows what is wrong with it",
            where=Where(file=str(file), pointer=error.where.pointer if error.where else None),
        ) from error
    if as_json:
        emit(report.to_json())
    else:
        _print(report)
        if report.verdict == "not-evaluated":
            note(f"  next: {_next_step(report, anchors)}")
    exit_with(report.exit_code)


def _next_step(report: Report, anchors: tuple[x509.Certificate, ...]) -> str:
    if report.outcome == "unsigned":
        return "an unsigned vCon has nothing to verify; ask for the signed form"
    if report.outcome == "encrypted":
        return "decrypt it with the recipient's key, then verify what is inside"
    return _NO_ANCHOR if not anchors else "the findings above say what could not be told"


def _check_time(at: str | None) -> datetime | None:
    if at is None:
        return None
    try:
        return parse_date(at)
    except MalformedError:
        raise UsageError(
            "--at is no RFC 3339 date-time with offset",
            code="date-invalid",
            hint="write it like 2026-11-30T00:00:00Z",
        ) from None


def _anchors(paths: list[Path] | None, config: Path | None) -> tuple[x509.Certificate, ...]:
    """Return the trusted certificates: those named, else those of the configuration found, else none."""
    if paths:
        return tuple(certificate for path in paths for certificate in load_certificates(path))
    try:
        return load_certificates(Configuration.load(config).trust.vcon)
    except ConfigurationError as error:
        if config is not None:
            raise
        if error.code not in ("configuration-missing", "certificate-missing"):
            note(f"onrecord: the configuration is not used: {visible(str(error))} [{error.code}]")
        return ()


def _print(report: Report) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, axis in report.axes.items():
        count = "" if axis.count is None else str(axis.count)
        table.add_row(name, Text(axis.result, _STYLES[axis.result]), count, Text(visible(axis.grounds)))
    out = console()
    out.print(table)
    print_findings(out, report.findings)
    if report.not_checked:
        out.print(Text(f"not checked: {', '.join(report.not_checked)}"))
    verdict = Text(report.verdict, _STYLES[report.verdict])
    if report.outcome != report.verdict:
        verdict.append(f": {report.outcome}")
    out.print(verdict)
