"""Event types of the system-events that importers write. Unknown records keep their native type (D-LOG-26).

    >>> COMPACTION_SUMMARY in KNOWN
    True

Source: native-logs.md section 1.4.
"""

from __future__ import annotations

from typing import Final

SESSION_START: Final = "session-start"
"""A session began: ids, versions, settings, what it was forked or resumed from."""

SESSION_END: Final = "session-end"
"""A session ended, and how."""

TOKEN_COUNT: Final = "token-count"  # noqa: S105 - a count of tokens
"""Usage that belongs to no message: `scope` is response, turn or session."""

PERMISSION_CHANGE: Final = "permission-change"
"""The agent was given or refused a right, or its permission mode changed."""

MODEL_CHANGE: Final = "model-change"
"""The session went on with another model."""

WORKING_DIR_CHANGE: Final = "working-dir-change"
"""The session went on in another folder."""

SETTINGS_CHANGE: Final = "settings-change"
"""A setting changed that is neither permission, model nor folder."""

SYSTEM_PROMPT: Final = "system-prompt"
"""Text of the system or the developer role."""

TOOL_DEFINITIONS: Final = "tool-definitions"
"""The tools that the model was offered."""

INJECTED_CONTEXT: Final = "injected-context"
"""Text that the harness put into a user message."""

LOCAL_COMMAND: Final = "local-command"
"""A command of the program itself that the user gave, or its output."""

MEMORY_INPUT: Final = "memory-input"
"""A note that the user gave to the agent's memory."""

META: Final = "meta"
"""A message of the harness to itself."""

TASK_NOTIFICATION: Final = "task-notification"
"""News of a task in the background."""

INTERRUPTED: Final = "interrupted"
"""Somebody stopped the agent."""

COMPACTION: Final = "compaction"
"""The context was shortened here."""

COMPACTION_SUMMARY: Final = "compaction-summary"
"""The text that stands for the shortened context."""

REWIND: Final = "rewind"
"""The session went back to an earlier place."""

TITLE: Final = "title"
"""A title of the session."""

SNAPSHOT: Final = "snapshot"
"""A state of files that the agent kept."""

QUEUE: Final = "queue"
"""A prompt entered or left the queue."""

HOOK: Final = "hook"
"""A hook ran."""

ERROR: Final = "error"
"""Something failed outside a tool call."""

RETRY: Final = "retry"
"""A request was sent again."""

RATE_LIMITS: Final = "rate-limits"
"""Limits of the provider and how much of them is used."""

PATCH: Final = "patch"
"""A change of files that no tool call of the log holds."""

APPROVAL: Final = "approval"
"""A question to a person or a policy, or the answer."""

SCORE: Final = "score"
"""A result of an evaluation."""

LABEL: Final = "label"
"""A name that a person gave to an entry."""

EMPTY_TEXT: Final = "empty-text"
"""A text block with nothing or only white space in it."""

UNREADABLE_RECORD: Final = "unreadable-record"
"""A piece of the log that does not parse (D-LOG-27)."""

KNOWN: Final = frozenset(value for name, value in list(globals().items()) if name.isupper())
"""Every event type of this module."""
