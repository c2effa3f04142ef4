"""The asyncio server side of `wire`: one Unix socket, many connections, each with its limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, cast

from onrecord.base.sockets import Peer, bind_unix, open_peer_pidfd, peer_credentials
from onrecord.base.wire import (
    INTERNAL_ERROR,
    LINE_BYTES,
    TOO_LARGE_LINE,
    Id,
    LineSplitter,
    Request,
    RpcError,
    error_line,
    read_line,
)

Answer = bytes | Awaitable[bytes] | None

LONG_LINE_BYTES: Final = 65_536
"""A longer line is read by another thread: a mebibyte takes the strict reader a quarter of a second, and a client that
sends many must not hold up the answers of all others."""

WRITE_BYTES: Final = 65_536
"""Answers of one piece of input are handed to the transport when they are this long, so that it can say stop."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of one socket (call-proof.md 4.5). `idle_seconds` 0 means that idle connections are kept."""

    max_line_bytes: int = LINE_BYTES
    unanswered: int = 64
    idle_seconds: float = 60.0
    connections: int = 256
    connections_per_uid: int = 16


class Handler(Protocol):
    """What a server does with its connections."""

    def on_connect(self, connection: RpcConnection) -> bool:
        """Take a new connection; False closes it before a byte is read."""

    def on_request(self, connection: RpcConnection, request: Request) -> Answer:
        """Answer a request with a line, now or later; None leaves it unanswered."""

    def on_broken(self, connection: RpcConnection, answer: bytes) -> Answer:
        """Take notice of a line that is no request; `answer` is what to send, return it or send it later."""

    def on_disconnect(self, connection: RpcConnection) -> None:
        """Learn that a connection has ended."""


class RpcConnection(asyncio.Protocol):
    """One accepted connection. `peer` is its peer by SO_PEERCRED, `state` belongs to the handler."""

    def __init__(self, server: RpcServer) -> None:
        self._server = server
        self._handler = server.handler
        self._splitter = LineSplitter(server.limits.max_line_bytes)
        self._backlog: deque[bytes] = deque()
        self._unanswered = 0
        self._poller: select.poll | None = None
        self._open = False
        self._paused = False
        self._is_clogged = False
        self._is_reading_aside = False
        self.transport: asyncio.Transport | None = None
        self.peer = Peer(0, -1, -1)
        self.pidfd: int | None = None
        self.state: Any = None
        self.last_activity = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection (asyncio protocol)."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass
        sock = transport.get_extra_info("socket")
        try:
            # uvloop hands out a pseudo socket; the descriptor is what counts.
            with socket.socket(fileno=os.dup(sock.fileno())) as real:
                self.peer = peer_credentials(real)
                self.pidfd = open_peer_pidfd(real)
        except OSError:  # no descriptor is left: a peer that is not known is not served
            self._server.refused_connections += 1
            self.transport.abort()
            return
        if self.pidfd is not None:
            self._poller = select.poll()
            self._poller.register(self.pidfd, select.POLLIN)
        self.last_activity = self._server.loop_time()
        if not self._server.admit(self):
            self.transport.abort()
            return
        self._open = True
        if not self._handler.on_connect(self):
            self.close()

    def data_received(self, data: bytes) -> None:
        """Take bytes in (asyncio protocol)."""
        self.last_activity = self._server.loop_time()
        lines = self._splitter.feed(data)
        if self._backlog:
            self._backlog.extend(lines)
        else:
            self._serve(lines)
        if self._splitter.overflow and self._open:
            self.send(TOO_LARGE_LINE)
            self.close()

    def _serve(self, lines: list[bytes]) -> None:
        answers: list[bytes] = []
        size = 0
        for index, line in enumerate(lines):
            if not self._open:
                break
            if self._must_wait:
                self._backlog.extend(lines[index:])
                if not self._paused and self.transport is not None:
                    self._paused = True
                    self.transport.pause_reading()
                break
            if len(line) > LONG_LINE_BYTES:
                self._read_aside(line)
                continue
            answer = self._answer(self._server.reader(line))
            if answer is not None:
                answers.append(answer)
                size += len(answer)
                if size >= WRITE_BYTES:
                    self.send(b"".join(answers))
                    answers.clear()
                    size = 0
        if answers:
            self.send(answers[0] if len(answers) == 1 else b"".join(answers))

    @property
    def _must_wait(self) -> bool:
        """Say whether no further line is taken now: too much is unanswered, or the peer does not read its answers."""
        return (
            self._is_clogged or self._is_reading_aside or self._unanswered >= self._server.limits.unanswered
        )

    def _read_aside(self, line: bytes) -> None:
        self._is_reading_aside = True
        self._unanswered += 1
        self._server.read_aside(line).add_done_callback(self._was_read_aside)

    def _was_read_aside(self, done: asyncio.Future[Request | bytes | None]) -> None:
        self._is_reading_aside = False
        self._unanswered -= 1
        if done.cancelled() or not self._open:
            return
        error = done.exception()
        if error is not None:
            self._server.report(error)
            answer: bytes | None = error_line(
                None, INTERNAL_ERROR, "Internal error", {"reason": "internal_error"}
            )
        else:
            answer = self._answer(done.result())
        if answer is not None:
            self.send(answer)
        self._go_on()

    def _answer(self, request: Request | bytes | None) -> bytes | None:
        if request is None:
            return None
        request_id: Id = None
        try:
            if isinstance(request, bytes):
                answer = self._handler.on_broken(self, request)
            else:
                request_id = request.id
                answer = self._handler.on_request(self, request)
        except RpcError as error:
            return error_line(request_id, error.rpc_code, str(error), error.data)
        except Exception as error:  # a bug in a handler must not end the connection without an answer
            self._server.report(error)
            return error_line(request_id, INTERNAL_ERROR, "Internal error", {"reason": "internal_error"})
        if answer is None or isinstance(answer, bytes):
            return answer
        self._unanswered += 1
        future = asyncio.ensure_future(answer)
        future.add_done_callback(partial(self._deliver, request_id))
        return None

    def _deliver(self, request_id: Id, done: asyncio.Future[bytes]) -> None:
        self._unanswered -= 1
        if done.cancelled():
            line: bytes = error_line(request_id, INTERNAL_ERROR, "Stopping", {"reason": "stopping"})
        else:
            error = done.exception()
            if error is None:
                line = done.result()
            elif isinstance(error, RpcError):
                line = error_line(request_id, error.rpc_code, str(error), error.data)
            else:
                self._server.report(error)
                line = error_line(request_id, INTERNAL_ERROR, "Internal error", {"reason": "internal_error"})
        self.send(line)
        self._go_on()

    def pause_writing(self) -> None:
        """Take no more lines while the peer does not read its answers (asyncio protocol)."""
        self._is_clogged = True
        if not self._paused and self.transport is not None and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on: the peer has read (asyncio protocol)."""
        self._is_clogged = False
        self._go_on()

    def _go_on(self) -> None:
        """Take the lines that waited, and read again if none is left waiting."""
        if self._backlog and self._open and not self._must_wait:
            lines = list(self._backlog)
            self._backlog.clear()
            self._serve(lines)
        if (
            self._paused
            and not self._must_wait
            and not self._backlog
            and self.transport is not None
            and not self.transport.is_closing()
        ):
            self._paused = False
            self.transport.resume_reading()

    def send(self, line: bytes) -> None:
        """Send a line, unless the connection has ended."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(line)

    def close(self) -> None:
        """Close after what was sent has left."""
        if self.transport is not None:
            self.transport.close()
        self._open = False

    def end(self) -> None:
        """Close; what a peer does not read is dropped, because it would keep the connection for ever."""
        if self._is_clogged and self.transport is not None:
            self.transport.abort()
        self.close()

    def gone(self) -> bool:
        """Say whether the peer process has exited, so that whoever uses the socket now is somebody else."""
        return self._poller is not None and bool(self._poller.poll(0))

    @property
    def unanswered(self) -> int:
        """Return how many requests wait for their answer."""
        return self._unanswered

    def connection_lost(self, exc: Exception | None) -> None:
        """Learn that the connection has ended (asyncio protocol)."""
        was_admitted = self._server.forget(self)
        self._open = False
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
            self._poller = None
        if was_admitted:
            self._handler.on_disconnect(self)


class RpcServer:
    """A JSON-RPC server on one Unix socket."""

    def __init__(
        self,
        handler: Handler,
        *,
        path: Path,
        mode: int = 0o600,
        gid: int | None = None,
        limits: ServerLimits | None = None,
        reader: Callable[[bytes], Request | bytes | None] = read_line,
        report: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.handler = handler
        self.reader = reader
        self.path = path
        self.limits = limits or ServerLimits()
        self._mode = mode
        self._gid = gid
        self._report = report
        self._connections: set[RpcConnection] = set()
        self._per_uid: Counter[int] = Counter()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._inode: tuple[int, int] | None = None
        self._aside = ThreadPoolExecutor(1, "long-lines")
        self.refused_connections = 0

    def loop_time(self) -> float:
        """Return the loop's clock, in seconds."""
        return asyncio.get_running_loop().time()

    async def start(self) -> None:
        """Bind and serve. Raises as `bind_unix` does."""
        sock = bind_unix(self.path, mode=self._mode, gid=self._gid)
        status = os.lstat(self.path)
        self._inode = (status.st_dev, status.st_ino)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: RpcConnection(self), sock=sock)
        self._sweep()

    async def stop(self) -> None:
        """Stop accepting, close every connection, remove the socket file if it is still ours."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.end()
        self._aside.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(OSError):
            status = os.lstat(self.path)
            if (status.st_dev, status.st_ino) == self._inode:
                os.unlink(self.path)
        await asyncio.sleep(0)

    def admit(self, connection: RpcConnection) -> bool:
        """Count a new connection in, or refuse it because a limit is reached."""
        uid = connection.peer.uid
        if (
            len(self._connections) >= self.limits.connections
            or self._per_uid[uid] >= self.limits.connections_per_uid
        ):
            self.refused_connections += 1
            return False
        self._connections.add(connection)
        self._per_uid[uid] += 1
        return True

    def forget(self, connection: RpcConnection) -> bool:
        """Count a connection out; False if it was never admitted."""
        if connection not in self._connections:
            return False
        self._connections.discard(connection)
        self._per_uid[connection.peer.uid] -= 1
        return True

    def read_aside(self, line: bytes) -> asyncio.Future[Request | bytes | None]:
        """Read a line on the thread for long ones."""
        return asyncio.get_running_loop().run_in_executor(self._aside, self.reader, line)

    def report(self, error: BaseException) -> None:
        """Hand an unexpected error to the reporter: its type only, since its text may hold content."""
        if self._report is not None:
            self._report(error)

    @property
    def connections(self) -> frozenset[RpcConnection]:
        """Return the connections that are open now."""
        return frozenset(self._connections)

    def _sweep(self) -> None:
        if self.limits.idle_seconds > 0:
            limit = self.loop_time() - self.limits.idle_seconds
            for connection in list(self._connections):
                if connection.last_activity < limit and not connection.unanswered:
                    connection.end()
            pause = min(5.0, self.limits.idle_seconds / 4)
            self._sweeper = asyncio.get_running_loop().call_later(pause, self._sweep)
