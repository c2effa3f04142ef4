"""Where the authority listens, and what must be true of the directories around that.

Source: call-proof.md 4.1; running.md 2.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from onrecord.authorize.authority.callers import Door, DoorKind
from onrecord.base.errors import StorageError, Where
from onrecord.base.sockets import check_private_path

if TYPE_CHECKING:
    from pathlib import Path

    from onrecord.authorize.authority.server import Authority
    from onrecord.base.configuration import Configuration
    from onrecord.base.rpc_server import RpcConnection


class DoorPlace(NamedTuple):
    """One socket to listen on; `gid` is None where the group stays as it is."""

    door: Door
    path: Path
    mode: int
    gid: int | None


def door_places(config: Configuration) -> tuple[DoorPlace, ...]:
    """Return every socket of the authority. In user mode the socket gives the role, so there is one for each."""
    if config.mode == "user":
        doors = [
            (Door(kind=DoorKind.AGENT), config.agent_socket()),
            *(
                (Door(kind=DoorKind.SERVER, server=server), config.server_socket(server))
                for server in config.servers
            ),
            (Door(kind=DoorKind.APPROVAL), config.approval_socket()),
            (Door(kind=DoorKind.CONTROL), config.control_socket()),
        ]
        return tuple(DoorPlace(door, path, 0o600, None) for door, path in doors)
    return (
        DoorPlace(Door(kind=DoorKind.CALL), config.agent_socket(), 0o660, config.call_gid),
        DoorPlace(Door(kind=DoorKind.APPROVAL), config.approval_socket(), 0o660, config.approval_gid),
        DoorPlace(Door(kind=DoorKind.CONTROL), config.control_socket(), 0o660, config.control_gid),
    )


class Reception:
    """The handler of one socket: every connection of it came in by the same door."""

    def __init__(self, authority: Authority, door: Door) -> None:
        self.on_connect = partial(_welcome, authority, door)
        self.on_request = authority.answer
        self.on_disconnect = authority.farewell
        self.on_broken = authority.broken


def _welcome(authority: Authority, door: Door, connection: RpcConnection) -> bool:
    return authority.welcome(connection, door)


def check_directories(config: Configuration, *, own_uid: int) -> None:
    """Make sure that nobody else can change what the authority trusts, making what is missing.

    Raises `ConfigurationError` as `check_private_path` does, `StorageError` with code "directory-unusable".
    """
    mine, is_user_mode = {own_uid}, config.mode == "user"
    if is_user_mode:
        for directory in (config.paths.state, config.marks("authority").parent, config.paths.runtime):
            _make_private(directory)
    for directory in (config.authority_state, config.marks("authority")):
        _make_private(directory)
        check_private_path(directory, owners=mine, mode_forbidden=0o077)
    for directory in sorted({place.path.parent for place in door_places(config)}):
        check_private_path(directory, owners=mine, mode_forbidden=0o077 if is_user_mode else 0o022)


def _make_private(directory: Path) -> None:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make the directory ({error.strerror})",
            code="directory-unusable",
            where=Where(str(directory)),
        ) from error
