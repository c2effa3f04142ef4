"""onrecord doctor: check isolation, keys, clocks and policy."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.authorize.doctor import examine
from onrecord.base.configuration import Configuration
from onrecord.cli.output import ConfigOption, JsonOption, emit, exit_with, visible

_MARKS = {"ok": "ok     ", "warning": "warning", "failed": "FAILED "}


def command(
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="ID",
            help="Try to get at this tool server and the authority; run it as the agent.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check what this uid can see of configuration, ownership, keys, certificates, policy, sockets, clocks and disk.

    With --server it says isolated only if every attempt of this uid failed. The attempts are real and change nothing.

    Exit status 0 with warnings, 1 when a check failed.
    """
    diagnosis = examine(Configuration.load(config), server=server)
    if as_json:
        emit(diagnosis.to_json())
    else:
        for check in diagnosis.checks:
            print(f"{_MARKS[check.result]}  {check.name}: {visible(check.detail)}")
            if check.hint and check.result != "ok":
                print(f"         next: {visible(check.hint)}")
            if check.is_shortened:
                print(f"         all {len(check.items)}: --json")
        print(f"isolation: {diagnosis.isolation}")
        hint = next((check.hint for check in diagnosis.checks if check.name == "isolation"), "")
        if diagnosis.isolation == "degraded" and hint:
            print(f"  next: {visible(hint)}")
    exit_with(diagnosis.exit_code)
