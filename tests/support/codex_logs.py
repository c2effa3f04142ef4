"""Small Codex logs for tests: records as the program writes them, about invented people and places."""

from __future__ import annotations

import json
from typing import Any

OWN = "01a00000-0000-7000-8000-00000000000b"
PARENT = "01a00000-0000-7000-8000-00000000000a"


def line(kind: str, payload: dict[str, Any], second: int = 0, **more: Any) -> dict[str, Any]:
    """Return one record in its envelope."""
    at = f"2026-07-01T10:{second // 60:02d}:{second % 60:02d}.000Z"
    return {"timestamp": at, **more, "type": kind, "payload": payload}


def meta(id: str = OWN, second: int = 0, **members: Any) -> dict[str, Any]:
    """Return a session meta."""
    payload = {
        "id": id,
        "timestamp": "2026-07-01T10:00:00.000Z",
        "cwd": "/home/dev/example",
        "originator": "codex_cli_rs",
        "cli_version": "0.142.0",
        "source": "cli",
        "model_provider": "openai",
        **members,
    }
    return line("session_meta", payload, second)


def turn(second: int = 1, **members: Any) -> dict[str, Any]:
    """Return a turn context."""
    payload = {
        "turn_id": "t1",
        "cwd": "/home/dev/example",
        "model": "gpt-5.2-codex",
        "approval_policy": "never",
        "sandbox_policy": {"type": "read-only"},
        **members,
    }
    return line("turn_context", payload, second)


def item(payload: dict[str, Any], second: int = 2, **more: Any) -> dict[str, Any]:
    """Return an item of a response."""
    return line("response_item", payload, second, **more)


def event(kind: str, second: int = 3, **members: Any) -> dict[str, Any]:
    """Return an event."""
    return line("event_msg", {"type": kind, **members}, second)


def says(role: str, *texts: str, second: int = 2, **members: Any) -> dict[str, Any]:
    """Return a message with text parts."""
    form = "output_text" if role == "assistant" else "input_text"
    parts = [{"type": form, "text": text} for text in texts]
    return item({"type": "message", "role": role, "content": parts, **members}, second)


def calls(call_id: str, name: str = "exec_command", arguments: Any = None, **members: Any) -> dict[str, Any]:
    """Return a call; `arguments` become JSON text."""
    text = json.dumps({"cmd": "ls"} if arguments is None else arguments)
    return item({"type": "function_call", "name": name, "arguments": text, "call_id": call_id, **members}, 4)


def gives(call_id: str, output: Any = "a.txt", **members: Any) -> dict[str, Any]:
    """Return the output of a call."""
    return item({"type": "function_call_output", "call_id": call_id, "output": output, **members}, 5)


def tokens(input: int, output: int, cached: int = 0, reasoning: int = 0) -> dict[str, int]:
    """Return a native usage."""
    return {
        "input_tokens": input,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": reasoning,
        "total_tokens": input + output,
    }


def counted(
    last: dict[str, int] | None, total: dict[str, int] | None = None, second: int = 6
) -> dict[str, Any]:
    """Return a token count."""
    info = {
        name: value
        for name, value in (("total_token_usage", total), ("last_token_usage", last))
        if value is not None
    }
    return event("token_count", second, info=info)


PATCH = "*** Begin Patch\n*** Add File: notes.md\n+one\n+two\n*** End Patch\n"

WHOLE: list[dict[str, Any]] = [
    meta(
        git={"commit_hash": "4f2a9c1d", "branch": "main", "repository_url": "https://me:pw@example.com/r.git"}
    ),
    turn(),
    says("developer", "Be brief."),
    item(
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look at this"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            ],
        }
    ),
    event("user_message", message="look at this", images=[]),
    item(
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "**Plan**\n\nread it"}],
            "content": None,
            "encrypted_content": "gAAAAexample",
        }
    ),
    says("assistant", "I will read it.", id="msg_1"),
    calls("call_1"),
    line("token_usage_record", {"response_id": "resp_1", "usage": tokens(900, 80, 300, 32)}, 4),
    event(
        "exec_command_end", call_id="call_1", command=["ls"], exit_code=0, duration={"secs": 1, "nanos": 0}
    ),
    gives("call_1"),
    counted(tokens(900, 80, 300, 32), tokens(900, 80, 300, 32)),
    item({"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "example"}}),
    event("web_search_end", call_id="ws_9", query="example", action={"type": "search", "query": "example"}),
    item({"type": "custom_tool_call", "name": "apply_patch", "input": PATCH, "call_id": "call_2"}),
    event(
        "patch_apply_end",
        call_id="call_2",
        success=True,
        changes={"/home/dev/example/notes.md": {"type": "add", "content": "one\ntwo\n"}},
    ),
    item({"type": "custom_tool_call_output", "call_id": "call_2", "output": '{"metadata":{"exit_code":0}}'}),
    event(
        "item_completed",
        item={
            "type": "McpToolCall",
            "id": "call_3",
            "server": "files",
            "tool": "read",
            "arguments": {"a": 1},
        },
    ),
    item(
        {
            "type": "agent_message",
            "author": "/root/helper",
            "recipient": "/root",
            "content": [{"type": "input_text", "text": "found it"}],
        }
    ),
    line("compacted", {"message": "so far", "replacement_history": [{"type": "message", "role": "user"}]}, 7),
    event("thread_name_updated", thread_name="Reading"),
    event("collab_agent_spawn_end", call_id="call_1", new_thread_id="child-1", new_agent_nickname="Ada"),
    event("thread_rolled_back", num_turns=1),
    event("task_complete", last_agent_message="I will read it."),
    line("world_state", {"full": True, "state": {"agents_md": {}}}, 8),
]
"""A log with a record of every kind that matters."""

EXEC: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": OWN},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "**Plan**"}},
    {
        "type": "item.started",
        "item": {"id": "item_1", "type": "command_execution", "command": "ls", "status": "in_progress"},
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_1",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "a.txt",
            "exit_code": 2,
            "status": "failed",
        },
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_2",
            "type": "mcp_tool_call",
            "server": "files",
            "tool": "read",
            "arguments": {"path": "a.txt"},
            "result": {"content": [{"type": "text", "text": "one"}]},
            "status": "completed",
        },
    },
    {
        "type": "item.completed",
        "item": {"id": "item_3", "type": "todo_list", "items": [{"text": "read", "completed": False}]},
    },
    {"type": "item.completed", "item": {"id": "item_4", "type": "agent_message", "text": "Done."}},
    {
        "type": "turn.completed",
        "usage": {"input_tokens": 900, "cached_input_tokens": 300, "output_tokens": 80},
    },
]
"""An event stream with a record of every kind that matters."""
