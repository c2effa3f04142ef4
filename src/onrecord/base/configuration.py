r"""`onrecord.toml`: read once, strictly, into frozen objects.

An unknown key, a wrong type and a thing that is not built yet are errors with file, line and, where there is
one, the nearest known key. All paths are absolute afterwards. Nothing secret is ever in the file: keys are URIs.

>>> configuration = Configuration.parse(
...     'mode = "user"\n[paths]\nstate = "/tmp/s"\nruntime = "/tmp/r"\n', file=Path("/tmp/onrecord.toml")
... )
>>> str(configuration.control_socket())
'/tmp/r/control.sock'

Source: running.md 2 and 3; what is refused for now: running.md 13.
"""

from __future__ import annotations

import grp
import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from onrecord.base._configuration_reader import Reader, first_mode
from onrecord.base._configuration_values import ConfigurationText, reject
from onrecord.base.configuration_keys import KEYS, SERVER_KEYS, Key, Mode
from onrecord.base.configuration_sections import (
    AuthoritySettings,
    CheckSettings,
    ConnectorSettings,
    Keys,
    LocalLimits,
    Paths,
    PolicyFiles,
    Principals,
    RecorderSettings,
    Server,
    Sockets,
    Trust,
)
from onrecord.base.errors import ConfigurationError, Where
from onrecord.base.sockets import MAX_SOCKET_PATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SYSTEM_FILE: Final = Path("/etc/onrecord/onrecord.toml")
"""The last place of the search."""

_NOBODY: Final = 65534

MAX_FILE_BYTES: Final = 1 << 20
"""Longest configuration. A file of this size is a mistake, and reading it all is not needed to say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A checked configuration. `file` is absolute and is what children get as `--config`."""

    file: Path
    mode: Mode
    paths: Paths
    sockets: Sockets
    principals: Principals | None
    keys: Keys
    trust: Trust
    policy: PolicyFiles
    authority: AuthoritySettings
    recorder: RecorderSettings
    connector: ConnectorSettings
    check: CheckSettings
    limits: LocalLimits
    servers: Mapping[str, Server]

    @classmethod
    def load(cls, path: Path | None = None, *, environ: Mapping[str, str] | None = None) -> Configuration:
        """Find and read the configuration: `path`, `$ONRECORD_CONFIG`, the user's, then the system's.

        Raises `ConfigurationError` with code "configuration-missing", "configuration-owner", "configuration-mode",
        "configuration-syntax", "configuration-key", "configuration-value" or "not-built-yet".

        Source: running.md 3.
        """
        environ = os.environ if environ is None else environ
        file = find(path, environ=environ)
        return cls.parse(_read(file), file=file, environ=environ)

    @classmethod
    def parse(cls, text: str, *, file: Path, environ: Mapping[str, str] | None = None) -> Configuration:
        """Check `text`, which stands in `file`; nothing is read from the disk."""
        source = ConfigurationText.read(text, file=file)
        environ = os.environ if environ is None else environ
        mode = first_mode(source)
        values = Reader(source, mode=mode, environ=environ).values()
        configuration = cls(
            file=Path(os.path.abspath(file)),
            mode=mode,
            paths=Paths(**_section(values, "paths")),
            sockets=_sockets(values, mode),
            principals=Principals(**_section(values, "principals")) if mode == "system" else None,
            keys=Keys(**_section(values, "keys")),
            trust=Trust(**_section(values, "trust")),
            policy=PolicyFiles(**_section(values, "policy")),
            authority=AuthoritySettings(**_section(values, "authority")),
            recorder=RecorderSettings(**_section(values, "recorder")),
            connector=ConnectorSettings(**_section(values, "connector")),
            check=CheckSettings(**_section(values, "check")),
            limits=LocalLimits(**_section(values, "limits")),
            servers={id_: Server(id=id_, **entry) for id_, entry in values["servers"].items()},
        )
        configuration._check_socket_lengths(source)
        return configuration

    def agent_socket(self) -> Path:
        """The authority's socket for agents."""
        return self.sockets.authority

    def server_socket(self, server: str) -> Path:
        """The authority's socket for the guard of `server`."""
        self.server(server)
        return (
            self.sockets.authority if self.mode == "system" else self.paths.runtime / f"server-{server}.sock"
        )

    def approval_socket(self) -> Path:
        """The authority's socket for approvers."""
        return self.sockets.approval

    def control_socket(self) -> Path:
        """The authority's socket for operators."""
        return self.sockets.control

    def record_socket(self) -> Path:
        """The recorder's socket."""
        return self.sockets.record

    def mcp_socket(self, server: str) -> Path:
        """The guard's socket for MCP clients, `<runtime>-srv/ID/mcp.sock`; system mode only."""
        return self.server_runtime() / server / "mcp.sock"

    def server_runtime(self) -> Path:
        """The parent of the directories of the server sockets; system mode only."""
        return self.paths.runtime.with_name(self.paths.runtime.name + "-srv")

    def socket_paths(self) -> Iterator[tuple[str, Path]]:
        """Yield name and path of every socket that this configuration needs."""
        yield "authority", self.sockets.authority
        yield "approval", self.sockets.approval
        yield "control", self.sockets.control
        yield "record", self.sockets.record
        for server in self.servers:
            yield server, self.mcp_socket(server) if self.mode == "system" else self.server_socket(server)

    @property
    def authority_state(self) -> Path:
        """Directory of the decision journal and the replay state."""
        return self.paths.state / "authority"

    @property
    def recorder_state(self) -> Path:
        """Directory of the record journal."""
        return self.paths.state / "recorder"

    def marks(self, name: Literal["authority", "recorder"]) -> Path:
        """Directory of the high-water file of one journal."""
        return self.paths.state / "marks" / name

    def guard_state(self, server: str) -> Path:
        """Directory of spool and state of the guard of `server`."""
        self.server(server)
        return self.paths.state / "srv" / server

    def server_cwd(self, server: str) -> Path:
        """Working directory of the real server: as configured, else the home of its uid, else `/`."""
        entry = self.server(server)
        if entry.cwd is not None:
            return entry.cwd
        try:
            return Path(pwd.getpwuid(self.server_uid(server)).pw_dir)
        except KeyError:
            return Path("/")

    @property
    def authority_uid(self) -> int:
        """Uid of the authority; in user mode the own one."""
        return (
            os.getuid() if self.principals is None else user_number(self.principals.authority, file=self.file)
        )

    @property
    def recorder_uid(self) -> int:
        """Uid of the recorder; in user mode the own one."""
        return (
            os.getuid() if self.principals is None else user_number(self.principals.recorder, file=self.file)
        )

    def server_uid(self, server: str) -> int:
        """Uid of guard and real server; in user mode the own one."""
        entry = self.server(server)
        return os.getuid() if entry.user is None else user_number(entry.user, file=self.file)

    def server(self, server: str) -> Server:
        """Return one server; raises `ConfigurationError` with code "server-unknown"."""
        try:
            return self.servers[server]
        except KeyError:
            known = ", ".join(sorted(self.servers)) or "none"
            raise ConfigurationError(
                "no such server in the configuration",
                code="server-unknown",
                hint=f"servers of this file: {known}; add a table [servers.ID]",
                where=Where(file=str(self.file)),
            ) from None

    @property
    def call_gid(self) -> int | None:
        """Group of the authority socket and the server sockets; None in user mode."""
        return self._gid("call_group")

    @property
    def approval_gid(self) -> int | None:
        """Group of the approval socket; None in user mode."""
        return self._gid("approval_group")

    @property
    def control_gid(self) -> int | None:
        """Group of the control socket; None in user mode."""
        return self._gid("control_group")

    @property
    def record_gid(self) -> int | None:
        """Group of the recorder's socket; None in user mode."""
        return self._gid("record_group")

    @property
    def readers_gid(self) -> int | None:
        """Group of the finished vCons; None in user mode."""
        return self._gid("readers_group")

    def _gid(self, name: str) -> int | None:
        if self.principals is None:
            return None
        return group_number(getattr(self.principals, name), file=self.file)

    def _check_socket_lengths(self, source: ConfigurationText) -> None:
        for name, path in self.socket_paths():
            size = len(os.fsencode(path))
            if size > MAX_SOCKET_PATH:
                reject(
                    source,
                    ("paths", "runtime"),
                    f"the socket path of {name} has {size} bytes, and {MAX_SOCKET_PATH} are possible",
                    code="socket-path-long",
                    hint="set paths.runtime to a shorter directory",
                )


def find(path: Path | None, *, environ: Mapping[str, str]) -> Path:
    """Return the file that `Configuration.load` reads; raises code "configuration-missing"."""
    named = (
        path
        if path is not None
        else (Path(environ["ONRECORD_CONFIG"]) if environ.get("ONRECORD_CONFIG") else None)
    )
    if named is not None:
        candidates = [Path(os.path.abspath(named))]
    else:
        base = environ.get("XDG_CONFIG_HOME") or ""
        user = Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or "/nonexistent") / ".config"
        candidates = [user / "onrecord" / "onrecord.toml", SYSTEM_FILE]
    for candidate in candidates:
        if os.path.lexists(candidate):
            return candidate
    raise ConfigurationError(
        "no configuration found: looked for " + ", ".join(str(one) for one in candidates),
        code="configuration-missing",
        hint="run `onrecord init`, or name a file with --config",
        where=Where(file=str(candidates[0])),
    )


def _read(file: Path) -> str:
    """Return the text of `file`, which must belong to the own uid or root and be writable by nobody else."""
    where = Where(file=str(file))
    try:
        with open(file, "rb") as stream:
            status = os.fstat(stream.fileno())
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"the configuration cannot be read: {error.strerror}", code="configuration-missing", where=where
        ) from error
    if status.st_uid not in (0, os.geteuid()):
        raise ConfigurationError(
            f"the configuration belongs to uid {status.st_uid}; expected root or the own uid {os.geteuid()}",
            code="configuration-owner",
            hint="whoever writes this file decides which programs run",
            where=where,
        )
    if status.st_mode & 0o022:
        raise ConfigurationError(
            f"the configuration has mode {status.st_mode & 0o7777:04o}; others can write it",
            code="configuration-mode",
            hint=f"chmod go-w {file}",
            where=where,
        )
    if len(data) > MAX_FILE_BYTES:
        raise ConfigurationError(
            f"the configuration is longer than {MAX_FILE_BYTES} bytes",
            code="configuration-syntax",
            where=where,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"the configuration is not UTF-8 at byte {error.start}", code="configuration-syntax", where=where
        ) from error


def user_number(user: str | int, *, file: Path) -> int:
    """Return the uid of a user name or number.

    Raises `ConfigurationError` with code "user-unknown" for a name without account, "user-root" for uid 0, which
    is nobody's (running R-02), and "user-nobody" for uid 65534.
    """
    if isinstance(user, str):
        try:
            uid = pwd.getpwnam(user).pw_uid
        except KeyError:
            raise ConfigurationError(
                f"there is no user {user!r} on this machine",
                code="user-unknown",
                hint="create it, or write the number of a uid without quotes",
                where=Where(file=str(file)),
            ) from None
    else:
        uid = user
    if uid in (0, _NOBODY):
        raise ConfigurationError(
            f"uid {uid} has no role",
            code="user-root" if uid == 0 else "user-nobody",
            hint="use a user of its own for each role",
            where=Where(file=str(file)),
        )
    return uid


def group_number(group: str | int, *, file: Path) -> int:
    """Return the gid of a group name or number; raises code "group-unknown"."""
    if isinstance(group, int):
        return group
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise ConfigurationError(
            f"there is no group {group!r} on this machine",
            code="group-unknown",
            hint="create it, or write the number of a gid without quotes",
            where=Where(file=str(file)),
        ) from None


def user_gid(uid: int) -> int:
    """Return the primary gid of `uid`; for a number without account the same number (running.md 2.3)."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def _section(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    prefix = name + "."
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _sockets(values: Mapping[str, Any], mode: Mode) -> Sockets:
    if mode == "system":
        return Sockets(**_section(values, "sockets"))
    runtime = values["paths.runtime"]
    return Sockets(
        authority=runtime / "agent.sock",
        approval=runtime / "approval.sock",
        control=runtime / "control.sock",
        record=runtime / "record.sock",
    )


__all__ = [
    "KEYS",
    "MAX_FILE_BYTES",
    "SERVER_KEYS",
    "SYSTEM_FILE",
    "AuthoritySettings",
    "CheckSettings",
    "Configuration",
    "ConnectorSettings",
    "Key",
    "Keys",
    "LocalLimits",
    "Mode",
    "Paths",
    "PolicyFiles",
    "Principals",
    "RecorderSettings",
    "Server",
    "Sockets",
    "Trust",
    "find",
    "group_number",
    "user_gid",
    "user_number",
]
