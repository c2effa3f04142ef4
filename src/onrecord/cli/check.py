"""`onrecord check`: what is wrong with vCons, by code and place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text

from onrecord.base.errors import OnrecordError, UsageError, Where
from onrecord.base.findings import Finding, Severity
from onrecord.cli.files import expand, read_file
from onrecord.cli.output import JsonOption, console, emit, exit_with, note, visible
from onrecord.record.checks.checker import CheckResult, check

SEVERITY_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "dim"}
SHOWN_FINDINGS: Final = 200
"""Findings printed per file; the rest is counted, and --json has them all."""

_PROGRESS_FROM: Final = 20


class FailOn(Enum):
    """From which severity on findings make the command end with 1."""

    NEVER = "never"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class _Checked:
    """One file: its result, or the error that kept it from being checked."""

    path: Path
    result: CheckResult | None
    error: OnrecordError | None = None

    def to_json(self) -> dict[str, Any]:
        if self.result is not None:
            return {"file": str(self.path), **self.result.to_json()}
        document: dict[str, Any] = {
            "file": str(self.path),
            "form": None,
            "version": None,
            "extensions": [],
            "findings": [],
        }
        return document if self.error is None else {**document, **self.error.to_json()}

    def status(self, fail_on: FailOn) -> int:
        if self.result is None:
            return self.error.exit_code if self.error is not None else 3
        if self.result.is_fatal:
            return 2
        if fail_on is FailOn.NEVER:
            return 0
        return int(self.result.reaches(fail_on.value))


def command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="vCons or folders of them; - is standard input.")
    ],
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
    as_json: JsonOption = False,
) -> None:
    """Find what is wrong with vCons.

    Exit 0 clean, 1 findings at or above --fail-on, 2 a file that cannot be read, 3 a file of a version or form that
    this release does not check.
    """
    files = list(expand(paths))
    if not files:
        raise UsageError("no file looks like a vCon there", code="no-files", hint="name the files themselves")
    single = len(paths) == 1 and files == paths
    checked = [
        _check_one(path, profile=profile, strict=strict, single=single) for path in _with_progress(files)
    ]
    if as_json:
        emit({"files": [entry.to_json() for entry in checked]})
    else:
        out = console()
        for entry in checked:
            _print(out, entry)
        if len(checked) > 1:
            _print_total(out, checked)
    statuses = {entry.status(fail_on) for entry in checked}
    exit_with(next((status for status in (2, 3, 1) if status in statuses), 0))


def _with_progress(files: Sequence[Path]) -> Iterable[Path]:
    errors = Console(stderr=True)
    if len(files) < _PROGRESS_FROM or not errors.is_terminal:
        return files
    return track(files, description="checking", console=errors, transient=True)


def _check_one(path: Path, *, profile: str | None, strict: bool, single: bool) -> _Checked:
    try:
        return _Checked(path, check(read_file(path), profile=profile, strict=strict))
    except OnrecordError as error:
        if error.where is None:
            error.where = Where(file=str(path))
        if single or error.code == "profile-unknown":
            raise
        return _Checked(path, None, error)


def _print(out: Console, entry: _Checked) -> None:
    head = Text(visible(str(entry.path)), style="bold")
    if entry.result is None:
        if entry.error is not None:
            head.append(f": {visible(str(entry.error))} [{entry.error.code}]", style="bold red")
        out.print(head)
        return
    result = entry.result
    facts = [result.form or "not readable"]
    if result.version is not None:
        facts.append(f"core {result.version}")
    facts += [visible(name) for name in result.extensions[:10]]
    head.append(f": {', '.join(facts)}; {_counted(result)}", style="default")
    out.print(head)
    print_findings(out, result.findings)
    if result.left_out:
        out.print(Text(f"  {sum(result.left_out.values())} more findings were counted and not kept"))


def _counted(result: CheckResult) -> str:
    counts = Counter(finding.severity for finding in result.findings)
    counts.update(result.left_out)
    words: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
    parts = [
        f"{counts[severity]} {word}{'' if counts[severity] == 1 else 's'}"
        for severity, word in words.items()
        if counts[severity]
    ]
    return ", ".join(parts) or "no finding"


def print_findings(out: Console, findings: Sequence[Finding]) -> None:
    """Print findings, one per line: severity, code, place, message."""
    for finding in findings[:SHOWN_FINDINGS]:
        line = Text("  ")
        line.append(f"{finding.severity:8}", style=SEVERITY_STYLES[finding.severity])
        line.append(finding.code, style="bold")
        place = finding.pointer or "(top)"
        if finding.layer == "envelope":
            place = f"envelope {place}"
        line.append(f" {visible(place)}", style="cyan")
        line.append(f"  {visible(finding.message)}")
        out.print(line)
    if len(findings) > SHOWN_FINDINGS:
        out.print(Text(f"  and {len(findings) - SHOWN_FINDINGS} more; --json has them all"))


def _print_total(out: Console, checked: Sequence[_Checked]) -> None:
    clean = sum(entry.result is not None and entry.result.is_valid for entry in checked)
    unread = sum(entry.result is None or entry.result.is_fatal for entry in checked)
    out.print(
        Text(f"{len(checked)} files: {clean} without error, {len(checked) - clean - unread} with errors")
    )
    if unread:
        note(f"onrecord: {unread} files could not be checked")
