"""A journal that cannot be written: nobody is told that a record is safe, nothing is dropped, and it recovers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from onrecord.base.errors import OnrecordError, StorageError
from onrecord.base.keys import KeyAccessError, PrivateKeySigner, Signer
from onrecord.record.ledger import intake, writer
from onrecord.record.ledger.journal import Body, Receipt
from onrecord.record.ledger.store import Entry
from support.journals import gate

MARGIN = 65_536


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch):
    """Retries come quickly, so that no test waits a second."""
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.01)


@contextlib.contextmanager
def full_disk(path, margin=0):
    """No file of this process may grow beyond the present size of the largest one, as on a full disk."""
    size = max((file.stat().st_size for file in path.rglob("*") if file.is_file()), default=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + margin, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Results:
    def __init__(self):
        self.results = []
        self._called = threading.Semaphore(0)

    def __call__(self, result):
        self.results.append(result)
        self._called.release()

    def next(self):
        assert self._called.acquire(timeout=30)
        return self.results[-1]


def wait_until(condition):
    """Wait, without a bound on the time, until something is so; the test run's own timeout ends it."""
    while not condition():
        threading.Event().wait(0.005)


def fail_now(journal):
    """Append until the journal refuses; return what the last waiter was told and the number of appended records."""
    results = Results()
    while True:
        seq = journal.append("verify.valid", {"filler": "x" * 2000}, done=results)
        told = results.next()
        if not isinstance(told, Receipt):
            return told, seq


async def append_for_ever(journal):
    while True:
        await journal.append_async("verify.valid", {"filler": "x" * 3000})


class TestFullDisk:
    @pytest.mark.req("CP-120")
    def test_refused_then_recovered_without_a_gap_in_seq(self, place):
        """On a full disk waiters get audit-unavailable, appends are refused; afterwards seq has no hole."""
        with place.open() as journal:
            with full_disk(place.base, MARGIN):
                told, last = fail_now(journal)
                assert isinstance(told, StorageError)
                assert told.code == "audit-unavailable"
                assert not journal.available
                with pytest.raises(StorageError) as caught:
                    journal.append("verify.valid", {})
                assert caught.value.code == "audit-unavailable"
                assert journal.size == last
            wait_until(lambda: journal.available)
            following = journal.append("verify.valid", {})
            after = journal.append("verify.valid", {})
            journal.flush()
            assert following == last + 1
            kept, first, second = journal.read(last)
        assert kept.data["filler"]
        assert "gap" not in kept.data
        gap = first.data["gap"]
        assert sorted(gap) == ["from", "to"]
        assert kept.time <= gap["to"] <= first.time
        assert second.seq == after
        assert "gap" not in second.data
        report = place.verify(place.high_water.read_bytes())
        assert report.verdict == "verified"
        assert [finding.code for finding in report.findings] == ["write-gap"]

    def test_everybody_who_waits_is_told_at_once(self, place):
        """All waiters, of the group and behind it, get the error once; later commits do not call them again."""
        results = [Results() for _ in range(200)]
        with place.open() as journal:
            with full_disk(place.base):
                for one in results:
                    with contextlib.suppress(StorageError):
                        journal.append("verify.valid", {"filler": "x" * 5000}, done=one)
                wait_until(lambda: not journal.available)
            wait_until(lambda: journal.available)
            journal.flush()
        told = [one.results for one in results if one.results]
        assert told
        assert all(len(one) == 1 for one in told)
        assert any(isinstance(one[0], StorageError) for one in told)

    def test_asynchronous_waiters(self, place):
        """A future gets the error too, and a flush raises it."""

        async def run(journal):
            with full_disk(place.base):
                with pytest.raises(StorageError) as caught:
                    await append_for_ever(journal)
                assert caught.value.code == "audit-unavailable"
                with pytest.raises(StorageError):
                    journal.append_async("verify.valid", {})
                with pytest.raises(StorageError):
                    journal.flush()

        with place.open() as journal:
            asyncio.run(run(journal))
            wait_until(lambda: journal.available)

    def test_close_while_the_disk_is_full(self, place):
        """Close tries once more and then says that records are not safe; the file is whole without them."""
        journal = place.open()
        with full_disk(place.base):
            _, last = fail_now(journal)
            with pytest.raises(StorageError) as caught:
                journal.close()
        assert caught.value.code == "audit-unavailable"
        with place.open() as again:
            assert again.size == last + 1
            assert not again.read(last)[0].data["clean"]

    def test_start_on_a_full_disk(self, place):
        """A start that cannot write its first record is refused, and the next one finds everything whole."""
        place.fill(3)
        with full_disk(place.base / "nothing"), pytest.raises(OnrecordError) as caught:
            place.open()
        assert caught.value.code in ("journal-unwritable", "audit-unavailable", "journal-malformed")
        with place.open() as journal:
            assert journal.size >= 6

    def test_creation_on_a_full_disk(self, place):
        """A journal that cannot be made leaves no file under its name."""
        with full_disk(place.base), pytest.raises(StorageError) as caught:
            place.open()
        assert caught.value.code == "journal-unwritable"
        assert not place.file.exists()
        place.fill(1)

    def test_bodies_and_erasures_wait_too(self, place):
        """Bodies and erasures of a kept group are written when the journal works again."""
        with place.open() as journal:
            first = journal.append("trace", {}, bodies=[Body("content", b"one")])
            journal.flush()
            with full_disk(place.base):
                second = journal.append("trace", {}, bodies=[Body("content", b"x" * 50_000)])
                with contextlib.suppress(StorageError):
                    journal.erase([first])
                wait_until(lambda: not journal.available)
            wait_until(lambda: journal.available)
            if journal.body(first, "content") is not None:
                journal.erase([first])
            journal.flush()
            assert journal.body(second, "content") == b"x" * 50_000
            assert journal.body(first, "content") is None
        assert place.verify(place.high_water.read_bytes()).verdict == "verified"


class TestOtherFaults:
    def test_file_replaced_under_the_writer(self, place):
        """When the name leads to another file nothing is acknowledged any more."""
        journal = place.open()
        journal.append("verify.valid", {})
        journal.flush()
        os.rename(place.file, place.base / "moved.db")
        told, _ = fail_now(journal)
        assert told.code == "audit-unavailable"
        os.rename(place.base / "moved.db", place.file)
        wait_until(lambda: journal.available)
        journal.close()
        assert place.verify(place.high_water.read_bytes()).verdict == "verified"

    def test_log_deleted_under_the_writer(self, place):
        """When the write-ahead log is deleted nothing is acknowledged any more."""
        journal = place.open()
        journal.append("verify.valid", {})
        journal.flush()
        os.unlink(f"{place.file}-wal")
        told, _ = fail_now(journal)
        assert told.code == "audit-unavailable"
        with pytest.raises(StorageError):
            journal.close()

    def test_foreign_writer_holds_the_file(self, place, monkeypatch):
        """A foreign program that holds the file makes the journal fail, not wait for ever."""
        connection = __import__("sqlite3").connect
        monkeypatch.setattr("onrecord.record.ledger.schema.BUSY_SECONDS", 0.05)
        with place.open() as journal:
            other = connection(place.file, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            told, _ = fail_now(journal)
            assert told.code == "audit-unavailable"
            other.execute("ROLLBACK")
            other.close()
            wait_until(lambda: journal.available)

    def test_key_store_that_fails(self, place):
        """A signer that fails makes the journal fail, and the thread lives on, whatever it raises."""

        class Moody(Signer):
            mood = None
            public_key = property(lambda self: place.signer.public_key)
            algs = property(lambda self: place.signer.algs)

            def sign(self, data, *, alg):
                if self.mood is not None:
                    raise self.mood
                return place.signer.sign(data, alg=alg)

        moody = Moody()
        with place.open(signer=moody) as journal:
            for mood in (KeyAccessError("gone", code="key-missing"), RuntimeError("secret detail")):
                moody.mood = mood
                told, _ = fail_now(journal)
                assert told.code == "audit-unavailable"
                assert "secret" not in str(told)
                moody.mood = None
                wait_until(lambda: journal.available)

    def test_high_water_cannot_be_written(self, place):
        """Without its high-water the journal refuses, until it can be written again."""
        with place.open() as journal:
            journal._marks._draft = place.base / "missing" / "draft"
            journal._marks.offer(journal.checkpoint)
            wait_until(lambda: journal._marks.error is not None)
            told, _ = fail_now(journal)
            assert told.code == "audit-unavailable"
            journal._marks._draft = place.marks / ".high-water.new"
            wait_until(lambda: journal.available)


class TestRelaxed:
    def test_intake_full_refuses_and_recovers(self, place, monkeypatch):
        """When the intake cannot take a record, the caller is refused, and the next record names the gap."""
        monkeypatch.setattr(intake, "FILE_BYTES", 65_536)
        with place.open(durability="relaxed") as journal:
            with gate(journal), full_disk(place.base), pytest.raises(StorageError) as caught:
                [journal.append("verify.valid", {"filler": "x" * 3000}) for _ in range(10_000)]
            assert caught.value.code == "audit-unavailable"
            wait_until(lambda: journal.available)
            seq = journal.append("verify.valid", {"after": True})
            journal.flush()
            record = journal.read(seq)[0]
        assert "gap" in record.data
        assert place.verify(place.high_water.read_bytes()).verdict == "verified"

    def test_start_without_room_for_the_intake(self, place):
        """A full disk shows when the relaxed mode starts, not as a signal in the middle."""
        place.fill(1)
        with full_disk(place.base), pytest.raises(StorageError) as caught:
            place.open(durability="relaxed")
        assert caught.value.code == "journal-unwritable"
        place.fill(1, durability="relaxed")

    def test_failed_growth_leaves_the_file_whole(self, tmp_path, monkeypatch):
        """A record that does not fit leaves nothing behind, and the next one is read back."""
        monkeypatch.setattr(intake, "FILE_BYTES", 4096)
        box = intake.Intake(tmp_path)
        box.write(Entry(0, b"first" * 10))
        with full_disk(tmp_path), pytest.raises(StorageError):
            box.write(Entry(1, b"second" * 10_000))
        box.write(Entry(1, b"again"))
        box.close()
        entries = intake.recover(tmp_path, size=0).entries
        assert [entry.bytes for entry in entries] == [b"first" * 10, b"again"]

    def test_database_fails_while_the_intake_works(self, place):
        """When only the database fails, records already taken are kept and replayed by the next process."""
        journal = place.open(durability="relaxed")
        taken = [journal.append("verify.valid", {"n": 0})]
        journal.flush()
        os.rename(place.file, place.base / "moved.db")
        with contextlib.suppress(StorageError):
            for number in range(200):
                seq = journal.append("verify.valid", {"n": number + 1})
                taken.append(seq)
        wait_until(lambda: not journal.available)
        with pytest.raises(StorageError):
            journal.close()
        os.rename(place.base / "moved.db", place.file)
        with place.open() as again:
            found = [record.data["n"] for record in again.read(1) if record.type == "verify.valid"]
            opened = again.read(again.size - 1)[0].data
        assert found == list(range(len(taken)))
        assert opened["replayed"] > 0
        assert opened["lost"] == 0


@pytest.mark.root
class TestSmallDisk:
    @pytest.fixture
    def small_disk(self, tmp_path):
        path = tmp_path / "disk"
        path.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "onrecord-test", str(path)]
        if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("cannot mount a tmpfs here")
        yield path
        subprocess.run(["umount", "-l", str(path)], check=True)

    def test_really_full(self, place, small_disk):
        """On a full tmpfs nothing is acknowledged that is not stored, and room makes it work again."""
        place.base = small_disk
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"\0" * 200_000)
        acknowledged = []
        with place.open() as journal:
            results = Results()
            while True:
                seq = journal.append("verify.valid", {"filler": "x" * 3000}, done=results)
                told = results.next()
                if not isinstance(told, Receipt):
                    break
                acknowledged.append(seq)
            assert told.code == "audit-unavailable"
            ballast.unlink()
            wait_until(lambda: journal.available)
            journal.append("verify.valid", {})
            journal.flush()
            numbers = [record.seq for record in journal.read()]
        assert set(acknowledged) <= set(numbers)
        assert numbers == list(range(len(numbers)))

    def test_read_only(self, place, small_disk):
        """On a read-only file system a running journal refuses, and no new one starts."""
        place.base = small_disk
        journal = place.open()
        journal.append("verify.valid", {})
        journal.flush()
        if subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], capture_output=True).returncode:
            with pytest.raises(
                OnrecordError
            ):  # files are open for writing: the journal still runs, so end it
                journal.append("a", {"n": object()})
            journal.close()
            subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True, capture_output=True)
        else:
            told, _ = fail_now(journal)
            assert told.code == "audit-unavailable"
            with pytest.raises(StorageError):
                journal.close()
        with pytest.raises(OnrecordError) as caught:
            place.open()
        assert caught.value.code in ("journal-unwritable", "lock-unusable")
        report = place.verify((place.high_water).read_bytes())
        assert report.verdict == "verified"


def test_ordinary_user_and_read_only_directory(place, ordinary_uid):
    """A user who may read the file but not write it is refused with a code, and can verify it all the same."""
    place.fill(3)
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from onrecord.base.errors import OnrecordError\n"
        "from onrecord.base.keys import PrivateKeySigner, generate_private_key\n"
        "from onrecord.record.ledger.journal import Journal\n"
        "from onrecord.record.ledger.verify import verify_journal\n"
        "base, uid = Path(sys.argv[1]), int(sys.argv[2])\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(uid); os.setuid(uid)\n"
        "signer = PrivateKeySigner(generate_private_key('ed25519'))\n"
        "report = verify_journal([base / 'authority/journal-1.db'])\n"
        "print(report.axes['records'].result, report.exit_code)\n"
        "try: Journal.open(base / 'authority', signer=signer, name='x', marks=base / 'marks')\n"
        "except OnrecordError as error: print(error.code)\n"
    )
    readable = Path(os.path.dirname(place.base)) / "readable"
    shutil.copytree(place.base, readable)
    for path in readable.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    readable.chmod(0o555)
    parents = [readable, *readable.parents]
    if any(not parent.stat().st_mode & 0o001 for parent in parents) and os.getuid() == 0:
        for parent in parents:
            if parent.stat().st_uid == os.getuid() and "pytest" in str(parent):
                parent.chmod(0o755 if parent != readable else 0o555)
    child = subprocess.run(
        [sys.executable, "-c", program, readable, str(ordinary_uid)], capture_output=True, text=True
    )
    for path in readable.rglob("*"):
        path.chmod(0o755)
    readable.chmod(0o755)
    if "ModuleNotFoundError" in child.stderr or "PermissionError" in child.stderr:
        pytest.skip("another uid cannot run this interpreter or reach this checkout")
    assert child.stdout.split() == ["verified", "3", "lock-unusable"], child.stderr


def test_signer_never_shows(place):
    """No error of a failing journal shows key or record content."""
    with place.open() as journal, full_disk(place.base):
        results = Results()
        journal.append("verify.valid", {"secret": "canary-71c2" * 400}, done=results)
        told = results.next()
        text = (
            f"{told!r} {told} {getattr(told, 'hint', '')} {told.__cause__!r}"
            if isinstance(told, Exception)
            else ""
        )
    assert "canary" not in text
    assert "PrivateKey" not in text
    assert isinstance(place.signer, PrivateKeySigner)
