"""The decision journal, as the authority uses it: what is written, who waits for the commit, what happens if not.

A record is handed over before its answer leaves. At level durable every answer but a grant waits until the record is
on disk; a grant's record still comes before that of any verify, and if it is lost, so are the process and, by the
start id, the proof. When a record cannot be stored, the request is answered `audit_unavailable`.

Source: call-proof.md 10; running.md 13.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from onrecord.authorize.authority.reasons import RecordType
from onrecord.base.errors import OnrecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onrecord.record.ledger.journal import Journal, Receipt

    Finish: TypeAlias = Callable[[Receipt | None], bytes]
    Done: TypeAlias = Callable[[Receipt | OnrecordError], None]

_log = logging.getLogger("onrecord.authority")


class Audit:
    """Writes records and lets answers wait for their commit. Used by the event loop's thread alone.

    `on_commit` is called on that thread with the number of records that are committed.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        loop: asyncio.AbstractEventLoop,
        is_durable: bool,
        isolation: str | None,
        unavailable: Callable[[Any], bytes],
    ) -> None:
        self.journal = journal
        self.is_durable = is_durable
        self.latest: Receipt | None = None
        """Receipt of the newest commit that is known."""
        self.on_commit: Callable[[int], None] | None = None
        self._loop = loop
        self._isolation = isolation
        self._unavailable = unavailable
        self._finished: deque[tuple[Done, Receipt | OnrecordError]] = deque()
        self._newest: Receipt | None = None
        self._is_scheduled = False
        journal.call_after_commit(self._group_committed)

    @property
    def is_available(self) -> bool:
        """Whether records can be stored now."""
        return self.journal.available

    def write(self, type_: RecordType, data: dict[str, Any], *, can_wait: bool = False) -> int:
        """Hand one record over and wait for nothing. Returns its sequence number.

        `can_wait` lets the journal commit it together with the next record of somebody who waits.

        Raises `StorageError` with code "audit-unavailable".
        """
        if self._isolation is not None:
            data["isolation"] = self._isolation
        return self.journal.append(type_, data, lazy=can_wait)

    def answer(
        self,
        type_: RecordType,
        data: dict[str, Any],
        *,
        request_id: Any,
        finish: Finish,
        handed_over: Callable[[int], None] | None = None,
    ) -> bytes | asyncio.Future[bytes]:
        """Hand one record over and return the answer that `finish` makes, now or after the commit by the level.

        `handed_over` is called in the same step with the record's sequence number. `finish` gets the receipt at
        level durable and None at level relaxed. A record that cannot be stored gives the answer
        `audit_unavailable`, and then `handed_over` was not called.
        """
        if self._isolation is not None:
            data["isolation"] = self._isolation
        future: asyncio.Future[bytes] | None = None
        done: Done | None = None
        if self.is_durable:
            future = self._loop.create_future()
            done = partial(self._completed, partial(self._resolve, future, request_id, finish))
        try:
            seq = self.journal.append(type_, data, done=done, lazy=not self.is_durable)
        except OnrecordError:
            return self._unavailable(request_id)
        if handed_over is not None:
            handed_over(seq)
        return finish(None) if future is None else future

    def _resolve(
        self, future: asyncio.Future[bytes], request_id: Any, finish: Finish, outcome: Receipt | OnrecordError
    ) -> None:
        if future.done():
            return
        if isinstance(outcome, OnrecordError):
            future.set_result(self._unavailable(request_id))
        else:
            future.set_result(finish(outcome))

    async def commit(self, type_: RecordType, data: Mapping[str, Any]) -> Receipt:
        """Write one record and return its receipt after the commit.

        Raises `StorageError` with code "audit-unavailable" or what the journal says.
        """
        future: asyncio.Future[Receipt] = self._loop.create_future()

        def resolve(outcome: Receipt | OnrecordError) -> None:
            if future.done():
                return
            if isinstance(outcome, OnrecordError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        members = dict(data)
        if self._isolation is not None:
            members["isolation"] = self._isolation
        self.journal.append(type_, members, done=partial(self._completed, resolve))
        return await future

    # Called on the journal's writer thread. One wake-up of the loop serves a whole group. The flag is read after the
    # hand-over here and cleared before the first look there, so no outcome is left behind.

    def _completed(self, then: Done, outcome: Receipt | OnrecordError) -> None:
        self._finished.append((then, outcome))
        self._wake()

    def _group_committed(self, receipt: Receipt) -> None:
        self._newest = receipt
        self._wake()

    def _wake(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:
                return  # the loop has ended: nobody waits any more

    def _drain(self) -> None:
        self._is_scheduled = False
        while self._finished:
            then, outcome = self._finished.popleft()
            try:
                then(outcome)
            except Exception as error:  # one answer's fault must not leave the others of its group waiting
                _log.error("an answer could not be made: %s", type(error).__name__)
        newest = self._newest
        if newest is not None and newest is not self.latest:
            self.latest = newest
            if self.on_commit is not None:
                self.on_commit(newest.size)
