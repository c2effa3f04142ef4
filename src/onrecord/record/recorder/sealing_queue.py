"""Closed sessions on their way to a signed file: one after the other, and again when it was not possible.

Source: running.md 9, 12.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from onrecord.base.errors import OnrecordError, StorageError
from onrecord.record.ledger.journal import Journal
from onrecord.record.ledger.records import KEY_CHANGED
from onrecord.record.recorder.recording import Recording
from onrecord.record.recorder.sealing import ClosedSession, Sealer
from onrecord.record.recorder.signing import NoSigningKey, Signing

_log = logging.getLogger("onrecord.recorder")


class SealingQueue:
    """Runs the sealer on a thread, in the order in which sessions were closed."""

    def __init__(self, recording: Recording, sealer: Sealer, *, signing: Signing, journal: Journal) -> None:
        self.sealer = sealer
        self.signing_state = "present"
        self._recording = recording
        self._signing = signing
        self._journal = journal
        self._queue: asyncio.Queue[ClosedSession] = asyncio.Queue()
        self._unsettled: dict[str, ClosedSession] = {}
        self._events: dict[str, list[asyncio.Event]] = {}

    @property
    def has_unsettled(self) -> bool:
        """Say whether a session could not be sealed when it was tried."""
        return bool(self._unsettled)

    @property
    def waiting(self) -> int:
        """Return how many closed sessions have no signed file yet."""
        return len(self._unsettled) + self._queue.qsize()

    def put(self, closed: ClosedSession) -> None:
        """Seal a session when its turn comes."""
        self._queue.put_nowait(closed)

    def event(self, session_id: str) -> asyncio.Event:
        """Return an event that is set when a session has been sealed, or could not be."""
        event = asyncio.Event()
        self._events.setdefault(session_id, []).append(event)
        return event

    async def join(self) -> None:
        """Wait until nothing is in the queue."""
        await self._queue.join()

    async def run(self) -> None:
        """Seal for ever."""
        while True:
            closed = await self._queue.get()
            try:
                await self._seal(closed)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                closed.state = "failed"
                closed.problem = name_of(error)
                self._unsettled[closed.id] = closed
                _log.error("session %s could not be sealed: %s", closed.id, closed.problem)
            finally:
                self._queue.task_done()
                for event in self._events.pop(closed.id, ()):
                    event.set()

    async def _seal(self, closed: ClosedSession) -> None:
        previous = self._recording.closed.get(closed.previous) if closed.previous is not None else None
        carry = await asyncio.to_thread(self.sealer.load_carry, previous) if previous is not None else None
        await asyncio.to_thread(self.sealer.seal, closed, carry=carry)
        self._recording.resume_calls(closed, closed.carry)
        if not closed.is_settled:
            self._unsettled[closed.id] = closed
            _log.warning("session %s waits unsigned: %s", closed.id, closed.problem)
            self._look_at_signing()
            return
        closed.carry = None  # it stands beside the statement
        if previous is not None and previous.is_settled:
            await asyncio.to_thread(self.sealer.forget_carry, previous)

    def resume_calls(self) -> None:
        """Let late responses to calls that settled sessions left open find their way again, after a restart."""
        for closed in list(self._recording.closed.values()):
            if closed.is_settled and closed.has_carry:
                with contextlib.suppress(OnrecordError):
                    self._recording.resume_calls(closed, self.sealer.load_carry(closed))

    def try_again(self) -> None:
        """Put back what could not be sealed, and look whether the signing key is there."""
        self._look_at_signing()
        for closed in list(self._unsettled.values()):
            self.put(closed)
        self._unsettled.clear()

    def _look_at_signing(self) -> None:
        """Write `key.changed` when the signing key went away, expired, or came back."""
        key = self._signing.now()
        state = key.state if isinstance(key, NoSigningKey) else "present"
        if state == self.signing_state:
            return
        data: dict[str, Any] = {"purpose": "record", "state": state, "alert": state != "present"}
        with contextlib.suppress(StorageError):
            self._journal.append(KEY_CHANGED, data)
            self.signing_state = state
        _log.warning("the key that signs vCons is %s", state)

    def forget_old(self, *, before_ms: int) -> None:
        """Erase what sessions left to following ones, once none is to be expected any more."""
        if not self._journal.available:
            return
        for closed in self._recording.forgettable(before_ms):
            with contextlib.suppress(StorageError):
                self.sealer.forget_carry(closed)


def name_of(error: BaseException) -> str:
    """Return what may be said of an error: its code or type. Its text may hold content."""
    return error.code if isinstance(error, OnrecordError) else type(error).__name__
