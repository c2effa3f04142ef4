"""Unix sockets, peer identity and path ownership (call-proof.md 4.1, 4.3)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import shlex
import socket
import stat
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from onrecord.base.dates import boot_id
from onrecord.base.errors import ConfigurationError, NetworkError, UsageError, Where

MAX_SOCKET_PATH: Final = 107
"""Bytes of a socket path: sun_path has 108 with its NUL (unix(7))."""

_SO_PEERPIDFD: Final = 77
_UCRED: Final = struct.Struct("3i")


class Peer(NamedTuple):
    """Who connected, by the kernel's word at the time of connect."""

    pid: int
    uid: int
    gid: int


def peer_credentials(sock: socket.socket) -> Peer:
    """Return SO_PEERCRED of a connected Unix socket."""
    return Peer(*_UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)))


def open_peer_pidfd(sock: socket.socket) -> int | None:
    """Return a pidfd of the peer process (Linux 6.5 and later), or None where the kernel has none.

    Raises `OSError` when this kernel has them and this peer has none: it was reaped before it was accepted, so that
    somebody else holds its socket now, or no descriptor is left. Such a peer must not pass as one that lives.
    """
    try:
        return struct.unpack("i", sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4))[0]  # type: ignore[no-any-return]
    except OSError as error:
        if error.errno == errno.ENOPROTOOPT:
            return None
        raise


def has_exited(pidfd: int) -> bool:
    """Say whether the process of a pidfd has exited."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))


def process_start_time(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot (field 22 of /proc/PID/stat), or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return int(fields[19])


def process_label(pid: int) -> str:
    """Return the default record-session label of a process (running.md R-06)."""
    start = process_start_time(pid)
    return f"p{pid}-{0 if start is None else start}-{boot_id().replace('-', '')[:8]}"


def check_private_path(
    path: Path, *, owners: Collection[int], mode_forbidden: int | None = None
) -> os.stat_result:
    """Make sure that nobody but `owners` and root can replace or change what `path` names.

    Every parent up to the root belongs to one of them and is writable by nobody else; one level of a sticky
    directory such as /tmp is accepted. No part is a symbolic link. `mode_forbidden` are permission bits that the
    object itself must not have. Returns its lstat.

    Raises `ConfigurationError` with code "path-missing", "path-symlink", "path-owner" or "path-mode".

    Source: call-proof.md 4.1; running.md 2.2.
    """
    allowed = {0, *owners}
    sticky_left = 1
    absolute = Path(os.path.normpath(path.absolute()))
    for part in [*reversed(absolute.parents), absolute]:
        try:
            status = os.lstat(part)
        except OSError as error:
            raise ConfigurationError(
                f"{part} cannot be looked at ({error.strerror})", code="path-missing", where=Where(str(part))
            ) from error
        if stat.S_ISLNK(status.st_mode):
            raise ConfigurationError(
                f"{part} is a symbolic link", code="path-symlink", where=Where(str(part))
            )
        if status.st_uid not in allowed:
            raise ConfigurationError(
                f"{part} belongs to uid {status.st_uid}, allowed are {sorted(allowed)}",
                code="path-owner",
                where=Where(str(part)),
            )
        if part == absolute:
            if mode_forbidden is not None and status.st_mode & mode_forbidden:
                raise ConfigurationError(
                    f"{part} has mode {stat.S_IMODE(status.st_mode):04o}",
                    code="path-mode",
                    where=Where(str(part)),
                    hint=f"chmod {stat.S_IMODE(status.st_mode) & ~mode_forbidden:o} {shlex.quote(str(part))}",
                )
        elif status.st_mode & 0o022:
            if status.st_mode & stat.S_ISVTX and status.st_uid == 0 and sticky_left:
                sticky_left -= 1
                continue
            raise ConfigurationError(
                f"{part} can be written by others (mode {stat.S_IMODE(status.st_mode):04o})",
                code="path-mode",
                where=Where(str(part)),
            )
    return status


def bind_unix(path: Path, *, mode: int, gid: int | None = None, backlog: int = 128) -> socket.socket:
    """Bind and listen on a Unix stream socket, removing a stale one that is ours.

    A file in the way is removed only if it is a socket, belongs to this uid, and refuses connections.

    Raises `ConfigurationError` with code "socket-path-long", "socket-path-taken" or "socket-bind", and `UsageError`
    with code "already-running" if something answers there.

    Source: call-proof.md 4.1.
    """
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise ConfigurationError(
            f"the socket path has more than {MAX_SOCKET_PATH} bytes",
            code="socket-path-long",
            where=Where(str(path)),
            hint="set paths.runtime to a shorter directory",
        )
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o777 & ~mode)
    try:
        sock.bind(os.fspath(path))
        if gid is not None and gid != os.getegid():
            os.chown(path, -1, gid, follow_symlinks=False)
            os.chmod(path, mode)
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise ConfigurationError(
            f"cannot listen on the socket ({error.strerror})", code="socket-bind", where=Where(str(path))
        ) from error
    finally:
        os.umask(before)
    return sock


def _remove_stale(path: Path) -> None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(
            f"cannot look at the socket path ({error.strerror})", code="socket-bind", where=Where(str(path))
        ) from error
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        raise ConfigurationError(
            "something else than our socket stands in its place",
            code="socket-path-taken",
            where=Where(str(path)),
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return
        except OSError:
            pass
    raise UsageError("another process listens on the socket", code="already-running", where=Where(str(path)))


def connect_unix(
    path: Path, *, expected_uid: int | None, timeout_seconds: float | None = None
) -> socket.socket:
    """Connect to a Unix socket and check the peer's uid before anything is sent.

    Raises `NetworkError` with code "unreachable" or "peer-uid".

    Source: call-proof.md 4.1.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.settimeout(timeout_seconds)
        sock.connect(os.fspath(path))
        check_peer(sock, path, expected_uid=expected_uid)
    except OSError as error:
        sock.close()
        raise NetworkError(
            f"nothing answers on the socket ({error.strerror or error})",
            code="unreachable",
            where=Where(str(path)),
        ) from error
    except NetworkError:
        sock.close()
        raise
    return sock


def check_peer(sock: socket.socket, path: Path, *, expected_uid: int | None) -> None:
    """Make sure that the other end of a socket has the expected uid. Raises `NetworkError` with code "peer-uid"."""
    uid = peer_credentials(sock).uid
    if expected_uid is not None and uid != expected_uid:
        raise NetworkError(
            f"the socket is served by uid {uid}, expected was {expected_uid}",
            code="peer-uid",
            where=Where(str(path)),
            hint="another process squats the path; nothing was sent to it",
        )


class LockFile:
    """An exclusive `flock` that lives as long as the object, with the holder's pid inside the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"cannot open the lock file ({error.strerror})", code="lock-unusable", where=Where(str(path))
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise UsageError(
                f"another process (pid {holder or 'unknown'}) holds {path.name}",
                code="already-running",
                where=Where(str(path)),
            ) from None
        with contextlib.suppress(OSError):  # a full disk must not stop the holder: the pid is a courtesy
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock up."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def lock_file(path: Path) -> LockFile:
    """Take the lock, or raise `UsageError` with code "already-running" that names the holder's pid."""
    return LockFile(path)
