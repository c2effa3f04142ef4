"""Strict reading of MCP lines, and the answers for broken ones."""

import doctest

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.guard import reading
from onrecord.authorize.guard.lines import Overlong
from onrecord.authorize.guard.reading import (
    MAX_VALUES,
    Broken,
    Call,
    Message,
    read_call,
    read_message,
    recover_id,
)


def answer(line):
    """Return id, code, reason and detail of the answer to a broken line."""
    broken = read_message(line)
    assert isinstance(broken, Broken)
    message = orjson.loads(broken.answer)
    data = message["error"]["data"]
    return message["id"], message["error"]["code"], data["reason"], data.get("detail")


@pytest.mark.req("CP-103", "CP-104")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"not json", (None, -32700, "parse_error", "syntax")),
        (b"\xef\xbb\xbf" + b'{"jsonrpc":"2.0","id":1,"method":"ping"}', (None, -32700, "parse_error", "bom")),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', (None, -32700, "parse_error", "not_utf8")),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', (None, -32600, "invalid_request", "not_object")),
        (b"42", (None, -32600, "invalid_request", "not_object")),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/call"}', (None, -32600, "invalid_request", "id")),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"tools/call"}', (None, -32600, "invalid_request", "id")),
        (b'{"jsonrpc":"2.0","id":true,"method":"tools/call"}', (None, -32600, "invalid_request", "id")),
        (b'{"jsonrpc":"2.0","id":[],"method":"tools/call"}', (None, -32600, "invalid_request", "id")),
        (b'{"jsonrpc":"2.0","id":"a","id":"b","method":"ping"}', ("b", -32600, "invalid_request", "duplicate")),
        (b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":NaN}}', (None, -32700, "parse_error", "syntax")),
        (b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":1e400}}', (5, -32600, "invalid_request", "nonfinite")),
        (b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":9007199254740992}}', (5, -32600, "invalid_request", "unsafe_integer")),  # noqa: E501
        (b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":' + b"9" * 5000 + b"}}", (5, -32600, "invalid_request", "unsafe_integer")),  # noqa: E501
        (b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":"\\ud800"}}', (5, -32600, "invalid_request", "surrogate")),  # noqa: E501
        (b'{"jsonrpc":"2.0","id":"five","method":"x","params":' + b"[" * 300 + b"]" * 300 + b"}", ("five", -32600, "invalid_request", "depth")),  # noqa: E501
        (b'{"jsonrpc":"2.0","params":' + b"[" * 9999 + b"]" * 9999 + b',"id":5}', (5, -32600, "invalid_request", "depth")),  # noqa: E501
        (b'{"jsonrpc":"1.0","id":5,"method":"x"}', (5, -32600, "invalid_request", "jsonrpc")),
        (b'{"id":5,"method":"x"}', (5, -32600, "invalid_request", "jsonrpc")),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', (5, -32600, "invalid_request", "method")),
        (b'{"jsonrpc":"2.0","id":5}', (5, -32600, "invalid_request", "method")),
        (b'{"jsonrpc":"2.0","id":5,"method":"x","result":{}}', (5, -32600, "invalid_request", "member_name")),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","Method":"tools/call"}', (5, -32600, "invalid_request", "member_name")),  # noqa: E501
        ('{"jsonrpc":"2.0","id":5,"method":"ping","paramſ":{}}'.encode(), (5, -32600, "invalid_request", "member_name")),  # noqa: E501, RUF001
        (Overlong(b'{"jsonrpc":"2.0","id":5,"method":"x","par', 1 << 25), (5, -32600, "too_large", None)),
    ],
)  # fmt: skip
def test_each_broken_line_is_answered(line, expected):
    """A line that cannot be trusted gets one answer, with its id wherever the line is JSON."""
    assert answer(line) == expected


@pytest.mark.parametrize("line", [b"", b"\r", b"  "])
def test_a_blank_line_says_nothing(line):
    """Blank lines are neither messages nor broken."""
    assert read_message(line) is None


def test_a_carriage_return_before_the_line_feed_is_white_space():
    """CRLF clients work."""
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r'), Message)


def test_an_answer_of_the_client_passes():
    """Answers to questions of the server are messages; so is an error with id null."""
    assert read_message(b'{"jsonrpc":"2.0","id":"s-1","result":{}}').method is None
    assert read_message(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}').id is None


def call_of(params, limit=1 << 20):
    line = orjson.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    return read_call(read_message(line), line_bytes=len(line) + 1, limit_bytes=limit)


@pytest.mark.req("CP-036")
@pytest.mark.parametrize(
    ("params", "detail"),
    [
        (None, "params"),
        ([], "params"),
        ({}, "name"),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "é" * 129}, "name"),
        *[({"name": "t", "arguments": value}, "not_object") for value in (None, [], "x", 1, True)],
        ({"name": "t", "_meta": None}, "_meta"),
        ({"name": "t", "_meta": []}, "_meta"),
        ({"name": "t", "inputResponses": None}, "inputResponses"),
        ({"name": "t", "requestState": 5}, "requestState"),
        ({"name": "t", "Name": "u"}, "member_name"),
        ({"name": "t", "ARGUMENTS": {}}, "member_name"),
        ({"name": "t", "inputresponses": {}}, "member_name"),
        ({"name": "t", "input_responses": {}}, "member_name"),
        ({"name": "t", "Request_State": "st"}, "member_name"),
    ],
)
def test_a_call_that_is_none_is_refused(params, detail):
    """Nothing is read as something that it is not: -32602, with the id."""
    broken = call_of(params)
    assert isinstance(broken, Broken)
    message = orjson.loads(broken.answer)
    assert (message["id"], message["error"]["code"]) == (5, -32602)
    assert message["error"]["data"] == {"reason": "invalid_params", "detail": detail}


@pytest.mark.req("CP-023")
@pytest.mark.parametrize("params", [{"name": "t"}, {"name": "t", "arguments": {}}])
def test_a_call_without_arguments_is_a_call(params):
    """Absent and empty arguments are both an empty object."""
    call = call_of(params)
    assert isinstance(call, Call)
    assert call.arguments == {}


def test_unknown_members_of_params_pass():
    """`task`, and what later revisions add, is no reason to refuse."""
    assert isinstance(call_of({"name": "t", "task": {"ttl": 1}, "other": 1}), Call)


def test_a_call_over_the_limit_is_too_large():
    """A tools/call above its own limit is refused though other lines may be longer."""
    size = len(orjson.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t"}})) + 1
    assert isinstance(call_of({"name": "t"}, limit=size), Call)
    broken = call_of({"name": "t"}, limit=size - 1)
    assert orjson.loads(broken.answer)["error"]["code"] == -32600


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    """Whatever a client sends, reading ends with a message, an answer, or nothing for a blank line."""
    read = read_message(data)
    assert isinstance(read, (Message, Broken)) or (read is None and not data.strip())
    recover_id(data)


@given(st.text(max_size=20), st.lists(st.text(max_size=5), max_size=4))
def test_recovery_finds_the_top_level_id_only(found, names):
    """The id of a cut or deep line is found, and never one inside of params or of a string."""
    inner = {name: {"id": "inner", "x": '"id":"no"'} for name in names}
    line = orjson.dumps({"params": inner, "id": found, "z": [inner]})
    assert recover_id(line) == found
    assert recover_id(line[:-1]) == found


@pytest.mark.parametrize("line", [b'{"id":5,"' + b'\\"' * (1 << 21), b"[" * 100 + b'"' + b'\\"' * (1 << 21)])
def test_quotes_without_end_are_one_token(line):
    """Looking for an id takes one pass: with one pass for each quote, a single line would stop a guard for hours."""
    assert recover_id(line) == (5 if line.startswith(b"{") else None)
    assert isinstance(read_message(line), Broken)


def test_the_search_for_an_id_is_bounded():
    """A line of nothing but tokens is looked at as far as the bound says."""
    padding = b'"x":0,' * (reading.MAX_TOKENS // 4)
    assert recover_id(b"{" + padding[:-6] + b'"id":5,') == 5
    assert recover_id(b"{" + padding * 2 + b'"id":5,') is None


def test_examples():
    """The example of the module runs."""
    assert doctest.testmod(reading).failed == 0


HEAD = b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":['


@pytest.mark.parametrize("value", [b"1", b"[]", b'""', b'{"a":1}', b'",:[{"'])
def test_a_line_of_too_many_values_is_refused(value):
    """Reading it would hold up every other client; its id stands in front, so it is answered."""
    broken = read_message(HEAD + b",".join([value] * (MAX_VALUES + 1)) + b"]}}")
    assert isinstance(broken, Broken)
    assert orjson.loads(broken.answer)["id"] == 5
    assert broken.reason == "values"


@pytest.mark.parametrize("text", [b",", b"[", b'\\"', b":{"])
def test_a_long_text_is_one_value(text):
    """Whatever it is full of: a file in an answer, for instance."""
    message = read_message(HEAD + b'"' + text * (MAX_VALUES + 1) + b'"]}}')
    assert isinstance(message, Message)


def test_many_values_are_read():
    """Below the limit a long line is a line like any other."""
    message = read_message(HEAD + b",".join([b"1234"] * (MAX_VALUES - 10)) + b"]}}")
    assert isinstance(message, Message)
