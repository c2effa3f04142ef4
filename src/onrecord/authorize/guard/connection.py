"""Joins a client's transport, a relay and a real server into one connection, and ends all three together.

Source: call-proof.md 1.4; running.md 1.1, 5.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import stat
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from onrecord.authorize.guard.lines import LineBuffer, Overlong
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.real_server import RealServer
from onrecord.authorize.guard.relay import Relay

SERVER_LINE_BYTES: Final = 67_108_864
"""Longest line of a server: results may be large, but one line must not take all memory."""

STDERR_LINE_BYTES: Final = 65_536
"""Longest line of a server's standard error that is kept in one piece."""

MAX_HELD_LINES: Final = 64
"""Lines of one client that wait behind a verification; while there are more, the client is not read. It cannot take
all memory of the guard, nor all places of its one connection to the authority."""

MAX_HELD_BYTES: Final = 16_777_216
"""The same in bytes: one line of the largest size."""

DRAIN_SECONDS: Final = 1.0
"""After a server's process has ended, its output is read for this long; a grandchild may hold the pipe open."""


class Writer(Protocol):
    """A transport that takes bytes."""

    def write(self, data: bytes) -> None:
        """Take bytes; they leave as soon as the other side reads."""

    def close(self) -> None:
        """Close when everything has left."""


class ReadSide(asyncio.Protocol):
    """Reads lines from one transport and hands them on, as long as `is_full` does not say that they must wait."""

    def __init__(
        self,
        *,
        limit_bytes: int,
        line: Callable[[bytes | Overlong], None],
        ended: Callable[[], None],
    ) -> None:
        self._buffer = LineBuffer(limit_bytes)
        self._line = line
        self._ended = ended
        self._has_ended = False
        self._is_at_end = False
        self._is_waiting = False
        self._is_slow = False
        self._lines: deque[bytes | Overlong] = deque()
        self.is_full: Callable[[], bool] = lambda: False
        self.handed_on_bytes = 0
        """Counted for `is_full`, which may set it back."""
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Cut bytes into lines and hand them on."""
        self._lines.extend(self._buffer.feed(data))
        if not self._is_waiting:
            self._hand_on()

    def eof_received(self) -> bool:
        """The peer sends no more."""
        self._finish()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport has ended."""
        self._finish()

    def go_on(self) -> None:
        """Hand on the lines that waited for room, and read again."""
        if self._is_waiting:
            self._is_waiting = False
            self._hand_on()
            if not self._is_waiting and not self._is_slow:
                self._read(True)

    def pause(self) -> None:
        """Read no more until `resume`."""
        self._is_slow = True
        self._read(False)

    def resume(self) -> None:
        """Read again."""
        self._is_slow = False
        if not self._is_waiting:
            self._read(True)

    def _hand_on(self) -> None:
        lines, take, is_full = self._lines, self._line, self.is_full
        while lines:
            if is_full():
                self._is_waiting = True
                self._read(False)
                return
            line = lines.popleft()
            self.handed_on_bytes += len(line)
            take(line)
        if self._is_at_end and not self._has_ended:
            self._has_ended = True
            self._ended()

    def _read(self, is_on: bool) -> None:  # noqa: FBT001
        if self.transport is not None and not self.transport.is_closing():
            with contextlib.suppress(RuntimeError):
                if is_on:
                    self.transport.resume_reading()
                else:
                    self.transport.pause_reading()

    def _finish(self) -> None:
        if not self._is_at_end:
            self._is_at_end = True
            last = self._buffer.end()
            if last is not None:
                self._lines.append(last)
            if not self._is_waiting:
                self._hand_on()


class WriteSide(asyncio.Protocol):
    """The writing end of a pipe; says when its reader is slow, and when it has gone."""

    def __init__(
        self, *, slow: Callable[[], None], fast: Callable[[], None], gone: Callable[[], None]
    ) -> None:
        self._slow = slow
        self._fast = fast
        self._gone = gone

    def pause_writing(self) -> None:
        """The peer does not read fast enough."""
        self._slow()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._fast()

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport has ended."""
        self._gone()


class SocketSide(ReadSide):
    """A client's socket: both directions, and the end of the first one may come before that of the second."""

    def __init__(
        self, *, slow: Callable[[], None], fast: Callable[[], None], gone: Callable[[], None], **more: Any
    ) -> None:
        super().__init__(**more)
        self._slow = slow
        self._fast = fast
        self._gone = gone

    def eof_received(self) -> bool:
        """The peer sends no more."""
        self._finish()
        return not is_hung_up(self.transport)

    def pause_writing(self) -> None:
        """The peer does not read fast enough."""
        self._slow()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._fast()

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport has ended."""
        self._finish()
        self._gone()


class Connection:
    """One client, one relay, one real server. Give it its ends, then it runs until `finished`."""

    def __init__(
        self,
        *,
        relay: Callable[[Callable[[bytes], None], Callable[[bytes], None], Callable[[], None]], Relay],
        log: GuardLog,
        line_bytes: int,
        stop_grace_seconds: float,
    ) -> None:
        self._log = log
        self._stop_grace = stop_grace_seconds
        self._loop = asyncio.get_running_loop()
        self._client_out: Writer | None = None
        self._server_in: Any = None
        self._server: RealServer | None = None
        self._cause: str | None = None
        self._is_ending = False
        self._timers: list[asyncio.TimerHandle] = []
        self._early: list[bytes] = []
        self.finished = asyncio.Event()
        self.relay = relay(self._to_client, self._to_server, self._drained)
        self.from_client = ReadSide(
            limit_bytes=line_bytes, line=self.relay.client_line, ended=self.client_ended
        )
        self._from_server = ReadSide(
            limit_bytes=SERVER_LINE_BYTES, line=self._server_line, ended=self._server_ended
        )
        self._errors = ReadSide(limit_bytes=STDERR_LINE_BYTES, line=self._error_line, ended=lambda: None)

    @property
    def from_client(self) -> ReadSide:
        """The reading end towards the client."""
        return self._from_client

    @from_client.setter
    def from_client(self, side: ReadSide) -> None:
        self._from_client = side
        side.is_full = self._is_client_ahead

    def attach_client(self, writer: Writer) -> None:
        """Give the writing end towards the client."""
        early, self._early = self._early, []
        self._client_out = writer
        for line in early:
            writer.write(line)

    async def attach_server(self, server: RealServer) -> None:
        """Take over the pipes of a started server."""
        self._server = server
        write = WriteSide(slow=self._pause_client, fast=self._resume_client, gone=self._server_input_gone)
        self._server_in, _ = await self._loop.connect_write_pipe(lambda: write, server.stdin)
        await self._loop.connect_read_pipe(lambda: self._from_server, server.stdout)
        await self._loop.connect_read_pipe(lambda: self._errors, server.stderr)

    def client_slow(self) -> None:
        """The client does not read: stop reading the server."""
        self._from_server.pause()

    def client_fast(self) -> None:
        """The client reads again."""
        self._from_server.resume()

    def client_ended(self) -> None:
        """The client sends no more. What it has sent is answered, for a while, then the server gets end of input."""
        if self._is_ending:
            return
        self._is_ending = True
        self._cause = self._cause or "client-eof"
        if not self.relay.running:
            self._close_server_input()
        else:
            self._timers.append(self._loop.call_later(self._stop_grace, self._close_server_input))

    def client_gone(self) -> None:
        """The client cannot be answered any more: end now."""
        self._cause = self._cause or "client-eof"
        self._is_ending = True
        self.relay.close(self._cause)
        self._close_server_input()
        if self._server is None:
            self._finish()

    def stop(self) -> None:
        """End in order: no new calls, wait for running ones, then as if the client had gone."""
        self._cause = self._cause or "guard-stop"
        self.relay.stop_calls()
        self.client_ended()

    def server_exited(self, status: int | None) -> None:
        """The first process of the server has ended; its output may still hold answers."""
        if status and self._cause in (None, "server-eof"):
            self._log.alert("server.exited", connection=self.relay.number, status=status)
        self._timers.append(self._loop.call_later(DRAIN_SECONDS, self._server_ended))

    def _to_client(self, line: bytes) -> None:
        if self._client_out is not None:
            self._client_out.write(line)
        else:
            self._early.append(line)

    def _to_server(self, line: bytes) -> None:
        if self._server_in is not None and not self._server_in.is_closing():
            self._server_in.write(line)

    def _server_line(self, line: bytes | Overlong) -> None:
        self.relay.server_line(line)
        if self._is_ending and not self.relay.running:
            self._close_server_input()

    def _error_line(self, line: bytes | Overlong) -> None:
        self._log.server_line(self.relay.number, line.head if isinstance(line, Overlong) else line)

    def _drained(self) -> None:
        self._from_client.go_on()
        if self._is_ending and not self.relay.running:
            self._close_server_input()

    def _is_client_ahead(self) -> bool:
        """Say whether so much waits behind a verification that no further line of the client is taken."""
        if not self.relay.held:
            self._from_client.handed_on_bytes = 0
            return False
        return self.relay.held >= MAX_HELD_LINES or self._from_client.handed_on_bytes >= MAX_HELD_BYTES

    def _pause_client(self) -> None:
        self.from_client.pause()

    def _resume_client(self) -> None:
        self.from_client.resume()

    def _server_input_gone(self) -> None:
        if not self._is_ending and self._server is not None:
            # Nobody reads calls any more. The output may still hold answers, so its end decides.
            self._server.end()

    def _close_server_input(self) -> None:
        if self._server_in is not None and not self._server_in.is_closing():
            self._server_in.close()
        if self._server is not None:
            self._server.end()

    def _server_ended(self) -> None:
        self._cause = self._cause or "server-eof"
        self.relay.close(self._cause)
        self._is_ending = True
        self._close_server_input()
        if self._client_out is not None:
            self._client_out.close()
        if self._server is None or self._server.ended.is_set():
            self._finish()
        else:
            self._loop.create_task(self._finish_later(self._server))

    async def _finish_later(self, server: RealServer) -> None:
        await server.ended.wait()
        self._finish()

    def _finish(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for side in (self.from_client, self._from_server, self._errors):
            if side.transport is not None:
                side.transport.close()
        self.finished.set()


class DirectWriter:
    """Writes to a descriptor that no event loop can watch, such as a regular file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Write all of it, however long that takes."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def close(self) -> None:
        """Leave the descriptor to the process."""


def is_watchable(descriptor: int) -> bool:
    """Say whether an event loop can wait for a descriptor: a pipe, a socket, a terminal, but no regular file."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


def watchable_input(descriptor: int) -> int:
    """Return a descriptor with the same bytes that an event loop can watch; a file is copied into a pipe."""
    if is_watchable(descriptor) and not _is_null(descriptor):
        return os.dup(descriptor)
    reader, writer = os.pipe()

    def copy() -> None:
        with open(writer, "wb", buffering=0) as out, contextlib.suppress(OSError):
            while data := os.read(descriptor, 65536):
                out.write(data)

    threading.Thread(target=copy, name="stdin-copy", daemon=True).start()
    return reader


def is_hung_up(transport: Any) -> bool:
    """Say whether the peer of a socket has closed both directions, not only its sending one."""
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None:
        return True
    poller = select.poll()
    poller.register(sock.fileno(), 0)
    return bool(poller.poll(0))


def _is_null(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    return stat.S_ISCHR(status.st_mode) and not os.isatty(descriptor)
