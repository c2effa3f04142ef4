"""Ships what hooked servers have left behind: a server that dies in a call cannot do it itself.

Source: running.md R-05 (5.4).
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.shipping import FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS, Connect, ship_orphans
from onrecord.base.errors import OnrecordError


class Leftovers:
    """The spools without owner in a guard's state directory. One task, made by `start`."""

    def __init__(self, directory: Path, *, connect: Connect, server: str, log: GuardLog) -> None:
        self._directory = directory
        self._connect = connect
        self._server = server
        self._log = log
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look: now, and after each `look`."""
        self._wake.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def look(self) -> None:
        """Take note that a server has ended."""
        self._idle.clear()
        self._wake.set()

    async def stop(self, *, seconds: float) -> None:
        """Look a last time, for at most this long, and end. What is left stays in its spool."""
        self.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await ship_orphans(self._directory, connect=self._connect, server=self._server, log=self._log)
            except (OnrecordError, OSError) as error:
                told = error.code if isinstance(error, OnrecordError) else error.strerror
                self._log.event("spool.not-shipped", error=told)
                self._wake.set()
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_RETRY_SECONDS)
                continue
            delay = FIRST_RETRY_SECONDS
            if not self._wake.is_set():
                self._idle.set()
