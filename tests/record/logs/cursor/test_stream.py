"""The stream of cursor-agent becomes the objects that the map says (native-logs.md 4.6)."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings

from onrecord.record.logs.cursor.stream import CursorStream
from support.native_logs import Imported, import_lines, mutations, odd_shapes

FORMAT = "cursor-stream-json"
ID = "5b0e6c1a-0000-4000-8000-00000000000a"
INIT = {
    "type": "system",
    "subtype": "init",
    "apiKeySource": "login",
    "cwd": "/srv/p",
    "session_id": ID,
    "model": "example-model",
    "permissionMode": "default",
}


def event(kind: str, at: int | None = None, **members: Any) -> dict[str, Any]:
    """Return an event of the stream; `at` in seconds."""
    time = {} if at is None else {"timestamp_ms": 1_782_900_000_000 + at * 1000}
    return {"type": kind, **members, "session_id": ID, **time}


def said(role: str, body: Any, at: int | None = None, **members: Any) -> dict[str, Any]:
    """Return a message."""
    content = [{"type": "text", "text": body}] if isinstance(body, str) else body
    return event(role, at, message={"role": role, "content": content}, **members)


def tool(
    subtype: str, call_id: str, name: str, args: Any, result: Any = None, **members: Any
) -> dict[str, Any]:
    """Return one half of a call."""
    body = {"args": args} | ({} if result is None else {"result": result})
    return event(
        "tool_call", subtype=subtype, call_id=call_id, tool_call={f"{name}ToolCall": body}, **members
    )


WRITE = {"path": "/srv/p/a.txt", "fileText": "one\ntwo\n"}
LOG = [
    INIT,
    said("user", "write it"),
    event("thinking", 1, subtype="delta", text="First "),
    event("thinking", 2, subtype="delta", text="think."),
    event("thinking", 3, subtype="completed"),
    said("assistant", "Writing.", 4),
    tool("started", "c1", "write", WRITE),
    tool("completed", "c1", "write", WRITE, {"success": {"linesCreated": 2}}),
    tool("started", "c2", "shell", {"command": "false"}),
    tool("completed", "c2", "shell", {"command": "false"}, {"error": {"exitCode": 1}}),
    event("result", 9, subtype="success", duration_ms=5, is_error=False, result="Writing."),
]
"""A stream with everything in it once."""


def run(*lines: Any) -> Imported:
    imported = import_lines(list(lines), FORMAT)
    imported.assert_sound()
    return imported


def test_whole_stream() -> None:
    """Messages, one reasoning of three pieces, calls with both ends, and the end of the session."""
    imported = run(*LOG)
    assert imported.bodies == ["write it", "Writing."]
    session = imported.vcon["sessions"][0]
    assert (session["agent_session_id"], session["format"]) == (ID, "autonomous")
    assert session["environment"]["working_dir"] == "/srv/p"
    assert imported.dialogs[1]["model_id"] == "example-model"
    (reasoning,) = imported.events("reasoning")
    assert (reasoning["content"], reasoning["time"]) == ("First think.", "2026-07-01T10:00:01Z")
    assert reasoning["onrecord"]["rest"]["records"] == [3, 4, 5]
    assert [call["tool_name"] for call in imported.events("tool-call")] == ["write", "shell"]
    results = imported.events("tool-result")
    assert [(r["status"], r.get("is_error")) for r in results] == [("success", None), ("error", True)]
    assert results[1]["output"] == {"error": {"exitCode": 1}}
    assert imported.events("session-end")[0]["data"]["duration_ms"] == 5
    assert imported.accounting[0]["of_mapped"] == {"conversation": 9, "system_event": 2}


def test_edits_that_succeeded_are_attributed() -> None:
    """A written file belongs to the model, a rejected or deleted one to nobody."""
    rejected = {**WRITE, "path": "/srv/p/b.txt"}
    gone = {**WRITE, "path": "/srv/p/c.txt"}
    edit = {"path": "/srv/p/a.txt"}
    after = {"beforeFullFileContent": "one\ntwo\n", "afterFullFileContent": "one\n2\n"}
    imported = run(
        *LOG,
        tool("completed", "c3", "write", rejected, {"rejected": {"reason": "no"}}),
        tool("completed", "c4", "write", gone, {"success": {}}),
        tool("completed", "c5", "delete", {"path": "/srv/p/c.txt"}, {"success": {}}),
        tool("completed", "c6", "edit", edit, {"success": after}),
    )
    files = imported.vcon["file_attribution"]["files"]
    assert [file["path"] for file in files] == ["a.txt"]
    assert [(r["start_line"], r["end_line"]) for r in files[0]["conversations"][0]["ranges"]] == [(1, 2)]
    assert imported.events("tool-result")[2]["status"] == "error"


def test_call_that_is_seen_completed_only() -> None:
    """The first sight of a call is its call, even when that is its end."""
    imported = run(INIT, tool("completed", "c1", "read", {"path": "a"}, {"success": {"content": "x"}}))
    assert imported.counts()["tool_calls"] == imported.counts()["tool_results"] == 1


def test_arguments_that_change_until_the_end_are_kept() -> None:
    """The call has the first arguments, the result's rest others."""
    imported = run(
        INIT,
        tool("started", "c1", "read", {"path": "a"}),
        tool("completed", "c1", "read", {"path": "b"}, {"success": {}}, hint="x"),
    )
    assert imported.events("tool-call")[0]["input"] == {"path": "a"}
    assert imported.events("tool-result")[0]["onrecord"]["rest"] == {"hint": "x", "args": {"path": "b"}}


def test_reasoning_that_is_not_completed() -> None:
    """Pieces end where another record comes, and at the end of the stream."""
    delta = event("thinking", 1, subtype="delta", text="half")
    imported = run(INIT, delta, said("user", "x"), delta)
    assert [event["content"] for event in imported.events("reasoning")] == ["half", "half"]


def test_unknown_records_are_kept() -> None:
    """D-LOG-26: unknown types, subtypes and blocks are events with all they have."""
    imported = run(
        INIT,
        event("novel", x=1),
        event("tool_call", subtype="paused", call_id="c", tool_call={}),
        event("tool_call", subtype="started", call_id="c", tool_call={}),
        event("thinking", subtype="paused", x=1),
        said("assistant", [{"type": "picture", "x": 1}]),
        said("user", []),
    )
    for kind in (
        "novel",
        "tool_call/paused",
        "tool_call/started",
        "thinking/paused",
        "block/picture",
        "message",
    ):
        assert len(imported.events(kind)) == 1, kind
    assert imported.codes["unknown-record-type"] == 3


def test_foreign_record_is_not_interpreted() -> None:
    """A record of another agent is reported and leaves no text."""
    imported = run(*LOG[:2], {"type": "gemini", "id": "a", "content": "stranger"})
    assert imported.codes["foreign-record"] == 1
    assert imported.bodies == ["write it"]


@pytest.mark.parametrize(
    ("record", "is_cursor"),
    [
        (INIT, True),
        (LOG[6], True),
        ({**INIT, "tools": []}, False),
        (LOG[1], False),
        ({"type": "tool_call", "id": "x"}, False),
    ],
)
def test_decisive_records(record: dict[str, Any], is_cursor: bool) -> None:
    """Halves of calls and a beginning without tools decide; what other streams have does not."""
    assert CursorStream.recognises(record) is is_cursor


@pytest.mark.parametrize("number", [0, 1, 2, 4, 5, 6, 7, 10])
def test_odd_shape_of_every_member(number: int) -> None:
    """R-10: members of each record in wrong kinds are kept; nothing fails, the account adds up.

    Every second variant is enough here, to save time.
    """
    for variant, record in islice(odd_shapes(LOG[number]), number % 2, None, 2):
        imported = import_lines([*LOG[:number], record, *LOG[number + 1 :]], FORMAT)
        assert imported.accounting[0]["records"] == len(LOG), variant
    imported.assert_sound()


@settings(max_examples=50, deadline=None)
@given(mutations(LOG))
def test_broken_logs(data: bytes) -> None:
    """Whatever is broken in a stream, the import ends, the account adds up and the vCon has no error."""
    import_lines(data, FORMAT).assert_sound()


def test_calls_told_as_a_function() -> None:
    """`{function: {name, arguments}}` is a call of that tool: its arguments are parsed, its result is kept."""
    holder = {"function": {"name": "lookup", "arguments": '{"a": 1}'}, "description": "a look-up"}
    done = {**holder, "result": {"success": {"found": "a thing"}}}
    lines = [
        event("tool_call", subtype=subtype, call_id="f1", tool_call=told)
        for subtype, told in (("started", holder), ("completed", done))
    ]
    imported = import_lines([INIT, *lines], FORMAT)
    imported.assert_sound()
    (call,), (result,) = imported.events("tool-call"), imported.events("tool-result")
    assert (call["tool_name"], call["input"]) == ("lookup", {"a": 1})
    assert (result["output"], result["status"]) == ({"success": {"found": "a thing"}}, "success")
    assert call["onrecord"]["rest"]["description"] == "a look-up"


def test_record_of_another_format_is_not_interpreted() -> None:
    """A line of Claude Code has a type that the stream has too; it is foreign all the same (section 3)."""
    foreign = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "x"}}
    imported = import_lines([INIT, foreign, said("user", "mine")], FORMAT)
    imported.assert_sound()
    assert imported.bodies == ["mine"]
    assert imported.codes["foreign-record"] == 1


def test_session_id_of_a_wrong_kind_is_kept() -> None:
    """The id of a session that is no text stands in rest; the record belongs to the session before it."""
    imported = import_lines([INIT, {**said("user", "mine"), "session_id": ["no id"]}], FORMAT)
    imported.assert_sound()
    assert [session.agent_session_id for session in imported.sessions] == [ID]
    assert imported.dialogs[0]["onrecord"]["rest"]["session_id"] == ["no id"]


def test_pieces_of_reasoning_are_looked_for_as_one() -> None:
    """The content check does not look for the text of one piece, which stands in the middle of another (A-05)."""
    piece = event("thinking", 1, subtype="delta", text="one of several pieces")
    assert "text" not in CursorStream.without_hashed(piece)
    assert CursorStream.without_hashed(INIT) == INIT
