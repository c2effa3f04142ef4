"""Records of a Claude log that are no messages: which system-event each becomes.

Source: native-logs.md 4.1 (Other records), D-LOG-26, D-LOG-29.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.sessions import Entry

SYSTEM: Final[Mapping[str, str]] = {
    "compact_boundary": event_types.COMPACTION,
    "api_error": event_types.ERROR,
    "error": event_types.ERROR,
    "api_refusal": event_types.ERROR,
    "model_refusal_fallback": event_types.MODEL_CHANGE,
    "stop_hook_summary": event_types.HOOK,
    "away_summary": event_types.COMPACTION_SUMMARY,
    "local_command": event_types.LOCAL_COMMAND,
    "turn_duration": "system/turn_duration",
    "bridge_status": "system/bridge_status",
    "informational": "system/informational",
    "session_start": "system/session_start",
    "init": "system/init",
}
"""Subtypes of `system` records."""

ATTACHMENTS: Final = frozenset(
    [
        "queued_command",
        "hook_success",
        "hook_additional_context",
        "hook_blocking_error",
        "hook_non_blocking_error",
        "file",
        "edited_text_file",
        "nested_memory",
        "todo_reminder",
        "task_reminder",
        "task_status",
        "plan_mode",
        "plan_mode_exit",
        "auto_mode",
        "date_change",
        "deferred_tools_delta",
        "agent_listing_delta",
        "mcp_instructions_delta",
        "skill_listing",
        "invoked_skills",
        "dynamic_skill",
        "command_permissions",
        "compact_file_reference",
        "read_truncation_notice",
        "ultra_effort_enter",
        "ultra_effort_exit",
        "budget_usd",
        "total_tokens_reminder",
        "batching_reminder_sent",
        "silent_turn_reminder",
    ]
)
"""Types of `attachment` records that are known."""

PROGRESS: Final = frozenset(
    [
        "hook_progress",
        "agent_progress",
        "bash_progress",
        "mcp_progress",
        "query_update",
        "search_results_received",
        "waiting_for_task",
    ]
)
"""Types of `progress` records that are known."""

NAMED: Final = frozenset(
    [
        "pr-link",
        "frame-link",
        "worktree-state",
        "relocated",
        "last-prompt",
        "agent-setting",
        "atis-latch",
        "bridge-session",
    ]
)
"""Record types that name their own event."""

TITLES: Final[Mapping[str, tuple[str, int]]] = {
    "custom-title": ("customTitle", 0),
    "ai-title": ("aiTitle", 1),
    "agent-name": ("agentName", 1),
    "summary": ("summary", 2),
}
"""Title records: the member with the text, and its rank (D-LOG-29)."""

_OWNERS: Final = ("ownerAccountUuid", "ownerOrganizationUuid", "accountUuid", "organizationUuid")


def system_event(subtype: Any) -> tuple[str, bool]:
    """Return the event type for a `system` record, and whether its subtype is known."""
    if subtype is None:
        return "system/informational", True
    if type(subtype) is not str or not subtype:
        return "system/unknown", False
    known = SYSTEM.get(subtype)
    return known or f"system/{subtype}", known is not None


def nested_event(kind: str, nested: Any, known: frozenset[str]) -> tuple[str, bool]:
    """Return the event type for an `attachment` or `progress` record by the type inside it."""
    name = nested.get("type") if type(nested) is dict else None
    if type(name) is not str or not name:
        return f"{kind}/unknown", False
    return f"{kind}/{name}", name in known


def without_owner(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the ids of account owners replaced by their SHA-256 (D-LOG-13)."""
    return {
        name: hashlib.sha256(member.encode()).hexdigest()
        if name in _OWNERS and type(member) is str
        else member
        for name, member in value.items()
    }


def write_title(entry: Entry, kind: str, value: Mapping[str, Any]) -> None:
    """Write a title; a summary line may be about another session and is looked at in the end."""
    member, rank = TITLES[kind]
    text = value.get(member)
    if type(text) is not str and text is not None:
        entry.trace.findings.add("odd-shape", record=entry.record.number, pointer=f"/{member}")
    entry.session.title(entry, text if rank < 2 else None, rank=rank, data=value)


def is_workflow_run(value: Mapping[str, Any]) -> bool:
    """Say whether a value is the file of a workflow run."""
    return type(value.get("runId")) is str and type(value.get("taskId")) is str and "type" not in value


def is_workflow_step(value: Mapping[str, Any]) -> bool:
    """Say whether a value is a line of a workflow's journal."""
    return (
        value.get("type") in ("started", "result")
        and type(value.get("key")) is str
        and type(value.get("agentId")) is str
        and "sessionId" not in value
    )


def session_above(path: Path) -> str | None:
    """Return the id of the session in whose folder a workflow's file lies."""
    parts = path.parts[:-1]
    for number in range(len(parts) - 1, 0, -1):
        if parts[number] in ("subagents", "workflows") and parts[number - 1] not in (
            "subagents",
            "workflows",
        ):
            return parts[number - 1] or None
    return None
