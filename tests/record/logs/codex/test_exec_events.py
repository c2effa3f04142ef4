"""The event stream of `codex exec --json` becomes one session for each thread."""

from __future__ import annotations

from support.codex_logs import EXEC, OWN
from support.native_logs import import_lines


def test_a_stream_is_a_session() -> None:
    """Texts, reasoning, calls with one result each, and the turn's usage; times are derived."""
    imported = import_lines(EXEC, "codex-exec-json")
    imported.assert_sound()
    session = imported.vcon["sessions"][0]
    assert (session["agent_session_id"], session["format"]) == (OWN, "autonomous")
    assert imported.bodies == ["Done."]
    command, server = imported.events("tool-call")
    assert (command["tool_name"], command["input"]) == ("command_execution", {"command": "ls"})
    assert server["onrecord"]["origin"] == {"kind": "mcp", "server": "files", "tool": "read"}
    failed, found = imported.events("tool-result")
    assert (failed["output"], failed["status"], failed["onrecord"]["rest"]["exit_code"]) == (
        "a.txt",
        "error",
        2,
    )
    assert found["output"] == {"content": [{"type": "text", "text": "one"}]}
    (count,) = imported.events("token-count")
    assert count["data"]["scope"] == "turn"
    assert imported.counts()["total"] == 980
    assert imported.sessions[0].usage_totals()[1] == "turns"
    assert len(imported.events("todo_list")) == 1
    assert imported.codes["time-derived"] == 1 * len(EXEC)


def test_item_ids_restart_with_each_thread() -> None:
    """Two threads in one stream are two sessions whose items do not meet."""
    other = [{**EXEC[0], "thread_id": "other"}, *EXEC[1:]]
    imported = import_lines([*EXEC, *other], "codex-exec-json")
    imported.assert_sound()
    assert len(imported.vcons) == 2
    assert len(imported.events("tool-call")) == 4
    assert imported.codes["duplicate-call"] == 0


def test_a_call_that_is_never_completed_stays_open() -> None:
    """A started item without its end is an open call, and news about it are kept."""
    started = EXEC[3]
    news = {**started, "type": "item.updated"}
    imported = import_lines([EXEC[0], started, news], "codex-exec-json")
    imported.assert_sound()
    assert len(imported.events("tool-call")) == 1
    assert len(imported.events("item.updated")) == 1
    assert imported.codes["call-without-result"] == 1


def test_failures_are_errors() -> None:
    """Failed turns, errors and error items are error events."""
    values = [
        EXEC[0],
        {"type": "turn.failed", "error": {"message": "no"}},
        {"type": "error", "message": "no"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "no"}},
    ]
    assert len(import_lines(values, "codex-exec-json").events("error")) == 3


def test_unknown_items_and_events_are_kept() -> None:
    """D-LOG-26: an unknown item or event is a system-event with the whole record."""
    item = {"type": "item.completed", "item": {"id": "item_0", "type": "hologram", "data": "content"}}
    imported = import_lines([EXEC[0], item, {"type": "turn.news", "text": "content"}], "codex-exec-json")
    assert imported.events("item/hologram")[0]["data"] == item
    assert imported.events("turn.news")[0]["data"] == {"type": "turn.news", "text": "content"}
    assert imported.codes["unknown-record-type"] == 2


def test_a_stream_without_its_start_is_named_by_the_file() -> None:
    """A stream whose first event is cut off is a session named by the file."""
    imported = import_lines(EXEC[1:], "codex-exec-json", name="night-run.jsonl")
    imported.assert_sound()
    assert imported.vcon["sessions"][0]["agent_session_id"] == "night-run"
