"""Events: which table each one follows, its sessions, and what tool-invocation says about single parameters."""

from __future__ import annotations

from typing import Any

from onrecord.base.namespaces import AI_AGENT_EXTENSION, POLICY_DECISION, TOOL_INVOCATION_EXTENSION
from onrecord.record.checks.content import check_content
from onrecord.record.checks.context import Context, indices
from onrecord.record.checks.engine import Engine
from onrecord.record.checks.event_tables import CONTENT_LEVELS, EVENT, MERGED_COLUMN
from onrecord.record.checks.proofs import Proofs
from onrecord.record.checks.targets import decision_column, is_other_operation, server_faults
from onrecord.record.checks.values import type_name
from onrecord.record.operations import OPERATION
from onrecord.record.vcon.event_types import AMBIGUOUS, MERGED, kind_of, own_session_name


class EventChecks:
    """Checks the events of one vCon."""

    def __init__(self, context: Context, engine: Engine) -> None:
        self._context = context
        self._engine = engine

    def run(self) -> None:
        """Check every event. Unknown types are reported and otherwise left alone (record.md D-14)."""
        extensions = frozenset(self._context.extensions)
        for index, event in Proofs(self._context, self._engine).unproven_events():
            pointer = f"/events/{index}"
            kind = kind_of(event, extensions)
            if kind is None:
                self._untyped(event, pointer)
                continue
            self._sessions(event, pointer, kind)
            if kind == TOOL_INVOCATION_EXTENSION:
                self._tool_invocation(event, pointer)
            elif kind == AI_AGENT_EXTENSION:
                self._ai_agent(event, pointer)
            elif kind == MERGED:
                self._context.add("tool-result-merged", pointer)
                self._tool_invocation(event, pointer)
                self._ai_agent(event, pointer, column=MERGED_COLUMN)
            elif kind == AMBIGUOUS:
                self._context.add("tool-result-ambiguous", pointer)
                self._engine.values_only(EVENT.name, event, pointer)
            else:
                self._engine.run(EVENT.name, f"core {event['type']}", event, pointer)

    def _untyped(self, event: dict[str, Any], pointer: str) -> None:
        name = event.get("type")
        if name is None:
            self._context.add("required-missing", pointer, data={"parameter": "type"})
        elif type(name) is str:
            self._context.add("event-type-unknown", f"{pointer}/type")
        else:
            data = {"expected": "String", "found": type_name(name)}
            self._context.add("type-mismatch", f"{pointer}/type", data=data)

    def _sessions(self, event: dict[str, Any], pointer: str, kind: str) -> None:
        one, many = event.get("session"), event.get("sessions")
        if one is None and many is not None and kind != AI_AGENT_EXTENSION:
            return
        if one is None and many is None:
            self._context.add("event-session-missing", pointer)
        elif one is not None and many is not None and set(indices(one)) != set(indices(many)):
            self._context.add("event-session-conflict", pointer)
        if kind in (MERGED, AMBIGUOUS):
            return
        own = own_session_name(kind)
        other = "sessions" if own == "session" else "session"
        if event.get(own) is None and event.get(other) is not None:
            self._context.add("event-session-name", f"{pointer}/{other}")

    def _ai_agent(self, event: dict[str, Any], pointer: str, *, column: str | None = None) -> None:
        self._context.used.add(AI_AGENT_EXTENSION)
        variant = f"{AI_AGENT_EXTENSION} {column or event['type']}"
        view = self._engine.run(EVENT.name, variant, event, pointer)
        if event["type"] == "tool-result":
            status, is_error = view.get("status"), view.get("is_error")
            if (status == "success" and is_error is True) or (status == "error" and is_error is False):
                self._context.add("status-conflict", pointer)
        elif event["type"] == "system-event" and view.get("event_type") == "recording-policy":
            self._context.add("recording-selective", pointer)

    def _tool_invocation(self, event: dict[str, Any], pointer: str) -> None:
        self._context.used.add(TOOL_INVOCATION_EXTENSION)
        name = event["type"]
        variant = self._decision_variant(event, pointer) if name == POLICY_DECISION else name
        view = self._engine.run(EVENT.name, f"{TOOL_INVOCATION_EXTENSION} {variant}", event, pointer)
        if "dialog" in view:
            self._context.add("event-dialog-member", f"{pointer}/dialog")
        if name != POLICY_DECISION:
            check_content(
                self._context,
                view,
                pointer,
                expected=CONTENT_LEVELS[name] == "S",
                json_strings=False,
            )
        if name == OPERATION or (name == POLICY_DECISION and not is_other_operation(event)):
            self._server(view.get("server"), f"{pointer}/server")

    def _decision_variant(self, event: dict[str, Any], pointer: str) -> str:
        """Return the column of a decision. What another operation's parameters say is not known here (D-43)."""
        if is_other_operation(event):
            self._context.add("operation-unknown", f"{pointer}/operation")
        return decision_column(event)

    def _server(self, server: Any, pointer: str) -> None:
        if isinstance(server, str):
            for code in server_faults(server, self._context.extensions):
                self._context.add(code, pointer)
