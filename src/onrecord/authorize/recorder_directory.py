"""Who is who for the recorder, from the signed policy bundle. A changed bundle is read again, a bad one is not used.

Source: running.md 1 (last paragraph), 2.1, 2.2.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from onrecord.authorize.policy import Bundle, load_bundle
from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError
from onrecord.base.keys import read_trusted_keys
from onrecord.base.sockets import check_private_path
from onrecord.record.recorder.directory import AgentModel

LOOK_SECONDS: Final = 1.0
"""Pause between two looks at the bundle file."""

_log = logging.getLogger("onrecord.recorder")

_Stamp = tuple[tuple[int, int, int] | None, ...]


class BundleDirectory:
    """The `Directory` of the recorder over one bundle file.

    `server_uids` are those of the configuration: they count for servers that are in no bundle yet, so that nothing
    is lost while policy is being made. `ti_servers` likewise.
    """

    def __init__(
        self,
        bundle: Path,
        *,
        trust: Path,
        mode: Literal["user", "system"],
        authority_uid: int,
        server_uids: Mapping[str, int],
        ti_servers: Mapping[str, str],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = bundle
        self._trust = trust
        self._mode: Literal["user", "system"] = mode
        self._authority_uid = authority_uid
        self._server_uids = dict(server_uids)
        self._ti_servers = dict(ti_servers)
        self._monotonic = monotonic
        self._bundle: Bundle | None = None
        self._stamp: _Stamp | None = None
        self._next_look = 0.0
        self.problem: str | None = None

    @classmethod
    def of(cls, configuration: Configuration) -> BundleDirectory:
        """Return the directory that a configuration describes. Raises `ConfigurationError` for unknown users."""
        return cls(
            configuration.policy.bundle,
            trust=configuration.trust.policy,
            mode=configuration.mode,
            authority_uid=configuration.authority_uid,
            server_uids={id_: configuration.server_uid(id_) for id_ in configuration.servers},
            ti_servers={
                id_: server.ti_server for id_, server in configuration.servers.items() if server.ti_server
            },
        )

    @property
    def authority_uid(self) -> int:
        """Return the uid of the authority."""
        return self._authority_uid

    @property
    def version(self) -> int | None:
        """Return the version of the bundle in use, None without one."""
        bundle = self._current()
        return bundle.version if bundle is not None else None

    def caller_id(self, uid: int) -> str | None:
        """Return the caller id of an agent's uid, or None; in user mode the one caller there is."""
        bundle = self._current()
        if bundle is None:
            return None
        if self._mode == "user":
            return bundle.user_mode.caller if bundle.user_mode is not None else None
        caller = bundle.caller_by_uid(uid)
        return caller.id if caller is not None else None

    def ti_server(self, server_id: str) -> str | None:
        """Return the name of a server in vCons: the bundle's, else the configuration's for a server it lacks."""
        bundle = self._current()
        server = bundle.servers.get(server_id) if bundle is not None else None
        return server.ti_server if server is not None else self._ti_servers.get(server_id)

    def agent(self, caller: str) -> AgentModel | None:
        """Return model and provider of a caller when the bundle knows both."""
        bundle = self._current()
        entry = bundle.caller(caller) if bundle is not None else None
        if entry is None or entry.agent is None:
            return None
        return AgentModel(entry.agent.model_id, entry.agent.model_provider)

    def control_roles(self, uid: int) -> frozenset[str]:
        """Return the control roles of a uid; in user mode those of `userMode`."""
        bundle = self._current()
        if bundle is None:
            return frozenset()
        if self._mode == "user":
            return frozenset(bundle.user_mode.control_roles if bundle.user_mode is not None else ())
        return frozenset(bundle.control_roles_of(uid))

    def server_ids_of_uid(self, uid: int) -> frozenset[str]:
        """Return the servers that run under a uid: by the bundle, else by the configuration."""
        bundle = self._current()
        known = bundle.servers if bundle is not None else {}
        found = {
            id_ for id_, configured in self._server_uids.items() if configured == uid and id_ not in known
        }
        found |= {id_ for id_, server in known.items() if server.uid == uid}
        return frozenset(found)

    def _current(self) -> Bundle | None:
        now = self._monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            stamp = tuple(_stamp(path) for path in (self._path, self._signature, self._trust))
            if stamp != self._stamp:
                self._stamp = stamp
                self._load()
        return self._bundle

    @property
    def _signature(self) -> Path:
        return self._path.with_name(self._path.name + ".sig")

    def _load(self) -> None:
        """Read the bundle; whatever is wrong with it leaves the old one in use."""
        previous = self._bundle.loaded_version if self._bundle is not None else None
        try:
            bundle = load_bundle(self._path, self._trusted(), previous=previous, mode=self._mode)
        except OnrecordError as error:
            self.problem = error.code
            _log.warning("the policy bundle is not used: %s", error.code)
            return
        self._bundle, self.problem = bundle, None

    def _trusted(self) -> Mapping[str, Ed25519PublicKey]:
        owners = {0} if self._mode == "system" else {os.geteuid()}
        for path in (self._path, self._signature, self._trust):
            check_private_path(path, owners=owners, mode_forbidden=0o022)
        return read_trusted_keys(self._trust)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
