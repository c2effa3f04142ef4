"""The connector process: `onrecord connect ID`, what an MCP client starts in place of the real server.

It runs under the agent's uid, holds no secret, and checks who serves both sockets before the first byte.

Source: running.md 6; call-proof.md 1.4.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from onrecord.authorize.connector.calls import Calls
from onrecord.authorize.connector.issuing import Issuer
from onrecord.authorize.guard.connection import SERVER_LINE_BYTES
from onrecord.authorize.guard.extension import is_label
from onrecord.authorize.guard.lines import Overlong
from onrecord.authorize.guard.service import loop_factory
from onrecord.authorize.guard.sides import (
    DirectWriter,
    ReadSide,
    SocketSide,
    WriteSide,
    is_watchable,
    watchable_input,
)
from onrecord.base.configuration import Configuration
from onrecord.base.errors import NetworkError, UsageError
from onrecord.base.processes import settle_memory, spawn
from onrecord.base.rpc_client import RpcClient
from onrecord.base.sockets import connect_unix, process_label

SESSION_VARIABLE: Final = "ONRECORD_RECORD_SESSION"
"""Environment variable that names the record session in place of the parent process (running.md R-06)."""

END_SECONDS: Final = 30.0
"""After the client has ended, the answers that are under way may take this long."""


def run_connector(configuration: Configuration, server: str, *, pipe: bool = False) -> int:
    """Serve the MCP client at the other end of stdin and stdout until one side closes. Returns the exit status.

    With `pipe` bytes are only copied, for clients that bring their own proofs.

    Raises `NetworkError` (exit 3) when the authority or the guard cannot be reached or is served by another uid,
    `ConfigurationError` (exit 2) for what is configured wrongly.
    """
    configuration.server(server)
    label = session_label(os.environ.get(SESSION_VARIABLE))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_Connector(configuration, server, label=label, pipe=pipe).run())


def session_label(named: str | None) -> str:
    """Return the label of the record session: the one that is named, else that of the parent process.

    Raises `UsageError` with code "record-session-label".
    """
    if named:
        if not is_label(named):
            raise UsageError(
                f"{SESSION_VARIABLE} must be 1 to 64 of A-Z a-z 0-9 . _ : -", code="record-session-label"
            )
        return named
    return process_label(os.getppid())


class _Connector:
    def __init__(self, configuration: Configuration, server: str, *, label: str, pipe: bool) -> None:
        self._configuration = configuration
        self._server = server
        self._label = label
        self._is_pipe = pipe
        self._guard_out: Any = None
        self._client_out: Any = None
        self._child: subprocess.Popen[bytes] | None = None
        self._calls: Calls | None = None
        self._client_side: ReadSide | None = None
        self._guard_side: ReadSide | None = None
        self._client_has_ended = False
        self._was_cut_off = False

    async def run(self) -> int:
        self._done = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        limits = self._configuration.limits
        issuer = Issuer(connect=self._connect_authority, timeout_ms=limits.issue_timeout_ms)
        if not self._is_pipe:
            await self._first_connection(issuer)
            settings = self._configuration.connector
            self._calls = Calls(
                server=self._server,
                label=self._label,
                issues=issuer,
                to_guard=self._to_guard,
                to_client=self._to_client,
                call_line_bytes=limits.call_line_bytes,
                approval_wait_seconds=settings.approval_wait_seconds,
                approval_wait_progress_seconds=settings.approval_wait_progress_seconds,
                probe_timeout_seconds=limits.verify_timeout_ms / 1000,
                settled=self._settled,
            )
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._done.set)
        try:
            await self._attach_guard()
            await self._attach_client()
            settle_memory()
            await self._done.wait()
        finally:
            if self._calls is not None:
                self._calls.close()
            await issuer.close()
            for side in (self._client_side, self._guard_side):
                if side is not None and side.transport is not None:
                    side.transport.close()
            for out in (self._guard_out, self._client_out):
                if out is not None:
                    out.close()
            await self._end_child()
        return self._status()

    async def _first_connection(self, issuer: Issuer) -> None:
        try:
            await issuer.connect()
        except NetworkError as error:
            if error.code == "peer-uid":
                raise
            raise _unreached(self._configuration.agent_socket(), error) from error

    async def _connect_authority(self) -> RpcClient:
        return await RpcClient.connect(
            self._configuration.agent_socket(),
            expected_uid=self._configuration.authority_uid,
            timeout_ms=self._configuration.limits.hello_timeout_ms,
        )

    async def _attach_guard(self) -> None:
        sides: dict[str, Any] = {
            "line": self._guard_line, "ended": self._guard_ended, "limit_bytes": SERVER_LINE_BYTES + 1,
        }  # fmt: skip
        if self._configuration.mode == "user":
            self._child = self._start_guard()
            assert self._child.stdin is not None
            assert self._child.stdout is not None
            write = WriteSide(slow=self._client_pause, fast=self._client_resume, gone=self._guard_gone)
            self._guard_out, _ = await self._loop.connect_write_pipe(lambda: write, self._child.stdin)
            read = (
                ReadSide(**sides)
                if not self._is_pipe
                else RawSide(data=self._to_client, ended=self._guard_ended)
            )
            self._guard_side = read
            await self._loop.connect_read_pipe(lambda: read, self._child.stdout)
            return
        path = self._configuration.mcp_socket(self._server)
        try:
            sock = connect_unix(
                path, expected_uid=self._configuration.server_uid(self._server), timeout_seconds=2.0
            )
        except NetworkError as error:
            if error.code == "peer-uid":
                raise
            raise _unreached(path, error) from error
        sock.setblocking(False)
        both = {"slow": self._client_pause, "fast": self._client_resume, "gone": self._guard_gone}
        side: ReadSide
        if self._is_pipe:
            side = RawSocketSide(data=self._to_client, ended=self._guard_ended, **both)
        else:
            side = SocketSide(**both, **sides)
        self._guard_side = side
        self._guard_out, _ = await self._loop.create_unix_connection(lambda: side, sock=sock)

    def _start_guard(self) -> subprocess.Popen[bytes]:
        argv = [
            sys.executable,
            "-m",
            "onrecord",
            "guard",
            self._server,
            "--config",
            str(self._configuration.file),
        ]
        return spawn(argv, env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    async def _attach_client(self) -> None:
        reader, writer = watchable_input(0), os.dup(1)
        if is_watchable(writer):
            write = WriteSide(slow=self._guard_pause, fast=self._guard_resume, gone=self._client_gone)
            self._client_out, _ = await self._loop.connect_write_pipe(lambda: write, io.FileIO(writer, "wb"))
        else:
            self._client_out = DirectWriter(writer)
        read: ReadSide
        if self._is_pipe:
            read = RawSide(data=self._to_guard, ended=self._client_ended)
        else:
            read = ReadSide(
                limit_bytes=self._configuration.limits.other_line_bytes,
                line=self._client_line,
                ended=self._client_ended,
            )
        self._client_side = read
        await self._loop.connect_read_pipe(lambda: read, io.FileIO(reader, "rb"))

    def _client_line(self, line: bytes | Overlong) -> None:
        assert self._calls is not None
        self._calls.client_line(line)

    def _guard_line(self, line: bytes | Overlong) -> None:
        assert self._calls is not None
        self._calls.guard_line(line)

    def _to_guard(self, data: bytes) -> None:
        if self._guard_out is not None and not self._guard_out.is_closing():
            self._guard_out.write(data)

    def _to_client(self, data: bytes) -> None:
        if self._client_out is not None:
            self._client_out.write(data)

    def _client_ended(self) -> None:
        self._client_has_ended = True
        if self._calls is None or not self._calls.unanswered:
            self._end_input()
        # Whatever was sent is answered first; a guard that never answers is not waited for without end.
        self._loop.call_later(END_SECONDS, self._done.set)

    def _settled(self) -> None:
        if self._client_has_ended and self._calls is not None and not self._calls.unanswered:
            self._end_input()

    def _end_input(self) -> None:
        out = self._guard_out
        if out is None or out.is_closing():
            return
        if self._child is not None:
            out.close()
        elif out.can_write_eof():
            out.write_eof()

    def _client_gone(self) -> None:
        self._done.set()

    def _guard_ended(self) -> None:
        self._was_cut_off = self._was_cut_off or not (self._client_has_ended or self._done.is_set())
        self._done.set()

    def _guard_gone(self) -> None:
        if not self._client_has_ended:
            self._guard_ended()

    def _client_pause(self) -> None:
        if self._client_side is not None:
            self._client_side.pause()

    def _client_resume(self) -> None:
        if self._client_side is not None:
            self._client_side.resume()

    def _guard_pause(self) -> None:
        if self._guard_side is not None:
            self._guard_side.pause()

    def _guard_resume(self) -> None:
        if self._guard_side is not None:
            self._guard_side.resume()

    async def _end_child(self) -> None:
        child = self._child
        if child is None or child.poll() is not None:
            return
        loop = self._loop
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await loop.run_in_executor(None, child.wait)
        if child.poll() is None:
            child.kill()
            child.wait()

    def _status(self) -> int:
        """Say how it ended: a guard that could not start says so by its own status, one that broke off counts as 3."""
        if self._child is not None and self._child.returncode == 2:
            return 2
        failed = self._child is None or self._child.returncode != 0
        return 3 if self._was_cut_off and failed else 0


def _unreached(path: Path, error: NetworkError) -> NetworkError:
    """Say why a socket of onrecord cannot be reached, and what to do."""
    if isinstance(error.__cause__, PermissionError):
        return NetworkError(
            f"this user may not connect to onrecord (socket {path})",
            code="unreachable",
            hint="only members of the group principals.call_group (mcp-call) may; log in anew after a change",
        )
    return NetworkError(
        f"onrecord up is not running (socket {path})", code="unreachable", hint="start it with onrecord up"
    )


class RawSide(ReadSide):
    """Hands bytes on as they come."""

    def __init__(self, *, data: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        super().__init__(limit_bytes=1, line=lambda _: None, ended=ended)
        self._data = data

    def data_received(self, data: bytes) -> None:
        self._data(data)


class RawSocketSide(SocketSide):
    """Hands bytes of a socket on as they come."""

    def __init__(
        self, *, data: Callable[[bytes], None], ended: Callable[[], None], **both: Callable[[], None]
    ) -> None:
        super().__init__(limit_bytes=1, line=lambda _: None, ended=ended, **both)
        self._data = data

    def data_received(self, data: bytes) -> None:
        self._data(data)


__all__ = ["run_connector", "session_label"]
