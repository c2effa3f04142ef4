"""Event types and the extension each belongs to; which of the two kinds of tool-result an event is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from onrecord.base.namespaces import (
    AI_AGENT_EXTENSION,
    NS,
    POLICY_DECISION,
    TI_EVENT_TYPES,
    TOOL_EVENT_TYPES,
    TOOL_INVOCATION_EXTENSION,
)

PARTY_EVENTS: Final = ("join", "drop", "hold", "unhold", "mute", "unmute")
KEY_EVENTS: Final = ("keydown", "keyup")
TRANSFER_EVENTS: Final = (
    "consultation-start",
    "blind-transfer",
    "consultative-transfer",
    "transfer-abandoned",
)
CORE_EVENTS: Final = frozenset((*PARTY_EVENTS, *KEY_EVENTS, *TRANSFER_EVENTS))
"""Event types of vCon core."""

AI_EVENTS: Final = ("tool-call", "tool-result", "reasoning", "system-event")
"""Event types of ai_agent (AA 5). It shares the name tool-result with tool-invocation."""

TOOL_EVENTS: Final = frozenset(TOOL_EVENT_TYPES)
TI_EVENTS: Final = frozenset(TI_EVENT_TYPES)
KNOWN_EVENTS: Final = CORE_EVENTS | TI_EVENTS | frozenset(AI_EVENTS)

SUPPORTED_EXTENSIONS: Final = frozenset([AI_AGENT_EXTENSION, TOOL_INVOCATION_EXTENSION, NS])
"""Extensions whose members are understood: the two drafts and our own vendor member."""

AMBIGUOUS: Final = "ambiguous"
MERGED: Final = "merged"

_AI_MARKS: Final = frozenset(["output", "call_id", "status", "is_error"])


def kind_of(event: Mapping[str, Any], listed: Collection[str]) -> str | None:
    """Return what an event is: "core", "tool-invocation", "ai_agent", "merged", "ambiguous", or None if unknown.

    `listed` are the vCon's extensions; they decide about a tool-result that has no member of either draft.

    Source: record.md D-67.
    """
    name = event.get("type")
    if not isinstance(name, str):
        return None
    if name == "tool-result":
        return _tool_result(event, listed)
    if name in TI_EVENTS:
        return TOOL_INVOCATION_EXTENSION
    if name in CORE_EVENTS:
        return "core"
    return AI_AGENT_EXTENSION if name in AI_EVENTS else None


def _tool_result(event: Mapping[str, Any], listed: Collection[str]) -> str:
    ti = "operation_id" in event or "attempt" in event
    ai = not _AI_MARKS.isdisjoint(event)
    if ti and ai:
        return MERGED
    if ti or ai:
        return TOOL_INVOCATION_EXTENSION if ti else AI_AGENT_EXTENSION
    named = [name for name in (TOOL_INVOCATION_EXTENSION, AI_AGENT_EXTENSION) if name in listed]
    return named[0] if len(named) == 1 else AMBIGUOUS


def own_session_name(kind: str | None) -> str:
    """Return the member name that an event kind is written with (record.md D-12)."""
    return "session" if kind == AI_AGENT_EXTENSION else "sessions"


__all__ = [
    "AI_EVENTS",
    "AMBIGUOUS",
    "CORE_EVENTS",
    "KEY_EVENTS",
    "KNOWN_EVENTS",
    "MERGED",
    "PARTY_EVENTS",
    "POLICY_DECISION",
    "SUPPORTED_EXTENSIONS",
    "TI_EVENTS",
    "TOOL_EVENTS",
    "TRANSFER_EVENTS",
    "kind_of",
    "own_session_name",
]
