"""`onrecord demo`: the whole way of a tool call on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onrecord.cli.output import JsonOption, console, emit, exit_with


def command(
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking; no step asks yet.")] = False,
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

    Exit status: 0 all steps as expected, 1 one is not, 3 could not run.
    """
    del yes  # the promise of the option is kept already: nothing is asked as long as there are no approvals
    from onrecord.examples.demo.driver import require_mcp

    require_mcp()
    from onrecord.examples.demo.driver import run
    from onrecord.examples.demo.report import ConsoleListener, QuietListener, print_summary

    screen = console()
    demonstration = run(keep=keep, listener=QuietListener() if as_json else ConsoleListener(screen))
    if as_json:
        emit(demonstration.to_json())
    else:
        print_summary(screen, demonstration)
    exit_with(0 if demonstration.ok else 1)
