"""The transport of a protected server, with a relay in the test's hands."""

import asyncio
import os
from types import SimpleNamespace

import pytest

from onrecord.authorize.guard.log import GuardLog

mcp = pytest.importorskip("mcp")


class FakeRelay:
    """Answers each line of the client with a kilobyte, and each one of the server as it is told."""

    running = held = 0

    def __init__(self, *, fails=False, **sides):
        self.to_client = sides["to_client"]
        self.fails = fails
        self.taken = 0
        self.closed = []
        self.has_taken = asyncio.Event()

    def client_line(self, line):
        self.taken += 1
        self.has_taken.set()
        self.to_client(b"x" * 1023 + b"\n")

    def server_line(self, line):
        if self.fails:
            raise ValueError("SECRET-CANARY")
        self.to_client(line + b"\n")

    def close(self, cause):
        self.closed.append(cause)


def transport_of(log, *, fails=False):
    from onrecord.authorize.hook.transport import StrictTransport

    made = []

    def relay(number, **sides):
        made.append(FakeRelay(fails=fails, **sides))
        return made[0]

    limits = SimpleNamespace(stop_grace_seconds=1, other_line_bytes=1 << 24)
    surroundings = SimpleNamespace(
        configuration=SimpleNamespace(limits=limits), is_guarded=False, connection="1", peer=None
    )
    transport = StrictTransport(surroundings, enforcement=SimpleNamespace(relay=relay), gate=None, log=log)
    return transport, made[0]


def on_pipes(test, **more):
    """Run `test(transport, relay, write to it, read from it)` between two pipes."""

    async def run():
        (server_in, client_out), (client_in, server_out) = os.pipe(), os.pipe()
        transport, relay = transport_of(GuardLog(None), **more)
        await transport.attach(server_in, server_out)
        os.close(server_in)
        os.close(server_out)
        try:
            await test(transport, relay, client_out, client_in)
        finally:
            os.close(client_out)
            os.close(client_in)
            await transport.end()

    asyncio.run(run())


def test_a_client_that_does_not_read_is_not_read():
    """Each line may need an answer: a flood of broken ones must not fill the server's memory."""

    async def flood(transport, relay, to_server, from_server):
        os.set_blocking(to_server, False)
        os.set_blocking(from_server, False)
        sent = 0
        while transport._is_fast.is_set():
            sent += os.write(to_server, b"{}\n" * 100)
            await relay.has_taken.wait()
            relay.has_taken.clear()
        stuck = relay.taken
        sent += os.write(to_server, b"{}\n" * 100)
        for _ in range(10):
            await asyncio.sleep(0)
        assert relay.taken == stuck < sent // 3
        received = 0
        while received < sent // 3 * 1024:
            try:
                received += len(os.read(from_server, 1 << 20))
            except BlockingIOError:
                await asyncio.sleep(0)
        assert relay.taken == sent // 3

    on_pipes(flood)


def test_a_fault_while_answering_ends_the_server():
    """A client must not wait for ever on a connection that nobody answers."""

    async def fail(transport, relay, to_server, from_server):
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCResponse

        reader, writer = transport.streams
        (answers,) = transport._tasks
        await writer.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
        with pytest.raises(ValueError, match="SECRET"):
            await answers
        assert relay.closed == ["server-eof"]
        assert [one async for one in reader] == []

    on_pipes(fail, fails=True)
