"""onrecord init: make a configuration with keys and a starter policy."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from onrecord.authorize.setup import initialize, renew
from onrecord.base.configuration import Configuration
from onrecord.base.configuration_keys import MODES, Mode
from onrecord.base.dates import format_date
from onrecord.base.errors import UsageError
from onrecord.cli.output import ConfigOption, JsonOption, emit, note


def command(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Put everything below this directory.", show_default=False),
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", metavar="user|system", help="One uid, or one uid for each role.")
    ] = None,
    renew_certificate: Annotated[
        bool, typer.Option("--renew", help="Make a new certificate for the record key, and nothing else.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a configuration with every key, keys, certificates, trust files and a starter policy.

    Without DIR the usual places are used. Nothing that exists is overwritten. Without --mode, root without DIR gets
    system mode and everybody else user mode.
    """
    if renew_certificate:
        if mode is not None:
            raise UsageError(
                "--renew takes no --mode", code="usage", hint="the configuration says which mode it is"
            )
        _renew(config if directory is None else directory / "onrecord.toml", as_json=as_json)
        return
    if config is not None:
        raise UsageError("--config is for --renew", code="usage", hint="name a directory: onrecord init DIR")
    _initialize(directory, _chosen(mode, directory), as_json=as_json)


def _chosen(mode: str | None, directory: Path | None) -> Mode:
    for known in MODES:
        if mode == known:
            return known
    if mode is not None:
        raise UsageError(
            f"there is no mode {mode!r}",
            code="usage",
            hint="--mode user or --mode system; --help says which is for whom",
        )
    return "system" if os.geteuid() == 0 and directory is None else "user"


def _initialize(directory: Path | None, mode: Mode, *, as_json: bool) -> None:
    made = initialize(directory, mode=mode)
    file = str(made.configuration.file)
    if as_json:
        emit(
            {
                "configuration": file,
                "mode": mode,
                "files": [str(path) for path in made.files],
                "offline_keys": [str(path) for path in made.offline_keys],
                "policy_signed": made.signed,
            }
        )
    note(f"configuration: {file} ({mode} mode)")
    if made.offline_keys:
        note("no daemon needs these keys; move them off this machine when you have signed what you need:")
        for path in made.offline_keys:
            note(f"  {path}")
    option = "" if directory is None else f" --config {shlex.quote(file)}"
    if made.signed:
        note(f"next: name your tool servers in {file}, then")
        note(f"      onrecord policy bind ID --root DIR{option}")
        note(f"      onrecord policy sign{option}")
        note(f"      onrecord up{option}")
    else:
        source = made.configuration.policy.source
        trust = made.configuration.trust.policy
        note(f"next: 1. put the public policy key into {trust}")
        note(f"      2. put the uids of agents and servers into {source / 'bundle.json'}")
        note(
            f"      3. onrecord policy sign {shlex.quote(str(source))} --key KEY{option}, then onrecord up{option}"
        )
    if mode == "user":
        note(
            "user mode is degraded: agent, servers and authority share one uid (onrecord doctor says what that means)"
        )
        if os.geteuid() == 0:
            note(
                "you are root: onrecord up refuses to run user mode as root; use an ordinary user or --mode system"
            )


def _renew(config: Path | None, *, as_json: bool) -> None:
    renewed = renew(Configuration.load(config))
    end = format_date(renewed.not_after)
    if as_json:
        emit({"chain": str(renewed.chain), "previous": str(renewed.previous), "not_after": end})
    note(f"new certificate until {end} in {renewed.chain}; the old one is {renewed.previous}")
    note("the recorder takes it at its next start; move the CA key off this machine again")
