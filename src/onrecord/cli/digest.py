"""`onrecord digest`: print the Action Digest of a call, or refuse with the reason."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from onrecord.authorize.digest import digest_of_text
from onrecord.base.errors import UsageError, Where
from onrecord.base.strict_json import ARGUMENTS_BYTES
from onrecord.cli.output import JsonOption, emit


def command(
    name: Annotated[str, typer.Option("--name", metavar="N", help="Tool name as the server knows it.")],
    arguments: Annotated[
        str | None,
        typer.Option(
            "--arguments", metavar="JSON|@FILE", help="Arguments; @FILE reads raw bytes; none: absent."
        ),
    ] = None,
    method: Annotated[str, typer.Option("--method", metavar="M", help="MCP method.")] = "tools/call",
    as_json: JsonOption = False,
) -> None:
    """Print the Action Digest of one call (43 characters), or refuse with the class of what is wrong.

    Exit 0 with the digest, 2 for a text that is refused.
    """
    digest = digest_of_text(name, None if arguments is None else _bytes_of(arguments), method=method)
    if as_json:
        emit({"digest": digest})
    else:
        print(digest)


def _bytes_of(arguments: str) -> bytes:
    if not arguments.startswith("@"):
        # What the shell handed over as bytes comes back as the same bytes, good UTF-8 or not.
        return arguments.encode("utf-8", "surrogateescape")
    if arguments == "@-":
        return sys.stdin.buffer.read(ARGUMENTS_BYTES + 1)
    path = Path(arguments[1:])
    try:
        with path.open("rb") as file:
            return file.read(ARGUMENTS_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read the arguments ({error.strerror})",
            code="input-unreadable",
            where=Where(file=str(path)),
        ) from error
