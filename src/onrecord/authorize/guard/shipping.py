"""Ships spools to the recorder: batches, acknowledgements, reconnecting, spools that dead guards have left.

Source: running.md 5.4, 8, 12.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Self

import orjson

from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.spool import Batch, Spool, orphans
from onrecord.base.errors import NetworkError, OnrecordError
from onrecord.base.namespaces import PROTOCOL_VERSION
from onrecord.base.rpc_client import RpcClient
from onrecord.base.wire import RpcError

SHIP_DELAY_SECONDS: Final = 0.05
"""Entries of this time go together: each batch costs time of its own, and a call may have to wait for it."""

CUT_SECONDS: Final = 0.5
"""A spool that has been acknowledged is emptied after this long without new entries."""

APPEND_TIMEOUT_MS: Final = 2000
"""A slower recorder counts as unreachable; the spool goes on (running.md 12)."""

FIRST_RETRY_SECONDS: Final = 0.1
LAST_RETRY_SECONDS: Final = 1.0
"""Back-off between connections to the recorder."""

RECORD_GAP: Final = "record_gap"

Connect = Callable[[], Awaitable[RpcClient]]


class Shipper:
    """Sends one guard's spool, and orphans in its directory, as long as it runs. One task, made by `start`."""

    def __init__(self, spool: Spool, *, connect: Connect, server: str, log: GuardLog) -> None:
        self._spool = spool
        self._connect = connect
        self._server = server
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._armed = False
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_reachable = True
        self._is_stopping = False

    def start(self) -> None:
        """Begin to ship."""
        self._task = self._loop.create_task(self._run())

    def soon(self) -> None:
        """Take note of new entries; they go within `SHIP_DELAY_SECONDS`."""
        if not self._armed:
            self._armed = True
            self._idle.clear()
            self._loop.call_later(SHIP_DELAY_SECONDS, self._wake.set)

    async def stop(self, *, seconds: float) -> None:
        """Ship what is left, for at most this long, and end."""
        self._wake.set()
        if self._spool.pending:
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
        self._is_stopping = True
        self._wake.set()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        delay = FIRST_RETRY_SECONDS
        while not self._is_stopping:
            try:
                await self._ship_orphans()
                async with _Link(await self._connect()) as link:
                    await link.open(self._spool, self._server)
                    self._reachable(True)
                    delay = FIRST_RETRY_SECONDS
                    await self._ship_own(link)
            except OnrecordError as error:
                self._reachable(False, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_RETRY_SECONDS)
            except OSError as error:
                self._log.event("spool.unreadable", error=error.strerror)
                await asyncio.sleep(LAST_RETRY_SECONDS)

    async def _ship_own(self, link: _Link) -> None:
        while not self._is_stopping:
            await _drain(link, self._spool)
            if link.client.closed:
                raise NetworkError("the recorder closed the connection", code="closed")
            self._armed = False
            if not self._spool.pending:
                self._idle.set()
            self._wake.clear()
            await self._pause()

    async def _pause(self) -> None:
        """Wait for entries; when none come for a while, what the recorder has leaves the disk."""
        try:
            async with asyncio.timeout(CUT_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            self._spool.cut()
            await self._wake.wait()

    async def _ship_orphans(self) -> None:
        await ship_orphans(
            self._spool.path.parent,
            connect=self._connect,
            server=self._server,
            log=self._log,
            own=self._spool.path,
        )

    def _reachable(self, now: bool, error: OnrecordError | None = None) -> None:  # noqa: FBT001 - private
        if now != self._is_reachable:
            self._is_reachable = now
            if error is None:
                self._log.event("recorder.reachable")
            else:
                self._log.event("recorder.unreachable", code=error.code)


async def ship_orphans(
    directory: Path, *, connect: Connect, server: str, log: GuardLog, own: Path | None = None
) -> None:
    """Ship each spool in a directory that nobody holds, but for `own`.

    Raises `OnrecordError` when the recorder cannot be reached, `OSError` when a spool cannot be read.
    """
    for path in orphans(directory):
        if path == own:
            continue
        spool = Spool.adopt(path)
        if spool is None:
            continue
        try:
            if spool.pending:
                async with _Link(await connect()) as link:
                    await link.open(spool, server)
                    await _drain(link, spool)
                log.event("spool.adopted", source=spool.source)
        finally:
            spool.close()


async def _drain(link: _Link, spool: Spool) -> None:
    while (batch := spool.batch()) is not None:
        await link.append(spool, batch)
        spool.confirm(batch)


class _Link:
    """One connection to the recorder for one source."""

    def __init__(self, client: RpcClient) -> None:
        self.client = client
        self._prefix: bytes | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.client.close()

    async def open(self, spool: Spool, server: str) -> None:
        """Say who sends; skip what the recorder has; prepare a gap entry for what it has lost."""
        params = {"versions": [PROTOCOL_VERSION], "source": spool.source, "server": server}
        answer = await self.client.call("record/hello", params, timeout_ms=APPEND_TIMEOUT_MS)
        through = answer.get("through") if isinstance(answer, dict) else None
        if type(through) is not int:
            raise NetworkError("record/hello without through", code="answer-unreadable")
        while (batch := spool.batch()) is not None and batch.first <= through:
            spool.confirm(_part(batch, through))
        self._mind_gap(spool, through)

    async def append(self, spool: Spool, batch: Batch) -> None:
        """Send one batch and wait for its acknowledgement."""
        try:
            await self._send(batch)
        except RpcError as error:
            if error.reason != RECORD_GAP:
                raise
            through = error.data.get("through")
            self._mind_gap(spool, through if type(through) is int else batch.first - 2)
            await self._send(batch)

    async def _send(self, batch: Batch) -> None:
        lines = batch.lines
        if self._prefix is not None:
            await self._request((self._prefix,), orjson.loads(self._prefix)["n"])
            self._prefix = None
        await self._request(lines, batch.last)

    async def _request(self, lines: tuple[bytes, ...], last: int) -> None:
        entries = orjson.Fragment(b"[" + b",".join(lines) + b"]")
        answer: Any = await self.client.call(
            "record/append", {"entries": entries}, timeout_ms=APPEND_TIMEOUT_MS
        )
        through = answer.get("through") if isinstance(answer, dict) else None
        if type(through) is not int or through < last:
            raise NetworkError(
                "record/append without the acknowledgement asked for", code="answer-unreadable"
            )

    def _mind_gap(self, spool: Spool, through: int) -> None:
        batch = spool.batch()
        if batch is not None and batch.first > through + 1:
            self._prefix = spool.gap(through=through, before=batch.first, cause="recorder-behind")


def _part(batch: Batch, through: int) -> Batch:
    """Return the front of a batch: the entries up to number `through`."""
    end = batch.end
    lines = list(batch.lines)
    last = batch.last
    while last > through and len(lines) > 1:
        end -= len(lines.pop()) + 1
        last = orjson.loads(lines[-1])["n"]
    return Batch(tuple(lines), batch.first, last, end)
