"""The journal's read-write connection: one batch of records is one transaction with its tree nodes and checkpoint."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from onrecord.base.errors import OnrecordError, StorageError
from onrecord.record.ledger import _rfc9162, schema
from onrecord.record.ledger.checkpoints import CheckpointSigner
from onrecord.record.ledger.records import SaltedBody

BATCH_RECORDS: Final = 64
"""Records of one transaction: more gains little and makes the first of them wait (transparency.md 4.4)."""


class Entry(NamedTuple):
    """What one record brings into a transaction; `erase` are closed ranges of seq whose bodies go."""

    seq: int
    bytes: bytes
    bodies: tuple[SaltedBody, ...] = ()
    erase: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """The state of the tree after a commit: size, root, signed note."""

    size: int
    root: bytes
    note: str


class Store:
    """Writes batches. Used by one thread at a time; holds the file's only read-write connection."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        size: int,
        frontier: Sequence[bytes],
        signer: CheckpointSigner,
    ) -> None:
        self._connection = connection
        self._path = os.fspath(path)
        self._log_path = self._path + "-wal"
        self._size = size
        self._frontier = list(frontier)
        self._signer = signer
        self._identity = _identity(self._path)
        self._log_identity: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """Return the number of committed records."""
        return self._size

    def commit(self, entries: Sequence[Entry]) -> Head:
        """Write records, bodies, nodes and a checkpoint in one transaction, and return the new head.

        The signature is made inside the transaction and handed out after the commit, so none leaves for a tree
        that is not on disk. After an error nothing of the batch is in the file.

        Raises `StorageError` with code "audit-unavailable".
        """
        try:
            return self._commit(entries)
        except (sqlite3.Error, OSError) as error:
            raise unavailable(schema.reason_of(error)) from error
        except OnrecordError as error:
            raise unavailable(error.code) from error

    def _commit(self, entries: Sequence[Entry]) -> Head:
        self._check_file()
        frontier = self._frontier.copy()
        leaves = [_rfc9162.leaf_hash(entry.bytes) for entry in entries]
        nodes = _rfc9162.extend(frontier, size=self._size, leaves=leaves)
        size = self._size + len(leaves)
        root = _rfc9162.root(frontier)
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            execute(_insert("record", 2, len(entries)), [part for entry in entries for part in entry[:2]])
            execute(_insert("node", 3, len(nodes)), list(chain.from_iterable(nodes)))
            for entry in entries:
                if entry.bodies or entry.erase:
                    self._write_bodies(entry)
            note = self._signer.sign(size, root)
            execute("INSERT INTO checkpoint VALUES (?, ?)", (size, note))
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.rollback()
            raise
        self._size, self._frontier = size, frontier
        self._signer.remember(size, root)
        if self._log_identity is None:
            self._log_identity = _identity(self._log_path)
        return Head(size, root, note)

    def _write_bodies(self, entry: Entry) -> None:
        for body in entry.bodies:
            self._connection.execute("INSERT INTO body VALUES (?, ?, ?, ?)", (entry.seq, *body))
        for first, last in entry.erase:
            self._connection.execute(
                "UPDATE body SET salt = NULL, bytes = NULL WHERE seq BETWEEN ? AND ?", (first, last)
            )

    def _check_file(self) -> None:
        """Make sure that the names still lead to the open files: what is written elsewhere is lost."""
        if _identity(self._path) != self._identity:
            raise OSError(None, "the journal file was replaced")
        if self._log_identity is not None and _identity(self._log_path) != self._log_identity:
            raise OSError(None, "the journal's write-ahead log was replaced")

    def sync(self) -> None:
        """Bring what was committed to disk, for a connection that does not fsync each commit.

        Raises `StorageError` with code "audit-unavailable".
        """
        self._checkpoint_log("PASSIVE")

    def purge_log(self) -> bool:
        """Empty the write-ahead log, so that erased bytes are nowhere; False while a reader holds it.

        Raises `StorageError` with code "audit-unavailable".
        """
        return self._checkpoint_log("TRUNCATE")

    def _checkpoint_log(self, kind: str) -> bool:
        try:
            row = self._connection.execute(f"PRAGMA wal_checkpoint({kind})").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            raise unavailable(schema.reason_of(error)) from error
        except sqlite3.Error as error:
            raise unavailable(schema.reason_of(error)) from error
        return row is not None and row[0] == 0

    def close(self) -> None:
        """Close the connection; the write-ahead log goes into the file."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()


def unavailable(reason: str) -> StorageError:
    """Return the error for a journal that cannot be written at the moment."""
    return StorageError(
        f"the journal cannot be written ({reason})",
        code="audit-unavailable",
        hint="it is tried again once a second; look at the disk's free space and at read-only mounts",
    )


def insert_first(connection: sqlite3.Connection, data: bytes, *, signer: CheckpointSigner) -> None:
    """Insert record 0 with its node and checkpoint into a new file."""
    leaf = _rfc9162.leaf_hash(data)
    connection.execute(_insert("record", 2, 1), (0, data))
    connection.execute(_insert("node", 3, 1), (0, 0, leaf))
    connection.execute("INSERT INTO checkpoint VALUES (?, ?)", (1, signer.sign(1, leaf)))


def batches(entries: Sequence[Entry]) -> Iterable[Sequence[Entry]]:
    """Cut entries into batches of one transaction each."""
    return (entries[begin : begin + BATCH_RECORDS] for begin in range(0, len(entries), BATCH_RECORDS))


@cache
def _insert(table: str, columns: int, rows: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * rows)}"  # noqa: S608 - table names are our own words


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
