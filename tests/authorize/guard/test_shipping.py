"""Spools to the recorder."""

import asyncio
import os

import orjson
import pytest

from authorize.guard.fakes import FakeRecorder, serve
from onrecord.authorize.guard import shipping
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.shipping import Shipper
from onrecord.authorize.guard.spool import Spool, spool_path
from onrecord.base.rpc_client import RpcClient


def entry(number=0):
    return orjson.dumps(
        {
            "kind": "progress",
            "time": "2026-11-30T10:00:00.000Z",
            "mono_ns": 1,
            "content": {"progress": number},
        }
    )


class House:
    def __init__(self, directory):
        self.directory = directory
        self.recorder = FakeRecorder()
        self.spool = Spool.create(spool_path(directory, "g-own"), limit_bytes=1 << 20)
        self.server = None

    async def connect(self):
        return await RpcClient.connect(self.directory / "record.sock", expected_uid=os.getuid())

    async def open(self):
        self.server = await serve(self.recorder, self.directory / "record.sock")

    def shipper(self):
        shipper = Shipper(self.spool, connect=self.connect, server="files", log=GuardLog(None))
        shipper.start()
        return shipper

    async def until(self, condition):
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)

    async def close(self, shipper):
        await shipper.stop(seconds=10)
        if self.server is not None:
            await self.server.stop()
        self.spool.close()


def test_entries_arrive_in_batches_and_leave_the_disk(short_dir):
    """What is acknowledged is gone from the spool; an empty spool leaves no file."""

    async def run():
        house = House(short_dir)
        await house.open()
        for number in range(200):
            house.spool.append(entry(number))
        shipper = house.shipper()
        shipper.soon()
        await house.until(lambda: len(house.recorder.entries) == 200)
        await house.close(shipper)
        assert [one["n"] for one in house.recorder.entries] == list(range(1, 201))

    asyncio.run(run())
    assert not spool_path(short_dir, "g-own").exists()


def test_a_recorder_that_comes_late_gets_everything(short_dir):
    """While nobody listens the spool keeps, and afterwards nothing is missing."""

    async def run():
        house = House(short_dir)
        shipper = house.shipper()
        house.spool.append(entry(), entry())
        shipper.soon()
        await asyncio.sleep(0)
        await house.open()
        await house.until(lambda: len(house.recorder.entries) == 2)
        await house.close(shipper)

    asyncio.run(run())


def test_a_recorder_with_a_full_disk_is_asked_again(short_dir):
    """record_unavailable is no loss."""

    async def run():
        house = House(short_dir)
        house.recorder.failing = True
        await house.open()
        shipper = house.shipper()
        house.spool.append(entry())
        shipper.soon()
        await house.until(lambda: house.recorder.sources)
        assert house.recorder.entries == []
        house.recorder.failing = False
        await house.until(lambda: house.recorder.entries)
        await house.close(shipper)

    asyncio.run(run())


def test_a_recorder_that_does_not_answer_stops_nothing(short_dir, monkeypatch):
    """Row of running.md 12: without an acknowledgement the spool keeps and takes more; each entry arrives once."""
    monkeypatch.setattr(shipping, "APPEND_TIMEOUT_MS", 50)

    async def run():
        house = House(short_dir)
        plain, unanswered = house.recorder.on_request, []

        def silent(connection, request):
            answer = plain(connection, request)
            if request.method == "record/append" and len(unanswered) < 3:
                unanswered.append(request)
                return None
            return answer

        house.recorder.on_request = silent
        await house.open()
        shipper = house.shipper()
        house.spool.append(entry(1))
        shipper.soon()
        await house.until(lambda: unanswered)
        assert house.spool.pending
        house.spool.append(entry(2))
        shipper.soon()
        await house.until(lambda: not house.spool.pending)
        await house.close(shipper)
        assert [one["n"] for one in house.recorder.entries] == [1, 2]

    asyncio.run(run())


def test_what_a_dead_guard_left_goes_first(short_dir):
    """Orphans are shipped under their own source, then removed; a held one is left alone."""
    dead = spool_path(short_dir, "g-dead")
    dead.write_bytes(orjson.dumps({"n": 1, **orjson.loads(entry())}) + b"\n" + b'{"n":2,"torn')

    async def run():
        house = House(short_dir)
        alive = Spool.create(spool_path(short_dir, "g-alive"), limit_bytes=1 << 20)
        alive.append(entry())
        await house.open()
        shipper = house.shipper()
        house.spool.append(entry())
        shipper.soon()
        await house.until(lambda: "g-own" in house.recorder.sources and house.recorder.sources["g-own"])
        await house.close(shipper)
        assert [one["kind"] for one in house.recorder.sources["g-dead"]] == ["progress", "gap"]
        assert "g-alive" not in house.recorder.sources
        alive.close()

    asyncio.run(run())
    assert not dead.exists()
    assert spool_path(short_dir, "g-alive").exists()


def test_entries_that_the_recorder_already_has_are_not_counted_twice(short_dir):
    """An acknowledgement that was lost does no harm: hello says how far the recorder is."""

    async def run():
        house = House(short_dir)
        house.recorder.sources["g-own"] = [{"n": 1, "kind": "progress"}, {"n": 2, "kind": "progress"}]
        house.spool.append(entry(1), entry(2), entry(3))
        await house.open()
        shipper = house.shipper()
        shipper.soon()
        await house.until(lambda: len(house.recorder.entries) == 3)
        await house.close(shipper)
        assert [one["n"] for one in house.recorder.entries] == [1, 2, 3]

    asyncio.run(run())


@pytest.mark.parametrize("through", [0, 3])
def test_a_recorder_that_has_lost_entries_gets_a_gap(short_dir, through):
    """A recorder whose journal is new learns that entries are missing, and the rest arrives."""

    async def run():
        house = House(short_dir)
        house.recorder.sources["g-own"] = [{"n": through, "kind": "progress"}] if through else []
        for number in range(6):
            house.spool.append(entry(number))
        batch = house.spool.batch()
        house.spool.confirm(batch)
        house.spool.append(entry(), entry())
        await house.open()
        shipper = house.shipper()
        shipper.soon()
        await house.until(lambda: house.recorder.entries and house.recorder.entries[-1]["n"] == 8)
        await house.close(shipper)
        gap = next(one for one in house.recorder.entries if one["kind"] == "gap")
        assert (gap["n"], gap["entries"], gap["cause"]) == (through + 1, 6 - through, "recorder-behind")

    asyncio.run(run())
