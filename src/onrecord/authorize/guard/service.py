"""The guard process: `onrecord guard ID` over its own stdio, and `--listen` for many clients in system mode.

Source: running.md 1, 5.1; call-proof.md 1.4.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Final

from onrecord.authorize.guard.authority_link import AuthorityLink
from onrecord.authorize.guard.checkpoints import CheckpointFile
from onrecord.authorize.guard.connection import (
    Connection,
    DirectWriter,
    ReadSide,
    SocketSide,
    WriteSide,
    is_watchable,
    watchable_input,
)
from onrecord.authorize.guard.extension import COVERED_METHODS, Advertisement
from onrecord.authorize.guard.launch import Launch, check_socket_directory, state_directory
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.real_server import RealServer
from onrecord.authorize.guard.recording import Recording
from onrecord.authorize.guard.relay import Relay
from onrecord.authorize.guard.relay_rules import ClientPeer, RelayRules
from onrecord.authorize.guard.server_rules import RulesFile
from onrecord.authorize.guard.shipping import Shipper
from onrecord.authorize.guard.spool import Spool, spool_path
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, OnrecordError
from onrecord.base.ids import random_id
from onrecord.base.processes import announce_ready, harden, settle_memory
from onrecord.base.rpc_client import RpcClient
from onrecord.base.sockets import Peer, bind_unix, lock_file, peer_credentials, process_label

GUARD_CONNECTIONS: Final = 32
"""Clients at one time (running.md 12): each one has a real server of its own."""

SHIP_AT_STOP_SECONDS: Final = 2.0
"""How long a stopping guard waits for the recorder; what is left stays in the spool."""


def run_guard(
    configuration: Configuration,
    server: str,
    *,
    listen: bool = False,
    command: Sequence[str] | None = None,
    ready_fd: int | None = None,
) -> int:
    """Run the guard of one server until its client is done (stdio) or it is told to stop (`listen`).

    `command` replaces the configured command. Returns the exit status.

    Raises `OnrecordError` when it cannot start: "runs-as-root", "server-unknown", "cannot-start", "env-file-…",
    "already-running", "wrong-uid", "not-in-user-mode".
    """
    entry = configuration.server(server)
    harden(death_signal=signal.SIGTERM if listen else None)
    if os.getuid() != configuration.server_uid(server):
        raise ConfigurationError(
            f"the guard of {server} runs under uid {os.getuid()}, configured is {configuration.server_uid(server)}",
            code="wrong-uid",
            hint="let onrecord up start it in system mode",
        )
    if entry.hook or entry.sandbox is not None:
        raise ConfigurationError(
            "hook and sandbox are not part of this version", code="not-built-yet", hint="remove the key"
        )
    if listen and configuration.mode != "system":
        raise ConfigurationError(
            "guard --listen belongs to system mode; in user mode the connector starts the guard",
            code="not-in-user-mode",
            hint="use onrecord connect ID",
        )
    launch = Launch.of(configuration, server, command)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        guard = runner.run(_make(configuration, server, launch))
        return runner.run(guard.listen(ready_fd) if listen else guard.serve_stdio(ready_fd))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop factory if it can be imported, else None for the standard one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop  # type: ignore[no-any-return,unused-ignore]


async def _make(configuration: Configuration, server: str, launch: Launch) -> Guard:
    return Guard(configuration, server, launch)


class Guard:
    """What all connections of one guard process share: authority, spool, log."""

    def __init__(self, configuration: Configuration, server: str, launch: Launch) -> None:
        self._configuration = configuration
        self._server = server
        self._launch = launch
        self._state = state_directory(configuration.guard_state(server))
        limits = configuration.limits
        self._log = GuardLog(self._state / "guard.log")
        self._loop = asyncio.get_running_loop()
        source = random_id("g-")
        self._spool = Spool.create(spool_path(self._state, source), limit_bytes=limits.spool_bytes)
        self._shipper = Shipper(self._spool, connect=self._connect_recorder, server=server, log=self._log)
        self._recording = Recording(
            self._spool,
            is_required=configuration.recorder.required,
            is_durable=configuration.authority.durability == "durable",
            written=self._shipper.soon,
        )
        self._checkpoints = CheckpointFile(self._state, log=self._log)
        self._link = AuthorityLink(
            connect=self._connect_authority,
            server=server,
            hello_timeout_ms=limits.hello_timeout_ms,
            verify_timeout_ms=limits.verify_timeout_ms,
            log=self._log,
            on_checkpoint=self._checkpoints.keep,
        )
        self._rules_file = RulesFile(configuration, server, log=self._log)
        self._connections: dict[str, Connection] = {}
        self._count = 0
        self._stopping = asyncio.Event()

    async def serve_stdio(self, ready_fd: int | None) -> int:
        """Serve the one client at the other end of stdin and stdout."""
        self._begin()
        parent = os.getppid()
        peer = ClientPeer(
            uid=os.getuid(), pid=parent, label=process_label(parent), verified_uid=self._peer_uid(os.getuid())
        )
        connection = self._new_connection(peer)
        try:
            await self._start_server(connection)
            await self._attach_stdio(connection)
            announce_ready(ready_fd)
            await connection.finished.wait()
        finally:
            await self._end()
        return 0

    async def listen(self, ready_fd: int | None) -> int:
        """Accept clients on the server socket until SIGTERM or SIGINT."""
        lock = lock_file(self._state / "guard.lock")
        path = self._configuration.mcp_socket(self._server)
        check_socket_directory(path.parent)
        sock = bind_unix(path, mode=0o660, gid=self._configuration.call_gid)
        sock.setblocking(False)
        accepting = self._loop.create_task(self._accept(sock))
        try:
            self._begin()
            announce_ready(ready_fd)
            await self._stopping.wait()
        finally:
            accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await accepting
            sock.close()
            with contextlib.suppress(OSError):
                os.unlink(path)
            await self._end()
            lock.release()
        return 0

    def _begin(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop)
        self._link.start()
        self._shipper.start()
        settle_memory()
        if not self._rules_file.rules().enforces:
            self._log.alert(
                "mode.audit",
                server=self._server,
                note="calls without proof are executed; nothing is enforced",
            )

    def _stop(self) -> None:
        self._stopping.set()
        for connection in list(self._connections.values()):
            connection.stop()

    async def _end(self) -> None:
        for connection in list(self._connections.values()):
            connection.stop()
            await connection.finished.wait()
        await self._shipper.stop(seconds=SHIP_AT_STOP_SECONDS)
        await self._link.close()
        self._recording.close()
        self._spool.close()
        self._checkpoints.write()
        self._log.close()

    async def _accept(self, sock: socket.socket) -> None:
        while True:
            try:
                client, _ = await self._loop.sock_accept(sock)
            except OSError as error:
                self._log.alert("accept.failed", error=error.strerror)
                await asyncio.sleep(0.2)
                continue
            try:
                await self._serve_client(client)
            except (OnrecordError, OSError) as error:
                self._log.alert(
                    "connection.failed", error=error if isinstance(error, OnrecordError) else error.strerror
                )
                client.close()

    async def _serve_client(self, client: socket.socket) -> None:
        peer = peer_credentials(client)
        rules = self._rules_file.rules()
        if peer.uid not in rules.caller_uids:
            self._log.alert("peer.refused", uid=peer.uid, pid=peer.pid)
            client.close()
            return
        if len(self._connections) >= GUARD_CONNECTIONS:
            self._log.alert("connection.refused", reason="too many", uid=peer.uid)
            client.close()
            return
        connection = self._new_connection(_client_peer(peer))
        client.setblocking(False)
        side = SocketSide(
            slow=connection.client_slow,
            fast=connection.client_fast,
            gone=connection.client_gone,
            limit_bytes=self._configuration.limits.other_line_bytes,
            line=connection.relay.client_line,
            ended=connection.client_ended,
        )
        connection.from_client = side
        try:
            # The server comes first: a line of the client must have somewhere to go.
            await self._start_server(connection)
            transport, _ = await self._loop.create_unix_connection(lambda: side, sock=client)
            connection.attach_client(transport)
        except BaseException:
            connection.client_gone()
            raise

    async def _start_server(self, connection: Connection) -> None:
        try:
            server = RealServer.start(
                self._launch.command,
                env=self._launch.env,
                cwd=self._launch.cwd,
                on_exit=connection.server_exited,
            )
        except OnrecordError:
            connection.finished.set()
            raise
        await connection.attach_server(server)

    def _new_connection(self, peer: ClientPeer) -> Connection:
        self._count += 1
        number = str(self._count)
        rules = self._rules_file.rules()
        limits = self._configuration.limits

        def make(
            to_client: Callable[[bytes], None],
            to_server: Callable[[bytes], None],
            settled: Callable[[], None],
        ) -> Relay:
            return Relay(
                number,
                rules=RelayRules(
                    server=self._server,
                    enforces=rules.enforces,
                    refuse_methods=rules.refuse_methods,
                    advertisement=Advertisement(
                        required=rules.enforces,
                        methods=COVERED_METHODS,
                        authority=f"unix://{self._configuration.agent_socket()}",
                        server=self._server,
                    ),
                    call_line_bytes=limits.call_line_bytes,
                    other_line_bytes=limits.other_line_bytes,
                    report_timeout_ms=limits.verify_timeout_ms,
                ),
                peer=peer,
                verifier=self._link,
                recording=self._recording,
                log=self._log,
                to_client=to_client,
                to_server=to_server,
                settled=settled,
                later=self._loop.call_soon,
            )

        connection = Connection(
            relay=make,
            log=self._log,
            line_bytes=limits.other_line_bytes,
            stop_grace_seconds=limits.stop_grace_seconds,
        )
        self._connections[number] = connection
        self._loop.create_task(self._forget(number, connection))
        self._log.event("connection.open", connection=number, uid=peer.uid, pid=peer.pid)
        return connection

    async def _forget(self, number: str, connection: Connection) -> None:
        await connection.finished.wait()
        self._connections.pop(number, None)
        self._log.event("connection.close", connection=number)

    async def _attach_stdio(self, connection: Connection) -> None:
        # The real descriptors move away, so that nothing else in this process can read calls or write answers.
        reader, writer = watchable_input(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.close(null)
        if is_watchable(writer):
            side = WriteSide(
                slow=connection.client_slow, fast=connection.client_fast, gone=connection.client_gone
            )
            transport, _ = await self._loop.connect_write_pipe(lambda: side, io.FileIO(writer, "wb"))
            connection.attach_client(transport)
        else:
            connection.attach_client(DirectWriter(writer))
        from_client: ReadSide = connection.from_client
        await self._loop.connect_read_pipe(lambda: from_client, io.FileIO(reader, "rb"))

    def _peer_uid(self, uid: int) -> int | None:
        return uid if self._configuration.mode == "system" else None

    async def _connect_authority(self) -> RpcClient:
        configuration = self._configuration
        return await RpcClient.connect(
            configuration.server_socket(self._server),
            expected_uid=configuration.authority_uid,
            timeout_ms=configuration.limits.hello_timeout_ms,
        )

    async def _connect_recorder(self) -> RpcClient:
        configuration = self._configuration
        return await RpcClient.connect(
            configuration.record_socket(),
            expected_uid=configuration.recorder_uid,
            timeout_ms=configuration.limits.hello_timeout_ms,
        )


def _client_peer(peer: Peer) -> ClientPeer:
    return ClientPeer(uid=peer.uid, pid=peer.pid, label=process_label(peer.pid), verified_uid=peer.uid)


__all__ = ["GUARD_CONNECTIONS", "Guard", "Launch", "loop_factory", "run_guard"]
