"""`onrecord record`: run the recorder, list and close record sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onrecord.base.configuration import Configuration
from onrecord.base.errors import UsageError
from onrecord.cli.output import ConfigOption, JsonOption, emit, exit_with, note, visible

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Run the recorder, list and close record sessions.",
)

HELLO_TIMEOUT_MS = 2000
CLOSE_TIMEOUT_MS = 30_000


@app.command()
def serve(
    config: ConfigOption = None,
    ready_fd: Annotated[
        int | None,
        typer.Option("--ready-fd", help="Write a line to this descriptor when ready.", show_default=False),
    ] = None,
) -> None:
    """Run the recorder in the foreground until SIGTERM."""
    import logging

    from onrecord.authorize.recorder_directory import BundleDirectory
    from onrecord.record.recorder.daemon import run_recorder

    logging.basicConfig(level=logging.WARNING, format="onrecord record: %(message)s")
    configuration = Configuration.load(config)
    run_recorder(configuration, BundleDirectory.of(configuration), ready_fd=ready_fd)


@app.command(short_help="List open and lately closed record sessions.")
def sessions(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the record sessions of a running recorder: open ones, and those that were closed lately."""
    document = _call(config, "record/sessions", {}, timeout_ms=HELLO_TIMEOUT_MS)
    if as_json:
        emit(document)
        return
    _print_sessions(document["sessions"], records=Configuration.load(config).paths.records)


@app.command(short_help="Close record sessions and wait for their vCons.")
def close(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]", help="Id or label of an open record session.", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Close all open record sessions.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Close record sessions, and wait until their vCons are written.

    Exit 1 if a vCon could not be signed.
    """
    if every == (session is not None):
        raise UsageError(
            "one session, or --all, must be named",
            code="usage",
            hint="onrecord record sessions lists them",
        )
    params: dict[str, Any] = {"all": True} if every else {"session": session}
    document = _call(config, "record/close", params, timeout_ms=CLOSE_TIMEOUT_MS)
    if as_json:
        emit(document)
    else:
        _print_sessions(document["sessions"], records=Configuration.load(config).paths.records)
    if any(one["state"] not in ("signed", "empty") for one in document["sessions"]):
        note("onrecord: not every session has a signed vCon yet")
        exit_with(1)


def _call(config: Any, method: str, params: dict[str, Any], *, timeout_ms: int) -> Any:
    from onrecord.base.daemon_clients import connect_to_recorder
    from onrecord.base.wire import RpcError
    from onrecord.record.recorder.settings import RECORD_LINE_BYTES

    configuration = Configuration.load(config)
    client = connect_to_recorder(configuration, timeout_ms=timeout_ms, max_line_bytes=RECORD_LINE_BYTES)
    try:
        return client.call(method, params, timeout_ms=timeout_ms)
    except RpcError as error:
        if error.reason != "unknown_session":
            raise
        hint = "onrecord record sessions lists them"
        raise UsageError(str(error), code="unknown-session", hint=hint) from error
    finally:
        client.close()


def _print_sessions(listed: list[dict[str, Any]], *, records: Path) -> None:
    """Print two or three lines for each session, so that ids and paths stay whole in a narrow terminal."""
    if not listed:
        note("no record sessions")
        return
    for one in listed:
        state = str(one["state"])
        if errors := (one.get("check") or {}).get("errors"):
            state += f" ({errors} check errors)"
        count = one["entries"]
        facts = [
            state,
            one["caller"] or f"uid {one['uid']}",
            f"{count} {'entry' if count == 1 else 'entries'}",
        ]
        if one["cause"]:
            facts.append(f"closed: {one['cause']}")
        print(visible(f"{one['id']}  {', '.join(facts)}"))
        print(visible(f"  label  {one['label']}"))
        if file := (one.get("vcon") or {}).get("file"):
            print(visible(f"  vCon   {records / file}"))
