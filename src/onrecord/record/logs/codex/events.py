"""Events of the program in a rollout: twins of items, ends of calls, and news of its own.

Source: native-logs.md 4.3, third table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.codex.ends import begin, completed_tool, end
from onrecord.record.logs.codex.forks import memory_of
from onrecord.record.logs.codex.items import reasoned
from onrecord.record.logs.codex.names import BEGINS, ENDS, TALK_EVENTS, TALK_ITEMS, TOOL_ITEMS, injected_as
from onrecord.record.logs.codex.talk import address_of, texts_of_event, texts_of_item
from onrecord.record.logs.codex.thread import Line, Thread
from onrecord.record.logs.codex.tokens import token_count
from onrecord.record.logs.media import attach, from_data_url
from onrecord.record.logs.sessions import Entry

_SAID: Final = frozenset(["type", "message", "text", "id", "images"])
_ITEM_SAID: Final = frozenset(["type", "id", "content", "summary_text", "raw_content"])
_LOCAL: Final = ("local_images", "audio", "local_audio")
_PLAN_ITEMS: Final = frozenset(
    ["Plan", "ContextCompaction", "HookPrompt", "CollabAgentToolCall", "SubAgentActivity"]
)


def event(thread: Thread, line: Line) -> None:
    """Map one event."""
    kind = line.payload.get("type")
    mapper = EVENT_MAPPERS.get(kind) if type(kind) is str else None
    if mapper is not None:
        mapper(thread, line)
    elif type(kind) is str and kind:
        thread.unknown(line, f"event_msg/{kind}")
    else:
        thread.odd(line, "event_msg")


# -- what is said in items too


def _talk(thread: Thread, line: Line) -> None:
    payload = line.payload
    kind = payload["type"]
    who = TALK_EVENTS[kind]
    texts = texts_of_event(payload)
    if texts is None:
        thread.odd(line, kind)
        return
    (text,) = texts
    is_alone = thread.found.talk.apart.get(line.record.number)
    if is_alone is None:
        _twin(thread, line)
        return
    if not is_alone and who != "reasoning":
        thread.told(line, kind)
        return
    rest = line.rest(_SAID)
    entry = thread.entry(line, payload.get("id"))
    images = payload.get("images")
    if images and (who != "user" or type(images) is not list):
        rest["images"] = images
    _said(thread, entry, who, text, rest=rest)
    if who == "user" and type(images) is list:
        _pictures(entry, images)


def _pictures(entry: Entry, addresses: list[Any]) -> None:
    """Write the pictures of an event of the user's, which may be data: URLs."""
    for block, url in enumerate(addresses, 1):
        found = from_data_url(url)
        if found is not None:
            attach(entry, found, block=block, native={"type": "image", "image_url": url})
        else:
            entry.event("block/image", {"image_url": url}, block=block)


def _twin(thread: Thread, line: Line) -> None:
    """Account an event as a twin, but keep pictures that the items lack: they may be named by their path only."""
    payload = line.payload
    if payload["type"] == "user_message":
        images = _lacking(thread, payload.get("images"))
        if images or any(payload.get(name) for name in _LOCAL):
            data = {name: value for name, value in payload.items() if name not in ("message", "images")}
            entry = thread.entry(line)
            entry.event("user_message", data, rest=line.more)
            _pictures(entry, images)
            return
    thread.twin(line, "the item of the response")


def _twin_item(thread: Thread, line: Line, native: Mapping[str, Any]) -> None:
    """Account a completed item as a twin, but keep its parts that are no text and that the items lack."""
    content = native.get("content")
    if native["type"] == "UserMessage" and type(content) is list:
        others = [part for part in content if type(part) is dict and type(part.get("text")) is not str]
        addresses = [address_of(part) for part in others]
        kept = [part for part, address in zip(others, addresses, strict=True) if address is None]
        images = _lacking(thread, [address for address in addresses if address is not None])
        if kept or images:
            entry = thread.entry(line)
            data = {**line.payload, "item": {**native, "content": kept}}
            entry.event("item_completed/UserMessage", data, rest=line.more)
            _pictures(entry, images)
            return
    thread.twin(line, "the item of the response")


def _lacking(thread: Thread, addresses: Any) -> list[Any]:
    """Return the addresses of pictures that no item of the user's has."""
    if type(addresses) is not list:
        return [addresses] if addresses else []
    known = thread.found.talk.pictures
    return [address for address in addresses if type(address) is not str or hash(address) not in known]


def _said(thread: Thread, entry: Entry, who: str, text: str, *, rest: dict[str, Any], block: int = 0) -> None:
    if who == "reasoning":
        reasoned(entry, [text], rest=rest)
    elif who == "assistant":
        thread.said_by_agent(entry, text, block, rest=rest)
    else:
        injected = injected_as(text)
        if injected is not None:
            entry.event(injected, {"text": text}, block=block, rest=rest)
        else:
            thread.said_by_user(entry, text, block, rest=rest)


def _completed(thread: Thread, line: Line) -> None:
    payload = line.payload
    native = payload.get("item")
    kind = native.get("type") if type(native) is dict else None
    if type(native) is not dict or type(kind) is not str:
        thread.odd(line, "item_completed")
    elif kind in TOOL_ITEMS:
        completed_tool(thread, line, native, kind)
    elif kind in TALK_ITEMS:
        _completed_talk(thread, line, native, TALK_ITEMS[kind])
    elif kind in _PLAN_ITEMS:
        thread.told(line, f"item_completed/{kind}")
    else:
        thread.unknown(line, f"item_completed/{kind}")


def _completed_talk(thread: Thread, line: Line, native: Mapping[str, Any], who: str) -> None:
    if texts_of_item(native) is None:
        thread.odd(line, "item_completed")
        return
    is_alone = thread.found.talk.apart.get(line.record.number)
    if is_alone is None:
        _twin_item(thread, line, native)
        return
    if not is_alone and who != "reasoning":
        thread.told(line, f"item_completed/{native['type']}")
        return
    rest = line.rest(frozenset(["type", "item"]))
    rest |= {name: value for name, value in native.items() if name not in _ITEM_SAID}
    if who == "reasoning":
        texts = [
            text
            for name in ("summary_text", "raw_content")
            for text in (native[name] if type(native.get(name)) is list else ())
            if type(text) is str
        ]
        reasoned(thread.entry(line, native.get("id")), texts, rest=rest)
        return
    content = native.get("content")
    if type(content) is not list or not content:
        thread.odd(line, "item_completed")
        return
    entry = thread.entry(line, native.get("id"))
    for block, part in enumerate(content):
        text = part.get("text") if type(part) is dict else part
        if type(text) is str:
            _said(thread, entry, who, text, rest=rest, block=block)
        else:
            entry.event("block/unknown", part, block=block, rest=rest)
        rest = {}


# -- news


def _named(thread: Thread, line: Line) -> None:
    thread.told(line, line.payload["type"])


def _as(event_type: str) -> Callable[[Thread, Line], None]:
    def mapper(thread: Thread, line: Line) -> None:
        thread.told(line, event_type)

    return mapper


def _task_complete(thread: Thread, line: Line) -> None:
    data = dict(line.payload)
    text = data.get("last_agent_message")
    if type(text) is str and text == thread.last_text:
        del data["last_agent_message"]
    thread.told(line, str(data["type"]), data)


def _settings(thread: Thread, line: Line) -> None:
    settings = line.payload.get("thread_settings")
    entry = thread.entry(line, line.payload.get("id"))
    entry.event(event_types.SETTINGS_CHANGE, line.payload, rest=line.more)
    if type(settings) is dict:
        thread.session.saw_working_dir(entry, settings.get("cwd"))


def _name(thread: Thread, line: Line) -> None:
    name = line.payload.get("thread_name", line.payload.get("name"))
    thread.session.title(
        thread.entry(line, line.payload.get("id")), name, rank=0, data=line.payload, rest=line.more
    )


def _rolled_back(thread: Thread, line: Line) -> None:
    turns = line.payload.get("num_turns")
    if type(turns) is int and turns > 0:
        missing = thread.discard(turns)
        if missing:
            thread.trace.findings.add(
                "rewind-target-missing",
                record=line.record.number,
                action="kept; flagged from the first turn on",
            )
        if missing < turns:
            thread.trace.findings.add(
                "superseded", record=line.record.number, action="entries behind the target are flagged"
            )
    elif turns != 0 or type(turns) is not int:
        thread.trace.findings.add("odd-shape", record=line.record.number, action="nothing flagged")
    thread.told(line, event_types.REWIND)


def _spawned(thread: Thread, line: Line) -> None:
    """A parent tells of a sub-agent, whose own file may have been read before."""
    payload = line.payload
    child_id = payload.get("new_thread_id", payload.get("agent_thread_id"))
    if type(child_id) is str and child_id and child_id != thread.session.agent_session_id:
        call_id = payload.get("call_id")
        call_id = call_id if type(call_id) is str and thread.session.has_call(call_id) else None
        name = payload.get("new_agent_nickname")
        name = name if type(name) is str and name else None
        memory_of(thread.trace.run).spawned.setdefault(
            child_id, (thread.session.agent_session_id, call_id, name)
        )
        child = thread.trace.run.known_session(thread.session.format_id, child_id)
        if child is not None and child.parent is None:
            child.child_of(thread.session, call_id=call_id, description=name)
    thread.told(line, payload["type"])


_NAMED: Final = (
    "task_started",
    "turn_started",
    "turn.completed",
    "turn_completed",
    "thread_goal_updated",
    "entered_review_mode",
    "exited_review_mode",
    "undo_started",
    "undo_completed",
    "guardian_assessment",
    "plan_update",
    "plan_delta",
    "agent_reasoning_section_break",
    "collab_agent_spawn_begin",
    "collab_agent_interaction_begin",
    "collab_agent_interaction_end",
    "collab_waiting_begin",
    "collab_waiting_end",
    "collab_close_begin",
    "collab_close_end",
    "collab_resume_begin",
    "collab_resume_end",
    "background_event",
    "warning",
    "deprecation_notice",
    "model_reroute",
    "shutdown_complete",
    "session_configured",
)

EVENT_MAPPERS: Final[Mapping[str, Callable[[Thread, Line], None]]] = {
    **dict.fromkeys(TALK_EVENTS, _talk),
    **dict.fromkeys(BEGINS, begin),
    **dict.fromkeys(ENDS, end),
    **dict.fromkeys(_NAMED, _named),
    "item_completed": _completed,
    "token_count": token_count,
    "task_complete": _task_complete,
    "turn_complete": _task_complete,
    "thread_settings_applied": _settings,
    "thread_name_updated": _name,
    "thread_rolled_back": _rolled_back,
    "context_compacted": _as(event_types.COMPACTION),
    "turn_aborted": _as(event_types.INTERRUPTED),
    "error": _as(event_types.ERROR),
    "stream_error": _as(event_types.ERROR),
    "hook_started": _as(event_types.HOOK),
    "hook_completed": _as(event_types.HOOK),
    "account/rateLimits/updated": _as(event_types.RATE_LIMITS),
    "exec_approval_request": _as(event_types.APPROVAL),
    "apply_patch_approval_request": _as(event_types.APPROVAL),
    "request_permissions": _as(event_types.APPROVAL),
    "elicitation_request": _as(event_types.APPROVAL),
    "collab_agent_spawn_end": _spawned,
    "sub_agent_activity": _spawned,
}
"""Mappers by the type of an event."""
