"""onrecord init: make a configuration with keys and a starter policy."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from onrecord.authorize.setup import People, initialize, renew
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
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="USER", help="System mode: the account that agents run under."),
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option(
            "--operator", metavar="USER", help="System mode: who approves and controls; none: who used sudo."
        ),
    ] = None,
    policy_key: Annotated[
        Path | None,
        typer.Option(
            "--policy-key",
            metavar="FILE",
            help="System mode: make the key that signs the policy, trust it and sign the starter policy.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a configuration with every key, keys, certificates, trust files and a starter policy.

    Without DIR the usual places are used. Nothing that exists is overwritten. Without --mode, root without DIR gets
    system mode and everybody else user mode. System mode needs its users and groups first, and names those missing.
    """
    people = People(
        agent=_user(agent),
        operator=_user(operator),
        policy_key=None if policy_key is None else Path(os.path.abspath(policy_key)),
    )
    if renew_certificate:
        if mode is not None or people != People():
            raise UsageError(
                "--renew takes no --mode and nobody's name",
                code="usage",
                hint="the configuration says which mode it is",
            )
        _renew(config if directory is None else directory / "onrecord.toml", as_json=as_json)
        return
    if config is not None:
        raise UsageError("--config is for --renew", code="usage", hint="name a directory: onrecord init DIR")
    _initialize(directory, _chosen(mode, directory), people, as_json=as_json)


def _user(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


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


def _initialize(directory: Path | None, mode: Mode, people: People, *, as_json: bool) -> None:
    made = initialize(directory, mode=mode, people=people)
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
        if mode == "system":
            note(f"next: name each tool server and its user in {file}, or take one from a client's file:")
            note(f"      onrecord wrap --only NAME --user USER{option} FILE; then")
        else:
            note(
                f"next: onrecord wrap FILE{option}, with your MCP client's file; or name your tool servers in {file};"
            )
            note("      then")
        note(f"      onrecord policy bind ID --root DIR{option}")
        key = "" if people.policy_key is None else f" --key file:{shlex.quote(str(people.policy_key))}"
        note(f"      onrecord policy sign{key}{option}")
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
