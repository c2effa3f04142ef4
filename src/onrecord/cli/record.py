"""`onrecord record`: run the recorder, list and close record sessions."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from onrecord.base.configuration import Configuration
from onrecord.base.errors import UsageError
from onrecord.cli.output import ConfigOption, JsonOption, console, emit, exit_with, note, visible

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


@app.command()
def sessions(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the record sessions of a running recorder: open ones, and those that were closed lately."""
    document = _call(config, "record/sessions", {}, timeout_ms=HELLO_TIMEOUT_MS)
    if as_json:
        emit(document)
        return
    _print_sessions(document["sessions"])


@app.command()
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
        _print_sessions(document["sessions"])
    if any(one["state"] not in ("signed", "empty") for one in document["sessions"]):
        note("onrecord: not every session has a signed vCon yet")
        exit_with(1)


def _call(config: Any, method: str, params: dict[str, Any], *, timeout_ms: int) -> Any:
    from onrecord.base.rpc_client import BlockingRpcClient
    from onrecord.record.recorder.settings import RECORD_LINE_BYTES

    configuration = Configuration.load(config)
    client = BlockingRpcClient(
        configuration.record_socket(),
        expected_uid=configuration.recorder_uid,
        timeout_ms=timeout_ms,
        max_line_bytes=RECORD_LINE_BYTES,
    )
    try:
        return client.call(method, params, timeout_ms=timeout_ms)
    finally:
        client.close()


def _print_sessions(listed: list[dict[str, Any]]) -> None:
    if not listed:
        note("no record sessions")
        return
    table = Table(box=None)
    table.add_column("session", no_wrap=True)
    for heading in ("caller", "label", "state", "entries", "cause", "vCon"):
        table.add_column(heading, overflow="fold")
    for one in listed:
        vcon = one.get("vcon") or {}
        check = one.get("check") or {}
        state = str(one["state"])
        if check.get("errors"):
            state += f" ({check['errors']} check errors)"
        cells = [
            one["id"],
            one["caller"] or f"uid {one['uid']}",
            one["label"],
            state,
            str(one["entries"]),
            one["cause"] or "",
            vcon.get("file", ""),
        ]
        table.add_row(*(escape(visible(str(cell))) for cell in cells))
    console().print(table)
