"""Small logs of invented sessions in the formats of Claude Code, for the tests of this folder."""

from __future__ import annotations

from typing import Any

SID = "11111111-2222-4333-8444-555555555555"
CWD = "/home/dev/project"
USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 100,
    "cache_read_input_tokens": 1000,
    "output_tokens": 5,
}


def record(number: int, kind: str, parent: int | None = None, **members: Any) -> dict[str, Any]:
    """Return a record with its envelope; `number` makes its uuid and its time."""
    return {
        "parentUuid": None if parent is None else uuid(parent),
        "isSidechain": False,
        "userType": "external",
        "cwd": CWD,
        "sessionId": SID,
        "version": "2.1.220",
        "gitBranch": "main",
        "type": kind,
        "uuid": uuid(number),
        "timestamp": f"2026-07-01T10:00:{number:02d}.000Z",
        **members,
    }


def uuid(number: int) -> str:
    """Return the id of a record."""
    return f"00000000-0000-4000-8000-{number:012d}"


def user(number: int, content: Any, parent: int | None = None, **members: Any) -> dict[str, Any]:
    """Return a user record."""
    return record(number, "user", parent, message={"role": "user", "content": content}, **members)


def assistant(
    number: int,
    content: Any,
    parent: int | None = None,
    *,
    id: str | None = "msg_1",
    usage: Any = USAGE,
    model: str = "claude-opus-4-6",
    **members: Any,
) -> dict[str, Any]:
    """Return a record of the agent; a text becomes one block."""
    message: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [text(content)] if isinstance(content, str) else content,
        "stop_reason": None,
        "stop_sequence": None,
    }
    if id is not None:
        message["id"] = id
    if usage is not None:
        message["usage"] = usage
    return record(number, "assistant", parent, requestId=f"req_{id}", message=message, **members)


def text(body: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": body}


def call(id: str, name: str, **given: Any) -> dict[str, Any]:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any, **members: Any) -> dict[str, Any]:
    """Return a block with a tool's result."""
    return {"type": "tool_result", "tool_use_id": id, "content": content, **members}


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

SESSION: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Writing a module", "leafUuid": uuid(9)},
    user(1, "write the module<system-reminder>be brief</system-reminder>", permissionMode="default"),
    assistant(
        2,
        [{"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"}, text("I write it.")],
        1,
        id="msg_1",
    ),
    assistant(3, [call("toolu_w", "Write", file_path=f"{CWD}/a.py", content="a = 1\n")], 2, id="msg_1"),
    user(
        4,
        [result("toolu_w", "created", is_error=False)],
        3,
        toolUseResult={
            "type": "create",
            "filePath": f"{CWD}/a.py",
            "content": "a = 1\n",
            "structuredPatch": [],
            "originalFile": None,
        },
        sourceToolAssistantUUID=uuid(3),
    ),
    assistant(5, [call("toolu_t", "Task", description="look", prompt="look at it")], 4, id="msg_2"),
    {**user(6, "look at it"), "isSidechain": True, "agentId": "abc123"},
    {**assistant(7, "looked", 6, id="msg_3"), "isSidechain": True, "agentId": "abc123"},
    user(
        8,
        [result("toolu_t", [text("looked\nagentId: abc123")])],
        5,
        toolUseResult={"status": "completed", "agentId": "abc123", "content": [text("looked")]},
    ),
    assistant(9, "done", 8, id="msg_4"),
    record(
        10, "attachment", 9, attachment={"type": "queued_command", "prompt": "more", "commandMode": "prompt"}
    ),
    user(
        11,
        [
            text("[Image #1] what is this"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
        ],
        10,
        imagePasteIds=[1],
    ),
    record(
        12,
        "system",
        11,
        subtype="compact_boundary",
        content="Conversation compacted",
        compactMetadata={"trigger": "auto", "preTokens": 9000},
        logicalParentUuid=uuid(11),
    ),
    record(
        13,
        "progress",
        12,
        data={
            "type": "agent_progress",
            "agentId": "def456",
            "message": {
                "type": "assistant",
                "uuid": uuid(90),
                "timestamp": "2026-07-01T10:00:13.000Z",
                "message": {"id": "msg_9", "role": "assistant", "content": [text("half way")]},
            },
        },
        toolUseID="toolu_t",
    ),
    {"type": "queue-operation", "operation": "remove", "content": "later", "sessionId": SID},
    {
        "type": "bridge-session",
        "sessionId": SID,
        "bridgeSessionId": "b1",
        "ownerAccountUuid": "99999999-2222-4333-8444-555555555555",
    },
    {"type": "custom-title", "customTitle": "The module", "sessionId": SID},
    {
        "type": "file-history-snapshot",
        "messageId": uuid(1),
        "snapshot": {"files": {}},
        "isSnapshotUpdate": False,
    },
    {"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": SID},
]
"""A session with every kind of record that the importer treats on its own."""


def streamed(number: int, kind: str, **members: Any) -> dict[str, Any]:
    """Return a record of the SDK's stream."""
    return {"type": kind, "session_id": SID, "uuid": uuid(number), **members}


STREAM: list[dict[str, Any]] = [
    streamed(
        1,
        "system",
        subtype="init",
        cwd=CWD,
        model="claude-sonnet-4-6",
        tools=["Agent", "Bash"],
        permissionMode="default",
        claude_code_version="2.1.220",
        apiKeySource="none",
    ),
    streamed(
        2,
        "stream_event",
        event={"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
        parent_tool_use_id=None,
    ),
    streamed(
        3,
        "assistant",
        parent_tool_use_id=None,
        message={
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-6",
            "content": [text("I ask."), call("toolu_a", "Agent", description="count", prompt="count them")],
            "usage": USAGE,
        },
    ),
    streamed(
        4,
        "user",
        parent_tool_use_id="toolu_a",
        message={"role": "user", "content": [text("count them")]},
        timestamp="2026-07-01T10:00:04.000Z",
        subagent_type="Explore",
        task_description="count",
    ),
    streamed(
        5,
        "assistant",
        parent_tool_use_id="toolu_a",
        message={
            "id": "msg_2",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5",
            "content": [text("three")],
            "usage": USAGE,
        },
    ),
    streamed(
        6,
        "user",
        parent_tool_use_id=None,
        message={"role": "user", "content": [result("toolu_a", [text("three")])]},
        tool_use_result={"status": "completed", "agentId": "a1"},
        timestamp="2026-07-01T10:00:06.000Z",
    ),
    streamed(7, "rate_limit_event", rate_limit_info={"status": "allowed"}),
    streamed(
        8,
        "result",
        subtype="success",
        is_error=False,
        result="three",
        num_turns=2,
        total_cost_usd=0.01,
        usage={"input_tokens": 6, "output_tokens": 10},
        modelUsage={},
        permission_denials=[{"tool_name": "Bash", "tool_input": {"command": "ls"}}],
    ),
]
"""A run of the SDK with a sub-agent."""
