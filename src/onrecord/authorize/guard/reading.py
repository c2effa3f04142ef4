"""Reads one line of an MCP client strictly, and finds the answer for a line that is broken.

>>> broken = read_message(b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}')
>>> broken.reason
'duplicate'
>>> broken.answer.startswith(b'{"jsonrpc":"2.0","id":7,"error":{"code":-32600,')
True

Servers in other languages match member names without regard to case. A message that spells a name of the protocol
in another way would be one call for us and another one for them, so it is refused like a duplicate.

Source: call-proof.md 3.2, 4.2, 6.5; mcp.md 3.1.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from onrecord.authorize.guard.lines import Overlong
from onrecord.authorize.guard.mcp_content import needs_care as content_needs_care
from onrecord.authorize.tool_names import is_tool_name
from onrecord.base.strict_json import Facts, Refused, parse
from onrecord.base.wire import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, error_line, recover

TOOLS_CALL: Final = "tools/call"
PROTOCOL_META: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_META: Final = "io.modelcontextprotocol/clientCapabilities"

_ENVELOPE: Final = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_PARAMS: Final = frozenset(("name", "arguments", "_meta", "task", "inputResponses", "requestState"))
_PARAMS_FOLDED: Final = frozenset(
    (*(name.casefold() for name in _PARAMS), "input_responses", "request_state")
)
# A string that never ends is one token too, or each quote in it would be tried as the start of another one. Possessive,
# because nothing is gained by going back and a position to go back to for each byte takes gigabytes.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,]|[^\s\[\]{}:,"]++', re.DOTALL)
MAX_TOKENS: Final = 100_000
"""Tokens looked at for an id: some milliseconds, so that a client with hostile lines holds up no other one."""

MAX_VALUES: Final = 300_000
"""Values and member names in one line. A mebibyte holds no more that is of use; sixteen of them with nothing but empty
lists would keep all clients of a guard waiting for seconds."""

MAX_NUMBER_CHARS: Final = 32
"""Longest text that is read as the number of a request; ids of requests end at 2^53."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_INTEGER = re.compile(rb"-?[0-9]{1,18}")

Id = str | int


class Message(NamedTuple):
    """One JSON-RPC object. `id` is None for a notification; `method` is None for an answer."""

    value: dict[str, Any]
    facts: Facts
    method: str | None
    id: Id | None


class Broken(NamedTuple):
    """A line that goes nowhere: the line that answers it, its method if that could be found, and why."""

    answer: bytes
    method: str | None
    reason: str


class Call(NamedTuple):
    """A tools/call that has the form of one. `meta` is the object itself, so that members can be taken out."""

    id: Id
    name: str
    arguments: dict[str, Any]
    params: dict[str, Any]
    meta: dict[str, Any] | None
    input_responses: dict[str, Any] | None
    request_state: str | None

    @property
    def is_modern(self) -> bool:
        """Say whether the request is one of revision 2026-07-28, which names its version in each request."""
        return self.meta is not None and PROTOCOL_META in self.meta

    @property
    def continues(self) -> bool:
        """Say whether this is a further round of an earlier call."""
        return self.input_responses is not None or self.request_state is not None


def read_message(line: bytes | Overlong) -> Message | Broken | None:
    """Read a line without its LF. None stands for a blank line, which says nothing and is not answered."""
    if isinstance(line, Overlong):
        return _broken(recover_id(line.head), INVALID_REQUEST, "The line is too long", "too_large")
    if len(line) > MAX_VALUES and has_too_many_values(line):
        return _broken(
            recover_id(line), INVALID_REQUEST, "The line has too many values", "too_large", "values"
        )
    try:
        value, facts = parse(line)
    except Refused as refusal:
        if not line.strip():
            return None
        return _refused(line, refusal.reason)
    if type(value) is not dict:
        return _broken(None, INVALID_REQUEST, "Not a JSON-RPC object", "invalid_request", "not_object")
    method = value.get("method")
    if not value.keys() <= _ENVELOPE and _other_spelling(value, _ENVELOPE, _ENVELOPE):
        return _broken(
            _id_of(value),
            INVALID_REQUEST,
            "A member name is spelt oddly",
            "invalid_request",
            "member_name",
            method,
        )
    message_id = value.get("id")
    if "id" in value and type(message_id) is not int and type(message_id) is not str:
        if method is None and message_id is None and "error" in value:
            return Message(
                value, facts, None, None
            )  # JSON-RPC lets an error answer to an unreadable line have id null
        return _broken(
            None, INVALID_REQUEST, "The id is no string or integer", "invalid_request", "id", method
        )
    if value.get("jsonrpc") != "2.0":
        return _broken(message_id, INVALID_REQUEST, "Not JSON-RPC 2.0", "invalid_request", "jsonrpc", method)
    if "method" in value:
        if type(method) is not str:
            return _broken(
                message_id, INVALID_REQUEST, "The method is no string", "invalid_request", "method"
            )
        if "result" in value or "error" in value:
            return _broken(
                message_id,
                INVALID_REQUEST,
                "A request and an answer in one",
                "invalid_request",
                "member_name",
                method,
            )
    elif "result" not in value and "error" not in value:
        return _broken(message_id, INVALID_REQUEST, "No method", "invalid_request", "method")
    return Message(value, facts, method, message_id)


def read_call(message: Message, *, line_bytes: int, limit_bytes: int) -> Call | Broken:
    """Read the parameters of a tools/call that has an id. Nothing is read as something that it is not."""
    assert message.id is not None
    if line_bytes > limit_bytes:
        return _broken(message.id, INVALID_REQUEST, "The call is too long", "too_large", None, TOOLS_CALL)
    params = message.value.get("params")
    if type(params) is not dict:
        return _bad_params(message.id, "params")
    if not params.keys() <= _PARAMS and _other_spelling(params, _PARAMS, _PARAMS_FOLDED):
        return _bad_params(message.id, "member_name")
    name = params.get("name")
    if not is_tool_name(name):
        return _bad_params(message.id, "name")  # no proof can exist for it, and it would stand in the record
    arguments = params.get("arguments", {})
    if type(arguments) is not dict:
        return _bad_params(message.id, "not_object")
    meta = params.get("_meta")
    if type(meta) is not dict and "_meta" in params:
        return _bad_params(message.id, "_meta")
    responses, state = params.get("inputResponses"), params.get("requestState")
    if type(responses) is not dict and "inputResponses" in params:
        return _bad_params(message.id, "inputResponses")
    if type(state) is not str and "requestState" in params:
        return _bad_params(message.id, "requestState")
    return Call(message.id, name, arguments, params, meta, responses, state)


def read_server_line(line: bytes) -> tuple[Any, bool]:
    """Read a line of a server leniently; None for noise. Also say whether its values need care to be recorded.

    A server is not made to be strict: its bytes pass, and what it meant is recorded as well as it can be.
    """
    needs_care = content_needs_care(line)
    try:
        # orjson makes an inexact float of an integer beyond 64 bits; the standard reader keeps its digits.
        return (json.loads(line), True) if needs_care else (orjson.loads(line), False)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(line.decode("utf-8", "replace")), True
    except (ValueError, RecursionError):
        return None, False


def has_too_many_values(line: bytes) -> bool:
    """Say whether a line has more than `MAX_VALUES`, at the price of some milliseconds. Text counts once."""
    if _separators(line) <= MAX_VALUES:
        return False
    rest, strings = _STRING.subn(b"", line, count=MAX_VALUES)
    return strings == MAX_VALUES or _separators(rest) > MAX_VALUES


def write_value(value: Any) -> bytes:
    """Write what a server sent anew: broken surrogates and wide integers too, which the fast writer refuses."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def recover_id(text: bytes) -> Id | None:
    """Find the id of a JSON object that cannot be parsed whole: too deep, or cut off. None if there is none.

    Only the top level counts; of two ids the last one that is seen within `MAX_TOKENS`.
    """
    depth = 0
    expects_value = False
    name: bytes | None = None
    found: Id | None = None
    for match in islice(_TOKEN.finditer(text), MAX_TOKENS):
        token = match[0]
        first = token[:1]
        if first in (b"{", b"["):
            depth += 1
            expects_value = False
        elif first in (b"}", b"]"):
            depth -= 1
        elif depth == 1:
            if first == b":":
                expects_value = name == b'"id"'
            elif first == b",":
                expects_value, name = False, None
            elif expects_value:
                found = _scalar_id(token)
                expects_value = False
            else:
                name = token
    return found


def as_number(request_id: str) -> Id:
    """Return the number that Python's and TypeScript's SDKs take a text for when they look for a request."""
    try:
        return int(request_id) if len(request_id) <= MAX_NUMBER_CHARS else request_id
    except ValueError:
        return request_id


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b":") + text.count(b"[") + text.count(b"{")


def _scalar_id(token: bytes) -> Id | None:
    if token.startswith(b'"'):
        try:
            value, _ = parse(token)
        except Refused:
            return None
        return value if type(value) is str else None
    return int(token) if _INTEGER.fullmatch(token) else None


def _other_spelling(members: dict[str, Any], names: frozenset[str], folded: frozenset[str]) -> bool:
    return any(name.casefold() in folded for name in members.keys() - names)


def _id_of(value: dict[str, Any]) -> Id | None:
    found = value.get("id")
    return found if type(found) is int or type(found) is str else None


def _refused(line: bytes, reason: str) -> Broken:
    if reason in ("bom", "not_utf8", "syntax"):
        return _broken(None, PARSE_ERROR, "Not JSON", "parse_error", reason)
    found, method = recover(line)
    if found is None:
        found = recover_id(line)
    return _broken(found, INVALID_REQUEST, "Request refused", "invalid_request", reason, method)


def _bad_params(message_id: Id, detail: str) -> Broken:
    return _broken(message_id, INVALID_PARAMS, "Invalid parameters", "invalid_params", detail, TOOLS_CALL)


def _broken(
    message_id: Any, code: int, text: str, reason: str, detail: str | None = None, method: Any = None
) -> Broken:
    data = {"reason": reason} if detail is None else {"reason": reason, "detail": detail}
    return Broken(
        error_line(message_id, code, text, data),
        method if type(method) is str else None,
        detail or reason,
    )
