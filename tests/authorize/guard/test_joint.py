"""The joint of hook mode: nothing passes before the hook has said that it is there, afterwards everything does."""

import asyncio
import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.guard.joint import HOOKED_LINE, NOISE_LINE_BYTES, Joint
from onrecord.authorize.guard.log import GuardLog


class Bench:
    def __init__(self, log=None):
        self.client, self.server, self.settled, self.absent = [], [], [], []
        self.joint = Joint(
            "1",
            log=log or GuardLog(None),
            to_client=self.client.append,
            to_server=self.server.append,
            settled=lambda: self.settled.append(1),
            absent=lambda: self.absent.append(1),
        )


def on_loop(function):
    """Run a test inside of an asyncio loop, which a joint needs for its timer."""

    async def run(*args, **more):
        function(*args, **more)

    @functools.wraps(function)
    def test(*args, **more):
        asyncio.run(run(*args, **more))

    return test


@on_loop
def test_nothing_passes_before_the_hook():
    """Neither the client's bytes nor the server's pass while no hook has spoken; they are not lost either."""
    it = Bench()
    it.joint.client_line(b'{"method":"tools/call"}\n')
    it.joint.server_line(b"Welcome!\n")
    assert (it.client, it.server, it.joint.held, it.joint.running) == ([], [], 1, 1)
    it.joint.server_line(HOOKED_LINE + b"\n")
    assert (it.client, it.server) == ([], [b'{"method":"tools/call"}\n'])
    assert (it.joint.held, it.joint.running, it.settled) == (0, 0, [1])
    it.joint.close("client-eof")


@on_loop
def test_bytes_pass_as_they_are():
    """After the hook has spoken, not even half lines and bytes that are no text are touched."""
    it = Bench()
    it.joint.server_line(b"noise\n" + HOOKED_LINE + b"\n\xff{half")
    it.joint.client_line(b"\x00\r\n\xfe")
    it.joint.server_line(b" a line}\n")
    assert it.client == [b"\xff{half", b" a line}\n"]
    assert it.server == [b"\x00\r\n\xfe"]
    it.joint.close("client-eof")


@pytest.mark.parametrize(
    "line",
    [
        HOOKED_LINE + b" ",
        b" " + HOOKED_LINE,
        HOOKED_LINE[:-1],
        b"x" * (2 * NOISE_LINE_BYTES) + HOOKED_LINE,
        b"{}",
    ],
)
@on_loop
def test_only_this_line_is_a_hook(line):
    """A line that merely resembles it, or a line too long, opens nothing."""
    it = Bench()
    it.joint.client_line(b"call\n")
    it.joint.server_line(line + b"\n")
    assert (it.client, it.server) == ([], [])
    it.joint.close("server-eof")


@on_loop
def test_no_hook_in_time():
    """A server that never says so is ended, and a person reads why."""
    it = Bench()
    it.joint._late()
    assert it.absent == [1]
    it.joint.close("client-eof")


def test_a_server_that_ends_without_a_hook(tmp_path):
    """The log says what is missing when the program ends before it spoke."""
    log = GuardLog(tmp_path / "log")

    async def run():
        it = Bench(log)
        it.joint.client_line(b"call\n")
        it.joint.close("server-eof")
        it.joint.server_line(HOOKED_LINE + b"\n")
        assert (it.client, it.server) == ([], [])

    asyncio.run(run())
    log.close()
    assert "hook.missing" in (tmp_path / "log").read_text()


@given(
    noise=st.lists(st.binary(max_size=20).filter(lambda data: b"\n" not in data), max_size=4),
    rest=st.binary(max_size=200),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_pieces_may_be_cut_anywhere(noise, rest, cuts):
    """However the pipe cuts the server's output, the same bytes arrive at the client."""
    data = b"".join(line + b"\n" for line in noise) + HOOKED_LINE + b"\n" + rest

    @on_loop
    def run():
        it = Bench()
        start = 0
        for end in sorted({min(cut, len(data)) for cut in cuts} | {len(data)}):
            it.joint.server_line(data[start:end])
            start = end
        assert b"".join(it.client) == rest
        it.joint.close("client-eof")

    run()
