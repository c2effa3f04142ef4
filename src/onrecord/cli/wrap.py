"""onrecord wrap: put onrecord into an MCP client's configuration, or take it out again."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.base.configuration import SYSTEM_FILE, Configuration
from onrecord.base.errors import ConfigurationError, OnrecordError, UsageError
from onrecord.cli.output import ConfigOption, JsonOption, emit, exit_with, visible

if TYPE_CHECKING:
    from onrecord.authorize.wrap import WrapReport


def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="The client's file; none: list those there are.", show_default=False
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Wrap this server only; may be given several times.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="USER",
            help="User of the server, a name or a number; system mode.",
            show_default=False,
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Put back what wrap has changed in the file.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Put onrecord in the place of the servers in an MCP client's file; their secrets move to private files.

    Claude Desktop, Claude Code, Cursor and VS Code (JSON, with comments), and Codex (TOML). Nothing but command, args,
    cwd and env of a server is touched.

    Exit 0 when done, 1 when a server named with --only was left alone or an entry differs (--undo), 2 for a file that
    cannot be used.
    """
    if file is None:
        if undo or only or user or dry_run:
            raise UsageError(
                "name the client's file", code="usage", hint="onrecord wrap lists those there are"
            )
        _list(as_json=as_json)
    elif undo:
        if only or user or dry_run:
            raise UsageError("--undo takes the whole file back, and no other option", code="usage")
        _undo(Configuration.load(config), file, as_json=as_json)
    else:
        _wrap(Configuration.load(config), file, only or [], user, is_dry=dry_run, as_json=as_json)


def _list(*, as_json: bool) -> None:
    from onrecord.authorize.wrap import candidates

    found = candidates(environ=os.environ, project=Path.cwd())
    if as_json:
        emit({"files": [{"client": one.client, "path": str(one.path)} for one in found]})
        return
    for one in found:
        print(visible(f"{one.client:16}{one.path}"))
    print("next: onrecord wrap FILE" if found else "no file of a known MCP client is at its usual place")


def _wrap(
    configuration: Configuration,
    file: Path,
    only: list[str],
    user: str | None,
    *,
    is_dry: bool,
    as_json: bool,
) -> None:
    from onrecord.authorize.wrap import wrap

    report = wrap(
        configuration,
        file,
        connector=(str(_program()), "connect"),
        options=_options(configuration),
        only=only,
        user=int(user) if user is not None and user.isdecimal() else user,
        is_dry=is_dry,
    )
    if as_json:
        emit(report.to_json() | {"dryRun": is_dry, "next": _next(report, configuration)})
    else:
        _print(report, configuration, is_dry=is_dry)
    exit_with(1 if only and report.left_alone else 0)


def _print(report: WrapReport, configuration: Configuration, *, is_dry: bool) -> None:
    print(visible(str(report.file)))
    for planned in report.wrapped:
        moved = f"; to {planned.env_file}: {', '.join(planned.entry.env)}" if planned.entry.env else ""
        print(visible(f"  {planned.entry.name}: {'would be ' if is_dry else ''}server {planned.id}{moved}"))
        if planned.entry.has_secret_argument:
            print(f"    an argument looks like a credential: it stands in {configuration.file} now")
    for already in report.already:
        print(visible(f"  {already.name}: wrapped already"))
    for left in report.left_alone:
        print(visible(f"  {left.name}: left alone: {left.message}"))
    if report.backup is not None:
        print(visible(f"the file as it was: {report.backup}"))
    steps = _next(report, configuration)
    if steps and not is_dry:
        print("every call of a new server is denied until its tools are bound. next:")
        for step in steps:
            print(visible(f"  {step}"))


def _next(report: WrapReport, configuration: Configuration) -> list[str]:
    """Return the commands that are due: one for each server that the policy does not know yet."""
    from onrecord.authorize.policy.pinning import ServerSource

    option = "".join(f" {shlex.quote(one)}" for one in _options(configuration))
    due = []
    for server in dict.fromkeys(planned.id for planned in report.wrapped):
        try:
            ServerSource(configuration.policy.source, server)
        except OnrecordError:
            due.append(f"onrecord policy bind {server} --root DIR{option}")
    return due


def _undo(configuration: Configuration, file: Path, *, as_json: bool) -> None:
    from onrecord.authorize.wrap import undo

    report = undo(configuration, file)
    if as_json:
        emit(report.to_json())
        return
    print(visible(str(report.file)))
    for place in report.restored:
        print(visible(f"  {place[-1]}: as it was"))
    for one in report.removed:
        print(f"server {one} is no longer in {configuration.file}")
    for one in report.kept:
        print(f"server {one} stays in {configuration.file}: it is used elsewhere, or was changed")


def _program() -> Path:
    """Return the absolute path of this command: whoever starts it may have another PATH."""
    beside = Path(os.path.abspath(sys.executable)).parent / "onrecord"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("onrecord")
    if found is None:
        raise ConfigurationError(
            "the command onrecord is not installed beside its Python, and not in PATH",
            code="cannot-start",
            hint="install the package, so that clients can start it",
        )
    return Path(os.path.abspath(found))


def _options(configuration: Configuration) -> tuple[str, ...]:
    """Return `--config FILE` where the connector would not find the file by itself.

    A client may not have our environment, so only the places without one count.
    """
    usual = Path(os.environ.get("HOME") or "/nonexistent") / ".config" / "onrecord" / "onrecord.toml"
    return () if configuration.file in (usual, SYSTEM_FILE) else ("--config", str(configuration.file))
