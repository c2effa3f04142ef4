"""`onrecord up`: starts the children, restarts them, stops them in order, and does nothing else.

It opens no protocol socket and parses no foreign bytes: in system mode it is the one process that stays root.

Source: running.md 1.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onrecord.authorize.supervisor.children import READY, Child, start_child
from onrecord.authorize.supervisor.restarts import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    MAX_RESTARTS,
    START_TIMEOUT_S,
    WINDOW_S,
    Next,
    Restarts,
)
from onrecord.base.errors import OnrecordError
from onrecord.base.processes import announce_ready

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

GUARD_STOP_EXTRA_S: Final = 3.0
"""A guard gets this much longer than its grace, to end its server and to hand over its spool."""

STOP_TIMEOUT_S: Final = 15.0
"""Authority and recorder: after that a stop becomes a kill. Nothing acknowledged is lost by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All times of the supervisor in seconds; tests give shorter ones."""

    start_timeout_s: float = START_TIMEOUT_S
    first_delay_s: float = FIRST_DELAY_S
    longest_delay_s: float = LONGEST_DELAY_S
    max_restarts: int = MAX_RESTARTS
    window_s: float = WINDOW_S
    guard_stop_s: float = 5.0 + GUARD_STOP_EXTRA_S
    stop_timeout_s: float = STOP_TIMEOUT_S


def _to_standard_error(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(f"onrecord up: {line}", file=sys.stderr, flush=True)  # noqa: T201


class _Running:
    """One child with its present process."""

    def __init__(self, child: Child, timing: Timing) -> None:
        self.child = child
        self.process: subprocess.Popen[bytes] | None = None
        self.restarts = Restarts(
            child.role,
            first_delay_s=timing.first_delay_s,
            longest_delay_s=timing.longest_delay_s,
            max_restarts=timing.max_restarts,
            window_s=timing.window_s,
        )
        self.started: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def first_start_is(self, *, ready: bool) -> None:
        """Tell the start order how the first start went; later calls change nothing."""
        if not self.started.done():
            self.started.set_result(ready)

    def send(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Supervisor:
    """Runs a set of children until a signal comes or one of them cannot go on."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        timing: Timing | None = None,
        say: Callable[[str], None] = _to_standard_error,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._children = tuple(children)
        self._timing = timing or Timing()
        self.say = say
        self._clock = clock
        self._exit_status = 0
        self._signals = 0

    async def run(self, *, ready_fd: int | None = None) -> int:
        """Start everything, tell `ready_fd`, wait for the end; returns the exit status, 0 or 3."""
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        running = [_Running(child, self._timing) for child in self._children]
        minders: list[asyncio.Task[None]] = []
        try:
            for role in ("recorder", "authority", "guard"):
                group = [one for one in running if one.child.role == role]
                minders += [asyncio.create_task(self._mind_or_fail(one)) for one in group]
                started = asyncio.gather(*(one.started for one in group))
                stopped = asyncio.ensure_future(self._stopping.wait())
                await _first(started, stopped)
                stopped.cancel()
                if self._stopping.is_set():
                    started.cancel()
                    await asyncio.gather(started, return_exceptions=True)  # so that it does not complain
                    break
            else:
                announce_ready(ready_fd)
                ready_fd = None
                self.say("ready")
            await self._stopping.wait()
            await self._stop(running)
        finally:
            for one in running:
                one.send(signal.SIGKILL)
            await asyncio.gather(*minders, return_exceptions=True)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            if ready_fd is not None:
                os.close(ready_fd)
        return self._exit_status

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self.say("stopping; a second signal stops at once")
            self._stopping.set()
        else:
            self._hurry.set()

    def _fail(self, line: str) -> None:
        self.say(line)
        self._exit_status = 3
        self._stopping.set()

    async def _mind_or_fail(self, one: _Running) -> None:
        """Never leave a child without its minder: an error of ours ends everything, visibly."""
        try:
            await self._mind(one)
        except Exception as error:
            self._fail(f"{one.child.name}: internal error ({type(error).__name__}); stopping everything")
        finally:
            one.first_start_is(ready=False)

    async def _mind(self, one: _Running) -> None:
        """Keep one child running until the end or until it may not be restarted."""
        while not self._stopping.is_set():
            try:
                process, reader = start_child(one.child)
            except OnrecordError as error:
                self._fail(f"{one.child.name}: {error}")
                return
            one.process = process
            exited = asyncio.create_task(_exit_of(process))
            try:
                ready = await self._wait_ready(reader, exited)
                if not ready and not exited.done() and not self._stopping.is_set():
                    self.say(f"{one.child.name} is not ready after {self._timing.start_timeout_s:g} s")
                    process.kill()
                    await exited
                    if not one.started.done():
                        self._fail("not everything has started; stopping")
                        return
                if ready:
                    one.first_start_is(ready=True)
                status = await exited
            finally:
                if not exited.done():
                    process.kill()
                    await exited
            if self._stopping.is_set() or not await self._after_exit(one, status):
                return

    async def _after_exit(self, one: _Running, status: int) -> bool:
        """Say whether the child is to be started again, after the back-off has passed."""
        verdict = one.restarts.after_exit(status, now_s=self._clock())
        if verdict.next is Next.STOP_ALL:
            self._fail(f"{one.child.name} has ended: {verdict.reason}; stopping everything")
            return False
        if verdict.next is Next.LEAVE:
            self.say(f"{one.child.name} has ended and stays down: {verdict.reason}")
            one.first_start_is(ready=False)
            return False
        self.say(f"{one.child.name} has ended ({verdict.reason}); starting it again in {verdict.delay_s:g} s")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), verdict.delay_s)
        return not self._stopping.is_set()

    async def _wait_ready(self, reader: int, exited: asyncio.Task[int]) -> bool:
        """Wait for the child's word, its end, or the time limit, which begins anew with each sign of progress."""
        loop = asyncio.get_running_loop()
        said: asyncio.Future[bool] = loop.create_future()
        heard = asyncio.Event()
        received = b""

        def readable() -> None:
            nonlocal received
            part = os.read(reader, 64)
            received = (received + part)[-len(READY) :]
            heard.set()
            if (not part or received == READY) and not said.done():
                said.set_result(bool(part))
                loop.remove_reader(reader)

        loop.add_reader(reader, readable)
        try:
            while True:
                heard.clear()
                await _first(said, exited, timeout_s=self._timing.start_timeout_s)
                if said.done() or exited.done() or not heard.is_set():
                    break
            if said.done() and not said.result():
                # The descriptor was closed without a word: the child is ending, or it will never say it.
                await _first(exited, timeout_s=self._timing.start_timeout_s)
            return said.done() and said.result()
        finally:
            loop.remove_reader(reader)
            os.close(reader)

    async def _stop(self, running: Sequence[_Running]) -> None:
        """Stop guards first, then the authority, the recorder last: what is under way is still recorded."""
        for role, timeout in (
            ("guard", self._timing.guard_stop_s),
            ("authority", self._timing.stop_timeout_s),
            ("recorder", self._timing.stop_timeout_s),
        ):
            group = [one for one in running if one.child.role == role and one.process is not None]
            for one in group:
                one.send(signal.SIGTERM)
            ended = asyncio.ensure_future(
                asyncio.gather(*(_exit_of(one.process) for one in group if one.process))
            )
            hurry = asyncio.ensure_future(self._hurry.wait())
            await _first(ended, hurry, timeout_s=timeout)
            hurry.cancel()
            for one in group:
                if one.process is not None and one.process.poll() is None:
                    self.say(f"{one.child.name} did not stop; killing it")
                    one.send(signal.SIGKILL)
            await ended


async def _first(*futures: asyncio.Future[Any], timeout_s: float | None = None) -> None:
    """Wait until one of them is done or the time is over; none is cancelled."""
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


async def _exit_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process without a thread (pidfd_open(2))."""
    status = process.poll()
    if status is not None:
        return status
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    descriptor = os.pidfd_open(process.pid)

    def ended() -> None:
        if not done.done():
            done.set_result(None)

    loop.add_reader(descriptor, ended)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()
