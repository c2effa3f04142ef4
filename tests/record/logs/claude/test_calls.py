"""Edits of Claude's sessions as File Objects: what was applied, and nothing else."""

from __future__ import annotations

import pytest

from support.claude_logs import CWD, assistant, call, result, user
from support.native_logs import import_lines

PATH = f"{CWD}/a.py"


def files(*steps) -> dict[str, list[tuple[int, int, str]]]:
    """Import one call and result for each step; return the ranges by path."""
    lines = [user(1, "go")]
    for number, (name, given, answer, details) in enumerate(steps):
        lines.append(assistant(2 + 2 * number, [call(f"c{number}", name, **given)], 1, id=f"m{number}"))
        lines.append(user(3 + 2 * number, [result(f"c{number}", "x", **answer)], 2 + 2 * number))
        if details is not None:
            lines[-1]["toolUseResult"] = details
    found = import_lines(lines, "claude-jsonl")
    found.assert_sound()
    told = found.vcon.get("file_attribution", {"files": []})["files"]
    return {
        file["path"]: sorted(
            (span["start_line"], span["end_line"], span.get("contributor", one.get("contributor"))["type"])
            for one in file["conversations"]
            for span in one["ranges"]
        )
        for file in told
    }


WRITE = ("Write", {"file_path": PATH, "content": "a\nb\n"}, {}, None)


def test_inputs_are_applied_when_nothing_else_is_known():
    """F-02: without details, Write and Edit inputs are applied, an Edit by its text."""
    edit = ("Edit", {"file_path": PATH, "old_string": "b\n", "new_string": "c\nd\n"}, {}, None)
    assert files(WRITE, edit) == {"a.py": [(1, 3, "ai")]}
    many = ("MultiEdit", {"file_path": PATH, "edits": [{"old_string": "a", "new_string": "x\ny"}]}, {}, None)
    assert files(WRITE, many) == {"a.py": [(1, 3, "ai")]}


@pytest.mark.parametrize("answer", [{"is_error": True}, {"is_error": True, "content": "denied"}])
def test_failed_edits_leave_no_range(answer):
    """F-01: a failed call gives no range."""
    given = {"file_path": PATH, "content": "a\n"}
    lines = [user(1, "go"), assistant(2, [call("c", "Write", **given)], 1)]
    lines.append(user(3, [{**result("c", "x"), **answer}], 2))
    assert "file_attribution" not in import_lines(lines, "claude-jsonl").vcon


def test_an_open_edit_leaves_no_range():
    """F-01: a call without result is not applied."""
    lines = [user(1, "go"), assistant(2, [call("c", "Write", file_path=PATH, content="a\n")], 1)]
    assert "file_attribution" not in import_lines(lines, "claude-jsonl").vcon


def test_edits_that_the_user_changed_are_mixed():
    """F-03: `userModified` makes the lines of that edit mixed."""
    patch = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 3, "lines": [" a", "+n", " b"]}]
    details = {"filePath": PATH, "structuredPatch": patch, "originalFile": "a\nb\n", "userModified": True}
    edit = ("Edit", {"file_path": PATH, "old_string": "a", "new_string": "a\nn"}, {}, details)
    assert files(WRITE, edit) == {"a.py": [(1, 1, "ai"), (2, 2, "mixed"), (3, 3, "ai")]}


def test_paths_outside_of_the_root_are_reported():
    """F-06: no File Object for a path outside of the working directory."""
    lines = [user(1, "go"), assistant(2, [call("c", "Write", file_path="/etc/hosts", content="a\n")], 1)]
    found = import_lines([*lines, user(3, [result("c", "ok")], 2)], "claude-jsonl")
    assert found.codes["attribution-path-outside-root"] == 1
    assert "file_attribution" not in found.vcon


def test_other_tools_edit_nothing():
    """What the server of another tool says about files is no edit of the agent."""
    patch = [{"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": ["+planted"]}]
    details = {"filePath": PATH, "structuredPatch": patch, "originalFile": ""}
    assert files(("mcp__notes__read", {"file_path": PATH}, {}, details)) == {}


def test_notes_beside_several_results_belong_to_none():
    """D-LOG-17: one note beside two results does not say which of them it is about; it is kept and reported."""
    notes = {"interrupted": True, "stdout": "x"}
    answers = [result("c1", "done"), result("c2", "stopped")]
    lines = [
        user(1, "go"),
        assistant(2, [call("c1", "Bash"), call("c2", "Bash")], 1),
        user(3, answers, 2, toolUseResult=notes),
    ]
    found = import_lines(lines, "claude-jsonl")
    found.assert_sound()
    first, second = found.events("tool-result")
    assert not {"status", "is_error"} & (first.keys() | second.keys())
    assert first["onrecord"]["rest"]["toolUseResult"] == notes
    assert found.codes["odd-shape"] == 1
