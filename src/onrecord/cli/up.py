"""onrecord up: run authority, recorder and guards."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.authorize.supervisor import run_up
from onrecord.base.configuration import Configuration
from onrecord.cli.output import ConfigOption, exit_with


def command(
    config: ConfigOption = None,
    ready_fd: Annotated[
        int | None,
        typer.Option("--ready-fd", metavar="N", help="Write `ready` to this descriptor when all is up."),
    ] = None,
) -> None:
    """Run authority, recorder and, in system mode, guards in the foreground, until SIGTERM or Ctrl-C.

    A second signal stops at once. Exit status 0 after a signal, 2 for a wrong configuration, 3 when a part could
    not go on.
    """
    exit_with(run_up(Configuration.load(config), ready_fd=ready_fd))
