"""The lean server answers both eras as the revisions ask, and answers every request."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.examples.stdio import MAX_LINE_BYTES, Tool, ToolError, ToolServer

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["text"],
}


def shout(arguments):
    if arguments["text"] == "fail":
        raise ToolError("could not")
    if arguments["text"] == "fault":
        raise RuntimeError("secret detail")
    return arguments["text"].upper() * arguments.get("times", 1)


@pytest.fixture
def server():
    return ToolServer("shouter", "2.0", [Tool("shout", "Shouts.", SCHEMA, shout, {"readOnlyHint": True})])


def ask(server, method, params=None, *, identifier=1):
    message = {"jsonrpc": "2.0", "id": identifier, "method": method}
    if params is not None:
        message["params"] = params
    answer = json.loads(server.answer(json.dumps(message).encode() + b"\n"))
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == identifier
    return answer


def modern(server, method, **params):
    return ask(server, method, {**params, "_meta": ENVELOPE})


@pytest.fixture
def legacy(server):
    ask(server, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
    assert server.answer(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n') is None
    return server


class TestLegacy:
    @pytest.mark.parametrize(
        ("asked", "answered"),
        [("2025-11-25", "2025-11-25"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")],
    )
    def test_initialize(self, server, asked, answered):
        """A known version is taken, an unknown one is answered with the newest; the server names itself."""
        result = ask(server, "initialize", {"protocolVersion": asked})["result"]
        assert result == {
            "protocolVersion": answered,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shouter", "version": "2.0"},
        }

    def test_list_and_call(self, legacy):
        """Results have the legacy form, without resultType."""
        tools = ask(legacy, "tools/list")["result"]
        assert [tool["name"] for tool in tools["tools"]] == ["shout"]
        assert tools["tools"][0]["inputSchema"] == SCHEMA
        result = ask(legacy, "tools/call", {"name": "shout", "arguments": {"text": "hey", "times": 2}})[
            "result"
        ]
        assert result == {"content": [{"type": "text", "text": "HEYHEY"}], "isError": False}

    def test_ping_always(self, server):
        """Ping is answered before initialize."""
        assert ask(server, "ping")["result"] == {}

    @pytest.mark.parametrize("method", ["tools/list", "tools/call"])
    def test_before_initialize(self, server, method):
        """Nothing else is."""
        assert ask(server, method)["error"]["code"] == -32600

    def test_initialize_twice(self, legacy):
        """A second handshake is refused."""
        assert ask(legacy, "initialize", {"protocolVersion": "2025-11-25"})["error"]["code"] == -32600

    def test_modern_request_later(self, legacy):
        """A connection that began with a handshake stays in its era."""
        assert modern(legacy, "tools/list")["error"]["code"] == -32600


class TestModern:
    def test_discover(self, server):
        """server/discover says versions and capabilities; serverInfo stands in _meta."""
        result = modern(server, "server/discover")["result"]
        assert result["supportedVersions"] == ["2026-07-28"]
        assert result["capabilities"] == {"tools": {}}
        assert result["resultType"] == "complete"
        assert result["_meta"] == {
            "io.modelcontextprotocol/serverInfo": {"name": "shouter", "version": "2.0"}
        }

    def test_call_without_discover(self, server):
        """Each request stands alone, so a call may come first."""
        result = modern(server, "tools/call", name="shout", arguments={"text": "hey"})["result"]
        assert (result["resultType"], result["content"][0]["text"]) == ("complete", "HEY")
        assert "ttlMs" not in result

    def test_list(self, server):
        """A list that may be cached says for how long."""
        result = modern(server, "tools/list")["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")

    @pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
    def test_envelope_is_required(self, server, missing):
        """A request without one of the two required members is -32602."""
        meta = {key: value for key, value in ENVELOPE.items() if not key.endswith(missing)}
        assert ask(server, "server/discover", {"_meta": meta})["error"]["code"] == -32602

    def test_unknown_version(self, server):
        """-32022 with what is supported."""
        meta = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        error = ask(server, "tools/list", {"_meta": meta})["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}

    def test_refused_probe_leaves_the_era_open(self, server):
        """After -32022 a client may fall back to initialize."""
        meta = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        ask(server, "server/discover", {"_meta": meta})
        assert "result" in ask(server, "initialize", {"protocolVersion": "2025-11-25"})

    def test_initialize_later(self, server):
        """A handshake after a modern request is -32022, the evidence that clients look for."""
        modern(server, "server/discover")
        error = ask(server, "initialize", {"protocolVersion": "2025-11-25"})["error"]
        assert (error["code"], error["data"]) == (-32022, {"supported": ["2026-07-28"]})

    def test_no_ping(self, server):
        """Ping was removed."""
        assert modern(server, "ping")["error"]["code"] == -32601


class TestCalls:
    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"text": 7},
            {"text": None},
            {"text": "a", "times": True},
            {"text": "a", "times": "2"},
            {"text": "a", "times": 2.5},
        ],
    )
    def test_argument_values(self, legacy, arguments):
        """A missing or mistyped argument is an isError result; nothing is coerced."""
        assert (
            ask(legacy, "tools/call", {"name": "shout", "arguments": arguments})["result"]["isError"] is True
        )

    @pytest.mark.parametrize(
        "params",
        [
            {"name": "whisper"},
            {"name": 7},
            {},
            {"name": "shout", "arguments": None},
            {"name": "shout", "arguments": []},
        ],
    )
    def test_malformed(self, legacy, params):
        """An unknown tool or a malformed request is -32602."""
        assert ask(legacy, "tools/call", params)["error"]["code"] == -32602

    def test_failure(self, legacy):
        """A tool that could not says so in the result."""
        result = ask(legacy, "tools/call", {"name": "shout", "arguments": {"text": "fail"}})["result"]
        assert result == {"content": [{"type": "text", "text": "could not"}], "isError": True}

    def test_fault(self, legacy):
        """A fault in a tool is answered without its text, and the server lives on."""
        error = ask(legacy, "tools/call", {"name": "shout", "arguments": {"text": "fault"}})["error"]
        assert error["code"] == -32603
        assert "secret" not in error["message"]
        assert "result" in ask(legacy, "tools/call", {"name": "shout", "arguments": {"text": "hey"}})

    def test_cursor(self, legacy):
        """There is one page."""
        assert ask(legacy, "tools/list", {"cursor": "2"})["error"]["code"] == -32602


class TestLines:
    @pytest.mark.parametrize(
        ("line", "code", "identifier"),
        [
            (b"hello\n", -32700, None),
            (b"\xff\n", -32700, None),
            (b"\xef\xbb\xbf{}\n", -32700, None),
            (b"[" * 100_000 + b"\n", -32700, None),
            (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600, None),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, None),
            (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}\n', -32600, None),
            (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', -32600, None),
            (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1,"a":2}}\n', -32600, 5),
            (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":NaN}}\n', -32600, 5),
            (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}\n', -32602, 5),
            (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"_meta":1}}\n', -32602, 5),
            (b'{"jsonrpc":"1.0","id":5,"method":"ping"}\n', -32600, 5),
            (b'{"jsonrpc":"2.0","id":5,"method":7}\n', -32600, 5),
            (b'{"jsonrpc":"2.0","id":5,"method":"prompts/list"}\n', -32600, 5),
        ],
    )
    def test_broken(self, server, line, code, identifier):
        """Each broken line is answered, with its id where it has a usable one."""
        answer = json.loads(server.answer(line))
        assert (answer["error"]["code"], answer["id"]) == (code, identifier)

    @pytest.mark.parametrize(
        "line",
        [
            b"\n",
            b"  \r\n",
            b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
            b'{"jsonrpc":"2.0","method":"tools/call"}\n',
        ],
    )
    def test_unanswered(self, legacy, line):
        """Blank lines, responses and notifications, a tools/call among them, do nothing."""
        assert legacy.answer(line) is None

    def test_too_long(self, server):
        """A line over the limit is answered once and skipped whole; the next one works."""
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        output = io.BytesIO()
        server.serve(io.BytesIO(b" " * (3 * MAX_LINE_BYTES) + ping + ping), output)
        answers = [json.loads(line) for line in output.getvalue().splitlines()]
        assert [answer.get("error", {}).get("code") for answer in answers] == [-32600, None]

    def test_longest(self, server):
        """A line of exactly the limit is read."""
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        output = io.BytesIO()
        server.serve(io.BytesIO(ping + b" " * (MAX_LINE_BYTES - len(ping) - 1) + b"\n"), output)
        assert json.loads(output.getvalue())["result"] == {}

    def test_surrogate(self, legacy):
        """A lone surrogate escape is answered, and the answer is ASCII."""
        line = rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout",'
        line += rb'"arguments":{"text":"\ud800"}}}'
        assert b"\\ud800" in legacy.answer(line)

    @given(st.binary(max_size=200))
    def test_any_bytes(self, line):
        """Whatever comes, the answer is one line of JSON or nothing."""
        answer = ToolServer("shouter", "2.0", []).answer(line)
        assert answer is None or (answer.endswith(b"\n") and answer.count(b"\n") == 1 and json.loads(answer))
