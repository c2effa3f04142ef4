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

from onrecord.authorize.guard.connection import Connection
from onrecord.authorize.guard.enforcement import SHIP_AT_STOP_SECONDS, Enforcement, recorder_of
from onrecord.authorize.guard.environment import hook_environment
from onrecord.authorize.guard.joint import Joint
from onrecord.authorize.guard.launch import Launch, check_socket_directory, state_directory
from onrecord.authorize.guard.leftovers import Leftovers
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.places import Places
from onrecord.authorize.guard.real_server import END_GRACE_SECONDS, RealServer
from onrecord.authorize.guard.relay_rules import ClientPeer
from onrecord.authorize.guard.server_rules import RulesFile
from onrecord.authorize.guard.sides import (
    DirectWriter,
    ReadSide,
    SocketSide,
    WriteSide,
    is_watchable,
    watchable_input,
)
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, OnrecordError
from onrecord.base.processes import announce_ready, harden, settle_memory
from onrecord.base.sockets import Peer, bind_unix, lock_file, peer_credentials, process_label


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
    if entry.sandbox is not None:
        raise ConfigurationError(
            "sandbox is not part of this version", code="not-built-yet", hint="remove the key"
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
    """What all connections of one guard process share: authority, spool, log.

    In front of a server with the SDK hook it only starts the server and joins the bytes; the hook does the rest.
    """

    def __init__(self, configuration: Configuration, server: str, launch: Launch) -> None:
        self._configuration = configuration
        self._server = server
        self._launch = launch
        self._state = state_directory(configuration.guard_state(server))
        self._log = GuardLog(self._state / "guard.log")
        self._loop = asyncio.get_running_loop()
        self._rules_file = RulesFile(configuration, server, log=self._log)
        self._enforcement: Enforcement | None = None
        self._leftovers: Leftovers | None = None
        if configuration.server(server).hook:
            self._leftovers = Leftovers(
                self._state, connect=recorder_of(configuration), server=server, log=self._log
            )
        else:
            self._enforcement = Enforcement(
                configuration, server, state=self._state, log=self._log, rules=self._rules_file
            )
        self._connections: dict[str, Connection] = {}
        self._places = Places(log=self._log)
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
            await self._start_server(connection, peer)
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
            if announce_ready(ready_fd):
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
        if self._enforcement is not None:
            self._enforcement.start()
        if self._leftovers is not None:
            self._leftovers.start()
        settle_memory()

    def _stop(self) -> None:
        self._stopping.set()
        for connection in list(self._connections.values()):
            connection.stop()

    async def _end(self) -> None:
        for connection in list(self._connections.values()):
            connection.stop()
            await connection.finished.wait()
        if self._enforcement is not None:
            await self._enforcement.stop()
        if self._leftovers is not None:
            await self._leftovers.stop(seconds=SHIP_AT_STOP_SECONDS)
        self._places.close()
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
        if not self._places.has_room(peer.uid, caller_uids=rules.caller_uids):
            client.close()
            return
        client_peer = _client_peer(peer)
        connection = self._new_connection(client_peer)
        client.setblocking(False)
        side = SocketSide(
            slow=connection.client_slow,
            fast=connection.client_fast,
            gone=connection.client_gone,
            limit_bytes=connection.line_bytes,
            line=connection.relay.client_line,
            ended=connection.client_ended,
        )
        connection.from_client = side
        try:
            # The server comes first: a line of the client must have somewhere to go.
            await self._start_server(connection, client_peer)
            transport, _ = await self._loop.create_unix_connection(lambda: side, sock=client)
            connection.attach_client(transport)
        except BaseException:
            connection.client_gone()
            raise

    async def _start_server(self, connection: Connection, peer: ClientPeer) -> None:
        env = dict(self._launch.env)
        if self._enforcement is None:
            env |= hook_environment(
                self._configuration, self._server, peer=peer, connection=connection.relay.number
            )
        try:
            server = RealServer.start(
                self._launch.command,
                env=env,
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
        limits = self._configuration.limits
        enforcement = self._enforcement
        if enforcement is not None:
            connection = Connection(
                relay=lambda to_client, to_server, settled: enforcement.relay(
                    number, peer=peer, to_client=to_client, to_server=to_server, settled=settled
                ),
                log=self._log,
                line_bytes=limits.other_line_bytes,
                stop_grace_seconds=limits.stop_grace_seconds,
            )
        else:
            connection = self._joined(number)
        self._connections[number] = connection
        self._places.take(peer.uid)
        self._loop.create_task(self._forget(number, connection, peer.uid))
        self._log.event("connection.open", connection=number, uid=peer.uid, pid=peer.pid)
        return connection

    def _joined(self, number: str) -> Connection:
        limits = self._configuration.limits

        def absent() -> None:
            connection.client_gone()

        connection = Connection(
            relay=lambda to_client, to_server, settled: Joint(
                number,
                log=self._log,
                to_client=to_client,
                to_server=to_server,
                settled=settled,
                absent=absent,
            ),
            log=self._log,
            line_bytes=None,
            stop_grace_seconds=limits.stop_grace_seconds,
            # The hook answers the calls that run, and ships what it has written, before it ends.
            end_grace_seconds=limits.stop_grace_seconds + SHIP_AT_STOP_SECONDS + END_GRACE_SECONDS,
        )
        return connection

    async def _forget(self, number: str, connection: Connection, uid: int) -> None:
        await connection.finished.wait()
        self._connections.pop(number, None)
        self._places.give_back(uid)
        if self._leftovers is not None:
            self._leftovers.look()
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


def _client_peer(peer: Peer) -> ClientPeer:
    return ClientPeer(uid=peer.uid, pid=peer.pid, label=process_label(peer.pid), verified_uid=peer.uid)


__all__ = ["Guard", "Launch", "loop_factory", "run_guard"]
