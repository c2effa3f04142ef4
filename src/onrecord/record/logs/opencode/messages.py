"""Messages of OpenCode and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from onrecord.record.logs import event_types
from onrecord.record.logs.opencode.context import Context
from onrecord.record.logs.opencode.frames import Frame, parent_of
from onrecord.record.logs.opencode.items import Item
from onrecord.record.logs.opencode.members import MESSAGE, PARTS, STATE, look_over
from onrecord.record.logs.opencode.parts import changes_of, write_part
from onrecord.record.logs.opencode.tools import Outcome
from onrecord.record.logs.opencode.units import Units
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import AGENT, NO_TIME, PARENT, USER, Entry

MESSAGE_EVENT: Final = "message"
"""What a message itself says, where no part of it stands in the session."""

TASK: Final = "task"
"""Name of the tool that starts a sub-agent."""


class MessageWriter:
    """Writes the messages of one session, one after the other."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.first_entries: dict[str, str] = {}
        """The first entry of each message of the session, by the message's id."""
        self.revert: Mapping[str, Any] = {}
        """Where the session was taken back to."""
        self.is_taken_back = False
        """Whether that place was met."""
        self.superseded = 0
        """How many parts were taken back."""
        self._has_prompt = False

    # -- messages

    def write(self, item: Item, parts: list[Item]) -> None:
        """Write a message and its parts."""
        context, session = self.context, self.context.session
        record = Units(context.store).without_secrets(context.store.record(item))
        value = record.value
        look_over(value, MESSAGE, context.trace.findings, record=record.number, where="message")
        is_new = context.is_new("message", item)
        created = context.time(record, value.get("time"), "created")
        frame = Frame(
            record,
            created=context.row_time(item) if created is NO_TIME else created,
            parent=parent_of(value, self.first_entries),
        )
        frame.is_removed = item.id in context.store.removed
        if frame.role == "assistant":
            session.agent.saw_model(frame.model, frame.provider)
            if session.is_child and session.agent.name is None and type(value.get("agent")) is str:
                session.agent.name = value["agent"]
        root = frame.path.get("root")
        if session.root_dir is None and type(root) is str and root not in ("", "/"):
            session.root_dir = root
        self._meet(item.id)
        own = _Own(self, item, frame)
        if is_new:
            _write_prompts(own, value)
        last = None
        for part in parts:
            last = self._write_part(part, frame) or last
        if is_new:
            self._write_message(own, item, frame)
        if frame.has_written:
            context.trace.mapped(record.number, is_conversation=frame.is_conversation)
        entry = own.made or last
        if entry is not None:
            session.saw_working_dir(entry, frame.path.get("cwd"))

    def write_orphan(self, item: Item) -> None:
        """Write a part whose message is missing: nobody knows who spoke."""
        self.context.trace.findings.add(
            "orphan-part", record=item.number, action="kept and flagged as orphan"
        )
        self._meet(item.message)
        self._write_part(item, Frame(None, created=NO_TIME, parent=None), flags=("orphan",))

    def _write_message(self, own: _Own, item: Item, frame: Frame) -> None:
        """Write what a message says about itself and no part has: usage, errors, or all of it."""
        value = own.record.value
        if frame.rest is not None or not frame.has_entry:
            own.entry().event(MESSAGE_EVENT, {"role": value.get("role"), **(frame.rest or {})})
            frame.rest = None
        usage = frame.usage
        findings = self.context.trace.findings
        if usage is not None and not usage.is_empty:
            if not usage.is_consistent:
                findings.add("usage-inconsistent", record=item.number, action="our sum is kept")
            if frame.first_text is not None:
                self.context.session.attach_usage(frame.first_text, usage, value["tokens"])
            else:
                time = self.context.time(own.record, value.get("time"), "completed")
                own.entry().token_count("response", usage, value["tokens"], response_id=item.id, time=time)
        elif usage is not None:
            for name in usage.invalid:
                findings.add("usage-invalid", record=item.number, name=name[:64], action="native value kept")
        if value.get("error") is not None:
            time = self.context.time(own.record, value.get("time"), "completed")
            own.entry().event(event_types.ERROR, value["error"], time=time)

    # -- parts

    def _write_part(self, item: Item, frame: Frame, *, flags: tuple[str, ...] = ()) -> Entry | None:
        context, session = self.context, self.context.session
        record = context.store.record(item)
        part, findings = record.value, context.trace.findings
        kind = part.get("type")
        known = PARTS.get(kind) if type(kind) is str else None
        if known is not None:
            look_over(part, known, findings, record=record.number, where=f"part/{kind}")
            if kind == "tool" and type(part.get("state")) is dict:
                look_over(part["state"], STATE, findings, record=record.number, where="part/tool/state")
        self._meet(item.id)
        if not context.is_new("part", item):
            for number, _ in self._deltas(item):
                context.trace.duplicate(number, "older-version", of="another source")
            return None
        is_partial = self._add_deltas(item, part)
        time, time_from = self._time_of(record, item, frame)
        entry = context.entry(record, id=item.id, parent=frame.parent, time=time, time_from=time_from)
        if session.working_dir is None:
            session.saw_working_dir(entry, frame.path.get("cwd"))
        is_superseded = self.is_taken_back or frame.is_removed or item.id in context.store.removed
        if is_superseded:
            self.superseded += 1
            flags = ("superseded", *flags)
        entry.flags = (*flags, "partial") if is_partial else flags
        outcome = write_part(entry, part, frame, speaker=self._speaker(part, frame), block=item.block)
        frame.has_written = True
        if item.has_entry and not frame.has_entry:
            frame.has_entry = True
            frame.parent = entry.first_id
        if not flags:
            changes_of(context, part, outcome, model=frame.model, record=record.number)
        if outcome is not None and part.get("tool") == TASK:
            self._note_child(part, outcome)
        return entry

    def _time_of(self, record: Record, item: Item, frame: Frame) -> tuple[Any, Literal["message"] | None]:
        """Return the time of a part: its own, its row's, or that of its message (D-LOG-04)."""
        part = record.value
        holder = part.get("time")
        state = part.get("state")
        if part.get("type") == "tool" and type(state) is dict:
            holder = state.get("time")
        name = "created" if part.get("type") == "retry" else "start"
        own = self.context.time(record, holder, name)
        if own is NO_TIME:
            own = self.context.row_time(item)
        if own is not NO_TIME:
            return own, None
        return frame.created, None if frame.created is NO_TIME else "message"

    def _speaker(self, part: Mapping[str, Any], frame: Frame) -> int | None:
        """Say who speaks; to a sub-agent first the agent above, which comes back with the prompts of its calls."""
        if frame.role == "assistant":
            return AGENT
        if frame.role != "user":
            return None
        session = self.context.session
        if not session.is_child or part.get("type") != "text":
            return USER
        is_first, self._has_prompt = not self._has_prompt, True
        prompts = self.context.links.prompts.get(session.agent_session_id, ())
        return PARENT if is_first or part.get("text") in prompts else USER

    def _add_deltas(self, item: Item, part: dict[str, Any]) -> bool:
        """Add to a part what came after it was told whole; say whether there is anything."""
        deltas = self._deltas(item)
        if not deltas:
            return False
        text = part.get("text")
        told = [added for _, added in deltas]
        part["deltas"] = {"text": text, "added": told}
        part["text"] = "".join([text if type(text) is str else "", *(added["delta"] for added in told)])
        for number, _ in deltas:
            self.context.trace.mapped(number, is_conversation=True)
        self.context.trace.findings.count(
            "partial-entry", record=item.number, action="what came so far is kept"
        )
        return True

    def _deltas(self, item: Item) -> list[tuple[int, dict[str, Any]]]:
        return [] if item.id is None else self.context.store.deltas.pop(item.id, [])

    def _note_child(self, part: Mapping[str, Any], outcome: Outcome) -> None:
        """Note the session that a task call started."""
        session, links = self.context.session, self.context.links
        child = outcome.metadata.get("sessionId", outcome.metadata.get("sessionID"))
        if type(child) is not str or not child or child == session.agent_session_id:
            return
        state, call = part.get("state"), part.get("callID")
        given = state.get("input") if type(state) is dict else None
        call_id = call if type(call) is str else None
        if type(given) is dict and type(given.get("prompt")) is str:
            links.prompts.setdefault(child, set()).add(given["prompt"])
        links.calls.setdefault(child, (session.agent_session_id, call_id))
        known = self.context.trace.run.known_session(session.format_id, child)
        if (
            known is not None
            and known.parent_id in (None, session.agent_session_id)
            and not known.parent_call
        ):
            known.child_of(session, call_id=call_id)

    # -- what was taken back

    def _meet(self, id: str | None) -> None:
        """Begin to flag what was taken back: from the message on, or from the part in it."""
        if self.revert and not self.is_taken_back and id is not None:
            self.is_taken_back = id == (self.revert.get("partID") or self.revert.get("messageID"))


class _Own:
    """The entry of a message's own record, made when it is needed."""

    def __init__(self, writer: MessageWriter, item: Item, frame: Frame) -> None:
        self._writer = writer
        self._item = item
        self._frame = frame
        self.record: Record = frame.record or Record(item.number, {}, 0, 0, 0)
        self.made: Entry | None = None

    def entry(self) -> Entry:
        """Return it."""
        if self.made is None:
            frame = self._frame
            self.made = self._writer.context.entry(
                self.record, id=self._item.id, parent=frame.parent, time=frame.created
            )
            if self._writer.is_taken_back or frame.is_removed:
                self.made.flags = ("superseded",)
        return self.made


def _write_prompts(own: _Own, value: Mapping[str, Any]) -> None:
    """Write the system prompt and the tools of a message."""
    system, tools = value.get("system"), value.get("tools")
    for text in system if type(system) is list else [system]:
        if type(text) is str and text:
            own.entry().system_prompt(text, "system")
    if type(tools) is dict and tools:
        names = [name for name, is_on in tools.items() if is_on is not False]
        own.entry().tool_definitions(tools, names)
