"""The journal: an append-only log under a Merkle tree with signed checkpoints, one file per writing process.

    with Journal.open(directory, signer=signer, name="host/authority", marks=marks) as journal:
        journal.append("start", {"mode": "user"})

Source: transparency.md, section 4.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from onrecord.base.dates import SYSTEM_CLOCK, Clock, format_ms
from onrecord.base.errors import StorageError, Where
from onrecord.base.keys import Signer
from onrecord.base.sockets import LockFile, lock_file
from onrecord.record.ledger import intake as intakes
from onrecord.record.ledger import schema
from onrecord.record.ledger.marks import HighWater, prepare_directory
from onrecord.record.ledger.opening import Durability, Opening
from onrecord.record.ledger.reading import READ_RECORDS, Reader
from onrecord.record.ledger.records import (
    ERASURE,
    JOURNAL_CLOSE,
    SALT_BYTES,
    Body,
    Receipt,
    Record,
    RecordForm,
    ranges_of,
    salt_bodies,
)
from onrecord.record.ledger.store import Entry, Store
from onrecord.record.ledger.verify import verify_journal
from onrecord.record.ledger.writer import Done, Pending, Writer

LOCK_NAME: Final = "journal.lock"
ERASE_RANGES: Final = 1024
"""Ranges named by one erasure record; more are spread over several, so that each stays small."""

__all__ = ["Body", "Durability", "Journal", "Receipt", "Record", "verify_journal"]


class Journal:
    """An open journal. `append` may be called from any thread and returns without waiting for the disk.

    Made by `Journal.open`; close it, or use it as a context manager.
    """

    def __init__(
        self,
        *,
        path: Path,
        origin: str,
        form: RecordForm,
        writer: Writer,
        store: Store,
        marks: HighWater,
        intake: intakes.Intake | None,
        lock: LockFile,
        clock: Clock,
        randomness: Callable[[int], bytes],
    ) -> None:
        self.path = path
        self.origin = origin
        self._form = form
        self._writer = writer
        self._store = store
        self._marks = marks
        self._intake = intake
        self._lock = lock
        self._clock = clock
        self._randomness = randomness
        self._reader: Reader | None = None
        self._is_closed = False

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        signer: Signer,
        name: str,
        marks: Path,
        durability: Durability = "durable",
        clock: Clock = SYSTEM_CLOCK,
        randomness: Callable[[int], bytes] = os.urandom,
    ) -> Self:
        """Open the journal of a directory, or make it, and write `journal.open`.

        `signer` has an Ed25519 key of its own. `name` counts when the file is made and comes from its first record
        afterwards. `marks` is the directory of the high-water file. "durable" means on disk at each commit;
        "relaxed" means handed to the operating system when `append` returns: that survives the process, not the
        machine.

        Raises `UsageError` with code "already-running" (with the holder's pid) or "journal-name"; `LogError` with
        the codes of `recovery.recover` or "high-water-malformed"; `StorageError` with code "journal-unwritable",
        "marks-unreadable" or "audit-unavailable"; `KeyAccessError` with code "key-alg".

        Source: transparency.md 4.2, 4.7, 4.9, 4.10.
        """
        prepare_directory(directory, code="journal-unwritable")
        prepare_directory(marks, code="marks-unreadable")
        lock = lock_file(directory / LOCK_NAME)
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(lock.release)
            opening = Opening(directory, signer=signer, marks=HighWater(marks), clock=clock)
            opening.require_file(name, durability)
            connection = schema.open_writer(opening.path, is_durable=durability == "durable")
            cleanup.callback(connection.close)
            store, head = opening.start(connection, durability)
            intake = cls._open_intake(directory, durability)
            if intake is not None:
                cleanup.callback(intake.close)
            opening.marks.write(head.note)
            writer = Writer(store, head=head, marks=opening.marks, intake=intake, clock=clock)
            cleanup.pop_all()
        return cls(
            path=opening.path,
            origin=opening.origin,
            form=opening.form,
            writer=writer,
            store=store,
            marks=opening.marks,
            intake=intake,
            lock=lock,
            clock=clock,
            randomness=randomness,
        )

    @staticmethod
    def _open_intake(directory: Path, durability: Durability) -> intakes.Intake | None:
        if durability == "relaxed":
            return intakes.Intake(directory)
        intakes.remove(directory)
        return None

    def append(
        self,
        type: str,
        data: Mapping[str, Any],
        *,
        session: str | None = None,
        bodies: Sequence[Body] = (),
        done: Done | None = None,
        lazy: bool = False,
    ) -> int:
        """Append a record and return its number; numbers follow the order of calls, without gaps.

        `done` is called on the writer thread: with the `Receipt` after the commit, or once with the error if the
        commit fails. The record is kept even then, and written when the journal works again. It must be quick, and
        must not wait for the journal. `lazy` records may
        wait 20 ms for others; in relaxed mode so may all that nobody waits for.

        Raises `StorageError` with code "audit-unavailable" or "journal-closed"; `UsageError` with code
        "record-not-json", "record-too-large" or "record-body".
        """
        return self._append(type, data, session=session, bodies=bodies, done=done, is_lazy=lazy)

    def append_async(
        self,
        type: str,
        data: Mapping[str, Any],
        *,
        session: str | None = None,
        bodies: Sequence[Body] = (),
        lazy: bool = False,
    ) -> asyncio.Future[Receipt]:
        """Append a record at once and return a future of its receipt, for the running event loop.

        Raises, and sets on the future, what `append` raises and hands to `done`.
        """
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._append(type, data, session=session, bodies=bodies, future=future, is_lazy=lazy)
        return future

    def erase(
        self, seqs: Sequence[int], *, reason: str | None = None, done: Done | None = None
    ) -> int | None:
        """Erase the bodies of records and append the `erasure` record that says so, in one transaction.

        Records and tree stay as they are; records without a body may be named. Returns the number of the last
        erasure record, None if there is nothing to erase.

        Raises what `append` raises.

        Source: transparency.md 4.10.
        """
        ranges = ranges_of(seqs)
        seq: int | None = None
        for begin in range(0, len(ranges), ERASE_RANGES):
            part = ranges[begin : begin + ERASE_RANGES]
            data: dict[str, Any] = {"seqs": part} if reason is None else {"seqs": part, "reason": reason}
            is_last = begin + ERASE_RANGES >= len(ranges)
            closed = tuple((first, last) for first, last in part)
            seq = self._append(ERASURE, data, erase=closed, done=done if is_last else None)
        return seq

    def _append(
        self,
        type: str,
        data: Mapping[str, Any],
        *,
        session: str | None = None,
        bodies: Sequence[Body] = (),
        erase: tuple[tuple[int, int], ...] = (),
        done: Done | None = None,
        future: asyncio.Future[Receipt] | None = None,
        is_lazy: bool = False,
        is_last: bool = False,
    ) -> int:
        references, rows = (
            salt_bodies(bodies, [self._randomness(SALT_BYTES) for _ in bodies]) if bodies else ((), ())
        )
        if self._intake is not None and done is None and future is None:
            is_lazy = True
        writer, clock = self._writer, self._clock
        with writer.lock:
            seq = writer.require_available()
            time = format_ms(clock.now_ns())
            if writer.has_gap:
                data = {**data, "gap": writer.gap(time)}
            written = self._form.write(
                seq, type, data, time=time, mono_ns=clock.boottime_ns(), session=session, bodies=references
            )
            writer.put(Pending(Entry(seq, written, rows, erase), done, future), is_lazy=is_lazy, time=time)
            if is_last:
                writer.refuse_more()
        return seq

    @property
    def size(self) -> int:
        """Return the number of committed records."""
        return self._writer.head.size

    @property
    def checkpoint(self) -> str:
        """Return the newest signed checkpoint that covers committed records only."""
        return self._writer.head.note

    @property
    def available(self) -> bool:
        """Say whether the journal takes records."""
        return self._writer.is_open

    @property
    def is_relaxed(self) -> bool:
        """Say whether a record is as safe as it gets when `append` returns: then nobody needs to wait for more."""
        return self._intake is not None

    def call_after_commit(self, on_group: Callable[[Receipt], None]) -> None:
        """Have `on_group` called on the writer thread after each commit, with a receipt for its last record.

        It is called after the `done` of the group's records, and owes what they owe. One call for a group costs
        less than one for each record.
        """
        self._writer.on_group = on_group

    def flush(self) -> Receipt:
        """Wait until everything appended so far is committed, and return a receipt for the last record.

        Raises `StorageError` with code "audit-unavailable".
        """
        head = self._writer.flush()
        return Receipt(head.size - 1, head.size, head.note)

    def read(self, from_seq: int = 0, limit: int = READ_RECORDS) -> list[Record]:
        """Return committed records from `from_seq` on in order, `limit` (10 000 at most) of them.

        Raises `UsageError` with code "read-range", `StorageError` with code "journal-unreadable" or
        "journal-closed", `LogError` with code "record-malformed".
        """
        return self._reading().read(from_seq, limit)

    def body(self, seq: int, part: str) -> bytes | None:
        """Return a committed body, or None if there is none or it was erased.

        Raises `StorageError` with code "journal-unreadable" or "journal-closed".
        """
        return self._reading().body(seq, part)

    def _reading(self) -> Reader:
        if self._is_closed:
            raise StorageError("the journal is closed", code="journal-closed", where=Where(str(self.path)))
        with self._writer.lock:
            if self._reader is None:
                self._reader = Reader(self.path)
            return self._reader

    def close(self) -> None:
        """Write `journal.close`, wait for the disk, move the high-water, release the lock. Calling it again is free.

        Raises `StorageError` with code "audit-unavailable" if records could not be written; they are lost unless
        the mode is relaxed, and nobody was told that they are safe.
        """
        if self._is_closed:
            return
        is_complete = self._writer.close(lambda: self._append(JOURNAL_CLOSE, {}, is_last=True))
        self._is_closed = True
        try:
            self._marks.close()
            self._finish(is_complete=is_complete)
        finally:
            if self._reader is not None:
                self._reader.close()
            self._store.close()
            if self._intake is not None:
                self._intake.close()
            self._lock.release()

    def _finish(self, *, is_complete: bool) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._intake is not None:
            self._store.sync()
        with contextlib.suppress(StorageError):  # a log that stays is read at the next start
            self._store.purge_log()
        self._marks.write(self._writer.head.note)
        if not is_complete:
            failure = self._writer.failure
            raise StorageError(
                "the journal could not be written before it was closed", code="audit-unavailable"
            ) from failure
        if self._intake is not None:
            intakes.remove(self.path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
