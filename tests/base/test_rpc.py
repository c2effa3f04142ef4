"""The asyncio server and both clients over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import threading

import pytest

from onrecord.base.errors import ConfigurationError, NetworkError, UsageError
from onrecord.base.rpc_client import BlockingRpcClient, RpcClient
from onrecord.base.rpc_server import LONG_LINE_BYTES, RpcServer, ServerLimits
from onrecord.base.wire import RpcError, read_line, result_line


class Echo:
    """Answers `echo` at once, `later` when released, `fail` with an error, `crash` with a bug."""

    def __init__(self):
        self.release = asyncio.Event()
        self.peers = []
        self.disconnects = 0
        self.accept = True

    def on_connect(self, connection):
        self.peers.append(connection.peer)
        return self.accept

    def on_broken(self, connection, answer):
        return answer

    def on_disconnect(self, connection):
        self.disconnects += 1

    def on_request(self, connection, request):
        if request.method == "later":
            return self._later(request.id)
        if request.method == "fail":
            raise RpcError(-33001, "no", {"reason": "denied"})
        if request.method == "crash":
            return self._crash()
        if request.method == "crash-at-once":
            raise KeyError("canary-content")
        return result_line(request.id, request.params)

    async def _later(self, request_id):
        await self.release.wait()
        return result_line(request_id, "late")

    async def _crash(self):
        raise ZeroDivisionError("canary-content")


@contextlib.asynccontextmanager
async def serving(directory, **limits):
    handler = Echo()
    errors = []
    server = RpcServer(handler, path=directory / "s", limits=ServerLimits(**limits), report=errors.append)
    handler.errors = errors
    await server.start()
    try:
        yield handler, server
    finally:
        await server.stop()


async def raw(path, *lines):
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"".join(lines))
    return reader, writer


class TestServer:
    @pytest.mark.req("CP-104")
    async def _out_of_order(self, directory):
        async with serving(directory) as (handler, _):
            client = await RpcClient.connect(directory / "s", expected_uid=os.getuid())
            late = client.request("later", {}, timeout_ms=5000)
            assert await client.call("echo", {"n": 1}, timeout_ms=5000) == {"n": 1}
            handler.release.set()
            assert await late == "late"
            client.close()

    def test_out_of_order(self, short_dir):
        """Pipelined requests answered out of order are matched by id."""
        asyncio.run(self._out_of_order(short_dir))

    def test_peer_identity(self, short_dir):
        """The handler sees pid and uid of the peer from the kernel."""

        async def run():
            async with serving(short_dir) as (handler, _):
                client = await RpcClient.connect(short_dir / "s", expected_uid=os.getuid())
                await client.call("echo", {}, timeout_ms=5000)
                assert (handler.peers[0].pid, handler.peers[0].uid) == (os.getpid(), os.getuid())
                client.close()

        asyncio.run(run())

    def test_errors_and_bugs(self, short_dir):
        """An RpcError is the answer it says; a bug is -32603 without its text, and its type is reported."""

        async def run():
            async with serving(short_dir) as (handler, _):
                client = await RpcClient.connect(short_dir / "s", expected_uid=None)
                with pytest.raises(RpcError) as caught:
                    await client.call("fail", {}, timeout_ms=5000)
                assert (caught.value.rpc_code, caught.value.reason) == (-33001, "denied")
                for method in ("crash", "crash-at-once"):
                    with pytest.raises(RpcError) as caught:
                        await client.call(method, {}, timeout_ms=5000)
                    assert caught.value.rpc_code == -32603
                    assert "canary" not in str(caught.value.to_json())
                assert [type(error) for error in handler.errors] == [ZeroDivisionError, KeyError]
                client.close()

        asyncio.run(run())

    @pytest.mark.req("CP-103")
    def test_oversize_line(self, short_dir):
        """A line over the limit is answered too_large and the connection closes; what came before is served."""

        async def run():
            async with serving(short_dir, max_line_bytes=200):
                reader, writer = await raw(
                    short_dir / "s", b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n', b"x" * 300 + b"\n"
                )
                answers = [json.loads(line) for line in (await reader.read()).splitlines()]
                assert [answer.get("id") for answer in answers] == [1, None]
                assert answers[1]["error"]["data"]["reason"] == "too_large"
                writer.close()

        asyncio.run(run())

    def test_unanswered_limit(self, short_dir):
        """Beyond the limit of unanswered requests reading stops; once answers leave, the rest is served."""

        async def run():
            async with serving(short_dir, unanswered=2) as (handler, _):
                lines = [f'{{"jsonrpc":"2.0","id":{n},"method":"later"}}\n'.encode() for n in range(10)]
                reader, writer = await raw(short_dir / "s", *lines)
                echo = asyncio.ensure_future(reader.readline())
                writer.write(b'{"jsonrpc":"2.0","id":99,"method":"echo"}\n')
                done, _ = await asyncio.wait([echo], timeout=0.05)
                assert not done, "the echo behind ten waiting requests must wait too"
                handler.release.set()
                ids = [json.loads(await echo)["id"]] + [
                    json.loads(await reader.readline())["id"] for _ in range(10)
                ]
                assert sorted(ids) == [*range(10), 99]
                writer.close()

        asyncio.run(run())

    def test_a_peer_that_does_not_read_its_answers_is_not_listened_to(self, short_dir):
        """Answers are not piled up in memory for a client that only sends; once it reads, every line is answered."""

        async def run():
            async with serving(short_dir):
                line = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":"' + b"x" * 2000 + b'"}}\n'
                with socket.socket(socket.AF_UNIX) as client:
                    client.setblocking(False)
                    client.connect(str(short_dir / "s"))
                    sent = refused = 0
                    while refused < 1000 and sent < 64 << 20:
                        try:
                            sent += client.send(line[sent % len(line) :])
                            refused = 0
                        except BlockingIOError:
                            refused += 1
                            await asyncio.sleep(0)
                    assert sent < 16 << 20
                    read = 0
                    while read < sent // len(line):
                        read += (await asyncio.get_running_loop().sock_recv(client, 65536)).count(b"\n")
                assert read == sent // len(line)

        asyncio.run(run())

    def test_an_idle_peer_that_does_not_read_is_dropped(self, short_dir):
        """Closing waits for the answers to leave; somebody who never reads them would keep his place for ever."""

        async def run():
            async with serving(short_dir, idle_seconds=0.05) as (handler, server):
                handler.gone = asyncio.Event()
                handler.on_disconnect = lambda connection: handler.gone.set()
                with socket.socket(socket.AF_UNIX) as client:
                    client.setblocking(False)
                    client.connect(str(short_dir / "s"))
                    client.send(b"x\n" * 20_000)
                    await asyncio.wait_for(handler.gone.wait(), 20)
                    assert not server.connections

        asyncio.run(run())

    def test_a_peer_that_cannot_be_identified_is_not_served(self, short_dir, monkeypatch):
        """When descriptors run out at accept, the connection is closed and counted; the next one is served again."""

        def exhausted(sock):
            raise OSError(errno.EMFILE, "Too many open files")

        async def run():
            async with serving(short_dir) as (handler, server):
                with monkeypatch.context() as patch:
                    patch.setattr("onrecord.base.rpc_server.open_peer_pidfd", exhausted)
                    reader, writer = await raw(short_dir / "s")
                    assert await reader.read() == b""
                    writer.close()
                assert (server.refused_connections, handler.peers) == (1, [])
                client = await RpcClient.connect(short_dir / "s", expected_uid=None)
                assert await client.call("echo", {"n": 1}, timeout_ms=5000) == {"n": 1}
                client.close()

        asyncio.run(run())

    def test_a_long_line_holds_up_nobody_else(self, short_dir):
        """It is read by another thread; the lines after it on its own connection wait and keep their order."""
        may_read = threading.Event()

        def slow(line):
            if len(line) > LONG_LINE_BYTES:
                assert may_read.wait(20)
            return read_line(line)

        async def run():
            async with serving(short_dir) as (_, server):
                server.reader = slow
                long_line = b'{"jsonrpc":"2.0","id":1,"method":"echo"}' + b" " * LONG_LINE_BYTES + b"\n"
                short = b'{"jsonrpc":"2.0","id":2,"method":"echo"}\n'
                reader, writer = await raw(short_dir / "s", long_line, short)
                other, other_writer = await raw(short_dir / "s", short)
                assert json.loads(await other.readline())["id"] == 2
                may_read.set()
                assert [json.loads(await reader.readline())["id"] for _ in range(2)] == [1, 2]
                writer.close()
                other_writer.close()

        asyncio.run(run())

    def test_a_long_line_that_is_broken_is_answered(self, short_dir):
        """Read elsewhere, refused alike."""

        async def run():
            async with serving(short_dir) as _:
                reader, writer = await raw(short_dir / "s", b"[" * (LONG_LINE_BYTES + 1) + b"\n")
                assert json.loads(await reader.readline())["error"]["data"]["detail"] == "depth"
                writer.close()

        asyncio.run(run())

    def test_connection_limits(self, short_dir):
        """Connections over the limit of one uid are closed at accept; closing one makes room."""

        async def run():
            async with serving(short_dir, connections_per_uid=2) as (handler, server):
                clients = [await RpcClient.connect(short_dir / "s", expected_uid=None) for _ in range(2)]
                for client in clients:
                    await client.call("echo", {}, timeout_ms=5000)
                reader, writer = await raw(short_dir / "s")
                assert await reader.read() == b""
                writer.close()
                assert server.refused_connections == 1
                clients[0].close()
                while not handler.disconnects:
                    await asyncio.sleep(0)
                again = await RpcClient.connect(short_dir / "s", expected_uid=None)
                assert await again.call("echo", {"x": 1}, timeout_ms=5000) == {"x": 1}
                assert len(handler.peers) == 3
                for client in (clients[1], again):
                    client.close()

        asyncio.run(run())

    def test_refused_by_handler(self, short_dir):
        """A connection that the handler does not take is closed without an answer."""

        async def run():
            async with serving(short_dir) as (handler, _):
                handler.accept = False
                reader, writer = await raw(short_dir / "s", b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n')
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()

        asyncio.run(run())

    def test_gone_peer(self, short_dir):
        """When the connecting process has exited, `gone` is true although its child still holds the socket."""

        async def run():
            async with serving(short_dir) as (_, server):
                ours, theirs = socket.socketpair()
                pid = os.fork()
                if pid == 0:  # connects, hands its socket on through the pair, exits
                    with contextlib.suppress(BaseException):
                        sock = socket.socket(socket.AF_UNIX)
                        sock.connect(str(short_dir / "s"))
                        socket.send_fds(theirs, [b"x"], [sock.fileno()])
                    os._exit(0)
                loop = asyncio.get_running_loop()
                _, fds, _, _ = await loop.run_in_executor(None, socket.recv_fds, ours, 1, 1)
                await loop.run_in_executor(None, os.waitpid, pid, 0)
                while not server.connections:
                    await asyncio.sleep(0)
                (connection,) = server.connections
                if connection.pidfd is None:
                    pytest.skip("this kernel has no SO_PEERPIDFD")
                assert connection.gone()
                os.close(fds[0])
                ours.close()
                theirs.close()

        asyncio.run(run())


class TestSocketFile:
    def test_stale_socket_is_replaced(self, short_dir):
        """A socket file that refuses connections is ours to replace."""
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(str(short_dir / "s"))
        stale.close()

        async def run():
            async with serving(short_dir):
                assert (short_dir / "s").stat().st_mode & 0o777 == 0o600

        asyncio.run(run())
        assert not (short_dir / "s").exists()

    def test_live_socket_is_not(self, short_dir):
        """Two servers on one path: the second says that one is running, the first goes on."""

        async def run():
            async with serving(short_dir):
                with pytest.raises(UsageError) as caught:
                    await RpcServer(Echo(), path=short_dir / "s").start()
                assert caught.value.code == "already-running"
                client = await RpcClient.connect(short_dir / "s", expected_uid=None)
                await client.call("echo", {}, timeout_ms=5000)
                client.close()

        asyncio.run(run())

    @pytest.mark.parametrize(
        "make", [lambda p: p.write_text(""), lambda p: p.symlink_to("/tmp"), lambda p: p.mkdir()]
    )
    def test_other_files_stay(self, short_dir, make):
        """A file, a link or a directory in the way is never removed."""
        make(short_dir / "s")

        async def run():
            with pytest.raises(ConfigurationError) as caught:
                await RpcServer(Echo(), path=short_dir / "s").start()
            assert caught.value.code == "socket-path-taken"

        asyncio.run(run())
        assert os.path.lexists(short_dir / "s")

    def test_long_path(self, tmp_path):
        """A path of more than 107 bytes is refused with a hint."""

        async def run():
            with pytest.raises(ConfigurationError) as caught:
                await RpcServer(Echo(), path=tmp_path / ("x" * 108)).start()
            assert caught.value.code == "socket-path-long"

        asyncio.run(run())


def answering(directory, answer: bytes):
    """A server that answers the first bytes with `answer` and closes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(directory / "f"))
    listener.listen()

    def run():
        sock, _ = listener.accept()
        sock.recv(65536)
        sock.sendall(answer)
        sock.close()
        listener.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


class TestClients:
    @pytest.mark.parametrize(
        ("answer", "code"),
        [(b"", "closed"), (b"junk\n", "answer-unreadable"), (b"[]\n", "answer-unreadable"),
         (b'{"id":1}\n', "answer-unreadable"), (b'{"id":1,"error":{"code":"x"}}\n', "answer-unreadable"),
         (b'{"id":1,"error":7}\n', "answer-unreadable"), (b'{"id":1,"result":1}', "closed")],
    )  # fmt: skip
    def test_bad_answers(self, short_dir, answer, code):
        """No answer, half an answer and junk are network errors with their code, for both clients."""

        async def run():
            thread = answering(short_dir, answer)
            client = await RpcClient.connect(short_dir / "f", expected_uid=None)
            with pytest.raises(NetworkError) as caught:
                await client.call("m", {}, timeout_ms=5000)
            assert caught.value.code == code
            assert client.closed
            with pytest.raises(NetworkError, match="closed"):
                await client.call("m", {}, timeout_ms=5000)
            thread.join()

        asyncio.run(run())
        (short_dir / "f").unlink()
        thread = answering(short_dir, answer)
        with (
            BlockingRpcClient(short_dir / "f", expected_uid=None) as client,
            pytest.raises(NetworkError) as caught,
        ):
            client.call("m", {}, timeout_ms=5000)
        assert caught.value.code == code
        thread.join()

    def test_timeout(self, short_dir):
        """A call that is not answered in time ends with "timeout"; a late answer is ignored."""

        async def run():
            async with serving(short_dir) as (handler, _):
                client = await RpcClient.connect(short_dir / "s", expected_uid=None)
                with pytest.raises(NetworkError) as caught:
                    await client.call("later", {}, timeout_ms=1)
                assert caught.value.code == "timeout"
                handler.release.set()
                assert await client.call("echo", {"x": 1}, timeout_ms=5000) == {"x": 1}
                client.close()

        asyncio.run(run())

    @pytest.mark.req("CP-106")
    def test_peer_uid_before_any_byte(self, short_dir):
        """A server of another uid than expected gets no byte from either client."""
        received = []
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(short_dir / "f"))
        listener.listen()

        def run_server():
            for _ in range(2):
                sock, _ = listener.accept()
                received.append(sock.recv(100))
                sock.close()

        thread = threading.Thread(target=run_server, daemon=True)
        thread.start()

        async def run():
            with pytest.raises(NetworkError) as caught:
                await RpcClient.connect(short_dir / "f", expected_uid=os.getuid() + 1)
            assert caught.value.code == "peer-uid"

        asyncio.run(run())
        with pytest.raises(NetworkError) as caught:
            BlockingRpcClient(short_dir / "f", expected_uid=os.getuid() + 1)
        assert caught.value.code == "peer-uid"
        thread.join()
        listener.close()
        assert received == [b"", b""]

    def test_nobody_there(self, short_dir):
        """No socket, and a socket nobody serves, are "unreachable"."""
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(str(short_dir / "stale"))
        stale.close()

        async def run(path):
            with pytest.raises(NetworkError) as caught:
                await RpcClient.connect(path, expected_uid=None)
            assert caught.value.code == "unreachable"

        for path in (short_dir / "none", short_dir / "stale"):
            asyncio.run(run(path))
            with pytest.raises(NetworkError) as caught:
                BlockingRpcClient(path, expected_uid=None)
            assert caught.value.code == "unreachable"

    def test_callback_form(self, short_dir):
        """`send` calls back once: with the result, with the error, or with "closed" when the connection ends."""

        async def run():
            async with serving(short_dir) as (_, _server):
                client = await RpcClient.connect(short_dir / "s", expected_uid=None)
                closed = []
                client.on_close = lambda: closed.append(1)
                got = []
                assert client.send("echo", {"a": 1}, got.append, timeout_ms=5000)
                assert client.send("fail", {}, got.append, timeout_ms=5000)
                assert client.send("later", {}, got.append, timeout_ms=5000)
                while len(got) < 2:
                    await asyncio.sleep(0)
                await _server.stop()
                while len(got) < 3:
                    await asyncio.sleep(0)
                assert got[0] == {"a": 1}
                assert got[1].reason == "denied"
                assert got[2].code == "closed"
                assert closed == [1]
                assert not client.send("echo", {}, got.append, timeout_ms=5000)
                assert got[3].code == "closed"

        asyncio.run(run())


class TestUvloop:
    def test_server_and_client(self, short_dir):
        """Both sides work on uvloop too, peer identity included."""
        uvloop = pytest.importorskip("uvloop")

        async def run():
            async with serving(short_dir) as (handler, _):
                client = await RpcClient.connect(short_dir / "s", expected_uid=os.getuid())
                assert await client.call("echo", {"n": 1}, timeout_ms=5000) == {"n": 1}
                assert handler.peers[0].pid == os.getpid()
                client.close()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())


def test_each_call_has_its_own_time_limit(tmp_path):
    """A call ends at its own deadline, whatever others were made before or after it, and an answered one never."""

    class Deaf(asyncio.Protocol):
        """Answers nothing but what the test lets through."""

    async def scenario():
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(Deaf, path=str(tmp_path / "s"))
        client = await RpcClient.connect(tmp_path / "s", expected_uid=os.getuid())
        ended = []

        def note(name):
            return lambda answer: ended.append((name, answer.code))

        client.send("m", {}, note("long"), timeout_ms=60_000)
        client.send("m", {}, note("second"), timeout_ms=40)
        client.send("m", {}, note("first"), timeout_ms=1)
        third = client.request("m", {}, timeout_ms=60)
        client.data_received(b'{"jsonrpc":"2.0","id":4,"result":true}\n')
        assert await third is True
        with pytest.raises(NetworkError) as caught:
            await client.call("m", {}, timeout_ms=80)
        assert caught.value.code == "timeout"
        assert ended == [("first", "timeout"), ("second", "timeout")]
        client.close()
        assert ended[2:] == [("long", "closed")]
        server.close()

    asyncio.run(scenario())
