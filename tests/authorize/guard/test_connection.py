"""One connection of the guard: how much of what a client sends is taken at a time."""

import asyncio

import pytest

from onrecord.authorize.guard.connection import MAX_HELD_BYTES, MAX_HELD_LINES, Connection
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.sides import ReadSide


class Transport:
    def __init__(self):
        self.reads = True

    def is_closing(self):
        return False

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True


class HoldingRelay:
    """Holds every line until it is told to let go."""

    running = 1

    def __init__(self, to_client, to_server, settled):
        self.held = 0
        self.taken = []
        self.settled = settled

    def client_line(self, line):
        self.taken.append(line)
        self.held += 1

    def let_go(self):
        self.held = 0
        self.settled()


@pytest.fixture
def ends():
    """A connection, its relay, and the side of its client, on a loop that runs nothing."""
    loop = asyncio.new_event_loop()

    async def make():
        log = GuardLog(None)
        return Connection(relay=HoldingRelay, log=log, line_bytes=1 << 24, stop_grace_seconds=5)

    connection = loop.run_until_complete(make())
    side = connection.from_client
    side.connection_made(Transport())
    yield connection, connection.relay, side
    loop.close()


def test_a_flood_waits_in_the_socket(ends):
    """What is beyond the bound is neither verified nor read before something is decided; nothing is lost or swapped."""
    _, relay, side = ends
    lines = [b"%d" % number for number in range(3 * MAX_HELD_LINES)]
    side.data_received(b"\n".join(lines) + b"\n")
    assert len(relay.taken) == MAX_HELD_LINES
    assert not side.transport.reads
    relay.let_go()
    assert len(relay.taken) == 2 * MAX_HELD_LINES
    assert not side.transport.reads
    relay.let_go()
    relay.let_go()
    assert relay.taken == lines
    assert side.transport.reads


def test_large_lines_count_by_their_size(ends):
    """Two lines of nine megabytes are enough to wait for a decision."""
    _, relay, side = ends
    side.data_received((b"x" * (MAX_HELD_BYTES // 2 + 1) + b"\n") * 3)
    assert len(relay.taken) == 2
    relay.let_go()
    assert len(relay.taken) == 3


def test_a_slow_server_is_not_read_for_by_a_decision(ends):
    """Two reasons not to read: both must be over."""
    _, relay, side = ends
    side.data_received(b"x\n" * (MAX_HELD_LINES + 1))
    side.pause()
    relay.let_go()
    assert not side.transport.reads
    side.resume()
    assert side.transport.reads


def test_the_end_comes_after_the_lines(ends):
    """A client that sends much and closes is served to its last line, LF or not."""
    connection, relay, _ = ends
    ended = []
    other = ReadSide(limit_bytes=1 << 24, line=relay.client_line, ended=lambda: ended.append(1))
    connection.from_client = other
    other.connection_made(Transport())
    other.data_received(b"x\n" * MAX_HELD_LINES + b"x\nlast")
    other.eof_received()
    other.connection_lost(None)
    assert not ended
    relay.let_go()
    assert (relay.taken[-1], ended) == (b"last", [1])


def test_a_client_that_does_not_read_is_not_read(ends):
    """Each line may need an answer: a flood of broken ones must not fill the memory of the guard."""
    connection, relay, side = ends
    side.data_received(b"x\n")
    relay.let_go()
    connection.client_slow()
    side.data_received(b"y\nz\n")
    assert (relay.taken, side.transport.reads) == ([b"x"], False)
    relay.let_go()
    assert (relay.taken, side.transport.reads) == ([b"x"], False)
    connection.client_fast()
    assert (relay.taken, side.transport.reads) == ([b"x", b"y", b"z"], True)
