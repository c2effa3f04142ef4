"""Parts of messages, each kind to its objects (native-logs.md 4.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.media import attach, from_data_url
from onrecord.record.logs.opencode.context import Context
from onrecord.record.logs.opencode.frames import Frame
from onrecord.record.logs.opencode.tools import Outcome, is_time, write_tool
from onrecord.record.logs.sessions import AGENT, USER, Entry
from onrecord.record.logs.usage import opencode

ORPHAN_TEXT: Final = "orphan-text"
"""A text of which nobody knows who said it."""

STEP_FINISH: Final = "step-finish"
SUBTASK: Final = "subtask"

_IDS: Final = frozenset({"id", "sessionID", "messageID", "type"})
"""Members that an object tells in its own way, if they say what they should."""

_ENCRYPTED: Final = (("openai", "reasoningEncryptedContent"), ("anthropic", "signature"))

_EVENTS: Final = {
    "patch": event_types.PATCH,
    "snapshot": event_types.SNAPSHOT,
    "step-start": "step-start",
    "agent": "block/agent",
    "subtask": SUBTASK,
    "retry": event_types.RETRY,
    "compaction": event_types.COMPACTION,
}
"""Parts that are told whole, as system-events of these types."""


def write_part(
    entry: Entry, part: dict[str, Any], frame: Frame, *, speaker: int | None, block: int
) -> Outcome | None:
    """Write the objects of a part; of a tool part, return what became of the call. `speaker` None: nobody knows."""
    kind = part.get("type")
    if kind == "tool":
        rest = _rest(part, entry, frame, "tool", "callID", "state")
        outcome = write_tool(entry, part, rest)
        frame.is_conversation = True
        return outcome
    if kind == "text":
        _text(entry, part, frame, speaker, block)
        return None
    writer = _WRITERS.get(kind) if type(kind) is str else None
    if writer is not None:
        writer(entry, part, frame, block)
        return None
    event_type = _EVENTS.get(kind) if type(kind) is str else None
    if event_type is None:
        name = kind if type(kind) is str and kind else "unknown"
        event_type = f"block/{name}"
        entry.trace.findings.add(
            "unknown-block-type",
            record=entry.record.number,
            name=name[:64],
            action="kept as a system-event",
        )
    _event(entry, event_type, part, frame, block)
    return None


def _text(entry: Entry, part: dict[str, Any], frame: Frame, speaker: int | None, block: int) -> None:
    text = part.get("text")
    if type(text) is not str:
        _event(entry, "block/text", part, frame, block)
        return
    if part.get("synthetic") is True or part.get("ignored") is True:
        event_type = event_types.INJECTED_CONTEXT
    elif frame.is_summary:
        event_type = event_types.COMPACTION_SUMMARY
    elif speaker is None:
        event_type = event_types.SYSTEM_PROMPT if frame.role == "system" else ORPHAN_TEXT
    else:
        event_type = ""
    rest = _rest(part, entry, frame, "text")
    if event_type == event_types.SYSTEM_PROMPT:
        entry.system_prompt(text, "system", block=block, rest=rest)
    elif event_type:
        entry.event(event_type, {"text": text}, block=block, rest=rest)
    else:
        number = entry.text(
            text, by=AGENT if speaker is None else speaker, block=block, model=frame.model, rest=rest
        )
        if number is not None:
            frame.is_conversation = True
            if frame.first_text is None:
                frame.first_text = number


def _reasoning(entry: Entry, part: dict[str, Any], frame: Frame, block: int) -> None:
    text = part.get("text")
    metadata = part.get("metadata")
    encrypted = None
    kept = metadata
    if type(metadata) is dict:
        for provider, name in _ENCRYPTED:
            own = metadata.get(provider)
            if encrypted is None and type(own) is dict and type(own.get(name)) is str and own[name]:
                encrypted = own[name]
                others = {key: value for key, value in own.items() if key != name}
                kept = {**metadata, provider: others}
                if not others:
                    del kept[provider]
    rest = _rest(part, entry, frame, "text", "metadata")
    if kept:
        rest["metadata"] = kept
    content = "" if text is None else text
    entry.reasoning(content, encrypted=encrypted, block=block, rest=rest)
    frame.is_conversation = True


def _file(entry: Entry, part: dict[str, Any], frame: Frame, block: int) -> None:
    found = from_data_url(part.get("url"))
    if found is None:
        _event(entry, "block/file", part, frame, block)
        return
    rest = _rest(part, entry, frame, "url")
    attach(entry, found, block=block, native=part, rest=rest, by=AGENT if frame.role == "assistant" else USER)
    frame.is_conversation = True


def _step_finish(entry: Entry, part: dict[str, Any], frame: Frame, block: int) -> None:
    """Write the end of a step; its tokens repeat those of the message, and count where that has none."""
    rest = frame.take_rest()
    data = _without_ids(part, entry, frame)
    usage = opencode(part.get("tokens"), cost=part.get("cost"))
    if not usage.is_empty:
        data["scope"] = "turn"
        entry.session.add_usage("turn", usage)
    entry.event(STEP_FINISH, data, block=block, rest=rest)


def _event(entry: Entry, event_type: str, part: Mapping[str, Any], frame: Frame, block: int) -> None:
    data = _without_ids(part, entry, frame)
    if event_type == "block/unknown" and "type" in part:
        data["type"] = part["type"]
    entry.event(event_type, data, block=block, rest=frame.take_rest())


def _without_ids(part: Mapping[str, Any], entry: Entry, frame: Frame) -> dict[str, Any]:
    """Return the members of a part beside its type, and beside those ids that say no more than its place."""
    kept = {name: member for name, member in part.items() if name not in _IDS}
    message = frame.record.value.get("id") if frame.record is not None else None
    for name, home in (("sessionID", entry.session.agent_session_id), ("messageID", message)):
        if part.get(name) is not None and part[name] != home:
            kept[name] = part[name]
    if part.get("id") is not None and type(part["id"]) is not str:
        kept["id"] = part["id"]
    return kept


def _rest(part: Mapping[str, Any], entry: Entry, frame: Frame, *mapped: str) -> dict[str, Any]:
    """Return the members of a part that have no home, and those of its message if this is its first object."""
    rest: dict[str, Any] = {}
    for name, member in _without_ids(part, entry, frame).items():
        if name in mapped:
            continue
        kept = member
        if name == "time" and type(member) is dict:
            kept = {key: time for key, time in member.items() if key != "start" or not is_time(time)}
            if not kept:
                continue
        rest[name] = kept
    rest |= frame.take_rest()
    return rest


def changes_of(
    context: Context, part: Mapping[str, Any], outcome: Outcome | None, *, model: Any, record: int
) -> None:
    """Take over what a part says about changed files."""
    if outcome is not None:
        context.changes().edited(part, outcome, model=model, record=record)
    elif part.get("type") == "patch":
        context.changes().patched(part.get("files"), record=record)


_WRITERS: Final[Mapping[str, Callable[[Entry, dict[str, Any], Frame, int], None]]] = {
    "reasoning": _reasoning,
    "file": _file,
    "step-finish": _step_finish,
}
