"""How the real server is started, and where its guard keeps its things."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onrecord.authorize.guard.environment import server_environment
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, StorageError, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A program with its arguments, directory and environment, which holds secrets and is never shown."""

    command: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, configuration: Configuration, server: str, command: Sequence[str] | None = None) -> Launch:
        """Return how `server` is started; `command` replaces the configured one.

        Raises `ConfigurationError` with code "cannot-start" or "env-file-…".
        """
        entry = configuration.server(server)
        env = server_environment(
            uid=configuration.server_uid(server),
            own=os.environ,
            env_file=entry.env_file,
            env_pass=entry.env_pass,
        )
        wanted = tuple(command) if command else (entry.command, *entry.args)
        program = wanted[0] if os.path.isabs(wanted[0]) else shutil.which(wanted[0], path=env["PATH"])
        if program is None or not os.access(program, os.X_OK):
            raise ConfigurationError(
                f"the server's program {wanted[0]!r} cannot be executed",
                code="cannot-start",
                where=Where(str(configuration.file)),
                hint=f"look at servers.{server}.command",
            )
        return cls(command=(program, *wanted[1:]), cwd=configuration.server_cwd(server), env=env)


def state_directory(path: Path) -> Path:
    """Make the guard's state directory if it is missing; it must be private to this uid.

    Raises `StorageError` with code "state-unusable", `ConfigurationError` with code "path-mode".
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError as error:
        raise StorageError(
            f"the guard's state directory cannot be made ({error.strerror})",
            code="state-unusable",
            where=Where(str(path)),
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConfigurationError(
            "the guard's state directory must be private to the server's uid",
            code="path-mode",
            where=Where(str(path)),
            hint=f"chmod 700 {path}",
        )
    return path


def check_socket_directory(directory: Path) -> None:
    """Make sure that nobody but root and this uid can replace the server socket.

    Raises `ConfigurationError` with code "path-missing" or "path-owner".
    """
    try:
        status = os.lstat(directory)
    except OSError as error:
        raise ConfigurationError(
            f"the directory of the server socket is missing ({error.strerror})",
            code="path-missing",
            where=Where(str(directory)),
            hint="onrecord up makes it",
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (0, os.getuid()) or status.st_mode & 0o022:
        raise ConfigurationError(
            "the directory of the server socket must belong to the server's uid alone",
            code="path-owner",
            where=Where(str(directory)),
        )
