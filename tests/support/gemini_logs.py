"""Small invented logs of Gemini CLI."""

from __future__ import annotations

from typing import Any

SESSION = "019a0000-0000-7000-8000-0000000000aa"
HEADER = {
    "sessionId": SESSION,
    "projectHash": "ab" * 32,
    "startTime": "2026-07-01T10:00:00.000Z",
    "lastUpdated": "2026-07-01T10:00:00.000Z",
    "kind": "main",
}
TOKENS = {"input": 900, "output": 48, "cached": 300, "thoughts": 32, "tool": 0, "total": 980}


def at(second: int) -> str:
    """Return a time."""
    return f"2026-07-01T10:{second // 60:02d}:{second % 60:02d}.000Z"


def user(id: str, second: int, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message of the user."""
    return {"id": id, "timestamp": at(second), "type": "user", "content": content, **more}


def answer(id: str, second: int, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message of the model."""
    return {
        "id": id,
        "timestamp": at(second),
        "type": "gemini",
        "content": content,
        "model": "gemini-3-pro",
        **more,
    }


def call(id: str, output: str | None, second: int, **more: Any) -> dict[str, Any]:
    """Return an element of `toolCalls`."""
    native: dict[str, Any] = {"id": id, "name": "run_shell_command", "args": {"command": f"run {id}"}}
    if output is not None:
        native |= {"result": [response(id, output)], "status": "success", "timestamp": at(second)}
    return native | more


def response(id: str, output: str) -> dict[str, Any]:
    """Return the part of a message that carries a result."""
    return {"functionResponse": {"id": id, "name": "run_shell_command", "response": {"output": output}}}


def function_call(id: str) -> dict[str, Any]:
    """Return the part of a message that asks for a call."""
    return {
        "functionCall": {"id": id, "name": "run_shell_command", "args": {"command": f"run {id}"}},
    }


def beat(second: int) -> dict[str, Any]:
    """Return a heartbeat."""
    return {"$set": {"lastUpdated": at(second)}}


def checkpoint(*messages: dict[str, Any], second: int = 59) -> dict[str, Any]:
    """Return a checkpoint."""
    return {"$set": {"messages": list(messages), "lastUpdated": at(second)}}


LOG: list[dict[str, Any]] = [
    HEADER,
    checkpoint(
        user("m0", 0, [{"text": "<session_context>\nplainly invented\n</session_context>"}]), second=0
    ),
    user("m1", 1, [{"text": "list the files"}]),
    beat(1),
    answer(
        "m2",
        2,
        "",
        thoughts=[{"subject": "Plan", "description": "look first", "timestamp": at(2)}],
        tokens=TOKENS,
    ),
    answer(
        "m2",
        2,
        "",
        thoughts=[{"subject": "Plan", "description": "look first", "timestamp": at(2)}],
        tokens=TOKENS,
        toolCalls=[call("c1", "a.txt\nb.txt", 3, displayName="Shell", resultDisplay="a.txt\nb.txt")],
    ),
    user("m3", 4, [response("c1", "a.txt\nb.txt")]),
    answer("m4", 5, "There are two files.", thoughts=[], tokens=TOKENS | {"cached": 0}),
    {"id": "m5", "timestamp": at(6), "type": "info", "content": "Request cancelled."},
    {"$set": {"lastUpdated": at(7), "summary": "Files of the folder"}},
    user("m6", 8, [{"text": "wrong"}]),
    {"$rewindTo": "m6"},
    user("m7", 9, "thanks"),
    answer("m8", 10, [{"text": "You are welcome."}], tokens=None),
]
"""A session with everything in it once."""


def burst(*messages: tuple[str, dict[str, Any]], second: int = 59) -> list[dict[str, Any]]:
    """Return the lines that a checkpoint writes before its list, and the list: each message under a new id."""
    copies = [{**message, "id": name, "timestamp": at(second)} for name, message in messages]
    lines: list[dict[str, Any]] = []
    for copy in copies:
        lines += [copy, beat(second)]
    return [*lines, checkpoint(*copies, second=second)]
