"""Events that repeat or end what items say are told once, and nothing of them is lost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.codex_logs import calls, event, gives, item, meta, says, turn
from tests.support.native_logs import Imported, import_lines

END = event(
    "exec_command_end", call_id="c1", command=["ls"], aggregated_output="x", exit_code=3, duration={"secs": 1}
)


def _import(*values: dict[str, Any]) -> Imported:
    imported = import_lines([meta(), turn(), *values], "codex-jsonl")
    imported.assert_sound()
    return imported


@pytest.mark.parametrize("values", [[calls("c1"), END, gives("c1")], [calls("c1"), gives("c1"), END]])
def test_an_end_supplements_the_output(values: list[dict[str, Any]]) -> None:
    """An end event before or after the output gives status, exit code and duration to the one result."""
    imported = _import(*values)
    (result,) = imported.events("tool-result")
    assert (result["output"], result["status"], result["is_error"]) == ("a.txt", "error", True)
    assert result["onrecord"]["rest"]["exec_command_end"] == {"exit_code": 3, "duration": {"secs": 1}}
    assert imported.accounting[0]["of_duplicates"] == {"twin": 1}


def test_an_end_without_output_is_the_result() -> None:
    """A call whose output record is missing has its result from the end event."""
    imported = _import(calls("c1"), END)
    (result,) = imported.events("tool-result")
    assert (result["call_id"], result["output"], result["status"]) == ("c1", "x", "error")
    assert imported.codes["call-without-result"] == 0


def test_an_end_without_any_twin_is_call_and_result() -> None:
    """Events about a call of which no item tells become the call and its result."""
    imported = _import(event("exec_command_begin", call_id="c1", command=["ls"]), END)
    (call,) = imported.events("tool-call")
    (result,) = imported.events("tool-result")
    assert (call["tool_name"], call["input"], call["call_id"]) == ("exec_command", {"command": ["ls"]}, "c1")
    assert (result["output"], result["call_id"]) == ("x", "c1")


def test_a_begin_alone_is_an_open_call() -> None:
    """A call that only began, as before a crash, is kept open."""
    imported = _import(event("exec_command_begin", call_id="c1", command=["ls"]))
    assert len(imported.events("tool-call")) == 1
    assert imported.codes["call-without-result"] == 1


def test_two_ends_of_one_call_give_one_result() -> None:
    """An end event and a completed item about one call are one result."""
    done = event("item_completed", item={"type": "CommandExecution", "id": "c1", "exit_code": 3})
    imported = _import(calls("c1"), END, done)
    assert len(imported.events("tool-result")) == 1


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("is_end_first", [True, False])
def test_web_searches_pair_by_what_they_did(has_id: bool, is_end_first: bool) -> None:
    """A web search and its end with another id, or with none, are one call with one result."""
    action = {"type": "search", "query": "example"}
    call = item({"type": "web_search_call", "action": action} | ({"id": "ws_1"} if has_id else {}))
    end = event(
        "web_search_end", call_id="ws_9", query="example", action=action, results=[{"title": "Example"}]
    )
    imported = _import(*([end, call] if is_end_first else [call, end]))
    (call_event,) = imported.events("tool-call")
    (result,) = imported.events("tool-result")
    assert call_event["call_id"] == result["call_id"] == ("ws_1" if has_id else "ws_9")
    assert result["output"] == [{"title": "Example"}]
    assert imported.codes["duplicate-call"] == 0


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"Ok": {"content": [], "isError": False}}, "success"),
        ({"Ok": {"content": [], "isError": True}}, "error"),
        ({"Err": "no such tool"}, "error"),
    ],
)
def test_mcp_calls_name_their_server(result: Any, status: str) -> None:
    """Calls to MCP servers have origin and status from their end event, with or without an item."""
    end = event(
        "mcp_tool_call_end", call_id="c1", invocation={"server": "files", "tool": "read"}, result=result
    )
    for values in ([end], [calls("c1", "files__read"), end], [calls("c1", "files__read"), end, gives("c1")]):
        imported = _import(*values)
        (call,) = imported.events("tool-call")
        (found,) = imported.events("tool-result")
        origin = {"kind": "mcp", "server": "files", "tool": "read"}
        assert call["onrecord"]["origin"] == found["onrecord"]["origin"] == origin
        assert found["status"] == status


def test_images_that_were_made_are_results() -> None:
    """An image generation with a result is call and result, and its end event a twin."""
    imported = _import(
        item(
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0KGgo="}
        ),
        event("image_generation_end", call_id="ig_1", status="completed", result="iVBORw0KGgo="),
    )
    (result,) = imported.events("tool-result")
    assert (result["output"], result["status"]) == ("iVBORw0KGgo=", "completed")
    assert result["onrecord"]["media"][0]["bytes"] == 8


def test_talk_is_told_once() -> None:
    """Events that repeat what the items of that role say are twins."""
    imported = _import(
        says("user", "hello"),
        event("user_message", message="hello"),
        item({"type": "reasoning", "summary": [{"type": "summary_text", "text": "thinking"}]}),
        event("agent_reasoning", text="thinking"),
        event("item_completed", item={"type": "Reasoning", "id": "r", "summary_text": ["thinking"]}),
        event("agent_message", message="hi"),
        says("assistant", "hi"),
    )
    assert imported.bodies == ["hello", "hi"]
    assert [reasoning["content"] for reasoning in imported.events("reasoning")] == ["thinking"]
    assert imported.accounting[0]["of_duplicates"] == {"twin": 4}


def test_talk_that_only_events_tell_is_used() -> None:
    """A file without items of a role has them from the events, plain ones before completed items."""
    imported = _import(
        says("user", "<environment_context>x</environment_context>"),
        event(
            "user_message",
            message="hello",
            images=["data:image/png;base64,iVBORw0KGgo=", "https://example.com/a"],
        ),
        event(
            "item_completed",
            item={"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "hello"}]},
        ),
        event("agent_reasoning", text="**Think**"),
        event(
            "item_completed",
            item={"type": "AgentMessage", "id": "a", "content": [{"type": "Text", "text": "hi"}]},
        ),
    )
    assert imported.bodies == ["hello", "hi"]
    assert imported.events("reasoning")[0]["subject"] == "Think"
    assert len(imported.vcon["attachments"]) == 1
    assert imported.events("block/image")[0]["data"] == {"image_url": "https://example.com/a"}
