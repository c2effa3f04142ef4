"""Which roles of a configuration share a uid: asked by the authority at its start and by `onrecord doctor`.

Source: call-proof.md 1.3, 1.5.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onrecord.base.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onrecord.base.configuration import Configuration


def role_uids(configuration: Configuration, *, known_only: bool = False) -> dict[str, int]:
    """Return the uid of authority, recorder and each server; in user mode they are all one.

    `known_only` leaves out a name without account, which may exist only where that part runs (a container).

    Raises `ConfigurationError` with code "user-unknown" for a name without account.
    """
    found = {}
    for name, uid in _roles(configuration):
        try:
            found[name] = uid()
        except ConfigurationError:
            if not known_only:
                raise
    return found


def shared_uids(configuration: Configuration, *, known_only: bool = False) -> tuple[str, ...]:
    """Return one text for each uid that several roles have: the roles and the number. Raises as `role_uids` does."""
    by_uid: dict[int, list[str]] = {}
    for name, uid in role_uids(configuration, known_only=known_only).items():
        by_uid.setdefault(uid, []).append(name)
    return tuple(f"{' and '.join(names)} (uid {uid})" for uid, names in by_uid.items() if len(names) > 1)


def _roles(configuration: Configuration) -> Iterator[tuple[str, Callable[[], int]]]:
    yield "authority", lambda: configuration.authority_uid
    yield "recorder", lambda: configuration.recorder_uid
    for server in configuration.servers:
        yield f"server {server}", partial(configuration.server_uid, server)
