"""Writing files once, whole, and for the right owner."""

from __future__ import annotations

import errno
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from onrecord.base import files
from onrecord.base.errors import ConfigurationError, Where


@dataclass(frozen=True, slots=True)
class Owner:
    """Numeric owner and group of a file."""

    uid: int
    gid: int

    @classmethod
    def own(cls) -> Owner:
        """The principal of this process."""
        return cls(os.geteuid(), os.getegid())


def give(path: Path, owner: Owner) -> None:
    """Give a file of ours to `owner`; a link of either kind that was put in its place is refused.

    Raises `ConfigurationError` with code "cannot-write".
    """
    if owner == Owner.own():
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or status.st_nlink != 1:
                raise PermissionError(errno.EPERM, "it was replaced while it was made")
            os.fchown(descriptor, owner.uid, owner.gid)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _failed(path, error) from error


def write_new(path: Path, data: bytes, *, mode: int, owner: Owner | None = None) -> None:
    """Write a new file with exactly this mode and sync it.

    Raises `ConfigurationError` with code "exists" or "cannot-write".
    """
    descriptor = None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            if owner is not None and owner != Owner.own():
                os.fchown(descriptor, owner.uid, owner.gid)
            os.fchmod(descriptor, mode)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
    except FileExistsError:
        raise ConfigurationError(
            "the file exists already", code="exists", where=Where(file=str(path))
        ) from None
    except OSError as error:
        if descriptor is not None:
            path.unlink(missing_ok=True)  # half a file would stop the next attempt
        raise _failed(path, error) from error
    sync_directory(path.parent)


def replace(path: Path, data: bytes, *, mode: int, owner: Owner | None = None) -> None:
    """Put new content in the place of a file, by a temporary file and rename.

    Raises `ConfigurationError` with code "cannot-write".
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    write_new(temporary, data, mode=mode, owner=owner)
    try:
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _failed(path, error) from error
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a new name in a directory survive a power cut.

    Raises `ConfigurationError` with code "cannot-write".
    """
    try:
        files.sync_directory(path)
    except OSError as error:
        raise _failed(path, error) from error


def _failed(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"cannot write ({error.strerror})", code="cannot-write", where=Where(file=str(path))
    )
