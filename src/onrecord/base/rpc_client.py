"""The calling side of `wire`: an asyncio client whose calls may be pipelined, and a blocking one for commands."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self, cast

import orjson

from onrecord.base.errors import NetworkError, Where
from onrecord.base.sockets import check_peer, connect_unix
from onrecord.base.wire import LINE_BYTES, LineSplitter, RpcError

Done = Callable[[Any], None]
"""Takes the outcome of a call: its result, or the error it ended with."""

_TIMER_SECONDS: Final = 0.001
"""Step of the loop's timers: a timer may ring this much before its time."""


def _answer_of(line: bytes) -> tuple[Any, Any | RpcError]:
    try:
        message = orjson.loads(line)
        error = message.get("error")
        if error is not None:
            data = error.get("data")
            failure = RpcError(
                int(error["code"]), str(error.get("message", "")), data if type(data) is dict else {}
            )
            return message.get("id"), failure
        return message["id"], message["result"]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NetworkError("the peer sent a line that is no answer", code="answer-unreadable") from None


class RpcClient(asyncio.Protocol):
    """A connection to a JSON-RPC server on a Unix socket. Make one with `connect`."""

    def __init__(self, path: Path, *, max_line_bytes: int = LINE_BYTES) -> None:
        self.path = path
        self._splitter = LineSplitter(max_line_bytes)
        self._pending: dict[int, tuple[Done, float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._next_id = 0
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self.closed = False
        self.on_close: Callable[[], None] | None = None
        """Called without arguments when the connection ends by itself."""

    @classmethod
    async def connect(
        cls,
        path: Path,
        *,
        expected_uid: int | None,
        timeout_ms: int = 1000,
        max_line_bytes: int = LINE_BYTES,
    ) -> Self:
        """Connect and check the peer's uid before the first byte.

        Raises `NetworkError` with code "unreachable", "peer-uid" or "timeout".
        """
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await loop.sock_connect(sock, str(path))
            check_peer(sock, path, expected_uid=expected_uid)
            client = cls(path, max_line_bytes=max_line_bytes)
            await loop.create_unix_connection(lambda: client, sock=sock)
        except TimeoutError:
            sock.close()
            raise NetworkError(
                "the socket did not accept in time", code="timeout", where=Where(str(path))
            ) from None
        except OSError as error:
            sock.close()
            raise NetworkError(
                f"nothing answers on the socket ({error.strerror or error})",
                code="unreachable",
                where=Where(str(path)),
            ) from error
        except NetworkError:
            sock.close()
            raise
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection (asyncio protocol)."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass

    def data_received(self, data: bytes) -> None:
        """Take bytes in (asyncio protocol)."""
        for line in self._splitter.feed(data):
            try:
                answer_id, answer = _answer_of(line)
            except NetworkError as error:
                self._fail(error)
                return
            waiting = self._pending.pop(answer_id, None) if type(answer_id) is int else None
            if waiting is not None:
                waiting[0](answer)
        if self._splitter.overflow:
            self._fail(NetworkError("the peer sent a line over the limit", code="answer-unreadable"))

    def send(self, method: str, params: Mapping[str, Any], done: Done, *, timeout_ms: int) -> bool:
        """Send a request; `done` is called once, with the result, an `RpcError` or a `NetworkError`.

        The way for hot paths: no future, no task. `done` runs inside the loop's read callback and must not raise.
        Returns whether bytes were handed to the connection; if not, `done` has been called already.
        """
        if self.closed or self._transport is None or self._transport.is_closing():
            done(NetworkError("the connection is closed", code="closed", where=Where(str(self.path))))
            return False
        self._next_id += 1
        number = self._next_id
        line = orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n"
        deadline = self._loop.time() + timeout_ms / 1000
        self._pending[number] = (done, deadline)
        if self._timer is None or deadline < self._timer_at:
            self._watch(deadline)
        self._transport.write(line)
        return True

    def request(self, method: str, params: Mapping[str, Any], *, timeout_ms: int) -> asyncio.Future[Any]:
        """Send a request and return the future of its result.

        The future ends with `RpcError` for an error answer, or `NetworkError` with code "timeout", "closed" or
        "answer-unreadable".
        """
        future: asyncio.Future[Any] = self._loop.create_future()

        def done(answer: Any) -> None:
            if future.done():
                return
            if isinstance(answer, RpcError | NetworkError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        self.send(method, params, done, timeout_ms=timeout_ms)
        return future

    async def call(self, method: str, params: Mapping[str, Any], *, timeout_ms: int) -> Any:
        """Send a request and return its result. Raises as the future of `request` does."""
        return await self.request(method, params, timeout_ms=timeout_ms)

    def _watch(self, deadline: float) -> None:
        """Look after the deadlines once, at this time. One timer serves all calls: most are answered long before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._expire)
        self._timer_at = deadline

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time() + _TIMER_SECONDS
        late = [number for number, (_, deadline) in self._pending.items() if deadline <= now]
        # Calls that are made while others are told of their end set the timer themselves.
        expired = [self._pending.pop(number)[0] for number in late]
        if self._pending:
            self._watch(min(deadline for _, deadline in self._pending.values()))
        for done in expired:
            done(NetworkError("the peer did not answer in time", code="timeout", where=Where(str(self.path))))

    def _fail(self, error: NetworkError) -> None:
        self.closed = True
        pending, self._pending = self._pending, {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for done, _ in pending.values():
            done(error)
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Learn that the connection has ended (asyncio protocol)."""
        was_closed = self.closed
        self._fail(NetworkError("the peer closed the connection", code="closed", where=Where(str(self.path))))
        if self.on_close is not None and not was_closed:
            self.on_close()

    def close(self) -> None:
        """Close; calls that wait end with code "closed"."""
        self._fail(NetworkError("the connection was closed here", code="closed", where=Where(str(self.path))))


class BlockingRpcClient:
    """A connection for commands: one call at a time, each with its own time limit."""

    def __init__(
        self,
        path: Path,
        *,
        expected_uid: int | None,
        timeout_ms: int = 1000,
        max_line_bytes: int = LINE_BYTES,
    ) -> None:
        self.path = path
        self._sock = connect_unix(path, expected_uid=expected_uid, timeout_seconds=timeout_ms / 1000)
        self._limit = max_line_bytes
        self._next_id = 0
        self._rest = b""

    def call(self, method: str, params: Mapping[str, Any], *, timeout_ms: int) -> Any:
        """Send a request and return its result.

        Raises `RpcError` for an error answer, `NetworkError` with code "timeout", "closed" or "answer-unreadable".
        """
        self._next_id += 1
        line = (
            orjson.dumps({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}) + b"\n"
        )
        where = Where(str(self.path))
        try:
            self._sock.settimeout(timeout_ms / 1000)
            self._sock.sendall(line)
            while True:
                answer_id, answer = _answer_of(self._read_line())
                if answer_id in (self._next_id, None):
                    break
        except TimeoutError:
            raise NetworkError("the peer did not answer in time", code="timeout", where=where) from None
        except OSError as error:
            raise NetworkError("the peer closed the connection", code="closed", where=where) from error
        if isinstance(answer, RpcError):
            raise answer
        return answer

    def _read_line(self) -> bytes:
        data = self._rest
        while b"\n" not in data:
            if len(data) > self._limit:
                raise NetworkError("the peer sent a line over the limit", code="answer-unreadable")
            more = self._sock.recv(65536)
            if not more:
                raise NetworkError(
                    "the peer closed the connection", code="closed", where=Where(str(self.path))
                )
            data += more
        line, _, self._rest = data.partition(b"\n")
        return line

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
