"""Patches: what is a hunk is read, everything else is left out, and nothing raises."""

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.attribution.differences import common_runs
from onrecord.record.logs.attribution.patches import (
    MAX_LINE,
    Chunk,
    FilePatch,
    Hunk,
    PatchedFile,
    parse_apply_patch,
    parse_structured,
    parse_unified,
)

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-x", "+y", "@@ -1 +1 @@", "--- z"]), max_size=12)


class TestUnified:
    @settings(max_examples=50)
    @given(LINES, LINES)
    def test_what_difflib_writes(self, old, new):
        """The hunks of a diff, applied at their lines, make the new text of the old one."""
        diff = "".join(f"{line}\n" for line in difflib.unified_diff(old, new, "a/f", "b/f", lineterm="", n=1))
        made = list(old)
        for patch in parse_unified(diff):
            assert patch.path == "f"
            for hunk in patch.hunks:
                before = [line[1:] for line in hunk.lines if line[0] != "+"]
                assert made[hunk.start : hunk.start + len(before)] == before
                made[hunk.start : hunk.start + len(before)] = [
                    line[1:] for line in hunk.lines if line[0] != "-"
                ]
        assert made == new

    def test_several_files(self):
        """Each file has its own hunks; the rubbish between them is skipped, and the mark of a missing line feed."""
        diff = (
            "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n"
            "@@ -1 +1 @@ def f():\n-a\n+b\n\\ No newline at end of file\n"
            "Index: y\n====\n--- /dev/null\n+++ y\tWritten\n@@ -0,0 +1,2 @@\n+c\n+\n"
        )
        assert parse_unified(diff) == (
            FilePatch("x", (Hunk(0, ("-a", "+b")),)),
            FilePatch("y", (Hunk(0, ("+c", "+")),)),
        )

    def test_blank_context(self):
        """A context line that lost its space is a blank line."""
        assert parse_unified("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n")[0].hunks == (
            Hunk(0, (" a", " ", "-b", "+c")),
        )

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "@@ -1 +1 @@",
            "@@ -99999999999999999999 +1 @@\n-a\n+b\n",
            "@@ -1 +9999999999 @@\n-a\n+b\n",
            "@@@ -1 -1 +1 @@@\n  a\n",
            "@@ " * 100_000,
        ],
    )
    def test_no_hunks(self, text):
        """Broken heads and impossible line numbers give nothing to apply."""
        assert all(not hunk.lines for patch in parse_unified(text) for hunk in patch.hunks)


class TestStructured:
    def test_hunks(self):
        """The hunks of a structured patch, with the line of the new file from 0."""
        patch = [
            {
                "oldStart": 1,
                "oldLines": 1,
                "newStart": 2,
                "newLines": 1,
                "lines": ["-a", "+b", "\\ No newline", ""],
            }
        ]
        assert parse_structured(patch) == (Hunk(1, ("-a", "+b", " ")),)
        assert parse_structured([]) == ()

    @pytest.mark.parametrize(
        "patch",
        [
            None,
            "x",
            {},
            [None],
            [{}],
            [{"newStart": 1}],
            [{"newStart": "1", "lines": []}],
            [{"newStart": True, "lines": []}],
            [{"newStart": -1, "lines": []}],
            [{"newStart": MAX_LINE + 1, "lines": []}],
            [{"newStart": 1, "lines": "+a"}],
            [{"newStart": 1, "lines": [5]}],
            [{"newStart": 1, "lines": ["a"]}],
            [{"newStart": 1, "lines": ["+a\nb"]}],
            [{"newStart": 1, "lines": ["+a"]}, {"newStart": 9}],
        ],
    )
    def test_other_shapes(self, patch):
        """One hunk of another shape, and nobody knows where the lines are."""
        assert parse_structured(patch) is None


class TestApplyPatch:
    def test_all_kinds(self):
        """Files are added, updated, moved and deleted; chunks have headers and may stand at the end."""
        text = (
            "apply_patch <<'EOF'\n*** Begin Patch\n"
            "*** Add File: new.md\n+# New\n+\n*** Update File: a.py\n*** Move to: b.py\n"
            "@@ class A:\n@@ def f(self):\n x\n-y\n+z\n@@\n-last\n\n*** End of File\n"
            "*** Delete File: old.txt\n*** End Patch\nEOF\n"
        )
        assert parse_apply_patch(text) == (
            PatchedFile("add", "new.md", None, ("# New", ""), ()),
            PatchedFile(
                "update",
                "a.py",
                "b.py",
                (),
                (
                    Chunk(("class A:", "def f(self):"), (" x", "-y", "+z"), is_at_end=False),
                    Chunk((), ("-last", " "), is_at_end=True),
                ),
            ),
            PatchedFile("delete", "old.txt", None, (), ()),
        )

    @pytest.mark.parametrize(
        "text", ["", "*** Update File: a", "*** Begin Patch\n*** End Patch", "*** Begin Patch\n+a\n@@\n x"]
    )
    def test_nothing(self, text):
        """Without a beginning or a file there is nothing to apply."""
        assert parse_apply_patch(text) == ()


class TestDifferences:
    @settings(max_examples=50)
    @given(LINES, LINES)
    def test_runs(self, old, new):
        """The runs are equal on both sides and in order, and equal texts are one run."""
        a, b = [line.encode() for line in old], [line.encode() for line in new]
        behind_a = behind_b = 0
        for at_a, at_b, number in common_runs(a, b):
            assert number > 0
            assert at_a >= behind_a
            assert at_b >= behind_b
            assert a[at_a : at_a + number] == b[at_b : at_b + number]
            behind_a, behind_b = at_a + number, at_b + number
        assert common_runs(a, a) == ([(0, 0, len(a))] if a else [])

    def test_moved_block(self):
        """Of two blocks that change places the longer one stays what it was."""
        old = [b"1", b"2", b"3", b"x", b"y"]
        assert common_runs(old, [b"x", b"y", b"1", b"2", b"3"]) == [(0, 2, 3)]
