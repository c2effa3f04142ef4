"""`onrecord connect SERVER [--pipe]`: what stands in an MCP client's configuration."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.cli.output import ConfigOption, exit_with


def command(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="Id of the server in onrecord.toml.")],
    config: ConfigOption = None,
    pipe: Annotated[
        bool, typer.Option("--pipe", help="Only copy bytes: the client brings its own proofs.")
    ] = False,
) -> None:
    """Stand in an MCP client's configuration in place of a server: get a proof for each call and attach it."""
    from onrecord.authorize.connector import run_connector
    from onrecord.base.configuration import Configuration

    exit_with(run_connector(Configuration.load(config), server, pipe=pipe))
