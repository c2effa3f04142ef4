"""Reading, making and replacing files whose place others may have touched.

All functions raise `OSError` as the operating system does: what a missing or a linked file means, and under which
code that is told, each caller knows better.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def regular_file(path: Path, *, follow: bool = False) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file for reading; neither a link (without `follow`), a pipe nor a device is opened.

    Gives the descriptor and its status, so that owner and mode are those of what is read. Raises `OSError`, with
    errno EINVAL for what is no regular file.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield descriptor, status
    finally:
        os.close(descriptor)


def read_bounded(descriptor: int, *, limit_bytes: int) -> bytes:
    """Read to the end. Raises `OSError`, with errno EFBIG if there are more than `limit_bytes`."""
    parts = []
    left = limit_bytes + 1
    while left and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise OSError(errno.EFBIG, f"larger than {limit_bytes} bytes")
    return b"".join(parts)


def read_regular(path: Path, *, limit_bytes: int, follow: bool = False) -> bytes:
    """Return the bytes of a regular file. Raises `OSError` as `regular_file` and `read_bounded` do."""
    with regular_file(path, follow=follow) as (descriptor, _):
        return read_bounded(descriptor, limit_bytes=limit_bytes)


def write_new(path: Path, data: bytes, *, mode: int) -> None:
    """Make a file that was not there, with its name and its content at once.

    Where the file system can, the content has no name while it is written, so that not even a kill leaves a piece of
    it behind. Raises `OSError`, which is `FileExistsError` for whatever has the name already, links included.
    """
    descriptor, beside = _open_unnamed(path.parent, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            # With a descriptor of a folder, used or not, the link in /proc is followed to the content behind it.
            os.link(beside or f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
    finally:
        if beside is not None:
            os.unlink(beside)
    with contextlib.suppress(PermissionError):  # a folder one may write in and not read
        sync_directory(path.parent)


def _open_unnamed(folder: Path, mode: int) -> tuple[int, Path | None]:
    """Open a new file in a folder: without a name, or else under a name of its own, which is returned."""
    if os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode), None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.EISDIR):
                raise
    beside = folder / f".{secrets.token_hex(8)}.part"
    return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode), beside


def replace_whole(path: Path, data: bytes, *, mode: int, durable: bool = True) -> None:
    """Put `data` in the place of a file at once: temporary file, rename and, when `durable`, fsync of both.

    Raises `OSError`; the old file is then untouched and no temporary file stays behind.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        try:
            os.fchmod(descriptor, mode)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
