"""`onrecord guard SERVER [-- CMD…]`: run a tool server behind enforcement."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.cli.output import ConfigOption, exit_with


def command(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="Id of the server in onrecord.toml.")],
    command_line: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- CMD…]", help="Program to run in place of the configured one.", show_default=False
        ),
    ] = None,
    config: ConfigOption = None,
    listen: Annotated[
        bool, typer.Option("--listen", help="Accept many clients on the server's socket (system mode).")
    ] = False,
    ready_fd: Annotated[
        int | None,
        typer.Option("--ready-fd", metavar="N", help="Write ready to this descriptor.", hidden=True),
    ] = None,
) -> None:
    """Run a tool server behind enforcement: no call reaches it without a valid proof.

    Without --listen the one client is at the other end of stdin and stdout.
    """
    from onrecord.authorize.guard import run_guard
    from onrecord.base.configuration import Configuration

    configuration = Configuration.load(config)
    exit_with(run_guard(configuration, server, listen=listen, command=command_line, ready_fd=ready_fd))
