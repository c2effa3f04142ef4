"""File attribution of Codex sessions: what was applied, told by end events or by the patch itself."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.codex_logs import OWN, PATCH, calls, event, gives, item, meta, turn
from tests.support.native_logs import Imported, import_lines

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
