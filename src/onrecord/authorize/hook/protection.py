"""Protects a server object: calls are checked, recorded and refused as by the relay, inside of the server's process.

    from mcp.server import MCPServer
    from onrecord.authorize.hook import protect

    server = protect(MCPServer("files"))
    ...
    server.run()

The whole relay stands between a strict transport and the server's streams, so its rules hold word for word; the
server object itself only gets a gate that nothing else passes.

Source: call-proof.md 6; mcp.md 3, 5, 10.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.hook import surroundings
from onrecord.authorize.hook.admission import AdmissionGate
from onrecord.authorize.hook.server_kinds import lowlevel_server
from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError, UsageError
from onrecord.base.namespaces import CALL_PROOF_EXTENSION, PROTOCOL_VERSION

AnyServer = TypeVar("AnyServer")

UNGUARDED: Final = "this server does not run behind its onrecord guard"
OTHER_TRANSPORT: Final = (
    "only stdio, as run() and run_stdio_async() of a protected server speak it, carries tool calls"
)
_HINT: Final = (
    "set hook = true for this server in onrecord.toml and start it through onrecord connect, or give protect() "
    "config and server_id"
)


def protect(
    server: AnyServer,
    *,
    config: Configuration | Path | str | None = None,
    server_id: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> AnyServer:
    """Protect `server` and return it: an `MCPServer` or lowlevel `Server` of mcp 2.x, or a `FastMCP` of fastmcp 4.x.

    From now on a tools/call runs only when the Call Authority has accepted its proof. Behind a guard
    (`servers.ID.hook = true`) nothing else is needed. Without a guard, `server_id` names the server in `config`, a
    configuration or its file; without both, each tools/call is refused, and everything else works.

    `run()` and `run_stdio_async()` then use a transport that refuses what JSON readers disagree about. Run a lowlevel
    server with `serve_stdio`. Any other transport gets its tools/calls refused.

    Raises `UsageError` with code "mcp-missing", "mcp-version", "server-unsupported" or "already-protected".
    """
    lowlevel = lowlevel_server(server)
    if _gate_of(lowlevel) is not None:
        raise UsageError("this server is protected already", code="already-protected")
    protection = Protection(
        config=config, server_id=server_id, environ=os.environ if environ is None else environ
    )
    lowlevel.middleware.insert(0, protection.gate)
    lowlevel.extensions[CALL_PROOF_EXTENSION] = {
        "required": True,
        "methods": ["tools/call"],
        "version": PROTOCOL_VERSION,
    }
    protection.take_over(lowlevel, "run")
    if server is not lowlevel:
        protection.wrap(server, "run_stdio_async")
    return server


async def serve_stdio(server: Any, *, initialization_options: Any = None) -> None:
    """Serve a protected server on standard input and output until the input ends.

    This is `run_stdio_async` for a lowlevel server, in place of the SDK's `stdio_server()`.

    Raises `UsageError` with code "not-protected" or "hook-needs-asyncio", and `OnrecordError` as the guard does when
    configuration or state directory cannot be used.
    """
    lowlevel = lowlevel_server(server)
    gate = _gate_of(lowlevel)
    if gate is None:
        raise UsageError("protect this server first", code="not-protected", hint="protect(server)")
    options = initialization_options or lowlevel.create_initialization_options()
    async with gate.protection.transport() as is_strict:
        if is_strict:
            # The streams of the strict transport wait inside; these two take their place in the call.
            await lowlevel.run(_NoStream(), _NoStream(), options)
            return
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (reader, writer):
            await lowlevel.run(reader, writer, options)


class Protection:
    """What belongs to one protected server."""

    def __init__(
        self,
        *,
        config: Configuration | Path | str | None,
        server_id: str | None,
        environ: Mapping[str, str],
    ) -> None:
        self._config = config
        self._server_id = server_id
        self._environ = environ
        self._log = GuardLog(None, to_stderr=True)
        self._streams: tuple[Any, Any] | None = None
        self.gate = AdmissionGate(self, log=self._log)
        self.note = OTHER_TRANSPORT

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[bool]:
        """Open the strict transport for the next run; yields False when there is nothing to check calls with."""
        try:
            found = surroundings.find(environ=self._environ, config=self._config, server_id=self._server_id)
        except OnrecordError as error:
            self._log.alert("hook.failed", code=error.code, note=error, hint=error.hint)
            raise
        if found is None:
            self.note = UNGUARDED
            self._log.alert("hook.unguarded", note="each tools/call is refused", hint=_HINT)
            yield False
            return
        from onrecord.authorize.hook.transport import strict_stdio

        async with strict_stdio(found, gate=self.gate, log=self._log) as streams:
            self._streams = streams
            try:
                yield True
            finally:
                self._streams = None

    def take_over(self, lowlevel: Any, name: str) -> None:
        """Make the server's own run method use the strict transport's streams when they wait for it."""
        original = getattr(lowlevel, name)

        async def run(read_stream: Any, write_stream: Any, *args: Any, **more: Any) -> None:
            streams, self._streams = self._streams, None
            if streams is not None:
                await read_stream.aclose()
                await write_stream.aclose()
                read_stream, write_stream = streams
            await original(read_stream, write_stream, *args, **more)

        setattr(lowlevel, name, run)

    def wrap(self, server: Any, name: str) -> None:
        """Open the strict transport around the framework's own stdio method, which then finds its input empty."""
        original = getattr(server, name)

        async def run_stdio_async(*args: Any, **more: Any) -> None:
            async with self.transport():
                await original(*args, **more)

        setattr(server, name, run_stdio_async)


class _NoStream:
    """A stream that is closed and nothing else."""

    async def aclose(self) -> None:
        """Do nothing."""


def _gate_of(lowlevel: Any) -> AdmissionGate | None:
    return next((one for one in lowlevel.middleware if isinstance(one, AdmissionGate)), None)
