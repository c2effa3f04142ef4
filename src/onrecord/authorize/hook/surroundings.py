"""Where a hooked server runs: behind its guard, by explicit arguments, or nowhere that it could check calls.

Source: running.md 5.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from onrecord.authorize.guard.environment import (
    HOOK_AUTHORITY,
    HOOK_CONFIG,
    HOOK_CONNECTION,
    HOOK_PEER_PID,
    HOOK_PEER_UID,
    HOOK_SERVER,
)
from onrecord.authorize.guard.relay_rules import ClientPeer
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError
from onrecord.base.sockets import process_label

_NAMES: Final = (HOOK_AUTHORITY, HOOK_SERVER, HOOK_PEER_UID, HOOK_PEER_PID, HOOK_CONNECTION, HOOK_CONFIG)
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Whose calls are checked, for which server, by which configuration. `is_guarded`: a guard joins the bytes."""

    configuration: Configuration
    server: str
    peer: ClientPeer
    connection: str
    is_guarded: bool


def find(
    *, environ: Mapping[str, str], config: Configuration | Path | str | None, server_id: str | None
) -> Surroundings | None:
    """Return the surroundings that a guard has written into `environ`, else those of the arguments, else None.

    A guard's word counts more than the arguments: one program may stand behind several deployments.

    Raises `ConfigurationError` with code "hook-environment" for variables that no guard has written, and as
    `Configuration.load` does.
    """
    if HOOK_SERVER in environ and HOOK_AUTHORITY in environ:
        return _guarded(environ)
    if config is None and server_id is None:
        return None
    if server_id is None:
        raise ConfigurationError(
            "the id of the server is missing", code="hook-server-id", hint="protect(server, server_id=…)"
        )
    configuration = config if isinstance(config, Configuration) else _load(config)
    configuration.server(server_id)
    parent = os.getppid()
    peer = ClientPeer(uid=os.getuid(), pid=parent, label=process_label(parent), verified_uid=None)
    return Surroundings(
        configuration=configuration, server=server_id, peer=peer, connection="1", is_guarded=False
    )


def _load(config: Path | str | None) -> Configuration:
    return Configuration.load(None if config is None else Path(config))


def _guarded(environ: Mapping[str, str]) -> Surroundings:
    told = {name: environ.get(name, "") for name in _NAMES}
    numbers = (told[HOOK_PEER_UID], told[HOOK_PEER_PID], told[HOOK_CONNECTION])
    if not told[HOOK_CONFIG] or not all(_NUMBER.fullmatch(number) for number in numbers):
        raise _wrong("they are not complete")
    configuration = Configuration.load(Path(told[HOOK_CONFIG]))
    server = told[HOOK_SERVER]
    entry = configuration.server(server)
    if not entry.hook:
        raise _wrong(f"servers.{server}.hook is false")
    if told[HOOK_AUTHORITY] != f"unix://{configuration.server_socket(server)}":
        raise _wrong(f"{HOOK_AUTHORITY} is not the socket of the configuration")
    uid, pid = int(told[HOOK_PEER_UID]), int(told[HOOK_PEER_PID])
    peer = ClientPeer(
        uid=uid,
        pid=pid,
        label=process_label(pid),
        verified_uid=uid if configuration.mode == "system" else None,
    )
    return Surroundings(
        configuration=configuration,
        server=server,
        peer=peer,
        connection=told[HOOK_CONNECTION],
        is_guarded=True,
    )


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"the variables of the guard cannot be used: {what}",
        code="hook-environment",
        hint="let onrecord guard start this server; do not set these variables yourself",
    )
