"""A-05: every longer text of a log is found in its vCons, and one that is missing is reported."""

import json
from types import SimpleNamespace

import pytest

from onrecord.record.logs import verification
from onrecord.record.logs.importing import Options, import_paths
from support.diary import Diary, Registered, line, write


@pytest.fixture(autouse=True)
def _diary():
    with Registered():
        yield


def texts(tmp_path, *values):
    (tmp_path / "a.vcon").write_bytes(
        json.dumps({"uuid": "", "values": values}, separators=(",", ":")).encode()
    )
    return verification.Texts([tmp_path / "a.vcon"])


def missing(report):
    return [
        (finding["record"], finding["pointer"])
        for finding in report.findings()
        if finding["code"] == "content-not-found"
    ]


class TestTexts:
    @pytest.mark.parametrize(
        ("native", "kept"),
        [
            ("the same text", "the same text"),
            ("2026-07-01T10:00:00.000Z", "2026-07-01T10:00:00Z"),
            ("2026-07-01T12:00:00+02:00", "2026-07-01T10:00:00Z"),
            ('{"file_path": "/tmp/a/b"}', "/tmp/a/b"),
            ("before it\n<system-note>kept apart</system-note>\nafter it", "before it|kept apart|after it"),
            ("a prompt that is told by its hash", None),
            ("YWJjZGVmZ2g+Pz8/", "YWJjZGVmZ2g-Pz8_"),
            ("data:image/png;base64,YWJjZGVmZ2hpag==", "YWJjZGVmZ2hpag"),
        ],
    )
    def test_found(self, tmp_path, native, kept):
        """What stands in the vCon in another form that a decision names is found."""
        if kept is None:
            import hashlib

            kept = hashlib.sha256(native.encode()).hexdigest()
        assert texts(tmp_path, *kept.split("|")).has(native)

    @pytest.mark.parametrize(
        "native",
        [
            "another text",
            '{"file_path": "/tmp/a/c"}',
            "before it\nand a line that was lost",
            "2026-07-01T10:00:01Z",
            "[" * 100_000,
        ],
    )
    def test_lost(self, tmp_path, native):
        """What is not there is not found."""
        assert not texts(tmp_path, "before it", "2026-07-01T10:00:00Z", "/tmp/a/b").has(native)


class TestImport:
    def test_complete(self, tmp_path):
        """An import that keeps everything has no finding; `--redact` is allowed for."""
        write(tmp_path / "a.jsonl", line(said="a long enough text"), line(said="AKIAIOSFODNN7EXAMPLE"))
        for redact in (False, True):
            report = import_paths(
                [tmp_path / "a.jsonl"],
                to=tmp_path / f"out{redact}",
                format="diary",
                verify=True,
                options=Options(redact=redact),
            )
            assert missing(report) == [(1, "/kind"), (2, "/kind")][:0]

    def test_loss(self, tmp_path, monkeypatch):
        """A member that an importer has overlooked is named by record and pointer, without its text."""
        write(tmp_path / "a.jsonl", line(), line(mood={"of": ["very cheerful"]}))
        report = import_paths([tmp_path / "a.jsonl"], to=tmp_path / "out", format="diary", verify=True)
        assert missing(report) == [(2, "/mood/of/0")]
        assert "cheerful" not in json.dumps(report.to_json())
        assert report.reaches("error")

    def test_reported_and_duplicates(self, tmp_path):
        """Only what was mapped is looked for: reported records and duplicates have no place in the vCon."""
        text = line(id="e1", said="a long enough text")
        write(tmp_path / "a.jsonl", text, text, '{"other": "of no known kind"}\n')
        report = import_paths([tmp_path / "a.jsonl"], to=tmp_path / "out", format="diary", verify=True)
        assert missing(report) == []

    def test_gone(self, tmp_path):
        """A log that is gone when it is looked at again is an error, not an exception."""
        trace = SimpleNamespace(
            path=tmp_path / "gone",
            importer=Diary,
            accounting=lambda: {"duplicates": 0},
            run=SimpleNamespace(options=Options()),
            file=SimpleNamespace(open=lambda: (tmp_path / "gone").open("rb")),
        )
        with pytest.raises(OSError, match="No such file"):
            list(verification.missing(trace, []))
