"""The state model of tool-invocation over a whole vCon, and what it says about refused operations."""

from __future__ import annotations

from typing import Any, Final, cast

from onrecord.base.findings import Severity
from onrecord.base.namespaces import TOOL_INVOCATION_EXTENSION
from onrecord.record.checks.context import Context, dialog_parties, indices
from onrecord.record.operations import OPERATION, History, read_operations
from onrecord.record.vcon.bodies import has_body

_NAMES_OF_TOOLS: Final = ("tool", "tool_name")
_ROLES_IN_DIALOGS: Final = ("originator", "transferee", "transferor", "transfer_target", "transfer-target")
_ROLES_IN_EVENTS: Final = ("party", "transferee", "transfer_target")


def check_tool_invocation(context: Context) -> History | None:
    """Run the state model and report what it found. Returns the history, None if there are no such events."""
    if TOOL_INVOCATION_EXTENSION not in context.used:
        _check_tools_as_parties(context)
        return None
    events = context.vcon.get("events")
    history = read_operations(
        events if isinstance(events, list) else (),
        extensions=context.listed,
        moments=context.moments("events"),
    )
    for remark in history.remarks:
        pointer = f"/events/{remark.event}"
        context.add(
            remark.code,
            f"{pointer}/{remark.member}" if remark.member else pointer,
            severity=cast("Severity | None", remark.severity),
            data=remark.data,
        )
    _check_refused(context, history)
    _check_tools_as_parties(context)
    return history


def _check_refused(context: Context, history: History) -> None:
    """Report arguments kept for an operation that policy disallowed or that was never performed (TI 6.1.1)."""
    events: Any = context.vcon.get("events")
    for start in history.disallowed:
        event = events[start]
        if has_body(event) or event.get("url") is not None or event.get("attachment") is not None:
            context.add("refused-arguments", f"/events/{start}")
    refused = history.refused | _only_disallowed(context, history)
    if not refused:
        return
    for index, event in context.elements("events"):
        call_id = event.get("call_id")
        if (
            event.get("type") == "tool-call"
            and event.get("input") is not None
            and type(call_id) is str
            and call_id in refused
        ):
            context.add("refused-arguments", f"/events/{index}", severity="warning")


def _only_disallowed(context: Context, history: History) -> frozenset[str]:
    """Return the ids of operations that were performed, and each time although that was disallowed."""
    if not history.disallowed:
        return frozenset()
    disallowed = frozenset(history.disallowed)
    ids: dict[bool, set[Any]] = {True: set(), False: set()}
    for index, event in context.elements("events"):
        operation_id = event.get("operation_id")
        if event.get("type") == OPERATION and type(operation_id) is str:
            ids[index in disallowed].add(operation_id)
    return frozenset(ids[True] - ids[False])


def _check_tools_as_parties(context: Context) -> None:
    """Report parties that are named like a tool and take part in nothing (TI 2.1)."""
    suspects = {
        index: name for index, party in context.elements("parties") if type(name := party.get("name")) is str
    }
    tools = _tools(context) if suspects else frozenset()
    suspects = {index: name for index, name in suspects.items() if name in tools}
    if not suspects:
        return
    acting: set[int] = set()
    for _, dialog in context.elements("dialog"):
        acting.update(dialog_parties(dialog))
        for name in _ROLES_IN_DIALOGS:
            acting.update(indices(dialog.get(name)))
        history = dialog.get("party_history")
        for entry in history if type(history) is list else ():
            if type(entry) is dict:
                acting.update(indices(entry.get("party")))
    for _, event in context.elements("events"):
        for name in _ROLES_IN_EVENTS:
            acting.update(indices(event.get(name)))
    for index in suspects:
        if index not in acting:
            context.add("tool-as-party", f"/parties/{index}")


def _tools(context: Context) -> frozenset[str]:
    """Return the names of all tools that events name."""
    groups, rest = context.grouped("events")
    found: set[Any] = set()
    for name in _NAMES_OF_TOOLS:
        for group in groups:
            found.update(value for value in group.columns.get(name, ()) if type(value) is str)
        found.update(value for _, event in rest if type(value := event.get(name)) is str)
    return frozenset(found)
