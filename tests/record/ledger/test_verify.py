"""Verification of journals: every attack has its code, and what cannot be told is said."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onrecord.base.dates import ManualClock
from onrecord.base.errors import UsageError
from onrecord.base.findings import known
from onrecord.record.ledger import audit, schema
from onrecord.record.ledger._c2sp_note import NoteKey
from onrecord.record.ledger.catalogue import CODES
from onrecord.record.ledger.checkpoints import Checkpoint, CheckpointSigner
from onrecord.record.ledger.journal import Body
from onrecord.record.ledger.verify import verify_journal, verify_log
from support.data import shared_data
from support.journals import Place

AXES = [
    "structure", "records", "tree", "checkpoint-signatures", "floor", "history", "order", "sessions", "bodies",
    "time-evidence", "witnesses",
]  # fmt: skip


def codes(report):
    return [finding.code for finding in report.findings]


def leaf_cases():
    cases = json.loads(shared_data("cose", "onrecord", "cases.json").read_text())["cases"]
    return [case for case in cases if case["check"] == "log"]


class TestSharedCases:
    def test_there_are_four(self):
        """The shared data has four cases of this kind."""
        assert len(leaf_cases()) == 4

    def test_as_the_manifest_says(self):
        """Each case of the shared data gives the listed answer and code."""
        folder = shared_data("cose", "onrecord")
        for case in leaf_cases():
            leaves = [bytes.fromhex(line) for line in (folder / case["leaves"]).read_text().split()]
            key = NoteKey.read((folder / case["vkey"]).read_text())
            report = verify_log(
                leaves,
                origin=case["origin"],
                checkpoints=[(folder / note).read_bytes() for note in case["notes"]],
                trusted={"vkey": Ed25519PublicKey.from_public_bytes(key.public_key)},
            )
            assert (report.verdict == "verified") == case["expect"]["ok"], case["name"]
            if case["expect"]["code"]:
                assert report.outcome == case["expect"]["code"], case["name"]


class TestWhole:
    def test_verified(self, place):
        """A whole journal with a checkpoint from outside is verified, with a count on each axis that was looked at."""
        kept = place.fill(100)
        report = place.verify(kept)
        document = report.to_json()
        assert (report.verdict, report.exit_code) == ("verified", 0)
        assert list(document["axes"]) == AXES
        assert document["axes"]["records"] == {
            "result": "verified", "count": 102, "grounds": "leaf hash of each record against the stored one",
        }  # fmt: skip
        assert document["axes"]["floor"]["count"] == 1
        assert document["axes"]["witnesses"]["result"] == "not-checked"
        assert document["findings"] == []

    def test_not_checked_on_success_too(self, place):
        """Success says what no journal can show, and what comes later."""
        report = place.verify(place.fill(1))
        assert report.not_checked == (
            "completeness",
            "content-truth",
            "time-evidence",
            "witnesses",
            "heartbeats",
        )

    def test_nothing_seen_is_not_verified(self, place):
        """An axis with a count of zero is never verified."""
        report = place.verify(place.fill(1))
        assert all(axis.count for axis in report.axes.values() if axis.result == "verified")

    def test_while_it_is_being_written(self, place):
        """A live journal verifies in the state of one moment, and the writer is not disturbed."""
        with place.open() as journal:
            note = None
            for number in range(300):
                journal.append("verify.valid", {"n": number})
                if number % 100 == 99:
                    note = journal.flush().note
                    assert place.verify(note).verdict == "verified"
            assert journal.available

    def test_changes_nothing(self, place):
        """Verification leaves the file's bytes as they are."""
        kept = place.fill(10)
        before = place.file.read_bytes()
        place.verify(kept)
        assert place.file.read_bytes() == before

    def test_several_checkpoints(self, place):
        """Each checkpoint that was kept is a prefix; their number is counted."""
        notes = [place.fill(5) for _ in range(3)]
        report = place.verify(*notes)
        assert report.axes["floor"].count == 3
        assert report.verdict == "verified"

    def test_several_files(self, place, tmp_path, signer):
        """Several journals are one report; each needs a checkpoint of its own."""
        other = Place(tmp_path / "other", signer, name="host.example/recorder")
        other.base.mkdir()
        one, two = place.fill(3), other.fill(4)
        both = [place.file, other.file]
        assert verify_journal(both, checkpoints=[one, two], trusted=place.trusted).verdict == "verified"
        report = verify_journal(both, checkpoints=[two], trusted=place.trusted)
        assert (report.exit_code, codes(report)) == (3, ["end-not-provable"])
        assert report.findings[0].data == {"file": str(place.file)}


class TestEnd:
    def test_cut_tail(self, place):
        """A cut tail with a kept checkpoint is log-truncated, also when cut exactly to an older valid checkpoint."""
        place.fill(5)
        older = place.rows("SELECT max(size) FROM checkpoint")[0][0]
        kept = place.fill(5)
        cut_to(place, older)
        report = place.verify(kept)
        assert (report.exit_code, report.outcome) == (1, "log-truncated")
        assert report.axes["floor"].result == "failed"
        assert {report.axes[name].result for name in ("records", "tree", "history", "order")} == {"verified"}

    def test_cut_between_checkpoints(self, place):
        """A tail cut elsewhere is found even without a checkpoint from outside."""
        place.fill(5)
        cut_to(place, 4, keep_checkpoints=True)
        report = place.verify()
        assert report.verdict == "failed"
        assert report.axes["history"].result == "failed"

    def test_no_outside_checkpoint(self, place):
        """Without a checkpoint from outside the end is not provable: exit 3, in words and in the outcome."""
        place.fill(5)
        report = place.verify()
        assert (report.exit_code, report.outcome) == (3, "end-not-provable")
        assert report.axes["floor"].result == "not-evaluated"

    def test_cut_tail_without_outside_checkpoint(self, place):
        """The same cut tail without that checkpoint is exit 3, not 0."""
        place.fill(5)
        older = place.rows("SELECT max(size) FROM checkpoint")[0][0]
        place.fill(5)
        cut_to(place, older)
        assert place.verify().exit_code == 3


def cut_to(place, size, keep_checkpoints=False):
    place.tamper(
        f"DELETE FROM record WHERE seq >= {size}",
        f"DELETE FROM node WHERE (idx + 1) * (1 << level) > {size}",
        *([] if keep_checkpoints else [f"DELETE FROM checkpoint WHERE size > {size}"]),
    )


REPLACE = (
    "UPDATE record SET bytes = CAST(replace(CAST(bytes AS TEXT), '\"n\":2', '\"n\":7') AS BLOB) WHERE seq = 3"
)
SWAP = (
    "UPDATE record SET seq = 100 WHERE seq = 3",
    "UPDATE record SET seq = 3 WHERE seq = 4",
    "UPDATE record SET seq = 4 WHERE seq = 100",
)


@pytest.mark.req("AA-201")
class TestFiveAttacks:
    def test_five_codes(self, place, other_signer):
        """Replaced record, swapped records, edited note, note of another log, note by another key: five codes."""
        kept = place.fill(5)
        edited = kept.replace("\n6\n", "\n5\n")
        foreign = CheckpointSigner(place.signer, origin="x.example/journal/1").sign(6, b"r" * 32)
        forged = CheckpointSigner(other_signer, origin=place.origin).sign(6, b"r" * 32)
        outcomes = [place.verify(note) for note in (edited, foreign, forged)]
        replaced, swapped = place.copy("replaced"), place.copy("swapped")
        replaced.tamper(REPLACE)
        swapped.tamper(*SWAP)
        outcomes += [replaced.verify(kept), swapped.verify(kept)]
        assert [(report.outcome, report.exit_code) for report in outcomes] == [
            ("checkpoint-signature-invalid", 1),
            ("checkpoint-other-log", 3),
            ("checkpoint-key-unknown", 3),
            ("log-rewritten", 1),
            ("record-sequence", 1),
        ]

    def test_replaced_with_its_hashes(self, place):
        """A replaced record whose hashes were recomputed is found by every checkpoint after it."""
        kept = place.fill(5)
        place.tamper(REPLACE)
        rebuild_tree(place)
        report = place.verify(kept)
        assert (report.exit_code, report.outcome) == (1, "log-rewritten")
        assert report.axes["records"].result == report.axes["tree"].result == "verified"
        assert report.axes["history"].result == report.axes["floor"].result == "failed"

    def test_replaced_with_everything_but_the_key(self, place):
        """With the later checkpoints removed as well, the one kept outside still tells."""
        kept = place.fill(5)
        place.tamper(REPLACE, "DELETE FROM checkpoint WHERE size > 3")
        rebuild_tree(place)
        report = place.verify(kept)
        assert report.verdict == "failed"
        assert report.axes["floor"].result == "failed"

    def test_removed_record(self, place):
        """A removed record is record-sequence."""
        kept = place.fill(5)
        place.tamper("DELETE FROM record WHERE seq = 2")
        report = place.verify(kept)
        assert report.verdict == "failed"
        assert "record-sequence" in codes(report)

    def test_inserted_record(self, place):
        """A record put behind the newest checkpoint is found."""
        kept = place.fill(5)
        place.tamper("INSERT INTO record SELECT max(seq) + 1, bytes FROM record")
        report = place.verify(kept)
        assert report.verdict == "failed"
        assert "log-rewritten" in codes(report)

    @pytest.mark.parametrize(
        ("statement", "axis"),
        [
            ("UPDATE node SET hash = zeroblob(32) WHERE level = 0 AND idx = 1", "records"),
            ("UPDATE node SET hash = zeroblob(32) WHERE level = 1 AND idx = 0", "tree"),
            ("DELETE FROM node WHERE level = 1 AND idx = 1", "tree"),
            ("INSERT INTO node VALUES (9, 0, zeroblob(32))", "tree"),
            (("UPDATE checkpoint SET note = replace(note, char(10) || '3' || char(10), char(10) || '4' || char(10))"
             " WHERE size = 3"), "checkpoint-signatures"),
            ("UPDATE record SET bytes = x'7b7d' WHERE seq = 2", "records"),
        ],
    )  # fmt: skip
    def test_axis_of_each_change(self, place, statement, axis):
        """Each change fails the axis that looks at it."""
        with place.open() as journal:
            for number in range(5):
                journal.append("verify.valid", {"n": number})
                journal.flush()
        kept = place.high_water.read_bytes()
        place.tamper(statement)
        report = place.verify(kept)
        assert report.axes[axis].result == "failed", codes(report)
        assert report.exit_code == 1

    def test_moved_checkpoint(self, place):
        """A genuine checkpoint under another size fails the history."""
        kept = place.fill(5)
        place.tamper("UPDATE checkpoint SET size = 50 WHERE size = (SELECT max(size) FROM checkpoint)")
        report = place.verify(kept)
        assert report.axes["history"].result == "failed"

    def test_bad_signature_beside_a_good_one(self, place):
        """An edited note fails although another note is good: both were named by the one who asks."""
        kept = place.fill(5)
        report = place.verify(kept, kept.replace("\n6\n", "\n5\n"))
        assert report.axes["floor"].result == "verified"
        assert (report.exit_code, report.outcome) == (1, "checkpoint-signature-invalid")


def rebuild_tree(place):
    from onrecord.record.ledger import _rfc9162

    frontier, rows = [], []
    for size, (data,) in enumerate(place.rows("SELECT bytes FROM record ORDER BY seq")):
        rows += _rfc9162.append(frontier, size=size, leaf=_rfc9162.leaf_hash(data))
    place.tamper("DELETE FROM node", *(("INSERT INTO node VALUES (?, ?, ?)", row) for row in rows))


class TestTrust:
    def test_no_trust_file(self, place):
        """Without trusted keys no signature is evaluated: exit 3, though records and tree were looked at."""
        report = place.verify(place.fill(3), trusted=None)
        assert report.exit_code == 3
        assert report.axes["checkpoint-signatures"].result == "not-evaluated"
        assert report.axes["records"].result == "verified"

    def test_unknown_key(self, place, other_signer):
        """A journal by a key that is not in the trust file is not evaluated, and accuses nobody."""
        report = place.verify(place.fill(3), trusted={other_signer.kid: other_signer.public_key})
        assert (report.exit_code, report.outcome) == (3, "checkpoint-key-unknown")

    def test_empty_trust(self, place):
        """An empty trust file knows no key."""
        assert place.verify(place.fill(3), trusted={}).exit_code == 3

    def test_malformed_outside_note(self, place):
        """A torn note accuses nobody: exit 3."""
        kept = place.fill(3)
        report = place.verify(kept[:-20])
        assert (report.exit_code, report.outcome) == (3, "checkpoint-malformed")


class TestStructure:
    @pytest.mark.parametrize("content", [b"", b"x" * 5000, b"SQLite format 3\0" + b"\0" * 4096])
    def test_no_journal(self, place, content):
        """A file that is no journal accuses nobody: exit 3."""
        kept = place.fill(3)
        place.file.write_bytes(content)
        report = place.verify(kept)
        assert report.exit_code == 3
        assert report.axes["structure"].result == "not-evaluated"

    def test_other_tables(self, place):
        """A journal with a trigger less or a table more fails."""
        kept = place.fill(3)
        place.tamper("CREATE TABLE extra(a)")
        report = place.verify(kept)
        assert (report.exit_code, report.outcome) == (1, "journal-schema")

    def test_missing_file(self, place):
        """A file that is not there is a usage error, and so is no file at all."""
        for files, code in (([place.file], "file-missing"), ([], "no-file"), ([place.base], "file-missing")):
            with pytest.raises(UsageError) as caught:
                verify_journal(files)
            assert caught.value.code == code

    def test_copy_without_its_log(self, place):
        """A live file copied without its write-ahead log is shorter than the kept checkpoint, and that is said."""
        with place.open() as journal:
            journal.append("verify.valid", {})
            note = journal.flush().note
            copy = place.base / "copy.db"
            shutil.copy(place.file, copy)
        report = verify_journal([copy], checkpoints=[note], trusted=place.trusted)
        assert report.exit_code in (1, 3)
        assert report.outcome in ("log-truncated", "journal-malformed", "journal-unreadable")

    def test_findings_are_bounded(self, place, monkeypatch):
        """A log with very many faults gives as many findings as the limit says, and still fails."""
        monkeypatch.setattr(audit, "MAX_FINDINGS", 7)
        kept = place.fill(50)
        place.tamper("UPDATE node SET hash = zeroblob(32)")
        report = place.verify(kept)
        assert len(report.findings) == 7
        assert report.axes["records"].result == "failed"

    @settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=4),
        length=st.none() | st.integers(0, 10**6),
    )
    def test_mutated_files(self, mutated, changes, length):
        """No damaged file raises anything, and none with other records or checkpoints is verified."""
        place, raw, kept, content = mutated
        image = bytearray(raw)
        for at, change in changes:
            image[at % len(image)] ^= change
        if length is not None:
            del image[length % len(image) :]
        copy = place.base / "mutant.db"
        for leftover in place.base.glob("mutant.db*"):
            leftover.unlink()
        copy.write_bytes(image)
        report = verify_journal([copy], checkpoints=[kept], trusted=place.trusted)
        if report.exit_code == 0:
            assert content_of(copy) == content


def content_of(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return [
            connection.execute(query).fetchall()
            for query in (
                "SELECT * FROM record",
                "SELECT * FROM node",
                "SELECT * FROM checkpoint",
                "SELECT * FROM body",
            )
        ]
    finally:
        connection.close()


@pytest.fixture(scope="module")
def mutated(tmp_path_factory, signer):
    base = tmp_path_factory.mktemp("mutated")
    place = Place(base, signer)
    with place.open() as journal:
        for number in range(30):
            journal.append(
                "trace", {"n": number}, bodies=[Body("c", b"content %d" % number)] if number % 5 == 0 else []
            )
        journal.flush()
    return place, place.file.read_bytes(), place.high_water.read_bytes(), content_of(place.file)


class TestBodies:
    @pytest.fixture
    def filled(self, place):
        with place.open() as journal:
            self.seqs = [journal.append("trace", {}, bodies=[Body("c", b"secret %d" % n)]) for n in range(6)]
            journal.erase(self.seqs[:2])
        return place

    def verify(self, place):
        return place.verify(place.high_water.read_bytes())

    def test_counts(self, filled):
        """Verified and erased bodies are counted; all proofs hold after an erasure."""
        report = self.verify(filled)
        assert report.verdict == "verified"
        assert report.axes["bodies"].count == 4
        assert report.axes["bodies"].grounds.endswith("2 erased")

    def test_guessing_does_not_confirm(self, filled):
        """Nothing that is left after an erasure confirms a right guess."""
        (left,) = filled.rows("SELECT salt, bytes FROM body WHERE seq = ?", self.seqs[0])
        assert left == (None, None)
        raw = filled.rows("SELECT bytes FROM record WHERE seq = ?", self.seqs[0])[0][0]
        assert hashlib.sha256(b"secret 0").hexdigest().encode() not in raw

    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("UPDATE body SET bytes = x'00' WHERE seq = 4", "body-mismatch"),
            ("UPDATE body SET salt = zeroblob(32) WHERE seq = 4", "body-mismatch"),
            ("UPDATE body SET salt = NULL WHERE seq = 4", "body-mismatch"),
            ("UPDATE body SET part = 'd' WHERE seq = 4", "body-unnamed"),
            ("DELETE FROM body WHERE seq = 4", "body-missing"),
            ("DELETE FROM body WHERE seq = 1", "body-missing"),
            ("UPDATE body SET salt = NULL, bytes = NULL WHERE seq = 4", "erasure-unrecorded"),
            ("INSERT INTO body VALUES (0, 'x', NULL, NULL)", "body-unnamed"),
        ],
    )
    def test_attacks(self, filled, statement, code):
        """A changed, exchanged, missing, foreign or secretly erased body fails the axis with its code."""
        filled.tamper(statement)
        report = self.verify(filled)
        assert report.exit_code == 1
        assert report.axes["bodies"].result == "failed"
        assert code in codes(report)
        assert {report.axes[name].result for name in ("records", "tree", "history", "floor")} == {"verified"}

    def test_all_erased(self, place):
        """A journal whose bodies are all erased is verified: their count is zero, and that is not a claim."""
        with place.open() as journal:
            seqs = [journal.append("trace", {}, bodies=[Body("c", b"x")]) for _ in range(3)]
            journal.erase(seqs)
        report = self.verify(place)
        assert report.verdict == "verified"
        assert report.axes["bodies"].result == "not-checked"


class TestSilence:
    def test_session_without_close(self, place):
        """A session without close, and a close without open, appear; closed ones are counted."""
        with place.open() as journal:
            journal.append("session.open", {}, session="a")
            first = journal.append("session.open", {}, session="b")
            journal.append("session.close", {"entries": 1}, session="a")
            second = journal.append("session.close", {}, session="c")
        report = place.verify(place.high_water.read_bytes())
        assert report.verdict == "verified"
        assert report.axes["sessions"].count == 1
        assert [(finding.code, finding.pointer) for finding in report.findings] == [
            ("session-close", f"/record/{second}"),
            ("session-open", f"/record/{first}"),
        ]

    def test_clock_step(self, place):
        """A wall clock that was set appears with its size; the order holds by the boot clock."""
        place.clock = ManualClock()
        with place.open() as journal:
            journal.append("verify.valid", {})
            place.clock.step_wall(-3600)
            seq = journal.append("verify.valid", {})
            journal.append("verify.valid", {})
        report = place.verify(place.high_water.read_bytes())
        assert report.verdict == "verified"
        assert [(finding.code, finding.pointer) for finding in report.findings] == [
            ("clock-step", f"/record/{seq}")
        ]
        assert "-3600.0 s" in report.findings[0].message

    def test_boot_clock_backwards(self, place):
        """A boot clock that runs backwards inside one boot fails the order."""
        place.clock = ManualClock(boottime_ns=10_000_000_000)
        with place.open() as journal:
            journal.append("verify.valid", {})
            place.clock.advance(-2)
            journal.append("verify.valid", {})
        report = place.verify(place.high_water.read_bytes())
        assert (report.exit_code, report.outcome) == (1, "record-order")

    def test_heartbeat_gap(self, place):
        """Two missed heartbeats appear; one late one does not."""
        place.clock = ManualClock()
        with place.open() as journal:
            for seconds in (60, 60, 120, 200):
                journal.append("heartbeat", {})
                place.clock.advance(seconds)
            last = journal.append("heartbeat", {})
        report = place.verify(place.high_water.read_bytes())
        assert [(finding.code, finding.pointer) for finding in report.findings] == [
            ("heartbeat-gap", f"/record/{last}")
        ]
        assert "heartbeats" not in report.not_checked

    def test_crash(self, place):
        """A run without a close appears as information."""
        with place.open() as journal:
            journal.append("verify.valid", {})
            journal.flush()
            crashed = place.copy("crashed")
        crashed.fill(1)
        report = crashed.verify(crashed.high_water.read_bytes())
        assert report.verdict == "verified"
        assert codes(report) == ["journal-not-closed"]


class TestLog:
    def test_bare_records(self, place):
        """Bare records verify against a kept checkpoint, and a cut or changed one does not."""
        kept = place.fill(5)
        leaves = [data for (data,) in place.rows("SELECT bytes FROM record ORDER BY seq")]
        verify = lambda leaves: verify_log(
            leaves, origin=place.origin, checkpoints=[kept], trusted=place.trusted
        )
        assert verify(leaves).verdict == "verified"
        assert verify(leaves[:3]).outcome == "log-truncated"
        assert verify([*leaves[:2], leaves[3], leaves[2], *leaves[4:]]).outcome == "record-sequence"
        assert (
            verify([leaves[0], leaves[1].replace(b'"n":0', b'"n":9'), *leaves[2:]]).outcome == "log-rewritten"
        )
        assert verify([b"no json", *leaves[1:]]).outcome == "log-rewritten"


def test_catalogue_is_registered():
    """Every code that verification can give is in the registry with its meaning and source."""
    assert set(CODES) <= set(known())
    assert all(code.source.startswith(("transparency.md", "call-proof.md")) for code in CODES.values())


class TestTwoFilesOfOneJournal:
    @pytest.mark.parametrize("order", [[0, 1], [1, 0]])
    def test_shortened_copy_is_not_hidden(self, place, tmp_path, order):
        """A shortened copy fails whatever stands beside it: a checkpoint is compared with every file of its log."""
        place.fill(3)
        short = tmp_path / "journal-1.db"
        shutil.copy(place.file, short)
        kept = place.fill(20)
        files = [(short, place.file)[index] for index in order]
        report = verify_journal(files, checkpoints=[kept], trusted=place.trusted)
        assert (report.verdict, report.outcome) == ("failed", "log-truncated")
        assert [finding.data for finding in report.findings if finding.code == "log-truncated"] == [
            {"file": str(short)}
        ]


class TestKeyOfAnotherJournal:
    def test_a_trusted_key_speaks_for_its_own_journal_only(self, place, tmp_path, signer, other_signer):
        """Who holds the recorder's key cannot go on with, or replace, the authority's journal."""
        kept = place.fill(3)
        trusted = place.trusted | {other_signer.kid: other_signer.public_key}
        assert verify_journal([place.file], checkpoints=[kept], trusted=trusted).verdict == "verified"
        forged = Place(tmp_path / "forged", other_signer, name=place.name)
        forged.base.mkdir()
        own = forged.fill(4)
        report = verify_journal([forged.file], checkpoints=[kept], trusted=trusted)
        assert (report.verdict, report.outcome) == ("failed", "checkpoint-signature-invalid")
        report = verify_journal([place.file], checkpoints=[kept, own], trusted=trusted)
        assert report.verdict == "failed"

    def test_longer_tail_by_another_key(self, place, signer, other_signer):
        """Records added under another trusted key's checkpoint are not verified."""
        kept = place.fill(3)
        trusted = place.trusted | {other_signer.kid: other_signer.public_key}
        ((size,),) = place.rows("SELECT max(size) FROM checkpoint")
        note = place.rows("SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1")[0][0]
        checkpoint = Checkpoint.open(note, trusted=trusted)
        again = CheckpointSigner(other_signer, origin=checkpoint.origin).sign(size, checkpoint.root)
        place.tamper(("UPDATE checkpoint SET note = ? WHERE size = ?", (again, size)))
        report = verify_journal([place.file], checkpoints=[kept], trusted=trusted)
        assert (report.verdict, report.outcome) == ("failed", "checkpoint-signature-invalid")


class TestFilesThatNeverEnd:
    @pytest.mark.parametrize("table", ["record", "checkpoint", "node", "body"])
    def test_view_in_place_of_a_table(self, place, table):
        """A view that computes rows without end is no table of ours: the file fails, and nothing is read from it."""
        kept = place.fill(3)
        columns = {"record": "seq, bytes", "checkpoint": "size, note", "node": "level, idx, hash"}.get(
            table, "seq, part, salt, bytes"
        )
        values = ", ".join(["x"] + ["NULL"] * columns.count(","))
        connection = sqlite3.connect(place.file, isolation_level=None)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        connection.execute(
            f"CREATE VIEW {table}({columns}) AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
            f"SELECT {values} FROM c"
        )
        connection.close()
        report = place.verify(kept)
        assert (report.verdict, report.outcome) == ("failed", "journal-schema")

    def test_reading_ends(self, place):
        """What takes far more steps than the file has bytes is interrupted."""
        place.fill(3)
        connection = schema.open_reader(place.file, is_hostile=True)
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
        with pytest.raises(sqlite3.OperationalError):
            connection.execute(endless).fetchone()
        connection.close()

    def test_leftover_hashes(self, place):
        """Hashes of no record are found on any level."""
        kept = place.fill(3)
        for level, index in ((0, 9), (1, 7), (9, 0), (-1, 0)):
            place.tamper(("INSERT INTO node VALUES (?, ?, zeroblob(32))", (level, index)))
            assert place.verify(kept).outcome == "tree-mismatch"
            place.tamper(("DELETE FROM node WHERE level = ? AND idx = ?", (level, index)))
        assert place.verify(kept).verdict == "verified"
