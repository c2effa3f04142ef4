"""Reading a journal beside its writer, on a read-only connection of its own."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from onrecord.base.errors import StorageError, UsageError, Where
from onrecord.record.ledger import schema
from onrecord.record.ledger.records import Record

READ_RECORDS: Final = 10_000
"""Records returned by one call at most: a reader pages, so memory stays bounded."""


class Reader:
    """Committed records of one journal file. Any thread may call it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = schema.open_reader(path)

    def read(self, from_seq: int = 0, limit: int = READ_RECORDS) -> list[Record]:
        """Return records from `from_seq` on in order, `limit` at most; an empty list at the end.

        Raises `UsageError` with code "read-range", `StorageError` with code "journal-unreadable", `LogError` with
        code "record-malformed".
        """
        if from_seq < 0 or not 0 < limit <= READ_RECORDS:
            raise UsageError(f"from_seq is 0 or more, limit 1 to {READ_RECORDS}", code="read-range")
        with self._open() as connection:
            query = "SELECT bytes FROM record WHERE seq >= ? ORDER BY seq LIMIT ?"
            rows = list(schema.typed(connection.execute(query, (from_seq, limit)), bytes))
        return [Record.read(data) for (data,) in rows]

    def body(self, seq: int, part: str) -> bytes | None:
        """Return a body, or None if the record has none of this part or it was erased.

        Raises `StorageError` with code "journal-unreadable".
        """
        with self._open() as connection:
            query = "SELECT bytes FROM body WHERE seq = ? AND part = ?"
            rows = list(schema.typed(connection.execute(query, (seq, part)), bytes | None))
        return rows[0][0] if rows else None

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                raise StorageError(
                    "the journal is closed", code="journal-closed", where=Where(str(self._path))
                )
            try:
                yield self._connection
            except schema.FAULTS as error:
                raise StorageError(
                    f"the journal cannot be read ({schema.reason_of(error)})",
                    code="journal-unreadable",
                    where=Where(str(self._path)),
                ) from error
