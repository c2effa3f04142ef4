"""Records of a Claude log beside the messages: settings, snapshots, queues, hooks, titles, what is not known yet.

Source: native-logs.md 4.1 (Other records), D-LOG-26.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onrecord.record.logs import event_types
from onrecord.record.logs.claude import records
from onrecord.record.logs.claude.messages import Messages
from onrecord.record.logs.claude.pictures import without_copies
from onrecord.record.logs.claude.queue import text_of
from onrecord.record.logs.claude.states import State
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import Entry


class Bookkeeping:
    """Writes the records that are no messages."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._trace = messages.trace
        self.handlers: dict[str, Callable[[Record, dict[str, Any], State], None]] = {
            "system": self._system,
            "attachment": self._attachment,
            "progress": self._progress,
            "queue-operation": self._queue_operation,
            **dict.fromkeys(("file-history-snapshot", "file-history-delta"), self._snapshot),
            **dict.fromkeys(("mode", "permission-mode"), self._permission),
            **dict.fromkeys(records.TITLES, self._title),
            **dict.fromkeys(records.NAMED, self._named),
        }
        """What writes the records of each type."""

    def other(self, record: Record, value: dict[str, Any], state: State) -> None:
        """Write a record of a type that is not known here, or of none."""
        kind = value.get("type")
        if records.is_workflow_run(value):
            name = "workflow/run"
        elif records.is_workflow_step(value):
            name = f"workflow/{kind}"
        else:
            name = kind if type(kind) is str and kind else "unknown"
            self._unknown(record, name)
        self._event(record, value, state, name)

    def export(self, record: Record, own: dict[str, Any], state: State) -> None:
        """Write the object around an export's lines; `own` are its members beside them."""
        entry = self._messages.entry(record, own, state)
        if own or not self._trace.is_mapped(record.number):
            entry.event(event_types.META, own)
            self._messages.wrote(entry, own, state, 0)

    def value(self, record: Record, value: Any, state: State) -> None:
        """Write a value of an export that is no object."""
        self._trace.findings.add("not-an-object", record=record.number, action="kept as system-event")
        entry = self._messages.entry(record, {}, state)
        entry.event("unknown", {"value": value})
        self._messages.wrote(entry, {}, state, 0)

    def _event(
        self, record: Record, value: Mapping[str, Any], state: State, name: str, data: Any = None
    ) -> Entry:
        """Write a record as one system-event that holds all of it."""
        entry = self._messages.entry(record, value, state)
        changes = state.changes(entry, value, {})
        entry.event(name, without_copies(entry, value if data is None else data, None))
        self._messages.wrote(entry, value, state, 0)
        state.write(entry, changes)
        return entry

    def _unknown(self, record: Record, name: str) -> None:
        self._trace.findings.add(
            "unknown-record-type", name=name[:64], record=record.number, action="kept as system-event"
        )

    def _system(self, record: Record, value: dict[str, Any], state: State) -> None:
        subtype = value.get("subtype")
        name, is_known = records.system_event(subtype)
        if not is_known:
            self._unknown(record, name)
        self._event(record, value, state, name)
        if subtype == "compact_boundary":
            state.replays.compacted()

    def _attachment(self, record: Record, value: dict[str, Any], state: State) -> None:
        attachment = value.get("attachment")
        name, is_known = records.nested_event("attachment", attachment, records.ATTACHMENTS)
        if not is_known:
            self._unknown(record, name)
        if type(attachment) is dict and name == "attachment/queued_command":
            content = attachment.get("prompt")
            if type(content) in (str, list) and content:
                self._queued(record, value, attachment, content, state)
                return
        self._event(record, value, state, name)

    def _queued(
        self,
        record: Record,
        value: dict[str, Any],
        attachment: dict[str, Any],
        content: Any,
        state: State,
    ) -> None:
        """Write a prompt that was typed while the agent was busy, unless its user record is there already."""
        messages, source = self._messages, attachment.get("source_uuid")
        if type(source) is str and source and state.session.node_of(source) is not None:
            self._trace.duplicate(record, "repeated-input", of="the user record that it names")
            self._trace.findings.add("queued-prompt-repeated", record=record.number, action="skipped")
            messages.alias(value, source)
            return
        entry = messages.entry(record, value, state)
        rest = {"attachment": {name: member for name, member in attachment.items() if name != "prompt"}}
        changes = state.changes(entry, value, rest)
        is_said = messages.queued(entry, content, rest)
        messages.wrote(entry, value, state, 0)
        state.write(entry, changes)
        if is_said and entry.first_id is not None:
            state.queue.queued(text_of(content), entry.first_id, source)

    def _progress(self, record: Record, value: dict[str, Any], state: State) -> None:
        data = value.get("data")
        name, is_known = records.nested_event("progress", data, records.PROGRESS)
        if not is_known:
            self._unknown(record, name)
        inner = data.get("message") if type(data) is dict and name == "progress/agent_progress" else None
        if type(data) is not dict or type(inner) is not dict or type(inner.get("message")) is not dict:
            self._event(record, value, state, name)
            return
        agent_id = data.get("agentId")
        if type(agent_id) is not str or inner.get("type") not in ("user", "assistant"):
            self._event(record, value, state, name)
            return
        quoted = {**inner, "sessionId": state.root_id, "agentId": agent_id, "isSidechain": True}
        if self._messages.embedded(record, quoted):
            shown = {**value, "data": {member: data[member] for member in data if member != "message"}}
            self._event(record, value, state, name, shown)
        else:
            self._trace.duplicate(record, "twin", of="the sub-agent's own message")
            parent = value.get("parentUuid")
            self._messages.alias(value, parent if type(parent) is str else None)

    def _queue_operation(self, record: Record, value: dict[str, Any], state: State) -> None:
        entry = self._event(record, value, state, event_types.QUEUE)
        content = value.get("content")
        if value.get("operation") == "remove" and isinstance(content, str | list):
            entry.record = Record(record.number, {}, record.line, record.offset, record.size)
            for late, prompt in state.queue.removed(entry, content):
                self._messages.queued(late, prompt)

    def _snapshot(self, record: Record, value: dict[str, Any], state: State) -> None:
        # messageId names a user record, and is of another id space than uuid (B-10).
        self._event(record, value, state, event_types.SNAPSHOT)

    def _permission(self, record: Record, value: dict[str, Any], state: State) -> None:
        state.permission(value.get("permissionMode"))
        self._event(record, value, state, event_types.PERMISSION_CHANGE)

    def _title(self, record: Record, value: dict[str, Any], state: State) -> None:
        entry = self._messages.entry(record, value, state)
        records.write_title(entry, value["type"], value)
        self._messages.wrote(entry, value, state, 0)
        leaf, text = value.get("leafUuid"), value.get("summary")
        if type(leaf) is str and type(text) is str and text.strip():
            self._messages.summary(state, leaf, text)

    def _named(self, record: Record, value: dict[str, Any], state: State) -> None:
        data = records.without_owner(value) if value["type"] == "bridge-session" else None
        self._event(record, value, state, value["type"], data)
