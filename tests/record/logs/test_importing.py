"""The whole import, with an invented format: groups, twins, second runs, faults, and what is on disk at any time."""

import errno
import gzip
import json
import os
from pathlib import Path

import pytest

from onrecord.base.errors import StorageError, UsageError
from onrecord.record.checks.checker import check
from onrecord.record.logs import delivery as delivery_module
from onrecord.record.logs.importing import Import, Options, Watcher, import_paths
from onrecord.record.logs.state import FILE_NAME
from support.diary import Diary, Registered, line, write
from support.fuzz_targets import LOG_TARGETS
from support.log_seeds import LINES, log


@pytest.fixture(autouse=True)
def _diary(request):
    if request.cls is TestSeeds:
        yield
        return
    with Registered():
        yield


@pytest.fixture
def logs(tmp_path):
    """Two projects: one session each, and a sub-agent below the first."""
    top = tmp_path / "logs"
    write(top / "p1/a.jsonl", line(), line(said="hi", who="agent", at="2026-07-01T10:00:05Z"))
    write(top / "p1/a/child.jsonl", line(run="r2", below="r1", said="go"))
    write(top / "p2/b.jsonl", line(run="r3", said="other"))
    return top


def run(logs, to, **options):
    return import_paths([logs], to=to, **{"format": "diary", **options})


def parts(report):
    return {os.path.basename(part["file"]): part for part in report.files}


def codes(report):
    return sorted(finding["code"] for finding in report.findings())


def load(place):
    return json.loads(Path(place).read_bytes())


def vcons(place):
    return {path.name: path.read_bytes() for path in sorted(place.glob("*.vcon"))}


class TestImport:
    def test_report(self, logs, tmp_path):
        """The report has every file in order, each session once, the sums, and the vCons are clean and private."""
        out = tmp_path / "out"
        report = run(logs, out)
        assert list(parts(report)) == ["a.jsonl", "child.jsonl", "b.jsonl"]
        totals = report.totals()
        assert (totals["files"], totals["sessions"], totals["records"], totals["mapped"]) == (3, 3, 4, 4)
        child = parts(report)["child.jsonl"]["sessions"][0]
        assert (child["parent"], child["agent_session_id"]) == ("r1", "r2")
        assert child["vcon"] == parts(report)["a.jsonl"]["sessions"][0]["vcon"]
        assert len(vcons(out)) == 2
        for path in out.glob("*.vcon"):
            assert path.stat().st_mode & 0o777 == 0o600
            assert check(path.read_bytes(), strict=True).is_valid
        assert out.stat().st_mode & 0o777 == 0o700
        json.dumps(report.to_json())

    def test_source_numbers(self, logs, tmp_path):
        """A-04: the first number of `src` is the place of the file in the report; later imports keep it."""
        report = run(logs, tmp_path / "out")
        assert [part["number"] for part in report.files] == [0, 1, 2]
        self.assert_numbers(report)
        write(logs / "p0/new.jsonl", line(run="r8"))
        report = run(logs, tmp_path / "out")
        assert [part["number"] for part in report.files] == [3, 0, 1, 2]
        self.assert_numbers(report)
        assert [part["number"] for part in run(logs / "p2", tmp_path / "out", everything=True).files] == [2]

    def assert_numbers(self, report):
        for part in report.files:
            number = part["number"]
            for session in part["sessions"]:
                document = load(session["vcon"])
                place = [one["agent_session_id"] for one in document["sessions"]].index(
                    session["agent_session_id"]
                )
                dialogs = document["sessions"][place]["dialog"]
                assert {document["dialog"][index]["onrecord"]["src"][0] for index in dialogs} == {number}

    def test_no_target(self, logs):
        """Without a target everything is done and nothing is kept."""
        report = run(logs, None)
        assert report.totals()["sessions"] == 3
        assert all(session["vcon"] is None for part in report.files for session in part["sessions"])

    def test_deterministic(self, logs, tmp_path):
        """D-LOG-22: two imports of the same files differ in `created_at` only."""
        texts = []
        for name in ("one", "two"):
            run(logs, tmp_path / name)
            documents = [json.loads(text) for text in vcons(tmp_path / name).values()]
            for document in documents:
                del document["created_at"]
            texts.append(documents)
        assert texts[0] == texts[1]

    def test_faults(self, logs, tmp_path):
        """A fault of an importer costs one file: nothing of it is imported, the others are, and it is an error."""
        write(logs / "p1/bad.jsonl", line(run="r9", said="text before"), line(run="r9", said="fail"))
        report = run(logs, tmp_path / "out")
        bad = parts(report)["bad.jsonl"]
        assert (bad["format"], bad["sessions"], bad["accounting"]["records"]) == (None, [], 0)
        assert [finding["code"] for finding in bad["findings"]] == ["importer-failed"]
        assert report.has_failed
        assert not report.has_fatal
        assert not any(b"text before" in text for text in vcons(tmp_path / "out").values())
        assert len(vcons(tmp_path / "out")) == 2

    def test_faults_in_detection(self, logs, tmp_path, monkeypatch):
        """A fault while the format of one file is told costs that file only."""
        write(logs / "p1/bad.jsonl", '{"kind": ["no", "text"]}')
        whole = Diary.recognises

        def recognises(value):
            return value["kind"].startswith("diary") and whole(value)

        monkeypatch.setattr(Diary, "recognises", recognises)
        report = run(logs, tmp_path / "out")
        assert [finding["code"] for finding in parts(report)["bad.jsonl"]["findings"]] == ["importer-failed"]
        assert len(vcons(tmp_path / "out")) == 2

    def test_missing_and_unreadable(self, logs, tmp_path):
        """A missing path and what is no regular file are fatal findings; the others are imported."""
        os.mkfifo(tmp_path / "pipe")
        report = import_paths([tmp_path / "absent", tmp_path / "pipe", logs], to=tmp_path / "out")
        assert [part["findings"][0]["code"] for part in report.files[:2]] == ["unreadable-file"] * 2
        assert all(part["findings"][0]["fatal"] for part in report.files[:2])
        assert report.has_fatal
        assert len(vcons(tmp_path / "out")) == 2

    def test_unknown(self, logs, tmp_path):
        """An unknown file is an error when a person named it, a warning when it was met on the way."""
        other = tmp_path / "logs/x.json"
        other.write_text('{"x":1}')
        (logs / "empty.jsonl").write_text(" \n")
        met = import_paths([logs], to=tmp_path / "out")
        named = import_paths([other], to=tmp_path / "out")
        assert [finding["severity"] for finding in parts(met)["x.json"]["findings"]] == ["warning"]
        assert [finding["severity"] for finding in parts(named)["x.json"]["findings"]] == ["error"]
        assert [finding["code"] for finding in parts(met)["empty.jsonl"]["findings"]] == ["empty-file"]
        assert not met.reaches("error")

    def test_damaged_archive(self, tmp_path):
        """An archive of which nothing can be unpacked is called damaged, not just empty."""
        (tmp_path / "a.jsonl.gz").write_bytes(b"\x1f\x8b" + bytes(range(100)))
        report = import_paths([tmp_path / "a.jsonl.gz"], to=None)
        assert "truncated-archive" in codes(report)

    def test_unknown_format(self, logs, tmp_path):
        """A format that nobody knows is refused by name."""
        with pytest.raises(UsageError) as refused:
            run(logs, tmp_path / "out", format="novel")
        assert refused.value.code == "log-format-unknown"

    def test_empty_session(self, tmp_path):
        """A session of bookkeeping alone is kept and called empty."""
        write(tmp_path / "e.jsonl", '{"kind":"diary-line","run":"r1","at":"2026-07-01T10:00:00Z"}\n')
        report = run(tmp_path / "e.jsonl", tmp_path / "out")
        assert codes(report) == ["empty-session"]
        assert len(vcons(tmp_path / "out")) == 1

    def test_watcher(self, logs, tmp_path):
        """A watcher learns what comes, and of each file its beginning and end."""
        told = []

        class Seen(Watcher):
            def planned(self, files, size):
                told.append(("planned", files, size))

            def begin(self, name):
                told.append(("begin", os.path.basename(name)))

            def end(self, size, findings):
                told.append(("end", findings))

        run(logs, tmp_path / "out", watcher=Seen())
        size = sum(path.stat().st_size for path in logs.rglob("*.jsonl"))
        assert told[0] == ("planned", 3, size)
        assert told[1:] == [
            ("begin", "a.jsonl"),
            ("end", 0),
            ("begin", "child.jsonl"),
            ("end", 0),
            ("begin", "b.jsonl"),
            ("end", 0),
        ]


class TestTwins:
    def test_same_bytes(self, logs, tmp_path):
        """B-16: the same file in two places makes one session; the second is a duplicate, record by record."""
        write(logs / "p2/copy.jsonl", (logs / "p1/a.jsonl").read_text())
        report = run(logs, tmp_path / "out")
        copy = parts(report)["copy.jsonl"]
        assert copy["accounting"] == {
            "records": 2,
            "mapped": 0,
            "of_mapped": {"conversation": 0, "system_event": 0},
            "duplicates": 2,
            "of_duplicates": {"file-twin": 2},
            "reported": 0,
        }
        assert copy["twin_of"].endswith("p1/a.jsonl")
        assert report.totals()["sessions"] == 3

    def test_packed(self, logs, tmp_path):
        """B-12: a packed file beside its plain twin is one log; alone it is read."""
        text = (logs / "p1/a.jsonl").read_bytes()
        (logs / "p1/a.jsonl.gz").write_bytes(gzip.compress(text))
        report = run(logs, tmp_path / "out")
        assert parts(report)["a.jsonl.gz"]["accounting"]["of_duplicates"] == {"file-twin": 2}
        (logs / "p1/a.jsonl").unlink()
        report = run(logs, tmp_path / "out2")
        assert parts(report)["a.jsonl.gz"]["accounting"]["mapped"] == 2

    def test_packed_differs(self, logs, tmp_path):
        """A packed file with another text than the plain one beside it is a log of its own."""
        (logs / "p1/a.jsonl.gz").write_bytes(gzip.compress(line(run="r7", said="older").encode()))
        report = run(logs, tmp_path / "out")
        assert parts(report)["a.jsonl.gz"]["accounting"]["mapped"] == 1


class TestAgain:
    def test_unchanged(self, logs, tmp_path):
        """A second import reads nothing, leaves every byte, and says all that the first has said."""
        out = tmp_path / "out"
        first = run(logs, out)
        before = vcons(out)
        second = run(logs, out)
        assert vcons(out) == before
        assert second.totals()["unchanged"] == 3
        for part in second.files:
            assert part.pop("unchanged")
        assert second.files == first.files
        assert not second.changes

    def test_twins(self, logs, tmp_path):
        """A twin stays a twin when its other half is unchanged."""
        write(logs / "p2/copy.jsonl", (logs / "p1/a.jsonl").read_text())
        first, second = (run(logs, tmp_path / "out") for _ in range(2))
        assert parts(first)["copy.jsonl"] == parts(second)["copy.jsonl"]
        assert second.totals()["unchanged"] == 3
        assert not second.changes

    def test_touched(self, logs, tmp_path):
        """New times without new content change nothing; `everything` reads all the same and still writes nothing."""
        out = tmp_path / "out"
        run(logs, out)
        before = vcons(out)
        os.utime(logs / "p1/a.jsonl", (1, 1))
        assert run(logs, out).totals()["unchanged"] == 3
        report = run(logs, out, everything=True)
        assert dict(report.changes) == {"same": 2}
        assert vcons(out) == before

    def test_grown(self, logs, tmp_path):
        """A log that has grown is read with its folder: its vCon keeps `created_at` and gets `updated_at`."""
        out = tmp_path / "out"
        report = run(logs, out)
        place = parts(report)["a.jsonl"]["sessions"][0]["vcon"]
        before = load(place)
        with open(logs / "p1/a.jsonl", "a") as file:
            file.write(line(said="more", at="2026-07-01T10:01:00Z"))
        report = run(logs, out)
        after = load(place)
        assert (after["created_at"], "updated_at" in before, "updated_at" in after) == (
            before["created_at"],
            False,
            True,
        )
        assert dict(report.changes) == {"changed": 1}
        assert parts(report)["b.jsonl"]["unchanged"]
        assert len(after["dialog"]) == len(before["dialog"]) + 1

    def test_same_size(self, logs, tmp_path):
        """Another content of the same length with the old time of change is seen: the stamp is not only times."""
        out = tmp_path / "out"
        run(logs, out)
        path = logs / "p2/b.jsonl"
        status = path.stat()
        path.write_text(path.read_text().replace("other", "OTHER"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert dict(run(logs, out).changes) == {"changed": 1}

    def test_side_file(self, logs, tmp_path):
        """A file that is read with another one makes that one changed."""
        out = tmp_path / "out"
        run(logs, out)
        (logs / "p2/b.margin").write_text("a note")
        assert dict(run(logs, out).changes) == {"changed": 1}

    def test_lost_vcon(self, logs, tmp_path):
        """A vCon that is gone, or cut short, is made again."""
        out = tmp_path / "out"
        run(logs, out)
        before = vcons(out)
        one, other = before
        (out / one).unlink()
        (out / other).write_bytes(before[other][: len(before[other]) // 2])
        run(logs, out)
        assert set(vcons(out)) == set(before)
        assert all(check(text, strict=True).is_valid for text in vcons(out).values())

    def test_other_options(self, logs, tmp_path):
        """Other options make every file new."""
        out = tmp_path / "out"
        run(logs, out)
        assert run(logs, out, options=Options(with_rest=False)).totals()["unchanged"] == 0

    def test_session_goes_on_elsewhere(self, logs, tmp_path):
        """A new file that goes on with the session of an unchanged one has that read too: nothing is lost of it."""
        out = tmp_path / "out"
        report = run(logs, out)
        place = parts(report)["a.jsonl"]["sessions"][0]["vcon"]
        write(logs / "p3/c.jsonl", line(said="later", at="2026-07-01T11:00:00Z"))
        report = run(logs, out)
        bodies = [dialog["body"] for dialog in load(place)["dialog"]]
        assert {"hello", "hi", "later"} <= set(bodies)
        assert report.totals()["unchanged"] == 0
        assert len(report.files) == 4
        assert run(logs, out).totals()["unchanged"] == 4

    def test_counts_of_tied_groups(self, logs, tmp_path):
        """A session that goes on in another folder has the same counts when nothing is read again."""
        write(logs / "p3/c.jsonl", line(said="later", at="2026-07-01T11:00:00Z"))
        out = tmp_path / "out"
        told = parts(run(logs, out))["a.jsonl"]["sessions"]
        again = run(logs, out)
        assert again.totals()["unchanged"] == 4
        assert parts(again)["a.jsonl"]["sessions"] == told
        assert told[0]["counts"]["dialogs"] == 3

    def test_tied_groups(self, logs, tmp_path):
        """Folders that tell of one session are read together ever after, the unchanged one first."""
        write(logs / "p3/c.jsonl", line(said="later", at="2026-07-01T11:00:00Z"))
        out = tmp_path / "out"
        report = run(logs, out)
        place = parts(report)["a.jsonl"]["sessions"][0]["vcon"]
        with open(logs / "p3/c.jsonl", "a") as file:
            file.write(line(said="last", at="2026-07-01T12:00:00Z"))
        report = run(logs, out)
        bodies = [dialog["body"] for dialog in load(place)["dialog"]]
        assert {"hello", "hi", "later", "last"} <= set(bodies)
        assert report.totals()["unchanged"] == 1

    def test_damaged_notes(self, logs, tmp_path):
        """Damaged notes are not used, and it is said; the import does everything."""
        out = tmp_path / "out"
        run(logs, out)
        (out / FILE_NAME).write_text("{")
        report = run(logs, out)
        assert "damaged" in report.notes[0]
        assert report.totals()["unchanged"] == 0

    def test_failed_is_tried_again(self, logs, tmp_path):
        """A group with a file that failed is not taken for done."""
        write(logs / "p2/bad.jsonl", line(run="r9", said="fail"))
        out = tmp_path / "out"
        run(logs, out)
        write(logs / "p2/bad.jsonl", line(run="r9", said="fine"))
        assert run(logs, out).totals()["unchanged"] == 2


class TestOnDisk:
    def test_interrupted(self, logs, tmp_path):
        """R-22: what is complete when Ctrl-C comes stays, nothing is half, the report says how far it came."""
        out = tmp_path / "out"

        class Stops(Watcher):
            def begin(self, name):
                if name.endswith("b.jsonl"):
                    raise KeyboardInterrupt

        work = Import([logs], to=out, format="diary", watcher=Stops())
        with pytest.raises(KeyboardInterrupt):
            work.run()
        assert len(vcons(out)) == 1
        assert {path.suffix for path in out.iterdir()} == {".vcon", ".state"}
        assert list(parts(work.report())) == ["a.jsonl", "child.jsonl"]
        assert run(logs, out).totals()["unchanged"] == 2

    def test_left_behind(self, logs, tmp_path):
        """What a killed import has left is removed, and nothing else."""
        out = tmp_path / "out"
        run(logs, out)
        name = next(iter(vcons(out)))
        left = [
            out / f".{name}.0123456789ab.part",
            out / f".{name}.0123456789ab",
            out / f".{FILE_NAME}.0123456789ab",
        ]
        others = [out / ".mine.part", out / f".{name}.mine", out / f".{FILE_NAME}.0123456789ab.mine"]
        for path in left + others:
            path.write_text("half")
        run(logs, out)
        assert not any(path.exists() for path in left)
        assert all(path.exists() for path in others)

    def test_not_replaced(self, logs, tmp_path):
        """What was not written by an import is not written over: it is an error, and the others are written."""
        out = tmp_path / "out"
        run(logs, out)
        one = next(iter(vcons(out)))
        (out / one).write_text('{"mine":1}')
        report = run(logs, out, everything=True)
        assert (out / one).read_text() == '{"mine":1}'
        assert dict(report.changes) == {"refused": 1, "same": 1}
        assert "vcon-not-replaced" in codes(report)

    def test_part_of_a_log(self, logs, tmp_path):
        """A part or an older copy of a session takes the place of no fuller vCon, unless that is asked for."""
        out = tmp_path / "out"
        run(logs, out)
        before = vcons(out)
        copy = tmp_path / "copy"
        write(copy / "p1/a.jsonl", line())
        for report in (run(copy, out), run(copy, out)):
            assert vcons(out) == before
            assert codes(report).count("vcon-not-replaced") == 1
            assert report.files[0]["sessions"][0]["vcon"] is None
        assert dict(run(copy, out, everything=True, replaces=True).changes) == {"changed": 1}
        assert vcons(out) != before
        assert "vcon-not-replaced" not in codes(run(logs, out, everything=True))
        for name, text in before.items():
            assert load(out / name)["dialog"] == json.loads(text)["dialog"]

    @pytest.mark.parametrize("kind", ["link", "folder"])
    def test_odd_target(self, logs, tmp_path, kind):
        """A link or a folder under the name of a vCon is left alone, and nothing is written through it."""
        out = tmp_path / "out"
        run(logs, out)
        one = next(iter(vcons(out)))
        (out / one).unlink()
        victim = tmp_path / "victim"
        victim.write_text("keep")
        if kind == "link":
            (out / one).symlink_to(victim)
        else:
            (out / one).mkdir()
        report = run(logs, out, everything=True)
        assert "vcon-not-replaced" in codes(report)
        assert victim.read_text() == "keep"

    def test_in_use(self, logs, tmp_path):
        """Two imports into one folder at once are refused."""
        out = tmp_path / "out"
        with delivery_module.Delivery(out, now="2026-07-01T10:00:00Z"), pytest.raises(UsageError) as refused:
            run(logs, out)
        assert refused.value.code == "target-in-use"

    def test_unusable(self, logs, tmp_path):
        """A file in place of the folder is told as such."""
        (tmp_path / "out").write_text("x")
        with pytest.raises(UsageError) as refused:
            run(logs, tmp_path / "out")
        assert refused.value.code == "target-unusable"

    def test_unwritable(self, logs):
        """A folder that is there and takes no files is told as such, before the logs are looked at."""
        looked_at = []

        class Watching(Watcher):
            def looking_at(self, name):
                looked_at.append(name)

        with pytest.raises(UsageError) as refused:
            run(logs, Path("/proc/self"), watcher=Watching())
        assert refused.value.code == "target-unusable"
        assert not looked_at

    def test_full_disk(self, logs, tmp_path, monkeypatch):
        """A disk without room ends the import and is told as such: it is no fault of the log that is read."""

        def record(self, record):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Diary, "record", record)
        with pytest.raises(StorageError) as refused:
            run(logs, tmp_path / "out")
        assert refused.value.code == "vcon-unwritable"


class TestSeeds:
    @pytest.mark.parametrize("name", sorted(LINES))
    def test_seeds(self, name, tmp_path):
        """The seeds of `make fuzz` are logs of their formats: told by content, and nothing in them is reported."""
        path = tmp_path / "log.jsonl"
        path.write_bytes(log(name))
        (part,) = import_paths([path], to=None).files
        assert part["format"] == name
        assert part["accounting"]["mapped"] > 0
        assert part["accounting"]["reported"] == 0
        LOG_TARGETS[f"import-{name}"](log(name))
