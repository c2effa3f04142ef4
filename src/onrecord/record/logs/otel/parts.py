"""Messages of every convention as parts: texts, reasoning, calls, results and media, each with its role.

    >>> [part.kind for part in parts_of({"role": "user", "parts": [{"type": "text", "content": "hi"}]}, "user")]
    ['text']

Source: native-logs.md 4.9; what is unknown becomes a part of kind "other" (D-LOG-26).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

Kind = Literal["text", "reasoning", "call", "result", "media", "other"]


class Part(NamedTuple):
    """One block of a message.

    `value` is the text, the reasoning's content, the arguments, the output, or the native block of the other kinds;
    `name` the tool or the block's type; `id` the call id. `rest` are the members of the block without a home; `time` is
    the Date of the event that told it, if one did.
    """

    kind: Kind
    role: str
    value: Any
    name: Any = None
    id: Any = None
    rest: Mapping[str, Any] = {}
    time: str | None = None


class Message(NamedTuple):
    """A message whose parts were not looked at yet: most of an input was told before. `role` is for one without."""

    native: Mapping[str, Any]
    role: str


_TYPES: Final[Mapping[str, Kind]] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "reasoning": "reasoning",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "redacted-reasoning": "reasoning",
    "tool_call": "call",
    "tool-call": "call",
    "tool_use": "call",
    "function_call": "call",
    "server_tool_call": "call",
    "tool_call_response": "result",
    "tool-result": "result",
    "tool_result": "result",
    "function_call_output": "result",
    "server_tool_call_response": "result",
    "blob": "media",
    "file": "media",
    "uri": "media",
    "image": "media",
    "image_url": "media",
    "input_image": "media",
    "audio": "media",
    "document": "media",
}
_TEXT: Final = ("content", "text", "thinking", "reasoning")
_CALL_ID: Final = ("call_id", "toolCallId", "tool_call_id", "tool_use_id", "id")
"""Members with a call id. A block may have an id of its own beside it."""

_NAME: Final = ("name", "toolName", "tool_name")
_ARGUMENTS: Final = ("arguments", "args", "input")
_OUTPUT: Final = ("response", "result", "output", "content")
_PROTECTED: Final = ("encrypted", "encrypted_content", "data")
_CONTENT: Final = ("parts", "content", "contents", "text")
_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}
_ROLE_NAMES: Final = frozenset(["user", "assistant", "system", "tool"])


def messages_of(value: Any, role: str) -> Iterator[Part | Message]:
    """Yield the messages of a list, or the parts of one message or bare text; `role` is for those that name none."""
    if isinstance(value, dict):
        inner = value.get("messages")
        if isinstance(inner, list):
            if isinstance(value.get("system"), str):
                yield Part("text", "system", value["system"])
            yield from messages_of(inner, role)
        else:
            yield from parts_of(value, role)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield Message(item, role)
            else:
                yield from parts_of(item, role)
    elif isinstance(value, str):
        yield Part("text", role, value)
    elif value is not None:
        yield Part("other", role, {"value": value}, "message")


def parts_of(message: Any, role: str) -> Iterator[Part]:
    """Yield the parts of one message, in their order, its tool calls last."""
    if isinstance(message, str):
        yield Part("text", role, message)
        return
    if not isinstance(message, dict):
        yield Part("other", role, {"value": message}, "message")
        return
    inner = message.get("message")
    if isinstance(inner, dict):
        left = {name: value for name, value in message.items() if name != "message"}
        yield from _with_rest(parts_of(inner, role), left)
        return
    if "role" not in message and message.get("type") in _TYPES:
        yield block(message, role)
        return
    spoken = message.get("role")
    if isinstance(spoken, str) and spoken:
        role = _ROLES.get(spoken.lower(), spoken.lower())
    parts = list(_with_rest(_blocks(message, role), _left(message)))
    if not parts and any(value for name, value in message.items() if name != "role"):
        parts.append(Part("other", role, message, "message"))
    yield from parts


def block(native: Any, role: str) -> Part:
    """Return the part that one block of a message is."""
    if isinstance(native, str):
        return Part("text", role, native)
    if not isinstance(native, dict):
        return Part("other", role, {"value": native}, "block")
    named = native.get("type")
    kind = _TYPES.get(named) if isinstance(named, str) else None
    if named is None and isinstance(native.get("text"), str):
        kind = "text"
    made = None if kind is None else _MAKERS[kind](native, role)
    return (
        Part("other", role, native, named if isinstance(named, str) and named else "block")
        if made is None
        else made
    )


def has_known_role(part: Part) -> bool:
    """Say whether a part is said by one of those that talk in a conversation."""
    return part.role in _ROLE_NAMES


def is_known_type(name: Any) -> bool:
    """Say whether blocks of this type are known, although this one cannot be read."""
    return name in _TYPES


def _blocks(message: Mapping[str, Any], role: str) -> Iterator[Part]:
    reasoning = message.get("reasoning_content", message.get("reasoning"))
    if isinstance(reasoning, str) and reasoning:
        yield Part("reasoning", role, reasoning)
    name = next((name for name in _CONTENT if message.get(name) is not None), None)
    content = None if name is None else message[name]
    call_id = _first(message, ("tool_call_id", "toolCallId", "tool_use_id"))
    if role == "tool" and not _is_list_of_results(content):
        if content is not None:
            yield Part("result", role, content, message.get("name"), call_id or message.get("id"))
    elif isinstance(content, str):
        if content:
            yield Part("text", role, content)
    elif isinstance(content, list):
        for item in content:
            yield block(item, role)
    elif content is not None:
        yield block(content, role)
    calls = message.get("tool_calls", message.get("toolCalls"))
    if isinstance(calls, list):
        for call in calls:
            made = _call(call, role) if isinstance(call, dict) else None
            yield Part("other", role, call, "tool_call") if made is None else made
    elif calls is not None:
        yield Part("other", role, calls, "tool_call")
    called = message.get("function_call")
    if isinstance(called, dict):
        yield _call(called, role) or Part("other", role, called, "function_call")


_MESSAGE_MEMBERS: Final = frozenset(
    [
        "role",
        "reasoning_content",
        "reasoning",
        "tool_calls",
        "toolCalls",
        "function_call",
        "tool_call_id",
        *_CONTENT,
    ]
)


def _left(message: Mapping[str, Any]) -> dict[str, Any]:
    content = next((name for name in _CONTENT if message.get(name) is not None), None)
    left = {name: value for name, value in message.items() if name not in _MESSAGE_MEMBERS}
    left |= {
        name: message[name] for name in _CONTENT if name in message and name != content and message[name]
    }
    for name, kind in (("reasoning_content", str), ("reasoning", str), ("function_call", dict)):
        value = message.get(name)
        if value is not None and not isinstance(value, kind):
            left[name] = value
    spoken = message.get("role")
    if spoken is not None and (
        not isinstance(spoken, str) or _ROLES.get(spoken.lower(), spoken.lower()) != spoken
    ):
        left["role"] = spoken
    return left


def _with_rest(parts: Iterator[Part], rest: Mapping[str, Any]) -> Iterator[Part]:
    """Give the members of a message to its first part."""
    for part in parts:
        yield part._replace(rest={**rest, **part.rest}) if rest else part
        rest = {}


def _is_list_of_results(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(item, dict) and _TYPES.get(str(item.get("type"))) == "result" for item in content)
    )


def _text(native: Mapping[str, Any], role: str) -> Part | None:
    name = next((name for name in _TEXT if isinstance(native.get(name), str)), None)
    return None if name is None else Part("text", role, native[name], rest=_without(native, ("type", name)))


def _reasoning(native: Mapping[str, Any], role: str) -> Part | None:
    name = next((name for name in _TEXT if native.get(name) is not None), None)
    protected = next((name for name in _PROTECTED if isinstance(native.get(name), str)), None)
    if name is None and protected is None:
        return None
    content = "" if name is None else native[name]
    encrypted = None if protected is None else native[protected]
    return Part("reasoning", role, content, encrypted, rest=_without(native, ("type", name, protected)))


def _call(native: Mapping[str, Any], role: str) -> Part | None:
    function = native.get("function")
    holder = function if isinstance(function, dict) else native
    name = _first(holder, _NAME)
    if not isinstance(name, str) or not name:
        return None
    raw = _first(holder, _ARGUMENTS)
    identity, call_id = _identity(native)
    homed = {"type", identity, *_NAME, *_ARGUMENTS} | ({"function"} if holder is function else set())
    left = _without(native, homed)
    if holder is function:
        left |= _without(holder, {*_NAME, *_ARGUMENTS})
    return Part("call", role, raw, name, call_id, left)


def _result(native: Mapping[str, Any], role: str) -> Part | None:
    name = next((name for name in _OUTPUT if name in native), None)
    identity, call_id = _identity(native)
    left = _without(native, {"type", name, identity})
    return Part(
        "result",
        role,
        None if name is None else native[name],
        _first(native, _NAME),
        call_id,
        left,
    )


def _media(native: Mapping[str, Any], role: str) -> Part | None:
    return Part("media", role, native, native.get("type"))


_MAKERS: Final = {"text": _text, "reasoning": _reasoning, "call": _call, "result": _result, "media": _media}


def _identity(native: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Return the member with the call id, and the id; one of another kind is none."""
    for name in _CALL_ID:
        value = native.get(name)
        if (isinstance(value, str) and value) or type(value) is int:
            return name, value
    return None, None


def _first(native: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((native[name] for name in names if native.get(name) is not None), None)


def _without(native: Mapping[str, Any], names: Any) -> dict[str, Any]:
    return {name: value for name, value in native.items() if name not in names}
