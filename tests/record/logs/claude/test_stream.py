"""The stream of Claude's SDK: sessions, sub-agents, parts of messages, sums that are not added."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from onrecord.record.logs.claude.code import ClaudeCode
from onrecord.record.logs.claude.stream import ClaudeStream
from support.claude_logs import SID, STREAM, USAGE, streamed, text
from support.native_logs import Imported, import_lines, mutations, odd_shapes, to_bytes

FORMAT = "claude-stream-json"


def imported(*lines) -> Imported:
    """Import a stream and check that it is sound."""
    found = import_lines(list(lines), FORMAT)
    found.assert_sound()
    return found


def test_the_whole_stream():
    """A run gives its session with start, tools, child session, end and the sums of its responses."""
    found = imported(*STREAM)
    assert found.bodies == ["I ask.", "count them", "three"]
    session, child = found.vcon["sessions"]
    assert (session["agent_session_id"], session["format"]) == (SID, "autonomous")
    assert session["sessions"] == [{"session": 1, "type": "child", "description": "count"}]
    assert child["agent_session_id"] == f"{SID}/toolu_a"
    assert found.events("tool-definitions")[0]["data"]["names"] == ["Agent", "Bash"]
    assert found.events("session-end")[0]["data"]["result"] == "three"
    assert found.events("permission-change")[0]["data"]["denied"]["tool_name"] == "Bash"
    assert found.dialogs[1]["parties"] == [1, 2]
    counts = found.counts()
    assert (counts["responses"], counts["output"]) == (2, 10)
    assert found.accounting[0]["of_duplicates"] == {"twin": 1}
    assert not found.codes["call-without-result"]


def test_messages_of_the_program_itself_are_no_dialogs():
    """Synthetic messages of a stream are events without usage, and name no model."""
    message = {
        "id": "msg_s",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [text("API Error: 529")],
    }
    found = imported(
        STREAM[0],
        streamed(30, "assistant", message={**message, "usage": dict(USAGE)}, error="overloaded"),
        streamed(31, "assistant", message=message),
    )
    assert found.bodies == []
    assert found.events("error")[0]["data"] == found.events("meta")[0]["data"] == {"text": "API Error: 529"}
    assert found.events("error")[0]["onrecord"]["rest"]["message"]["usage"] == USAGE
    assert found.counts()["output"] == 0
    assert "<synthetic>" not in found.vcon["parties"][1]["agent_meta"]["models"]


def test_sums_of_the_end_stand_in_only_where_there_is_nothing_else():
    """D-LOG-03: the usage of `result` is the session's only if no response has one."""
    end = streamed(9, "result", subtype="success", total_cost_usd=0.1, usage=dict(USAGE), modelUsage={})
    found = imported(STREAM[0], end)
    assert found.sessions[0].usage_totals()[1] == "session-total"
    assert found.counts()["output"] == 5


def test_parts_of_a_message_that_was_never_finished_are_kept():
    """A stream that was cut keeps the parts; parts of finished messages are twins, before and after them."""
    start = STREAM[1]
    delta = streamed(20, "stream_event", event={"type": "content_block_delta", "delta": {"text": "I as"}})
    cut = imported(STREAM[0], start, delta)
    assert [event["data"]["event"]["type"] for event in cut.events("stream_event")] == [
        "message_start",
        "content_block_delta",
    ]
    whole = imported(STREAM[0], start, delta, STREAM[2], {**delta, "uuid": "after"})
    assert whole.accounting[0]["of_duplicates"] == {"twin": 3}
    assert not whole.events("stream_event")


def test_captures_are_read():
    """An object with messages of both directions is a header and the messages in it."""
    items = [{"direction": "in", "message": line} for line in STREAM]
    asked = {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}
    data = json.dumps({"messages": [{"direction": "out", "message": asked}, *items], "sdk": "0.1"}, indent=1)
    found = import_lines(data, FORMAT, name="capture.json")
    found.assert_sound()
    assert found.bodies == ["I ask.", "count them", "three"]
    assert found.events("control/initialize")
    assert found.accounting[0]["records"] == len(STREAM) + 2


def test_unknown_records_are_kept():
    """B-1, D-LOG-26: a new type is a system-event with all it holds."""
    found = imported(STREAM[0], streamed(30, "hologram", data={"x": 1}))
    assert found.codes["unknown-record-type"] == 1
    assert found.events("hologram")[0]["data"]["data"] == {"x": 1}


@pytest.mark.parametrize(
    ("value", "is_stream"),
    [
        (STREAM[0], True),
        (STREAM[2], True),
        (STREAM[7], True),
        ({"type": "system", "subtype": "init", "session_id": "x", "apiKeySource": "login"}, False),
        ({"type": "tool_call", "subtype": "started", "session_id": "x", "call_id": "c"}, False),
        ({"type": "assistant", "session_id": "x", "message": {"role": "assistant"}}, False),
    ],
)
def test_the_stream_is_told_from_its_neighbours(value, is_stream):
    """Section 3: decisive records of the stream are neither Cursor's nor those of session files."""
    assert ClaudeStream.recognises(value) is is_stream
    assert not ClaudeCode.recognises(value)


def test_a_run_told_twice_counts_once():
    """R-16: the same records again are duplicates."""
    found = imported(*STREAM, *STREAM)
    assert found.bodies == ["I ask.", "count them", "three"]
    assert found.codes["duplicate-entry"] == len(STREAM)


@pytest.mark.parametrize("number", range(len(STREAM)), ids=lambda n: STREAM[n]["type"])
def test_odd_shapes_are_kept(number):
    """Each member of each record with each other kind: no exception, all accounted, no error."""
    changed = []
    for place, (_, value) in enumerate(odd_shapes(STREAM[number])):
        if value.get("uuid") == STREAM[number]["uuid"]:
            value["uuid"] = f"odd-{place}"
        changed.append(value)
    found = imported(*STREAM, *changed)
    assert found.accounting[0]["records"] == len(STREAM) + len(changed)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutations(STREAM))
def test_broken_streams_are_imported(data):
    """Whatever is wrong with a stream: no exception, the account adds up, no error in the vCon."""
    import_lines(data, FORMAT).assert_sound()


def test_a_cut_stream_is_imported_to_its_end():
    """B-8: each whole line before the cut is there."""
    found = import_lines(to_bytes([*STREAM[:3], streamed(40, "assistant", message=text("x"))])[:-9], FORMAT)
    found.assert_sound()
    assert found.bodies == ["I ask."]
    assert found.codes["truncated-tail"] == 1
