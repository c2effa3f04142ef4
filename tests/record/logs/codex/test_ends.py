"""Events that repeat or end what items say are told once, and nothing of them is lost."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.record.logs.codex import thread
from support.codex_logs import calls, event, gives, item, meta, turn
from support.native_logs import Imported, import_lines

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
    details = {"exit_code": 3, "duration": {"secs": 1}, "aggregated_output": "x"}
    assert result["onrecord"]["rest"]["exec_command_end"] == details
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


def test_a_second_end_with_another_output_is_kept() -> None:
    """R-18: two ends of one call are twins when they say the same, else the second is a `duplicate-result`."""
    first = event("exec_command_end", call_id="c1", exit_code=0, aggregated_output="one of two outputs")
    other = event("exec_command_end", call_id="c1", exit_code=0, aggregated_output="two of two outputs")
    imported = import_lines([meta(), turn(), first, first, other], "codex-jsonl")
    imported.assert_sound()
    outputs = [result["output"] for result in imported.events("tool-result")]
    assert outputs == ["one of two outputs", "two of two outputs"]
    assert imported.codes["duplicate-result"] == 1
    assert imported.counts()["tool_calls"] == 1


FULL = "line of a long output\n" * 40


@pytest.mark.parametrize("is_end_first", [True, False])
@pytest.mark.parametrize(
    ("outputs", "shown", "kept"),
    [
        ({"aggregated_output": FULL, "stdout": FULL}, "line of ... output", {"aggregated_output": FULL}),
        ({"aggregated_output": FULL, "formatted_output": "cut"}, "cut", {"aggregated_output": FULL}),
        ({"aggregated_output": "a\nb\n", "stderr": "b\n"}, "Wall time: 1 s\nOutput:\na\nb", {}),
        (
            {"stdout": "a\n", "stderr": "only here"},
            '{"output":"a\\n","metadata":{}}',
            {"stderr": "only here"},
        ),
        (
            {"result": {"Ok": {"content": [{"type": "text", "text": "a"}]}}},
            '[{"text":"a","type":"text"}]',
            {},
        ),
        ({"result": {"Err": "no server"}}, "failed", {"result": {"Err": "no server"}}),
        ({"stdout": "a"}, "[" * 300 + "]" * 300, {"stdout": "a"}),
    ],
)
def test_an_output_that_the_model_did_not_see_is_kept(
    is_end_first: bool, outputs: dict[str, Any], shown: str, kept: dict[str, Any]
) -> None:
    """The model may have seen a cut output: what an end event tells beyond it stays in the result's rest."""
    done = event("exec_command_end", call_id="c1", duration="1s", **outputs)
    given = gives("c1", shown)
    imported = _import(calls("c1"), *([done, given] if is_end_first else [given, done]))
    (result,) = imported.events("tool-result")
    assert result["output"] == shown
    assert result["onrecord"]["rest"]["exec_command_end"] == {"duration": "1s", **kept}


def test_outputs_that_wait_for_results_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-20: an end event whose output is too long to be held until the result comes is an event of its own."""
    monkeypatch.setattr(thread, "MAX_HELD", 100)
    done = event("exec_command_end", call_id="c1", exit_code=3, aggregated_output=FULL)
    imported = _import(calls("c1"), done, gives("c1", "cut"))
    (told,) = imported.events("exec_command_end")
    assert told["data"]["aggregated_output"] == FULL
    assert imported.events("tool-result")[0]["status"] == "error"


def test_a_second_kind_of_end_adds_its_output() -> None:
    """A completed item about a call whose result is an end event adds the output that this one lacks."""
    item_ = {"type": "CommandExecution", "id": "c1", "exit_code": 3, "aggregated_output": FULL}
    imported = _import(calls("c1"), END, event("item_completed", item=item_))
    (result,) = imported.events("tool-result")
    assert result["output"] == "x"
    assert result["onrecord"]["rest"]["item_completed"] == {"aggregated_output": FULL}


@pytest.mark.parametrize("action", [{"type": "search", "query": "q"}, {"type": "search", "queries": ["q"]}])
@pytest.mark.parametrize("is_end_first", [True, False])
@pytest.mark.parametrize("has_id", [True, False])
def test_ends_of_searches_that_have_the_query_only(
    action: dict[str, Any], is_end_first: bool, has_id: bool
) -> None:
    """An older end of a web search has no action: by its query it is the same call, which is not open."""
    call = item({"type": "web_search_call", "action": action} | ({"id": "ws_1"} if has_id else {}))
    end = event("web_search_end", call_id="ws_9", query="q")
    imported = _import(*([end, call] if is_end_first else [call, end]))
    assert len(imported.events("tool-call")) == len(imported.events("tool-result")) == 1
    assert imported.codes["call-without-result"] == imported.codes["result-without-call"] == 0
