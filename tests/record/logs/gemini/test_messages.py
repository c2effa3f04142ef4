"""Messages of Gemini CLI become the objects that the map says (native-logs.md 4.4)."""

from __future__ import annotations

import base64
import json
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings

from onrecord.record.logs.runs import Options
from support.gemini_logs import HEADER, LOG, SESSION, TOKENS, answer, at, call, response, user
from support.native_logs import Imported, import_lines, mutations, odd_shapes

FORMAT = "gemini-json"
PICTURE = base64.b64encode(b"not a real picture, only some bytes").decode()


def run(*lines: Any, options: Options | None = None) -> Imported:
    imported = import_lines([HEADER, *lines], FORMAT, options=options)
    imported.assert_sound()
    return imported


def test_members_without_a_home_are_kept() -> None:
    """displayContent, unknown members, the members of calls and the model of a silent answer stand in rest."""
    said = user("a", 1, "one", displayContent="ONE", novelty={"x": 1})
    silent = answer(
        "b", 2, "", toolCalls=[call("c", "out", 3, displayName="Shell", agentId="none", extra=[1])]
    )
    imported = run(said, silent)
    assert imported.dialogs[0]["onrecord"]["rest"] == {"displayContent": "ONE", "novelty": {"x": 1}}
    rest = imported.events("tool-call")[0]["onrecord"]["rest"]
    assert rest == {"model": "gemini-3-pro", "displayName": "Shell", "agentId": "none", "extra": [1]}
    assert imported.codes["unknown-member"] == 1


def test_calls_and_results_have_their_times_and_status() -> None:
    """A call stands at the message's time, its result at the call's; cancelled is an error, running is open."""
    calls = [
        call("c1", "fine", 3),
        call("c2", "stopped", 4, status="cancelled"),
        call("c3", None, 5, status="executing"),
        call("c4", "half", 6, status="executing"),
    ]
    imported = run(answer("a", 1, "", toolCalls=calls))
    assert [event["time"] for event in imported.events("tool-call")] == ["2026-07-01T10:00:01Z"] * 4
    results = {event["call_id"]: event for event in imported.events("tool-result")}
    assert results["c1"]["time"] == "2026-07-01T10:00:03Z"
    assert [results[name].get("status") for name in ("c1", "c2", "c4")] == ["success", "error", None]
    assert results["c2"]["is_error"] is True
    assert results["c2"]["onrecord"]["rest"]["status"] == "cancelled"
    assert imported.codes["call-without-result"] == 1


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("Output: x\nExit Code: 1\nProcess Group PGID: 7", "error"),
        (
            "<untrusted_context>\nOutput: x\nExit Code: 2\nSignal: 9\nProcess Group PGID: 7\n</untrusted_context>",
            "error",
        ),
        ("Output: x\nExit Code: 0\nProcess Group PGID: 7", "success"),
        ("Exit Code: 1\nOutput: the text tells of another program", "success"),
    ],
)
def test_exit_code_of_a_shell_decides(output: str, status: str) -> None:
    """A non-zero exit code at the end of a shell's output is an error although the log says success."""
    imported = run(answer("a", 1, "", toolCalls=[call("c1", output, 3)]))
    assert imported.events("tool-result")[0]["status"] == status
    assert imported.events("tool-result")[0]["output"] == [response("c1", output)]


def test_exit_code_in_the_output_of_another_tool_says_nothing() -> None:
    """A file that ends like a shell's output is no failure."""
    read = call("c1", "text\nExit Code: 1", 3, name="read_file")
    assert run(answer("a", 1, "", toolCalls=[read])).events("tool-result")[0]["status"] == "success"


def test_calls_without_tool_calls_element() -> None:
    """Parts functionCall and functionResponse parts alone are call and result; without an id they stay apart."""
    asked = {"functionCall": {"id": "f1", "name": "grep", "args": {"q": 1}}, "thoughtSignature": "c2ln"}
    nameless = {"functionCall": {"name": "grep", "args": {}}}
    failed = {"functionResponse": {"id": "f1", "name": "grep", "response": {"error": "no such file"}}}
    imported = run(answer("a", 1, [{"text": "so"}, asked, nameless]), user("b", 2, [failed]))
    first, second = imported.events("tool-call")
    assert (first["tool_name"], first["input"], first["call_id"]) == ("grep", {"q": 1}, "f1")
    assert first["onrecord"]["rest"] == {"thoughtSignature": "c2ln"}
    assert "call_id" not in second
    result = imported.events("tool-result")[0]
    assert (result["output"], result["status"], result["is_error"]) == ([failed], "error", True)


def test_call_without_id_is_named_after_its_message() -> None:
    """A toolCalls element without id gets the message's id and its number."""
    native = call("x", "out", 3)
    del native["id"]
    imported = run(answer("a", 1, "", toolCalls=[native]))
    assert imported.events("tool-call")[0]["call_id"] == "a#1"
    assert imported.events("tool-result")[0]["call_id"] == "a#1"


def test_server_of_a_tool_is_told_when_the_log_tells_it() -> None:
    """The name that MCP tools are shown under gives server and tool; others are the host's."""
    calls = [call("c1", "x", 2, name="files_read", displayName="read (files MCP Server)"), call("c2", "x", 2)]
    origins = [e["onrecord"]["origin"] for e in run(answer("a", 1, "", toolCalls=calls)).events("tool-call")]
    assert origins == [{"kind": "mcp", "server": "files", "tool": "read"}, {"kind": "host"}]


def test_thoughts() -> None:
    """Thoughts have their own times; thought parts count only where there are none."""
    thoughts = [{"subject": "S", "description": "D", "timestamp": at(3), "more": 1}, {"summary": "only"}]
    part = {"text": "thinking aloud", "thought": True, "thoughtSignature": "c2ln"}
    both = run(answer("a", 1, [part, {"text": "so"}], thoughts=thoughts))
    first, second = both.events("reasoning")
    assert (first["content"], first["subject"], first["time"]) == ("D", "S", "2026-07-01T10:00:03Z")
    assert first["onrecord"]["rest"] == {"more": 1}
    assert second["content"] == "only"
    alone = run(answer("a", 1, [part, {"text": "so"}], thoughts=[]))
    assert [(e["content"], e["encrypted"]) for e in alone.events("reasoning")] == [("thinking aloud", "c2ln")]


def test_usage_of_an_answer_without_text_is_an_event() -> None:
    """Usage stands on the first text, or in a token-count event; thoughts are part of the output."""
    imported = run(
        answer("a", 1, [{"text": "x"}, {"text": "y"}], tokens=TOKENS), answer("b", 2, "", tokens=TOKENS)
    )
    usage = imported.dialogs[0]["token_usage"]
    assert (usage["input"], usage["output"]) == (900, 80)
    assert "token_usage" not in imported.dialogs[1]
    event = imported.events("token-count")[0]
    assert (event["data"]["scope"], event["data"]["response_id"], event["data"]["native"]) == (
        "response",
        "b",
        TOKENS,
    )
    assert imported.counts()["total"] == 2 * 980


def test_pictures() -> None:
    """A picture of the user is attached, one of a tool stays and is told of, a file elsewhere is an event."""
    inline = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
    shown = call("c", None, 3, result=[response("c", "see"), inline], status="success", timestamp=at(3))
    elsewhere = {"fileData": {"mimeType": "text/plain", "fileUri": "https://example.com/a"}}
    imported = run(user("a", 1, [{"text": "look"}, inline, elsewhere]), answer("b", 2, "", toolCalls=[shown]))
    attachment = imported.vcon["attachments"][0]
    assert (attachment["mediatype"], attachment["dialog"]) == ("image/png", 0)
    media = imported.events("tool-result")[0]["onrecord"]["media"][0]
    assert (media["pointer"], media["bytes"]) == ("/output/1/inlineData/data", 35)
    assert imported.events("block/fileData")[0]["data"] == elsewhere
    hashed = run(answer("b", 2, "", toolCalls=[shown]), options=Options(media="hash"))
    assert PICTURE not in hashed.texts[0].decode()
    assert hashed.codes["media-omitted"] == 1


def test_unknown_messages_parts_and_operations_are_kept() -> None:
    """D-LOG-26: what a later version may bring is an event with the whole record."""
    imported = run(
        {"id": "a", "timestamp": at(1), "type": "novel", "content": "x", "deep": {"y": [1]}},
        user("b", 2, [{"text": "t"}, {"executableCode": {"code": "1"}}]),
        {"$push": {"messages": []}},
        {"$set": {"colour": "red"}},
        {"news": True},
    )
    assert imported.events("novel")[0]["data"]["deep"] == {"y": [1]}
    assert imported.events("block/executableCode")[0]["data"] == {"executableCode": {"code": "1"}}
    assert imported.events("$push")[0]["data"] == {"$push": {"messages": []}}
    assert imported.events("$set")[0]["data"] == {"colour": "red"}
    assert imported.events("unknown")[0]["data"] == {"news": True}
    assert imported.codes["unknown-record-type"] == 3
    assert imported.codes["unknown-block-type"] == 1


def test_edits_that_were_applied_are_attributed() -> None:
    """Lines of write_file and replace belong to the model; failed, rewound and foreign ones give nothing."""
    new = call(
        "c1", "ok", 2, name="write_file", args={"file_path": "/srv/p/a.py", "content": "a = 1\nb = 2\n"}
    )
    change = call("c2", "ok", 3, name="replace", args={"file_path": "/srv/p/a.py"})
    change["resultDisplay"] = {
        "fileName": "a.py",
        "fileDiff": "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n",
        "originalContent": "a = 1\nb = 2\n",
        "newContent": "a = 1\nb = 3\n",
        "diffStat": {"user_added_lines": 1},
    }
    failed = call("c3", "no", 4, name="write_file", args={"file_path": "/srv/p/b.py", "content": "x\n"})
    failed["status"] = "error"
    rewound = call("c4", "ok", 5, name="write_file", args={"file_path": "/srv/p/c.py", "content": "x\n"})
    imported = run(
        {"$set": {"directories": ["/srv/p"]}},
        answer("a", 1, "", toolCalls=[new, change, failed]),
        answer("b", 5, "", toolCalls=[rewound]),
        {"$rewindTo": "b"},
    )
    files = imported.vcon["file_attribution"]["files"]
    assert [file["path"] for file in files] == ["a.py"]
    assert imported.vcon["sessions"][0]["environment"]["working_dir"] == "/srv/p"
    assert {json.dumps(r["contributor"]) for c in files[0]["conversations"] for r in c["ranges"]} == {
        '{"type": "ai", "model_id": "gemini-3-pro"}',
        '{"type": "mixed", "model_id": "gemini-3-pro"}',
    }


def test_foreign_record_is_not_interpreted() -> None:
    """A record of another agent in the log is reported and leaves no text."""
    foreign = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": "stranger"}}
    imported = run(user("a", 1, "one"), foreign)
    assert imported.codes["foreign-record"] == 1
    assert imported.bodies == ["one"]


@pytest.mark.parametrize("number", [0, 1, 5, 6, 9, 11])
def test_odd_shape_of_every_member(number: int) -> None:
    """R-10: members of each record in wrong kinds are kept; nothing fails, the account adds up.

    Every second variant is enough here, to save time.
    """
    for variant, record in islice(odd_shapes(LOG[number]), number % 2, None, 2):
        lines = [*LOG[:number], record, *LOG[number + 1 :]]
        imported = import_lines(lines, FORMAT)
        account = imported.accounting[0]
        assert account["records"] == len(LOG), variant
    imported.assert_sound()


@settings(max_examples=50, deadline=None)
@given(mutations(LOG))
def test_broken_logs(data: bytes) -> None:
    """Whatever is broken in a log, the import ends, the account adds up and the vCon has no error."""
    import_lines(data, FORMAT).assert_sound()


def test_session_is_named_after_the_header() -> None:
    """The header gives id, start and kind; the last heartbeat is kept."""
    imported = run({"$set": {"lastUpdated": at(9)}}, user("a", 1, "one"))
    session = imported.vcon["sessions"][0]
    assert (session["agent_session_id"], session["format"]) == (SESSION, "interactive")
    start = imported.events("session-start")[0]
    assert start["data"]["projectHash"] == HEADER["projectHash"]
    assert start["data"]["last_heartbeat"] == at(9)
    assert "environment" not in session


def test_odd_members_of_an_answer_with_text_are_kept() -> None:
    """`toolCalls` and `model` of a wrong kind stand in rest, also beside a text."""
    imported = run(answer("a", 1, "text", toolCalls="no list of calls", model=["no model"]))
    (dialog,) = imported.dialogs
    assert dialog["onrecord"]["rest"] == {"toolCalls": "no list of calls", "model": ["no model"]}
    assert imported.codes["odd-shape"] == 2


def test_usage_without_a_valid_member_is_reported() -> None:
    """Token counts of which none can be used are `usage-invalid`, and kept (section 7)."""
    tokens = {"input": -5, "output": 1.5, "cached": "7", "total": None}
    imported = run(answer("a", 1, "text", tokens=tokens))
    assert imported.codes["usage-invalid"] == 1
    assert imported.dialogs[0]["onrecord"]["rest"]["tokens"] == tokens
    assert "token_usage" not in imported.dialogs[0]


def test_arguments_that_are_text() -> None:
    """D-LOG-18: a string of JSON becomes the input, another string stays and is reported."""
    calls = [
        {"id": "c1", "name": "f", "args": '{"a": 1}'},
        {"id": "c2", "name": "f", "args": "{bad"},
    ]
    part = {"functionCall": {"id": "c3", "name": "f", "args": "[2]"}}
    imported = run(answer("a", 1, [part], toolCalls=calls))
    inputs = {event["call_id"]: event["input"] for event in imported.events("tool-call")}
    assert inputs == {"c1": {"a": 1}, "c2": "{bad", "c3": [2]}
    assert imported.codes["arguments-unparsed"] == 1


def test_ids_of_a_wrong_kind_are_kept() -> None:
    """The id of a message or call that is no text names nothing, and stands in rest."""
    said = answer("", 1, "text", toolCalls=[{"id": {"x": 1}, "name": "f", "args": {}}])
    imported = run({**said, "id": ["not", "an id"]})
    assert imported.dialogs[0]["onrecord"]["rest"]["id"] == ["not", "an id"]
    (event,) = imported.events("tool-call")
    assert event["onrecord"]["rest"]["id"] == {"x": 1}


def test_part_that_says_more_than_the_call_is_kept() -> None:
    """A `functionCall` part beside its element of `toolCalls` is kept when it has members of its own."""
    part = {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {}, "novelty": "x"}}
    imported = run(answer("a", 1, [part], toolCalls=[call("c1", "out", 2)]))
    assert [event["data"] for event in imported.events("block/functionCall")] == [part]
    assert imported.counts()["tool_calls"] == 1
