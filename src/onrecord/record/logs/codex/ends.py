"""Begins and ends of calls that the program reports beside the items of a response (native-logs.md 4.3).

An end belongs to a call of the same id. It supplements the call's output; without an output it is the result, and
without a call it is both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from onrecord.record.logs.codex import outcomes
from onrecord.record.logs.codex.media import in_output
from onrecord.record.logs.codex.names import BEGINS, ENDS, TOOL_ITEMS, key_of
from onrecord.record.logs.codex.seen import outputs_of, seen_in_end
from onrecord.record.logs.codex.survey import search_of, server_of
from onrecord.record.logs.codex.thread import Line, Thread
from onrecord.record.logs.sessions import Entry

_SUPPLEMENT: Final = (
    "exit_code",
    "duration",
    "duration_ms",
    "changes",
    "success",
    "status",
    "process_id",
    "saved_path",
)
_OUTPUTS: Final = (
    "aggregated_output",
    "formatted_output",
    "stdout",
    "result",
    "results",
    "content_items",
    "output",
    "path",
)
_CALL_MEMBERS: Final = frozenset(
    [
        "type",
        "id",
        "call_id",
        "callId",
        "command",
        "invocation",
        "server",
        "tool",
        "arguments",
        "query",
        "action",
    ]
)
_HOST: Final = {"kind": "host"}
_PROVIDER: Final = {"kind": "provider"}


def begin(thread: Thread, line: Line) -> None:
    """Map an event that says that a call began: a twin, unless nothing else tells of the call."""
    payload = line.payload
    key = key_of(payload)
    if key is not None and (hash(key) in thread.found.calls or hash(key) in thread.found.ends):
        thread.twin(line, "the call")
        return
    if key is not None and thread.session.has_call(key):
        thread.twin(line, "the call")
        return
    kind = payload["type"]
    tool = ENDS.get(kind.replace("_begin", "_end"), "") if kind in BEGINS else ""
    entry = thread.entry(line, key)
    _call(entry, payload, tool, key, rest=_rest(line, payload))


def end(thread: Thread, line: Line) -> None:
    """Map an event that says how a call ended."""
    kind = line.payload["type"]
    _ended(thread, line, line.payload, ENDS[kind], kind)


def completed_tool(thread: Thread, line: Line, item: Mapping[str, Any], kind: str) -> None:
    """Map a completed item that says how a call ended."""
    _ended(thread, line, item, TOOL_ITEMS[kind], "item_completed")


def _ended(thread: Thread, line: Line, told: Mapping[str, Any], tool: str, name: str) -> None:
    found, session = thread.found, thread.session
    key = _call_of(thread, told)
    mark = None if key is None else hash(key)
    status = outcomes.of_end(told)
    if status != outcomes.ERROR and not outcomes.is_open(told):
        thread.edits.changed(mark, told.get("changes"), model=thread.model, record=line.record.number)
    if key is not None and mark is not None:
        if mark in found.outputs:
            if thread.supplement(mark, name, _details(told), outputs_of(told)):
                thread.twin(line, "the call and its result")
            else:
                thread.told(line, name)
            return
        is_known = mark in found.calls or session.has_call(key)
        if outcomes.is_open(told) and not outputs_of(told) and not session.has_result(key):
            _goes_on(thread, line, told, tool, name=name, key=None if is_known else key)
            return
        output_mark = hash(orjson.dumps([told.get(member) for member in _OUTPUTS]))
        first = thread.ended.setdefault(mark, (name, output_mark))
        if session.has_result(key) and (first[0] != name or first[1] == output_mark):
            if first[0] != name:
                thread.supplement(mark, name, {}, outputs_of(told))
            thread.twin(line, "the result")
            return
    rest = _rest(line, told)
    entry = thread.entry(line, None)
    if mark is None or not (mark in found.calls or session.has_call(key or "")):
        _call(entry, told, tool, key, rest=None)
    member = next((member for member in _OUTPUTS if told.get(member) is not None), None)
    output, media = in_output(entry, told.get(member) if member else None)
    if member is not None:
        rest.pop(member, None)
    number = entry.result(
        output if member is not None else "",
        call_id=key,
        status=status or (outcomes.COMPLETED if name != "item_completed" else None),
        origin=_origin(told, tool),
        rest=rest,
        media=media,
    )
    if mark is not None:
        thread.results.setdefault(mark, number)
        thread.show(mark, seen_in_end(told))


def _goes_on(
    thread: Thread, line: Line, told: Mapping[str, Any], tool: str, *, name: str, key: str | None
) -> None:
    """Map an end that says itself that the call goes on: without a result. `key` is that of a call not yet told."""
    if key is None:
        thread.told(line, name)
    else:
        _call(thread.entry(line, None), told, tool, key, rest=_rest(line, told))


def _details(told: Mapping[str, Any]) -> dict[str, Any]:
    return {member: told[member] for member in _SUPPLEMENT if told.get(member) is not None}


def _call_of(thread: Thread, told: Mapping[str, Any]) -> str | None:
    """Return the id of the call that an end is about; web searches are also known by what they did."""
    key = key_of(told)
    if key is None or hash(key) not in thread.found.calls:
        action = search_of(told)
        searches = None if action is None else thread.found.searches.get(action)
        if searches:
            return searches.popleft() if len(searches) > 1 else searches[0]
    return key


def _call(
    entry: Entry, told: Mapping[str, Any], tool: str, key: str | None, *, rest: dict[str, Any] | None
) -> None:
    invocation = told.get("invocation")
    holder = invocation if type(invocation) is dict else told
    name = holder.get("tool") or holder.get("name") or tool or told.get("kind")
    if tool == "exec_command":
        value: Any = {member: told[member] for member in ("command", "cwd") if member in told}
    elif tool == "apply_patch":
        value = {"changes": told.get("changes")}
    elif tool == "web_search" or "action" in told:
        value = {member: told[member] for member in ("query", "action") if told.get(member) is not None}
        name = name or "web_search"
    elif tool == "view_image":
        value = {"path": told.get("path")}
    elif tool == "image_generation":
        value = {member: told[member] for member in ("revised_prompt",) if member in told}
    else:
        value = holder.get("arguments")
    entry.call(name, value, call_id=key, origin=_origin(told, tool), rest=rest)


def _origin(told: Mapping[str, Any], tool: str) -> dict[str, str]:
    server = server_of(told)
    if server is not None:
        return {"kind": "mcp", "server": server[0], "tool": server[1]}
    return _PROVIDER if tool in ("web_search", "image_generation") else _HOST


def _rest(line: Line, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what neither the call nor the result says."""
    rest = {name: value for name, value in told.items() if name not in _CALL_MEMBERS}
    if told is not line.payload:
        rest |= {name: value for name, value in line.payload.items() if name not in ("type", "item")}
    return rest | line.more
