"""Asking a configured server for its tools: its command, environment and uid, and no agent.

Source: running.md 4.4.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from onrecord.authorize.guard.environment import read_env_file, server_environment
from onrecord.authorize.policy.advertised import (
    SAID_LINE_BYTES,
    AdvertisedServer,
    ServerFailedError,
    list_tools,
)
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, UsageError, Where
from onrecord.base.processes import Principal
from onrecord.record import credentials

MIN_SECRET_CHARACTERS: Final = 4
"""Shortest value of a variable that is taken out of what a server says: "1" and "yes" stand everywhere."""


def ask_server(configuration: Configuration, server_id: str) -> AdvertisedServer:
    """Start the server as the guard would, and return what it advertises.

    Raises `UsageError` with code "needs-root" when the server has another uid and we are not root, else as
    `Configuration.server`, `server_environment` and `list_tools` do. What a failing server said is shown to a person,
    so values of its own variables are taken out of it.
    """
    server = configuration.server(server_id)
    uid = configuration.server_uid(server_id)
    principal = None
    if uid != os.geteuid():
        if os.geteuid() != 0:
            raise UsageError(
                f"server {server_id} runs under uid {uid}, and only root can start it there",
                code="needs-root",
                hint="run it as root, or --running to compare with what a running server reported",
            )
        principal = Principal(uid, _group_of(uid))
    env = server_environment(uid=uid, own=os.environ, env_file=server.env_file, env_pass=server.env_pass)
    cwd = server.cwd or Path(env["HOME"])
    if not cwd.is_dir():
        raise ConfigurationError(
            "the working directory of the server is missing",
            code="cannot-start",
            where=Where(file=str(cwd)),
            hint=f"make it, or set servers.{server_id}.cwd",
        )
    try:
        return list_tools([server.command, *server.args], env=env, cwd=cwd, principal=principal)
    except ServerFailedError as error:
        own = {name: env[name] for name in server.env_pass if name in env}
        if server.env_file is not None:
            own |= read_env_file(server.env_file, owner=uid)
        error.said = without_values(error.said, own)
        raise


def without_values(lines: Sequence[str], secrets: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines of a server in which its own variables, and what looks like a credential, are replaced."""
    known = sorted(secrets.items(), key=lambda one: -len(one[1]))
    result = []
    for line in lines:
        text = line
        for name, value in known:
            if len(value) >= MIN_SECRET_CHARACTERS:
                text = _without_value(text, value, name, is_cut=len(line.encode()) >= SAID_LINE_BYTES)
        result.append(credentials.replace_in_text(text)[0])
    return tuple(result)


def _without_value(text: str, value: str, name: str, *, is_cut: bool) -> str:
    """Replace a value in a line, and its beginning at the end of a line that was cut there."""
    shown = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = text.replace(shown, f"[value of {name}]")
    if is_cut:
        for length in range(min(len(shown), len(text)) - 1, 0, -1):
            if text.endswith(shown[:length]):
                return f"{text[:-length]}[value of {name}]"
    return text


def _group_of(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid
