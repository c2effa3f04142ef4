"""Lines and framing of call-proof.md 4.2."""
# ruff: noqa: E501 - a table of broken lines reads best with one a line

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.wire import LineSplitter, Request, RpcError, error_line, read_line, result_line


def answer(line: bytes) -> dict:
    got = read_line(line)
    assert isinstance(got, bytes)
    assert got.endswith(b"\n")
    return json.loads(got)


class TestReadLine:
    def test_request(self):
        """A request comes back with id, method, params and facts; unknown members change nothing."""
        got = read_line(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1.5},"more":[]}\r')
        assert isinstance(got, Request)
        assert (got.id, got.method, got.params, got.facts.floats) == ("a", "m", {"x": 1.5}, True)

    def test_notification(self):
        """A notification is ignored."""
        assert read_line(b'{"jsonrpc":"2.0","method":"m"}') is None

    @pytest.mark.req("CP-103", "CP-104")
    @pytest.mark.parametrize(
        ("line", "id_", "code", "reason", "detail"),
        [
            (b"", None, -32700, "parse_error", "syntax"),
            (b"\r", None, -32700, "parse_error", "syntax"),
            (b"hello", None, -32700, "parse_error", "syntax"),
            (b'{"jsonrpc":"2.0","id":1,"method":"m"', None, -32700, "parse_error", "syntax"),
            (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}', None, -32700, "parse_error", "bom"),
            (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', None, -32700, "parse_error", "not_utf8"),
            (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}', None, -32700, "parse_error", "syntax"),
            (b"[]", None, -32600, "invalid_request", None),
            (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', None, -32600, "invalid_request", None),
            (b"7", None, -32600, "invalid_request", None),
            (b"{}", None, -32600, "invalid_request", "id"),
            (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None, -32600, "invalid_request", "id"),
            (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None, -32600, "invalid_request", "id"),
            (b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', None, -32600, "invalid_request", "id"),
            (b'{"jsonrpc":"2.0","id":[1],"method":"m"}', None, -32600, "invalid_request", "id"),
            (b'{"id":3,"method":"m"}', 3, -32600, "invalid_request", None),
            (b'{"jsonrpc":"1.0","id":3,"method":"m"}', 3, -32600, "invalid_request", None),
            (b'{"jsonrpc":"2.0","id":3}', 3, -32600, "invalid_request", None),
            (b'{"jsonrpc":"2.0","id":3,"method":7}', 3, -32600, "invalid_request", None),
            (b'{"jsonrpc":"2.0","id":3,"method":"m","params":[]}', 3, -32602, "invalid_params", "params"),
            (b'{"jsonrpc":"2.0","id":3,"method":"m","params":null}', 3, -32602, "invalid_params", "params"),
            (b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":1,"a":1}}', 4, -32600, "invalid_request", "duplicate"),
            (b'{"jsonrpc":"2.0","id":"i","method":"x","params":{"a":1e400}}', "i", -32600, "invalid_request", "nonfinite"),
            (b'{"jsonrpc":"2.0","id":5,"method":"callProof/issue","params":{"a":1,"a":1}}', 5, -32602, "invalid_arguments", "duplicate"),
            (b'{"jsonrpc":"2.0","id":5,"method":"callProof/issue","params":{"a":"\\ud800"}}', 5, -32602, "invalid_arguments", "surrogate"),
            (b'{"jsonrpc":"2.0","id":5,"method":"callProof/issue","params":{"a":9007199254740993}}', 5, -32602, "invalid_arguments", "unsafe_integer"),
            (b'{"jsonrpc":"2.0","id":6,"method":"x","params":{"a":' + b"[" * 70 + b"]" * 70 + b"}}", 6, -32600, "invalid_request", "depth"),
            (b'{"jsonrpc":"2.0","id":99999999999999999999999,"method":"x"}', None, -32600, "invalid_request", "unsafe_integer"),
        ],
    )  # fmt: skip
    def test_broken_lines_are_answered(self, line, id_, code, reason, detail):
        """Every broken line has an answer with code, reason and class, and its id whenever it can be found."""
        got = answer(line)
        data = got["error"]["data"]
        assert (got["id"], got["error"]["code"], data["reason"], data.get("detail")) == (
            id_,
            code,
            reason,
            detail,
        )

    def test_recursion_in_recovery(self):
        """A line too deep even for the lenient reader is answered with id null."""
        assert answer(b'{"id":1,"a":' + b"[" * 200_000)["id"] is None

    @given(st.binary(max_size=120))
    def test_any_line(self, line):
        """Any bytes give a request, an answer line or a notification."""
        got = read_line(line.replace(b"\n", b""))
        assert got is None or isinstance(got, Request) or json.loads(got)["error"]


class TestAnswers:
    def test_lines(self):
        """Answers are single lines of JSON-RPC 2.0."""
        assert json.loads(result_line(1, {"a": "\n"})) == {"jsonrpc": "2.0", "id": 1, "result": {"a": "\n"}}
        assert result_line(1, "\n").count(b"\n") == 1
        assert "data" not in json.loads(error_line(None, -1, "m"))["error"]

    @pytest.mark.req("CP-129")
    @pytest.mark.parametrize(
        "spelled", ["authority_unreachable", "Authority-Unreachable", "AUTHORITY UNREACHABLE"]
    )
    def test_reason_is_folded(self, spelled):
        """Receivers fold case, hyphen and blank before they branch on a reason."""
        assert RpcError(-32021, "m", {"reason": spelled}).reason == "authority_unreachable"

    def test_reason_may_be_missing(self):
        """An error without data has no reason and a code of its own."""
        error = RpcError(-32601, "Method not found", None)
        assert (error.reason, error.code) == (None, "rpc-error")


class TestLineSplitter:
    @given(
        st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.integers(1, 30)
    )
    def test_any_chunks(self, lines, size):
        """However a stream is cut into chunks, the same lines come out and the rest stays pending."""
        stream = b"".join(line + b"\n" for line in lines) + b"rest"
        splitter = LineSplitter(1000)
        got = []
        for start in range(0, len(stream), size):
            got += splitter.feed(stream[start : start + size])
        assert got == lines
        assert splitter.pending == b"rest"

    @pytest.mark.parametrize("chunk", [1, 3, 1000])
    def test_limit_includes_the_line_feed(self, chunk):
        """A line of exactly the limit with its LF passes; one byte more is an overflow and nothing follows it."""
        for length, overflow in ((9, False), (10, True)):
            splitter = LineSplitter(10)
            stream = b"ok\n" + b"x" * length + b"\nlater\n"
            got = []
            for start in range(0, len(stream), chunk):
                got += splitter.feed(stream[start : start + chunk])
            assert splitter.overflow is overflow
            assert got == ([b"ok"] if overflow else [b"ok", b"x" * 9, b"later"])

    def test_overflow_without_line_feed(self):
        """A stream without LF overflows as soon as the limit is reached, so memory stays bounded."""
        splitter = LineSplitter(10)
        splitter.feed(b"x" * 9)
        assert not splitter.overflow
        splitter.feed(b"x")
        assert splitter.overflow
        assert splitter.pending == b""
