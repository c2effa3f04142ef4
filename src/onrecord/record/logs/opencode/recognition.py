"""What is of OpenCode: the shapes of its sessions, messages, parts and events (native-logs.md section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from onrecord.record.logs.opencode.members import PARTS

STATES: Final = frozenset(
    ("message.updated", "message.part.updated", "message.part.delta", "session.updated", "session.created")
)
"""Events that tell of a session, a message or a part."""

_FIRST_ELEMENTS: Final = 20

Shape = Literal["export", "answer", "event", "share", "part", "message", "session"]


def shape_of(value: Mapping[str, Any]) -> Shape | None:
    """Return what an object is by its members, None for what is nothing of OpenCode."""
    info = value.get("info")
    if type(info) is dict or "info" in value:
        if isinstance(value.get("messages"), list):
            return "export"
        if isinstance(value.get("parts"), list):
            return "answer"
    if isinstance(event_of(value), dict):
        return "event"
    if type(value.get("secret")) is str and type(value.get("url")) is str and "role" not in value:
        return "share"
    kind = value.get("type")
    if type(kind) is str and (type(value.get("messageID")) is str or _is_bare_part(value, kind)):
        return "part"
    if type(value.get("role")) is str and ("content" not in value) and "message" not in value:
        return "message"
    if type(value.get("projectID")) is str or _starts(value.get("id"), "ses_"):
        return "session"
    return None


def event_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the event in a line of the server's stream, the one of all projects included."""
    payload = value.get("payload")
    event = payload if type(payload) is dict else value
    kind = event.get("type")
    if type(kind) is str and "." in kind and type(event.get("properties")) is dict:
        return event
    return None


def is_decisive(value: Mapping[str, Any]) -> bool:
    """Say whether an object can only be one of OpenCode."""
    shape = shape_of(value)
    if shape == "export":
        info = value["info"]
        return type(info) is dict and type(info.get("id")) is str
    if shape == "answer":
        info = value["info"]
        return type(info) is dict and type(info.get("role")) is str
    if shape == "event":
        return _is_state(event_of(value) or {})
    if shape == "part":
        return type(value.get("id")) is str
    if shape == "message":
        return type(value.get("id")) is str and type(value.get("sessionID")) is str
    return (
        shape == "session"
        and type(value.get("id")) is str
        and (type(value.get("directory")) is str or _starts(value["id"], "ses_"))
        and type(value.get("time")) is dict
    )


def is_decisive_list(value: Any) -> bool:
    """Say whether a list begins with messages and their parts, or with other records of OpenCode."""
    if type(value) is not list or not value:
        return False
    return any(type(element) is dict and is_decisive(element) for element in value[:_FIRST_ELEMENTS])


def _is_state(event: Mapping[str, Any]) -> bool:
    told = event["properties"]
    if event["type"] not in STATES:
        return False
    return type(told.get("info")) is dict or type(told.get("part")) is dict or type(told.get("partID")) is str


def _is_bare_part(value: Mapping[str, Any], kind: str) -> bool:
    """Say whether this is a part that only its folder ties to a message."""
    time = value.get("time")
    return (
        kind in PARTS
        and type(value.get("id")) is str
        and ((type(time) is dict and type(time.get("start")) is int) or type(value.get("state")) is dict)
    )


def _starts(value: Any, prefix: str) -> bool:
    return type(value) is str and value.startswith(prefix)
