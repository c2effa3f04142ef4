"""Joins a client's transport, a relay and a real server into one connection, and ends all three together.

Source: call-proof.md 1.4; running.md 1.1, 5.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from onrecord.authorize.guard.lines import Overlong
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.real_server import END_GRACE_SECONDS, RealServer
from onrecord.authorize.guard.sides import ReadSide, Writer, WriteSide

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


class Middle(Protocol):
    """What stands between the two ends of a connection: a relay, or a joint that passes bytes."""

    number: str

    @property
    def running(self) -> int:
        """How much must still happen before the server may get end of input."""

    @property
    def held(self) -> int:
        """Lines or pieces of the client that wait."""

    def client_line(self, line: bytes | Overlong) -> None:
        """Take one line, or piece, of the client."""

    def server_line(self, line: bytes | Overlong) -> None:
        """Take one line, or piece, of the server."""

    def stop_calls(self) -> None:
        """Take no new calls."""

    def close(self, cause: str) -> None:
        """Take note that the connection is over."""


class Connection:
    """One client, one relay, one real server. Give it its ends, then it runs until `finished`.

    `line_bytes` is the longest line of the client; None when a joint passes bytes, and both sides are not cut into
    lines. `end_grace_seconds` is what the server has after end of its input.
    """

    def __init__(
        self,
        *,
        relay: Callable[[Callable[[bytes], None], Callable[[bytes], None], Callable[[], None]], Middle],
        log: GuardLog,
        line_bytes: int | None,
        stop_grace_seconds: float,
        end_grace_seconds: float = END_GRACE_SECONDS,
    ) -> None:
        self._log = log
        self._stop_grace = stop_grace_seconds
        self._end_grace = end_grace_seconds
        self.line_bytes = line_bytes
        self._loop = asyncio.get_running_loop()
        self._client_out: Writer | None = None
        self._server_in: Any = None
        self._server: RealServer | None = None
        self._cause: str | None = None
        self._is_ending = False
        self._is_client_slow = False
        self._timers: list[asyncio.TimerHandle] = []
        self._early: list[bytes] = []
        self.finished = asyncio.Event()
        self.relay = relay(self._to_client, self._to_server, self._drained)
        self.from_client = ReadSide(
            limit_bytes=line_bytes, line=self.relay.client_line, ended=self.client_ended
        )
        self._from_server = ReadSide(
            limit_bytes=None if line_bytes is None else SERVER_LINE_BYTES,
            line=self._server_line,
            ended=self._server_ended,
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
        """The client does not read: stop reading the server, and the client, whose lines may need answers."""
        self._is_client_slow = True
        self._from_server.pause()

    def client_fast(self) -> None:
        """The client reads again."""
        self._is_client_slow = False
        self._from_server.resume()
        self._from_client.go_on()

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
        """Say whether no further line of the client is taken: too many answers or verifications wait."""
        if self._is_client_slow:
            return True
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
            self._server.end(grace_seconds=self._end_grace)

    def _close_server_input(self) -> None:
        if self._server_in is not None and not self._server_in.is_closing():
            self._server_in.close()
        if self._server is not None:
            self._server.end(grace_seconds=self._end_grace)

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
