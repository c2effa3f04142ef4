"""Orphan spools of killed guards, read by the recorder in user mode (running.md 5.4)."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os

import pytest

from onrecord.record.recorder import spools


@pytest.fixture
def spooled(make_rig, short_dir):
    """A rig whose recorder looks for spools, and a writer of spools."""
    root = short_dir / "srv"
    rig = make_rig(spools=root)

    def write(lines, *, source="g-1", server="filesystem", torn=b""):
        folder = root / server
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{source}.spool"
        data = b"".join(
            (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
        )
        path.write_bytes(data + torn)
        path.chmod(0o600)
        return path

    rig.write_spool = write
    return rig


def run(rig, scenario):
    async def main():
        async with rig:
            return await scenario(rig)

    return asyncio.run(main())


async def look(rig):
    rig.recorder.look()
    await rig.recorder._spools


def traces(rig):
    with rig.open_journal() as journal:
        return [record for record in journal.read() if record.type.startswith("trace")]


def test_orphan_is_read_and_removed(spooled, entries):
    """Everything in a spool that nobody holds is recorded; the file is gone afterwards."""
    path = spooled.write_spool(entries.conversation()["guard"])

    async def scenario(rig):
        await rig.append(await rig.client("a-1"), *entries.conversation()["authority"])
        await look(rig)
        await rig.close_all()

    run(spooled, scenario)
    assert not path.exists()
    assert len(spooled.vcons()[0]["events"]) == 9


def test_what_was_acknowledged_before_is_not_doubled(spooled, entries):
    """A spool that still holds acknowledged entries adds only the others."""
    guard = entries.conversation()["guard"]
    spooled.write_spool(guard)

    async def scenario(rig):
        client = await rig.client("g-1", server="filesystem")
        await rig.append(client, *guard[:5])
        client.close()
        await asyncio.sleep(0.05)
        await look(rig)

    run(spooled, scenario)
    assert [one.data["entry"]["n"] for one in traces(spooled)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_held_spool_is_left_alone(spooled, entries):
    """The lock decides: a spool that a guard holds is not touched."""
    path = spooled.write_spool(entries.conversation()["guard"])
    descriptor = os.open(path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    async def scenario(rig):
        await look(rig)
        before = path.exists(), rig.journal.size
        os.close(descriptor)
        await look(rig)
        return before, path.exists()

    assert run(spooled, scenario) == ((True, 1), False)


def test_torn_last_line_is_a_gap_of_one(spooled, entries):
    """A line that a crash cut off is told as one lost entry."""
    guard = entries.conversation()["guard"]
    spooled.write_spool(guard[:3], torn=b'{"n": 4, "kind": "inv')

    async def scenario(rig):
        await rig.append(await rig.client("a-1"), *entries.conversation()["authority"])
        await look(rig)
        await rig.close_all()

    run(spooled, scenario)
    (gap,) = [event for event in spooled.vcons()[0]["events"] if event.get("event_type") == "recording-gap"]
    assert (gap["data"]["cause"], gap["data"]["entries"]) == ("spool-torn", 1)


def test_garbage_and_holes(spooled, entries):
    """Lines that are no JSON are kept as invalid, missing numbers become a gap, and the rest is recorded."""
    guard = entries.conversation()["guard"]
    path = spooled.write_spool([guard[0], b"\xff\xfe nonsense", guard[2], guard[6], guard[7]])

    async def scenario(rig):
        await look(rig)

    run(spooled, scenario)
    assert not path.exists()
    found = traces(spooled)
    assert [one.type for one in found].count("trace.invalid") == 1
    kinds = [one.data["entry"]["kind"] for one in found if one.type == "trace"]
    assert kinds == ["connection", "result", "gap", "result", "connection"]


@pytest.mark.parametrize("attack", ["symlink", "directory", "fifo", "name", "server"])
def test_odd_files_are_left_alone(spooled, entries, attack, short_dir):
    """Links, directories, pipes and strange names are no spools."""
    path = spooled.write_spool(entries.conversation()["guard"])
    if attack == "symlink":
        path.rename(short_dir / "target")
        path.symlink_to(short_dir / "target")
    elif attack == "directory":
        path.unlink()
        path.mkdir()
    elif attack == "fifo":
        path.unlink()
        os.mkfifo(path)
    elif attack == "name":
        path.rename(path.with_name("a b.spool"))
    else:
        path.parent.rename(path.parent.with_name("UPPER"))

    async def scenario(rig):
        await look(rig)
        return rig.journal.size

    assert run(spooled, scenario) == 1


def test_failing_journal_keeps_the_spool(spooled, entries):
    """When the journal cannot be written the spool stays for another time."""
    path = spooled.write_spool(entries.conversation()["guard"])

    async def scenario(rig):
        from onrecord.record.ledger.store import unavailable

        store = rig.journal._store
        commit = store.commit

        def broken(_entries):
            raise unavailable("test")

        store.commit = broken
        await look(rig)
        left = path.exists()
        store.commit = commit
        while not rig.journal.available:
            await asyncio.sleep(0.01)
        await look(rig)
        return left

    assert run(spooled, scenario)
    assert not path.exists()
    assert [one.data["entry"]["n"] for one in traces(spooled)] == list(range(1, 9))


def deep(entry, *, levels):
    """Return the line of an entry whose content makes it nested this deep."""
    bare = json.dumps({name: value for name, value in entry.items() if name != "content"})
    return f'{bare[:-1]}, "content": {"[" * (levels - 1)}{"]" * (levels - 1)}}}'.encode()


@pytest.mark.parametrize(
    ("levels", "kind"), [(253, "trace"), (254, "trace.invalid"), (2000, "trace.invalid")]
)
def test_deep_line_does_not_hold_up_the_spool(spooled, entries, levels, kind):
    """A line that is nested too deeply is invalid, one at the limit is not, and what follows is recorded."""
    guard = entries.conversation()["guard"]
    path = spooled.write_spool([*guard[:2], deep(guard[2], levels=levels), *guard[3:]])

    run(spooled, look)
    assert not path.exists()
    assert [one.type for one in traces(spooled)] == ["trace", "trace", kind] + 5 * ["trace"]


def test_line_that_is_too_long_is_a_hole_of_one(spooled, entries, monkeypatch):
    """A line longer than any entry is told as one lost entry, and what follows is recorded."""
    guard = entries.conversation()["guard"]
    monkeypatch.setattr(spools, "RECORD_LINE_BYTES", 4096)
    path = spooled.write_spool([*guard[:2], b"x" * 10_000, *guard[3:]])

    run(spooled, look)
    assert not path.exists()
    found = [one.data["entry"] for one in traces(spooled)]
    assert [one["n"] for one in found] == list(range(1, 9))
    assert [one["kind"] for one in found[:4]] == ["connection", "invocation", "gap", "invocation"]
    assert found[2]["cause"] == "spool-hole"
