"""SQLite stores: read from a private copy, never from the file that a program may be writing (native-logs.md R-12).

The schema of a store is content like any other: only SELECT on real tables is possible; views, triggers and virtual
tables are not run, and computed columns are null. What type a cell has is the caller's to check, since SQLite does not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from onrecord.base.errors import UsageError, Where
from onrecord.base.files import regular_file
from onrecord.record.logs.findings import FileFindings

MAGIC: Final = b"SQLite format 3\0"
"""The first bytes of an SQLite file."""

MAX_CELL: Final = 256 << 20
"""Largest cell that is read, as for lines."""

_ATTEMPTS: Final = 3
# The message about a damaged schema quotes it; one that is not UTF-8 cannot even be raised as what it is.
_DAMAGE = (sqlite3.Error, UnicodeError)
_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION))
_FUNCTIONS = frozenset(("count", "length", "max", "min", "coalesce", "typeof", "substr", "ifnull"))


@contextlib.contextmanager
def open_copy(
    path: Path, findings: FileFindings | None = None, *, follow: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open a copy of an SQLite file and of what its write-ahead log adds; the copy is gone afterwards.

    Text that is not UTF-8 is read with U+FFFD and counted in `findings`. With `follow` a link is opened.

    Raises `UsageError` with code "unreadable-file" when the file cannot be copied or is no database, also from inside
    the block when a query meets a damaged page; `rows` does not.

    Source: native-logs.md R-12, D-LOG-25.
    """
    with tempfile.TemporaryDirectory(prefix="onrecord-") as folder:
        copy = Path(folder) / "store.db"
        try:
            # The log lies beside the real file, so that a link is resolved first.
            _copy(path.resolve() if follow else path, copy)
        except (OSError, ValueError, RuntimeError) as fault:
            raise _unreadable(path, getattr(fault, "strerror", None) or "it cannot be copied") from None
        try:
            with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                _prepare(connection, findings)
                yield connection
        except _DAMAGE:
            raise _unreadable(path, "the database is damaged") from None


def table_names(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the names of the real tables: neither views nor virtual tables."""
    return frozenset(_real_tables(connection))


def column_names(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    described = connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT 0").description  # noqa: S608 - quoted
    return tuple(column[0] for column in described)


def rows(
    connection: sqlite3.Connection,
    table: str,
    findings: FileFindings,
    *,
    columns: Sequence[str],
    order: Sequence[str] = (),
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one table, in the order of some columns or else as they lie.

    A damaged page ends the table with a finding; the rows before it stay.
    """
    wanted = ", ".join(map(_quoted, columns))
    query = f"SELECT {wanted} FROM {_quoted(table)}"  # noqa: S608 - quoted
    if order:
        query += f" ORDER BY {', '.join(map(_quoted, order))}"
    try:
        yield from connection.execute(query)
    except _DAMAGE:
        findings.add(
            "malformed-line",
            message=f"table {table[:64]} cannot be read to its end",
            action="the rows before the damage were read",
        )


def _copy(path: Path, copy: Path) -> None:
    # A program that writes between the two copies would give a log that does not fit its file.
    for _ in range(_ATTEMPTS):
        before = _state(path)
        with regular_file(path) as (descriptor, _status):
            _copy_from(descriptor, copy)
        log = copy.with_name(f"{copy.name}-wal")
        log.unlink(missing_ok=True)
        with (
            contextlib.suppress(FileNotFoundError),
            regular_file(path.with_name(f"{path.name}-wal")) as (descriptor, _status),
        ):
            _copy_from(descriptor, log)
        if _state(path) == before:
            return


def _copy_from(descriptor: int, copy: Path) -> None:
    with os.fdopen(os.dup(descriptor), "rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _state(path: Path) -> tuple[tuple[int, int], ...]:
    states = []
    for name in (path.name, f"{path.name}-wal"):
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(path.with_name(name))
            states.append((status.st_size, status.st_mtime_ns))
    return tuple(states)


def _prepare(connection: sqlite3.Connection, findings: FileFindings | None) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
    connection.text_factory = _reader_of_text(findings)
    readable = frozenset(_real_tables(connection))
    computed = frozenset((name, column) for name in readable for column in _computed(connection, name))

    def authorize(action: int, *places: str | None) -> int:
        # The last place names the view or trigger on whose behalf something is read.
        if action not in _ALLOWED or places[-1] is not None:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and places[1] not in _FUNCTIONS:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and places[0] not in readable and places[0] != "sqlite_master":
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and (places[0], places[1]) in computed:
            return sqlite3.SQLITE_IGNORE  # null is read instead
        return sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)


def _real_tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    return [name for (name,) in found if isinstance(name, str)]


def _computed(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield the columns that would be computed when they are read: SQLite asks nobody about what they call."""
    for _, name, *_, hidden in connection.execute(f"PRAGMA table_xinfo({_quoted(table)})"):
        if hidden:
            yield name


def _reader_of_text(findings: FileFindings | None) -> Callable[[bytes], str]:
    def read(data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            if findings is not None:
                findings.count("invalid-utf8", action="kept with U+FFFD")
            return data.decode("utf-8", "replace")

    return read


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unreadable(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"cannot be read: {reason}",
        code="unreadable-file",
        hint="give an SQLite file that may be read",
        where=Where(file=str(path)),
    )
