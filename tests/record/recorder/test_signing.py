"""The signing key goes away and comes back; sealing is interrupted; own check fails (running.md 9, 12)."""

from __future__ import annotations

import asyncio
import datetime
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from onrecord.base.dates import ManualClock
from onrecord.base.errors import StorageError
from onrecord.base.keys import write_private_key
from onrecord.record.forms import verify
from onrecord.record.recorder.signing import FileSigning, NoSigningKey, SigningKey


def run(rig, scenario):
    async def main():
        async with rig:
            return await scenario(rig)

    return asyncio.run(main())


def records(rig, kind):
    with rig.open_journal() as journal:
        return [record for record in journal.read() if record.type == kind]


async def whole(rig, entries):
    conversation = entries.conversation()
    await rig.append(await rig.client("a-1"), *conversation["authority"])
    await rig.append(await rig.client("g-1", server="filesystem"), *conversation["guard"])


class TestMissingKey:
    def test_unsigned_until_the_key_is_back(self, rig, entries):
        """Without key the vCon waits unsigned with its bodies kept; with the key it is signed and they are erased."""

        async def scenario(rig):
            rig.signing.absent = NoSigningKey("missing", "key-missing")
            await whole(rig, entries)
            await rig.close_all()
            unsigned = list((rig.records / "unsigned").iterdir())
            listed = (await rig.call(await rig.client(), "record/sessions", {}))["sessions"]
            await rig.pass_time(31)
            still = len(rig.files())
            rig.signing.absent = None
            await rig.pass_time(31)
            return unsigned, listed, still, list((rig.records / "unsigned").iterdir())

        unsigned, listed, still, left = run(rig, scenario)
        assert len(unsigned) == 1
        assert (listed[0]["state"], listed[0]["problem"]) == ("unsigned", "key-missing")
        assert (still, left) == (0, [])
        (path,) = rig.files()
        assert verify(path.read_bytes(), anchors=[rig.signing.anchor]).verdict == "verified"
        states = [record.data["state"] for record in records(rig, "key.changed")]
        assert states == ["missing", "present"]
        assert len(records(rig, "statement")) == 1

    def test_waiting_costs_nothing(self, rig, entries, monkeypatch):
        """A session that waits for the key is not made again at each attempt; why it waits is told anew."""

        async def scenario(rig):
            rig.signing.absent = NoSigningKey("missing", "key-missing")
            await whole(rig, entries)
            await rig.close_all()
            monkeypatch.delattr(rig.recorder._sealing.sealer, "_serialize")
            rig.signing.absent = NoSigningKey("expired", "certificate-expired")
            await rig.pass_time(31)
            return (await rig.call(await rig.client(), "record/sessions", {}))["sessions"]

        (listed,) = run(rig, scenario)
        assert (listed["state"], listed["problem"]) == ("unsigned", "certificate-expired")

    def test_key_back_after_a_restart(self, rig, entries):
        """A session that was left unsigned is signed by the next recorder, under the same uuid."""

        async def before(rig):
            rig.signing.absent = NoSigningKey("expired", "certificate-expired")
            await whole(rig, entries)
            await rig.close_all()
            return [path.name for path in (rig.records / "unsigned").iterdir()]

        async def after(rig):
            rig.signing.absent = None
            await rig.pass_time(0)

        names = run(rig, before)
        run(rig, after)
        assert [path.name for path in rig.files()] == names

    def test_unsigned_file_is_a_vcon(self, rig, entries):
        """The waiting file is the unsigned form, complete."""

        async def scenario(rig):
            rig.signing.absent = NoSigningKey("missing", "key-missing")
            await whole(rig, entries)
            await rig.close_all()

        run(rig, scenario)
        (path,) = (rig.records / "unsigned").iterdir()
        assert len(json.loads(path.read_bytes())["events"]) == 9


class TestInterrupted:
    def test_crash_between_file_and_statement(self, rig, entries, monkeypatch):
        """A file that was written before the statement is taken as it is: no second file, one statement."""

        async def before(rig):
            sealer = rig.recorder._sealing.sealer

            def crash(*_args, **_more):
                raise StorageError("test", code="test")

            monkeypatch.setattr(sealer, "_state", crash)
            await whole(rig, entries)
            await rig.close_all()
            return [path.read_bytes() for path in rig.files()]

        async def after(rig):
            await rig.pass_time(0)

        first = run(rig, before)
        run(rig, after)
        assert [path.read_bytes() for path in rig.files()] == first
        assert len(records(rig, "statement")) == 1

    def test_crash_between_statement_and_erasure(self, rig, entries, monkeypatch):
        """Bodies that were not erased yet are erased by the next recorder."""

        async def before(rig):
            def crash(*_args, **_more):
                raise StorageError("test", code="test")

            monkeypatch.setattr(rig.recorder._sealing.sealer, "_erase", crash)
            await whole(rig, entries)
            await rig.close_all()

        async def after(rig):
            await rig.pass_time(0)

        run(rig, before)
        run(rig, after)
        with rig.open_journal() as journal:
            traces = [one for one in journal.read() if one.type == "trace"]
            assert all(journal.body(one.seq, part.part) is None for one in traces for part in one.bodies)
        assert len(records(rig, "statement")) == 1

    def test_left_temporary_files_are_removed(self, rig, entries):
        """What a killed writer left beside the file does not stay."""

        async def scenario(rig):
            await whole(rig, entries)
            rig.recorder._recording.ask_to_close(next(iter(rig.recorder._recording.table)))
            rig.clock.advance(20)
            (closed,) = rig.recorder._recording.tick()
            folder = rig.records / "2026" / "11" / "30"
            folder.mkdir(parents=True)
            (folder / f".{closed.vcon}.vcon.json.abcd").write_bytes(b"half")
            rig.recorder._sealing.put(closed)
            await rig.recorder._sealing.join()
            return [path.name for path in folder.iterdir()]

        assert len(run(rig, scenario)) == 1


class TestOwnCheck:
    def test_error_of_the_check_does_not_stop_the_record(self, rig, entries, monkeypatch):
        """A record with a finding of severity error is signed all the same, and the error is journaled and listed."""
        from onrecord.base.findings import Finding

        async def scenario(rig):
            bad = Finding("type-missing", "error", "/events/0", "test", "test")
            monkeypatch.setattr(rig.recorder._sealing.sealer, "_check", lambda _data: [bad])
            await whole(rig, entries)
            await rig.close_all()
            return (await rig.call(await rig.client(), "record/sessions", {}))["sessions"][0]

        listed = run(rig, scenario)
        assert listed["state"] == "signed"
        assert listed["check"] == {"errors": 1, "warnings": 0, "codes": {"type-missing": 1}}
        assert records(rig, "statement")[0].data["check"]["errors"] == 1

    def test_broken_check_does_not_stop_the_record(self, rig, entries, monkeypatch):
        """A bug in the check costs the check, not the record."""

        async def scenario(rig):
            def broken(_data):
                raise ZeroDivisionError

            monkeypatch.setattr(rig.recorder._sealing.sealer, "_check", broken)
            await whole(rig, entries)
            await rig.close_all()

        run(rig, scenario)
        assert len(rig.files()) == 1
        assert records(rig, "statement")[0].data["check"]["codes"] == {"check-failed": 1}


class TestFileSigning:
    @pytest.fixture
    def files(self, short_dir, certificates_for):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private_key(short_dir / "record.pem", key)
        chain = short_dir / "chain.pem"
        self.write(chain, certificates_for(key)[0])
        return short_dir / "record.pem", chain

    @staticmethod
    def write(path, *certificates):
        path.write_bytes(b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates))

    def now(self, files, *, at="2026-11-30T10:00:00Z"):
        return FileSigning(f"file:{files[0]}", files[1], clock=ManualClock(at)).now()

    def test_key_and_chain(self, files):
        """A key with its leaf is usable."""
        assert isinstance(self.now(files), SigningKey)

    def test_missing_key_or_chain(self, files):
        """A missing file is told as missing."""
        files[1].unlink()
        assert self.now(files) == NoSigningKey("missing", "chain-missing")
        files[0].unlink()
        assert self.now(files) == NoSigningKey("missing", "key-missing")

    def test_expired_and_not_yet_valid(self, files):
        """A leaf outside of its time signs nothing."""
        assert self.now(files, at="2061-01-01T00:00:00Z") == NoSigningKey("expired", "certificate-expired")
        assert self.now(files, at="2019-01-01T00:00:00Z").code == "certificate-not-yet-valid"

    def test_leaf_of_another_key(self, files, certificates_for):
        """A chain that does not fit the key is refused."""
        self.write(files[1], certificates_for(ec.generate_private_key(ec.SECP256R1()))[0])
        assert self.now(files) == NoSigningKey("unusable", "chain-key")

    @pytest.mark.parametrize(
        "data", [b"", b"text", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    )
    def test_chain_that_is_none(self, files, data):
        """A file without certificates is unusable, not missing."""
        files[1].write_bytes(data)
        assert self.now(files) == NoSigningKey("unusable", "chain-malformed")

    def test_open_key_file(self, files):
        """A key file that others can read is not used."""
        files[0].chmod(0o644)
        assert self.now(files) == NoSigningKey("unusable", "key-mode")


def test_certificates_of_the_rig_are_valid_now(rig):
    """The rig's leaf covers the time of the tests."""
    leaf = rig.signing.key.chain[0]
    assert leaf.not_valid_after_utc > datetime.datetime(2050, 1, 1, tzinfo=datetime.UTC)
