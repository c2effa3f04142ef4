"""`onrecord redact`: a copy of a vCon without what must not leave, a report of what went, and the proof of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from onrecord.base.errors import MalformedError, UsageError
from onrecord.base.findings import Finding
from onrecord.cli.files import OutOption, ReportOption, read_file, require_new, require_out, write_file
from onrecord.cli.findings import print_findings
from onrecord.cli.output import (
    ConfigOption,
    JsonOption,
    emit,
    error_console,
    exit_with,
    json_text,
    note,
    visible,
)
from onrecord.cli.places import places
from onrecord.cli.sources import UnverifiedOption, open_source, placed
from onrecord.cli.trust import AnchorOption, AtOption, ChainOption, ChainProfile, CrlOption, time_of
from onrecord.record.checks.checker import check
from onrecord.record.redaction import PROFILES, Redaction, Rules, compare, redact
from onrecord.record.redaction.rules import is_file_name, profile_text
from onrecord.record.vcon.model import Vcon

SHOWN_IDLE: Final = 20
"""Rules without effect that are named on the screen; the report in JSON has them all."""


def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A vCon; - is standard input.", show_default=False, readable=False
        ),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rules",
            metavar="NAME|FILE",
            help=f"Apply a profile ({', '.join(PROFILES)}) or a rule file; may be given several times.",
            show_default=False,
        ),
    ] = None,
    out: OutOption = None,
    report: ReportOption = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Write nothing unless what was taken out is nowhere else in the result."
        ),
    ] = False,
    compare_with: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="REDACTED",
            help="Make nothing; prove that this file is a redaction of FILE.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--type", metavar="TEXT", help="Call the redaction this.", show_default=False),
    ] = None,
    allow_extension: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-extension",
            metavar="NAME",
            help="Go on although this extension is not known; its members are left out; "
            "may be given several times.",
            show_default=False,
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain", metavar="NAME", help="Make the new uuid one of this domain.", show_default=False
        ),
    ] = None,
    salt: Annotated[
        Path | None,
        typer.Option(
            "--salt",
            metavar="FILE",
            help="Hash with the bytes of this file, so that exports can be compared.",
            show_default=False,
        ),
    ] = None,
    source_url: Annotated[
        str | None,
        typer.Option(
            "--source-url",
            metavar="URL",
            help="Say where the less redacted vCon lies, encrypted; needs --source-hash.",
            show_default=False,
        ),
    ] = None,
    source_hash: Annotated[
        str | None,
        typer.Option(
            "--source-hash", metavar="HASH", help="The content_hash of what lies there.", show_default=False
        ),
    ] = None,
    pseudonyms: Annotated[
        Path | None,
        typer.Option(
            "--pseudonyms",
            metavar="FILE",
            help="Keep what each pseudonym stands for in this new file. It is a secret.",
            show_default=False,
        ),
    ] = None,
    anchor: AnchorOption = None,
    at: AtOption = None,
    chain: ChainOption = ChainProfile.STRICT,
    crl: CrlOption = None,
    unverified: UnverifiedOption = False,
    show: Annotated[
        str | None,
        typer.Option(
            "--show", metavar="NAME", help="Print a profile, to read or to start from.", show_default=False
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a copy of a vCon without what must not leave.

    The result is a new, unsigned vCon that names the one it was made from; onrecord sign signs it. Indices hold:
    what is taken out whole leaves {}. The report says what went, never what it said.

    Exit 0 done, 1 something leaked or the result has errors that the source has not, 2 not readable or refused.
    """
    if show is not None:
        sys.stdout.write(profile_text(show))
        return
    if file is None:
        raise UsageError(
            "no file is named", code="usage", hint=f"onrecord redact FILE --rules NAME; {_profiles_hint()}"
        )
    source = read_file(file)
    form = open_source(
        source,
        file,
        anchors=anchor or (),
        at=time_of(at, "--at"),
        chain=chain.value,
        crls=crl or (),
        unverified=unverified or (compare_with is not None and not anchor),
        config=config,
    )
    assert form.payload is not None
    vcon = Vcon.of_document(form.payload)
    if compare_with is not None:
        exit_with(_compare(file, vcon, compare_with, as_json=as_json))
    require_out(out, as_json=as_json)
    require_new(out, pseudonyms, report)
    chosen = Rules.combined([_rules(name) for name in rules or []])
    try:
        redaction = redact(
            vcon,
            rules=chosen,
            type=kind,
            allow=allow_extension or (),
            domain=domain,
            url=source_url,
            content_hash=source_hash,
            salt=None if salt is None else read_file(salt, max_bytes=1_000_000),
        )
        result = redaction.to_bytes()
    except MalformedError as error:
        raise placed(error, file) from error
    verdict = _judge(form.payload.raw, vcon, redaction, result, prove=prove)
    document = {
        "file": str(file),
        "out": None if out is None or (prove and not verdict.is_good) else str(out),
        "form": form.kind,
        **redaction.report.to_json(),
        "proven": verdict.is_good if prove and not (verdict.is_good and _is_untouched(redaction)) else None,
        "findings": [finding.to_json() for finding in verdict.findings],
    }
    if verdict.is_good or not prove:
        write_file(out, result)
        if pseudonyms is not None:
            write_file(pseudonyms, json_text(dict(redaction.originals)).encode("utf-8"))
    if report is not None:
        write_file(report, json_text(document).encode("utf-8"))
    if as_json:
        emit(document)
    else:
        _print(file, redaction, verdict, prove=prove)
    exit_with(0 if verdict.is_good else 1)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is to be said of a result: leaks and shifts, errors that its source does not have, notes."""

    findings: tuple[Finding, ...]

    @property
    def is_good(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


def _judge(source: bytes, vcon: Vcon, redaction: Redaction, result: bytes, *, prove: bool) -> _Verdict:
    known = {
        (finding.code, finding.pointer) for finding in check(source).findings if finding.severity == "error"
    }
    fresh = tuple(
        finding
        for finding in check(result).findings
        if finding.severity == "error" and (finding.code, finding.pointer) not in known
    )
    leaks = compare(vcon, Vcon.read(result)) if prove else ()
    return _Verdict(leaks + fresh + redaction.findings)


def _is_untouched(redaction: Redaction) -> bool:
    """Say whether nothing went: then there is nothing to prove."""
    return not redaction.report.total and not redaction.report.not_understood


def _rules(name: str) -> Rules:
    return Rules.load(Path(name)) if is_file_name(name) else Rules.named(name)


def _profiles_hint() -> str:
    return f"profiles: {', '.join(PROFILES)}"


def _compare(file: Path, vcon: Vcon, other: Path, *, as_json: bool) -> int:
    form = open_source(read_file(other), other, unverified=True)
    assert form.payload is not None
    findings = compare(vcon, Vcon.of_document(form.payload))
    if as_json:
        emit({"file": str(file), "redacted": str(other), "findings": [one.to_json() for one in findings]})
    elif findings:
        print_findings(error_console(), findings)
    else:
        note(f"{visible(str(other))}: nothing that was taken out of {visible(str(file))} is in it elsewhere")
    return int(bool(findings))


def _print(file: Path, redaction: Redaction, verdict: _Verdict, *, prove: bool) -> None:
    report = redaction.report
    note(f"{visible(str(file))}: {report.total} values taken out by {visible(report.rules)}")
    for rule, count in report.counts.items():
        changes = [change for change in report.changes if change.rule == rule]
        where = places([change.pointer for change in changes])
        note(f"  {count:6} {changes[0].action if changes else '':11} {visible(rule)}: {where}")
    for rule in report.idle[:SHOWN_IDLE]:
        note(f"  rule {visible(rule)} took out nothing")
    if len(report.idle) > SHOWN_IDLE:
        note(f"  and {len(report.idle) - SHOWN_IDLE} more rules took out nothing; --report names them")
    if report.not_understood:
        note("Not understood, so left out:")
        for code in dict.fromkeys(entry.code for entry in report.not_understood):
            pointers = [entry.pointer for entry in report.not_understood if entry.code == code]
            note(f"  {len(pointers):6} {code}: {places(pointers)}")
    if report.not_searched:
        note(f"Binary content that stays and was not searched: {places(report.not_searched)}")
    shown = [finding for finding in verdict.findings if finding.code != "redacted-unsigned"]
    if shown:
        print_findings(error_console(), shown)
    if not verdict.is_good:
        if prove:
            note("onrecord: nothing was written, since the proof failed")
    elif prove:
        note(_proof(redaction))
    note("What no redaction can undo:")
    for sentence in report.remains:
        note(f"  - {sentence}")
    note("The result is not signed; onrecord sign does that.")


def _proof(redaction: Redaction) -> str:
    """Return what was proven: without a value taken out less than a person may think."""
    if redaction.report.total:
        return "Proven: nothing that was taken out is anywhere else in the result."
    if redaction.report.not_understood:
        return (
            "No rule took out anything. What was not understood and left out is nowhere else in the result."
        )
    return "Nothing was taken out, so nothing is proven."
