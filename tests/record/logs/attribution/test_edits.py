"""Who wrote which lines: the File Objects after all edits are those of a plain list of lines (section 6)."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.attribution import Attribution, texts
from onrecord.record.logs.findings import FileFindings
from support.data import shared_data
from support.vcons import faults, vcon

ROOT = "/home/user/project"
FILE = f"{ROOT}/src/a.py"


@pytest.fixture
def findings():
    """Return findings about one log."""
    return FileFindings("log.jsonl")


@pytest.fixture
def attribution(findings):
    """Return an attribution below a known root."""
    return Attribution(ROOT, findings)


def spans(attribution, path="src/a.py"):
    """Return the ranges of a file as (first line, last line, type, model)."""
    found = []
    for file in attribution.result():
        if file["path"] == path:
            for conversation in file["conversations"]:
                for span in conversation["ranges"]:
                    who = span.get("contributor") or conversation["contributor"]
                    found.append((span["start_line"], span["end_line"], who["type"], who.get("model_id")))
    return found


def codes(findings):
    """Return the codes that were reported."""
    return [finding.code for finding in findings.listed()]


def hunk(start, *lines):
    """Return a structured patch of one hunk."""
    return [{"oldStart": start, "newStart": start, "lines": list(lines)}]


class TestLikeAList:
    @settings(max_examples=50)
    @given(st.data())
    def test_edits(self, data):
        """After any edits the ranges, their hashes and contributors are those of a plain list of owned lines."""
        attribution = Attribution(ROOT, FileFindings("log.jsonl"))
        lines = [(f"line {number}", None) for number in range(data.draw(st.integers(0, 30)))]
        attribution.edit(FILE, structured_patch=[], before="".join(f"{line}\n" for line, _ in lines))
        for number in range(data.draw(st.integers(1, 12))):
            model = data.draw(st.sampled_from(["m1", "m2"]))
            start = data.draw(st.integers(0, len(lines)))
            removed = data.draw(st.integers(0, min(4, len(lines) - start)))
            added = [f"new {number}.{i}" for i in range(data.draw(st.integers(0, 3)))]
            head, tail = lines[max(start - 2, 0) : start], lines[start + removed : start + removed + 2]
            way = data.draw(st.sampled_from(["patch", "diff", "text", "whole"]))
            old = "".join(f"{line}\n" for line, _ in lines[start : start + removed])
            new = "".join(f"{line}\n" for line in added)
            before = "".join(f"{line}\n" for line, _ in lines)
            marked = [f" {line}" for line, _ in head]
            marked += [f"-{line}" for line, _ in lines[start : start + removed]] + [
                f"+{line}" for line in added
            ]
            marked += [f" {line}" for line, _ in tail]
            lines[start : start + removed] = [(line, model) for line in added]
            if way == "patch":
                attribution.edit(FILE, structured_patch=hunk(start - len(head) + 1, *marked), model_id=model)
            elif way == "diff":
                old_count, new_count = len(head) + removed + len(tail), len(head) + len(added) + len(tail)
                first = start - len(head)
                text = (
                    f"@@ -{first + (old_count > 0)},{old_count} +{first + (new_count > 0)},{new_count} @@\n"
                )
                attribution.edit(
                    FILE,
                    unified_diff=text + "".join(f"{line}\n" for line in marked),
                    before=before,
                    model_id=model,
                )
            elif way == "text" and old:
                attribution.edit(FILE, old=old, new=new, model_id=model)
            else:
                after = "".join(f"{line}\n" for line, _ in lines)
                attribution.edit(FILE, before=before, after=after, model_id=model)
        found = {}
        for conversation in attribution.result()[0]["conversations"]:
            for span in conversation["ranges"]:
                who = span.get("contributor") or conversation["contributor"]
                text = "".join(f"{line}\n" for line, _ in lines[span["start_line"] - 1 : span["end_line"]])
                assert span["content_hash"] == hashlib.sha256(text.encode()).hexdigest()
                found |= dict.fromkeys(range(span["start_line"] - 1, span["end_line"]), who["model_id"])
        assert found == {number: model for number, (_, model) in enumerate(lines) if model}

    @settings(max_examples=50)
    @given(
        st.text("ab\n", max_size=20),
        st.text("ab\n", min_size=1, max_size=3),
        st.text("abc\n", max_size=4),
        st.booleans(),
    )
    def test_substitution(self, text, old, new, every):
        """A replaced text leaves the lines of the replaced text, wherever in a line it begins and ends."""
        before = text if not text or text.endswith("\n") else text + "\n"
        number = before.count(old)
        attribution = Attribution(ROOT, FileFindings("log.jsonl"))
        attribution.edit(FILE, text=before, model_id="m1")
        attribution.edit(FILE, old=old, new=new, replace_all=every, model_id="m2")
        found = spans(attribution)
        if number == 0 or (number > 1 and not every):
            assert found == []
            return
        after = before.replace(old, new).encode()
        lines = after.removesuffix(b"\n").split(b"\n") if after else []
        assert [line for first, last, _, _ in found for line in range(first, last + 1)] == list(
            range(1, len(lines) + 1)
        )
        digests = [
            span["content_hash"] for c in attribution.result()[0]["conversations"] for span in c["ranges"]
        ]
        for (first, last, _, model), digest in zip(found, digests, strict=True):
            part = b"".join(line + b"\n" for line in lines[first - 1 : last])
            assert digest == hashlib.sha256(part).hexdigest()
            if model == "m1":
                assert set(lines[first - 1 : last]) <= set(before.encode().split(b"\n"))


class TestRules:
    def test_contributors(self, attribution):
        """F-03, F-05: edits that a person modified are mixed; neighbours of one contributor are one range."""
        attribution.edit(FILE, text="a\nb\nc\nd\n", model_id="m")
        attribution.edit(FILE, structured_patch=hunk(2, " b", "-c", "+C"), contributor="mixed", model_id="m")
        attribution.edit(FILE, structured_patch=hunk(1, "+z", " a"), model_id="m")
        assert spans(attribution) == [(1, 3, "ai", "m"), (4, 4, "mixed", "m"), (5, 5, "ai", "m")]

    def test_one_contributor(self, attribution):
        """With one contributor for all ranges it stands at the conversation, once."""
        attribution.edit(FILE, text="a\n")
        assert attribution.result() == [
            {
                "path": "src/a.py",
                "conversations": [
                    {
                        "contributor": {"type": "ai"},
                        "ranges": [
                            {
                                "start_line": 1,
                                "end_line": 1,
                                "content_hash": hashlib.sha256(b"a\n").hexdigest(),
                            }
                        ],
                    }
                ],
            }
        ]

    def test_lines_move_and_vanish(self, attribution):
        """F-02: lines of earlier edits move with what is put before them, and vanish when they are replaced."""
        attribution.edit(
            FILE, structured_patch=hunk(3, " c", "+mine", " d"), before="a\nb\nc\nd\n", model_id="m1"
        )
        attribution.edit(FILE, structured_patch=hunk(1, "+top", "+top", " a"), contributor="human")
        assert spans(attribution) == [(1, 2, "human", None), (6, 6, "ai", "m1")]
        attribution.edit(FILE, structured_patch=hunk(5, " c", "-mine", "+yours", " d"), model_id="m2")
        assert spans(attribution) == [(1, 2, "human", None), (6, 6, "ai", "m2")]

    def test_hunks_only(self, attribution):
        """F-02: where only hunks are known, the offsets count and the file is marked."""
        attribution.edit(FILE, unified_diff="@@ -50 +50,2 @@\n x\n+y\n", model_id="m")
        attribution.edit(FILE, unified_diff="@@ -10 +9,0 @@\n-gone\n", model_id="m")
        assert spans(attribution) == [(50, 50, "ai", "m")]
        assert attribution.result()[0]["onrecord"] == {"rest": {"basis": "hunks"}}
        attribution.edit(FILE, before="a\n" * 49 + "y\n", structured_patch=[])
        assert spans(attribution) == [(50, 50, "ai", "m")]
        assert "onrecord" not in attribution.result()[0]

    def test_changes_by_others(self, attribution):
        """What somebody else changed in between moves the lines and belongs to nobody in the log."""
        attribution.edit(FILE, text="a\nb\nc\n", model_id="m")
        attribution.edit(FILE, before="new\na\nB\nc\n", structured_patch=hunk(4, " c", "+d"), model_id="m")
        assert spans(attribution) == [(2, 2, "ai", "m"), (4, 5, "ai", "m")]

    def test_moved_without_the_text(self, attribution):
        """A hunk whose lines stand elsewhere in what is known tells that others added or removed lines before it."""
        attribution.edit(FILE, text="".join(f"{n}\n" for n in range(10)), model_id="m")
        attribution.edit(FILE, structured_patch=hunk(9, " 5", "+x", " 6"), model_id="n")
        assert spans(attribution) == [
            (1, 5, "ai", "m"),
            (9, 9, "ai", "m"),
            (10, 10, "ai", "n"),
            (11, 14, "ai", "m"),
        ]
        attribution.edit(FILE, structured_patch=hunk(2, " 5", "+y", " x"), model_id="n")
        assert spans(attribution)[:2] == [(1, 2, "ai", "m"), (3, 4, "ai", "n")]

    def test_lines_taken_from_an_unknown_file(self, attribution):
        """A hunk that only takes lines away leaves the end of the file unknown, until the whole text is told."""
        attribution.edit(FILE, structured_patch=hunk(1, " a", "-b", "-c", "+d"), model_id="m")
        attribution.edit(FILE, structured_patch=hunk(1, " a", " d", "+e"), before="a\nd\nz\n", model_id="m")
        assert spans(attribution) == [(2, 3, "ai", "m")]

    def test_same_text_again(self, attribution):
        """Writing what is there already changes no contributor."""
        attribution.edit(FILE, text="a\nb\n", contributor="human")
        attribution.edit(FILE, text="a\nb\nc", model_id="m")
        assert spans(attribution) == [(1, 2, "human", None), (3, 3, "ai", "m")]

    @pytest.mark.parametrize("old", ["x", "a", "", None])
    def test_place_not_found(self, attribution, old):
        """An edit whose place is not found leaves no ranges: nobody knows how the lines moved."""
        attribution.edit(FILE, text="a\na\n", model_id="m")
        attribution.edit(FILE, old=old, new="b", model_id="m")
        assert attribution.result()[0]["conversations"] == [
            {"contributor": {"type": "ai", "model_id": "m"}, "ranges": []}
        ]

    def test_deleted_and_renamed(self, attribution):
        """F-08: a deleted file has no File Object, a renamed one keeps its ranges, what it replaces is gone."""
        attribution.edit(FILE, text="a\n")
        attribution.edit(f"{ROOT}/b.py", text="b\nb\n")
        attribution.edit(f"{ROOT}/c.py", text="c\n")
        attribution.delete(f"{ROOT}/c.py")
        attribution.delete(f"{ROOT}/never.py")
        attribution.rename(FILE, f"{ROOT}/b.py")
        attribution.rename(f"{ROOT}/never.py", f"{ROOT}/other.py")
        assert [file["path"] for file in attribution.result()] == ["b.py"]
        assert spans(attribution, "b.py") == [(1, 1, "ai", None)]

    def test_outside(self, attribution, findings):
        """F-06: a file outside of the root has no File Object; it is reported once, and its path is not quoted."""
        for _ in range(2):
            attribution.edit("/etc/hosts", text="x\n", record=3)
            attribution.mention("/etc/hosts", record=4)
        attribution.edit(f"{ROOT}/../b", text="x\n", record=5)
        attribution.touched(5, record=6)
        assert attribution.result() == []
        assert [(finding.code, finding.record) for finding in findings.listed()] == [
            ("attribution-path-outside-root", number) for number in (3, 5, 6)
        ]
        assert "hosts" not in json.dumps([finding.to_json() for finding in findings.listed()])

    def test_no_root(self, findings):
        """F-06: without a known root there is no File Object, until a directory is known."""
        attribution = Attribution(None, findings)
        attribution.edit("a.py", text="a\n")
        assert codes(findings) == ["attribution-path-outside-root"]
        attribution.move_to(ROOT)
        attribution.edit("a.py", text="a\n")
        attribution.move_to(f"{ROOT}/sub")
        attribution.edit("b.py", text="a\n")
        assert [file["path"] for file in attribution.result()] == ["a.py", "sub/b.py"]

    def test_touched(self, attribution):
        """F-03, F-10: a file that a command changed is there without ranges, those that are known stay."""
        attribution.touched(FILE)
        attribution.edit(f"{ROOT}/b.py", text="a\n", model_id="m")
        attribution.touched(f"{ROOT}/b.py")
        attribution.touched(f"{ROOT}/b.py")
        unknown = {"contributor": {"type": "unknown"}, "ranges": []}
        first, second = attribution.result()
        assert second["conversations"] == [unknown]
        assert first["conversations"][1:] == [unknown]
        assert spans(attribution, "b.py") == [(1, 1, "ai", "m")]


class TestApplyPatch:
    def test_by_context(self, attribution):
        """Chunks are found by their context, behind their headers, at the end when they say so."""
        attribution.edit(FILE, before="def f():\n    x\ndef g():\n    x\nend\nend\n", structured_patch=[])
        attribution.patch(
            "*** Begin Patch\n*** Update File: src/a.py\n@@ def g():\n-    x\n+    y\n"
            "@@\n-end\n+END\n*** End of File\n*** End Patch",
            model_id="m",
        )
        assert spans(attribution) == [(4, 4, "ai", "m"), (6, 6, "ai", "m")]

    def test_move_add_delete(self, attribution):
        """A patch adds, moves and deletes files."""
        attribution.edit(f"{ROOT}/old", text="a\n")
        attribution.edit(FILE, text="a\n", model_id="m")
        attribution.patch(
            "*** Begin Patch\n*** Add File: new\n+x\n*** Update File: src/a.py\n*** Move to: b\n@@\n-a\n+b\n"
            "*** Delete File: old\n*** End Patch\n",
            model_id="n",
        )
        assert [file["path"] for file in attribution.result()] == ["b", "new"]
        assert spans(attribution, "b") == spans(attribution, "new") == [(1, 1, "ai", "n")]

    def test_unknown_text(self, attribution):
        """Without the text of the file no place is guessed."""
        attribution.patch("*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch\n")
        assert attribution.result()[0]["conversations"] == [{"contributor": {"type": "ai"}, "ranges": []}]


class TestHostile:
    def test_line_numbers(self, attribution):
        """Line numbers of thousands of millions cost a piece each."""
        for number in range(200):
            attribution.edit(FILE, structured_patch=hunk(2**31 - 10 * number, " a", "+b"), model_id="m")
        assert len(spans(attribution)) == 200

    def test_search_is_bounded(self, attribution, monkeypatch):
        """A log cannot make us search a large text for ever: beyond the budget places count as not found."""
        monkeypatch.setattr(texts, "MAX_SEARCHED", 20_000)
        attribution.edit(FILE, text="a\n" * 2000 + "b\n", model_id="m")
        attribution.edit(FILE, old="b", new="c", model_id="m")
        assert spans(attribution) == [(1, 2001, "ai", "m")]
        attribution.edit(FILE, old="c", new="d", model_id="m")
        assert spans(attribution) == []

    def test_texts_do_not_explode(self, attribution):
        """Replacing every letter by two, again and again, ends at the largest file that is followed."""
        attribution.edit(FILE, text="a\n", model_id="m")
        for _ in range(60):
            attribution.edit(FILE, old="a", new="aa", replace_all=True, model_id="m")
        assert attribution.result()[0]["conversations"] == [
            {"contributor": {"type": "ai", "model_id": "m"}, "ranges": []}
        ]

    @pytest.mark.parametrize(("lines", "size"), [(9, 40), (11, 40), (3, 41)])
    def test_large_files(self, attribution, monkeypatch, lines, size):
        """A file with more lines or bytes than is followed has no ranges, and one that has as many has them."""
        monkeypatch.setattr(texts, "MAX_LINES", 10)
        monkeypatch.setattr(texts, "MAX_TEXT", 40)
        attribution.edit(FILE, text="\n" * (lines - 1) + "x" * (size - lines) + "\n", model_id="m")
        assert bool(spans(attribution)) == (lines <= 10 and size <= 40)

    def test_on_disk(self, attribution, monkeypatch):
        """Texts that do not fit into memory lie in a file, with the same result."""
        monkeypatch.setattr(texts, "MAX_IN_MEMORY", 100)
        monkeypatch.setattr(texts, "SMALL", 1)
        for name in ("a", "b", "c"):
            attribution.edit(name, text="".join(f"{name} {line}\n" for line in range(50)), model_id="m")
        attribution.edit("c", old="c 7\n", new="new\n", model_id="n")
        attribution.edit("b", structured_patch=hunk(3, " b 2", "+new", " b 3"), model_id="n")
        text = b"".join(b"c %d\n" % line for line in range(7))
        assert (
            attribution.result()[2]["conversations"][0]["ranges"][0]["content_hash"]
            == hashlib.sha256(text).hexdigest()
        )
        assert spans(attribution, "b") == [(1, 3, "ai", "m"), (4, 4, "ai", "n"), (5, 51, "ai", "m")]
        assert spans(attribution, "c") == [(1, 7, "ai", "m"), (8, 8, "ai", "n"), (9, 50, "ai", "m")]

    @settings(max_examples=50)
    @given(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "structured_patch": st.one_of(
                        st.none(),
                        st.lists(
                            st.fixed_dictionaries(
                                {
                                    "newStart": st.one_of(
                                        st.integers(-1, 2**33), st.integers(0, 9), st.text(max_size=1)
                                    ),
                                    "lines": st.lists(
                                        st.sampled_from([" a", "+b", "-c", "\\x", "q", "", 5]), max_size=5
                                    ),
                                }
                            ),
                            max_size=3,
                        ),
                        st.integers(),
                    ),
                    "unified_diff": st.text("@-+1, \n", max_size=30),
                    "before": st.text("ab\n", max_size=9),
                    "after": st.text("ab\n", max_size=9),
                    "text": st.text("ab\n", max_size=9),
                    "old": st.text("ab\n", max_size=2),
                    "new": st.text("ab\n\ud800", max_size=2),
                    "contributor": st.sampled_from(["ai", "human", "mixed", "unknown"]),
                },
            ),
            max_size=8,
        )
    )
    def test_anything(self, natives):
        """Whatever the edits say, the File Objects are ones that the checker has nothing against."""
        attribution = Attribution(ROOT, FileFindings("log.jsonl"))
        for native in natives:
            attribution.edit(FILE, **native)
        files = attribution.result()
        document = vcon(extensions=["ai_agent", "dev.onrecord"], file_attribution={"files": files})
        assert not [fault for fault in faults(document) if "file_attribution" in fault[2]]


class TestSharedLogs:
    """The two logs with expected File Objects, read here by hand; the importers read them in their own tests."""

    def compare(self, attribution, expected):
        lines = {}
        for file in attribution.result():
            for first, last, kind, _ in spans(attribution, file["path"]):
                lines |= {(file["path"], line): kind for line in range(first, last + 1)}
        wanted = {
            (file["path"], line): span["type"]
            for file in expected["files"]
            for span in file["ranges"]
            for line in range(span["start_line"], span["end_line"] + 1)
        }
        assert lines == wanted

    def records(self, name):
        path = shared_data("traces", "file-attribution", name)
        expected = json.loads(path.with_name("expected.json").read_bytes())[name]
        return [json.loads(line) for line in path.read_bytes().splitlines()], expected

    def test_claude(self, findings):
        """Created, edited, modified by the user."""
        records, expected = self.records("claude-edits.jsonl")
        attribution = Attribution(records[0]["cwd"], findings)
        for record in records:
            result = record.get("toolUseResult")
            if isinstance(result, dict) and result.get("type") == "create":
                attribution.edit(result["filePath"], text=result["content"])
            elif isinstance(result, dict):
                attribution.edit(
                    result["filePath"],
                    structured_patch=result["structuredPatch"],
                    before=result["originalFile"],
                    contributor="mixed" if result["userModified"] else "ai",
                )
        self.compare(attribution, expected)

    def test_codex(self, findings):
        """Updated by a diff, added, deleted."""
        records, expected = self.records("codex-patch.jsonl")
        attribution = Attribution(records[0]["payload"]["cwd"], findings)
        for record in records:
            for path, change in record["payload"].get("changes", {}).items():
                if change["type"] == "delete":
                    attribution.delete(path)
                else:
                    attribution.edit(
                        path, text=change.get("content"), unified_diff=change.get("unified_diff")
                    )
        self.compare(attribution, expected)
