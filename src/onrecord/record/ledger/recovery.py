"""Checks of a journal file at start: any difference is refused and named, nothing is repaired.

Source: transparency.md 4.7, 4.10.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from onrecord.base.errors import LogError, MalformedError, UsageError, Where
from onrecord.record.ledger import _rfc9162, schema
from onrecord.record.ledger.checkpoints import Checkpoint, TrustedKeys, origin_of, require_same_history
from onrecord.record.ledger.records import Record

CHECKED_LEAVES: Final = 64
"""Newest records whose leaf hash is recomputed at start: those of the last transaction at most."""

CHECKED_ROWS: Final = 65_536
"""Newest rows that are counted at start to find a gap; `journal verify` looks at all of them."""

HighWaterState = Literal["absent", "behind", "equal"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A journal that may go on: its name and epoch, the tree, and how the high-water stood to it."""

    recorder: str
    epoch: int
    size: int
    frontier: tuple[bytes, ...]
    newest: Checkpoint
    high_water: HighWaterState
    was_closed: bool


def recover(
    connection: sqlite3.Connection, path: Path, *, trusted: TrustedKeys, high_water: Checkpoint | None
) -> Recovered:
    """Check the file that a journal is about to go on with; its structure was checked when it was opened.

    Raises `LogError` with code "journal-malformed", "record-malformed", "record-sequence", "log-truncated",
    "log-rewritten", "checkpoint-signature-invalid", "checkpoint-key-unknown" or
    "checkpoint-other-log".

    Source: transparency.md 4.7 and 4.10.
    """
    try:
        return _recover(connection, trusted, high_water)
    except schema.FAULTS as error:
        raise LogError(
            f"the journal file cannot be read ({schema.reason_of(error)})",
            code="journal-malformed",
            where=Where(str(path)),
        ) from error
    except (LogError, MalformedError, UsageError) as error:
        code = error.code if isinstance(error, LogError) else "journal-malformed"
        raise LogError(str(error), code=code, hint=error.hint, where=Where(str(path))) from error


def _recover(
    connection: sqlite3.Connection, trusted: TrustedKeys, high_water: Checkpoint | None
) -> Recovered:
    first = _record(connection, 0)
    if first is None:
        raise LogError("the journal has lost its first record", code="log-truncated")
    origin = origin_of(first.recorder, first.epoch)
    size = int(connection.execute("SELECT max(seq) + 1 FROM record").fetchone()[0])
    newest = _newest_checkpoint(connection, origin, trusted)
    if size < newest.size:
        raise LogError(
            f"the journal has {size} records, its newest checkpoint covers {newest.size}",
            code="log-truncated",
        )
    if size > newest.size:
        raise LogError(
            f"the journal has {size} records, only {newest.size} are under a checkpoint", code="log-rewritten"
        )
    if high_water is not None:
        _check_origin(high_water, origin, size)
    last = _check_newest_records(connection, first, size)
    nodes = _node_reader(connection)
    frontier = tuple(_rfc9162.read_frontier(nodes, size=size))
    require_same_history(_rfc9162.root(frontier), newest)
    state: HighWaterState = "absent"
    if high_water is not None:
        require_same_history(_rfc9162.tree_root(nodes, size=high_water.size), high_water)
        state = "equal" if high_water.size == size else "behind"
    return Recovered(
        recorder=first.recorder,
        epoch=first.epoch,
        size=size,
        frontier=frontier,
        newest=newest,
        high_water=state,
        was_closed=last.type == "journal.close",
    )


def refuse_without_file(high_water: Checkpoint | None, path: Path) -> None:
    """Refuse to make a new journal where the high-water knows of an old one.

    Raises `LogError` with code "log-truncated".
    """
    if high_water is not None:
        raise LogError(
            f"there is no journal file, but the high-water knows of {high_water.size} records",
            code="log-truncated",
            where=Where(str(path)),
            hint="put the journal file back; it is never started anew in silence",
        )


def _check_origin(high_water: Checkpoint, origin: str, size: int) -> None:
    if high_water.origin != origin:
        raise LogError(
            "the high-water is of another journal",
            code="checkpoint-other-log",
            hint=f"the file is of {origin}",
        )
    if high_water.size > size:
        raise LogError(
            f"the journal has {size} records, the high-water knows of {high_water.size}",
            code="log-truncated",
            hint="an older state of the file was put in its place; put the newest back",
        )


def _newest_checkpoint(connection: sqlite3.Connection, origin: str, trusted: TrustedKeys) -> Checkpoint:
    rows = connection.execute("SELECT size, note FROM checkpoint ORDER BY size DESC LIMIT 1")
    for size, note in schema.typed(rows, int, str):
        checkpoint = Checkpoint.open(note, trusted=trusted, origin=origin)
        if checkpoint.size != size:
            raise LogError("the newest checkpoint stands under another size", code="log-rewritten")
        return checkpoint
    raise LogError("the journal has no checkpoint", code="log-rewritten")


def _check_newest_records(connection: sqlite3.Connection, first: Record, size: int) -> Record:
    """Compare leaf hashes and numbers of the newest records, look for gaps, and return the last record."""
    lowest = max(0, size - CHECKED_ROWS)
    count = connection.execute("SELECT count(*) FROM record WHERE seq >= ?", (lowest,)).fetchone()[0]
    if count != size - lowest:
        raise LogError("records are missing between the others", code="record-sequence")
    begin = max(0, size - CHECKED_LEAVES)
    leaves = connection.execute("SELECT idx, hash FROM node WHERE level = 0 AND idx >= ?", (begin,))
    hashes = dict(schema.typed(leaves, int, bytes))
    last = first
    rows = connection.execute("SELECT seq, bytes FROM record WHERE seq >= ? ORDER BY seq", (begin,))
    for seq, data in schema.typed(rows, int, bytes):
        last = Record.read(data)
        if last.seq != seq:
            raise LogError(f"record {seq} says that it is record {last.seq}", code="record-sequence")
        if last.recorder != first.recorder or last.epoch != first.epoch:
            raise LogError(f"record {seq} is of another journal", code="record-sequence")
        if hashes.get(seq) != _rfc9162.leaf_hash(data):
            raise LogError(f"record {seq} is not the one whose hash was stored", code="log-rewritten")
    if len(hashes) != size - begin:
        raise LogError("the tree has leaves without a record", code="log-rewritten")
    return last


def _record(connection: sqlite3.Connection, seq: int) -> Record | None:
    rows = connection.execute("SELECT bytes FROM record WHERE seq = ?", (seq,))
    for (data,) in schema.typed(rows, bytes):
        return Record.read(data)
    return None


def _node_reader(connection: sqlite3.Connection) -> _rfc9162.NodeReader:
    def read(level: int, index: int) -> bytes:
        rows = connection.execute("SELECT hash FROM node WHERE level = ? AND idx = ?", (level, index))
        for (digest,) in schema.typed(rows, bytes):
            return bytes(digest)
        raise LogError("a hash of the tree is missing", code="log-rewritten")

    return read
