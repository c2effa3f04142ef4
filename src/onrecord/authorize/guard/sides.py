"""The ends of a connection: pipes and sockets that are read line by line and written without waiting.

Source: call-proof.md 1.4.
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
from typing import Any, Protocol

from onrecord.authorize.guard.lines import LineBuffer, Overlong, Pieces


class Writer(Protocol):
    """A transport that takes bytes."""

    def write(self, data: bytes) -> None:
        """Take bytes; they leave as soon as the other side reads."""

    def close(self) -> None:
        """Close when everything has left."""


class ReadSide(asyncio.Protocol):
    """Reads lines from one transport and hands them on, as long as `is_full` does not say that they must wait.

    Without `limit_bytes` it hands on the bytes as they come.
    """

    def __init__(
        self,
        *,
        limit_bytes: int | None,
        line: Callable[[bytes | Overlong], None],
        ended: Callable[[], None],
    ) -> None:
        self._buffer = Pieces() if limit_bytes is None else LineBuffer(limit_bytes)
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
