"""The strict transport: standard input and output of a protected server, with the whole relay in between.

Descriptors 0 and 1 move away first, so that tool code can neither read calls nor write answers. Lines are bytes until
the relay has looked at them; what is broken is answered, never passed on and never met with silence.

Source: mcp.md 3.1, 10.3; call-proof.md 6.5.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import orjson
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from onrecord.authorize.guard.connection import MAX_HELD_BYTES, MAX_HELD_LINES
from onrecord.authorize.guard.enforcement import Enforcement
from onrecord.authorize.guard.joint import HOOKED_LINE
from onrecord.authorize.guard.launch import state_directory
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.reading import TOOLS_CALL
from onrecord.authorize.guard.server_rules import RulesFile
from onrecord.authorize.guard.sides import (
    DirectWriter,
    ReadSide,
    Writer,
    WriteSide,
    is_watchable,
    watchable_input,
)
from onrecord.authorize.hook.admission import AdmissionGate, Admitted
from onrecord.authorize.hook.surroundings import Surroundings
from onrecord.base.errors import UsageError
from onrecord.base.wire import INTERNAL_ERROR, INVALID_PARAMS, error_line

QUEUED_MESSAGES: Final = 64
"""Messages that the server object has not taken yet; while there are more, the client is not read."""

FLUSH_SECONDS: Final = 2.0
"""At the end, a client that does not read holds the process up for this long."""


@contextlib.asynccontextmanager
async def strict_stdio(
    surroundings: Surroundings, *, gate: AdmissionGate, log: GuardLog
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the two streams that the SDK's lowlevel server runs on; the transport ends with the block.

    Raises `UsageError` with code "hook-needs-asyncio", `StorageError` with code "state-unusable".
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError(
            "a protected server runs on asyncio",
            code="hook-needs-asyncio",
            hint="anyio.run(…, backend='asyncio')",
        ) from error
    configuration, server = surroundings.configuration, surroundings.server
    enforcement = Enforcement(
        configuration,
        server,
        state=state_directory(configuration.guard_state(server)),
        log=log,
        rules=RulesFile(configuration, server, log=log),
    )
    transport = StrictTransport(surroundings, enforcement=enforcement, gate=gate, log=log)
    enforcement.start()
    try:
        with descriptors_away() as (reader, writer):
            try:
                await transport.attach(reader, writer)
                yield transport.streams
            finally:
                with anyio.CancelScope(shield=True):
                    await transport.end()
    finally:
        with anyio.CancelScope(shield=True):
            await enforcement.stop()


@contextlib.contextmanager
def descriptors_away() -> Any:
    """Yield the real standard input and output as private descriptors; 0 and 1 are empty and stderr meanwhile."""
    reader, writer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    blocking = os.get_blocking(reader), os.get_blocking(writer)
    try:
        os.dup2(null, 0)
        os.dup2(2, 1)
        yield reader, writer
    finally:
        for private, public, is_blocking in zip((reader, writer), (0, 1), blocking, strict=True):
            with contextlib.suppress(OSError):
                os.set_blocking(private, is_blocking)
            os.dup2(private, public)
            os.close(private)
        os.close(null)


class StrictTransport:
    """One client at a pipe, one relay, one server object at two memory streams."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        enforcement: Enforcement,
        gate: AdmissionGate,
        log: GuardLog,
    ) -> None:
        limits = surroundings.configuration.limits
        self._is_guarded = surroundings.is_guarded
        self._gate = gate
        self._log = log
        self._grace = limits.stop_grace_seconds
        self._loop = asyncio.get_running_loop()
        self._to_sdk, read_stream = anyio.create_memory_object_stream[SessionMessage](QUEUED_MESSAGES)
        write_stream, self._from_sdk = anyio.create_memory_object_stream[SessionMessage](0)
        self.streams = read_stream, write_stream
        self._overflow: deque[SessionMessage] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._out: Writer | None = None
        self._is_fast = asyncio.Event()
        self._is_fast.set()
        self._is_gone = asyncio.Event()
        self._is_ending = False
        self._relay = enforcement.relay(
            surroundings.connection,
            peer=surroundings.peer,
            to_client=self._to_client,
            to_server=self._to_server,
            settled=self._settled,
        )
        self._client = ReadSide(
            limit_bytes=limits.other_line_bytes, line=self._relay.client_line, ended=self._client_ended
        )
        self._client.is_full = self._is_full

    async def attach(self, reader: int, writer: int) -> None:
        """Begin to serve the client at these descriptors, which stay the caller's."""
        if is_watchable(writer):
            side = WriteSide(slow=self._is_fast.clear, fast=self._client_fast, gone=self._client_gone)
            file = io.FileIO(os.dup(writer), "wb")
            self._out, _ = await self._loop.connect_write_pipe(lambda: side, file)
        else:
            self._out = DirectWriter(writer)
            self._is_gone.set()
        if self._is_guarded:
            self._to_client(HOOKED_LINE + b"\n")
        self._spawn(self._answers())
        source = io.FileIO(watchable_input(reader), "rb")
        await self._loop.connect_read_pipe(lambda: self._client, source)

    async def end(self) -> None:
        """Close everything; what is written leaves first, unless nobody reads it."""
        for stream in (*self.streams, self._to_sdk):
            stream.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=FLUSH_SECONDS)
            for task in late:
                task.cancel()
        self._from_sdk.close()
        # A server that ends although its client is there has broken the connection off.
        self._relay.close("client-eof" if self._is_ending else "server-eof")
        if self._timer is not None:
            self._timer.cancel()
        if self._client.transport is not None:
            self._client.transport.close()
        if self._out is not None:
            self._out.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._is_gone.wait()

    # --- to the server object ------------------------------------------------------------------------------------

    def _to_server(self, line: bytes) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._loop.call_soon(self._refuse, line)
            return
        metadata = None
        if getattr(message, "method", None) == TOOLS_CALL:
            metadata = ServerMessageMetadata(request_context=Admitted(self._gate))
        self._deliver(SessionMessage(message, metadata))

    def _refuse(self, line: bytes) -> None:
        """Answer a request of a form that the SDK does not read: it would say nothing, and the client would wait."""
        value = orjson.loads(line)
        self._log.event("line.refused", reason="form")
        if "method" in value and "id" in value:
            data = {"reason": "invalid_params"}
            self._relay.server_line(error_line(value["id"], INVALID_PARAMS, "Invalid parameters", data)[:-1])

    def _deliver(self, message: SessionMessage) -> None:
        if not self._overflow:
            try:
                self._to_sdk.send_nowait(message)
            except anyio.WouldBlock:
                self._overflow.append(message)
                self._spawn(self._catch_up())
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
        else:
            self._overflow.append(message)

    async def _catch_up(self) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while self._overflow:
                await self._to_sdk.send(self._overflow[0])
                self._overflow.popleft()
        self._client.go_on()
        self._end_input_if_done()

    def _is_full(self) -> bool:
        if self._overflow or not self._is_fast.is_set():
            return True
        if not self._relay.held:
            self._client.handed_on_bytes = 0
            return False
        return self._relay.held >= MAX_HELD_LINES or self._client.handed_on_bytes >= MAX_HELD_BYTES

    # --- from the server object ----------------------------------------------------------------------------------

    async def _answers(self) -> None:
        try:
            async for sent in self._from_sdk:
                await self._is_fast.wait()
                line = self._line(sent.message)
                if line is not None:
                    self._relay.server_line(line)
                self._end_input_if_done()
        except Exception as error:
            # Nobody answers any more, so the server must end; its client would wait for ever.
            self._log.alert("hook.failed", code=type(error).__name__)
            self._relay.close("server-eof")
            self._to_sdk.close()
            raise

    def _line(self, message: Any) -> bytes | None:
        try:
            return bytes(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        except ValueError:
            # Text that is no Unicode, for instance. The SDK's own writer would end the whole connection here.
            self._log.alert("server.line-unwritable")
        if hasattr(message, "method"):
            return None
        return error_line(message.id, INTERNAL_ERROR, "The answer cannot be written")[:-1]

    def _client_fast(self) -> None:
        self._is_fast.set()
        self._client.go_on()

    def _to_client(self, line: bytes) -> None:
        if self._out is not None:
            self._out.write(line)

    # --- ends ----------------------------------------------------------------------------------------------------

    def _settled(self) -> None:
        self._client.go_on()
        self._end_input_if_done()

    def _client_ended(self) -> None:
        """The client sends no more; what it has sent is answered, for a while."""
        self._is_ending = True
        if self._relay.running or self._overflow:
            self._timer = self._loop.call_later(self._grace, self._to_sdk.close)
        else:
            self._to_sdk.close()

    def _end_input_if_done(self) -> None:
        if self._is_ending and not self._relay.running and not self._overflow:
            self._to_sdk.close()

    def _client_gone(self) -> None:
        self._is_gone.set()
        self._is_fast.set()
        self._is_ending = True
        self._relay.close("client-eof")
        self._to_sdk.close()

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
