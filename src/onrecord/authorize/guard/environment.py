"""The environment of the real server: clean, plus its own secrets. Nothing of the agent's environment gets in.

Source: running.md 5.1, call-proof.md 1.4.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from onrecord.authorize.guard.relay_rules import ClientPeer
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, Where
from onrecord.base.files import read_bounded, regular_file

HOOK_AUTHORITY: Final = "ONRECORD_AUTHORITY"
HOOK_SERVER: Final = "ONRECORD_SERVER"
HOOK_PEER_UID: Final = "ONRECORD_PEER_UID"
HOOK_PEER_PID: Final = "ONRECORD_PEER_PID"
HOOK_CONNECTION: Final = "ONRECORD_CONNECTION"
HOOK_CONFIG: Final = "ONRECORD_CONFIG"

ENV_FILE_BYTES: Final = 1 << 20
"""Longest env file; a longer one is a mistake in the configuration."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LOCALE = re.compile(r"LC_[A-Z]+", re.ASCII)
_DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


def server_environment(
    *, uid: int, own: Mapping[str, str], env_file: Path | None, env_pass: Sequence[str]
) -> dict[str, str]:
    """Return PATH, HOME, LANG, LC_*, TZ, TMPDIR and USER of `uid`, then `env_pass` of `own`, then the env file.

    `own` is the environment of the guard.

    Raises `ConfigurationError` as `read_env_file` does.
    """
    account = _account(uid)
    environment = {
        "PATH": own.get("PATH") or _DEFAULT_PATH,
        "HOME": account.pw_dir if account else _own_home(own, uid),
        "USER": account.pw_name if account else str(uid),
    }
    if uid == os.getuid() and own.get("HOME") and _own_home(own, uid) != "/":
        environment["HOME"] = own["HOME"]
    kept = {"LANG", "TZ", "TMPDIR", *env_pass}
    environment.update(
        {name: value for name, value in own.items() if name in kept or _LOCALE.fullmatch(name)}
    )
    if env_file is not None:
        environment.update(read_env_file(env_file, owner=uid))
    return environment


def hook_environment(
    configuration: Configuration, server: str, *, peer: ClientPeer, connection: str
) -> dict[str, str]:
    """Return what a server with the SDK hook is told beside its own environment: whose calls it checks, and how.

    ONRECORD_CONFIG and ONRECORD_PEER_PID are ours; running.md 5.1 has the other four.
    """
    return {
        HOOK_AUTHORITY: f"unix://{configuration.server_socket(server)}",
        HOOK_SERVER: server,
        HOOK_PEER_UID: str(peer.uid),
        HOOK_PEER_PID: str(peer.pid),
        HOOK_CONNECTION: connection,
        HOOK_CONFIG: str(configuration.file),
    }


def _check_private(path: Path, status: os.stat_result, *, owner: int) -> None:
    where = Where(str(path))
    if status.st_uid != owner:
        raise ConfigurationError(
            f"the env file must belong to uid {owner}, it belongs to uid {status.st_uid}",
            code="env-file-owner",
            where=where,
            hint=f"chown {owner} {path}",
        )
    if status.st_mode & 0o077:
        raise ConfigurationError(
            f"the env file has mode {stat.S_IMODE(status.st_mode):04o}, others can read it",
            code="env-file-mode",
            where=where,
            hint=f"chmod 600 {path}",
        )


def read_env_file(path: Path, *, owner: int) -> dict[str, str]:
    """Read lines NAME=value; blank lines and lines that begin with # are skipped, values are taken as they stand.

    The file belongs to `owner`, is a regular file and no symbolic link, and nobody else may read it.

    Raises `ConfigurationError` with code "env-file-missing", "env-file-owner", "env-file-mode" or
    "env-file-malformed". No error holds a value.

    Source: running.md 2.1, 3.
    """
    where = Where(str(path))
    try:
        with regular_file(path) as (descriptor, status):
            _check_private(path, status, owner=owner)
            data = read_bounded(descriptor, limit_bytes=ENV_FILE_BYTES)
    except OSError as error:
        code = "env-file-malformed" if error.errno in (errno.EINVAL, errno.EFBIG) else "env-file-missing"
        raise ConfigurationError(
            f"the env file cannot be read ({error.strerror})", code=code, where=where
        ) from error
    variables: dict[str, str] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        text = os.fsdecode(line.removesuffix(b"\r"))
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name) or "\0" in value:
            raise ConfigurationError(
                "expected NAME=value", code="env-file-malformed", where=Where(str(path), line=number)
            )
        variables[name] = value
    return variables


def _account(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def _own_home(own: Mapping[str, str], uid: int) -> str:
    home = own.get("HOME", "")
    try:
        return home if home and os.stat(home).st_uid == uid else "/"
    except OSError:
        return "/"
