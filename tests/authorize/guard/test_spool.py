"""Entries on disk before their effect."""

import fcntl
import os

import orjson
import pytest

from onrecord.authorize.guard.spool import Spool, orphans, spool_path
from onrecord.base.dates import ManualClock
from onrecord.record.recorder.settings import APPEND_BATCH


def entry(number=0):
    return orjson.dumps(
        {
            "kind": "progress",
            "time": "2026-11-30T10:00:00.000Z",
            "mono_ns": 1,
            "call": "1.1",
            "content": {"progress": number},
        }
    )


@pytest.fixture
def clock():
    return ManualClock()


def make(directory, clock, *, limit=1 << 20, name="g-1"):
    return Spool.create(spool_path(directory, name), limit_bytes=limit, clock=clock)


def taken(spool):
    """Confirm everything; return the entries."""
    entries = []
    while (batch := spool.batch()) is not None:
        entries += [orjson.loads(line) for line in batch.lines]
        spool.confirm(batch)
    return entries


def test_what_is_acknowledged_is_cut_away(tmp_path, clock):
    """In a pause the file is emptied; numbers go on."""
    spool = make(tmp_path, clock)
    assert spool.append(entry(), entry())
    spool.cut()
    assert [one["n"] for one in taken(spool)] == [1, 2]
    spool.cut()
    assert spool.path.stat().st_size == 0
    assert spool.append(entry())
    assert [one["n"] for one in taken(spool)] == [3]
    spool.close()
    assert orphans(tmp_path) == []


def test_a_large_spool_is_emptied_at_once(tmp_path, clock, monkeypatch):
    """A busy guard has no pauses; its file does not grow for ever."""
    monkeypatch.setattr("onrecord.authorize.guard.spool.CUT_BYTES", 300)
    spool = make(tmp_path, clock)
    for _ in range(5):
        spool.append(entry(), entry(), entry())
        taken(spool)
    assert spool.path.stat().st_size < 600
    spool.close()


def test_batches_have_their_size(tmp_path, clock):
    """At most 64 entries go together."""
    spool = make(tmp_path, clock)
    for number in range(APPEND_BATCH + 1):
        spool.append(entry(number))
    batch = spool.batch()
    assert len(batch.lines) == APPEND_BATCH
    assert (batch.first, batch.last) == (1, APPEND_BATCH)
    spool.confirm(batch)
    assert spool.batch().first == APPEND_BATCH + 1
    spool.close()


@pytest.mark.parametrize("required", [True, False])
def test_the_bound_holds_and_the_loss_is_counted(tmp_path, clock, required):
    """Acceptance 70: the oldest entries stay, newer ones are counted, the count comes first afterwards."""
    spool = make(tmp_path, clock, limit=8192)
    kept = 0
    while spool.has_room(200) if required else spool.append(entry(kept)):
        kept += 1
        if required:
            spool.append(entry(kept))
    if required:
        spool.refuse()
    assert spool.path.stat().st_size <= 8192
    first = taken(spool)
    assert [one["n"] for one in first] == list(range(1, kept + 1))
    clock.advance(5)
    assert spool.append(entry())
    gap, after = taken(spool)
    assert (gap["kind"], gap["n"], gap["entries"], gap["cause"]) == ("gap", kept + 1, 1, "spool-full")
    assert gap["from"] == "2026-11-30T10:00:00.000Z"
    assert gap["to"] == "2026-11-30T10:00:05.000Z"
    assert after["n"] == kept + 2
    spool.close()


def test_ends_of_calls_have_room_that_calls_have_not(tmp_path, clock):
    """A part of the bound is kept for the ends of what already runs."""
    spool = make(tmp_path, clock, limit=8192)
    while spool.has_room(200):
        spool.append(entry())
    assert spool.append(entry())
    spool.close()


def test_a_torn_last_line_becomes_a_gap(tmp_path, clock):
    """A crash in the middle of a line loses that line and says so."""
    spool = make(tmp_path, clock)
    spool.append(entry(), entry())
    path = spool.path
    os.close(spool._descriptor)
    with path.open("ab") as file:
        file.write(b'{"n":3,"kind":"resu')
    adopted = Spool.adopt(path, clock=clock)
    entries = taken(adopted)
    assert [one["n"] for one in entries] == [1, 2, 3]
    assert (entries[2]["kind"], entries[2]["entries"], entries[2]["cause"]) == ("gap", 1, "torn")
    adopted.close()
    assert not path.exists()


def test_a_damaged_line_in_the_middle_becomes_a_gap(tmp_path, clock):
    """Blocks that never reached the disk read as zeros; what follows is still sent."""
    path = spool_path(tmp_path, "g-2")
    lines = [orjson.dumps({"n": number, **orjson.loads(entry())}) for number in (1, 2, 3)]
    path.write_bytes(lines[0] + b"\n" + b"\0" * len(lines[1]) + b"\n" + lines[2] + b"\n")
    adopted = Spool.adopt(path, clock=clock)
    assert [(one["n"], one["kind"]) for one in taken(adopted)] == [
        (1, "progress"),
        (2, "gap"),
        (3, "progress"),
    ]
    adopted.close()


def test_a_held_spool_is_not_adopted(tmp_path, clock):
    """Whoever lives keeps his own."""
    spool = make(tmp_path, clock)
    spool.append(entry())
    assert Spool.adopt(spool.path, clock=clock) is None
    spool.close()
    adopted = Spool.adopt(spool.path, clock=clock)
    assert adopted.pending == 1
    adopted.close()


def test_a_symbolic_link_is_not_adopted(tmp_path, clock):
    """A link could name a file of somebody else."""
    (tmp_path / "x.spool").symlink_to(tmp_path / "other")
    assert Spool.adopt(tmp_path / "x.spool", clock=clock) is None
    assert orphans(tmp_path) == []


def test_an_adopted_spool_keeps_its_numbers(tmp_path, clock):
    """After a part was acknowledged and cut, the rest has its own numbers."""
    path = spool_path(tmp_path, "g-3")
    path.write_bytes(
        b"".join(orjson.dumps({"n": number, **orjson.loads(entry())}) + b"\n" for number in (7, 8))
    )
    adopted = Spool.adopt(path, clock=clock)
    assert adopted.source == "g-3"
    assert adopted.acknowledged == 6
    assert adopted.batch().first == 7
    adopted.close()
    assert path.exists()


def test_a_failing_disk_is_tried_again_once_a_second(tmp_path, clock, monkeypatch):
    """A write that fails loses its entries, and leaves whole lines only; a second later it is tried again."""
    spool = make(tmp_path, clock)
    spool.append(entry())
    size = spool.path.stat().st_size
    plain = os.write

    def half(descriptor, data):
        return plain(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    assert not spool.append(entry())
    assert spool.path.stat().st_size == size
    monkeypatch.setattr(os, "write", plain)
    assert not spool.append(entry())
    assert not spool.has_room(10)
    clock.advance(1.1)
    assert spool.has_room(10)
    assert [(one["n"], one["kind"], one.get("entries")) for one in taken(spool)] == [
        (1, "progress", None),
        (2, "gap", 2),
    ]
    spool.close()


def test_a_directory_that_cannot_be_written_fails_like_a_full_disk(tmp_path, clock):
    """The guard starts all the same; calls are refused until there is a spool."""
    missing = tmp_path / "later"
    spool = make(missing, clock)
    assert not spool.has_room(1)
    missing.mkdir()
    clock.advance(1.1)
    assert spool.has_room(1)
    assert spool.append(entry())
    spool.close()


def test_a_long_backlog_is_compacted(tmp_path, clock, monkeypatch):
    """With a recorder that is always a little behind, the file does not grow for ever, and the lock stays."""
    monkeypatch.setattr("onrecord.authorize.guard.spool.COMPACT_BYTES", 4096)
    spool = make(tmp_path, clock)
    numbers = []
    for number in range(400):
        spool.append(entry(number))
        if number > 100:
            batch = spool.batch()
            numbers += [orjson.loads(line)["n"] for line in batch.lines]
            spool.confirm(batch)
        assert spool.path.stat().st_size < 40_000
    numbers += [one["n"] for one in taken(spool)]
    assert numbers == list(range(1, 401))
    with spool.path.open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    spool.close()


def test_a_new_spool_is_nobodys_orphan(tmp_path, clock, monkeypatch):
    """Another guard that looks between making and locking would find it empty, and remove it under our hands."""
    lock = fcntl.flock

    def look_first(descriptor, operation):
        monkeypatch.setattr(fcntl, "flock", lock)
        for path in orphans(tmp_path):
            Spool.adopt(path, clock=clock).close()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", look_first)
    spool = make(tmp_path, clock)
    assert spool.append(entry())
    os.close(spool._descriptor)  # kill -9
    left = Spool.adopt(spool.path, clock=clock)
    assert left is not None
    assert left.pending == 1
    left.close()


def test_a_spool_that_cannot_be_locked_leaves_nothing(tmp_path, clock, monkeypatch):
    """It is tried again later, under the same name."""

    def refuse(descriptor, operation):
        raise BlockingIOError

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        spool = make(tmp_path, clock)
        assert not spool.has_room(1)
        assert os.listdir(tmp_path) == []
    clock.advance(seconds=1)
    assert spool.has_room(1)
    spool.close()
