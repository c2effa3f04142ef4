"""`onrecord policy`: bind, check, sign, explain and test a policy."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, KeyAccessError, UsageError, Where
from onrecord.base.findings import Finding
from onrecord.base.strict_json import ARGUMENTS_BYTES, Refused, parse_arguments
from onrecord.cli.output import ConfigOption, JsonOption, console, emit, exit_with, visible
from onrecord.cli.policy_bind import bind

if TYPE_CHECKING:
    from onrecord.authorize.policy import Policy
    from onrecord.authorize.policy.signing import Checked

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Bind, check, sign, explain and test a policy.",
)

PathArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR|BUNDLE",
        help="Source directory or bundle file; none: policy.source.",
        show_default=False,
    ),
]


@app.command()
def check(path: PathArgument = None, as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """Read a policy strictly, lint it, and run its tests.json. A signature is not needed and not looked at.

    Where the configuration is at hand, the bases of its servers are compared with where they run.

    Exit 0 without errors, 1 with findings of severity error, 2 when there is nothing to read.
    """
    checked = _noted(_checked(path, config), config)
    if as_json:
        emit(_check_document(checked))
    else:
        _print_check(checked)
    exit_with(0 if checked.is_clean else 1)


@app.command(short_help="Check a source directory and write the signed bundle.")
def sign(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Source directory; none: policy.source.", show_default=False),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="URI", help="Key to sign with; none: keys.policy.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Bundle to write; none: policy.bundle.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Check a source directory, then write the bundle and its signature. The version must be a new one.

    Exit 0 when both are written, 2 when the policy has errors or the version is not above the present one.
    """
    from onrecord.authorize.policy.signing import sign_source
    from onrecord.base.keys import signer_from_uri

    configuration = _configuration(config, needed=directory is None or key is None)
    source = directory or _needed(configuration).policy.source
    uri = key or (configuration.keys.policy if configuration else None)
    if uri is None:
        raise KeyAccessError(
            "there is no key to sign with",
            code="key-missing",
            hint="name one with --key file:/path/policy.pem; in system mode it belongs off this machine",
        )
    written = out or _bundle_path(source, configuration)
    made = sign_source(
        source,
        bundle=written,
        signer=signer_from_uri(uri, purpose="policy"),
        mode=configuration.mode if configuration else None,
    )
    findings: tuple[Finding, ...] = ()
    if configuration is not None and _is_of(source, configuration, config):
        from onrecord.authorize.policy.bases import check_bases

        findings = tuple(check_bases(made, configuration))
    if as_json:
        emit(
            {
                "bundle": str(written),
                "signature": f"{written}.sig",
                "version": made.version,
                "created": made.created,
                "sha256": made.sha256,
                "findings": [finding.to_json() for finding in findings],
            }
        )
    else:
        print(f"signed version {made.version}: {written}")
        print("next: onrecord control reload, or restart onrecord up")
        _print_findings(findings)


@app.command(short_help="Show what a call would be, and why.")
def explain(
    path: PathArgument = None,
    *,
    caller: Annotated[str, typer.Option("--caller", metavar="C", help="Caller id.")],
    server: Annotated[str, typer.Option("--server", metavar="S", help="Server id.")],
    name: Annotated[str, typer.Option("--name", metavar="N", help="Tool name.")],
    arguments: Annotated[
        str, typer.Option("--arguments", metavar="JSON|@FILE", help="Arguments; @FILE reads raw bytes.")
    ] = "{}",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show what a call would be: facts, touches, decision, rules, approvals needed. Nothing is asked or changed.

    Exit 0 with an explanation, whatever the decision, 2 when policy or arguments cannot be read.
    """
    from onrecord.authorize.policy import CallRequest
    from onrecord.authorize.policy import explain as explain_call

    try:
        values, _ = parse_arguments(_argument_bytes(arguments))
    except Refused as error:
        error.hint = "--arguments takes one JSON object, or @FILE with one"
        raise
    compiled = _clean(_checked(path, config))
    explanation = explain_call(
        compiled, CallRequest(caller=caller, server=server, name=name, arguments=values)
    ).to_json()
    if as_json:
        emit(explanation)
    else:
        _print_explanation(explanation)


@app.command("test")
def run_table(
    path: PathArgument = None,
    tests: Annotated[
        Path | None,
        typer.Option(
            "--tests", metavar="FILE", help="Rows; none: tests.json of the source.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Decide each row of tests.json and compare. Exit 0 when all are as expected, 1 on a difference."""
    from onrecord.authorize.policy.tables import load_rows, run_rows

    checked = _checked(path, config)
    compiled = _clean(checked)
    if tests is None and checked.source.directory.is_file():
        raise UsageError(
            "a bundle holds no rows",
            code="tests-missing",
            hint="name them with --tests FILE, or test the source directory",
        )
    rows = checked.source.rows if tests is None else load_rows(tests)
    outcomes = run_rows(compiled, rows)
    passed = sum(outcome.is_as_expected for outcome in outcomes)
    if as_json:
        emit(
            {
                "rows": [outcome.to_json() for outcome in outcomes],
                "passed": passed,
                "failed": len(outcomes) - passed,
            }
        )
    else:
        for outcome in outcomes:
            if not outcome.is_as_expected:
                rules = ", ".join(outcome.decision.rules) or "no rule"
                print(
                    visible(
                        f"{outcome.row.id}: expected {outcome.row.expect}, got {outcome.decision.effect} ({rules})"
                    )
                )
        print(f"{passed} of {len(outcomes)} rows as expected")
    exit_with(0 if passed == len(outcomes) else 1)


app.command(short_help="Write bindings for the tools of a server.")(bind)


def _configuration(config: Path | None, *, needed: bool) -> Configuration | None:
    try:
        return Configuration.load(config)
    except ConfigurationError:
        if needed or config is not None:
            raise
        return None


def _needed(configuration: Configuration | None) -> Configuration:
    assert configuration is not None
    return configuration


def _bundle_path(source: Path, configuration: Configuration | None) -> Path:
    """Return where the bundle of a source goes: policy.bundle for the configured source, else beside it."""
    if configuration is not None and source.resolve() == configuration.policy.source.resolve():
        return configuration.policy.bundle
    return source.resolve().parent / "policy.bundle.json"


def _checked(path: Path | None, config: Path | None) -> Checked:
    from onrecord.authorize.policy.signing import check_policy

    configuration = _configuration(config, needed=path is None)
    mode = configuration.mode if configuration is not None else None
    return check_policy(path or _needed(configuration).policy.source, mode=mode)


def _is_of(path: Path, configuration: Configuration, config: Path | None) -> bool:
    """Say whether a source or bundle belongs to a configuration: it says so itself, or the person does."""
    own = (configuration.policy.source, configuration.policy.bundle)
    return config is not None or path.resolve() in {one.resolve() for one in own}


def _noted(checked: Checked, config: Path | None) -> Checked:
    """Add what the policy alone does not tell: how it fits to the configuration and to the bundle that is there."""
    from onrecord.authorize.policy.bases import check_bases
    from onrecord.authorize.policy.signing import check_successor

    source, configuration = checked.source, _configuration(config, needed=False)
    if source.bundle is None:
        return checked
    noted: list[Finding] = []
    if configuration is not None and _is_of(source.directory, configuration, config):
        noted += check_bases(source.bundle, configuration)
    if source.directory.is_dir():
        successor = check_successor(source.bundle, _bundle_path(source.directory, configuration))
        noted += [] if successor is None else [successor]
    return replace(checked, source=replace(source, findings=(*source.findings, *noted)))


def _clean(checked: Checked) -> Policy:
    from onrecord.authorize.policy import PolicyLintError

    if checked.policy is None:
        raise PolicyLintError(checked.source.findings, where=Where(file=str(checked.source.directory)))
    return checked.policy


def _argument_bytes(arguments: str) -> bytes:
    if not arguments.startswith("@"):
        return arguments.encode("utf-8", "surrogateescape")
    if arguments == "@-":
        return sys.stdin.buffer.read(ARGUMENTS_BYTES + 1)
    try:
        with open(arguments[1:], "rb") as file:
            return file.read(ARGUMENTS_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read the arguments ({error.strerror})",
            code="input-unreadable",
            where=Where(file=arguments[1:]),
        ) from error


def _check_document(checked: Checked) -> dict[str, Any]:
    source = checked.source
    return {
        "path": str(source.directory),
        "version": source.bundle.version if source.bundle else None,
        "rules": len(checked.policy.rules) if checked.policy else None,
        "ok": checked.is_clean,
        "findings": [finding.to_json() for finding in source.findings],
        "tests": [outcome.to_json() for outcome in checked.outcomes],
    }


def _print_check(checked: Checked) -> None:
    _print_findings(checked.source.findings)
    passed = sum(outcome.is_as_expected for outcome in checked.outcomes)
    if checked.policy is not None and checked.source.bundle is not None:
        print(
            f"version {checked.source.bundle.version}: {len(checked.policy.rules)} rules, "
            f"{passed} of {len(checked.outcomes)} tests as expected"
        )
    print("clean" if checked.is_clean else "not usable")


def _print_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        data = finding.data or {}
        place = " ".join(
            str(part) for part in (data.get("file"), finding.pointer or "/", data.get("rule")) if part
        )
        print(visible(f"{finding.severity}: {finding.code}: {finding.message} ({place})"))
        if data.get("hint"):
            print(visible(f"  next: {data['hint']}"))


def _print_explanation(document: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    facts = document["facts"]
    table.add_row("call", _text(f"{document['caller']} -> {document['server']}/{document['name']}"))
    table.add_row("op, impact", _text(f"{facts['op']}, {facts['impact']}"))
    table.add_row("unknown", _text(", ".join(facts["unknown"]) or "nothing"))
    for number, touch in enumerate(document["touches"], 1):
        table.add_row(f"touch {number}", _text(_facts_text(touch["facts"])))
        table.add_row("", _text(f"{touch['decision']} by {', '.join(touch['rules']) or 'no rule'}"))
    table.add_row("decision", _text(document["decision"]))
    table.add_row("rules", _text(", ".join(document["rules"]) or "none"))
    for need in document["approvals"]:
        table.add_row("approval", _text(f"{need['number']} of {need['group']} for {need['rule']}"))
    if "meaning" in document:
        table.add_row("because", _text(document["meaning"]))
    console().print(table)


def _text(text: str) -> str:
    return escape(visible(text))


def _facts_text(facts: dict[str, Any]) -> str:
    if not facts:
        return "no path, host or other target"
    return "; ".join(
        f"{kind} {value}"
        if not isinstance(value, dict)
        else f"{kind} " + " ".join(f"{name}={member}" for name, member in value.items())
        for kind, value in facts.items()
    )
