"""Which members the records of OpenCode have, and of which kind; what else comes is kept and named (D-LOG-26, R-10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.findings import FileFindings

Kinds = tuple[type, ...]

_TEXT: Final = (str,)
_OBJECT: Final = (dict,)
_LIST: Final = (list,)
_FLAG: Final = (bool,)
_NUMBER: Final = (int, float)
_ANY: Final = (object,)
_TIME: Final = (int, float, str)

SESSION: Final[Mapping[str, Kinds]] = {
    "id": _TEXT,
    "parentID": _TEXT,
    "projectID": _TEXT,
    "workspaceID": _TEXT,
    "slug": _TEXT,
    "directory": _TEXT,
    "path": _TEXT,
    "title": _TEXT,
    "version": _TEXT,
    "time": _OBJECT,
    "summary": _OBJECT,
    "permission": (list, dict),
    "model": _OBJECT,
    "agent": _TEXT,
    "revert": _OBJECT,
    "share": _OBJECT,
    "cost": _NUMBER,
    "tokens": _OBJECT,
    "metadata": _OBJECT,
    "event": _OBJECT,
}
"""Members of a session, and what the event says that told it."""

MESSAGE: Final[Mapping[str, Kinds]] = {
    "id": _TEXT,
    "sessionID": _TEXT,
    "role": _TEXT,
    "parentID": _TEXT,
    "time": _OBJECT,
    "agent": _TEXT,
    "mode": _TEXT,
    "model": _OBJECT,
    "modelID": _TEXT,
    "providerID": _TEXT,
    "variant": _TEXT,
    "summary": (dict, bool),
    "system": (str, list),
    "tools": _OBJECT,
    "path": _OBJECT,
    "cost": _NUMBER,
    "tokens": _OBJECT,
    "finish": _TEXT,
    "error": _OBJECT,
    "format": _OBJECT,
    "structured": _ANY,
    "metadata": _OBJECT,
    "event": _OBJECT,
    "time_created": _TIME,
    "time_updated": _TIME,
}
"""Members of a message of either role, and the columns of its row."""

_PART: Final[Mapping[str, Kinds]] = {
    "id": _TEXT,
    "sessionID": _TEXT,
    "messageID": _TEXT,
    "type": _TEXT,
    "metadata": _OBJECT,
    "event": _OBJECT,
    "time_created": _TIME,
    "time_updated": _TIME,
}

_OWN: Final[Mapping[str, Mapping[str, Kinds]]] = {
    "text": {"text": _TEXT, "time": _OBJECT, "synthetic": _FLAG, "ignored": _FLAG},
    "reasoning": {"text": _TEXT, "time": _OBJECT},
    "tool": {"callID": _TEXT, "tool": _TEXT, "state": _OBJECT},
    "file": {"mime": _TEXT, "filename": _TEXT, "url": _TEXT, "source": _ANY},
    "patch": {"hash": _TEXT, "files": _LIST},
    "snapshot": {"snapshot": _TEXT},
    "step-start": {"snapshot": _ANY},
    "step-finish": {"reason": _TEXT, "snapshot": _ANY, "tokens": _OBJECT, "cost": _NUMBER},
    "agent": {"name": _TEXT, "source": _OBJECT},
    "subtask": {
        "prompt": _TEXT,
        "description": _TEXT,
        "agent": _TEXT,
        "model": _OBJECT,
        "command": _TEXT,
    },
    "retry": {"attempt": _NUMBER, "error": _OBJECT, "time": _OBJECT},
    "compaction": {"auto": _FLAG, "overflow": _FLAG, "tail_start_id": _TEXT},
}

PARTS: Final[Mapping[str, Mapping[str, Kinds]]] = {name: {**_PART, **own} for name, own in _OWN.items()}
"""Members of each type of part, and the columns of its row."""

STATE: Final[Mapping[str, Kinds]] = {
    "status": _TEXT,
    "input": _ANY,
    "raw": _TEXT,
    "output": _ANY,
    "error": _ANY,
    "title": _TEXT,
    "metadata": _OBJECT,
    "time": _OBJECT,
    "attachments": _LIST,
}
"""Members of a tool part's `state`."""

EVENTS: Final = frozenset(
    (
        "command.executed",
        "file.edited",
        "file.watcher.updated",
        "ide.installed",
        "installation.update-available",
        "installation.updated",
        "lsp.client.diagnostics",
        "lsp.updated",
        "mcp.tools.changed",
        "message.part.delta",
        "message.part.removed",
        "message.part.updated",
        "message.removed",
        "message.updated",
        "permission.asked",
        "permission.replied",
        "permission.updated",
        "project.updated",
        "pty.created",
        "pty.deleted",
        "pty.exited",
        "pty.updated",
        "question.asked",
        "question.rejected",
        "question.replied",
        "server.connected",
        "server.heartbeat",
        "server.instance.disposed",
        "session.compacted",
        "session.created",
        "session.deleted",
        "session.diff",
        "session.error",
        "session.idle",
        "session.status",
        "session.updated",
        "todo.updated",
        "tui.command.execute",
        "tui.prompt.append",
        "tui.toast.show",
        "vcs.branch.updated",
    )
)
"""Types of the server's events."""


def look_over(
    value: Mapping[str, Any],
    known: Mapping[str, Kinds],
    findings: FileFindings,
    *,
    record: int,
    where: str,
) -> None:
    """Report members that are not known, each name once, and a record with members of another kind.

    Null is normal everywhere.
    """
    is_odd = False
    for name, member in value.items():
        kinds = known.get(name)
        if kinds is None:
            findings.add(
                "unknown-member",
                record=record,
                name=f"{where}/{name[:64]}",
                action="kept in onrecord.rest",
            )
        elif member is not None and not isinstance(member, kinds):
            is_odd = True
    if is_odd:
        findings.add(
            "odd-shape",
            record=record,
            message=f"a member of {where} has another kind than usual",
            action="kept in onrecord.rest",
        )
