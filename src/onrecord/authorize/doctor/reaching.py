"""What this uid can replace, write, read or connect to: asked of the kernel, without changing anything.

Files are really opened (never read, never truncated). Directories are judged by access(2) with the effective uid and
by their owner, who can always change the mode.

Source: call-proof.md 1.5, I4 to I6.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

MAX_LINKS: Final = 40
"""Symbolic links followed on one path, as in the kernel (path_resolution(7))."""

MAX_ENTRIES: Final = 200_000
"""Files of one program tree that are looked at; a Python with many packages has some ten thousand."""

CONNECT_SECONDS: Final = 3.0
"""How long a canary on the network may take to answer."""

_COPY_ENDINGS: Final = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".copy", ".tmp", ".1")

Reach = Literal["refused", "reached", "missing", "untried"]

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def way_to(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every part on the way from the root to `path`, symbolic links and what they lead to included.

    Ends early at a part that is missing or that this uid may not look at.
    """
    links = 0
    done = Path("/")
    ahead = list(reversed(Path(os.path.abspath(path)).parts[1:]))
    yield done, os.lstat(done)
    while ahead:
        name = ahead.pop()
        part = done.parent if name == ".." else done / name
        try:
            status = os.lstat(part)
        except OSError:
            return
        yield part, status
        if not stat.S_ISLNK(status.st_mode):
            done = part
            continue
        links += 1
        if links > MAX_LINKS:
            return
        target = Path(os.readlink(part))
        if target.is_absolute():
            done = Path("/")
        ahead += reversed([one for one in target.parts if one != "/"])


def replaceable(path: Path, *, links_allowed: bool) -> str | None:
    """Return which part of the way to `path` this uid owns or can write, or which is a link; None if there is none.

    One sticky directory of root, such as /tmp, is no danger: only the owner can replace what lies in it, but anybody
    can make what is not there yet. The object itself counts by its owner only, since a socket is there to be written
    to.
    """
    own = os.geteuid()
    sticky_left = 1
    last = Path(os.path.abspath(path))
    way = list(way_to(path))
    open_end = way[-1][0] if _is_missing(path) else None
    for part, status in way:
        if stat.S_ISLNK(status.st_mode) and not links_allowed:
            return f"{part} is a symbolic link"
        if status.st_uid == own:
            return f"{part} belongs to uid {own}"
        if part == last or not stat.S_ISDIR(status.st_mode) or not can_write(part, status):
            continue
        if status.st_mode & stat.S_ISVTX and status.st_uid == 0 and sticky_left and part != open_end:
            sticky_left -= 1
            continue
        return f"uid {own} can write {part}"
    return None


def _is_missing(path: Path) -> bool:
    try:
        os.stat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def can_write(path: Path, status: os.stat_result) -> bool:
    """Say whether this uid can change a file or the names in a directory. A link itself cannot be written."""
    if stat.S_ISREG(status.st_mode):
        try:
            os.close(os.open(path, _WRITE))
        except OSError as error:
            return error.errno == errno.ETXTBSY  # it runs just now, which is looked at after the permission
        return True
    return not stat.S_ISLNK(status.st_mode) and os.access(path, os.W_OK, effective_ids=True)


def writable(path: Path) -> str | None:
    """Return how this uid could change what `path` names, the way to it included, or None.

    A path that is not there is judged by its directories: who can write them can make it.
    """
    weak = replaceable(path, links_allowed=True)
    if weak is not None:
        return weak
    part, status = list(way_to(path))[-1]
    return f"uid {os.geteuid()} can write {part}" if can_write(part, status) else None


def writable_below(directory: Path) -> str | None:
    """Return the first file or directory of a tree that this uid can change, or None; what links lead to included.

    Raises `OverflowError` if the tree is too large to be looked at, and `PermissionError` if a part of it can be
    entered and not listed.
    """
    own = os.geteuid()
    left = MAX_ENTRIES
    ahead = [os.fspath(directory)]
    linked = {os.path.realpath(directory)}
    while ahead:
        place = ahead.pop()
        try:
            entries = list(os.scandir(place))
        except OSError:
            if os.access(place, os.X_OK, effective_ids=True):
                raise PermissionError(errno.EACCES, "cannot be listed", place) from None
            continue
        left -= len(entries)
        if left < 0:
            raise OverflowError
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if status.st_uid == own:
                return f"{entry.path} belongs to uid {own}"
            if stat.S_ISLNK(status.st_mode):
                reason = writable(Path(entry.path))
                if reason is not None:
                    return reason
                target = os.path.realpath(entry.path)
                if os.path.isdir(target) and target not in linked:
                    linked.add(target)
                    ahead.append(target)
                continue
            # Without these bits only the owner can write: an access list shows its widest right in the group's bits.
            if status.st_mode & 0o022 and os.access(entry.path, os.W_OK, effective_ids=True):
                return f"uid {own} can write {entry.path}"
            if stat.S_ISDIR(status.st_mode):
                ahead.append(entry.path)
    return None


def try_path(path: Path) -> tuple[Reach, str]:
    """Try to get at a file or directory: open it for reading and for writing, list it, enter it.

    Returns how it ended and the kernel's word for it.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        return _how(error)
    if stat.S_ISDIR(status.st_mode):
        if os.access(path, os.X_OK, effective_ids=True):
            return "reached", "can be entered"
        try:
            os.close(os.open(path, _READ | os.O_DIRECTORY))
        except OSError as error:
            return _how(error)
        return "reached", "can be listed"
    if status.st_uid == os.geteuid():
        return "reached", "belongs to this uid"
    if not stat.S_ISREG(status.st_mode):
        ways = (os.R_OK, os.W_OK)
        reached = any(os.access(path, way, effective_ids=True) for way in ways)
        return ("reached", "can be opened") if reached else ("refused", "EACCES")
    ended: tuple[Reach, str] = ("refused", "EACCES")
    for flags, word in ((_READ, "can be read"), (_WRITE, "can be written")):
        try:
            os.close(os.open(path, flags))
        except OSError as error:
            if error.errno == errno.ETXTBSY:
                return "reached", word
            ended = _how(error)
            continue
        return "reached", word
    return ended


def names_beside(path: Path) -> Iterator[Path]:
    """Yield copies of a file or directory as people and editors make them: `proof.pem.bak`, `files.env~`, `.x.swp`.

    Where the directory cannot be listed the usual names are guessed.
    """
    try:
        found = os.listdir(path.parent)
    except OSError:
        found = [*(path.name + ending for ending in _COPY_ENDINGS), f".{path.name}.swp"]
    for name in found:
        rest = name.removeprefix(".").removeprefix("#").removeprefix(path.name)
        if name != path.name and path.name in name and rest[:1] in ("~", ".", "-", "_", "#"):
            yield path.with_name(name)


def open_descriptors() -> tuple[tuple[int, Path], ...]:
    """Return the open descriptors of this process that lead to a path; who started it may have left them open."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append((int(name), Path(os.readlink(f"/proc/self/fd/{name}"))))
        except OSError:
            continue
    return tuple(found)


def _how(error: OSError) -> tuple[Reach, str]:
    name = errno.errorcode.get(error.errno or errno.EIO, "EIO")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "refused", name
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "missing", name
    return "untried", name


def try_network(place: str) -> tuple[Reach, str]:
    """Try to connect to `host:port` by TCP; the connection is closed at once and nothing is sent.

    Every way not to get there is a refusal, but for a name that does not exist or cannot be looked up: an address
    that this uid knows already needs no name.
    """
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS):
            return "reached", "it answers"
    except socket.gaierror as error:
        unknown = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        return ("missing", "no such name") if unknown else ("untried", "names cannot be looked up")
    except TimeoutError:
        return "refused", f"no answer within {CONNECT_SECONDS:g} s"
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            return "untried", errno.errorcode[error.errno]
        return "refused", errno.errorcode.get(error.errno or 0, "refused")
    except UnicodeError:
        return "missing", "no such name"


def try_socket(path: Path) -> tuple[Reach, str]:
    """Try to connect to a Unix socket that is not for this uid; the connection is closed at once."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as sock:
        sock.setblocking(False)
        try:
            sock.connect(os.fspath(path))
        except (ConnectionRefusedError, BlockingIOError):
            return "reached", "may connect, but nothing answers"
        except OSError as error:
            return _how(error)
    return "reached", "connected"
