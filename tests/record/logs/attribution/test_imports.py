"""File Objects that a log brings: copied, with hashes divided, and of several records the later one counts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.findings import FileFindings
from support.data import shared_data
from support.vcons import faults, vcon

AI, HUMAN = {"type": "ai", "model_id": "example/model-1"}, {"type": "human"}


@pytest.fixture
def findings():
    """Return findings about one log."""
    return FileFindings("log.jsonl")


def imported(findings, *records, root=None):
    """Return the File Objects of some records, each (file, timestamp, revision)."""
    attribution = Attribution(root, findings)
    for file, timestamp, revision in records:
        attribution.imported(file, timestamp=timestamp, revision=revision)
    return attribution.result()


def file(*ranges, contributor=AI, path="src/a.py", **more):
    """Return a File Object of one conversation; each range is (first, last, members)."""
    spans = [{"start_line": first, "end_line": last, **members} for first, last, members in ranges]
    return {"path": path, "conversations": [{"contributor": contributor, "ranges": spans, **more}]}


class TestOneRecord:
    def test_copied(self, findings):
        """F-07: what AA has a member for is copied; addresses on the disk and unknown members go to rest."""
        native = file(
            (3, 9, {"content_hash": "0" * 64, "note": 1}),
            url="https://chat.example.com/c/1",
            related=[{"type": "issue", "url": "https://git.example.com/5"}],
            rating=5,
        )
        copied = file(
            (3, 9, {"content_hash": "0" * 64, "onrecord": {"rest": {"note": 1}}}),
            url="https://chat.example.com/c/1",
            related=[{"type": "issue", "url": "https://git.example.com/5"}],
            onrecord={"rest": {"rating": 5}},
        )
        assert imported(findings, (native, None, None)) == [copied]
        native = file((1, 1, {}), url="file:///home/user/chat.jsonl")
        found = imported(findings, (native, None, None))[0]["conversations"][0]
        assert "url" not in found
        assert found["onrecord"] == {"rest": {"url": "file:///home/user/chat.jsonl"}}

    @pytest.mark.parametrize(
        ("native", "value", "algorithm", "is_short"),
        [
            ("sha256:" + "a" * 64, "a" * 64, None, False),
            ("sha-256:" + "a" * 64, "a" * 64, None, False),
            ("a" * 64, "a" * 64, None, False),
            ("sha256:aaaa", "aaaa", None, True),
            ("sha512:" + "a" * 128, "a" * 128, "sha-512", False),
            ("murmur3:9f2e8a1b", "9f2e8a1b", "murmur3", False),
            ("murmur3:9f2e", "9f2e", "murmur3", True),
            ("Own3:xyz", "xyz", "Own3", False),
        ],
    )
    def test_hashes(self, findings, native, value, algorithm, is_short):
        """F-04: hashes are divided, the default algorithm is not written, a short one is marked and reported."""
        span = imported(findings, (file((1, 2, {"content_hash": native})), None, None))[0]["conversations"][
            0
        ]["ranges"][0]
        assert (span["content_hash"], span.get("content_hash_alg")) == (value, algorithm)
        assert ("onrecord" in span) == is_short
        assert [finding.code for finding in findings.listed()] == ["attribution-hash-short"] * is_short

    def test_vacr_names(self, findings):
        """The names of VACR become those of AA."""
        span = {"start-line": 1, "end-line": 2, "content-hash": "0" * 128, "content-hash-alg": "sha-512"}
        native = {
            "path": "a",
            "conversations": [{"contributor": {"type": "ai", "model-id": "m"}, "ranges": [span]}],
        }
        made = {"start_line": 1, "end_line": 2, "content_hash": "0" * 128, "content_hash_alg": "sha-512"}
        assert imported(findings, (native, None, None))[0]["conversations"] == [
            {"contributor": {"type": "ai", "model_id": "m"}, "ranges": [made]}
        ]

    def test_flat(self, findings):
        """F-09: the flat variant is one range; what it says beside is kept, and no contributor is invented."""
        native = {
            "schema": "agent-trace/v0.1.0",
            "file_path": "/home/user/project/a.py",
            "start_line": 5,
            "end_line": 6,
            "content_hash": "murmur3:" + "0" * 32,
            "tool": "Edit",
            "tool_use_id": "call_1",
            "timestamp": "2026-07-01T10:00:00Z",
        }
        assert imported(findings, (native, 1, None), root="/home/user/project") == [
            {
                "path": "a.py",
                "conversations": [
                    {
                        "ranges": [
                            {
                                "start_line": 5,
                                "end_line": 6,
                                "content_hash": "0" * 32,
                                "content_hash_alg": "murmur3",
                            }
                        ],
                        "onrecord": {"rest": {"tool": "Edit", "tool_use_id": "call_1"}},
                    }
                ],
            }
        ]

    def test_paths(self, findings):
        """F-06: relative paths need no root, absolute ones do, "..": none."""
        files = [(file(path=path), None, None) for path in ("a/b", "/x/c", "C:\\x\\d", "../e", 5, None)]
        assert [found["path"] for found in imported(findings, *files, root="/x")] == ["a/b", "c"]
        assert sorted(finding.code for finding in findings.listed()) == [
            "attribution-path-outside-root",
            "attribution-path-outside-root",
            "odd-shape",
            "odd-shape",
        ]


class TestSeveralRecords:
    def test_later_wins(self, findings):
        """F-09: per line the later record counts, whatever their order; a range that was cut loses its hash."""
        old = (file((1, 10, {"content_hash": "0" * 64})), 1, "r1")
        new = (file((4, 5, {"content_hash": "1" * 64}), contributor=HUMAN), 2, "r2")
        for records in ((old, new), (new, old)):
            spans = [
                (
                    span["start_line"],
                    span["end_line"],
                    "content_hash" in span,
                    conversation["contributor"]["type"],
                )
                for conversation in imported(findings, *records)[0]["conversations"]
                for span in conversation["ranges"]
            ]
            assert sorted(spans) == [(1, 3, False, "ai"), (4, 5, True, "human"), (6, 10, False, "ai")]

    def test_mixed(self, findings):
        """F-09: two records of one revision that disagree about a line make it mixed; agreeing ones do not."""
        records = [
            (file((1, 5, {})), 1, "r"),
            (file((4, 8, {}), contributor=HUMAN), 2, "r"),
            (file((8, 9, {}), contributor=HUMAN), 3, "r"),
        ]
        spans = [
            (
                span["start_line"],
                span["end_line"],
                (span.get("contributor") or conversation["contributor"])["type"],
            )
            for conversation in imported(findings, *records)[0]["conversations"]
            for span in conversation["ranges"]
        ]
        assert sorted(spans) == [(1, 3, "ai"), (4, 5, "mixed"), (6, 7, "human"), (8, 9, "human")]

    @settings(max_examples=50)
    @given(
        st.lists(
            st.tuples(
                st.integers(1, 20),
                st.integers(0, 10),
                st.integers(0, 3),
                st.sampled_from("ab"),
                st.sampled_from([AI, HUMAN]),
            ),
            min_size=2,
            max_size=8,
        )
    )
    def test_like_line_by_line(self, records):
        """The ranges are those that come out when each line is asked for itself."""
        made = [
            (file((first, first + more, {"content_hash": "0" * 64}), contributor=who), time, revision)
            for first, more, time, revision, who in records
        ]
        found = {}
        for conversation in imported(FileFindings("log.jsonl"), *made)[0]["conversations"]:
            for span in conversation["ranges"]:
                for line in range(span["start_line"], span["end_line"] + 1):
                    assert line not in found
                    found[line] = (span.get("contributor") or conversation["contributor"])["type"]
                if "content_hash" in span:
                    lines = (span["start_line"], span["end_line"])
                    assert lines in {(first, first + more) for first, more, *_ in records}
        for line in range(1, 32):
            having = [(r[2], at, r) for at, r in enumerate(records) if r[0] <= line <= r[0] + r[1]]
            if not having:
                assert line not in found
                continue
            winner = max(having)[2]
            voices = {json.dumps(r[4]) for _, _, r in having if r[3] == winner[3]}
            assert found[line] == ("mixed" if len(voices) > 1 else winner[4]["type"])

    def test_large(self, findings):
        """Ranges of thousands of millions of lines cost nothing, and thousands of records no time."""
        records = [(file((number, 2**53 - 1 - number, {})), number, None) for number in range(1, 3000)]
        conversations = imported(findings, *records)[0]["conversations"]
        assert sum(len(conversation["ranges"]) for conversation in conversations) == 2 * 2998 + 1


ODD = st.sampled_from(
    [None, True, -1, 5, "x", "https://example.com/", [], [{}], {}, {"type": "ai"}, {"type": 5}, {"a": 1}, AI]
)
SPANS = st.dictionaries(
    st.sampled_from(
        ["start_line", "end_line", "content_hash", "content_hash_alg", "contributor", "onrecord"]
    ),
    st.one_of(st.integers(0, 5), ODD, st.just("sha512:00")),
)
CONVERSATIONS = st.dictionaries(
    st.sampled_from(["url", "contributor", "ranges", "related", "onrecord", "x"]),
    st.one_of(ODD, st.lists(st.one_of(SPANS, ODD), max_size=3)),
)


class TestHostile:
    @settings(max_examples=30)
    @given(st.lists(st.one_of(ODD, st.lists(st.one_of(CONVERSATIONS, ODD), max_size=3)), max_size=3))
    def test_anything(self, natives):
        """Whatever the records say: the File Objects are ones of which the checker reports hashes at most."""
        findings = FileFindings("log.jsonl")
        files = imported(findings, *(({"path": "a", "conversations": native}, 1, None) for native in natives))
        document = vcon(extensions=["ai_agent", "dev.onrecord"], file_attribution={"files": files})
        found = {code for code, _, pointer in faults(document) if "file_attribution" in pointer}
        assert found <= {"range-hash-form"}


def test_shared_records(findings):
    """The agent-trace samples: one file by two records, Windows paths below the root, a short hash."""
    records = []
    for line in shared_data("traces", "agent-trace", "own", "traces.jsonl").read_bytes().splitlines():
        record = json.loads(line)
        for number, found in enumerate(record.get("files", [])):
            records.append((found, number, (record.get("vcs") or {}).get("revision")))
    paths = [found["path"] for found in imported(findings, *records, root="C:\\Users\\dev\\project")]
    assert paths[:2] == ["docs/a.md", "src/rate.py"]
    assert "attribution-hash-short" in {finding.code for finding in findings.listed()}
