"""Spans written as entries of a session.

Every answer of a model repeats the conversation before it. Of the input the k-th occurrence of a text is new only when
fewer than k were seen before in the session; an output always is. Calls and results are known by their ids.

Source: native-logs.md 4.9.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import orjson

from onrecord.record.logs import event_types, media
from onrecord.record.logs.otel.binary import binary_of
from onrecord.record.logs.otel.lookup import (
    CALL_IDS,
    MODELS,
    RESPONSE_IDS,
    TOOL_ARGUMENTS,
    TOOL_NAMES,
    TOOL_RESULTS,
    first,
    identifier,
    model_of,
    origin_of,
    text_of,
    usage_of,
)
from onrecord.record.logs.otel.messages import Conversation, definition_names
from onrecord.record.logs.otel.parts import Message, Part, has_known_role, is_known_type, parts_of
from onrecord.record.logs.otel.span import Span
from onrecord.record.logs.reading.values import arguments_of
from onrecord.record.logs.sessions import AGENT, NO_TIME, PARENT, USER, Entry, NativeSession
from onrecord.record.logs.usage import Usage

Seen = dict[int, int]
"""How often a text was seen, by the hash of session, role and text."""

Messages = dict[int, tuple[int, ...]]
"""The texts of messages of inputs that were looked at, by the hash of session and message."""

MAX_MESSAGES: Final = 20_000
"""Messages that are remembered; one that was forgotten is looked at part by part again."""

Waiting = dict[tuple[int, str], tuple[Entry, dict[str, Any]]]
"""Runs of tools whose results may be told by a message, by session and call id."""


class Telling:
    """Writes the objects of one span. Members without a home go with the first object."""

    def __init__(self, entry: Entry, span: Span, seen: Seen, waiting: Waiting, messages: Messages) -> None:
        self.entry = entry
        self.session: NativeSession = entry.session
        self.span = span
        self.used: set[str] = set()
        self.used_events: dict[int, dict[str, Any]] = {}
        self._seen = seen
        self._waiting = waiting
        self._messages = messages
        self._usage: tuple[Usage, dict[str, Any]] | None = None
        self._here: Seen = {}
        self._block = -1
        self._told = False
        self._findings = entry.trace.findings
        self._end = NO_TIME if span.end is None else span.end_text

    @property
    def has_told(self) -> bool:
        """Whether an object holds the span."""
        return self._told

    def rest(self, more: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the members without a home, once, and those of a block."""
        rest = dict(more) if more else {}
        if not self._told:
            self._told = True
            span = self.span
            rest |= span.rest
            if span.name:
                rest["name"] = span.name
            attributes = {name: value for name, value in span.attributes.items() if name not in self.used}
            if attributes:
                rest["attributes"] = attributes
            events = [self.used_events.get(place, event) for place, event in enumerate(span.events)]
            if events:
                rest["events"] = events
        return rest or None

    def whole(self) -> None:
        """Write the span as one event that keeps it as it is."""
        kind = "log" if self.span.is_log else "span"
        self._told = True
        self.entry.event(f"{kind}/{self.span.operation}", self.span.everything())

    # -- answers of a model

    def conversation(self, told: Conversation, *, outputs_are_new: bool = True) -> int | None:
        """Write what a span tells of a conversation; return the first text of the model in its output."""
        self.used |= told.used
        self.used_events |= told.used_events
        for name in told.odd:
            self._findings.add(
                "odd-shape", record=self.entry.record.number, action=f"{name[:64]} kept as it is"
            )
        self.entry.record.numbers += told.numbers
        model = model_of(self.span)
        if any(part.kind == "text" for part in told.outputs):
            self.used.update(name for name in MODELS if self.span.attributes.get(name) == model)
        if told.definitions:
            self._definitions(told.definitions)
        for item in told.inputs:
            if isinstance(item, Message):
                self._message(item)
            else:
                self._part(item, model=None, is_output=False)
        self._here = {}
        text: int | None = None
        for part in told.outputs:
            number = self._part(part, model=model, is_output=True, is_new=outputs_are_new)
            if text is None and part.kind == "text" and part.role == "assistant":
                text = number
        return text

    def take_usage(self) -> None:
        """Read the usage of an answer, so that it does not stand among the members without a home."""
        usage, native = usage_of(self.span)
        if not usage.is_empty:
            self._usage = usage, native
            self.used.update(native)

    def usage(self, text: int | None) -> None:
        """Write the usage that was taken: on the answer's text, else as an event of its own."""
        if self._usage is None:
            return
        usage, native = self._usage
        if not usage.is_consistent:
            self._findings.count("usage-inconsistent", record=self.entry.record.number, action="our sum kept")
        if text is not None:
            self.session.attach_usage(text, usage, native)
            return
        response = text_of(self.span.attributes, RESPONSE_IDS)
        self.entry.token_count(
            "response",
            usage,
            native,
            response_id=response,
            block=self._next(),
            time=self._end,
            rest=self.rest(),
        )

    def failure(self) -> None:
        """Write that an answer or a run failed, where the span says so."""
        if self.span.status != "error":
            return
        data: dict[str, Any] = {"message": self.span.message, "type": self.span.attributes.get("error.type")}
        data = {name: value for name, value in data.items() if value is not None}
        self.entry.event(event_types.ERROR, data, block=self._next(), time=self._end, rest=self.rest())

    # -- runs of a tool

    def tool(self) -> str:
        """Write the call and the result of a tool's run, and return its call id.

        A run whose result the span does not hold waits: a message may tell it later.
        """
        span, session, attributes = self.span, self.session, self.span.attributes
        called = first(attributes, CALL_IDS)
        named = identifier(attributes[called]) if called is not None else ""
        call_id = named or span.id or f"L{self.entry.record.number}"
        if called is not None and named:
            self.used.add(called)
        output = first(attributes, TOOL_RESULTS)
        if output is not None:
            self.used.add(output)
        if not session.has_call(call_id):
            self._call(call_id)
        status = self._status()
        made: dict[str, Any] = {
            "call_id": call_id,
            "status": status,
            "origin": origin_of(attributes),
            "block": self._next(),
            "time": self._end,
        }
        if session.has_result(call_id):
            return call_id
        if output is None and status != "error":
            self._waiting.setdefault((session.index, call_id), (self.entry, made))
            return call_id
        value = attributes[output] if output is not None else self._failure_text()
        shown, told = media.in_output(self.entry, value)
        self.entry.result(shown, **made, rest=self.rest(), media=told)
        return call_id

    def _call(self, call_id: str) -> None:
        attributes = self.span.attributes
        named = first(attributes, TOOL_NAMES)
        name: Any = self.span.name.removeprefix("execute_tool ") if named is None else attributes[named]
        arguments = first(attributes, TOOL_ARGUMENTS)
        self.used.update(found for found in (named, arguments) if found is not None)
        raw = None if arguments is None else attributes[arguments]
        value, more = self._arguments(raw)
        self.entry.call(
            name,
            value,
            call_id=call_id,
            block=self._next(),
            origin=origin_of(attributes),
            rest=self.rest(more),
        )

    def _status(self) -> str | None:
        span = self.span
        if span.status == "error" or span.attributes.get("error.type"):
            return "error"
        if span.status == "ok":
            return "success"
        return "completed" if span.end is not None else None

    def _failure_text(self) -> Any:
        """Return what the span says about why a tool failed."""
        if self.span.message not in (None, ""):
            return self.span.message
        for event in self.span.events:
            attributes = event.get("attributes") if isinstance(event, dict) else None
            if isinstance(attributes, dict) and attributes.get("exception.message"):
                return attributes["exception.message"]
        return None

    # -- parts of messages

    def _message(self, message: Message) -> None:
        """Write what is new in a message of the input. Of one that was looked at before only the counts matter."""
        key = hash((self.session.index, message.role, orjson.dumps(message.native)))
        known = self._messages.get(key)
        if known is not None:
            here = {one: self._here.get(one, 0) + count for one, count in Counter(known).items()}
            if all(self._seen.get(one, 0) >= count for one, count in here.items()):
                self._here |= here
                return
        counted = []
        for part in parts_of(message.native, message.role):
            self._part(part, model=None, is_output=False)
            if part.id is None or part.kind not in ("call", "result"):
                counted.append(self._key(part))
        if len(self._messages) >= MAX_MESSAGES:
            self._messages.clear()
        self._messages[key] = tuple(counted)

    def _part(self, part: Part, *, model: str | None, is_output: bool, is_new: bool = False) -> int | None:
        time = part.time or (self._end if is_output else NO_TIME)
        if part.kind == "call" and part.id is not None:
            if self._is_known_call(part, is_new=is_new):
                return None
        elif part.kind == "result" and part.id is not None:
            if self.session.has_result(str(part.id)):
                return None
        elif is_new:
            key = self._key(part)
            self._seen[key] = self._seen.get(key, 0) + 1
        elif not self._is_new(part):
            return None
        if part.kind == "call":
            value, more = self._arguments(part.value)
            rest = {**part.rest, **(more or {})}
            return self.entry.call(
                part.name, value, call_id=part.id, block=self._next(), time=time, rest=self.rest(rest)
            )
        if part.kind == "result":
            return self._result(part, time)
        if part.kind == "text":
            return self._text(part, model, time)
        if part.kind == "reasoning":
            options: dict[str, Any] = {"block": self._next(), "time": time, "rest": self.rest(part.rest)}
            return self.entry.reasoning(part.value, encrypted=part.name, **options)
        return self._medium(part, time) if part.kind == "media" else self._other(part, time)

    def _text(self, part: Part, model: str | None, time: Any) -> int | None:
        if not has_known_role(part):
            self._findings.add("unknown-block-type", name=f"role {part.role[:56]}", action="kept as an event")
            data = {"role": part.role, "text": part.value}
            return self.entry.event(
                "block/text", data, block=self._next(), time=time, rest=self.rest(part.rest)
            )
        rest = self.rest(part.rest)
        if part.role == "system":
            return self.entry.system_prompt(part.value, "system", block=self._next(), time=time, rest=rest)
        by = AGENT if part.role == "assistant" else PARENT if self.session.is_child else USER
        return self.entry.text(part.value, by=by, model=model, block=self._next(), time=time, rest=rest)

    def _result(self, part: Part, time: Any) -> int | None:
        run = None if part.id is None else self._waiting.pop((self.session.index, str(part.id)), None)
        if run is not None:
            entry, made = run
            shown, told = media.in_output(entry, part.value)
            return entry.result(shown, **made, rest=part.rest or None, media=told)
        shown, told = media.in_output(self.entry, part.value)
        return self.entry.result(
            shown, call_id=part.id, block=self._next(), time=time, rest=self.rest(part.rest), media=told
        )

    def _medium(self, part: Part, time: Any) -> int:
        native = part.value
        found = binary_of(native)
        if found is not None:
            content, left = found
            by = AGENT if part.role == "assistant" else PARENT if self.session.is_child else USER
            return media.attach(
                self.entry, content, block=self._next(), native=native, rest=self.rest(left), by=by
            )
        return self.entry.event(
            f"block/{part.name}",
            {"role": part.role, "block": native},
            block=self._next(),
            time=time,
            rest=self.rest(part.rest),
        )

    def _other(self, part: Part, time: Any) -> int:
        name = part.name if isinstance(part.name, str) else "block"
        if name in ("message", "block") or is_known_type(name):
            self._findings.add("odd-shape", record=self.entry.record.number, action="kept as an event")
        else:
            self._findings.add("unknown-block-type", name=name[:64], action="kept as an event")
        data = {"role": part.role, "block": part.value}
        return self.entry.event(
            f"block/{name}", data, block=self._next(), time=time, rest=self.rest(part.rest)
        )

    def _definitions(self, definitions: list[Any]) -> None:
        key = hash((self.session.index, "definitions", hashlib.sha256(orjson.dumps(definitions)).digest()))
        if key not in self._seen:
            self._seen[key] = 1
            names = definition_names(definitions)
            self.entry.tool_definitions(definitions, names, block=self._next(), rest=self.rest())

    def _arguments(self, raw: Any) -> tuple[Any, dict[str, Any] | None]:
        value, kept = arguments_of(raw)
        if kept is None:
            return value, None
        if kept is value:
            self._findings.add("arguments-unparsed", record=self.entry.record.number, action="kept as text")
        return value, {"arguments": kept}

    # -- what was told before

    def _is_known_call(self, part: Part, *, is_new: bool) -> bool:
        """Say whether a call was written before. An id that an output uses again for something else is a new call."""
        said = hash((self.session.index, "said", str(part.id)))
        same = hash((said, self._key(part)))
        is_known = self.session.has_call(str(part.id))
        if is_known and is_new and said in self._seen and same not in self._seen:
            is_known = False
        self._seen[said] = self._seen[same] = 1
        return is_known

    def _is_new(self, part: Part) -> bool:
        """Say whether this occurrence of a part in the input was not told before, and note it."""
        key = self._key(part)
        here = self._here[key] = self._here.get(key, 0) + 1
        if self._seen.get(key, 0) >= here:
            return False
        self._seen[key] = here
        return True

    def _key(self, part: Part) -> int:
        value = part.value
        if part.kind != "text" or not isinstance(value, str):
            value = orjson.dumps([part.kind, value, part.name], option=orjson.OPT_SORT_KEYS)
        return hash((self.session.index, part.role, value))

    def _next(self) -> int:
        self._block += 1
        return self._block
