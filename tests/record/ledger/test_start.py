"""Starting on a file that is there: what is refused, and with which code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from onrecord.base.errors import LogError, OnrecordError, StorageError, UsageError
from onrecord.record.ledger import recovery


def refusal(place, **options):
    with pytest.raises(OnrecordError) as caught:
        place.open(**options).close()
    return caught.value


def bytes_of(place):
    return {path.name: path.read_bytes() for path in place.directory.glob("journal-*")}


class TestRollback:
    def test_restored_old_file(self, place, tmp_path):
        """An older state of the file is refused, and nothing is written to it."""
        place.fill(3)
        shutil.copytree(place.directory, tmp_path / "old")
        place.fill(3)
        shutil.rmtree(place.directory)
        shutil.copytree(tmp_path / "old", place.directory)
        before = bytes_of(place)
        error = refusal(place)
        assert (error.code, error.exit_code) == ("log-truncated", 1)
        assert place.rows("SELECT count(*) FROM record") == [(5,)]
        assert bytes_of(place)["journal-1.db"] == before["journal-1.db"]

    def test_file_deleted(self, place):
        """A deleted file is not made anew while the high-water knows of it."""
        place.fill(3)
        shutil.rmtree(place.directory)
        assert refusal(place).code == "log-truncated"
        assert not place.file.exists()

    def test_file_and_high_water_deleted(self, place):
        """With both deleted a new journal starts, and the caller's checkpoint shows it."""
        kept = place.fill(9)
        shutil.rmtree(place.directory)
        shutil.rmtree(place.marks)
        place.fill(2)
        report = place.verify(kept)
        assert (report.exit_code, report.outcome) == (1, "log-truncated")
        place.fill(20)
        report = place.verify(kept)
        assert (report.exit_code, report.outcome) == (1, "log-rewritten")

    def test_another_journal_of_the_same_key(self, place, tmp_path):
        """A journal with another history under the same name is refused as rewritten."""
        other = place.copy("other")
        other.fill(12)
        place.fill(3)
        shutil.rmtree(place.directory)
        shutil.copytree(other.directory, place.directory)
        assert refusal(place).code == "log-rewritten"

    def test_high_water_of_another_name(self, place, tmp_path):
        """A high-water of another journal is `checkpoint-other-log`."""
        other = place.copy("other")
        other.name = "other.example/recorder"
        other.fill(3)
        place.fill(3)
        shutil.copy(other.high_water, place.high_water)
        assert refusal(place).code == "checkpoint-other-log"

    def test_high_water_behind(self, place):
        """A high-water that is behind, as after a crash, is accepted and noted in the record."""
        place.fill(3)
        old = place.high_water.read_bytes()
        place.fill(3)
        place.high_water.write_bytes(old)
        with place.open() as journal:
            (record,) = journal.read(10)
        assert (record.type, record.data["high_water"]) == ("journal.open", "behind")

    def test_high_water_missing(self, place):
        """A missing high-water cannot be told from a first start of old; the record says that it was absent."""
        place.fill(3)
        place.high_water.unlink()
        with place.open() as journal:
            assert journal.read(journal.size - 1)[0].data["high_water"] == "absent"
        assert place.high_water.exists()

    @pytest.mark.parametrize("content", [b"", b"garbage", b"a\n1\n", b"\xff" * 100, b"x" * 100_000])
    def test_high_water_damaged(self, place, content):
        """A damaged high-water is refused and named, and never overwritten."""
        place.fill(3)
        place.high_water.write_bytes(content)
        assert refusal(place).code == "high-water-malformed"
        assert place.high_water.read_bytes() == content

    def test_high_water_edited(self, place):
        """An edited size in the high-water is `checkpoint-signature-invalid`."""
        place.fill(3)
        place.high_water.write_text(place.high_water.read_text().replace("\n5\n", "\n4\n"))
        assert refusal(place).code == "checkpoint-signature-invalid"

    def test_high_water_is_a_link(self, place):
        """A symbolic link in the place of the high-water is not followed."""
        place.fill(3)
        target = place.base / "elsewhere"
        os.rename(place.high_water, target)
        place.high_water.symlink_to(target)
        assert refusal(place).code == "marks-unreadable"

    def test_high_water_is_a_pipe(self, place):
        """A pipe in the place of the high-water is refused; the start does not wait for a writer."""
        place.fill(3)
        place.high_water.unlink()
        os.mkfifo(place.high_water)
        assert refusal(place).code == "high-water-malformed"

    def test_restored_together_with_its_high_water(self, place, tmp_path):
        """Where both are restored, the start cannot know; the caller's checkpoint does."""
        place.fill(3)
        old = place.copy("old")
        kept = place.fill(3)
        old.fill(0)
        assert old.verify(kept).outcome == "log-truncated"


class TestChangedFile:
    def prepared(self, place, count=5):
        place.fill(count)
        return place

    def test_replaced_record(self, place):
        """A replaced record among the last 64 is refused."""
        self.prepared(place).tamper(
            "UPDATE record SET bytes = CAST(replace(CAST(bytes AS TEXT), '\"n\":2', '\"n\":7') AS BLOB) WHERE seq = 3"
        )
        assert refusal(place).code == "log-rewritten"

    def test_swapped_records(self, place):
        """Two swapped records are refused as out of sequence."""
        self.prepared(place).tamper(
            "UPDATE record SET seq = 100 WHERE seq = 3",
            "UPDATE record SET seq = 3 WHERE seq = 4",
            "UPDATE record SET seq = 4 WHERE seq = 100",
        )
        assert refusal(place).code == "record-sequence"

    def test_removed_record(self, place):
        """A record removed from the middle leaves a gap that is refused."""
        self.prepared(place).tamper("DELETE FROM record WHERE seq = 2")
        assert refusal(place).code == "record-sequence"

    def test_removed_record_far_back(self, place, monkeypatch):
        """A gap before the last 64 records is found as well."""
        self.prepared(place, 200).tamper("DELETE FROM record WHERE seq = 20")
        assert refusal(place).code == "record-sequence"

    def test_cut_tail(self, place):
        """A tail cut exactly to an older checkpoint is refused by the high-water."""
        self.prepared(place)
        size = place.rows("SELECT size FROM checkpoint ORDER BY size DESC LIMIT 1 OFFSET 1")[0][0]
        place.tamper(
            f"DELETE FROM record WHERE seq >= {size}",
            f"DELETE FROM checkpoint WHERE size > {size}",
            f"DELETE FROM node WHERE (idx + 1) * (1 << level) > {size}",
        )
        assert refusal(place).code == "log-truncated"

    def test_cut_records_only(self, place):
        """Records cut with their checkpoint still there are refused."""
        self.prepared(place).tamper("DELETE FROM record WHERE seq >= 4")
        assert refusal(place).code == "log-truncated"

    def test_record_without_checkpoint(self, place):
        """A record put behind the newest checkpoint is refused."""
        self.prepared(place).tamper(
            "INSERT INTO record SELECT max(seq) + 1, bytes FROM record",
        )
        assert refusal(place).code == "log-rewritten"

    def test_changed_node(self, place):
        """A changed hash of the frontier gives another root."""
        self.prepared(place).tamper("UPDATE node SET hash = zeroblob(32) WHERE level = 2 AND idx = 0")
        assert refusal(place).code == "log-rewritten"

    def test_missing_node(self, place):
        """A missing hash is refused."""
        self.prepared(place).tamper("DELETE FROM node WHERE level = 2")
        assert refusal(place).code == "log-rewritten"

    def test_extra_leaf(self, place):
        """A leaf of no record is refused."""
        self.prepared(place).tamper("INSERT INTO node VALUES (0, 50, zeroblob(32))")
        assert refusal(place).code == "log-rewritten"

    def test_no_checkpoints(self, place):
        """A file without checkpoints is refused."""
        self.prepared(place).tamper("DELETE FROM checkpoint")
        assert refusal(place).code == "log-rewritten"

    def test_no_records(self, place):
        """A file without records is refused."""
        self.prepared(place).tamper("DELETE FROM record")
        assert refusal(place).code == "log-truncated"

    def test_checkpoint_of_another_key(self, place, other_signer):
        """A start with another key than the journal's is refused, for the high-water and for the file."""
        self.prepared(place)
        assert refusal(place, signer=other_signer).code == "checkpoint-key-unknown"
        place.high_water.unlink()
        assert refusal(place, signer=other_signer).code == "checkpoint-key-unknown"

    def test_edited_checkpoint(self, place):
        """An edited newest checkpoint is refused."""
        self.prepared(place).tamper(
            "UPDATE checkpoint SET note = replace(note, 'host.example', 'host.examplf')"
            " WHERE size = (SELECT max(size) FROM checkpoint)"
        )
        assert refusal(place).code == "checkpoint-other-log"

    @pytest.mark.parametrize(
        "statement",
        [
            "CREATE TABLE extra(a)",
            "CREATE TRIGGER quiet BEFORE INSERT ON record BEGIN SELECT raise(IGNORE); END",
            "DROP TABLE outbox",
            "CREATE VIEW hidden AS SELECT 1",
        ],
    )
    def test_changed_structure(self, place, statement):
        """A table, trigger or view more or less is refused."""
        self.prepared(place).tamper(statement)
        assert refusal(place).code == "journal-schema"

    def test_dropped_trigger(self, place):
        """A trigger that is gone is refused."""
        self.prepared(place)
        connection = __import__("sqlite3").connect(place.file)
        connection.execute("DROP TRIGGER record_update")
        connection.close()
        assert refusal(place).code == "journal-schema"

    @pytest.mark.parametrize("pragma", ["application_id = 1", "user_version = 2"])
    def test_other_ids(self, place, pragma):
        """A file of another application or version is refused."""
        self.prepared(place).tamper(f"PRAGMA {pragma}")
        assert refusal(place).code == "journal-malformed"

    @pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"x" * 5000])
    def test_no_database(self, place, content):
        """A file that is no database is refused, and it keeps its bytes."""
        self.prepared(place)
        place.file.write_bytes(content)
        assert refusal(place).code == "journal-malformed"
        assert place.file.read_bytes() == content

    def test_link(self, place):
        """A symbolic link in the place of the journal is refused."""
        self.prepared(place)
        os.rename(place.file, place.base / "elsewhere.db")
        place.file.symlink_to(place.base / "elsewhere.db")
        assert refusal(place).code == "journal-unwritable"

    def test_refusal_leaves_no_lock(self, place):
        """After a refused start the lock is free, and the refusal is the same again."""
        self.prepared(place).tamper("DELETE FROM record WHERE seq = 2")
        assert refusal(place).code == refusal(place).code == "record-sequence"

    def test_window_of_the_gap_check(self):
        """The rows counted at start cover far more than one transaction."""
        assert recovery.CHECKED_ROWS > recovery.CHECKED_LEAVES == 64


class TestLock:
    def test_second_journal_in_this_process(self, place):
        """A second journal on the same directory is refused with the holder's pid."""
        with place.open():
            error = refusal(place)
        assert (error.code, error.exit_code) == ("already-running", 2)
        assert isinstance(error, UsageError)
        assert str(os.getpid()) in str(error)

    def test_second_process(self, place):
        """A second process exits at once with status 2, and the first goes on."""
        program = (
            "import sys; from pathlib import Path\n"
            "from onrecord.base.errors import OnrecordError\n"
            "from onrecord.base.keys import PrivateKeySigner, generate_private_key\n"
            "from onrecord.record.ledger.journal import Journal\n"
            "try: Journal.open(Path(sys.argv[1]), signer=PrivateKeySigner(generate_private_key('ed25519')),"
            " name='x', marks=Path(sys.argv[2]))\n"
            "except OnrecordError as error: print(error.code, error); sys.exit(error.exit_code)\n"
        )
        with place.open() as journal:
            child = subprocess.run(
                [sys.executable, "-c", program, place.directory, place.marks], capture_output=True, text=True
            )
            journal.append("verify.valid", {})
            journal.flush()
        assert child.returncode == 2
        assert child.stdout.startswith("already-running")
        assert str(os.getpid()) in child.stdout

    def test_lock_is_free_after_the_end(self, place):
        """After close another journal may open."""
        place.open().close()
        place.open().close()


class TestDirectories:
    def test_directory_is_a_file(self, place):
        """A file in the place of the directory is named, not an OSError."""
        place.directory.write_bytes(b"")
        error = refusal(place)
        assert isinstance(error, StorageError)
        assert error.code == "journal-unwritable"

    def test_marks_in_a_missing_parent(self, place):
        """A marks directory whose parent is missing is named."""
        error = refusal(place, marks=place.base / "a" / "b")
        assert error.code == "marks-unreadable"

    def test_newest_epoch_counts(self, place):
        """The file with the highest epoch is opened; names that are none of ours are left alone."""
        place.fill(1)
        for name in ("journal-0.db", "journal-x.db", "journal-2.db.bak", "journal-02.db"):
            (place.directory / name).write_bytes(b"x")
        with place.open() as journal:
            assert journal.path == place.file


def test_refusals_are_log_errors(place):
    """A refused history is a LogError, so that a supervisor does not start it again."""
    place.fill(1)
    place.tamper("DELETE FROM record WHERE seq = 1")
    assert isinstance(refusal(place), LogError)
