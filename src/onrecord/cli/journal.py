"""`onrecord journal`: verify a tamper-evident journal offline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from rich.table import Table
from rich.text import Text

from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, UsageError
from onrecord.base.keys import read_trusted_keys
from onrecord.base.reports import Report
from onrecord.cli.output import ConfigOption, JsonOption, console, emit, exit_with, note, visible
from onrecord.record.ledger.verify import read_note, verify_journal

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_STYLES = {"verified": "green", "failed": "bold red", "not-evaluated": "yellow", "not-checked": "dim"}
_SHOWN_FINDINGS = 50


@app.callback()
def journal() -> None:
    """Verify the tamper-evident journals of authority and recorder."""


@app.command()
def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Journal files, journal-N.db.")],
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(
            "--checkpoint",
            metavar="NOTE",
            help="A checkpoint kept outside of the journal; may be given several times.",
        ),
    ] = None,
    trust: Annotated[
        Path | None,
        typer.Option(
            "--trust", metavar="FILE", help="Public keys; default: trust.journal of the configuration."
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no record was changed, and that none is missing up to the checkpoints that you hold.

    Exit 0 verified, 1 failed, 2 usage, 3 something could not be told: a key is unknown, or no checkpoint from
    outside shows where the journal ends.
    """
    report = verify_journal(
        files,
        checkpoints=[read_note(path) for path in checkpoint or ()],
        trusted=_trusted(trust, config),
    )
    if as_json:
        emit(report.to_json())
    else:
        _print(report)
    exit_with(report.exit_code)


def _trusted(trust: Path | None, config: Path | None) -> Mapping[str, Ed25519PublicKey] | None:
    """Return the trusted keys; None if no trust file was named and there is no configuration either."""
    if trust is not None:
        return read_trusted_keys(trust)
    try:
        return read_trusted_keys(Configuration.load(config).trust.journal)
    except ConfigurationError as error:
        if config is not None or error.code != "configuration-missing":
            raise
        note("onrecord: no trust file; name one with --trust, or a configuration with --config")
        return None


def _print(report: Report) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, axis in report.axes.items():
        count = "" if axis.count is None else str(axis.count)
        table.add_row(name, Text(axis.result, _STYLES[axis.result]), count, Text(visible(axis.grounds)))
    out = console()
    out.print(table)
    for item in report.findings[:_SHOWN_FINDINGS]:
        file = str(item.data["file"]) if item.data else ""
        place = visible(f"{file}{item.pointer}")
        out.print(
            Text(f"{item.severity}: {item.code}: {visible(item.message)}" + (f" ({place})" if place else ""))
        )
    if len(report.findings) > _SHOWN_FINDINGS:
        out.print(f"and {len(report.findings) - _SHOWN_FINDINGS} more findings (--json shows them)")
    out.print(Text(f"not checked: {', '.join(report.not_checked)}"))
    out.print(Text(f"{report.verdict}: {report.outcome}", _STYLES[report.verdict]))
    if report.outcome == "end-not-provable":
        note("  next: pass a checkpoint that a caller or another machine has kept: --checkpoint NOTE")


def _refuse(name: str) -> None:
    raise UsageError(
        f"onrecord journal {name} comes with a later part of onrecord and is not built yet",
        code="not-built-yet",
        hint="onrecord journal verify checks everything that a journal file shows",
    )


_LATER: Mapping[str, str] = {
    "fsck": "recompute everything and report per axis",
    "checkpoint": "print the newest signed checkpoint",
    "prove": "write the offline proof of one record",
    "export": "write the records as JSON Lines",
}


def _add_later(name: str, does: str) -> None:
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    @app.command(name=name, help=f"{does.capitalize()} (not built yet).", context_settings=settings)
    def later(context: typer.Context) -> None:
        _refuse(context.info_name or name)


for _name, _does in _LATER.items():
    _add_later(_name, _does)
