"""Each step of sealing may fail, and the recorder end after it: one vCon, one statement, and no bodies."""

from __future__ import annotations

import asyncio
import hashlib
import os

import pytest

from onrecord.base.errors import StorageError, UsageError
from onrecord.record.forms import verify
from onrecord.record.ledger import journal as journals
from onrecord.record.ledger.records import ERASURE, STATEMENT
from onrecord.record.recorder import publication, recorded
from onrecord.record.recorder.signing import NoSigningKey


class Fault:
    """Makes one call of something fail, or all from that one on."""

    def __init__(self, *, number: int, is_lasting: bool):
        self.number = number
        self.is_lasting = is_lasting
        self.calls = 0

    def fails(self) -> bool:
        self.calls += 1
        return self.calls == self.number or (self.is_lasting and self.calls > self.number)

    def around(self, function, error, *, when=lambda *_args, **_more: True):
        def faulty(*args, **more):
            if when(*args, **more) and self.fails():
                raise error()
            return function(*args, **more)

        return faulty


def disk_error():
    return OSError(28, os.strerror(28))


def journal_error():
    return StorageError("test", code="audit-unavailable")


class FaultyOs:
    """The module `os` as the publication sees it, with one function that fails."""

    def __init__(self, name: str, fault: Fault):
        setattr(self, name, fault.around(getattr(os, name), disk_error))

    def __getattr__(self, name):
        return getattr(os, name)


def break_disk(name):
    def do(_rig, monkeypatch, fault):
        monkeypatch.setattr(publication, "os", FaultyOs(name, fault))

    return do


def break_directory_sync(_rig, monkeypatch, fault):
    monkeypatch.setattr(publication, "sync_directory", fault.around(publication.sync_directory, disk_error))


def break_journal(name, *types):
    def do(rig, monkeypatch, fault):
        def when(*args, **_more):
            return not types or args[0] in types

        monkeypatch.setattr(
            rig.journal, name, fault.around(getattr(rig.journal, name), journal_error, when=when)
        )

    return do


STEPS = {
    **{name: break_disk(name) for name in ("open", "mkdir", "fsync", "fchmod", "link", "unlink", "rename")},
    "sync_directory": break_directory_sync,
    "statement": break_journal("append", STATEMENT),
    "erase": break_journal("erase"),
    "flush": break_journal("flush"),
    "read": break_journal("read"),
    "body": break_journal("body"),
}


async def send_all(rig, entries):
    conversation = entries.conversation()
    await rig.append(await rig.client("a-1"), *conversation["authority"])
    await rig.append(await rig.client("g-1", server="filesystem"), *conversation["guard"])


async def send_and_close_unsigned(rig, entries):
    """Close the session while there is no key to sign with, so that sealing it is still to come."""
    await send_all(rig, entries)
    rig.signing.absent = NoSigningKey("missing", "key-missing")
    await rig.close_all()
    rig.signing.absent = None


def bodies_left(journal):
    traces = [one for one in journal.read() if one.type == recorded.TRACE]
    return [one.seq for one in traces for part in one.bodies if journal.body(one.seq, part.part) is not None]


def require_one_sealed_record(rig):
    """Require exactly one vCon that verifies, stated with its hash before the bodies were erased, and nothing else."""
    with rig.open_journal() as journal:
        records = journal.read()
        left = bodies_left(journal)
    (path,) = rig.files()
    data = path.read_bytes()
    assert verify(data, anchors=[rig.signing.anchor]).verdict == "verified"
    assert len(rig.vcons()[0]["events"]) == 9
    statements = [one for one in records if one.type == STATEMENT]
    assert [one.data["sha256"] for one in statements] == [hashlib.sha256(data).hexdigest()]
    assert statements[0].data["check"]["errors"] == 0
    assert [one for one in records if one.type == "session.close" and one.data["vcon"] == path.name[:36]]
    erasures = [one.seq for one in records if str(one.data.get("reason")).startswith("sealed")]
    assert erasures
    assert min(erasures) > statements[0].seq
    assert left == []
    assert [one for one in rig.records.rglob("*") if one.is_file()] == [path]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("was_unsigned", [False, True])
def test_fault_once(rig, entries, monkeypatch, step, number, was_unsigned):
    """A step that fails once is done at the next attempt of the same recorder, and the session ends settled."""
    fault = Fault(number=number, is_lasting=False)

    async def main():
        async with rig:
            await send_and_close_unsigned(rig, entries) if was_unsigned else await send_all(rig, entries)
            with monkeypatch.context() as patch:
                STEPS[step](rig, patch, fault)
                await rig.close_all()
                for _ in range(4):
                    await rig.pass_time(31)
            await rig.pass_time(31)
            return (await rig.call(await rig.client(), "record/sessions", {}))[
                "sessions"
            ], rig.recorder.status()

    ((session,), status) = asyncio.run(main())
    assert session["state"] == "signed"
    assert status["sessions"]["unsealed"] == 0
    require_one_sealed_record(rig)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("was_unsigned", [False, True])
def test_fault_and_end(rig, entries, monkeypatch, step, number, was_unsigned):
    """A recorder that ends while a step of sealing fails leaves what the next one needs to finish."""
    fault = Fault(number=number, is_lasting=True)

    async def before():
        async with rig:
            await send_and_close_unsigned(rig, entries) if was_unsigned else await send_all(rig, entries)
            with monkeypatch.context() as patch:
                STEPS[step](rig, patch, fault)
                await rig.close_all()
                await rig.pass_time(31)

    async def after():
        async with rig:
            await rig.pass_time(31)

    asyncio.run(before())
    asyncio.run(after())
    require_one_sealed_record(rig)


def test_no_file_before_the_close_record_is_on_disk(rig, entries, monkeypatch):
    """A journal that cannot be written holds back the file: its uuid stands in a record that may still be lost."""

    async def main():
        async with rig:
            await send_all(rig, entries)
            with monkeypatch.context() as patch:
                break_journal("flush")(rig, patch, Fault(number=1, is_lasting=True))
                await rig.close_all()
                return rig.files()

    assert asyncio.run(main()) == []


def test_erasure_that_was_interrupted_between_its_records(rig, entries, monkeypatch):
    """An erasure spread over several records counts as done with the last: the next recorder erases the rest."""
    conversation = entries.conversation()
    other = entries.decision(5, 8.5, entries.READ, operation=entries.operation(9), label="other")
    monkeypatch.setattr(journals, "ERASE_RANGES", 1)

    async def before():
        async with rig:
            guard = await rig.client("g-1", server="filesystem")
            await rig.append(guard, *conversation["guard"][:3])
            await rig.append(await rig.client("a-1"), *conversation["authority"], other)
            await rig.append(guard, *conversation["guard"][3:])
            with monkeypatch.context() as patch:
                break_journal("_append", ERASURE)(rig, patch, Fault(number=2, is_lasting=True))
                await rig.close_all()

    async def after():
        async with rig:
            await rig.pass_time(31)

    asyncio.run(before())
    with rig.open_journal() as journal:
        assert bodies_left(journal)
    asyncio.run(after())
    with rig.open_journal() as journal:
        assert bodies_left(journal) == []


def test_state_that_cannot_be_noted_holds_nothing_up(make_rig, entries, monkeypatch):
    """A note of the recorder's state that the journal refuses costs the next start work, and no session its seal."""
    rig = make_rig(state_records=1)

    def too_large():
        return UsageError("test", code="record-too-large")

    async def main():
        async with rig:
            await send_all(rig, entries)
            fault = Fault(number=1, is_lasting=True)

            def is_state(type_, *_args, **_more):
                return type_ == recorded.STATE

            monkeypatch.setattr(
                rig.journal, "append", fault.around(rig.journal.append, too_large, when=is_state)
            )
            await rig.close_all()
            assert fault.calls

    asyncio.run(main())
    require_one_sealed_record(rig)
