"""One pass over one journal file, in one snapshot: every record, hash, checkpoint and body."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onrecord.base.errors import LogError, OnrecordError
from onrecord.record.ledger import _rfc9162, schema
from onrecord.record.ledger._record_audit import BodyAudit, RecordAudit
from onrecord.record.ledger.audit import Audit
from onrecord.record.ledger.checkpoints import origin_of
from onrecord.record.ledger.records import Record


@dataclass(frozen=True, slots=True)
class Log:
    """What a pass has shown: origin, number of records, and the root at each size that was asked for.

    `key` is the id of the key that the journal names as its own in record 0; None if it names none.
    """

    origin: str
    size: int
    roots: Mapping[int, bytes]
    key: str | None = None


class FileAudit:
    """Verifies one file; what holds and what does not goes to the audit."""

    def __init__(self, audit: Audit, path: Path) -> None:
        self._audit = audit
        self._path = path
        self._file = str(path)
        self._key: str | None = None

    def run(self, wanted: frozenset[int]) -> Log | None:
        """Look at everything; return the log with its roots at the sizes in `wanted`, or None if it cannot be read."""
        try:
            connection = schema.open_reader(self._path, is_hostile=True)
        except OnrecordError as error:
            self._unreadable(error.code, str(error))
            return None
        try:
            connection.execute("BEGIN")
            return self._look(connection, wanted)
        except schema.FAULTS as error:
            self._unreadable("journal-unreadable", f"reading stopped ({schema.reason_of(error)})")
            return None
        finally:
            connection.close()

    def _look(self, connection: sqlite3.Connection, wanted: frozenset[int]) -> Log | None:
        try:
            schema.check(connection, self._path)
            self._audit.verified("structure")
        except LogError as error:
            if error.code != "journal-schema":
                self._unreadable(error.code, str(error))
                return None
            self._failed("structure", error.code, str(error), "")
            if not schema.has_our_tables(connection):
                return None  # what stands in their place may be a view that never ends
        first = _read_first(connection)
        if first is None:
            self._failed("records", "record-malformed", "record 0 does not name the journal", "/record/0")
            return None
        origin = origin_of(first.recorder, first.epoch)
        key = first.data.get("key")
        self._key = key if isinstance(key, str) else None
        signed = self._checkpoints(connection, origin)
        log = self._records(connection, origin, wanted | frozenset(signed))
        self._history(connection, signed, log)
        return log

    def _checkpoints(self, connection: sqlite3.Connection, origin: str) -> dict[int, bytes]:
        """Verify the stored checkpoints; return the roots of the good ones by size."""
        roots: dict[int, bytes] = {}
        rows = connection.execute("SELECT size, note FROM checkpoint ORDER BY size")
        for size, note in schema.typed(rows, int, str):
            pointer = f"/checkpoint/{size}"
            checkpoint = self._audit.open_note(note, origin=origin, pointer=pointer, file=self._file)
            if checkpoint is None or not self._audit.is_of_key(
                checkpoint, self._key, pointer=pointer, file=self._file
            ):
                continue
            if checkpoint.size != size:
                self._failed("history", "log-rewritten", "a checkpoint stands under another size", pointer)
            else:
                roots[size] = checkpoint.root
        return roots

    def _records(self, connection: sqlite3.Connection, origin: str, wanted: frozenset[int]) -> Log:
        frontier: list[bytes] = []
        size = 0
        roots = {0: _rfc9162.EMPTY_ROOT}
        nodes = _StoredNodes(connection)
        looker = RecordAudit(self._audit, self._file, origin=origin)
        bodies = BodyAudit(self._audit, self._file, connection)
        rows = connection.execute("SELECT seq, bytes FROM record ORDER BY seq")
        for seq, data in schema.typed(rows, int, bytes):
            if seq != size:
                self._failed("order", "record-sequence", f"record {size} is missing", f"/record/{size}")
                return Log(origin, size, roots, self._key)
            record = looker.look(seq, data)
            if record is not None:
                bodies.look(record)
            for level, index, digest in _rfc9162.append(frontier, size=size, leaf=_rfc9162.leaf_hash(data)):
                self._compare(nodes, level, index, digest)
            size += 1
            if size in wanted:
                roots[size] = _rfc9162.root(frontier)
        if not nodes.are_all_read():
            self._failed("tree", "tree-mismatch", "the tree has hashes of no record", "/node")
        looker.finish()
        bodies.finish()
        return Log(origin, size, roots, self._key)

    def _compare(self, nodes: _StoredNodes, level: int, index: int, digest: bytes) -> None:
        if nodes.take(level, index) == digest:
            self._audit.verified("tree" if level else "records")
        elif level:
            self._failed(
                "tree", "tree-mismatch", "a stored hash is not that of the records", f"/node/{level}/{index}"
            )
        else:
            message = f"record {index} is not the one whose hash was stored"
            self._failed("records", "log-rewritten", message, f"/record/{index}")

    def _history(self, connection: sqlite3.Connection, signed: Mapping[int, bytes], log: Log) -> None:
        """Compare the stored checkpoints with the roots that came out; the newest must cover all records."""
        for size, root in signed.items():
            pointer = f"/checkpoint/{size}"
            if size > log.size:
                message = f"a stored checkpoint covers {size} records, there are {log.size}"
                self._failed("history", "log-truncated", message, pointer)
            elif log.roots[size] != root:
                message = f"the root over the first {size} records is not the one that was signed"
                self._failed("history", "log-rewritten", message, pointer)
            else:
                self._audit.verified("history")
        newest = connection.execute("SELECT coalesce(max(size), 0) FROM checkpoint").fetchone()[0]
        if newest < log.size:
            message = f"records from {newest} on are under no checkpoint of the file"
            self._failed("history", "log-rewritten", message, f"/record/{newest}")

    def _failed(self, axis: str, code: str, message: str, pointer: str) -> None:
        self._audit.failed(axis, code, message, pointer=pointer, file=self._file)

    def _unreadable(self, code: str, message: str) -> None:
        self._audit.unknown("structure", code, message, pointer="", file=self._file)


class _StoredNodes:
    """The stored hashes, each level read in order beside the recomputed ones."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._levels: dict[int, Iterator[tuple[int, bytes]]] = {}
        self._ahead: dict[int, tuple[int, bytes] | None] = {}

    def take(self, level: int, index: int) -> bytes | None:
        """Return the hash at this place, or None if there is none."""
        if level not in self._levels:
            query = "SELECT idx, hash FROM node WHERE level = ? ORDER BY idx"
            self._levels[level] = schema.typed(self._connection.execute(query, (level,)), int, bytes)
            self._ahead[level] = next(self._levels[level], None)
        ahead = self._ahead[level]
        if ahead is None or ahead[0] != index:
            return None
        self._ahead[level] = next(self._levels[level], None)
        return ahead[1]

    def are_all_read(self) -> bool:
        """Say whether every stored hash was asked for."""
        rest = self._connection.execute(
            "SELECT 1 FROM node WHERE level < 0 OR level >= ? LIMIT 1", (len(self._levels),)
        ).fetchone()
        return rest is None and not any(self._ahead.values())


def _read_first(connection: sqlite3.Connection) -> Record | None:
    """Return record 0 if it names the journal."""
    try:
        for (data,) in schema.typed(connection.execute("SELECT bytes FROM record WHERE seq = 0"), bytes):
            record = Record.read(data)
            origin_of(record.recorder, record.epoch)
            return record
    except OnrecordError:
        pass
    return None
