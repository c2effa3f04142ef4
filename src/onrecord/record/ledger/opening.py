"""From a directory to a journal that may go on: the file is found or made, checked, and its start is recorded."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from onrecord.base.dates import Clock, boot_id, format_ms
from onrecord.base.errors import LogError, StorageError, Where
from onrecord.base.keys import Signer, ed25519_public_bytes
from onrecord.record.ledger import intake as intakes
from onrecord.record.ledger import recovery, schema
from onrecord.record.ledger.checkpoints import CheckpointSigner, origin_of
from onrecord.record.ledger.marks import HighWater
from onrecord.record.ledger.records import JOURNAL_OPEN, Record, RecordForm
from onrecord.record.ledger.store import Entry, Head, Store, batches, insert_first

Durability = Literal["durable", "relaxed"]

_FILE: Final = re.compile(r"journal-([1-9][0-9]{0,8})\.db", re.ASCII)


class Opening:
    """The steps of a start, in order: `require_file`, then `start`. The caller holds the directory's lock."""

    def __init__(self, directory: Path, *, signer: Signer, marks: HighWater, clock: Clock) -> None:
        self._directory = directory
        self._signer = signer
        self._trusted = {signer.kid: Ed25519PublicKey.from_public_bytes(ed25519_public_bytes(signer))}
        self._clock = clock
        self._was_made = False
        self.marks = marks
        epoch = _newest_epoch(directory)
        self._has_file = epoch is not None
        self.epoch = epoch or 1
        self.path = directory / f"journal-{self.epoch}.db"
        self._high_water = marks.read(trusted=self._trusted)

    def require_file(self, name: str, durability: Durability) -> None:
        """Make the file with its first record if there is none.

        Raises `LogError` with code "log-truncated" where the high-water knows of a journal; `UsageError` with code
        "journal-name"; `StorageError` with code "journal-unwritable".
        """
        if self._has_file:
            return
        recovery.refuse_without_file(self._high_water, self.path)
        origin = origin_of(name, self.epoch)
        data = self._opened(durability) | {"high_water": "absent"}
        self.form = RecordForm(name, self.epoch, boot=boot_id())
        record = self._write(0, JOURNAL_OPEN, data)
        signer = CheckpointSigner(self._signer, origin=origin)
        schema.create(self.path, lambda connection: insert_first(connection, record, signer=signer))
        self._was_made = True

    def start(self, connection: sqlite3.Connection, durability: Durability) -> tuple[Store, Head]:
        """Check the file, take over what a crash left in the intake, and write `journal.open`.

        Raises `LogError` with the codes of `recovery.recover`, `StorageError` with code "audit-unavailable" or
        "journal-unreadable".
        """
        state = recovery.recover(connection, self.path, trusted=self._trusted, high_water=self._high_water)
        self.origin = origin_of(state.recorder, state.epoch)
        self.form = RecordForm(state.recorder, state.epoch, boot=boot_id())
        signer = CheckpointSigner(self._signer, origin=self.origin)
        signer.remember(state.newest.size, state.newest.root)
        store = Store(connection, self.path, size=state.size, frontier=state.frontier, signer=signer)
        head = Head(state.newest.size, state.newest.root, state.newest.note)
        if self._was_made:
            return store, head
        data = self._opened(durability) | {"high_water": state.high_water, "clean": state.was_closed}
        leftover = intakes.recover(self._directory, size=state.size)
        for batch in batches(leftover.entries):
            self._require_own(batch, state)
            head = store.commit(batch)
        if leftover.entries or leftover.lost:
            data |= {"replayed": len(leftover.entries), "lost": leftover.lost}
        record = self._write(head.size, JOURNAL_OPEN, data)
        head = store.commit([Entry(head.size, record)])
        if durability == "relaxed":
            store.sync()
        return store, head

    def _require_own(self, entries: Sequence[Entry], state: recovery.Recovered) -> None:
        """Make sure that records from the intake are of this journal and stand at their numbers."""
        for entry in entries:
            record = Record.read(entry.bytes)
            if (record.seq, record.recorder, record.epoch) != (entry.seq, state.recorder, state.epoch):
                raise LogError(
                    f"the intake has a record {entry.seq} that is not of this journal",
                    code="record-sequence",
                    where=Where(str(self._directory)),
                )

    def _write(self, seq: int, type: str, data: Mapping[str, Any]) -> bytes:
        time, mono_ns = format_ms(self._clock.now_ns()), self._clock.boottime_ns()
        return self.form.write(seq, type, data, time=time, mono_ns=mono_ns)

    def _opened(self, durability: Durability) -> dict[str, Any]:
        return {"durability": durability, "key": self._signer.kid, "sqlite": sqlite3.sqlite_version}


def _newest_epoch(directory: Path) -> int | None:
    try:
        names = os.listdir(directory)
    except OSError as error:
        raise StorageError(
            f"cannot list the directory ({error.strerror})",
            code="journal-unwritable",
            where=Where(str(directory)),
        ) from error
    epochs = [int(match[1]) for match in map(_FILE.fullmatch, names) if match]
    return max(epochs, default=None)
