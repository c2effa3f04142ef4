"""The journal's one writer thread: it commits in groups, answers those who wait, and keeps trying when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from onrecord.base.dates import Clock, format_ms
from onrecord.base.errors import OnrecordError, StorageError, UsageError
from onrecord.record.ledger.intake import Intake
from onrecord.record.ledger.marks import HighWater
from onrecord.record.ledger.records import Receipt
from onrecord.record.ledger.store import BATCH_RECORDS, Entry, Head, Store, unavailable

HOLD_SECONDS: Final = 0.020
"""Longest time that records nobody waits for are held to fill a group (transparency.md 4.4)."""

RETRY_SECONDS: Final = 1.0
"""Time between two attempts to write while the journal fails (call-proof.md 10.2)."""

MARK_SECONDS: Final = 1.0
MARK_COMMITS: Final = 64
"""The high-water follows at least this often (transparency.md 4.7)."""

MAX_WAITING_RECORDS: Final = 100_000
"""Records that wait for the disk: more would be memory without end, so the next ones are refused."""

Done = Callable[[Receipt | OnrecordError], None]

_log = logging.getLogger("onrecord.journal")


@dataclass(slots=True, eq=False)
class Pending:
    """An appended record on its way to the disk, and who waits for it."""

    entry: Entry
    done: Done | None = None
    future: asyncio.Future[Receipt] | None = None


class Writer:
    """Owner of the queue and the thread. `lock` guards the queue, the failure state and the intake."""

    def __init__(
        self, store: Store, *, head: Head, marks: HighWater, intake: Intake | None, clock: Clock
    ) -> None:
        self.lock = threading.Lock()
        self._doorbell = threading.Lock()
        self._doorbell.acquire()
        self._progress = threading.Condition(self.lock)
        self._store = store
        self._head = head
        self._marks = marks
        self._intake = intake
        self._clock = clock
        self._queue: deque[Pending] = deque()
        self._next_seq = head.size
        self._urgent_seq = -1
        self._held_since = 0.0
        self._is_waiting = False
        self._is_closing = False
        self._failure: StorageError | None = None
        self.has_gap = False
        self._gap_from: str | None = None
        self._gap_to: str | None = None
        self._unmarked = 0
        self._marked_at = monotonic()
        self._purge_at: float | None = None
        self.on_group: Callable[[Receipt], None] | None = None
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)
        self._thread.start()

    # Called with the lock held.

    def require_available(self) -> int:
        """Return the number of the next record.

        Raises `StorageError` with code "audit-unavailable" while the journal cannot be written, "journal-closed"
        after its end.
        """
        if self._failure is not None:
            raise unavailable("an earlier record waits") from self._failure
        if self._is_closing:
            raise StorageError("the journal is closed", code="journal-closed")
        if len(self._queue) >= MAX_WAITING_RECORDS:
            raise unavailable(f"{MAX_WAITING_RECORDS} records wait for the disk")
        return self._next_seq

    def gap(self, time: str) -> dict[str, str]:
        """Return when the journal could not be written, for the first record after that (`has_gap`)."""
        return {"from": self._gap_from or time, "to": self._gap_to or time}

    def put(self, pending: Pending, *, is_lazy: bool, time: str) -> None:
        """Take a record over; from here on it is never dropped.

        Raises `StorageError` with code "audit-unavailable" if the intake cannot take it.
        """
        if self._intake is not None:
            try:
                self._intake.write(pending.entry)
            except StorageError:
                self._open_gap(time)
                raise
        if self.has_gap:
            self.has_gap = False
            self._gap_from = self._gap_to = None
        queue = self._queue
        queue.append(pending)
        self._next_seq += 1
        if not is_lazy:
            self._urgent_seq = pending.entry.seq
        elif len(queue) == 1:
            self._held_since = monotonic()
        if self._is_waiting and (not is_lazy or len(queue) == 1 or len(queue) >= BATCH_RECORDS):
            self._ring()

    def _open_gap(self, time: str) -> None:
        self.has_gap = True
        self._gap_from = self._gap_from or time
        self._gap_to = None

    def refuse_more(self) -> None:
        """Take no further records and end once the queue is on disk."""
        self._is_closing = True
        self._ring()

    def _ring(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._doorbell.release()

    def _sleep(self, seconds: float | None) -> None:
        """Release the lock, wait for the bell or the time, take the lock again. A bare lock is half a Condition."""
        self._is_waiting = True
        self.lock.release()
        try:
            has_rung = self._doorbell.acquire(timeout=-1 if seconds is None else max(seconds, 0))
        finally:
            self.lock.acquire()
        if not has_rung and not self._is_waiting:
            self._doorbell.acquire()  # it rang after the time was up
        self._is_waiting = False

    # Called without the lock.

    @property
    def head(self) -> Head:
        """Return the newest committed head."""
        return self._head

    @property
    def failure(self) -> StorageError | None:
        """Return why the journal cannot be written, or None."""
        return self._failure

    @property
    def is_open(self) -> bool:
        """Say whether records are taken."""
        return self._failure is None and not self._is_closing

    def flush(self) -> Head:
        """Wait until all records appended so far are on disk.

        Raises `StorageError` with code "audit-unavailable" if that fails, `UsageError` with code
        "journal-callback" when called from a callback.
        """
        self._refuse_callbacks()
        with self.lock:
            target = self._next_seq
            self._urgent_seq = max(self._urgent_seq, target - 1)
            self._ring()
            while self._head.size < target:
                if self._failure is not None:
                    raise unavailable("an earlier record waits") from self._failure
                self._progress.wait()
            return self._head

    def _refuse_callbacks(self) -> None:
        if threading.current_thread() is self._thread:
            raise UsageError("a callback of the journal cannot wait for the journal", code="journal-callback")

    def close(self, last: Callable[[], object]) -> bool:
        """Append the last record with `last`, wait for the end; say whether everything appended is on disk.

        Raises `UsageError` with code "journal-callback" when called from a callback.
        """
        self._refuse_callbacks()
        with contextlib.suppress(StorageError):
            last()
        with self.lock:
            self.refuse_more()
        self._thread.join()
        return self._head.size == self._next_seq

    # The thread.

    def _run(self) -> None:
        try:
            while (batch := self._take()) is not None:
                if batch and not self._write(batch):
                    return
                self._keep_up()
        except BaseException as error:  # a fault of ours: refuse from now on, and let nobody wait for ever
            self._fail([], unavailable(f"the writer stopped with {type(error).__name__}"))

    def _take(self) -> list[Pending] | None:
        """Wait for work: records, an empty list when something else is due, None at the end."""
        with self.lock:
            while True:
                queue = self._queue
                if queue:
                    if (
                        len(queue) >= BATCH_RECORDS
                        or self._urgent_seq >= queue[0].entry.seq
                        or self._is_closing
                    ):
                        break
                    wait: float | None = self._held_since + HOLD_SECONDS - monotonic()
                    if wait is not None and wait <= 0:
                        break
                elif self._is_closing:
                    return None
                else:
                    wait = self._time_to_next_duty()
                    if wait is not None and wait <= 0:
                        return []
                self._sleep(wait)
            if len(queue) <= BATCH_RECORDS:
                batch = list(queue)
                queue.clear()
            else:
                batch = [queue.popleft() for _ in range(BATCH_RECORDS)]
                self._held_since = monotonic()
            return batch

    def _write(self, batch: list[Pending]) -> bool:
        """Commit a group, for as long as it takes; False if the journal was closed before it worked."""
        try:
            head = self._attempt(batch)
        except StorageError as error:
            self._fail(batch, error)
            retried = self._retry(batch)
            if retried is None:
                return False
            head = retried
        with self.lock:
            self._head = head
            if self._intake is not None:
                self._intake.drop(head.size)
            self._progress.notify_all()
        self._unmarked += 1
        if any(pending.entry.erase for pending in batch):
            self._purge_at = 0.0
        self._answer(batch, head)
        return True

    def _attempt(self, batch: Sequence[Pending]) -> Head:
        try:
            if self._marks.error is not None:
                self._marks.write(self._head.note)
            return self._store.commit([pending.entry for pending in batch])
        except StorageError:
            raise
        except Exception as error:  # the thread must outlive whatever a key store or a library raises
            raise unavailable(type(error).__name__) from error

    def _fail(self, batch: Sequence[Pending], error: StorageError) -> None:
        _log.error("journal: %s", error)
        with self.lock:
            self._failure = error
            self._open_gap(format_ms(self._clock.now_ns()))
            waiting = [*batch, *self._queue]
            self._progress.notify_all()
        self._settle([(pending, error) for pending in waiting])
        for pending in waiting:
            pending.done = pending.future = None

    def _retry(self, batch: Sequence[Pending]) -> Head | None:
        while True:
            with self.lock:
                if not self._is_closing:
                    self._sleep(RETRY_SECONDS)
                is_last_try = self._is_closing
            try:
                head = self._attempt(batch)
            except StorageError as error:
                with self.lock:
                    self._failure = error
                if is_last_try:
                    return None
                continue
            with self.lock:
                self._failure = None
                self._gap_to = format_ms(self._clock.now_ns())
            _log.warning("journal: written again")
            return head

    def _answer(self, batch: Sequence[Pending], head: Head) -> None:
        size, note = head.size, head.note
        self._settle(
            [
                (pending, Receipt(pending.entry.seq, size, note))
                for pending in batch
                if pending.done is not None or pending.future is not None
            ]
        )
        if self.on_group is not None:
            try:
                self.on_group(Receipt(size - 1, size, note))
            except Exception as error:
                _log.error("journal: a callback raised %s", type(error).__name__)

    def _settle(self, results: Sequence[tuple[Pending, Receipt | OnrecordError]]) -> None:
        """Call those who wait. Their faults are theirs: none may stop the writer."""
        futures: dict[
            asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Receipt], Receipt | OnrecordError]]
        ] = {}
        for pending, result in results:
            if pending.future is not None:
                futures.setdefault(pending.future.get_loop(), []).append((pending.future, result))
            if pending.done is not None:
                try:
                    pending.done(result)
                except Exception as error:
                    _log.error("journal: a callback raised %s", type(error).__name__)
        for loop, pairs in futures.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed, nobody waits any more
                loop.call_soon_threadsafe(_resolve, pairs)

    def _time_to_next_duty(self) -> float | None:
        due = [self._marked_at + MARK_SECONDS] if self._unmarked else []
        if self._purge_at is not None:
            due.append(self._purge_at)
        return min(due) - monotonic() if due else None

    def _keep_up(self) -> None:
        """Move the high-water, and empty the write-ahead log after an erasure once nothing else waits."""
        now = monotonic()
        try:
            if self._unmarked and (self._unmarked >= MARK_COMMITS or now - self._marked_at >= MARK_SECONDS):
                self._marked_at = now
                if self._intake is not None:
                    self._store.sync()
                self._marks.offer(self._head.note)
                self._unmarked = 0
            if self._purge_at is not None and now >= self._purge_at and not self._queue:
                self._purge_at = now + RETRY_SECONDS
                if self._store.purge_log():
                    self._purge_at = None
        except StorageError as error:
            _log.warning("journal: %s", error)


def _resolve(pairs: Sequence[tuple[asyncio.Future[Receipt], Receipt | OnrecordError]]) -> None:
    for future, result in pairs:
        if future.done():
            continue
        if isinstance(result, OnrecordError):
            future.set_exception(result)
        else:
            future.set_result(result)
