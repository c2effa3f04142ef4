"""Messages of a Codex session: of the user, the agent, the program, and between agents (native-logs.md 4.3).

What the program put into a user message is told apart from what a human typed (D-LOG-07).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.codex.media import AUDIO, CONTENT, PICTURES, medium_of
from onrecord.record.logs.codex.names import injected_as, kinds_of
from onrecord.record.logs.codex.thread import Line, Thread
from onrecord.record.logs.media import attach
from onrecord.record.logs.sessions import AGENT, PARENT, Entry

_TEXTS: Final = frozenset(["input_text", "output_text", "text", "Text", "inputText"])
_MESSAGE: Final = frozenset(["type", "id", "role", "content"])
_PART: Final = frozenset(["type", "text"])
_AGENT_MESSAGE: Final = frozenset(["type", "id", "author", "content"])


def message(thread: Thread, line: Line) -> None:
    """Map a message: by its role a turn, an answer or a system-prompt, part by part."""
    payload = line.payload
    role = payload.get("role")
    if role not in ("user", "assistant", "developer", "system"):
        thread.odd(line, "message")
        return
    content = payload.get("content")
    if type(content) is str:
        content = [content]
    rest = line.rest(_MESSAGE)
    entry = thread.entry(line, payload.get("id"))
    if not content:
        entry.event(event_types.EMPTY_TEXT, {"role": role}, rest=rest)
    elif type(content) is not list:
        thread.trace.findings.add("odd-shape", record=line.record.number, action="kept as system-event")
        entry.event("message", payload, rest=line.more)
    else:
        kinds = kinds_of(payload) if role == "user" else []
        for block, part in enumerate(content):
            kind = kinds[block] if block < len(kinds) else None
            _part(thread, entry, part, role=role, kind=kind, block=block, rest=rest)
            rest = {}


def _part(
    thread: Thread, entry: Entry, part: Any, *, role: str, kind: Any, block: int, rest: dict[str, Any]
) -> None:
    """Map one part of a message; `rest` is that of the message, if this is the first."""
    if type(part) is str:
        part = {"text": part}
    if type(part) is not dict:
        thread.trace.findings.add("odd-shape", record=entry.record.number, action="kept as system-event")
        entry.event("block/unknown", part, block=block, rest=rest)
        return
    form, text = part.get("type"), part.get("text")
    if type(text) is str and (form is None or (type(form) is str and form in _TEXTS)):
        if len(part) > 2:
            rest = _with_part(rest, part)
        if role == "assistant":
            thread.said_by_agent(entry, text, block, rest=rest)
        elif role == "user":
            injected = injected_as(text, kind)
            if injected is not None:
                entry.event(injected, {"text": text}, block=block, rest=rest)
            else:
                thread.said_by_user(entry, text, block, rest=rest)
        elif text.strip():
            entry.system_prompt(text, role, block=block, rest=rest)
        else:
            entry.event(event_types.EMPTY_TEXT, {"role": role, "text": text}, block=block, rest=rest)
        return
    _other_part(thread, entry, part, role=role, block=block, rest=rest)


def _other_part(
    thread: Thread, entry: Entry, part: Mapping[str, Any], *, role: str, block: int, rest: dict[str, Any]
) -> None:
    form = part.get("type")
    if type(form) is str and (form in PICTURES or form in AUDIO):
        found = medium_of(part) if role == "user" else None
        if found is not None:
            kept = {name: value for name, value in part.items() if name not in CONTENT}
            attach(entry, found, block=block, native=part, rest={**rest, "part": kept})
            return
    elif form == "encrypted_content":
        encrypted = part.get("encrypted_content")
        if type(encrypted) is str and encrypted:
            entry.reasoning("", encrypted=encrypted, block=block, rest=rest)
            return
    elif type(form) is str and form not in _TEXTS:
        thread.trace.findings.add(
            "unknown-block-type", name=form[:64], record=entry.record.number, action="kept as system-event"
        )
    else:
        thread.trace.findings.add("odd-shape", record=entry.record.number, action="kept as system-event")
    name = form if type(form) is str and form else "unknown"
    entry.event(f"block/{name}", part, block=block, rest=rest)


def _with_part(rest: dict[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    return {**rest, "part": {name: value for name, value in part.items() if name not in _PART}}


def agent_message(thread: Thread, line: Line) -> None:
    """Map a message between agents."""
    talk(thread, line, line.payload.get("content"), rest=line.rest(_AGENT_MESSAGE))


def talk(thread: Thread, line: Line, content: Any, *, rest: dict[str, Any]) -> None:
    """Write a message between agents, by the one that sent it (D-LOG-12)."""
    payload = line.payload
    entry = thread.entry(line, payload.get("id"))
    author = payload.get("author")
    author = author if type(author) is str and author else None
    by = _speaker(thread, author)
    if author is not None:
        rest = {**rest, "author": author}
    if type(content) is str:
        content = [content]
    if type(content) is not list or not content:
        if content not in (None, []):
            thread.trace.findings.add("odd-shape", record=line.record.number, action="kept as system-event")
        entry.event("agent_message", payload, rest=line.more)
        return
    for block, part in enumerate(content):
        text = part.get("text") if type(part) is dict else part
        if type(text) is str:
            if type(part) is dict and len(part) > 2:
                rest = _with_part(rest, part)
            entry.text(text, by=by, block=block, model=thread.model if by == AGENT else None, rest=rest)
        elif type(part) is dict:
            _other_part(thread, entry, part, role="agent", block=block, rest=rest)
        else:
            thread.trace.findings.add("odd-shape", record=line.record.number, action="kept as system-event")
            entry.event("block/unknown", part, block=block, rest=rest)
        rest = {}


def _speaker(thread: Thread, author: str | None) -> int:
    """Return who sends a message: agents are named by their path, the first one is "/root"."""
    origin = thread.origin
    own = origin.agent.get("agent_path") or (None if origin.is_child else "/root")
    if author is not None and author == own:
        return AGENT
    if origin.is_child and type(own) is str and author == own.rpartition("/")[0]:
        return PARENT
    return thread.session.other(author or "agent")
