"""`onrecord upgrade`: a vCon of an older core version becomes one of the present version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from onrecord.base.errors import MalformedError, UsageError
from onrecord.cli.files import OutOption, ReportOption, read_file, require_new, require_out, write_file
from onrecord.cli.findings import print_findings
from onrecord.cli.lines import Lines, Segment
from onrecord.cli.output import ConfigOption, JsonOption, emit, error_console, exit_with, json_text, visible
from onrecord.cli.places import places
from onrecord.cli.sources import UnverifiedOption, open_source, placed
from onrecord.cli.trust import AnchorOption, AtOption, ChainOption, ChainProfile, CrlOption, time_of
from onrecord.record.checks.checker import CheckResult, check
from onrecord.record.forms import SIGNED, Form
from onrecord.record.migration import Change, Migration, migrate
from onrecord.record.migration.report import ACTIONS, STEPS
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.model import Vcon

STYLES: Final = {"converted": "green", "derived": "green", "dropped": "dim", "kept": "yellow"}
"""Colours of what happened: yellow is for a person to look at."""


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A vCon of any core version; - is standard input.", readable=False
        ),
    ],
    out: OutOption = None,
    report: ReportOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and write no vCon.")
    ] = False,
    anchor: AnchorOption = None,
    at: AtOption = None,
    chain: ChainOption = ChainProfile.STRICT,
    crl: CrlOption = None,
    unverified: UnverifiedOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a vCon of the present core version, 0.5.0, out of an older one.

    What cannot be converted stays and is reported. A signed vCon becomes an unsigned new instance that refers to it.
    A vCon that needs no upgrade comes out byte for byte.

    Exit 0 done, 1 done but the result has errors, or the signature is not good, 2 not readable.
    """
    if not dry_run:
        require_out(out, as_json=as_json)
    _require_one_output(out, report, as_json=as_json, dry_run=dry_run)
    require_new(None if dry_run else out, report)
    data = read_file(file)
    with paused_collection(len(data)):
        form = open_source(
            data,
            file,
            anchors=anchor or (),
            at=time_of(at, "--at"),
            chain=chain.value,
            crls=crl or (),
            unverified=unverified,
            config=config,
        )
        migration, text = _migrate(form, file)
        result = data if text is None else text
        checked = check(result)
    document = {
        "file": str(file),
        "out": None if dry_run or out is None else str(out),
        "form": form.kind,
        "uuid": migration.vcon.uuid,
        **migration.report.to_json(),
        "findings": [finding.to_json() for finding in checked.findings],
    }
    if checked.left_out:
        document["findingsLeftOut"] = dict(checked.left_out)
    if not dry_run:
        write_file(out, result)
    if report is not None:
        write_file(report, json_text(document).encode("utf-8"))
    if as_json:
        emit(document)
    else:
        _print(file, form, migration, checked)
    exit_with(0 if checked.is_valid else 1)


def _require_one_output(out: Path | None, report: Path | None, *, as_json: bool, dry_run: bool) -> None:
    """Refuse two documents on one standard output, and two in one file."""
    taken = as_json or (not dry_run and (out is None or str(out) == "-"))
    if report is not None and ((str(report) == "-" and taken) or (not dry_run and report == out)):
        raise UsageError(
            "the report and the vCon cannot go to the same place",
            code="out-missing",
            hint="name one file with --out and another one with --report",
        )


def _migrate(form: Form, file: Path) -> tuple[Migration, bytes | None]:
    """Return the migration, and its text if it is another one than before."""
    if form.payload is None:  # seen to by open_source
        raise MalformedError("there is no vCon in the file", code="form-unknown")
    try:
        migration = migrate(Vcon.of_document(form.payload), new_instance=form.kind == SIGNED)
        return migration, migration.to_bytes() if migration.report.is_changed else None
    except MalformedError as error:
        raise placed(error, file) from error


def _print(file: Path, form: Form, migration: Migration, checked: CheckResult) -> None:
    report = migration.report
    out = error_console()
    lines = Lines(out)
    what = f"now {report.target_version}" if report.is_changed else "nothing to upgrade"
    lines.add([(visible(str(file)), "bold"), (f": {form.kind}, core {report.source_version}, {what}", "")])
    for head, body in _changes(report.changes):
        lines.add(head, body)
    if not report.is_reversible:
        lost = report.totals()["irreversible"]
        text = f"{lost} of these, marked !, cannot be turned back; what was said and sent is the same"
        lines.add([("  ", "")], [(text, "")])
    if report.is_changed and form.kind == SIGNED:
        lines.add(
            [("  ", "")], [("the result is a new instance and not signed; onrecord sign does that", "")]
        )
    serious = [finding for finding in checked.findings if finding.severity != "info"]
    if serious:
        text = "What the source has no better answer to, and onrecord check reports in the result:"
        lines.add([], [(text, "")])
    lines.flush()
    print_findings(out, serious)


def _changes(changes: Sequence[Change]) -> Iterator[tuple[list[Segment], list[Segment]]]:
    """Yield head and body of a line for each kind of change: what was done, how often, where."""
    groups: dict[tuple[int, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((ACTIONS.index(change.action), change.code), []).append(change)
    for (number, code), group in sorted(groups.items(), key=lambda entry: entry[0][0]):
        action = ACTIONS[number]
        mark = "" if all(change.reversible for change in group) else "!"
        head = [
            (f"  {action:9}", STYLES[action]),
            (f" {len(group):6}", ""),
            (f"{mark:1} ", "bold red"),
            (f"{code:22}", "bold"),
        ]
        where = places([_place(change) for change in group])
        yield head, [(f"{STEPS[code].meaning}: ", ""), (where, "cyan")]


def _place(change: Change) -> str:
    text = change.pointer or "(top)"
    if change.data and "reason" in change.data:
        text += f" ({change.data['reason']})"
    return text
