"""The directories of an installation: owner, group and mode of each, made by `init` and `up`, checked by `doctor`.

Source: running.md 2.1 and 2.2.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.base.configuration import user_gid
from onrecord.base.errors import ConfigurationError, Where
from onrecord.base.sockets import check_private_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onrecord.base.configuration import Configuration

ROOT: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """One directory. `owner` and `group` are numbers; `mode` has the setgid bit where files inherit the group."""

    path: Path
    owner: int
    group: int
    mode: int


def directories(configuration: Configuration) -> tuple[Directory, ...]:
    """Return every directory that the processes need, parents first.

    Raises `ConfigurationError` with code "user-unknown" or "group-unknown" where an account is missing.
    """
    found = _user_mode(configuration) if configuration.mode == "user" else _system_mode(configuration)
    unique: dict[Path, Directory] = {}
    for directory in found:
        unique.setdefault(directory.path, directory)
    return tuple(sorted(unique.values(), key=lambda one: len(one.path.parts)))


def _user_mode(configuration: Configuration) -> Iterator[Directory]:
    uid, gid = os.getuid(), os.getgid()
    paths, keys, trust = configuration.paths, configuration.keys, configuration.trust
    uris = (keys.proof, keys.authority_journal, keys.recorder_journal, keys.record, keys.policy)
    for path in (
        paths.config,
        paths.config / "env",
        paths.config / "keys",
        *(Path(uri.removeprefix("file:")).parent for uri in uris if uri is not None),
        keys.record_chain.parent,
        trust.policy.parent,
        trust.journal.parent,
        trust.vcon,
        configuration.policy.source,
        configuration.policy.bundle.parent,
        paths.state,
        configuration.authority_state,
        configuration.recorder_state,
        paths.state / "marks",
        configuration.marks("authority"),
        configuration.marks("recorder"),
        paths.state / "srv",
        *(configuration.guard_state(server) for server in configuration.servers),
        paths.records,
        paths.runtime,
    ):
        yield Directory(path=path, owner=uid, group=gid, mode=0o700)


def _system_mode(configuration: Configuration) -> Iterator[Directory]:
    paths, keys, trust = configuration.paths, configuration.keys, configuration.trust
    authority, recorder = configuration.authority_uid, configuration.recorder_uid
    for path in (
        paths.config,
        trust.policy.parent,
        trust.journal.parent,
        trust.vcon,
        configuration.policy.source,
    ):
        yield Directory(path=path, owner=ROOT, group=ROOT, mode=0o755)
    yield Directory(path=configuration.policy.bundle.parent, owner=ROOT, group=ROOT, mode=0o755)
    yield Directory(path=paths.config / "env", owner=ROOT, group=ROOT, mode=0o711)
    yield Directory(path=paths.config / "keys", owner=ROOT, group=ROOT, mode=0o700)
    yield Directory(path=paths.state, owner=ROOT, group=ROOT, mode=0o755)
    yield Directory(path=paths.state / "marks", owner=ROOT, group=ROOT, mode=0o755)
    yield Directory(path=paths.state / "srv", owner=ROOT, group=ROOT, mode=0o755)
    for name, uid, uris in (
        ("authority", authority, (keys.proof, keys.authority_journal)),
        ("recorder", recorder, (keys.recorder_journal, keys.record)),
    ):
        gid = user_gid(uid)
        yield Directory(path=paths.state / name, owner=uid, group=gid, mode=0o700)
        for uri in uris:
            yield Directory(path=Path(uri.removeprefix("file:")).parent, owner=uid, group=gid, mode=0o700)
        yield Directory(path=paths.state / "marks" / name, owner=uid, group=gid, mode=0o700)
    yield Directory(path=keys.record_chain.parent, owner=recorder, group=user_gid(recorder), mode=0o700)
    readers = configuration.readers_gid
    assert readers is not None
    yield Directory(path=paths.records, owner=recorder, group=readers, mode=0o2750)
    yield from runtime_directories(configuration)
    for server in configuration.servers:
        uid = configuration.server_uid(server)
        yield Directory(path=configuration.guard_state(server), owner=uid, group=user_gid(uid), mode=0o700)


def runtime_directories(configuration: Configuration) -> Iterator[Directory]:
    """Yield the directories of the sockets in system mode; /run is empty after a start of the machine."""
    authority, recorder = configuration.authority_uid, configuration.recorder_uid
    sockets = configuration.sockets
    for socket, uid in (
        (sockets.authority, authority),
        (sockets.approval, authority),
        (sockets.control, authority),
        (sockets.record, recorder),
    ):
        yield Directory(path=socket.parent, owner=uid, group=user_gid(uid), mode=0o755)
    yield Directory(path=configuration.server_runtime(), owner=ROOT, group=ROOT, mode=0o755)
    for server in configuration.servers:
        uid = configuration.server_uid(server)
        path = configuration.mcp_socket(server).parent
        yield Directory(path=path, owner=uid, group=user_gid(uid), mode=0o755)


def make_directories(wanted: Sequence[Directory]) -> tuple[Path, ...]:
    """Make the directories that are missing and return them; what exists is left as it is.

    Missing parents are made with mode 0755 (0700 below a private one). Root makes
    nothing where somebody else than the owner can write, and follows no symbolic link.

    Raises `ConfigurationError` with code "cannot-make-directory", and for root those of `check_private_path`.
    """
    made: list[Path] = []
    for directory in wanted:
        made += _make(directory)
    return tuple(made)


def _make(directory: Directory) -> Iterator[Path]:
    """Make one directory and its parents, each below the descriptor of the one before: nobody can swap them."""
    as_root = os.geteuid() == 0
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | (os.O_NOFOLLOW if as_root else 0)
    path = Path("/")
    parent = os.open(path, flags)
    try:
        for name in directory.path.parts[1:]:
            above, path = path, path / name
            try:
                try:
                    below = os.open(name, flags, dir_fd=parent)
                except FileNotFoundError:
                    if as_root:
                        _check_parent(above, owner=directory.owner)
                    try:
                        os.mkdir(name, 0o700, dir_fd=parent)
                    except FileExistsError:
                        pass  # somebody else made it just now; it is looked at by who uses it
                    else:
                        _own(name, parent, directory, is_last=path == directory.path)
                        yield path
                    below = os.open(name, flags, dir_fd=parent)
            except OSError as error:
                if as_root:
                    check_private_path(path, owners={directory.owner})  # a link says so itself
                raise ConfigurationError(
                    f"cannot make the directory ({error.strerror})",
                    code="cannot-make-directory",
                    hint="choose a directory that you may write to: onrecord init DIR",
                    where=Where(file=str(path)),
                ) from error
            os.close(parent)
            parent = below
    finally:
        os.close(parent)


def _check_parent(path: Path, *, owner: int) -> None:
    """Make sure that only root and `owner` can change names in a directory, or that it is sticky and root's."""
    status = check_private_path(path, owners={owner})
    if status.st_mode & 0o022 and not (status.st_mode & stat.S_ISVTX and status.st_uid == ROOT):
        check_private_path(path, owners={owner}, mode_forbidden=0o022)


def _own(name: str, parent: int, directory: Directory, *, is_last: bool) -> None:
    """Give a directory that was just made its owner and mode, through a descriptor. Raises `OSError`."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it was replaced while it was made")
        if is_last and (directory.owner, directory.group) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, directory.owner, directory.group)
        private = directory.mode == 0o700 and os.geteuid() != 0
        # After chown, which clears the setgid bit.
        os.fchmod(descriptor, directory.mode if is_last else 0o700 if private else 0o755)
    finally:
        os.close(descriptor)


def check_directory(directory: Directory) -> None:
    """Make sure that a directory is what it should be, and that nobody else can replace it.

    Stricter modes are accepted. The directory itself is judged by its owner; its parents by root and the owner,
    so that a directory of one principal never lies below one that another principal can rename.

    Raises `ConfigurationError` with code "path-missing", "path-symlink", "path-owner", "path-mode" or "path-kind".
    """
    forbidden = 0o7777 & ~directory.mode & ~stat.S_ISVTX
    # Group and other write are forbidden by every row of the table; a missing setgid bit is no danger.
    status = check_private_path(directory.path, owners={directory.owner}, mode_forbidden=forbidden)
    where = Where(file=str(directory.path))
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError("expected a directory", code="path-kind", where=where)
    if status.st_uid != directory.owner:
        raise ConfigurationError(
            f"the directory belongs to uid {status.st_uid}, expected {directory.owner}",
            code="path-owner",
            hint=f"chown {directory.owner} {directory.path}",
            where=where,
        )
    is_for_group = directory.mode & 0o070 and not directory.mode & 0o007
    if is_for_group and status.st_mode & 0o070 and status.st_gid != directory.group:
        raise ConfigurationError(
            f"the directory belongs to group {status.st_gid}, expected {directory.group}",
            code="path-owner",
            hint=f"chgrp {directory.group} {directory.path}",
            where=where,
        )
