"""What was written by `wrap`, and what stood there before: private files below the state directory.

Source: running.md 5.3.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from onrecord.base.configuration import Configuration
from onrecord.base.errors import StorageError, Where
from onrecord.base.files import read_regular, replace_whole, sync_directory

_RECORD_BYTES: Final = 64 << 20
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}", re.DOTALL)


class WrappedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a client's file: its edited members before and after; a member that was not there is missing."""

    place: tuple[str, ...]
    id: str
    before: dict[str, Any]
    after: dict[str, Any]

    def __repr__(self) -> str:
        return f"WrappedEntry(place={self.place!r}, id={self.id!r})"


class MadeServer(msgspec.Struct, frozen=True, kw_only=True):
    """A table that was appended to onrecord.toml, with its env file and the SHA-256 of that."""

    id: str
    table: str
    env_file: str | None
    env_sha256: str | None


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One run of `wrap`: the file's SHA-256 before and after, and the name of its copy beside the record."""

    time: str
    before_sha256: str
    after_sha256: str
    backup: str
    entries: tuple[WrappedEntry, ...]
    servers: tuple[MadeServer, ...]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All runs for one client file, oldest first."""

    file: str
    generations: tuple[Generation, ...]


def sha256(data: bytes) -> str:
    """Return the hash as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Backups:
    """The directory `<state>/wrap`, private to whoever runs `wrap`: the backups hold the secrets of client files.

    `env_directory` has the env files, which `wrap` writes too.
    """

    directory: Path
    env_directory: Path
    _decoder: Any = field(default_factory=lambda: msgspec.json.Decoder(Record), repr=False)

    @classmethod
    def of(cls, configuration: Configuration) -> Backups:
        """Return the backups of a configuration; the directory is made if it is missing.

        Raises `StorageError` with code "wrap-backup".
        """
        directory = configuration.paths.state / "wrap"
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(descriptor).st_uid != os.geteuid():
                    raise PermissionError(1, "it belongs to somebody else")
                os.fchmod(descriptor, 0o700)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failed(directory, error) from error
        return cls(directory, env_directory(configuration))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold off other runs of `wrap`."""
        try:
            descriptor = os.open(
                self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise _failed(self.directory / "lock", error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._remove_unfinished()
            yield
        finally:
            os.close(descriptor)

    def _remove_unfinished(self) -> None:
        """Remove the temporary files of runs that were killed: they hold secrets, and nothing names them."""
        for path in (*self.directory.glob(".*"), *self.env_directory.glob(".*")):
            if _TEMPORARY.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    path.unlink()

    def path(self, file: Path) -> Path:
        """Return where the record of a client file is."""
        return self.directory / f"{self._name(file)}.json"

    def read(self, file: Path) -> Record:
        """Return the record of a client file; without one, a record without runs.

        Raises `StorageError` with code "wrap-backup".
        """
        path = self.path(file)
        try:
            return self._decode(path)
        except FileNotFoundError:
            return Record(file=recorded_name(file), generations=())

    def all(self) -> tuple[Record, ...]:
        """Return the records of all client files. Raises `StorageError` with code "wrap-backup"."""
        return tuple(self._decode(path) for path in sorted(self.directory.glob("*.json")))

    def _decode(self, path: Path) -> Record:
        try:
            record: Record = self._decoder.decode(read_regular(path, limit_bytes=_RECORD_BYTES))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _failed(path, error) from error
        except msgspec.MsgspecError:
            raise StorageError(
                "the record of earlier runs cannot be read",
                code="wrap-backup",
                where=Where(file=str(path)),
                hint="the copies beside it are whole client files; put one back by hand, then remove the record",
            ) from None
        return record

    def add_copy(self, file: Path, data: bytes, *, number: int) -> str:
        """Write a copy of a client file; returns its name."""
        name = f"{self._name(file)}-{number}.backup"
        try:
            replace_whole(self.directory / name, data, mode=0o600)
        except OSError as error:
            raise _failed(self.directory / name, error) from error
        return name

    def copy(self, name: str) -> bytes:
        """Return a copy by its name."""
        path = self.directory / os.path.basename(name)
        try:
            return read_regular(path, limit_bytes=_RECORD_BYTES)
        except OSError as error:
            raise _failed(path, error) from error

    def write(self, file: Path, record: Record) -> None:
        """Replace the record of a client file; one without runs is removed, and its copies with it."""
        path = self.path(file)
        try:
            if record.generations:
                replace_whole(path, msgspec.json.encode(record), mode=0o600)
                return
            for copy in self.directory.glob(f"{glob.escape(self._name(file))}-*.backup"):
                copy.unlink(missing_ok=True)
            path.unlink(missing_ok=True)  # last: while it is there, --undo comes here again
            sync_directory(self.directory)
        except OSError as error:
            raise _failed(path, error) from error

    def _name(self, file: Path) -> str:
        stem = recorded_name(Path(file.stem)).lstrip(".")[:40] or "client"
        return f"{stem}-{sha256(os.fsencode(file))[:12]}"


def env_directory(configuration: Configuration) -> Path:
    """Return where `wrap` writes env files."""
    return configuration.paths.config / "env"


def recorded_name(file: Path) -> str:
    """Return a file's path as a record can hold it: bytes that are no UTF-8 are escaped."""
    return os.fsencode(file).decode("utf-8", "backslashreplace")


def that_happened(record: Record, data: bytes) -> tuple[tuple[Generation, ...], tuple[Generation, ...]]:
    """Return the runs that reached a client file with these bytes, and those that did not, or were taken back."""
    happened = record.generations
    while happened and happened[-1].before_sha256 == sha256(data):
        happened = happened[:-1]
    return happened, record.generations[len(happened) :]


def members(value: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return those of the named members that a value has."""
    return {name: value[name] for name in names if name in value}


def _failed(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"the backup cannot be kept ({error.strerror})",
        code="wrap-backup",
        where=Where(file=str(path)),
        hint="the directory below paths.state must be yours",
    )
