"""Items of a Codex response: reasoning, calls, results, and messages by their own module.

Source: native-logs.md 4.3, second table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.codex import outcomes
from onrecord.record.logs.codex.media import in_output, moved
from onrecord.record.logs.codex.messages import agent_message, message
from onrecord.record.logs.codex.names import CALLS, OUTPUTS, key_of, type_of
from onrecord.record.logs.codex.seen import seen_in
from onrecord.record.logs.codex.survey import search_of
from onrecord.record.logs.codex.thread import Line, Thread
from onrecord.record.logs.media import medium
from onrecord.record.logs.reading.values import arguments_of
from onrecord.record.logs.sessions import Entry

_REASONING: Final = frozenset(["type", "id", "summary", "content", "encrypted_content"])
_CALL: Final = frozenset(["type", "id", "call_id", "callId", "name"])
_OUTPUT: Final = frozenset(["type", "id", "call_id", "callId"])
_SUBJECT: Final = re.compile(r"\*\*([^*\n]{1,1000})\*\*")
_SERVER: Final = "mcp__"
_HOST: Final = {"kind": "host"}
_PROVIDER: Final = {"kind": "provider"}
_AT_PROVIDER: Final = ("web_search_call", "image_generation_call")


def item(thread: Thread, line: Line) -> None:
    """Map one item."""
    kind = type_of(line.payload)
    mapper = ITEM_MAPPERS.get(kind) if type(kind) is str else None
    if mapper is not None:
        mapper(thread, line)
    elif type(kind) is str and kind:
        thread.unknown(line, f"response_item/{kind}")
    else:
        thread.odd(line, "response_item")


# -- reasoning


def _reasoning(thread: Thread, line: Line) -> None:
    payload = line.payload
    texts: list[str] = []
    rest = line.rest(_REASONING)
    for name in ("summary", "content"):
        parts = payload.get(name)
        if parts is None:
            continue
        found = _texts(parts)
        if found is None:
            thread.trace.findings.add("odd-shape", record=line.record.number, action="kept in rest")
            rest[name] = parts
        else:
            texts += found
    encrypted = payload.get("encrypted_content")
    if encrypted is not None and type(encrypted) is not str:
        rest["encrypted_content"] = encrypted
    reasoned(thread.entry(line, payload.get("id")), texts, encrypted=encrypted, rest=rest)


def reasoned(
    entry: Entry, texts: list[str], *, encrypted: Any = None, rest: Mapping[str, Any] | None = None
) -> None:
    """Write reasoning: its texts joined by blank lines, and the first heading as its subject."""
    content = "\n\n".join(texts)
    subject = _SUBJECT.search(content)
    entry.reasoning(content, encrypted=encrypted, subject=subject[1] if subject else None, rest=rest)


def _texts(parts: Any) -> list[str] | None:
    if type(parts) is str:
        return [parts]
    if type(parts) is not list:
        return None
    texts = []
    for part in parts:
        text = part.get("text") if type(part) is dict else part
        if type(text) is not str:
            return None
        texts.append(text)
    return texts


# -- calls and results


def _call(thread: Thread, line: Line) -> None:
    payload = line.payload
    kind = type_of(payload)
    member = CALLS[kind]
    name = payload.get("name")
    if name is None:
        name = kind.removesuffix("_call")
    key = key_of(payload)
    if kind == "web_search_call" and key is None:
        action = search_of(payload)
        ends = None if action is None else thread.found.search_ends.get(action)
        key = ends.popleft() if ends else None
    has_picture = kind == "image_generation_call" and bool(payload.get("result"))
    rest = line.rest(_CALL | {"result" if has_picture else member})
    value = payload.get(member) if member else None
    if member == "arguments":
        native = value
        value, raw = arguments_of(native)
        if raw is not None:
            rest["arguments"] = raw
            if value is native:
                thread.trace.findings.add(
                    "arguments-unparsed", record=line.record.number, action="kept as a string"
                )
    mark = None if key is None else hash(key)
    entry = thread.entry(line, payload.get("id"))
    origin = _origin(thread, payload, kind, name, mark)
    if mark is not None and origin is not _HOST:
        thread.origins[mark] = origin
    entry.call(name, value, call_id=key, origin=origin, rest=rest)
    cwd = None if thread.settings is None else thread.settings.get("cwd")
    thread.edits.proposed(mark, name, value, thread.model, cwd)
    if has_picture:
        _picture(thread, entry, payload, key)


def _origin(
    thread: Thread, payload: Mapping[str, Any], kind: str, name: Any, mark: int | None
) -> dict[str, str]:
    """Say where a call goes: to an MCP server, as an event or the namespace says, to the provider, else to the host."""
    server = None if mark is None else thread.found.servers.get(mark)
    if server is not None:
        return {"kind": "mcp", "server": server[0], "tool": server[1]}
    namespace = payload.get("namespace")
    if type(namespace) is str and namespace and type(name) is str:
        if namespace.startswith(_SERVER):
            return {
                "kind": "mcp",
                "server": namespace.removeprefix(_SERVER).strip("_") or namespace,
                "tool": name,
            }
        return {"kind": "host", "server": namespace, "tool": name}
    if type(name) is str and name.startswith(_SERVER):
        server_name, _, tool = name.removeprefix(_SERVER).partition("__")
        if server_name and tool:
            return {"kind": "mcp", "server": server_name, "tool": tool}
    return _PROVIDER if kind in _AT_PROVIDER else _HOST


def _picture(thread: Thread, entry: Entry, payload: Mapping[str, Any], key: str | None) -> None:
    """Write the result of an image generation, which stands in the call."""
    output = payload.get("result")
    found = medium(None, output)
    told = [] if found is None else [found.told("/output")]
    if found is not None and moved(entry, found):
        output = ""
    _result(
        thread,
        entry,
        output,
        key=key,
        status=outcomes.of_word(payload.get("status")),
        told=told,
        rest={},
        native=payload.get("result"),
    )


def _output(thread: Thread, line: Line) -> None:
    payload = line.payload
    kind = type_of(payload)
    member = OUTPUTS[kind] if "output" not in payload else "output"
    key = key_of({name: payload[name] for name in ("call_id", "callId") if name in payload})
    entry = thread.entry(line, payload.get("id"))
    output, told = in_output(entry, payload.get(member))
    status = None if key is None else thread.found.outcomes.get(hash(key))
    if status in (None, outcomes.COMPLETED):
        status = outcomes.of_output(payload) or status
    _result(
        thread,
        entry,
        output,
        key=key,
        status=status,
        told=told,
        rest=line.rest(_OUTPUT | {member}),
        native=payload.get(member),
    )


def _result(
    thread: Thread,
    entry: Entry,
    output: Any,
    *,
    key: str | None,
    status: str | None,
    told: list[dict[str, Any]],
    rest: dict[str, Any],
    native: Any,
) -> None:
    mark = None if key is None else hash(key)
    if mark is not None and mark in thread.found.ends:
        thread.show(mark, seen_in(native))
        rest |= thread.supplements_of(mark)
    server = None if mark is None else thread.found.servers.get(mark)
    origin = {"kind": "mcp", "server": server[0], "tool": server[1]} if server is not None else None
    if origin is None and mark is not None:
        origin = thread.origins.get(mark)
    number = entry.result(output, call_id=key, status=status, origin=origin, rest=rest, media=told)
    if mark is not None:
        if mark in thread.found.ends:
            thread.results.setdefault(mark, number)
        thread.edits.ended(mark, is_success=status == outcomes.SUCCESS, record=entry.record.number)


# -- the others


def _tools(thread: Thread, line: Line) -> None:
    tools = line.payload.get("tools")
    if type(tools) is not list:
        thread.odd(line, event_types.TOOL_DEFINITIONS)
        return
    entry = thread.entry(line, line.payload.get("id"))
    entry.tool_definitions(tools, names_of(tools), rest=line.rest(frozenset(["type", "id", "tools"])))


def names_of(tools: list[Any]) -> list[str]:
    """Return the names of tool definitions."""
    return [
        tool["name"]
        for tool in tools
        if type(tool) is dict and type(tool.get("name")) is str and tool["name"]
    ]


def _as(event_type: str) -> Callable[[Thread, Line], None]:
    def mapper(thread: Thread, line: Line) -> None:
        thread.told(line, event_type)

    return mapper


ITEM_MAPPERS: Final[Mapping[str, Callable[[Thread, Line], None]]] = {
    "message": message,
    "agent_message": agent_message,
    "reasoning": _reasoning,
    **dict.fromkeys(CALLS, _call),
    **dict.fromkeys(OUTPUTS, _output),
    "compaction": _as(event_types.COMPACTION),
    "compaction_summary": _as(event_types.COMPACTION),
    "context_compaction": _as(event_types.COMPACTION),
    "ghost_snapshot": _as(event_types.SNAPSHOT),
    "configuration_update": _as(event_types.SETTINGS_CHANGE),
    "additional_tools": _tools,
}
"""Mappers by the type of an item."""
