"""A lean MCP tool server over stdio for both eras of the protocol, with the standard library alone.

It stands for the many servers in the world that know nothing of onrecord, and it starts in a few milliseconds.
What it lacks on purpose: resources, prompts, progress, subscriptions. Calls run one after the other; a tool may ask
the user something first, and may work as a task where the client can follow one.

>>> hello = Tool("hello", "Greets.", {"type": "object", "properties": {}}, lambda arguments: "Good day.")
>>> server = ToolServer("greeter", "1.0.0", [hello])
>>> import json
>>> json.loads(server.answer(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'))["result"]
{}

Source: MCP revisions 2025-11-25 and 2026-07-28; mcp.md 1, 2 and 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final

from onrecord.examples.asking import TASKS_EXTENSION, CallSeal, Question, Tasks, ToolError
from onrecord.examples.wire import (
    CAPABILITY_MISSING,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RefusalError,
    error_line,
    lenient_id,
    line_of,
    read,
)

LEGACY_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions with a handshake, newest first. An unknown one is answered with the newest."""

MODERN_VERSIONS: Final = ("2026-07-28",)
"""Versions in which each request stands alone."""

MAX_LINE_BYTES: Final = 1 << 20
"""A longer line is refused and skipped, so that no client can fill our memory."""

META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"

MAX_QUESTIONS: Final = 16
"""Questions to a client that may be open at once."""


@dataclass(frozen=True)
class Tool:
    """One tool: what `tools/list` says about it, and the function that does it.

    `run` gets arguments whose names and types fit the `required` and `properties` of `input_schema`; it returns
    the text of the result or raises `ToolError`. With `question` the client's user is asked first, and `run` finds
    the answer among the arguments. With `is_task` the call is answered at once and goes on as a task, if the client
    can follow tasks.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], str]
    annotations: Mapping[str, bool] = field(default_factory=dict)
    question: Callable[[Mapping[str, Any]], Question] | None = None
    is_task: bool = False

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

    def __init__(
        self, name: str, version: str, tools: Iterable[Tool], *, tasks: Callable[[], Tasks] = Tasks
    ) -> None:
        self._info = {"name": name, "version": version}
        self._tools = {tool.name: tool for tool in tools}
        self._tasks = tasks()
        self._seal = CallSeal()
        self._is_modern: bool | None = None
        self._can_ask = False
        self._questions: dict[str, _Asking] = {}
        self._question_count = 0

    def serve(self, reader: BinaryIO, writer: BinaryIO) -> None:
        """Answer line after line until the reader ends or nobody reads the answers."""
        try:
            while line := reader.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    while line and not line.endswith(b"\n"):
                        line = reader.readline(MAX_LINE_BYTES)
                    answer: bytes | None = error_line(
                        None, RefusalError(INVALID_REQUEST, "The line is too long")
                    )
                else:
                    answer = self.answer(line)
                if answer is not None:
                    writer.write(answer)
                    writer.flush()
        except BrokenPipeError:
            return
        finally:
            self._tasks.close()

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to one line with its line feed, or None for what wants no answer.

        The answer to a call may be a question, and that to an answer of the client the result of its call.
        """
        text = line.strip()
        if not text:
            return None
        try:
            message = read(text)
        except RefusalError as refusal:
            return error_line(lenient_id(text), refusal)
        except (ValueError, RecursionError):
            return error_line(None, RefusalError(PARSE_ERROR, "Parse error"))
        if not isinstance(message, dict):
            return error_line(None, RefusalError(INVALID_REQUEST, "A message is one JSON object"))
        if "method" not in message:
            return self._answered(message)
        if "id" not in message:
            self._noticed(message)
            return None
        identifier = message["id"]
        if isinstance(identifier, bool) or not isinstance(identifier, int | str):
            return error_line(None, RefusalError(INVALID_REQUEST, "The id is a string or an integer"))
        try:
            result = self._result(message)
        except RefusalError as refusal:
            return error_line(identifier, refusal)
        if isinstance(result, _Asking):
            return self._ask(identifier, result)
        return line_of({"jsonrpc": "2.0", "id": identifier, "result": result})

    def _noticed(self, message: Mapping[str, Any]) -> None:
        """Forget the question of a call that the client has cancelled."""
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            for key, asking in self._questions.items():
                if asking.call_id == params.get("requestId"):
                    del self._questions[key]
                    return

    def _ask(self, call_id: str | int, asking: _Asking) -> bytes:
        """Return a request of our own in the place of an answer that has to wait."""
        if len(self._questions) >= MAX_QUESTIONS:
            return error_line(call_id, RefusalError(INTERNAL_ERROR, "Too many questions are open"))
        self._question_count += 1
        key = f"question-{self._question_count}"
        self._questions[key] = replace(asking, call_id=call_id)
        return line_of({"jsonrpc": "2.0", "id": key, **asking.question.request()})

    def _answered(self, message: Mapping[str, Any]) -> bytes | None:
        """Run the call that has waited for this answer of the client, if there is one."""
        key = message.get("id")
        asking = self._questions.pop(key, None) if isinstance(key, str) else None
        if asking is None:
            return None
        assert asking.call_id is not None
        try:
            result = self._run(asking.tool, asking.arguments, asking.question, message.get("result"))
        except RefusalError as refusal:
            return error_line(asking.call_id, refusal)
        return line_of({"jsonrpc": "2.0", "id": asking.call_id, "result": result})

    def _result(self, message: Mapping[str, Any]) -> dict[str, Any] | _Asking:
        method, params = message["method"], message.get("params", {})
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            raise RefusalError(INVALID_REQUEST, "Not a JSON-RPC 2.0 request")
        if not isinstance(params, dict):
            raise RefusalError(INVALID_PARAMS, "params is an object")
        meta = params.get("_meta", {})
        if not isinstance(meta, dict):
            raise RefusalError(INVALID_PARAMS, "_meta is an object")
        if META_VERSION in meta or method == "server/discover" or self._is_modern:
            return self._modern(method, params, meta)
        return self._legacy(method, params)

    def _modern(self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_modern is False:
            raise RefusalError(INVALID_REQUEST, "This connection began with initialize")
        if method == "initialize":
            supported = {"supported": list(MODERN_VERSIONS)}
            raise RefusalError(UNSUPPORTED_VERSION, "This connection began without initialize", supported)
        version = meta.get(META_VERSION)
        if not isinstance(version, str) or not isinstance(meta.get(META_CAPABILITIES), dict):
            raise RefusalError(INVALID_PARAMS, f"_meta needs {META_VERSION} and {META_CAPABILITIES}")
        if version not in MODERN_VERSIONS:
            data = {"supported": list(MODERN_VERSIONS), "requested": version[:64]}
            raise RefusalError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        self._is_modern = True
        result = {"resultType": "complete", "_meta": {META_SERVER: self._info}}
        if method == "tools/call":
            return result | self._modern_call(params, meta[META_CAPABILITIES])
        if method.startswith("tasks/"):
            return result | self._task(method, params, meta[META_CAPABILITIES])
        # ttlMs and cacheScope are required where a client may keep the answer: not at all, here.
        cached = result | {"ttlMs": 0, "cacheScope": "private"}
        if method == "server/discover":
            return cached | {"supportedVersions": list(MODERN_VERSIONS), "capabilities": self._capabilities()}
        if method == "tools/list":
            return cached | self._list(params)
        raise RefusalError(METHOD_NOT_FOUND, "Method not found")

    def _capabilities(self) -> dict[str, Any]:
        """Say what we can do, in the modern era; the tasks of the legacy one are others, and are not done here."""
        has_tasks = any(tool.is_task for tool in self._tools.values())
        return {"tools": {}} | ({"extensions": {TASKS_EXTENSION: {}}} if has_tasks else {})

    def _run_or_ask(self, params: Mapping[str, Any]) -> dict[str, Any] | _Asking:
        """Return the result of a call that asks nothing, else what it asks before it runs."""
        tool, arguments = self._wanted(params)
        try:
            wanted = _checked(tool.input_schema, arguments)
            question = tool.question(wanted) if tool.question is not None else None
        except ToolError as failure:
            return _text(str(failure), failed=True)
        if question is None:
            return self._run(tool, wanted)
        return _Asking(tool, wanted, question)

    def _modern_call(self, params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
        asking = self._run_or_ask(params)
        if not isinstance(asking, _Asking):
            return asking
        tool, wanted, question = asking.tool, asking.arguments, asking.question
        if "inputResponses" not in params and "requestState" not in params:
            if "elicitation" not in capabilities:
                data: dict[str, Any] = {"requiredCapabilities": {"elicitation": {}}}
                raise RefusalError(CAPABILITY_MISSING, "This tool asks the user something", data)
            return {
                "resultType": "input_required",
                "inputRequests": {question.name: question.request()},
                "requestState": self._seal.seal(tool.name, wanted),
            }
        if not self._seal.fits(params.get("requestState"), tool.name, wanted):
            raise RefusalError(INVALID_PARAMS, "The requestState is not of this call")
        responses = params.get("inputResponses")
        response = responses.get(question.name) if isinstance(responses, dict) else None
        extensions = capabilities.get("extensions")
        if tool.is_task and isinstance(extensions, dict) and TASKS_EXTENSION in extensions:
            task = self._tasks.start(
                lambda: {"resultType": "complete", **self._run(tool, wanted, question, response)}
            )
            return {"resultType": "task", **task}
        return self._run(tool, wanted, question, response)

    def _task(
        self, method: str, params: Mapping[str, Any], capabilities: Mapping[str, Any]
    ) -> dict[str, Any]:
        extensions = capabilities.get("extensions")
        if not isinstance(extensions, dict) or TASKS_EXTENSION not in extensions:
            data: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
            raise RefusalError(CAPABILITY_MISSING, "Tasks need their extension", data)
        identifier = params.get("taskId")
        found = self._tasks.get(identifier)
        if found is None:
            raise RefusalError(INVALID_PARAMS, "Unknown task")
        if method == "tasks/get":
            return found
        if method == "tasks/cancel":
            self._tasks.cancel(identifier)
            return {}
        if method == "tasks/update":
            return {}  # no task of ours asks for anything, so whatever is answered is ignored
        raise RefusalError(METHOD_NOT_FOUND, "Method not found")

    def _legacy(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | _Asking:
        if method == "ping":
            return {}
        if method == "initialize":
            return self._initialize(params)
        if self._is_modern is None:
            raise RefusalError(
                INVALID_REQUEST, "Neither initialize nor a protocol version in _meta came before"
            )
        if method == "tools/list":
            return self._list(params)
        if method == "tools/call":
            return self._legacy_call(params)
        raise RefusalError(METHOD_NOT_FOUND, "Method not found")

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_modern is not None:
            raise RefusalError(INVALID_REQUEST, "initialize comes once")
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            raise RefusalError(INVALID_PARAMS, "protocolVersion is a string")
        self._is_modern = False
        capabilities = params.get("capabilities")
        self._can_ask = isinstance(capabilities, dict) and "elicitation" in capabilities
        return {
            "protocolVersion": version if version in LEGACY_VERSIONS else LEGACY_VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": self._info,
        }

    def _list(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if params.get("cursor") is not None:
            raise RefusalError(INVALID_PARAMS, "All tools are on the first page")
        return {"tools": [tool.to_json() for tool in self._tools.values()]}

    def _legacy_call(self, params: Mapping[str, Any]) -> dict[str, Any] | _Asking:
        asking = self._run_or_ask(params)
        if not isinstance(asking, _Asking):
            return asking
        if not self._can_ask:
            return _text("This tool asks the user something, and this client cannot do that", failed=True)
        return asking

    def _wanted(self, params: Mapping[str, Any]) -> tuple[Tool, dict[str, Any]]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RefusalError(INVALID_PARAMS, "tools/call needs a name and, if any, an object of arguments")
        tool = self._tools.get(name)
        if tool is None:
            raise RefusalError(INVALID_PARAMS, "Unknown tool")
        return tool, arguments

    def _run(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        question: Question | None = None,
        response: Any = None,
    ) -> dict[str, Any]:
        try:
            if question is not None:
                arguments = {**arguments, question.name: question.answer(response)}
            return _text(tool.run(arguments), failed=False)
        except ToolError as failure:
            return _text(str(failure), failed=True)
        except Exception as fault:
            # The server lives on and the caller gets an answer; what the fault says may hold anything.
            raise RefusalError(INTERNAL_ERROR, f"Internal error ({type(fault).__name__})") from fault


@dataclass(frozen=True, slots=True)
class _Asking:
    """A call that waits for the answer of a person."""

    tool: Tool
    arguments: Mapping[str, Any]
    question: Question
    call_id: str | int | None = None


def _text(text: str, *, failed: bool) -> dict[str, Any]:
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
