"""Spools that hooked servers have left: shipped by their guard, as soon as there is a recorder."""

import asyncio
import os

import pytest

from authorize.guard.fakes import FakeRecorder, serve
from onrecord.authorize.guard.leftovers import Leftovers
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.spool import Spool, spool_path
from onrecord.base.rpc_client import RpcClient

ENTRY = b'{"kind":"invocation","time":"2026-11-30T10:00:00.000Z","mono_ns":1,"connection":"1","call":"1.1"}'


def leave(directory, source, *, is_held=False):
    """Write a spool with one entry, and let its owner die unless it `is_held`."""
    spool = Spool.create(spool_path(directory, source), limit_bytes=1 << 20)
    assert spool.append(ENTRY)
    if not is_held:
        spool.close()
    return spool


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
def made(short_dir):
    """A function that makes the leftovers of a directory, and the path of the recorder's socket."""
    path = short_dir / "record.sock"
    log = GuardLog(short_dir / "log")

    async def connect():
        return await RpcClient.connect(path, expected_uid=os.getuid(), timeout_ms=1000)

    yield lambda: Leftovers(short_dir, connect=connect, server="files", log=log), path
    log.close()


def test_what_is_left_is_shipped(made, short_dir):
    """At the start, and after a server has ended, spools without owner arrive at the recorder and leave the disk."""

    async def run():
        recorder = FakeRecorder()
        server = await serve(recorder, made[1])
        leave(short_dir, "g-first")
        leftovers = made[0]()
        leftovers.start()
        await until(lambda: list(recorder.sources) == ["g-first"] and not list(short_dir.glob("*.spool")))
        leave(short_dir, "g-second")
        leftovers.look()
        await until(lambda: not list(short_dir.glob("*.spool")))
        leave(short_dir, "g-third")
        await leftovers.stop(seconds=20)
        assert sorted(recorder.sources) == ["g-first", "g-second", "g-third"]
        assert recorder.kinds() == ["invocation"] * 3
        await server.stop()

    asyncio.run(run())


def test_a_living_server_keeps_its_spool(made, short_dir):
    """A spool that a hook holds is its own business: it would be shipped twice."""

    async def run():
        recorder = FakeRecorder()
        server = await serve(recorder, made[1])
        held = leave(short_dir, "g-living", is_held=True)
        leftovers = made[0]()
        leftovers.start()
        await leftovers.stop(seconds=20)
        assert recorder.sources == {}
        assert held.pending == 1
        held.close()
        await server.stop()

    asyncio.run(run())


def test_without_a_recorder_they_stay(made, short_dir):
    """While the recorder is away nothing is lost; when it is back they go."""

    async def run():
        leave(short_dir, "g-first")
        leftovers = made[0]()
        leftovers.start()
        await until(lambda: "spool.not-shipped" in (short_dir / "log").read_text())
        assert len(list(short_dir.glob("*.spool"))) == 1
        recorder = FakeRecorder()
        server = await serve(recorder, made[1])
        await until(lambda: recorder.kinds() == ["invocation"])
        await leftovers.stop(seconds=20)
        await server.stop()

    asyncio.run(run())


def test_the_end_does_not_wait_for_ever(made, short_dir):
    """A guard that stops without a recorder leaves the spool to the next one."""

    async def run():
        leave(short_dir, "g-first")
        leftovers = made[0]()
        leftovers.start()
        await leftovers.stop(seconds=0.01)
        assert len(list(short_dir.glob("*.spool"))) == 1

    asyncio.run(run())
