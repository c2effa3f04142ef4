"""The relaxed mode: what append has returned survives the process."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import LogError
from onrecord.record.ledger import intake
from onrecord.record.ledger.journal import Body
from onrecord.record.ledger.records import SaltedBody
from onrecord.record.ledger.store import Entry
from support.journals import gate

ENTRIES = st.builds(
    Entry,
    st.just(0),
    st.binary(max_size=50),
    st.lists(
        st.builds(
            SaltedBody, st.text(max_size=5), st.binary(min_size=32, max_size=32), st.binary(max_size=40)
        ),
        max_size=3,
    ).map(tuple),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3).map(tuple),
)


def numbered(entries, start=0):
    return [entry._replace(seq=start + at) for at, entry in enumerate(entries)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("intake")


class TestFrames:
    @given(st.lists(ENTRIES, max_size=8), st.integers(0, 8))
    def test_round_trip(self, shared, entries, size):
        """Records with bodies and erasures come back as they were, from the journal's size on."""
        written = numbered(entries)
        box = intake.Intake(shared)
        for entry in written:
            box.write(entry)
        box.close()
        left = intake.recover(shared, size=size)
        assert list(left.entries) == written[size:]
        assert left.lost == 0

    @given(st.lists(ENTRIES, min_size=1, max_size=5), st.data())
    def test_torn_end(self, shared, entries, data):
        """Whatever is cut off the end costs only the record that it belongs to, and those behind it."""
        written = numbered(entries)
        box = intake.Intake(shared)
        ends = []
        for entry in written:
            box.write(entry)
            ends.append(box._active.length)
        box.close()
        path = shared / "intake-0"
        cut = data.draw(st.integers(0, ends[-1]))
        path.write_bytes(path.read_bytes()[:cut])
        whole = sum(end <= cut for end in ends)
        assert list(intake.recover(shared, size=0).entries) == written[:whole]

    @given(st.binary(max_size=200))
    def test_garbage(self, shared, garbage):
        """Foreign bytes are no records, and never an error."""
        (shared / "intake-0").write_bytes(garbage)
        (shared / "intake-1").write_bytes(b"OrIn" + garbage)
        assert intake.recover(shared, size=0).entries == ()

    def test_flipped_bits(self, tmp_path):
        """A frame whose content changed is not taken, and neither is what follows."""
        box = intake.Intake(tmp_path)
        for number in range(3):
            box.write(Entry(number, b"record %d" % number))
        box.close()
        raw = (tmp_path / "intake-0").read_bytes()
        (tmp_path / "intake-0").write_bytes(raw.replace(b"record 1", b"record 7"))
        assert [entry.seq for entry in intake.recover(tmp_path, size=0).entries] == [0]

    def test_hole(self, tmp_path):
        """Records behind a hole are counted as lost, not renumbered."""
        box = intake.Intake(tmp_path)
        for number in (5, 6, 8, 9):
            box.write(Entry(number, b"x"))
        box.close()
        left = intake.recover(tmp_path, size=5)
        assert ([entry.seq for entry in left.entries], left.lost) == ([5, 6], 2)

    def test_files_take_turns(self, tmp_path, monkeypatch):
        """A full file gives way to the other, and neither grows while the journal keeps up."""
        monkeypatch.setattr(intake, "FILE_BYTES", 4096)
        box = intake.Intake(tmp_path)
        for number in range(100):
            box.write(Entry(number, b"x" * 300))
            box.drop(number - 1)
        lengths = [(tmp_path / name).stat().st_size for name in ("intake-0", "intake-1")]
        box.close()
        assert lengths == [4096, 4096]
        left = intake.recover(tmp_path, size=98)
        assert ([entry.seq for entry in left.entries], left.lost) == ([98, 99], 0)

    def test_nothing_is_written_over_that_the_journal_lacks(self, tmp_path, monkeypatch):
        """While the other file still has records that are not in the journal, the active one grows, then shrinks."""
        monkeypatch.setattr(intake, "FILE_BYTES", 4096)
        box = intake.Intake(tmp_path)
        for number in range(200):
            box.write(Entry(number, b"x" * 300))
            box.drop(0)
        assert [entry.seq for entry in intake.recover(tmp_path, size=0).entries] == list(range(200))
        for number in range(200, 500):
            box.write(Entry(number, b"x" * 300))
            box.drop(number)
        assert [entry.seq for entry in intake.recover(tmp_path, size=499).entries] == [499]
        assert min((tmp_path / name).stat().st_size for name in ("intake-0", "intake-1")) == 4096
        box.close()

    def test_record_larger_than_a_file(self, tmp_path, monkeypatch):
        """A record that is larger than a file makes it grow."""
        monkeypatch.setattr(intake, "FILE_BYTES", 4096)
        box = intake.Intake(tmp_path)
        box.write(Entry(0, b"small"))
        box.write(Entry(1, b"x" * 50_000))
        box.write(Entry(2, b"small"))
        box.close()
        assert [len(entry.bytes) for entry in intake.recover(tmp_path, size=0).entries] == [5, 50_000, 5]


class TestJournal:
    def test_survives_the_process(self, place):
        """Records that append has returned are there after a crash, though no commit had happened."""
        with place.open(durability="relaxed") as journal, gate(journal):
            seqs = [journal.append("verify.valid", {"n": n}) for n in range(20)]
            crashed = place.copy("crashed")
        with crashed.open() as again:
            assert [record.data["n"] for record in again.read(seqs[0], 20)] == list(range(20))
        assert crashed.verify(crashed.high_water.read_bytes()).verdict == "verified"

    def test_bodies_and_erasures_survive(self, place):
        """Bodies and erasures handed in just before the crash are replayed with their records."""
        with place.open(durability="relaxed") as journal, gate(journal):
            first = journal.append("trace", {}, bodies=[Body("content", b"one")])
            second = journal.append("trace", {}, bodies=[Body("content", b"two")])
            journal.erase([first])
            crashed = place.copy("crashed")
        with crashed.open() as again:
            assert again.body(first, "content") is None
            assert again.body(second, "content") == b"two"
        assert crashed.verify(crashed.high_water.read_bytes()).verdict == "verified"

    def test_modes_alternate(self, place):
        """A directory may change between the modes; nothing is lost or doubled."""
        for durability in ("relaxed", "durable", "relaxed", "relaxed", "durable"):
            place.fill(70, durability=durability)
        with place.open() as journal:
            numbers = [record.data["n"] for record in journal.read() if record.type == "verify.valid"]
            modes = [record.data["durability"] for record in journal.read() if record.type == "journal.open"]
        assert numbers == list(range(70)) * 5
        assert modes == ["relaxed", "durable", "relaxed", "relaxed", "durable", "durable"]
        assert not list(place.directory.glob("intake-*"))

    def test_foreign_record_in_the_intake(self, place):
        """A record that is not of this journal is not taken over from the intake; the start is refused."""
        place.fill(3)
        box = intake.Intake(place.directory)
        (record,) = place.rows("SELECT bytes FROM record WHERE seq = 1")[0]
        box.write(Entry(5, record))
        box.close()
        with pytest.raises(LogError) as caught:
            place.open()
        assert caught.value.code == "record-sequence"

    def test_intake_of_a_lost_journal(self, place):
        """An intake without its journal gives nothing to a new one."""
        other = place.copy("other")
        other.fill(3)
        box = intake.Intake(other.directory)
        (record,) = other.rows("SELECT bytes FROM record WHERE seq = 1")[0]
        box.write(Entry(1, record))
        box.close()
        other.file.unlink()
        other.high_water.unlink()
        with other.open() as journal:
            assert journal.size == 1

    def test_waiters_are_served(self, place):
        """Whoever waits in relaxed mode gets a receipt soon as well."""
        called = threading.Event()
        with place.open(durability="relaxed") as journal:
            assert journal.is_relaxed
            journal.append("verify.valid", {}, done=lambda _: called.set())
            assert called.wait(30)

    def test_start_says_so(self, place):
        """The record of the start names the mode."""
        with place.open(durability="relaxed") as journal:
            assert journal.read(0)[0].data["durability"] == "relaxed"
        with place.open() as journal:
            assert not journal.is_relaxed
