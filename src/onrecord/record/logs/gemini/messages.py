"""Messages of Gemini CLI as objects: texts, reasoning, calls and results, usage (native-logs.md 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.gemini.calls import Call
from onrecord.record.logs.gemini.edits import Edits
from onrecord.record.logs.gemini.links import Copies
from onrecord.record.logs.gemini.message import Message
from onrecord.record.logs.gemini.outcomes import has_failed, origin
from onrecord.record.logs.gemini.parts import CALL, FILE, INLINE, ODD, RESULT, TEXT, THOUGHT, Part, parts_of
from onrecord.record.logs.gemini.pictures import in_result
from onrecord.record.logs.gemini.replay import Replay
from onrecord.record.logs.gemini.writer import Writer, others
from onrecord.record.logs.media import attach, medium
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.reading.values import arguments_of
from onrecord.record.logs.sessions import AGENT, NO_TIME, PARENT, USER, Entry, NativeSession
from onrecord.record.logs.usage import Usage
from onrecord.record.logs.usage import gemini as read_usage

SESSION_CONTEXT: Final = "<session_context>"
"""How the text begins that the program itself puts in front of the conversation."""

_STATUS: Final = {"success": "success", "error": "error", "cancelled": "error", "completed": "completed"}
_CALL_MEMBERS: Final = frozenset(["id", "name", "args", "result", "status", "timestamp", "resultDisplay"])


class Messages:
    """Writes the messages of one session in their order."""

    def __init__(
        self,
        session: NativeSession,
        replay: Replay,
        *,
        known: Copies,
        spawned: Callable[[str, str], None] | None = None,
    ) -> None:
        self.session = session
        self.trace = session.trace
        self._replay = replay
        self._get = replay.shelf.get
        self._known = known
        self._is_again = False
        self._spawned = spawned
        self._by = PARENT if session.is_child else USER
        self.edits = Edits(session)

    def write(self, message: Message, *, is_again: bool = False) -> None:
        """Write one message; every message becomes at least one object or is a twin of a result.

        With `is_again` an earlier file has told it in other words: only what is new in it is written.
        """
        self._is_again = is_again
        value = self._replay.shelf.get_merged(message.versions)
        entry = self.session.entry(
            Record(message.record, {}, 0, 0, 0, list(message.numbers)),
            id=message.id,
            time=value.get("timestamp", NO_TIME),
        )
        if message.is_superseded:
            entry.flags = ("superseded",)
        if message.kind not in ("user", "gemini"):
            self._other(entry, message, value)
            return
        writer = Writer(entry, value, message)
        if message.kind == "gemini":
            self._answer(writer, message, value)
        else:
            self._content(writer, parts_of(value.get("content")), by=self._by, model=None)
        if writer.is_empty:
            self._frame(writer, message, value)
        elif not writer.has_own:
            self.trace.duplicate(message.record, "older-version", of=f"record {writer.elsewhere}")

    def _other(self, entry: Entry, message: Message, value: dict[str, Any]) -> None:
        kind = message.kind
        if kind not in ("info", "warning", "error"):
            name = kind[:64] if isinstance(kind, str) and kind else "none"
            self.trace.findings.add(
                "unknown-record-type", record=message.record, name=name, action="kept as system-event"
            )
        entry.event(kind, value)

    def _is_told(self, writer: Writer, kind: str, text: str) -> bool:
        return self._known.is_told(writer.message, kind, text) and self._is_again

    def _frame(self, writer: Writer, message: Message, value: dict[str, Any]) -> None:
        """Give a message without an object of its own a fate."""
        if self._is_again:
            self.trace.duplicate(message.record, "older-version", of="the message in another file")
            return
        if writer.twin is not None and not writer.rest:
            self.trace.duplicate(message.record, "twin", of=f"the result of call {writer.twin[:64]}")
            return
        data = {"type": message.kind} | ({"content": value["content"]} if "content" in value else {})
        writer.event(
            "message", data if writer.twin is None else {"type": message.kind, "result_of": writer.twin}
        )

    # -- answers

    def _answer(self, writer: Writer, message: Message, value: dict[str, Any]) -> None:
        parts = list(parts_of(value.get("content")))
        model = value.get("model")
        self.session.agent.saw_model(model)
        has_text = any(part.kind == TEXT and part.text.strip() for part in parts)
        if model is not None and not (isinstance(model, str) and model):
            writer.odd("model", model)
        elif not has_text and model is not None:
            writer.rest["model"] = model
        tokens = value.get("tokens")
        usage = read_usage(tokens) if isinstance(tokens, dict) else None
        if tokens is not None and usage is None:
            writer.odd("tokens", tokens)
        elif usage is not None and usage.is_empty and tokens:
            writer.rest["tokens"] = tokens
            if usage.invalid:
                self.trace.findings.count("usage-invalid", action="kept in onrecord.rest")
        calls = value.get("toolCalls")
        if calls is not None and not isinstance(calls, list):
            # In front of the first object, so that there is one that can hold it.
            writer.odd("toolCalls", calls)
            calls = None
        thoughts = self._thoughts(writer, value.get("thoughts"))
        text = self._content(writer, parts, by=AGENT, model=model, has_thoughts=thoughts)
        self._calls(writer, message, calls, model)
        if usage is not None and not usage.is_empty:
            self._usage(writer, usage, tokens, text, message.id)

    def _usage(
        self, writer: Writer, usage: Usage, native: Any, text: int | None, response_id: str | None
    ) -> None:
        if not usage.is_consistent:
            self.trace.findings.count("usage-inconsistent", action="our sum stays; native value kept")
        if self._is_told(writer, "usage", ""):
            return
        if text is not None:
            self.session.attach_usage(text, usage, native)
        else:
            writer.entry.token_count("response", usage, native, response_id=response_id, **writer.next())

    def _thoughts(self, writer: Writer, thoughts: Any) -> bool:
        if thoughts is None:
            return False
        if not isinstance(thoughts, list):
            writer.odd("thoughts", thoughts)
            return False
        for native in thoughts:
            thought = {"description": native} if isinstance(native, str) else native
            if not isinstance(thought, dict):
                writer.odd_event("block/thought", thought)
                continue
            rest = dict(thought)
            rest.pop("timestamp", None)
            name = next(
                (name for name in ("description", "summary") if isinstance(rest.get(name), str)), None
            )
            content = rest.pop(name) if name is not None else ""
            subject = rest.pop("subject") if isinstance(rest.get("subject"), str) else None
            if self._is_told(writer, "thought", content):
                continue
            time = thought.get("timestamp", NO_TIME)
            if subject == "":
                rest["subject"] = ""
            writer.entry.reasoning(content, subject=subject, time=time, **writer.next(rest))
        return bool(thoughts)

    # -- content

    def _content(
        self, writer: Writer, parts: Any, *, by: int, model: Any, has_thoughts: bool = False
    ) -> int | None:
        """Write the parts; return the first text."""
        first: int | None = None
        for part in parts:
            kind = part.kind
            if kind == TEXT:
                number = self._text(writer, part, by=by, model=model)
                first = number if first is None else first
            elif kind == THOUGHT:
                if has_thoughts:
                    writer.event("block/thought", part.native)
                else:
                    rest = others(part.native, "text", "thought", "thoughtSignature")
                    signature = part.native.get("thoughtSignature")
                    writer.entry.reasoning(part.text, encrypted=signature, **writer.next(rest))
            elif kind == CALL:
                self._call_part(writer, part)
            elif kind == RESULT:
                self._result_part(writer, part)
            elif kind == INLINE:
                self._medium(writer, part, by)
            elif kind == ODD:
                writer.odd_event("block/content", part.native)
            else:
                if kind != FILE:
                    self.trace.findings.add(
                        "unknown-block-type", name=kind[:64], action="kept as system-event"
                    )
                writer.event(f"block/{kind}", part.native)
        return first

    def _text(self, writer: Writer, part: Part, *, by: int, model: Any) -> int | None:
        rest = others(part.native, "text") if isinstance(part.native, dict) else {}
        if self._is_told(writer, "text", part.text):
            return None
        if by != AGENT and part.text.startswith(SESSION_CONTEXT):
            writer.event(event_types.INJECTED_CONTEXT, {"text": part.text}, rest=rest)
            return None
        return writer.entry.text(part.text, by=by, model=model, **writer.next(rest))

    def _medium(self, writer: Writer, part: Part, by: int) -> None:
        inline = part.native[INLINE]
        found = medium(inline.get("mimeType"), inline.get("data"))
        if found is None:
            writer.odd_event(f"block/{INLINE}", part.native)
            return
        rest = others(part.native, INLINE) | others(inline, "mimeType", "data")
        options = writer.next(rest)
        attach(writer.entry, found, native=part.native, block=options["block"], rest=options["rest"], by=by)

    def _call_part(self, writer: Writer, part: Part) -> None:
        """Write a call that no `toolCalls` element tells of."""
        inner, rest = part.native[CALL], others(part.native, CALL)
        if self._is_again and part.call_id is not None and self.session.has_call(part.call_id):
            return
        call = self._replay.calls.get(part.call_id) if part.call_id is not None else None
        if call is None or not call.versions:
            rest |= others(inner, "id", "name", "args")
            given = self._input(writer, inner.get("args"), rest)
            writer.entry.call(inner.get("name"), given, call_id=part.call_id, **writer.next(rest))
        elif not call.is_recorded and not call.is_call_written:
            self._call(writer, call, self._replay.shelf.get_merged(call.versions), rest=rest)
        elif rest or others(inner, "id", "name", "args"):
            writer.event(f"block/{CALL}", part.native)
        else:
            writer.twin = call.call_id

    def _result_part(self, writer: Writer, part: Part) -> None:
        """Write a result that no `toolCalls` element carries."""
        call = self._replay.calls.get(part.call_id) if part.call_id is not None else None
        if call is not None and (call.is_recorded or call.is_result_written):
            writer.twin = call.call_id
            return
        if self._is_again and part.call_id is not None and self.session.has_result(part.call_id):
            return
        output, record = [part.native], writer.entry.record
        if call is not None and call.result is not None:
            output, record = self._get(call.result), Record(call.result_record, {}, 0, 0, 0, [])
            call.is_result_written = True
        status = "error" if has_failed(output, part.native[RESULT].get("name")) else None
        self._result(writer, record, output, call_id=part.call_id, status=status, time=NO_TIME)

    # -- calls

    def _calls(self, writer: Writer, message: Message, order: list[Any] | None, model: Any) -> None:
        for item in order or ():
            if not isinstance(item, dict):
                writer.odd_event("block/toolCalls", item)
        natives: list[tuple[Call, dict[str, Any]]] = []
        for call in message.calls.values():
            if call.versions and not call.is_call_written:
                native = self._replay.shelf.get_merged(call.versions)
                if not (self._is_again and self.session.has_call(call.call_id)):
                    self._call(writer, call, native, rest=others(native, *_CALL_MEMBERS))
                natives.append((call, native))
        for call, native in natives:
            self._recorded_result(writer, call, native, model)

    def _call(self, writer: Writer, call: Call, native: dict[str, Any], *, rest: dict[str, Any]) -> None:
        if not call.is_recorded:
            rest = rest | others(native, "id", "name", "args")
        elif call.result is None:
            # What belongs to the result has no other place when there is none.
            rest |= {
                name: native[name] for name in ("status", "timestamp", "resultDisplay") if name in native
            }
        given_id = native.get("id")
        if given_id is not None and given_id not in ("", call.call_id):
            rest["id"] = given_id
        call.is_call_written = True
        with writer.at(call.call_record):
            given = self._input(writer, native.get("args"), rest)
            writer.entry.call(
                native.get("name"),
                given,
                call_id=call.call_id,
                origin=origin(native),
                **writer.next(rest),
            )
        agent = native.get("agentId")
        if isinstance(agent, str) and agent and self._spawned is not None:
            self._spawned(agent, call.call_id)

    def _input(self, writer: Writer, native: Any, rest: dict[str, Any]) -> Any:
        """Return the input of a call; arguments that are text are parsed (D-LOG-18)."""
        given, raw = arguments_of(native)
        if raw is not None:
            rest["arguments"] = raw
            if given is raw:
                self.trace.findings.add(
                    "arguments-unparsed", record=writer.entry.record.number, action="kept as text"
                )
        return given

    def _recorded_result(self, writer: Writer, call: Call, native: dict[str, Any], model: Any) -> None:
        if call.result is None or call.is_result_written:
            return
        call.is_result_written = True
        if self._is_again and self.session.has_result(call.call_id):
            return
        output = self._get(call.result)
        said = native.get("status")
        status = _STATUS.get(said) if isinstance(said, str) else None
        if has_failed(output, native.get("name")):
            status = "error"
        rest = {"resultDisplay": native["resultDisplay"]} if native.get("resultDisplay") is not None else {}
        if said is not None and said not in ("success", "error", "completed"):
            rest["status"] = said
        if status == "success" and not writer.entry.flags:
            self.edits.applied(native, model=model, record=call.call_record)
        self._result(
            writer,
            Record(call.result_record, {}, 0, 0, 0, []),
            output,
            call_id=call.call_id,
            status=status,
            time=native.get("timestamp", NO_TIME),
            rest=rest,
            origin=origin(native),
        )

    def _result(
        self,
        writer: Writer,
        record: Record,
        output: Any,
        *,
        rest: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        with writer.at(record.number):
            shown, media = in_result(writer.entry, output)
            writer.entry.result(shown, media=media, **options, **writer.next(rest))
