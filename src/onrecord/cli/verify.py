"""`onrecord verify`: is this signed vCon what its signer signed, and who vouches for the signer."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from onrecord.base.errors import MalformedError, UsageError
from onrecord.base.reports import Report
from onrecord.cli.files import read_file, write_file
from onrecord.cli.findings import print_findings
from onrecord.cli.lines import Lines, Segment
from onrecord.cli.output import (
    ConfigOption,
    JsonOption,
    console,
    emit,
    error_console,
    exit_with,
    note,
    visible,
)
from onrecord.cli.sources import placed
from onrecord.cli.trust import (
    AnchorOption,
    AtOption,
    ChainOption,
    ChainProfile,
    CrlOption,
    anchors_of,
    crls_of,
    named_certificates,
    next_step,
    time_of,
)
from onrecord.record.forms import verify
from onrecord.record.forms.signers import NamedSigner, SignedReport

if TYPE_CHECKING:
    from rich.console import Console

_STYLES: Final = {
    "verified": "green",
    "failed": "bold red",
    "not-checked": "dim",
    "not-evaluated": "yellow",
}


SHOWN_SIGNERS: Final = 10
"""Signers named to people: a file may have as many signatures as it likes, and --json names them all."""

MAX_NAME: Final = 160
"""Characters of a name printed: those in certificates come from the file."""


class Require(Enum):
    """How many signatures must hold."""

    ALL = "all"
    ANY = "any"


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A signed vCon; - is standard input.", readable=False)
    ],
    anchor: AnchorOption = None,
    require: Annotated[
        Require,
        typer.Option("--require", help="How many signatures must hold; any means one of each envelope."),
    ] = Require.ALL,
    require_anchor: Annotated[
        list[Path] | None,
        typer.Option(
            "--require-anchor",
            metavar="CERT",
            help="Trust this certificate, and ask that it vouches for a signature; may be given several times.",
            show_default=False,
        ),
    ] = None,
    at: AtOption = None,
    chain: ChainOption = ChainProfile.STRICT,
    crl: CrlOption = None,
    reject_after: Annotated[
        str | None,
        typer.Option(
            "--reject-after",
            metavar="TIME",
            help="Refuse vCons that say they were signed after this time, when the key was lost.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Raise warnings about lenient and legacy forms to errors.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="If it is verified, write the vCon that was signed to this new file, and nothing else.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify a signed vCon.

    Exit 0 verified, 1 failed, 2 not readable, 3 not evaluated: no anchor is known, or the file is not signed.
    """
    to_standard_output = out is not None and str(out) == "-"
    if as_json and to_standard_output:
        raise UsageError(
            "--json prints the report on standard output, so the vCon needs a file",
            code="out-missing",
            hint="name it with --out FILE",
        )
    data = read_file(file)
    required = named_certificates(require_anchor or ())
    anchors = anchors_of(anchor, config) if anchor or not required else ()
    try:
        report = verify(
            data,
            anchors=anchors,
            at=time_of(at, "--at"),
            chain=chain.value,
            require=require.value,
            required_anchors=required,
            crls=crls_of(crl),
            reject_after=time_of(reject_after, "--reject-after"),
            strict=strict,
        )
    except MalformedError as error:
        raise placed(error, file) from error
    written = out is not None and report.payload is not None
    if written and report.payload is not None:
        write_file(out, report.payload)
    if as_json:
        emit({**report.to_json(), **({"out": str(out)} if written else {})})
    else:
        # The document goes to standard output alone, if it goes there.
        print_report(error_console() if to_standard_output else console(), report)
        if report.verdict == "not-evaluated":
            note(f"  next: {next_step(report, (*anchors, *required))}")
        if out is not None and not written:
            note("onrecord: nothing was written, for nothing is verified")
    exit_with(report.exit_code)


def print_report(out: Console, report: Report) -> None:
    """Print the axes of a report, its findings, and the verdict as the last line."""
    rows = [
        (name, axis.result, "" if axis.count is None else str(axis.count), visible(axis.grounds))
        for name, axis in report.axes.items()
    ]
    if out.is_terminal:
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, result, count, grounds in rows:
            table.add_row(name, Text(result, _STYLES[result]), count, Text(grounds, overflow="fold"))
        out.print(table)
    else:  # a fingerprint stays in one piece for programs
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            out.print(Text("  ".join((*cells, row[3]))), soft_wrap=True)
    if isinstance(report, SignedReport):
        _print_signers(out, report)
    print_findings(out, report.findings)
    if report.not_checked:
        out.print(Text(f"not checked: {', '.join(report.not_checked)}"))
    verdict = Text(report.verdict, _STYLES[report.verdict])
    if report.outcome != report.verdict:
        verdict.append(f": {report.outcome}")
    out.print(verdict)


def _print_signers(out: Console, report: SignedReport) -> None:
    """Print who signed what and when, or who the certificates beside the signatures say it was."""
    lines = Lines(out)
    for signer in report.signers[:SHOWN_SIGNERS]:
        lines.add(*_signer_line(signer))
    more = len(report.signers) - SHOWN_SIGNERS
    if more > 0:
        lines.add([("", "")], [(f"and {more} more signatures; --json names them all", "dim")])
    if report.signers:
        members = {"uuid": report.uuid, "updated_at": report.updated_at}
        said = [f"{name} {_short(text)}" for name, text in members.items() if text]
        lines.add([("vcon          ", "")], [(", ".join(said) or "without uuid and updated_at", "")])
    lines.flush()


def _signer_line(signer: NamedSigner) -> tuple[list[Segment], list[Segment]]:
    name = _short(signer.subject or "no subject")
    if signer.names:
        name += f" ({_short(', '.join(signer.names))})"
    if signer.anchor is not None:
        grounds, style = f", vouched for by {_short(signer.anchor.subject or signer.anchor.sha256)}", ""
    else:
        grounds, style = ", by its own word: nobody vouches for this name", "yellow"
    return [("signer        ", "")], [(name, "bold"), (grounds, style)]


def _short(text: str) -> str:
    """Return a text that others chose, safe for a terminal and not longer than a person reads."""
    return visible(text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…")
