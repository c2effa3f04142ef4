"""File attribution of Codex sessions: what was applied, told by end events or by the patch itself."""

from __future__ import annotations

from typing import Any

import pytest

from support.codex_logs import OWN, PATCH, calls, event, gives, item, meta, turn
from support.native_logs import Imported, import_lines

ROOT = "/home/dev/example"
CALL = item({"type": "custom_tool_call", "name": "apply_patch", "input": PATCH, "call_id": "c1"})
DONE = gives("c1", '{"output":"ok","metadata":{"exit_code":0}}')
FAILED = gives("c1", '{"output":"no","metadata":{"exit_code":1}}')


def _import(*values: dict[str, Any]) -> Imported:
    imported = import_lines([meta(), turn(), *values], "codex-jsonl")
    imported.assert_sound()
    return imported


def _files(imported: Imported) -> dict[str, list[tuple[int, int]]]:
    return {
        file["path"]: [
            (span["start_line"], span["end_line"])
            for conversation in file["conversations"]
            for span in conversation["ranges"]
        ]
        for file in imported.vcon.get("file_attribution", {}).get("files", ())
    }


def test_a_patch_counts_when_its_result_succeeded() -> None:
    """F-01: the text of a patch is applied when its result says so, not when it failed or stayed open."""
    imported = _import(CALL, DONE)
    assert _files(imported) == {"notes.md": [(1, 2)]}
    (conversation,) = imported.vcon["file_attribution"]["files"][0]["conversations"]
    assert conversation["contributor"] == {"type": "ai", "model_id": "gpt-5.2-codex"}
    assert _files(_import(CALL, FAILED)) == {}
    assert _files(_import(CALL)) == {}


@pytest.mark.parametrize(
    "call",
    [
        calls("c1", "apply_patch", {"input": PATCH}),
        calls("c1", "shell", {"command": ["apply_patch", PATCH]}),
    ],
)
def test_patches_in_arguments_count(call: dict[str, Any]) -> None:
    """A patch may stand in the arguments of a function call, or of a shell command of that name."""
    assert _files(_import(call, DONE)) == {"notes.md": [(1, 2)]}


SCRIPT = f"apply_patch <<'EOF'\n{PATCH}EOF\n"


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (calls("c1", "shell", {"command": ["bash", "-lc", SCRIPT]}), "notes.md"),
        (calls("c1", "exec_command", {"cmd": SCRIPT}), "notes.md"),
        (calls("c1", "exec_command", {"cmd": f"cd docs && {SCRIPT}"}), "docs/notes.md"),
        (calls("c1", "exec_command", {"cmd": SCRIPT, "workdir": f"{ROOT}/src"}), "src/notes.md"),
        (calls("c1", "shell", {"command": ["apply_patch", PATCH], "workdir": "src"}), "src/notes.md"),
        (calls("c1", "exec_command", {"cmd": f"{SCRIPT}rm notes.md"}), None),
        (calls("c1", "exec_command", {"cmd": f"echo {SCRIPT}"}), None),
    ],
)
def test_a_here_document_is_a_patch(call: dict[str, Any], path: str | None) -> None:
    """A script that only applies a patch is one; its paths count from the directory that the call names."""
    assert _files(_import(call, DONE)) == ({} if path is None else {path: [(1, 2)]})


def test_paths_of_a_patch_count_from_the_directory_of_the_turn() -> None:
    """After a change of the working directory, relative paths of patches mean files there."""
    assert _files(_import(turn(cwd=f"{ROOT}/src"), CALL, DONE)) == {"src/notes.md": [(1, 2)]}


def test_changes_in_the_form_of_2025_are_edits() -> None:
    """Changes whose kind is the name of their only member are applied too, and a deleted file has no File Object."""
    changes = {
        f"{ROOT}/notes.md": {"add": {"content": "one\ntwo\n"}},
        f"{ROOT}/up.md": {"update": {"unified_diff": "@@ -1 +1,2 @@\n a\n+b\n", "move_path": None}},
        f"{ROOT}/gone.md": {"delete": {"content": "x\n"}},
    }
    imported = _import(event("patch_apply_end", call_id="c1", success=True, changes=changes))
    assert _files(imported) == {"notes.md": [(1, 2)], "up.md": [(2, 2)]}


def test_changes_of_an_end_event_count_once() -> None:
    """Changes told by an end event, a completed item and the patch itself are one edit."""
    changes = {
        f"{ROOT}/notes.md": {"type": "add", "content": "one\ntwo\nthree\n"},
        f"{ROOT}/old.md": {
            "type": "update",
            "unified_diff": "@@ -1 +1,2 @@\n a\n+b\n",
            "move_path": f"{ROOT}/new.md",
        },
        f"{ROOT}/up.md": {"type": "update", "unified_diff": "@@ -1 +1,2 @@\n a\n+b\n"},
        f"{ROOT}/gone.md": {"type": "delete", "content": "x\n"},
        "/etc/hosts": {"type": "add", "content": "x\n"},
    }
    imported = _import(
        CALL,
        event("patch_apply_end", call_id="c1", success=True, changes=changes),
        event(
            "item_completed",
            item={"type": "FileChange", "id": "c1", "changes": changes, "status": "completed"},
        ),
        DONE,
    )
    assert _files(imported) == {"new.md": [(2, 2)], "notes.md": [(1, 3)], "up.md": [(2, 2)]}
    assert imported.codes["attribution-path-outside-root"] == 1


def test_a_failed_end_changes_nothing() -> None:
    """F-01: changes of an end event that failed are not attributed, even when an output follows."""
    changes = {f"{ROOT}/notes.md": {"type": "add", "content": "one\n"}}
    assert (
        _files(_import(CALL, event("patch_apply_end", call_id="c1", success=False, changes=changes), DONE))
        == {}
    )


@pytest.mark.parametrize("status", ["in_progress", "inProgress", "pending"])
def test_changes_in_progress_give_no_ranges(status: str) -> None:
    """F-01: changes that are not applied yet are no edits, and the call stays open; its end applies them."""
    changes = {f"{ROOT}/notes.md": {"type": "add", "content": "one\n"}}
    going = event(
        "item_completed", item={"type": "FileChange", "id": "c1", "changes": changes, "status": status}
    )
    imported = _import(going)
    assert _files(imported) == {}
    assert (len(imported.events("tool-call")), imported.codes["call-without-result"]) == (1, 1)
    done = event("patch_apply_end", call_id="c1", success=True, changes=changes)
    imported = _import(going, done)
    assert _files(imported) == {"notes.md": [(1, 1)]}
    assert len(imported.events("tool-call")) == len(imported.events("tool-result")) == 1
    assert _files(_import(CALL, going)) == {}


def test_streams_give_no_ranges_for_changes_in_progress() -> None:
    """F-01: nor does the event stream."""
    change = {"path": "/x/a.md", "kind": "add"}
    item_ = {"id": "item_0", "type": "file_change", "changes": [change], "status": "in_progress"}
    lines = [{"type": "thread.started", "thread_id": OWN}, {"type": "item.completed", "item": item_}]
    imported = import_lines(lines, "codex-exec-json")
    imported.assert_sound()
    assert imported.codes["attribution-path-outside-root"] == 0


def test_event_streams_without_a_folder_have_no_files() -> None:
    """F-06: an event stream names no root, so that its paths are reported and not guessed."""
    item_ = {
        "id": "item_0",
        "type": "file_change",
        "changes": [{"path": "/x/a.md", "kind": "add"}],
        "status": "completed",
    }
    imported = import_lines(
        [{"type": "thread.started", "thread_id": OWN}, {"type": "item.completed", "item": item_}],
        "codex-exec-json",
    )
    imported.assert_sound()
    assert _files(imported) == {}
    assert imported.codes["attribution-path-outside-root"] == 1
