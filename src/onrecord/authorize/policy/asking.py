"""Asking a configured server for its tools: its command, environment and uid, and no agent.

Source: running.md 4.4.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from onrecord.authorize.guard.environment import server_environment
from onrecord.authorize.policy.advertised import AdvertisedServer, list_tools
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, UsageError, Where
from onrecord.base.processes import Principal


def ask_server(configuration: Configuration, server_id: str) -> AdvertisedServer:
    """Start the server as the guard would, and return what it advertises.

    Raises `UsageError` with code "needs-root" when the server has another uid and we are not root, else as
    `Configuration.server`, `server_environment` and `list_tools` do.
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
    return list_tools([server.command, *server.args], env=env, cwd=cwd, principal=principal)


def _group_of(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid
