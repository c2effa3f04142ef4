"""The journal's SQLite file: tables, pragmas, and how connections are opened.

One read-write connection per file and one process; readers open `mode=ro` (transparency.md 4.9).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final

from onrecord.base.errors import LogError, StorageError, Where

APPLICATION_ID: Final = 0x6F6E7263
"""`application_id` of a journal: "onrc"."""

SCHEMA_VERSION: Final = 1
"""`user_version` of a journal with these tables."""

BUSY_SECONDS: Final = 5.0
"""Waiting time for a lock that a foreign program holds on the file; longer counts as a failure to write."""

MAX_VALUE_BYTES: Final = 1 << 26
"""Largest value read from a file: twice the largest record, against a file that claims more."""

STEPS_AT_ONCE: Final = 100_000
STEPS_FREE: Final = 1_000_000
"""Steps of SQLite's machine that a file of unknown origin may cost, beside one for each byte. A scan takes about
eight for each row, and a row has forty bytes at least."""

TABLES: Final = """\
CREATE TABLE record(seq INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE body(seq INTEGER NOT NULL REFERENCES record(seq), part TEXT NOT NULL, salt BLOB, bytes BLOB,
  PRIMARY KEY(seq, part)) STRICT, WITHOUT ROWID;
CREATE TABLE node(level INTEGER NOT NULL, idx INTEGER NOT NULL, hash BLOB NOT NULL CHECK(length(hash)=32),
  PRIMARY KEY(level, idx)) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoint(size INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT;
CREATE TABLE outbox(size INTEGER NOT NULL REFERENCES checkpoint(size), sink TEXT NOT NULL, sent INTEGER, proof BLOB,
  PRIMARY KEY(size, sink)) STRICT, WITHOUT ROWID;
CREATE TRIGGER record_append BEFORE INSERT ON record
  WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM record)
  BEGIN SELECT raise(ABORT, 'gap in seq'); END;
CREATE TRIGGER record_update BEFORE UPDATE ON record BEGIN SELECT raise(ABORT, 'record is append-only'); END;
CREATE TRIGGER record_delete BEFORE DELETE ON record BEGIN SELECT raise(ABORT, 'record is append-only'); END;
CREATE TRIGGER node_update BEFORE UPDATE ON node BEGIN SELECT raise(ABORT, 'node is append-only'); END;
CREATE TRIGGER node_delete BEFORE DELETE ON node BEGIN SELECT raise(ABORT, 'node is append-only'); END;
CREATE TRIGGER checkpoint_update BEFORE UPDATE ON checkpoint
  BEGIN SELECT raise(ABORT, 'checkpoint is append-only'); END;
CREATE TRIGGER checkpoint_delete BEFORE DELETE ON checkpoint
  BEGIN SELECT raise(ABORT, 'checkpoint is append-only'); END;
"""
"""Tables of transparency.md 4.2. The triggers stop mistakes, not attackers."""

FAULTS: Final = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""What `sqlite3` raises on a damaged file: its messages quote the file's bytes, which may be no UTF-8."""

_PRAGMAS: Final = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA recursive_triggers=ON",
    "PRAGMA secure_delete=ON",
    "PRAGMA temp_store=MEMORY",
)


def create(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make a new journal file whose first records `fill` inserts.

    The file takes its name only when it is complete and on disk, so a crash leaves none or a whole one.

    Raises `StorageError` with code "journal-unwritable".
    """
    draft = path.with_name(path.name + ".new")
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection = _connect(draft, mode="rw")
        try:
            connection.execute("PRAGMA journal_mode=MEMORY")
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            connection.executescript(TABLES)
            connection.execute("BEGIN IMMEDIATE")
            fill(connection)
            connection.execute("COMMIT")
        finally:
            connection.close()
        sync_path(draft)
        os.rename(draft, path)
        sync_path(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(
            f"cannot make the journal file ({reason_of(error)})",
            code="journal-unwritable",
            where=Where(str(path)),
        ) from error


def open_writer(path: Path, *, is_durable: bool) -> sqlite3.Connection:
    """Open the one read-write connection of an existing journal, in WAL mode. Another file is not touched.

    With `is_durable` every commit is an fsync; without, it survives the process and not the machine.

    Raises `StorageError` with code "journal-unwritable", `LogError` with the codes of `check`.
    """
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise StorageError(
                "the journal is not a regular file of this uid",
                code="journal-unwritable",
                where=Where(str(path)),
            )
        connection = _connect(path, mode="rw")
    except (*FAULTS, OSError) as error:
        raise _unwritable(error, path) from error
    try:
        check(connection, path)
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        connection.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
        if mode != "wal":
            raise sqlite3.OperationalError("no write-ahead log on this file system")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except FAULTS as error:
        connection.close()
        raise _unwritable(error, path) from error
    except LogError:
        connection.close()
        raise
    return connection


def open_reader(path: Path, *, is_hostile: bool = False) -> sqlite3.Connection:
    """Open a read-only connection that sees what is committed.

    With `is_hostile` reading stops with `sqlite3.OperationalError` once it takes far longer than the file's size
    can explain: pages that point at each other, or a schema that computes, would keep a verifier busy for ever.

    A file without write-ahead log in a directory that this process cannot write is opened as immutable: nothing
    writes to it then. A live file never is.

    Raises `StorageError` with code "journal-unreadable".
    """
    try:
        try:
            return _probe(_connect(path, mode="ro", is_hostile=is_hostile))
        except sqlite3.OperationalError:
            if _may_be_live(path) or os.access(path.parent, os.W_OK):
                raise
        return _probe(_connect(path, mode="ro&immutable=1", is_hostile=is_hostile))
    except (*FAULTS, OSError) as error:
        raise StorageError(
            f"cannot read the journal file ({reason_of(error)})",
            code="journal-unreadable",
            where=Where(str(path)),
        ) from error


def _probe(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return the connection if the file opens: SQLite looks at it only when asked something."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Make sure that a file is a journal with exactly our tables and triggers.

    Raises `LogError` with code "journal-malformed" (another kind of file or version) or "journal-schema"; lets
    `sqlite3.OperationalError` through, which says nothing about the content.
    """
    where = Where(str(path))
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID or version != SCHEMA_VERSION:
            raise LogError("not a journal of this version", code="journal-malformed", where=where)
        found = _objects(connection)
    except sqlite3.OperationalError:
        raise
    except FAULTS as error:
        raise LogError(
            f"the file cannot be read as a journal ({reason_of(error)})",
            code="journal-malformed",
            where=where,
        ) from error
    if found != _expected():
        raise LogError(
            "the file's tables or triggers are not those of a journal",
            code="journal-schema",
            where=where,
            hint="somebody changed the file's structure",
        )


def has_our_tables(connection: sqlite3.Connection) -> bool:
    """Say whether the tables are ours, whatever else stands in the file."""
    return {one for one in _expected() if one[0] == "table"} <= _objects(connection)


def typed(rows: Iterable[tuple[Any, ...]], *kinds: type | UnionType) -> Iterator[tuple[Any, ...]]:
    """Yield rows whose columns have these types; in a damaged file even a STRICT table can hold others.

    Raises `sqlite3.DatabaseError` for a column of another type.
    """
    for row in rows:
        for value, kind in zip(row, kinds, strict=True):
            if not isinstance(value, kind):
                raise sqlite3.DatabaseError("a column has another type")
        yield row


def sync_path(path: Path) -> None:
    """Force a file or a directory to disk. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reason_of(error: BaseException) -> str:
    """Return why the file system or SQLite refused, without paths or values."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    name = getattr(error, "sqlite_errorname", None)
    return str(name or type(error).__name__)


def _unwritable(error: Exception, path: Path) -> StorageError | LogError:
    is_operational = isinstance(error, sqlite3.OperationalError | OSError)
    if not is_operational:
        return LogError(
            f"the file cannot be read as a journal ({reason_of(error)})",
            code="journal-malformed",
            where=Where(str(path)),
        )
    return StorageError(
        f"the journal cannot be written ({reason_of(error)})",
        code="journal-unwritable",
        where=Where(str(path)),
        hint="look at the disk's free space, the file's owner and mode, and read-only mounts",
    )


def _connect(path: Path, *, mode: str, is_hostile: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=1024,
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        if is_hostile:
            connection.set_progress_handler(_Patience(path).is_over, STEPS_AT_ONCE)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


class _Patience:
    """Counts the steps of SQLite's machine for one connection."""

    def __init__(self, path: Path) -> None:
        size = 0
        for name in (str(path), f"{path}-wal"):
            with contextlib.suppress(OSError):
                size += os.stat(name).st_size
        self._rounds_left = 1 + (size + STEPS_FREE) // STEPS_AT_ONCE

    def is_over(self) -> bool:
        """Say, every `STEPS_AT_ONCE` steps, whether the reading has to stop."""
        self._rounds_left -= 1
        return self._rounds_left < 0


def _may_be_live(path: Path) -> bool:
    """Say whether a write-ahead log with content, or its index, lies beside the file."""
    with contextlib.suppress(OSError):
        if os.stat(f"{path}-wal").st_size:
            return True
    return os.path.exists(f"{path}-shm")


def _objects(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return frozenset((row[0], row[1], row[2]) for row in rows)


@cache
def _expected() -> frozenset[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(TABLES)
        return _objects(connection)
