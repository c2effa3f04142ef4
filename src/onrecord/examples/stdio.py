"""A lean MCP tool server over stdio for both eras of the protocol, with the standard library alone.

It stands for the many servers in the world that know nothing of onrecord, and it starts in a few milliseconds.
What it lacks on purpose: resources, prompts, tasks, progress, subscriptions. Calls run one after the other.

>>> hello = Tool("hello", "Greets.", {"type": "object", "properties": {}}, lambda arguments: "Good day.")
>>> server = ToolServer("greeter", "1.0.0", [hello])
>>> import json
>>> json.loads(server.answer(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'))["result"]
{}

Source: MCP revisions 2025-11-25 and 2026-07-28; mcp.md 1, 2 and 3.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

LEGACY_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions with a handshake, newest first. An unknown one is answered with the newest."""

MODERN_VERSIONS: Final = ("2026-07-28",)
"""Versions in which each request stands alone."""

MAX_LINE_BYTES: Final = 1 << 20
"""A longer line is refused and skipped, so that no client can fill our memory."""

META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNSUPPORTED_VERSION: Final = -32022


class ToolError(Exception):
    """The tool ran and could not do it: an `isError` result with this text."""


class _RefusalError(Exception):
    """A JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({"data": dict(data)} if data else {})


@dataclass(frozen=True)
class Tool:
    """One tool: what `tools/list` says about it, and the function that does it.

    `run` gets arguments whose names and types fit the `required` and `properties` of `input_schema`; it returns
    the text of the result or raises `ToolError`.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], str]
    annotations: Mapping[str, bool] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `tools/list`."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
            "annotations": dict(self.annotations),
        }


class ToolServer:
    """Answers lines. One object serves one connection, because the first request fixes its era."""

    def __init__(self, name: str, version: str, tools: Iterable[Tool]) -> None:
        self._info = {"name": name, "version": version}
        self._tools = {tool.name: tool for tool in tools}
        self._is_modern: bool | None = None

    def serve(self, reader: BinaryIO, writer: BinaryIO) -> None:
        """Answer line after line until the reader ends or nobody reads the answers."""
        try:
            while line := reader.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    while line and not line.endswith(b"\n"):
                        line = reader.readline(MAX_LINE_BYTES)
                    answer: bytes | None = _error(
                        None, _RefusalError(INVALID_REQUEST, "The line is too long")
                    )
                else:
                    answer = self.answer(line)
                if answer is not None:
                    writer.write(answer)
                    writer.flush()
        except BrokenPipeError:
            return

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to one line with its line feed, or None for what wants no answer."""
        text = line.strip()
        if not text:
            return None
        try:
            message = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        except _RefusalError as refusal:
            return _error(_lenient_id(text), refusal)
        except (ValueError, RecursionError):
            return _error(None, _RefusalError(PARSE_ERROR, "Parse error"))
        if not isinstance(message, dict):
            return _error(None, _RefusalError(INVALID_REQUEST, "A message is one JSON object"))
        if "method" not in message or "id" not in message:
            # A notification, or a response to a request that we never send.
            return None
        identifier = message["id"]
        if isinstance(identifier, bool) or not isinstance(identifier, int | str):
            return _error(None, _RefusalError(INVALID_REQUEST, "The id is a string or an integer"))
        try:
            result = self._result(message)
        except _RefusalError as refusal:
            return _error(identifier, refusal)
        return _line({"jsonrpc": "2.0", "id": identifier, "result": result})

    def _result(self, message: Mapping[str, Any]) -> dict[str, Any]:
        method, params = message["method"], message.get("params", {})
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            raise _RefusalError(INVALID_REQUEST, "Not a JSON-RPC 2.0 request")
        if not isinstance(params, dict):
            raise _RefusalError(INVALID_PARAMS, "params is an object")
        meta = params.get("_meta", {})
        if not isinstance(meta, dict):
            raise _RefusalError(INVALID_PARAMS, "_meta is an object")
        if META_VERSION in meta or method == "server/discover" or self._is_modern:
            return self._modern(method, params, meta)
        return self._legacy(method, params)

    def _modern(self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_modern is False:
            raise _RefusalError(INVALID_REQUEST, "This connection began with initialize")
        if method == "initialize":
            supported = {"supported": list(MODERN_VERSIONS)}
            raise _RefusalError(UNSUPPORTED_VERSION, "This connection began without initialize", supported)
        version = meta.get(META_VERSION)
        if not isinstance(version, str) or not isinstance(meta.get(META_CAPABILITIES), dict):
            raise _RefusalError(INVALID_PARAMS, f"_meta needs {META_VERSION} and {META_CAPABILITIES}")
        if version not in MODERN_VERSIONS:
            data = {"supported": list(MODERN_VERSIONS), "requested": version[:64]}
            raise _RefusalError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        self._is_modern = True
        result = {"resultType": "complete", "_meta": {META_SERVER: self._info}}
        if method == "tools/call":
            return result | self._call(params)
        # ttlMs and cacheScope are required where a client may keep the answer: not at all, here.
        cached = result | {"ttlMs": 0, "cacheScope": "private"}
        if method == "server/discover":
            return cached | {"supportedVersions": list(MODERN_VERSIONS), "capabilities": {"tools": {}}}
        if method == "tools/list":
            return cached | self._list(params)
        raise _RefusalError(METHOD_NOT_FOUND, "Method not found")

    def _legacy(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "ping":
            return {}
        if method == "initialize":
            return self._initialize(params)
        if self._is_modern is None:
            raise _RefusalError(
                INVALID_REQUEST, "Neither initialize nor a protocol version in _meta came before"
            )
        if method == "tools/list":
            return self._list(params)
        if method == "tools/call":
            return self._call(params)
        raise _RefusalError(METHOD_NOT_FOUND, "Method not found")

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_modern is not None:
            raise _RefusalError(INVALID_REQUEST, "initialize comes once")
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            raise _RefusalError(INVALID_PARAMS, "protocolVersion is a string")
        self._is_modern = False
        return {
            "protocolVersion": version if version in LEGACY_VERSIONS else LEGACY_VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": self._info,
        }

    def _list(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if params.get("cursor") is not None:
            raise _RefusalError(INVALID_PARAMS, "All tools are on the first page")
        return {"tools": [tool.to_json() for tool in self._tools.values()]}

    def _call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise _RefusalError(INVALID_PARAMS, "tools/call needs a name and, if any, an object of arguments")
        tool = self._tools.get(name)
        if tool is None:
            raise _RefusalError(INVALID_PARAMS, "Unknown tool")
        failed = False
        try:
            text = tool.run(_checked(tool.input_schema, arguments))
        except ToolError as failure:
            text, failed = str(failure), True
        except Exception as fault:
            # The server lives on and the caller gets an answer; what the fault says may hold anything.
            raise _RefusalError(INTERNAL_ERROR, f"Internal error ({type(fault).__name__})") from fault
        return {"content": [{"type": "text", "text": text}], "isError": failed}


def _checked(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments that the schema names, types checked. Others are ignored, as most servers do."""
    types: Mapping[str, type] = {"string": str, "integer": int}
    wanted: dict[str, Any] = {}
    for name, member in schema["properties"].items():
        if name not in arguments:
            if name in schema.get("required", ()):
                raise ToolError(f"The argument {name} is missing")
            continue
        value = arguments[name]
        if isinstance(value, bool) or not isinstance(value, types[member["type"]]):
            raise ToolError(f"The argument {name} is of type {member['type']}")
        wanted[name] = value
    return wanted


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RefusalError(INVALID_REQUEST, "A member occurs twice")
    return members


def _no_constant(_: str) -> None:
    raise _RefusalError(INVALID_REQUEST, "NaN and Infinity are not JSON")


def _lenient_id(text: bytes) -> str | int | None:
    """Find the id of a line that is JSON but breaks our rules, so that its sender does not wait for ever."""
    try:
        identifier = json.loads(text)["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return identifier if isinstance(identifier, str | int) and not isinstance(identifier, bool) else None


def _error(identifier: str | int | None, refusal: _RefusalError) -> bytes:
    return _line({"jsonrpc": "2.0", "id": identifier, "error": refusal.error})


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
