"""What a span tells of a conversation: what went into the model and what came out, by every convention.

Of several conventions that tell the same, the current one counts and the others stay among the span's attributes.

Source: native-logs.md 4.9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from onrecord.record.logs.otel.parts import Message, Part, block, messages_of, parts_of
from onrecord.record.logs.otel.span import Span, event_time
from onrecord.record.logs.otel.values import embedded

_DETAILS: Final = "gen_ai.client.inference.operation.details"
_CHOICE: Final = "gen_ai.choice"
_EVENT_ROLES: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CONTENT_EVENTS: Final = {
    "gen_ai.content.prompt": "gen_ai.prompt",
    "gen_ai.content.completion": "gen_ai.completion",
}

_WHOLE_EVENTS: Final = frozenset([_DETAILS, *_CONTENT_EVENTS])
"""Events of which single attributes hold messages."""

_ABOUT_EVENTS: Final = ("event.name", "gen_ai.system", "gen_ai.provider.name")
"""Attributes of an event that are no members of its message."""

_INDEXED: Final = re.compile(
    r"(llm\.input_messages|llm\.output_messages|gen_ai\.prompt|gen_ai\.completion)\.([0-9]{1,6})\.(?:message\.)?(.+)",
    re.ASCII | re.DOTALL,
)
_CONTENTS: Final = re.compile(r"contents\.([0-9]{1,6})\.message_content\.(.+)", re.ASCII | re.DOTALL)
_CALLS: Final = re.compile(
    r"tool_calls\.([0-9]{1,6})\.(?:tool_call\.)?(?:function\.)?(.+)", re.ASCII | re.DOTALL
)
_TOOLS: Final = re.compile(r"llm\.tools\.([0-9]{1,6})\.tool\.json_schema", re.ASCII)


class Conversation:
    """What one span tells. `used` are the attributes that it was read from.

    `used_events` are the events that it was read from, by their places: what no message has of them.
    """

    def __init__(self) -> None:
        self.inputs: list[Part | Message] = []
        self.outputs: list[Part] = []
        self.definitions: list[Any] = []
        self.used: set[str] = set()
        self.used_events: dict[int, dict[str, Any]] = {}
        self.numbers: list[str] = []
        self.odd: list[str] = []
        """Attributes that should hold messages and do not."""


def read_conversation(span: Span) -> Conversation:
    """Return what a span tells of a conversation."""
    reading = _Reading(span)
    told = reading.told
    told.inputs = next((parts for source in _INPUTS if (parts := list(source(reading)))), [])
    told.outputs = next((parts for source in _OUTPUTS if (parts := list(_looked_at(source(reading))))), [])
    told.inputs[:0] = _instructions(span, told)
    _definitions(span, told)
    return told


def read_event(span: Span) -> Conversation:
    """Return what a log record tells, whose name is the span's and whose attributes and body hold the message."""
    told = Conversation()
    event = {"name": span.name, "attributes": span.attributes, "body": span.rest.get("body")}
    _read_event(event, told, told.inputs, told.outputs)
    return told


def _looked_at(found: Iterator[Part | Message]) -> Iterator[Part]:
    for item in found:
        if isinstance(item, Message):
            yield from parts_of(item.native, item.role)
        else:
            yield item


class _Reading:
    """A span that is read, and the attributes whose names hold the place of a message."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.told = Conversation()
        self.indexed, self.names = _indexed(span.attributes)


_Source = Callable[[_Reading], Iterator[Part | Message]]


def _attribute(name: str, role: str, *, is_text: bool = False) -> _Source:
    """Return a source that reads messages out of one attribute; with `is_text` a text that is no JSON is one."""

    def read(reading: _Reading) -> Iterator[Part | Message]:
        return _messages(reading.span.attributes, name, role, reading.told, is_text=is_text)

    return read


def _messages(
    attributes: Mapping[str, Any], name: str, role: str, told: Conversation, *, is_text: bool = False
) -> Iterator[Part | Message]:
    value = attributes.get(name)
    if value is None or value == "":
        return
    found = embedded(value)
    if found is None and not is_text:
        told.odd.append(name)
        return
    told.used.add(name)
    if found is None:
        yield Part("text", role, value)
        return
    told.numbers += [f"/{name}{pointer}" for pointer in found[1]]
    yield from messages_of(found[0], role)


def _indexed_source(prefix: str, role: str) -> _Source:
    def read(reading: _Reading) -> Iterator[Part | Message]:
        messages = reading.indexed.get(prefix)
        if messages:
            reading.told.used.update(reading.names[prefix])
            for number in sorted(messages):
                yield Message(_assembled(messages[number]), role)

    return read


def _from_events(direction: str) -> _Source:
    def read(reading: _Reading) -> Iterator[Part | Message]:
        told = reading.told
        for place, event in enumerate(reading.span.events):
            inputs: list[Part | Message] = []
            outputs: list[Part] = []
            if isinstance(event, dict) and isinstance(event.get("attributes", {}), dict):
                inner = Conversation()
                _read_event(event, inner, inputs, outputs)
                if direction == "inputs":
                    told.definitions += inner.definitions
                if inputs or outputs:
                    told.used_events[place] = _left_of(event, inner.used)
            yield from inputs if direction == "inputs" else outputs

    return read


def _vercel_output(reading: _Reading) -> Iterator[Part | Message]:
    attributes, told = reading.span.attributes, reading.told
    for name, kind in (("ai.response.reasoning", "reasoning"), ("ai.response.text", "text")):
        value = attributes.get(name)
        if isinstance(value, str) and value:
            told.used.add(name)
            yield Part(kind, "assistant", value)  # type: ignore[arg-type]  # one of the two kinds just named
    calls = attributes.get("ai.response.toolCalls")
    found = embedded(calls)
    if found is not None and isinstance(found[0], list):
        told.used.add("ai.response.toolCalls")
        for call in found[0]:
            yield block({**call, "type": "tool-call"} if isinstance(call, dict) else call, "assistant")
    elif calls:
        told.odd.append("ai.response.toolCalls")


def _plain(name: str, role: str) -> _Source:
    """Return a source for the values that OpenInference gives of any span: only a text is a message."""

    def read(reading: _Reading) -> Iterator[Part | Message]:
        attributes = reading.span.attributes
        value = attributes.get(f"{name}.value")
        kind = attributes.get(f"{name}.mime_type", "text/plain")
        if isinstance(value, str) and value and kind == "text/plain" and embedded(value) is None:
            reading.told.used.add(f"{name}.value")
            yield Part("text", role, value)

    return read


_INPUTS: Final[tuple[_Source, ...]] = (
    _attribute("gen_ai.input.messages", "user"),
    _from_events("inputs"),
    _indexed_source("llm.input_messages", "user"),
    _attribute("ai.prompt.messages", "user"),
    _indexed_source("gen_ai.prompt", "user"),
    _attribute("gen_ai.prompt", "user", is_text=True),
    _plain("input", "user"),
)
_OUTPUTS: Final[tuple[_Source, ...]] = (
    _attribute("gen_ai.output.messages", "assistant"),
    _from_events("outputs"),
    _indexed_source("llm.output_messages", "assistant"),
    _vercel_output,
    _indexed_source("gen_ai.completion", "assistant"),
    _attribute("gen_ai.completion", "assistant", is_text=True),
    _plain("output", "assistant"),
)


def _read_event(
    event: Mapping[str, Any], told: Conversation, inputs: list[Part | Message], outputs: list[Part]
) -> None:
    """Read the messages of one event: the current kind with all of them, or an older one for each."""
    name, attributes, body = event.get("name"), event.get("attributes"), event.get("body")
    attributes = attributes if isinstance(attributes, dict) else {}
    if name == _DETAILS:
        inputs += _system(attributes, told)
        inputs += _messages(attributes, "gen_ai.input.messages", "user", told)
        outputs += _looked_at(_messages(attributes, "gen_ai.output.messages", "assistant", told))
        _take_definitions(attributes.get("gen_ai.tool.definitions"), "gen_ai.tool.definitions", told)
    elif name == _CHOICE:
        time = event_time(event)
        outputs += (part._replace(time=time) for part in parts_of(_message(attributes, body), "assistant"))
    elif isinstance(name, str) and name in _EVENT_ROLES:
        time = event_time(event)
        spoken = parts_of(_message(attributes, body), _EVENT_ROLES[name])
        inputs += (part._replace(time=time) for part in spoken)
    elif isinstance(name, str) and name in _CONTENT_EVENTS:
        attribute = _CONTENT_EVENTS[name]
        if attribute == "gen_ai.prompt":
            inputs += _messages(attributes, attribute, "user", told, is_text=True)
        else:
            outputs += _looked_at(_messages(attributes, attribute, "assistant", told, is_text=True))


def _message(attributes: Mapping[str, Any], body: Any) -> dict[str, Any]:
    """Return the message of an event, whose members may be JSON texts."""
    message = {**attributes, **body} if isinstance(body, dict) else dict(attributes)
    if isinstance(body, str):
        message.setdefault("content", body)
    for name in ("message", "tool_calls", "content"):
        found = embedded(message.get(name)) if isinstance(message.get(name), str) else None
        if found is not None and (name != "content" or _is_blocks(found[0])):
            message[name] = found[0]
    for name in _ABOUT_EVENTS:
        message.pop(name, None)
    return message


def _left_of(event: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    """Return what the messages of an event do not have: its name, its time, what it says beside them."""
    attributes = event.get("attributes")
    left = {name: value for name, value in event.items() if name not in ("attributes", "body")}
    if event.get("name") in _WHOLE_EVENTS:
        kept = {name: value for name, value in (attributes or {}).items() if name not in used}
        if "body" in event:
            left["body"] = event["body"]
    else:
        kept = {name: attributes[name] for name in _ABOUT_EVENTS if attributes and name in attributes}
    return {**left, "attributes": kept} if kept else left


def _instructions(span: Span, told: Conversation) -> list[Part]:
    return list(_system(span.attributes, told))


def _system(attributes: Mapping[str, Any], told: Conversation) -> Iterator[Part]:
    value = attributes.get("gen_ai.system_instructions")
    if value is None or value == "":
        return
    told.used.add("gen_ai.system_instructions")
    found = embedded(value)
    if found is None:
        yield Part("text", "system", value)
        return
    for item in found[0] if isinstance(found[0], list) else [found[0]]:
        yield from parts_of(item, "system")


def _definitions(span: Span, told: Conversation) -> None:
    attributes = span.attributes
    for name in ("gen_ai.tool.definitions", "ai.prompt.tools"):
        _take_definitions(attributes.get(name), name, told)
    for name in attributes:
        if name.startswith("llm.tools.") and _TOOLS.fullmatch(name):
            found = embedded(attributes[name])
            if found is not None:
                told.used.add(name)
                told.definitions.append(found[0])


def _take_definitions(value: Any, name: str, told: Conversation) -> None:
    found = embedded(value)
    if found is None:
        if value:
            told.odd.append(name)
        return
    told.used.add(name)
    for item in found[0] if isinstance(found[0], list) else [found[0]]:
        inner = embedded(item) if isinstance(item, str) else None
        told.definitions.append(item if inner is None else inner[0])


def _indexed(
    attributes: Mapping[str, Any],
) -> tuple[dict[str, dict[int, dict[str, Any]]], dict[str, list[str]]]:
    """Gather the attributes whose names hold the place of a message, by their beginning and that place."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    names: dict[str, list[str]] = {}
    for name, value in attributes.items():
        match = _INDEXED.fullmatch(name) if name.startswith(("llm.", "gen_ai.")) else None
        if match is not None:
            found.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
            names.setdefault(match[1], []).append(name)
    return found, names


def _assembled(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of members like `tool_calls.0.tool_call.id`."""
    message: dict[str, Any] = {}
    contents: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[str, Any]] = {}
    for name, value in members.items():
        if match := _CONTENTS.fullmatch(name):
            contents.setdefault(int(match[1]), {})[match[2]] = value
        elif match := _CALLS.fullmatch(name):
            calls.setdefault(int(match[1]), {})[match[2]] = value
        else:
            message[name] = value
    if contents:
        blocks = [_content_block(contents[number]) for number in sorted(contents)]
        if isinstance(message.get("content"), str) and message["content"]:
            blocks.insert(0, {"type": "text", "text": message["content"]})
        message["content"] = blocks
    elif isinstance(message.get("content"), str):
        found = embedded(message["content"])
        if found is not None and _is_blocks(found[0]):
            message["content"] = found[0]
    if calls:
        message["tool_calls"] = [calls[number] for number in sorted(calls)]
    if isinstance(message.get("function_call_name"), str):
        arguments = message.pop("function_call_arguments_json", None)
        message["function_call"] = {"name": message.pop("function_call_name"), "arguments": arguments}
    return message


def _content_block(members: Mapping[str, Any]) -> dict[str, Any]:
    url = members.get("image.image.url")
    if url is None:
        return dict(members)
    return {**{name: value for name, value in members.items() if name != "image.image.url"}, "url": url}


def _is_blocks(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in value)
    )


def definition_names(definitions: list[Any]) -> list[str]:
    """Return the names of tools in their definitions."""
    names = []
    for definition in definitions:
        inner = definition.get("function") if isinstance(definition, dict) else None
        for holder in (definition, inner):
            name = holder.get("name") if isinstance(holder, dict) else None
            if isinstance(name, str) and name:
                names.append(name)
                break
    return names
