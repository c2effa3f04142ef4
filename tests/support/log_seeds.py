"""One small log for each format, from which fuzzing starts: invented people, nothing copied."""

from __future__ import annotations

import json
from typing import Any, Final

SESSION: Final = "00000000-0000-4000-8000-000000000001"
AT: Final = "2026-07-01T10:00:0{}.000Z"


def _claude(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": SESSION,
        "timestamp": AT.format(number),
        "cwd": "/home/ann/work",
        "message": {"role": kind, "content": content, **more},
    }


def _codex(number: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": AT.format(number), "type": kind, "payload": payload}


_USAGE = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7}
_CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/home/ann/work/a.txt"}}
_SPAN = {
    "traceId": "0" * 31 + "1",
    "spanId": "0" * 15 + "1",
    "name": "chat example-1",
    "startTimeUnixNano": "1782900000000000000",
    "endTimeUnixNano": "1782900001000000000",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.request.model", "value": {"stringValue": "example-1"}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "3"}},
    ],
}

LINES: Final[dict[str, list[Any]]] = {
    "claude-jsonl": [
        _claude(0, "user", "hello"),
        _claude(
            1, "assistant", [{"type": "text", "text": "hi"}, _CALL], id="m1", model="claude-x", usage=_USAGE
        ),
        _claude(2, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]),
    ],
    "claude-stream-json": [
        {"type": "system", "subtype": "init", "session_id": SESSION, "tools": ["Read"], "model": "claude-x"},
        {
            "type": "assistant",
            "session_id": SESSION,
            "message": {"id": "m1", "role": "assistant", "content": [_CALL], "usage": _USAGE},
        },
        {"type": "result", "subtype": "success", "session_id": SESSION, "result": "done", "usage": _USAGE},
    ],
    "codex-jsonl": [
        _codex(0, "session_meta", {"id": SESSION, "timestamp": AT.format(0), "cwd": "/home/ann/work"}),
        _codex(
            1,
            "response_item",
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        ),
        _codex(
            2,
            "response_item",
            {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        ),
        _codex(3, "response_item", {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}),
    ],
    "codex-exec-json": [
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "hi"}},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 3, "cached_input_tokens": 1, "output_tokens": 5},
        },
    ],
    "gemini-json": [
        {"sessionId": SESSION, "projectHash": "00", "startTime": AT.format(0), "lastUpdated": AT.format(0)},
        {"id": "g1", "timestamp": AT.format(1), "type": "user", "content": [{"text": "hello"}]},
        {"id": "g2", "timestamp": AT.format(2), "type": "gemini", "content": "hi", "model": "gemini-x"},
        {"$set": {"lastUpdated": AT.format(3)}},
        {"$rewindTo": "g2"},
    ],
    "opencode-json": [
        {
            "info": {
                "id": "ses_1",
                "title": "t",
                "directory": "/home/ann/work",
                "time": {"created": 1782900000000},
            },
            "messages": [
                {
                    "info": {
                        "id": "msg_1",
                        "sessionID": "ses_1",
                        "role": "user",
                        "time": {"created": 1782900000000},
                    },
                    "parts": [
                        {
                            "id": "prt_1",
                            "sessionID": "ses_1",
                            "messageID": "msg_1",
                            "type": "text",
                            "text": "hello",
                        }
                    ],
                }
            ],
        }
    ],
    "cursor-jsonl": [
        {
            "role": "user",
            "message": {"content": [{"type": "text", "text": "<user_query>hello</user_query>"}]},
        },
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "hi"}]}},
    ],
    "cursor-stream-json": [
        {
            "type": "system",
            "subtype": "init",
            "apiKeySource": "login",
            "session_id": SESSION,
            "model": "example-1",
        },
        {
            "type": "tool_call",
            "subtype": "started",
            "call_id": "c1",
            "session_id": SESSION,
            "tool_call": {"readToolCall": {"args": {"path": "a.txt"}}},
        },
        {"type": "result", "subtype": "success", "session_id": SESSION, "result": "done"},
    ],
    "otel": [{"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [_SPAN]}]}]}],
    "ietf-vac-v3.0": [
        {
            "vac-version": "3.0",
            "id": SESSION,
            "session": {
                "format": "autonomous",
                "session-id": SESSION,
                "entries": [
                    {"type": "user", "content": "hello", "timestamp": AT.format(0)},
                    {"type": "assistant", "content": "hi", "timestamp": AT.format(1)},
                ],
            },
        }
    ],
}
"""Records of each format, one for each line."""


def log(format: str) -> bytes:
    """Return the log of a format."""
    return b"".join(json.dumps(value, separators=(",", ":")).encode() + b"\n" for value in LINES[format])
