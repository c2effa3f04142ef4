"""`onrecord demo`: the whole way of a tool call on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from onrecord.cli.output import JsonOption, console, emit, exit_with, note


def command(
    yes: Annotated[bool, typer.Option("--yes", help="Approve the call of step 8 without asking.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            help="Keep the results here; must not exist or be empty.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run real servers, a scripted agent and an injected instruction through onrecord; verify the record of it.

    One step needs the approval of a person. On a terminal you are asked; elsewhere it is given, and a line says so.

    Exit status: 0 all steps as expected (one whose server is not installed is named and not done), 1 one is not,
    3 could not run.
    """
    from onrecord.examples.demo.driver import require_mcp

    require_mcp()
    from onrecord.examples.demo.approval import Approving
    from onrecord.examples.demo.driver import run
    from onrecord.examples.demo.report import ConsoleListener, QuietListener, print_summary

    screen = console()
    # The question goes to standard error, so that standard output can be a pipe or one JSON document.
    approving = Approving.TERMINAL if sys.stdin.isatty() and sys.stderr.isatty() else Approving.YES
    if yes:
        approving = Approving.YES
    elif approving is Approving.YES:
        note("onrecord demo: no terminal to ask on; the call of step 8 will be approved as with --yes")
    listener = QuietListener() if as_json else ConsoleListener(screen)
    demonstration = run(keep=keep, approving=approving, listener=listener)
    if as_json:
        emit(demonstration.to_json())
    else:
        print_summary(screen, demonstration)
    exit_with(0 if demonstration.ok else 1)
