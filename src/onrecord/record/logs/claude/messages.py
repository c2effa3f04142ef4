"""Messages of Claude Code's session files: what users, agents and sub-agents said, called and got.

Source: native-logs.md 4.1 (Assistant, User, Graph).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.claude import graph
from onrecord.record.logs.claude.blocks import Blocks
from onrecord.record.logs.claude.calls import Calls
from onrecord.record.logs.claude.members import IN_RECORD, message_rest
from onrecord.record.logs.claude.pictures import without_copies
from onrecord.record.logs.claude.queue import text_of
from onrecord.record.logs.claude.responses import Responses
from onrecord.record.logs.claude.states import State, States
from onrecord.record.logs.claude.subagents import Links
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import NO_TIME, Entry
from onrecord.record.logs.trace import Trace

SYNTHETIC: Final = "<synthetic>"
"""Model of messages that the program makes itself."""

_WITH_TIME: Final = frozenset(["user", "assistant", "system", "attachment", "progress"])


class Messages:
    """Writes the records of one source that are messages, and begins the entries of all."""

    def __init__(self, trace: Trace, format: str) -> None:
        self.trace = trace
        links = Links(trace, format)
        calls = Calls(trace, links)
        self._links = links
        self._calls = calls
        self.blocks = Blocks(trace, calls)
        self._responses = Responses(trace, format)
        self.identities = graph.Identities(trace.run.seen(format), trace.file_number)
        self.states = States(trace, format, links, calls)
        self._aliases: dict[int, str] = {}
        self._rewritten: set[int] = set()
        self._summaries: dict[str, str] = {}
        self._embedded: dict[int, set[int]] = trace.run.memory(format).setdefault("embedded", {})

    def message(self, record: Record, value: dict[str, Any], state: State, mark: int) -> None:
        """Write a `user` or `assistant` record, unless it repeats something that is there."""
        message = value.get("message")
        is_user = value["type"] == "user"
        if type(message) is dict:
            number = state.replays.replayed(mark)
            if number is not None:
                self.trace.duplicate(
                    record, "replayed-entry", of="the same message before compaction", report=True
                )
                self.alias(value, self._entry_id(number))
                if type(value.get("uuid")) is str:
                    self._rewritten.add(hash(value["uuid"]))
                return
            if self._embedded and self._is_embedded(state, record, message):
                return
            if is_user:
                earlier = state.queue.repeated(value.get("uuid"), text_of(message.get("content")))
                if earlier is not None:
                    self.trace.duplicate(record, "repeated-input", of="the queued prompt")
                    self.trace.findings.add("queued-prompt-repeated", record=record.number, action="skipped")
                    self.alias(value, earlier)
                    return
        if not is_user:
            self.answered(state)
        entry = self.entry(record, value, state)
        rest = IN_RECORD.rest(value, self.trace.findings, record=record.number)
        changes = state.changes(entry, value, rest)
        kind = graph.OTHER
        if type(message) is not dict:
            if "message" not in value:
                self.trace.findings.add(
                    "odd-shape", record=record.number, pointer="/message", action="kept as system-event"
                )
            entry.event(value["type"], value)
        else:
            own = message_rest(message, self.trace.findings, kind=value["type"], record=record.number)
            if own:
                rest["message"] = own
            if not is_user:
                kind = self._assistant(entry, value, message, rest)
            elif self._user(entry, value, message, state, rest):
                kind = graph.PROMPT
            else:
                kind = graph.RESULT
        number = self.wrote(entry, value, state, kind)
        if number is not None and type(message) is dict:
            state.replays.add(mark, number)
        state.write(entry, changes)
        self._supersede(state, value)

    def embedded(self, record: Record, value: dict[str, Any]) -> bool:
        """Write a sub-agent's message that its parent's log quotes; say whether it is new."""
        uuid = value.get("uuid")
        state = self.states.of_child(value["sessionId"], value)
        told = state.session.files
        if any(number != self.trace.file_number for number in told):
            return False
        mark = graph.mark_of(value)
        if type(uuid) is str and self.identities.compare(uuid, mark) != graph.NEW:
            return False
        message = value["message"]
        self._embedded.setdefault(state.session.index, set()).add(_content_mark(message))
        state.is_embedded = True
        self.message(record, value, state, mark)
        return True

    def _user(
        self, entry: Entry, value: dict[str, Any], message: dict[str, Any], state: State, rest: dict[str, Any]
    ) -> bool:
        """Write a user message; say whether any of it is a Dialog."""
        content = message.get("content")
        kind = None
        if value.get("isMeta") is True:
            kind = event_types.META
        elif value.get("isCompactSummary") is True or value.get("isVisibleInTranscriptOnly") is True:
            kind = event_types.COMPACTION_SUMMARY
        if type(content) is str:
            content = [content]
        if type(content) is not list or not content:
            self.blocks.empty(entry, content, rest)
            return False
        is_said = False
        details = self.blocks.details(entry, content, value, "toolUseResult")
        rest = without_copies(entry, rest, content)
        for index, block in enumerate(content):
            text = block
            block_rest = rest
            if type(block) is dict:
                block_type = block.get("type")
                if block_type == "tool_result":
                    block_rest = self._overflowing(state, block, rest)
                    self.blocks.result(entry, block, index, block_rest, details, value.get("toolDenialKind"))
                    rest, details = {}, None
                    continue
                text = block.get("text") if block_type == "text" else None
                if block_type in ("image", "document") and self.blocks.medium(entry, block, index, rest):
                    rest = {}
                    continue
                if type(text) is str and len(block) > 2:
                    own = {name: member for name, member in block.items() if name not in ("type", "text")}
                    block_rest = {**rest, "block": own}
            if type(text) is not str:
                self.blocks.unknown(entry, block, index, rest)
            elif kind is not None:
                entry.event(kind, {"text": text}, block=index, rest=block_rest)
            else:
                self.states.prompted(state, text)
                is_said |= self.blocks.human(entry, text, index, block_rest)
            rest = {}
        return is_said

    def _overflowing(self, state: State, block: Mapping[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
        """Return `rest` with the text of a result that is named in it, if its file is there."""
        output = block.get("content")
        if type(output) is list and output and type(output[0]) is dict:
            output = output[0].get("text")
        if type(output) is not str or "tool-results/" not in output[:2000]:
            return rest
        text = self._links.overflow(state.root_id, block.get("tool_use_id"))
        return rest if text is None else {**rest, "overflow": text}

    def _assistant(
        self, entry: Entry, value: dict[str, Any], message: dict[str, Any], rest: dict[str, Any]
    ) -> int:
        """Write a message of the agent; return its kind in the tree."""
        model, usage = message.get("model"), message.get("usage")
        if value.get("isApiErrorMessage") is True or model == SYNTHETIC:
            if usage is not None:
                rest["message"] = {**rest.get("message", {}), "usage": usage}
            is_error = value.get("isApiErrorMessage") is True or value.get("error") is not None
            kind = event_types.ERROR if is_error else event_types.META
            self.blocks.synthetic(entry, message.get("content"), kind, rest)
            return graph.OTHER
        if type(model) is str and model:
            models = entry.session.agent.models
            models.setdefault(model)
            if len(models) > 1:
                # Calls and reasoning have no member for the model, which is not that of the session.
                rest["message"] = {**rest.get("message", {}), "model": model}
        text = self.blocks.assistant(entry, message.get("content"), model, rest)
        request = value.get("requestId")
        if type(usage) is dict:
            self._responses.line(
                entry,
                id=message.get("id"),
                request=request,
                native=usage,
                cost=value.get("costUSD"),
                text=text,
            )
        elif text is not None:
            self._responses.belongs(entry.session, message.get("id"), request, text)
        return graph.ASSISTANT

    # -- entries

    def entry(self, record: Record, value: Mapping[str, Any], state: State) -> Entry:
        """Begin the entry of a record, and the session if it is its first."""
        session = state.session
        time: Any = value.get("timestamp", NO_TIME)
        kind = value.get("type")
        if time is NO_TIME and type(kind) is str and kind in _WITH_TIME:
            time = None
        parent = value.get("parentUuid")
        state.foreign_parent = state.replaced_parent = None
        if type(parent) is str and parent:
            original = self._aliases.get(hash(parent))
            if original is not None:
                state.replaced_parent, parent = parent, original
            if session.node_of(parent) is None and self.identities.is_known(parent):
                state.foreign_parent, parent = parent, None
        entry = session.entry(record, id=value.get("uuid"), parent=parent, time=time)
        if not state.has_begun:
            self.states.begin(state, entry)
        return entry

    def wrote(self, entry: Entry, value: Mapping[str, Any], state: State, kind: int) -> int | None:
        """Note an entry whose objects are written; return the first of them."""
        first = entry.first_id
        node = None if first is None else state.session.node_of(first)
        if first is None or node is None:
            return None
        number = state.session.tree.first_object(node)
        if state.foreign_parent is not None and number is not None:
            self.trace.run.spool.late(number, None, {"parent": state.foreign_parent})
        if state.replaced_parent is not None and number is not None:
            self.trace.run.spool.late(number, None, {"rest": {"parentUuid": state.replaced_parent}})
        if kind:
            state.branches.add(node, kind)
        if state.replaced_parent is not None and hash(state.replaced_parent) in self._rewritten:
            state.branches.joined(node)
        uuid = value.get("uuid")
        if type(uuid) is str:
            state.last_uuid = uuid
            if self._summaries and uuid in self._summaries:
                state.session.titles[2] = self.trace.shown(self._summaries.pop(uuid))
        return number

    def is_repeated(self, record: Record, uuid: str, mark: int) -> bool:
        """Say whether an entry of this id was seen in the run; then the record is accounted (R-16, R-17)."""
        found = self.identities.compare(uuid, mark)
        if found == graph.NEW:
            return False
        if found == graph.SAME:
            self.trace.duplicate(record, "duplicate-entry", of="the entry of the same id", report=True)
        else:
            self.trace.duplicate(record, "duplicate-entry")
            self.trace.findings.add(
                "duplicate-entry-differs", record=record.number, action="the oldest one is kept"
            )
        return True

    def alias(self, value: Mapping[str, Any], target: str | None) -> None:
        """Let the children of a skipped record hang below what it repeats."""
        uuid = value.get("uuid")
        if type(uuid) is str and target is not None and target != uuid:
            self._aliases[hash(uuid)] = self._aliases.get(hash(target), target)
            if hash(target) in self._rewritten:
                self._rewritten.add(hash(uuid))

    def _supersede(self, state: State, value: Mapping[str, Any]) -> None:
        named = value.get("supersedesUuids")
        for uuid in named if type(named) is list else ():
            node = state.session.node_of(uuid) if type(uuid) is str else None
            if node is not None and state.session.flag_entry(node, "superseded"):
                self.trace.findings.count("superseded", action="kept and flagged")

    def summary(self, state: State, leaf: str, text: str) -> None:
        """Note a summary line: it is the title of the session that its leaf belongs to, which may be another one."""
        if state.session.node_of(leaf) is not None:
            state.session.titles[2] = self.trace.shown(text)
        else:
            self._summaries[leaf] = text

    def answered(self, state: State) -> None:
        """Write the queued prompts that nothing else tells, before the agent's answer."""
        for entry, content in state.queue.answered():
            self.queued(entry, content)

    def queued(self, entry: Entry, content: Any, rest: dict[str, Any] | None = None) -> bool:
        """Write a prompt that was typed while the agent was busy; say whether any of it is a Dialog."""
        is_said = False
        rest = rest or {}
        for index, block in enumerate(content if type(content) is list else [content]):
            text = block
            if type(block) is dict:
                kind = block.get("type")
                text = block.get("text") if kind == "text" else None
                if kind in ("image", "document") and self.blocks.medium(entry, block, index, rest):
                    rest = {}
                    continue
            if type(text) is str:
                is_said |= self.blocks.human(entry, text, index, rest, flags=("queued",))
            else:
                self.blocks.unknown(entry, block, index, rest)
            rest = {}
        return is_said

    def finish(self) -> None:
        """Write what is still open: queued prompts, usage, edits; flag the branches that were left."""
        for state in self.states.all():
            self.answered(state)
        self._responses.finish()
        self._calls.finish()
        for state in self.states.all():
            count = state.branches.supersede()
            if count:
                self.trace.findings.count("superseded", count, action="kept and flagged")

    def _is_embedded(self, state: State, record: Record, message: dict[str, Any]) -> bool:
        """Say whether the log of the parent has quoted this message of a sub-agent already."""
        quoted = self._embedded.get(state.session.index)
        if quoted is None or state.is_embedded or _content_mark(message) not in quoted:
            return False
        self.trace.duplicate(record, "twin", of="the message that the log above quotes")
        return True

    def _entry_id(self, number: int) -> str | None:
        """Return the id of the entry that an object belongs to."""
        found = orjson.loads(b"{" + self.trace.run.spool.read(number).head + b"}").get("entry_id")
        return found if type(found) is str else None


def _content_mark(message: Mapping[str, Any]) -> int:
    """Return a number that is equal for messages of one id with the same content."""
    return hash((repr(message.get("id")), orjson.dumps(message.get("content"))))
