"""Makes small traces of an invented agent in the tests of the importer of spans."""

from __future__ import annotations

import json
from typing import Any

TRACE = "0123456789abcdef0123456789abcdef"
START = 1_782_900_000
"""2026-07-01T10:00:00Z."""


def span(id: str, name: str, at: float, until: float, parent: str = "", **more: Any) -> dict[str, Any]:
    """Return a span as an SDK exporter writes it; times in seconds after `START`."""
    attributes = more.pop("attributes", {})
    return {
        "name": name,
        "spanContext": {"traceId": more.pop("trace", TRACE), "spanId": id},
        "parentSpanId": parent,
        "startTime": [START + int(at), int(at % 1 * 1e9)],
        "endTime": [START + int(until), int(until % 1 * 1e9)],
        "attributes": attributes,
        "status": {"code": 0},
        **more,
    }


def said(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """Return a message; a text stands for a part."""
    return {
        "role": role,
        "parts": [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts],
        **more,
    }


def call(id: str, name: str = "look", **arguments: Any) -> dict[str, Any]:
    """Return a part that calls a tool."""
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def response(id: str, output: Any) -> dict[str, Any]:
    """Return a part that holds a tool's output."""
    return {"type": "tool_call_response", "id": id, "response": output}


def chat(
    id: str, at: float, inputs: list[Any], outputs: list[Any], parent: str = "", **more: Any
) -> dict[str, Any]:
    """Return an answer of a model with 10 tokens in and 2 out."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "talk",
        "gen_ai.provider.name": "example",
        "gen_ai.response.model": "example-1",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps(outputs),
        **more.pop("attributes", {}),
    }
    return span(id, "chat example-1", at, at + 1, parent, attributes=attributes, **more)


def agent(id: str, at: float, until: float, parent: str = "", **attributes: Any) -> dict[str, Any]:
    """Return a run of an agent."""
    named = {name.replace("_", "."): value for name, value in attributes.items()}
    made = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"Agent {id}", **named}
    return span(id, "invoke_agent", at, until, parent, attributes=made)


def tool(id: str, at: float, parent: str = "", **attributes: Any) -> dict[str, Any]:
    """Return a run of a tool; underscores in names stand for dots."""
    named = {f"gen_ai.tool.{name.replace('_', '.')}": value for name, value in attributes.items()}
    made = {"gen_ai.operation.name": "execute_tool", **named}
    return span(id, "execute_tool look", at, at + 1, parent, attributes=made)


def otlp(value: dict[str, Any]) -> dict[str, Any]:
    """Return a span as an OTLP export of one."""
    seconds, nanoseconds = value["startTime"]
    until, fraction = value["endTime"]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "finder"}}]},
                "scopeSpans": [
                    {
                        "scope": {"name": "invented"},
                        "spans": [
                            {
                                **value["spanContext"],
                                "parentSpanId": value["parentSpanId"],
                                "name": value["name"],
                                "startTimeUnixNano": str(seconds * 10**9 + nanoseconds),
                                "endTimeUnixNano": str(until * 10**9 + fraction),
                                "attributes": [
                                    {"key": name, "value": _any_value(inner)}
                                    for name, inner in value["attributes"].items()
                                ],
                                "status": {},
                            }
                        ],
                    }
                ],
            }
        ]
    }


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {"stringValue": value}


HELLO = said("user", "hello")
ANSWER = said("assistant", "let me see", call("c1", place="here"))
FOUND = said("tool", response("c1", "a stone"))
RUN: list[dict[str, Any]] = [
    chat("a2", 1, [HELLO], [ANSWER], "a1"),
    tool("a3", 2, "a1", name="look", call_id="c1", call_arguments='{"place":"here"}', call_result="a stone"),
    chat("a4", 3, [HELLO, ANSWER, FOUND], [said("assistant", "a stone")], "a1"),
    agent("a1", 0, 5, gen_ai_conversation_id="talk"),
]
"""A run with two answers and a tool between them, in the order in which the spans ended."""
