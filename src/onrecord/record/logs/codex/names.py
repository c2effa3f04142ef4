"""Words of Codex that stand in its logs, as tables.

Source: native-logs.md 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ENVELOPES: Final = frozenset(
    [
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "token_usage_record",
        "world_state",
    ]
)
"""Types of enveloped records that are decisive for the format."""

OTHER_ENVELOPES: Final = frozenset(
    [
        "world_state",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "retained_context",
        "realtime_item",
    ]
)
"""Types of enveloped records that are kept as a system-event of that name."""

CALLS: Final[Mapping[str, str]] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
    "web_search_call": "action",
    "image_generation_call": "",
}
"""Items that are calls, and the member that is their input."""

OUTPUTS: Final[Mapping[str, str]] = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "local_shell_call_output": "output",
    "tool_search_output": "tools",
}
"""Items that are results, and the member that is their output."""

ITEMS: Final = frozenset(
    [
        "message",
        "agent_message",
        "reasoning",
        "compaction",
        "context_compaction",
        "ghost_snapshot",
        "configuration_update",
        "additional_tools",
        *CALLS,
        *OUTPUTS,
    ]
)
"""Types of items, which stand bare in the logs of early 2025."""

BEGINS: Final = frozenset(
    [
        "exec_command_begin",
        "patch_apply_begin",
        "mcp_tool_call_begin",
        "web_search_begin",
        "image_generation_begin",
        "dynamic_tool_call_request",
    ]
)
"""Events that say that a call began."""

ENDS: Final[Mapping[str, str]] = {
    "exec_command_end": "exec_command",
    "patch_apply_end": "apply_patch",
    "mcp_tool_call_end": "",
    "web_search_end": "web_search",
    "image_generation_end": "image_generation",
    "view_image_tool_call": "view_image",
    "dynamic_tool_call_response": "",
}
"""Events that say how a call ended, and the tool that it was where the event names none."""

TOOL_ITEMS: Final[Mapping[str, str]] = {
    "CommandExecution": "exec_command",
    "FileChange": "apply_patch",
    "McpToolCall": "",
    "Extension": "",
    "WebSearch": "web_search",
    "ImageGeneration": "image_generation",
    "ImageView": "view_image",
    "DynamicToolCall": "",
}
"""Types of a completed item that say how a call ended, and the tool."""

TALK_ITEMS: Final[Mapping[str, str]] = {
    "UserMessage": "user",
    "AgentMessage": "assistant",
    "Reasoning": "reasoning",
}
"""Types of a completed item that repeat what was said."""

TALK_EVENTS: Final[Mapping[str, str]] = {
    "user_message": "user",
    "agent_message": "assistant",
    "agent_reasoning": "reasoning",
    "agent_reasoning_raw_content": "reasoning",
}
"""Events that repeat what was said."""

INJECTED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<skills_instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<collaboration_mode>",
)
"""Beginnings of texts that the program put into a user message."""

SHELL_COMMAND: Final = "<user_shell_command>"
"""Beginning of a text about a command that the user ran with `!`."""


def key_of(payload: Mapping[str, Any]) -> str | None:
    """Return what pairs a call and what belongs to it: the call id, else the id."""
    for name in ("call_id", "callId", "id"):
        value = payload.get(name)
        if type(value) is str and value:
            return value
        if type(value) is int:
            return str(value)
    return None


def type_of(payload: Mapping[str, Any]) -> Any:
    """Return the type of an item or event; an item with a role is a message."""
    kind = payload.get("type")
    return "message" if kind is None and "role" in payload else kind


def injected_as(text: str, kind: Any = None) -> str | None:
    """Say whether a text of a user message is the program's: "injected-context" or "local-command", or None.

    `kind` is the entry of `content_item_kinds` about the text. `# Context from my IDE setup` is the human's.
    """
    start = text.lstrip()[:64]
    if start.startswith(SHELL_COMMAND):
        return "local-command"
    if start.startswith(INJECTED) or (type(kind) is str and not kind.startswith("user.")):
        return "injected-context"
    return None


def kinds_of(payload: Mapping[str, Any]) -> list[Any]:
    """Return `content_item_kinds` of a message, which says of each part where it comes from."""
    for holder in (payload, payload.get("internal_chat_message_metadata_passthrough")):
        kinds = holder.get("content_item_kinds") if type(holder) is dict else None
        if type(kinds) is list:
            return kinds
    return []
