"""Open a path that cannot leave a directory, whatever symbolic links say.

A policy decides about the text of a path. Between that decision and the open somebody may put a link in the way,
so tool code opens through here, and the kernel does the checking.

>>> import os, tempfile
>>> base = tempfile.mkdtemp()
>>> root = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
>>> os.close(open_beneath(root, "note.txt", flags=os.O_WRONLY | os.O_CREAT))
>>> open_beneath(root, "../etc/passwd")
Traceback (most recent call last):
    ...
OSError: [Errno 18] Invalid cross-device link: '../etc/passwd'

Source: openat2(2); call-proof.md 8.8.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

SYS_OPENAT2: Final = 437
"""The same number on every Linux architecture; Python 3.11 has no wrapper."""

RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_BENEATH: Final = 0x08

ATTEMPTS: Final = 8
"""openat2 answers EAGAIN when a rename races with its check of ".."; a few repetitions settle it."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)


def open_beneath(root: int, path: str, *, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Return a new descriptor of `path`, relative to the directory descriptor `root`.

    Symbolic links are followed while they stay beneath `root`. `flags` are those of open(2); O_CLOEXEC, O_NOCTTY
    and O_NONBLOCK are added, so that a pipe or a terminal in the way cannot hold the caller.
    `mode` counts only with O_CREAT.

    Raises `OSError`: EXDEV when the path would leave `root`, otherwise as open(2). A path with a NUL or without a
    form in the file system's encoding is `ValueError`.
    """
    flags |= os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("the path has a NUL")
    how = _OpenHow(flags, mode if flags & os.O_CREAT else 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    for _ in range(ATTEMPTS):
        descriptor = int(_libc.syscall(SYS_OPENAT2, root, encoded, ctypes.byref(how), ctypes.sizeof(how)))
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            # No such call (Linux before 5.6), or a seccomp filter that does not know it. EPERM can also be the
            # honest answer of the file system; the walk then fails with the same error.
            return walk_beneath(root, path, flags=flags, mode=mode)
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)


def walk_beneath(root: int, path: str, *, flags: int, mode: int = 0o600) -> int:
    """Do the same without openat2: step by step, and no symbolic link at all is followed.

    Raises `OSError`: EXDEV for an absolute path or "..", ELOOP or ENOTDIR at a link, otherwise as open(2).
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    step = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open(".", step, dir_fd=root)
    try:
        for part in parts[:-1]:
            below = os.open(part, step, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW, mode, dir_fd=here)
    finally:
        os.close(here)
