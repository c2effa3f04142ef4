"""The native members of Claude's records, and which of them have no home in a vCon.

Each table says for every member that is known what kind it is: a Python type for one that is mapped elsewhere,
`EXT` for one without a home, `FLAG` for a mark that is worth a word only when it is set.

Source: native-logs.md 4.1, D-LOG-01, D-LOG-26.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from onrecord.record.logs.findings import FileFindings

EXT: Final = object()
"""Kind of a member that is known and has no home: it goes to `onrecord.rest`."""

FLAG: Final = object()
"""Kind of a mark that is kept when it is true; false says nothing."""

ANY: Final = object()
"""Kind of a member that is mapped whatever it holds."""

MAX_SHAPES: Final = 1000
"""Shapes of objects that are remembered for each table; real logs have some dozens."""

_EXT_ENVELOPE: Final = [
    "requestId",
    "request_id",
    "logicalParentUuid",
    "error",
    "errorDetails",
    "apiErrorStatus",
    "toolUseResult",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "mcpMeta",
    "toolDenialKind",
    "promptId",
    "promptSource",
    "origin",
    "imagePasteIds",
    "thinkingMetadata",
    "todos",
    "effort",
    "attributionSkill",
    "attributionPlugin",
    "attributionAgent",
    "attributionMcpServer",
    "attributionMcpTool",
    "supersedesUuids",
    "isAbortedMidStream",
    "interruptedMessageId",
    "interruptedByShutdown",
    "toolEndsTurn",
    "classifierMetaLines",
    "turnCompanion",
    "costUSD",
    "durationMs",
    "session_id",
    "parent_tool_use_id",
    "tool_use_result",
    "subagent_type",
    "task_description",
]

ENVELOPE: Final[Mapping[str, Any]] = {
    **dict.fromkeys(_EXT_ENVELOPE, EXT),
    **dict.fromkeys(
        [
            "uuid",
            "parentUuid",
            "sessionId",
            "cwd",
            "gitBranch",
            "version",
            "type",
            "agentId",
            "permissionMode",
            "entrypoint",
            "userType",
            "sessionKind",
            "teamName",
            "slug",
            "timestamp",
        ],
        str,
    ),
    "message": dict,
    "isSidechain": bool,
    "isMeta": FLAG,
    "isCompactSummary": FLAG,
    "isVisibleInTranscriptOnly": FLAG,
    "isApiErrorMessage": FLAG,
}
"""Members of `user` and `assistant` records."""

MESSAGE: Final[Mapping[str, Any]] = {
    "id": EXT,
    "type": EXT,
    "role": EXT,
    "model": str,
    "content": ANY,
    "usage": dict,
    **dict.fromkeys(
        ["stop_reason", "stop_sequence", "container", "context_management", "stop_details", "diagnostics"],
        EXT,
    ),
}
"""Members of `message`."""

BLOCKS: Final[Mapping[str, Mapping[str, Any]]] = {
    "text": {"type": str, "text": str, "citations": EXT, "cache_control": EXT},
    "thinking": {"type": str, "thinking": ANY, "signature": str, "cache_control": EXT},
    "redacted_thinking": {"type": str, "data": str},
    "tool_use": {"type": str, "id": str, "name": ANY, "input": ANY, "caller": EXT, "cache_control": EXT},
    "tool_result": {
        "type": str,
        "tool_use_id": str,
        "content": ANY,
        "is_error": bool,
        "cache_control": EXT,
    },
    "image": {"type": str, "source": dict, "cache_control": EXT},
    "document": {
        "type": str,
        "source": dict,
        "title": EXT,
        "context": EXT,
        "citations": EXT,
        "cache_control": EXT,
    },
}
"""Members of content blocks by the type of the block."""


class _Plan(NamedTuple):
    """What to do with the members of objects of one shape."""

    kept: tuple[str, ...]
    marks: tuple[str, ...]
    odd: tuple[str, ...]
    unknown: tuple[str, ...]


class Members:
    """The members that one table knows. What to do with an object is worked out once for each shape that occurs."""

    def __init__(self, kinds: Mapping[str, Any]) -> None:
        self._kinds = kinds
        self._plans: dict[tuple[tuple[str, ...], tuple[type, ...]], _Plan] = {}

    def rest(self, value: Mapping[str, Any], findings: FileFindings, *, record: int) -> dict[str, Any]:
        """Return the members of an object without a home; unknown members and odd kinds are reported."""
        shape = tuple(value), tuple(map(type, value.values()))
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plan(value)
            if len(self._plans) < MAX_SHAPES:
                self._plans[shape] = plan
        rest = {name: value[name] for name in plan.kept}
        for name in plan.marks:
            if value[name] is not False:
                rest[name] = value[name]
        for name in plan.odd:
            findings.add("odd-shape", record=record, pointer=f"/{name}", action="kept in onrecord.rest")
        for name in plan.unknown:
            findings.add("unknown-member", name=name[:64], record=record, action="kept in onrecord.rest")
        return rest

    def _plan(self, value: Mapping[str, Any]) -> _Plan:
        kept: list[str] = []
        marks: list[str] = []
        odd: list[str] = []
        unknown: list[str] = []
        for name, member in value.items():
            kind = self._kinds.get(name)
            if kind is None:
                unknown.append(name)
            if member is None or kind is ANY or kind is type(member):
                continue
            if kind is FLAG:
                marks.append(name)
                continue
            kept.append(name)
            if kind is not None and kind is not EXT:
                odd.append(name)
        return _Plan(tuple(kept), tuple(marks), tuple(odd), tuple(unknown))


def message_rest(
    message: Mapping[str, Any], findings: FileFindings, *, kind: str, record: int
) -> dict[str, Any]:
    """Return the members of a message without a home, except those that say what the record's type `kind` says."""
    rest = IN_MESSAGE.rest(message, findings, record=record)
    for name, usual in (("type", "message"), ("role", kind)):
        if rest.get(name) == usual:
            del rest[name]
    return rest


IN_RECORD: Final = Members(ENVELOPE)
"""Members of `user` and `assistant` records."""

IN_MESSAGE: Final = Members(MESSAGE)
"""Members of messages."""

IN_BLOCK: Final[Mapping[str, Members]] = {kind: Members(kinds) for kind, kinds in BLOCKS.items()}
"""Members of content blocks."""
