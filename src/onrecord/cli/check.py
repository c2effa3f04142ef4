"""`onrecord check`: what is wrong with vCons, by code and place, and what to change."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from onrecord.base.errors import ConfigurationError, OnrecordError, UsageError, Where
from onrecord.cli.check_reports import Checked, JsonReport, Report, TextReport
from onrecord.cli.files import expand, read_file
from onrecord.cli.findings import explain, print_explanation, print_findings
from onrecord.cli.interrupts import INTERRUPTED, Interrupts
from onrecord.cli.output import ConfigOption, JsonOption, console, emit, exit_with, note, visible
from onrecord.cli.progress import Progress
from onrecord.cli.thresholds import FailOn
from onrecord.record.checks.checker import check
from onrecord.record.checks.suppression import Suppressions
from onrecord.record.vcon.versions import profile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """How files are held to account in this run."""

    profile: str | None
    strict: bool
    fail_on: FailOn
    suppress: Suppressions

    def status(self, checked: Checked) -> int:
        """Return the exit status that one file asks for."""
        if checked.result is None:
            return checked.error.exit_code if checked.error is not None else 3
        if checked.result.is_fatal:
            return 2
        return int(self.fail_on is not FailOn.NEVER and checked.result.reaches(self.fail_on.value))


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="vCons or folders of them; - is standard input.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="VERSION",
            help="Hold the files to this version of vCon core.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Raise warnings about lenient and legacy forms to errors.")
    ] = False,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="End with 1 from this severity on.")
    ] = FailOn.ERROR,
    suppress: Annotated[
        list[str] | None,
        typer.Option(
            "--suppress",
            metavar="CODE[=POINTER]",
            help="Count findings of this code, at and below this place, and do not report them; "
            "may be given several times.",
            show_default=False,
        ),
    ] = None,
    explained: Annotated[
        str | None,
        typer.Option("--explain", metavar="CODE", help="Say what a code means and what to change."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what is wrong with vCons, and say what to change.

    Exit 0 clean, 1 findings at or above --fail-on, 2 a file or folder that cannot be read, 3 a file that could not be
    checked for another reason.
    """
    _escape_what_cannot_be_printed()
    if explained is not None:
        _explain(explained, paths, as_json=as_json)
        return
    if not paths:
        raise UsageError(
            "no file is named",
            code="usage",
            hint="onrecord check FILE, or a folder; --help lists the options",
        )
    if profile is not None:
        profile_of({}, profile=profile)
    rules = _Rules(
        profile=profile, strict=strict, fail_on=fail_on, suppress=_suppressions(suppress or (), config)
    )
    files = expand(paths)
    first = next(files, None)
    if first is None:
        raise UsageError(
            "no file looks like a vCon there",
            code="no-files",
            hint="name the files themselves",
            where=Where(file=", ".join(map(str, paths))),
        )
    report = JsonReport() if as_json else TextReport(console())
    exit_with(_run(chain([first], files), report, rules, single=len(paths) == 1 and first == paths[0]))


def _escape_what_cannot_be_printed() -> None:
    """Print characters that the terminal's encoding lacks as escapes: names come from the files."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _explain(code: str, paths: list[Path] | None, *, as_json: bool) -> None:
    if paths:
        raise UsageError(
            "--explain takes a code and no files", code="usage", hint="onrecord check --explain CODE"
        )
    document = explain(code)
    if as_json:
        emit(document)
    else:
        print_explanation(console(), document)


def _suppressions(named: Iterable[str], config: Path | None) -> Suppressions:
    """Return what the options and the configuration say is not to be reported."""
    rules = [(code, pointer) for code, _, pointer in (entry.partition("=") for entry in named)]
    Suppressions.of(rules)
    from onrecord.base.configuration import Configuration

    try:
        configuration = Configuration.load(config)
    except ConfigurationError as error:
        if config is not None:
            raise
        if error.code != "configuration-missing":
            note(f"onrecord: the configuration is not used: {visible(str(error))} [{error.code}]")
        return Suppressions.of(rules)
    try:
        return Suppressions.of(
            rules + [(entry.code, entry.pointer) for entry in configuration.check.suppress]
        )
    except UsageError as error:
        error.where = Where(file=str(configuration.file), pointer="/check/suppress")
        raise


def _run(files: Iterator[Path | UsageError], report: Report, rules: _Rules, *, single: bool) -> int:
    """Check the files and print them as they come; return the exit status."""
    statuses: set[int] = set()
    progress = Progress("checking")
    with Interrupts() as interrupts:
        while not interrupts.asked:
            try:
                with interrupts.allowed:
                    item = next(files, None)
                    if item is None:
                        break
                    checked = _check_one(item, rules, progress, single=single)
            except KeyboardInterrupt:
                interrupts.asked = True
                break
            except OnrecordError:
                progress.clear()
                raise
            progress.clear()
            report.add(checked)
            statuses.add(rules.status(checked))
        progress.clear()
        report.end(interrupted=interrupts.asked)
    if interrupts.asked:
        return INTERRUPTED
    return next((status for status in (2, 3, 1) if status in statuses), 0)


def _check_one(item: Path | UsageError, rules: _Rules, progress: Progress, *, single: bool) -> Checked:
    if isinstance(item, UsageError):
        return Checked(item.where.file or "" if item.where is not None else "", None, item)
    file = str(item)
    progress.begin(file)
    size = 0
    try:
        data = read_file(item)
        size = len(data)
        result = check(data, profile=rules.profile, strict=rules.strict, suppress=rules.suppress)
        return Checked(file, result)
    except OnrecordError as error:
        if error.where is None:
            error.where = Where(file=file)
        if single:
            raise
        return Checked(file, None, error)
    except Exception as error:
        # A fault of ours in one file of ten thousand must not cost the other ones their check.
        if single or os.environ.get("ONRECORD_DEBUG"):
            raise
        wrapped = OnrecordError(
            f"internal error ({type(error).__name__})",
            code="internal-error",
            hint="set ONRECORD_DEBUG=1 to see where; please report it",
            where=Where(file=file),
        )
        return Checked(file, None, wrapped)
    finally:
        progress.end(size)


__all__ = ["FailOn", "command", "print_findings"]
