"""Finished vCons on disk: by temporary file, fsync and rename, so that a name always leads to a whole file.

Source: running.md 2.1, 9.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from onrecord.base.errors import StorageError, Where
from onrecord.base.files import sync_directory

UNSIGNED: Final = "unsigned"
"""Directory of vCons that wait for the signing key."""

_SUFFIX: Final = ".vcon.json"


class Publication:
    """The directory of finished vCons. In system mode `is_shared`: a group of readers may look."""

    def __init__(self, root: Path, *, is_shared: bool) -> None:
        self.root = root
        self._file_mode = 0o640 if is_shared else 0o600
        self._directory_mode = 0o750 if is_shared else 0o700

    def place(self, uuid: str, *, date: str) -> Path:
        """Return where the vCon of this uuid belongs; `date` is its created_at."""
        year, month, day = date[:10].split("-")
        return self.root / year / month / day / f"{uuid}{_SUFFIX}"

    def unsigned_place(self, uuid: str) -> Path:
        """Return where the vCon of this uuid waits for its signature."""
        return self.root / UNSIGNED / f"{uuid}{_SUFFIX}"

    def read(self, path: Path) -> bytes | None:
        """Return the bytes of a file that is there already, else None.

        Raises `StorageError` with code "record-unreadable".
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed("record-unreadable", error, path) from error
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()

    def write(self, path: Path, data: bytes, *, may_replace: bool = False) -> None:
        """Write a file whole or not at all; a finished vCon is never replaced.

        Raises `StorageError` with code "record-exists" or "record-unwritable".
        """
        try:
            with self._open_modes():
                self._make_directories(path.parent)
            self._write(path, data, may_replace=may_replace)
            self._sync(path)
        except FileExistsError as error:
            raise _failed("record-exists", error, path) from error
        except OSError as error:
            raise _failed("record-unwritable", error, path) from error

    def _write(self, path: Path, data: bytes, *, may_replace: bool) -> None:
        _remove_left(path)
        temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fchmod(stream.fileno(), self._file_mode)
                os.fsync(stream.fileno())
            if may_replace:
                os.rename(temporary, path)
            else:
                _rename_new(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def settle(self, path: Path) -> None:
        """Bring a file that an interrupted `write` has left in its place to where `write` would have.

        Raises `StorageError` with code "record-unwritable".
        """
        try:
            _remove_left(path)
            self._sync(path)
        except OSError as error:
            raise _failed("record-unwritable", error, path) from error

    def discard(self, path: Path) -> None:
        """Remove a file, and what a killed writer has left of it; it need not be there.

        Raises `StorageError` with code "record-unwritable".
        """
        try:
            _remove_left(path)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
                sync_directory(path.parent)
        except OSError as error:
            raise _failed("record-unwritable", error, path) from error

    def _sync(self, path: Path) -> None:
        """Put a file's name on disk, and those of its directories: one of them may be new, by us or a killed writer."""
        directory = path.parent
        while directory != self.root:
            sync_directory(directory)
            directory = directory.parent
        sync_directory(self.root)

    def _make_directories(self, directory: Path) -> None:
        missing = []
        while not directory.is_dir():
            missing.append(directory)
            directory = directory.parent
        for one in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(one, self._directory_mode)

    @contextlib.contextmanager
    def _open_modes(self) -> Iterator[None]:
        # chmod by an owner outside the group would take the set-group-id bit away; mkdir inherits it from the parent.
        before = os.umask(0o777 & ~self._directory_mode)
        try:
            yield
        finally:
            os.umask(before)


def _remove_left(path: Path) -> None:
    """Remove the temporary files of writers that were killed."""
    for left in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(left)


def _rename_new(source: Path, target: Path) -> None:
    """Rename, but never over an existing file."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links; only this process writes here
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(source, target)
    else:
        os.unlink(source)


def _failed(code: str, error: OSError, path: Path) -> StorageError:
    return StorageError(
        f"the finished vCon cannot be stored ({error.strerror})", code=code, where=Where(str(path))
    )
