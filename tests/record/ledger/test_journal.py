"""The open journal: numbers, groups, receipts, bodies, reading, and its end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.dates import ManualClock, boot_id
from onrecord.base.errors import KeyAccessError, OnrecordError, StorageError, UsageError
from onrecord.base.keys import PrivateKeySigner, generate_private_key
from onrecord.record.ledger import records, schema, writer
from onrecord.record.ledger.checkpoints import Checkpoint
from onrecord.record.ledger.journal import Body, Receipt
from onrecord.record.ledger.reading import READ_RECORDS
from onrecord.record.ledger.records import Record, RecordForm
from onrecord.record.ledger.store import BATCH_RECORDS


class Waiting:
    """A callback that keeps what it is called with."""

    def __init__(self):
        self.results = []
        self.threads = set()
        self._called = threading.Semaphore(0)

    def __call__(self, result):
        self.results.append(result)
        self.threads.add(threading.current_thread().name)
        self._called.release()

    def wait(self, count=1):
        for _ in range(count):
            assert self._called.acquire(timeout=30)
        return self.results


@pytest.fixture
def journal(place):
    with place.open() as journal:
        yield journal


class TestRecords:
    def test_bytes(self, place):
        """A record is JSON with sorted members and no white space, with wall time in ms and the boot clock."""
        place.clock = ManualClock("2026-11-30T10:00:00.500Z", boottime_ns=9_121_004_000_000)
        with place.open() as journal:
            seq = journal.append("verify.valid", {"b": 1, "a": "ü"}, session="s-1")
            journal.flush()
            data = place.rows("SELECT bytes FROM record WHERE seq = ?", seq)[0][0]
        assert data.decode() == (
            '{"bodies":[],"boot":"'
            + boot_id()
            + '","data":{"a":"ü","b":1},"epoch":1,"mono_ns":9121004000000,'
            '"recorder":"host.example/authority","seq":1,"session":"s-1","time":"2026-11-30T10:00:00.500Z",'
            '"type":"verify.valid","v":1}'
        )

    def test_first_and_last_record(self, place):
        """A journal begins with journal.open, and each clean run ends with journal.close."""
        place.fill(1)
        place.fill(0)
        with place.open() as journal:
            kinds = [record.type for record in journal.read()]
        assert kinds == [
            "journal.open", "verify.valid", "journal.close", "journal.open", "journal.close", "journal.open",
        ]  # fmt: skip

    def test_name_is_that_of_the_first_record(self, place):
        """The name counts when the file is made, and comes from its first record afterwards."""
        place.fill(1)
        with place.open(name="renamed.example/authority") as journal:
            assert journal.origin == place.origin
            assert {record.recorder for record in journal.read()} == {place.name}

    def test_data_that_json_cannot_hold(self, journal):
        """Data that is no JSON is refused, takes no number, and stops nothing."""
        before = journal.append("a", {})
        for bad in ({"a": object()}, {"a": "\ud800"}, {"a": 1 << 70}, {1: 2}):
            with pytest.raises(UsageError) as caught:
                journal.append("a", bad)
            assert caught.value.code == "record-not-json"
        assert journal.append("a", {}) == before + 1
        assert journal.flush().seq == before + 1

    def test_record_of_the_largest_size(self, journal, monkeypatch):
        """A record of the largest size is taken, one byte more is refused."""
        monkeypatch.setattr(records, "MAX_RECORD_BYTES", 2000)
        seq = journal.append("a", {"a": ""})
        journal.flush()
        room = 2000 - len(
            journal._form.write(seq + 1, "a", {"a": ""}, time="2026-11-30T10:00:00.010Z", mono_ns=1)
        )
        room -= len(str(journal.read(seq)[0].mono_ns)) - 1
        journal.append("a", {"a": "x" * room})
        with pytest.raises(UsageError) as caught:
            journal.append("a", {"a": "x" * (room + 1)})
        assert caught.value.code == "record-too-large"

    @given(
        st.text(min_size=1, max_size=20),
        st.dictionaries(
            st.text(max_size=5), st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9)
        ),
        st.none() | st.text(max_size=10),
    )
    def test_what_is_written_is_read(self, type_, data, session):
        """Any type, data and session come back as they were, and the bytes are the sorted compact JSON of them."""
        form = RecordForm("a b", 3, boot="b")
        time = "2026-11-30T10:00:00.010Z"
        raw = form.write(7, type_, data, time=time, mono_ns=5, session=session)
        record = Record.read(raw)
        assert (record.type, record.data, record.session, record.seq, record.epoch) == (
            type_,
            data,
            session,
            7,
            3,
        )
        text = json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert list(json.loads(raw)) == sorted(json.loads(raw))
        assert len(text.encode()) == len(raw) or "\\u" in text

    @given(st.binary(max_size=200))
    def test_foreign_bytes_raise_our_error_only(self, data):
        """Bytes that are no record are refused by us."""
        with pytest.raises(OnrecordError) as caught:
            Record.read(data)
        assert caught.value.code == "record-malformed"

    @pytest.mark.parametrize(
        "name", ["seq", "type", "time", "mono_ns", "boot", "data", "bodies", "v", "epoch"]
    )
    def test_missing_members(self, name):
        """Each member of a record is required."""
        raw = json.loads(RecordForm("a", 1, boot="b").write(0, "t", {}, time="x", mono_ns=1))
        del raw[name]
        with pytest.raises(OnrecordError) as caught:
            Record.read(json.dumps(raw).encode())
        assert caught.value.code == "record-malformed"


class TestAppend:
    def test_numbers_follow_the_calls(self, journal):
        """Numbers rise by one per call, and the receipt names a tree that covers the record."""
        waiting = Waiting()
        numbers = [journal.append("verify.valid", {"n": n}, done=waiting) for n in range(200)]
        assert numbers == list(range(1, 201))
        receipts = waiting.wait(200)
        assert [receipt.seq for receipt in receipts] == numbers
        assert all(receipt.seq < receipt.size for receipt in receipts)
        assert waiting.threads == {"journal-writer"}

    def test_receipt_is_committed_and_signed(self, place, journal):
        """When a receipt is handed out, its record is in the file and its note is signed over that size."""
        waiting = Waiting()
        seq = journal.append("verify.valid", {}, done=waiting)
        (receipt,) = waiting.wait()
        assert place.rows("SELECT seq FROM record WHERE seq = ?", seq) == [(seq,)]
        checkpoint = Checkpoint.open(receipt.note, trusted=place.trusted, origin=place.origin)
        assert checkpoint.size == receipt.size
        assert journal.checkpoint == receipt.note
        assert journal.size == receipt.size

    def test_groups_hold_at_most_64(self, place, journal):
        """What accumulates is committed in groups of at most 64 records, each with a checkpoint of its own."""
        for number in range(1000):
            journal.append("verify.valid", {"n": number})
        journal.flush()
        sizes = [0] + [size for (size,) in place.rows("SELECT size FROM checkpoint ORDER BY size")]
        steps = [later - earlier for earlier, later in pairwise(sizes)]
        assert max(steps) <= BATCH_RECORDS
        assert sizes[-1] == 1001

    def test_lazy_records_are_not_forgotten(self, journal):
        """Records that nobody waits for are committed without anybody's help."""
        seqs = [journal.append("trace", {"n": n}, lazy=True) for n in range(3)]
        waiting = Waiting()
        journal.append("trace", {}, lazy=True, done=waiting)
        assert waiting.wait()[0].seq == seqs[-1] + 1
        assert journal.size == seqs[-1] + 2

    def test_a_record_that_somebody_waits_for_takes_the_lazy_ones_along(self, place, journal):
        """A held record goes with the first one that is not, in order."""
        lazy = journal.append("trace", {}, lazy=True)
        waiting = Waiting()
        urgent = journal.append("verify.valid", {}, done=waiting)
        waiting.wait()
        assert [record.seq for record in journal.read(lazy)] == [lazy, urgent]

    def test_many_threads(self, place, journal):
        """Appends from many threads get different numbers, and the file has each record at its number."""
        numbers = {}

        def run(thread):
            for count in range(50):
                numbers[journal.append("verify.valid", {"thread": thread, "count": count})] = (thread, count)

        threads = [threading.Thread(target=run, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        journal.flush()
        found = {record.seq: (record.data["thread"], record.data["count"]) for record in journal.read(1)}
        assert found == numbers
        assert sorted(numbers) == list(range(1, 401))

    def test_asynchronously(self, journal):
        """append_async takes its number at once, in order, and its future gets the receipt."""

        async def run():
            futures = [journal.append_async("verify.valid", {"n": n}) for n in range(100)]
            return await asyncio.gather(*futures)

        receipts = asyncio.run(run())
        assert [receipt.seq for receipt in receipts] == list(range(1, 101))

    def test_cancelled_and_abandoned_waiters(self, journal):
        """A cancelled future, or a loop that is gone, stops neither the record nor the journal."""

        async def run():
            journal.append_async("verify.valid", {}).cancel()
            journal.append_async("verify.valid", {}, lazy=True)

        asyncio.run(run())
        assert journal.flush().seq == 2
        assert journal.available

    def test_callback_that_raises(self, journal):
        """A callback's fault is its own: others are called, and the journal goes on."""
        waiting = Waiting()

        def broken(_):
            raise RuntimeError("broken")

        journal.append("verify.valid", {}, done=broken)
        journal.append("verify.valid", {}, done=waiting)
        waiting.wait()
        assert journal.available

    def test_one_call_after_each_commit(self, place, journal):
        """Who asked for it hears of every group once, after those who wait for its records."""
        heard = []
        ended = threading.Event()

        def on_group(receipt):
            heard.append(receipt)
            if receipt.size == 101:
                ended.set()

        journal.call_after_commit(on_group)
        for number in range(99):
            journal.append("trace", {"n": number}, lazy=True)
        journal.append("verify.valid", {}, done=heard.append)
        assert ended.wait(timeout=30)
        assert [row[0] for row in place.rows("SELECT size FROM checkpoint WHERE size > 1 ORDER BY size")] == [
            receipt.size for receipt in heard if receipt is not heard[-2]
        ]
        assert heard[-2] == heard[-1] == Receipt(100, 101, journal.checkpoint)

    def test_call_after_a_commit_that_raises(self, journal):
        """A fault of the one who hears of groups does not stop the writer."""

        def on_group(receipt):
            raise RuntimeError

        journal.call_after_commit(on_group)
        for _ in range(2):
            journal.append("trace", {})
            assert journal.flush().size == journal.size

    def test_callback_that_waits_for_the_journal(self, journal):
        """A callback that would wait for itself is refused instead."""
        refused = Waiting()

        def waits(_):
            for wait in (journal.flush, journal.close):
                try:
                    wait()
                except UsageError as error:
                    refused(error.code)

        journal.append("verify.valid", {}, done=waits)
        assert refused.wait(2) == ["journal-callback"] * 2
        assert journal.available

    def test_writer_that_stops(self, place, monkeypatch):
        """Should the writer thread ever stop, everybody is told and nothing waits for ever."""
        journal = place.open()
        waiting = Waiting()
        monkeypatch.setattr(journal._writer, "_write", lambda batch: 1 / 0)
        journal.append("verify.valid", {}, done=None)
        with pytest.raises(StorageError) as caught:
            journal.flush()
        assert caught.value.code == "audit-unavailable"
        with pytest.raises(StorageError):
            journal.append("verify.valid", {}, done=waiting)
        with pytest.raises(StorageError):
            journal.close()

    def test_queue_is_bounded(self, journal, monkeypatch):
        """As many records wait as the limit says; the next one is refused and takes no number."""
        monkeypatch.setattr(writer, "MAX_WAITING_RECORDS", 3)
        with journal._writer.lock:
            journal._writer._queue.extend([None] * 3)
            assert len(journal._writer._queue) == 3
            with pytest.raises(StorageError) as caught:
                journal._writer.require_available()
            journal._writer._queue.pop()
            assert journal._writer.require_available() == 1
            journal._writer._queue.clear()
        assert caught.value.code == "audit-unavailable"


class TestBodies:
    def test_body_and_its_salted_digest(self, place, journal):
        """The record has SHA-256 of salt and body, length and media type; the body lies beside it."""
        seq = journal.append(
            "trace", {}, bodies=[Body("arguments", b'{"a":1}'), Body("note", b"x", "text/plain")]
        )
        journal.flush()
        (record,) = journal.read(seq)
        rows = {part: (salt, data) for part, salt, data in place.rows("SELECT part, salt, bytes FROM body")}
        for reference in record.bodies:
            salt, data = rows[reference.part]
            assert len(salt) == 32
            assert reference.sha256 == hashlib.sha256(salt + data).hexdigest()
            assert reference.length == len(data)
        assert [reference.media_type for reference in record.bodies] == ["application/json", "text/plain"]
        assert journal.body(seq, "arguments") == b'{"a":1}'
        assert journal.body(seq, "other") is None

    def test_erase(self, place, journal):
        """Erasing takes salt and bytes away and leaves an erasure record that names the records."""
        seqs = [journal.append("trace", {}, bodies=[Body("content", b"secret %d" % n)]) for n in range(5)]
        waiting = Waiting()
        journal.append("trace", {})
        erasure = journal.erase([seqs[0], seqs[1], seqs[3]], reason="sealed", done=waiting)
        assert waiting.wait()[0].seq == erasure
        assert [journal.body(seq, "content") for seq in seqs] == [None, None, b"secret 2", None, b"secret 4"]
        (record,) = journal.read(erasure)
        assert record.type == "erasure"
        assert record.data == {"seqs": [[1, 2], [4, 4]], "reason": "sealed"}
        assert place.rows("SELECT count(*) FROM body") == [(5,)]

    def test_erased_bytes_are_in_no_file(self, place):
        """After an erasure and the end of the process the content is nowhere in the directory."""
        canary = b"canary-8a1f-that-must-vanish"
        with place.open() as journal:
            seqs = [journal.append("trace", {}, bodies=[Body("content", canary * 300)]) for _ in range(20)]
            journal.flush()
            assert any(canary in path.read_bytes() for path in place.directory.iterdir())
            journal.erase(seqs)
        assert not any(canary in path.read_bytes() for path in place.directory.iterdir())

    def test_erase_nothing(self, journal):
        """Nothing to erase is no record."""
        assert journal.erase([]) is None
        assert journal.flush().size == 1

    def test_erase_many_ranges(self, journal):
        """More ranges than one erasure record names are spread over several; done comes with the last."""
        seqs = [
            journal.append("trace", {}, bodies=[Body("c", b"x")] if n % 2 else [], lazy=True)
            for n in range(4100)
        ]
        waiting = Waiting()
        last = journal.erase(seqs[1::2], done=waiting)
        assert waiting.wait()[0].seq == last
        erasures = [record for record in journal.read(4101) if record.type == "erasure"]
        assert len(erasures) == 3
        assert sum(len(record.data["seqs"]) for record in erasures) == 2050
        assert all(journal.body(seq, "c") is None for seq in seqs[1::100])

    def test_two_bodies_of_one_part(self, journal):
        """A part name is unique in a record."""
        with pytest.raises(UsageError) as caught:
            journal.append("trace", {}, bodies=[Body("a", b""), Body("a", b"")])
        assert caught.value.code == "record-body"

    def test_largest_body_and_most_bodies(self, journal, monkeypatch):
        """A body of the largest size and the largest number of bodies are taken, one more is refused."""
        monkeypatch.setattr(records, "MAX_BODY_BYTES", 100)
        journal.append("trace", {}, bodies=[Body(str(n), b"x" * 100) for n in range(records.MAX_BODIES)])
        for bad in ([Body("a", b"x" * 101)], [Body(str(n), b"") for n in range(records.MAX_BODIES + 1)]):
            with pytest.raises(UsageError) as caught:
                journal.append("trace", {}, bodies=bad)
            assert caught.value.code == "record-body"

    def test_bodies_are_in_no_repr(self):
        """A body's content shows in no repr."""
        assert "secret" not in repr(Body("a", b"secret"))


class TestReading:
    def test_pages(self, journal):
        """Reading pages from a number on, in order, up to what is committed."""
        for number in range(30):
            journal.append("verify.valid", {"n": number})
        journal.flush()
        assert [record.seq for record in journal.read(5, 10)] == list(range(5, 15))
        assert journal.read(31) == []
        assert journal.read(30, 1)[0].data == {"n": 29}

    @pytest.mark.parametrize(("start", "limit"), [(-1, 1), (0, 0), (0, READ_RECORDS + 1)])
    def test_bad_ranges(self, journal, start, limit):
        """A negative start, an empty page and one beyond the limit are usage errors."""
        with pytest.raises(UsageError) as caught:
            journal.read(start, limit)
        assert caught.value.code == "read-range"

    def test_largest_page(self, journal):
        """A page of exactly the limit is read."""
        assert len(journal.read(0, READ_RECORDS)) == 1


class TestFile:
    def test_modes(self, place, journal):
        """Directory 0700 and files 0600, whatever the umask of the process."""
        journal.append("verify.valid", {})
        journal.flush()
        assert place.directory.stat().st_mode & 0o777 == 0o700
        assert place.marks.stat().st_mode & 0o777 == 0o700
        for path in [*place.directory.iterdir(), *place.marks.iterdir()]:
            assert path.stat().st_mode & 0o777 == 0o600, path.name

    def test_pragmas(self, place, journal):
        """WAL with a full sync, foreign keys, ids of our own."""
        get = lambda name: journal._store._connection.execute(f"PRAGMA {name}").fetchone()[0]
        assert [get(name) for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema")] == [
            "wal", 2, 1, 0,
        ]  # fmt: skip
        assert get("application_id") == schema.APPLICATION_ID
        assert get("user_version") == schema.SCHEMA_VERSION

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE record SET bytes = x'00'",
            "DELETE FROM record",
            "INSERT INTO record VALUES (99, x'00')",
            "INSERT OR REPLACE INTO record VALUES (0, x'00')",
            "UPDATE node SET hash = zeroblob(32)",
            "DELETE FROM node",
            "INSERT OR REPLACE INTO node VALUES (0, 0, zeroblob(32))",
            "INSERT INTO node VALUES (9, 9, x'00')",
            "UPDATE checkpoint SET note = ''",
            "DELETE FROM checkpoint",
            "INSERT INTO body VALUES (99, 'a', x'00', x'00')",
            "INSERT INTO record VALUES (1, 'text')",
        ],
    )
    def test_triggers_stop_mistakes(self, place, statement):
        """Updates, deletes, gaps and bodies of no record are aborted by the file itself."""
        place.fill(0)
        connection = schema.open_writer(place.file, is_durable=True)
        before = connection.execute("SELECT count(*) FROM record").fetchone()
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        assert connection.execute("SELECT count(*) FROM record").fetchone() == before
        connection.close()

    def test_key_of_another_kind(self, place):
        """A journal is signed with Ed25519; another key is refused before a file is made."""
        with pytest.raises(KeyAccessError) as caught:
            place.open(signer=PrivateKeySigner(generate_private_key("p256")))
        assert caught.value.code == "key-alg"
        assert not place.file.exists()

    @pytest.mark.parametrize("name", ["a b", "https://a.example/x", "a+b", ""])
    def test_bad_name(self, place, name):
        """A bad name is a usage error, and no file is made."""
        with pytest.raises(UsageError) as caught:
            place.open(name=name)
        assert caught.value.code == "journal-name"
        assert not place.file.exists()

    def test_path_with_odd_characters(self, place, tmp_path):
        """A path may hold what has a meaning in a URI."""
        place.base = tmp_path / "odd ?#%&;=ü"
        place.base.mkdir()
        place.fill(3)
        assert place.verify(place.high_water.read_bytes()).verdict == "verified"

    def test_draft_of_a_crash_is_no_obstacle(self, place):
        """A half-made file of a crash at creation is replaced."""
        place.directory.mkdir(mode=0o700)
        (place.directory / "journal-1.db.new").write_bytes(b"half")
        place.fill(1)
        assert not (place.directory / "journal-1.db.new").exists()


class TestClose:
    def test_nothing_after_the_end(self, place):
        """After close nothing is taken or read, and closing again is free."""
        journal = place.open()
        journal.close()
        journal.close()
        for use in (lambda: journal.append("a", {}), journal.read, lambda: journal.body(0, "a")):
            with pytest.raises(StorageError) as caught:
                use()
            assert caught.value.code == "journal-closed"
        assert not journal.available

    def test_close_writes_what_waits(self, place):
        """Everything appended before close is on disk after it, held records included."""
        journal = place.open()
        for number in range(500):
            journal.append("trace", {"n": number}, lazy=True)
        journal.close()
        assert place.rows("SELECT count(*) FROM record") == [(502,)]

    def test_close_moves_the_high_water(self, place):
        """After close the high-water is the journal's last checkpoint."""
        journal = place.open()
        journal.append("verify.valid", {})
        journal.close()
        assert place.high_water.read_text() == journal.checkpoint
        assert journal.size == 3

    def test_threads_end(self, place):
        """No thread of a journal outlives its close."""
        place.fill(10)
        names = {thread.name for thread in threading.enumerate()}
        assert not names & {"journal-writer", "journal-marks"}

    def test_receipt_is_a_plain_value(self):
        """A receipt is seq, size and note."""
        assert Receipt(1, 2, "n")._asdict() == {"seq": 1, "size": 2, "note": "n"}


@settings(max_examples=30)
@given(st.lists(st.integers(-5, 40), max_size=60))
def test_ranges(numbers):
    """Closed ranges hold exactly the numbers, without overlap."""
    ranges = records.ranges_of(numbers)
    assert [n for first, last in ranges for n in range(first, last + 1)] == sorted(set(numbers))
