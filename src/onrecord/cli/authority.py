"""`onrecord authority serve`: run the Call Authority alone; `onrecord up` and service managers start this."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.base.configuration import Configuration
from onrecord.cli.output import ConfigOption

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Run the Call Authority alone.")


@app.callback()
def authority() -> None:
    """Run the Call Authority alone."""


@app.command()
def serve(
    config: ConfigOption = None,
    ready_fd: Annotated[
        int | None,
        typer.Option("--ready-fd", metavar="N", help="Write `ready` there, and end with the parent."),
    ] = None,
) -> None:
    """Run the authority in the foreground until SIGTERM or SIGINT."""
    from onrecord.authorize.authority import run_authority

    run_authority(Configuration.load(config), ready_fd)
