"""`onrecord import`: vCons out of the logs that agents wrote themselves, with an account of every record."""

from __future__ import annotations

import hashlib
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from onrecord.base.errors import OnrecordError, UsageError
from onrecord.cli.files import ReportOption, require_new, write_file
from onrecord.cli.import_progress import ImportProgress
from onrecord.cli.import_reports import print_report
from onrecord.cli.interrupts import INTERRUPTED, Interrupts
from onrecord.cli.output import ConfigOption, JsonOption, console, emit_parts, exit_with, json_text, note
from onrecord.cli.thresholds import FailOn
from onrecord.record.logs.importing import Import, ImportReport, Options, Signing
from onrecord.record.logs.interface import FORMATS

TARGET: Final = Path("vcons")
"""Folder for the vCons where none is named."""


class MediaPlace(Enum):
    """Where pictures and documents go."""

    DEFAULT = "default"
    INLINE = "inline"
    ATTACH = "attach"
    HASH = "hash"


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Logs, or folders of them.", show_default=False, readable=False),
    ] = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Put the vCons into this folder.", readable=False)
    ] = TARGET,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"Take named files for this format, and look for no other in folders: {', '.join(FORMATS)}.",
            show_default=False,
        ),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace credentials, visibly. Without it texts are not changed.")
    ] = False,
    no_rest: Annotated[
        bool, typer.Option("--no-rest", help="Leave out native members that have no place in a vCon.")
    ] = False,
    media: Annotated[
        MediaPlace,
        typer.Option(
            "--media",
            help="Pictures and documents: inline in the events, attach as attachments, or hash only; "
            "default: what users gave is attached, what tools gave stays.",
        ),
    ] = MediaPlace.DEFAULT,
    signed: Annotated[bool, typer.Option("--sign", help="Sign each vCon.")] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="With --sign, private key: a PEM file, or a URI; default: keys.record of the configuration.",
            show_default=False,
        ),
    ] = None,
    certificate: Annotated[
        list[Path] | None,
        typer.Option(
            "--certificate",
            metavar="CERT",
            help="Certificates of the key, its own first; may be given several times; "
            "default: keys.record_chain of the configuration.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Read also what has not changed since the last import.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Write over vCons that tell more than the logs that are imported now."
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Look for every text of the logs in the vCons that were made.")
    ] = False,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="End with 1 from this severity on.")
    ] = FailOn.ERROR,
    report: ReportOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make vCons out of the logs that agents wrote themselves, and account for every record.

    Formats are told by content. Sub-agents are sessions of the vCon of the session that started them. The same log
    gives the same vCon, so a second import updates it, and files that have not changed are not read again.

    Exit 0 done, 1 findings at or above --fail-on, 2 a path or file that cannot be read, 3 an error of ours.
    """
    if not paths:
        raise UsageError(
            "no path is named",
            code="usage",
            hint="onrecord import ~/.claude/projects, or any folder or file; --help lists the options",
        )
    if verify and no_rest:
        raise UsageError(
            "--verify looks for every text of the logs, and --no-rest leaves some out",
            code="usage",
            hint="give one of them",
        )
    require_new(report)
    work = Import(
        paths,
        to=to,
        options=Options(redact=redact, with_rest=not no_rest, media=media.value),
        format=log_format,
        signing=_signing(key, certificate, config, is_asked=signed),
        everything=everything or replace,
        replaces=replace,
        verify=verify,
        watcher=(progress := ImportProgress()),
    )
    exit_with(_run(work, progress, report, fail_on, as_json=as_json))


def _signing(
    key: str | None, certificate: list[Path] | None, config: Path | None, *, is_asked: bool
) -> Signing | None:
    if not is_asked:
        if key or certificate:
            raise UsageError(
                "--key and --certificate are for --sign", code="usage", hint="add --sign, or leave them out"
            )
        return None
    from onrecord.cli.sign import key_of
    from onrecord.record.forms import sign

    signer, chain = key_of(key, certificate, config)
    # The certificate names the key; two runs with the same one give the same signed vCons but for the time.
    leaf = hashlib.sha256(chain[0].tbs_certificate_bytes).hexdigest()
    return Signing(
        sign=lambda text: sign(text, signer=signer, chain=chain, alg=None, gzip=False), identity=leaf
    )


def _run(
    work: Import, progress: ImportProgress, report_file: Path | None, fail_on: FailOn, *, as_json: bool
) -> int:
    with Interrupts() as interrupts:
        try:
            with interrupts.allowed:
                work.run()
        except KeyboardInterrupt:
            interrupts.asked = True
        except OnrecordError:
            progress.clear()
            raise
        progress.clear()
        report = work.report()
        report.is_interrupted = interrupts.asked
        document = report.to_json()
        if report_file is not None:
            write_file(report_file, json_text(document).encode("utf-8") + b"\n")
        if as_json:
            emit_parts({**document, "files": iter(document["files"])})
        else:
            print_report(console(), report)
    if interrupts.asked:
        note("onrecord: interrupted; the vCons that were made until then are whole")
        return INTERRUPTED
    return _status(report, fail_on)


def _status(report: ImportReport, fail_on: FailOn) -> int:
    if report.has_fatal:
        return 2
    if report.has_failed:
        return 3
    return int(fail_on is not FailOn.NEVER and report.reaches(fail_on.value))
