"""Reading and replacing a file that is another program's: its owner, mode and access lists stay, its links are seen.

Started as root, the file of another user is read and written with that user's rights, so that nothing which he puts
in the way leads to a file that he could not change himself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from onrecord.base.configuration import user_gid
from onrecord.base.errors import StorageError, UsageError, Where
from onrecord.base.files import read_bounded, regular_file, sync_directory

MAX_BYTES: Final = 32 << 20
"""Largest client file. The file in which Claude Code keeps its history grows to some megabytes."""

_ACCESS_LIST: Final = "system.posix_acl_access"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file as it was read; `path` is its real place, without links."""

    path: Path
    data: bytes = field(repr=False)
    status: os.stat_result = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> KeptFile:
        """Read a regular file that belongs to us, or as root to somebody, and that not everybody can write.

        A link to a file of ours is followed, and its target will be replaced. As root no link is followed.

        Raises `UsageError` with code "client-file-missing", "client-file-link", "client-file-owner" or
        "client-file-mode".
        """
        real = Path(os.path.realpath(path))
        if os.geteuid() == 0 and real != Path(os.path.abspath(path)):
            raise _refused(path, "link", "the path leads over a link", hint=f"name the file itself: {real}")
        try:
            owner = os.lstat(real).st_uid
            with _rights_of(owner), regular_file(real) as (descriptor, status):
                data = read_bounded(descriptor, limit_bytes=MAX_BYTES)
        except OSError as error:
            raise _refused(
                path,
                "missing",
                f"the file cannot be read ({error.strerror})",
                hint="onrecord wrap without a file lists those that are there",
            ) from error
        if os.geteuid() != 0 and status.st_uid != os.geteuid():
            raise _refused(
                path,
                "owner",
                f"the file belongs to uid {status.st_uid}",
                hint="run onrecord wrap as its owner",
            )
        if status.st_mode & stat.S_IWOTH:
            raise _refused(
                path,
                "mode",
                "everybody can write this file, and so decide what is started",
                hint=f"chmod o-w {real}",
            )
        if status.st_nlink != 1:
            raise _refused(
                path,
                "link",
                "the file has a second name, which would keep its secrets",
                hint="remove that name",
            )
        return cls(path=real, data=data, status=status)

    def replace(self, data: bytes) -> KeptFile:
        """Put other content in the file's place at once, if it is still what was read; returns the new state.

        Raises `StorageError` with code "client-file-changed" or "client-file-unwritable".
        """
        temporary = self.path.with_name(self._temporary_prefix + secrets.token_hex(6))
        try:
            with _rights_of(self.status.st_uid):
                self._remove_unfinished()
                try:
                    self._write(temporary, data)
                    if not self._is_unchanged():
                        raise _changed(self.path)
                    os.rename(temporary, self.path)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary)
                    raise
                sync_directory(self.path.parent)
                status = os.lstat(self.path)
        except OSError as error:
            raise StorageError(
                f"the file cannot be replaced ({error.strerror})",
                code="client-file-unwritable",
                where=Where(file=str(self.path)),
                hint="its directory must be writable for its owner",
            ) from error
        return KeptFile(path=self.path, data=data, status=status)

    @property
    def _temporary_prefix(self) -> str:
        return f".{self.path.name}.onrecord-"

    def remove_unfinished(self) -> None:
        """Remove what a killed run has left beside the file: it may hold the secrets that `wrap` takes out of it."""
        with _rights_of(self.status.st_uid), contextlib.suppress(OSError):
            self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        for name in os.listdir(self.path.parent):
            if name.startswith(self._temporary_prefix):
                with contextlib.suppress(OSError):
                    os.unlink(self.path.with_name(name))

    def _write(self, temporary: Path, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            with contextlib.suppress(OSError):  # a group that is not ours cannot be given
                os.fchown(descriptor, -1, self.status.st_gid)
            same_group = os.fstat(descriptor).st_gid == self.status.st_gid
            os.fchmod(descriptor, self.status.st_mode & (0o777 if same_group else 0o707))
            self._copy_attributes(descriptor, same_group=same_group)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _copy_attributes(self, descriptor: int, *, same_group: bool) -> None:
        """Give the new file the access lists and other attributes of the old one, where that can be done.

        An access list says what the file's group may, so it is not for another group.
        """
        with contextlib.suppress(OSError):
            for name in os.listxattr(self.path, follow_symlinks=False):
                if name == _ACCESS_LIST and not same_group:
                    continue
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(self.path, name, follow_symlinks=False))

    def _is_unchanged(self) -> bool:
        try:
            with regular_file(self.path) as (descriptor, status):
                if (status.st_dev, status.st_ino) != (self.status.st_dev, self.status.st_ino):
                    return False
                return read_bounded(descriptor, limit_bytes=MAX_BYTES) == self.data
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.EFBIG):
                return False
            raise


@contextlib.contextmanager
def _rights_of(owner: int) -> Iterator[None]:
    """Act with the rights of `owner` if we are root, and he is not."""
    if os.geteuid() != 0 or owner == 0:
        yield
        return
    group, groups, own_group = user_gid(owner), os.getgroups(), os.getegid()
    os.setgroups([group])
    os.setegid(group)
    os.seteuid(owner)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_group)
        os.setgroups(groups)


def _refused(path: Path, what: str, message: str, *, hint: str) -> UsageError:
    codes = {
        "missing": "client-file-missing",
        "link": "client-file-link",
        "owner": "client-file-owner",
        "mode": "client-file-mode",
    }
    return UsageError(message, code=codes[what], hint=hint, where=Where(file=str(path)))


def _changed(path: Path) -> StorageError:
    return StorageError(
        "the file was changed while it was edited; nothing was written to it",
        code="client-file-changed",
        where=Where(file=str(path)),
        hint="close the client, then run the command again",
    )
