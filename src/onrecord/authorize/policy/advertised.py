"""What a tool server advertises: starts it, without any agent, and asks for its tools over stdio.

Both eras are understood: initialize is tried first; a server that refuses it is asked in the manner of 2026-07-28.

Source: running.md 4.4; mcp.md 1.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onrecord import __version__
from onrecord.authorize.policy.facts import schema_hash
from onrecord.authorize.tool_names import MAX_TOOLS, is_tool_name
from onrecord.base import strict_json
from onrecord.base.canonical import compact
from onrecord.base.errors import MalformedError, NetworkError
from onrecord.base.processes import Principal, spawn

LEGACY_REVISION: Final = "2025-11-25"
MODERN_REVISION: Final = "2026-07-28"

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Longest message read from a server."""

MAX_PAGES: Final = 1000
"""Most pages of tools/list: a server that never ends its list is stopped here."""

MAX_LISTING_BYTES: Final = 64 * 1024 * 1024
"""Most bytes read from a server in all: what it advertises is kept in memory."""

MAX_NAME_CHARACTERS: Final = 200
"""Characters kept of a server's name for itself. It is shown, and looked up in the catalogue."""

LISTING_SECONDS: Final = 30.0
"""Time for start and listing together; servers started by npx are slow the first time."""

SAID_LINES: Final = 20
"""Last lines of a failing server's standard error that are kept. The reason of an end stands at the end."""

SAID_LINE_BYTES: Final = 500
"""Bytes kept of each of these lines; a stack trace with a whole document in it helps nobody."""

_INFO: Final = {"name": "onrecord", "version": __version__}
_MODERN_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _INFO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedTool:
    """One tool as the server describes it; everything in it is the server's word."""

    name: str
    pin: str
    input_schema: Mapping[str, Any] = field(repr=False)
    annotations: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedServer:
    """A server's name for itself and its tools."""

    name: str
    version: str
    tools: tuple[AdvertisedTool, ...]


class ServerFailedError(NetworkError):
    """A server that did not answer as it should. `said` are the last lines of its standard error, as it wrote them.

    They may hold anything, so they are neither in the message nor in `to_json`: whoever shows them escapes them.
    """

    said: tuple[str, ...] = ()


def list_tools(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    principal: Principal | None = None,
    seconds: float = LISTING_SECONDS,
) -> AdvertisedServer:
    """Start a server, ask for all pages of its tools, and end it.

    Raises `ConfigurationError` with code "cannot-start", or `ServerFailedError` with code "server-silent",
    "server-ended", "server-refused" or "server-unreadable".
    """
    process = spawn(
        argv,
        env=env,
        cwd=cwd,
        principal=principal,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        new_group=True,
    )
    said = _Said(process)
    try:
        return _Conversation(process, deadline=time.monotonic() + seconds).server()
    except ServerFailedError as error:
        _end(process)
        error.said = said.lines()
        raise
    finally:
        _end(process)


class _Said:
    """The end of what a server writes to its standard error, read all the time so that the server never waits."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        self._stream = process.stderr
        self._lines: deque[bytes] = deque(maxlen=SAID_LINES)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        rest = b""
        with self._stream:
            while data := os.read(self._stream.fileno(), 65_536):
                *lines, rest = (rest + data).split(b"\n")
                self._lines.extend(line[:SAID_LINE_BYTES] for line in lines)
                rest = rest[:SAID_LINE_BYTES]
        if rest:
            self._lines.append(rest)

    def lines(self) -> tuple[str, ...]:
        """Return the last lines. The server has ended; what a grandchild may still write is not waited for."""
        self._thread.join(timeout=0.5)
        return tuple(
            line.decode("utf-8", "replace").rstrip("\r") for line in tuple(self._lines) if line.strip()
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and its group; by closing its input first, as MCP wants it."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        pass
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


class _Conversation:
    """Requests and answers over the pipes of one server process."""

    def __init__(self, process: subprocess.Popen[bytes], *, deadline: float) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - both are pipes
        self._input, self._output = process.stdin.fileno(), process.stdout.fileno()
        self._deadline = deadline
        self._buffer = bytearray()
        self._next_id = 0
        self._left = MAX_LISTING_BYTES
        os.set_blocking(self._output, False)
        os.set_blocking(self._input, False)

    def server(self) -> AdvertisedServer:
        """Return what the server advertises."""
        started = self._call(
            "initialize",
            {"protocolVersion": LEGACY_REVISION, "capabilities": {}, "clientInfo": _INFO},
        )
        if "result" in started:
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            info, meta = started["result"].get("serverInfo"), None
        else:
            meta = _MODERN_META
            discovered = self._result("server/discover", {"_meta": meta})
            own = discovered.get("_meta")
            info = own.get("io.modelcontextprotocol/serverInfo") if isinstance(own, dict) else None
            info = discovered.get("serverInfo") if info is None else info
        info = info if isinstance(info, dict) else {}
        return AdvertisedServer(
            name=_short_text(info.get("name")),
            version=_short_text(info.get("version")),
            tools=self._tools(meta),
        )

    def _tools(self, meta: Mapping[str, Any] | None) -> tuple[AdvertisedTool, ...]:
        tools: dict[str, AdvertisedTool] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params: dict[str, Any] = {} if meta is None else {"_meta": meta}
            if cursor is not None:
                params["cursor"] = cursor
            page = self._result("tools/list", params)
            entries = page.get("tools")
            if not isinstance(entries, list):
                raise _unreadable("tools/list without a list of tools")
            for entry in entries:
                tool = _tool(entry)
                if tool.name in tools:
                    raise _unreadable("a tool is listed twice")
                tools[tool.name] = tool
                if len(tools) > MAX_TOOLS:  # the guard reports no more, and the authority takes none of them
                    raise _unreadable(f"more than {MAX_TOOLS} tools")
            cursor = page.get("nextCursor")
            if cursor is None:
                return tuple(tools.values())
            if not isinstance(cursor, str):
                raise _unreadable("a cursor that is no text")
        raise _unreadable(f"more than {MAX_PAGES} pages of tools")

    def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._call(method, params)
        if isinstance(answer.get("result"), dict):
            result: dict[str, Any] = answer["result"]
            return result
        raise ServerFailedError(
            f"the server refuses {method}",
            code="server-refused",
            hint="try the server by hand; its errors go to its standard error",
        )

    def _call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._next_id += 1
        number = self._next_id
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            message = self._message()
            if "method" in message:
                if "id" in message:
                    self._refuse(message)
            elif message.get("id") == number and type(message["id"]) is int:
                if "result" in message and not isinstance(message["result"], dict):
                    raise _unreadable("a result that is no object")
                return message

    def _refuse(self, message: Mapping[str, Any]) -> None:
        """Answer a request of the server: ping is granted, nothing else."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        self._send(answer)

    def _send(self, message: Mapping[str, Any]) -> None:
        data = compact(message) + b"\n"
        while data:
            self._wait(self._input, selectors.EVENT_WRITE)
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise _ended() from None

    def _message(self) -> dict[str, Any]:
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                if line.strip():
                    return _parse(line)
                continue
            if len(self._buffer) > MAX_LINE_BYTES:
                raise _unreadable("a message without end")
            self._wait(self._output, selectors.EVENT_READ)
            try:
                data = os.read(self._output, 65_536)
            except BlockingIOError:
                continue
            if not data:
                raise _ended()
            self._left -= len(data)
            if self._left < 0:
                raise _unreadable(f"more than {MAX_LISTING_BYTES} bytes")
            self._buffer += data

    def _wait(self, descriptor: int, event: int) -> None:
        left = self._deadline - time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, event)
            if left <= 0 or not selector.select(left):
                raise ServerFailedError(
                    "the server did not answer in time",
                    code="server-silent",
                    hint="start it by hand and see whether it waits for something",
                )


def _short_text(value: Any) -> str:
    """Return a server's word for itself, cut where a line of a terminal ends; nothing if it is no text."""
    return value[:MAX_NAME_CHARACTERS] if isinstance(value, str) else ""


def _parse(line: bytes) -> dict[str, Any]:
    try:
        message, _ = strict_json.parse(line, max_bytes=MAX_LINE_BYTES)
    except MalformedError as error:
        raise _unreadable(f"a line that is not strict JSON ({error})") from None
    if not isinstance(message, dict):
        raise _unreadable("a message that is no object")
    return message


def _tool(entry: Any) -> AdvertisedTool:
    match entry:
        case {"name": str() as name, "inputSchema": dict() as schema} if is_tool_name(name):
            annotations = entry.get("annotations")
            return AdvertisedTool(
                name=name,
                pin=schema_hash(schema),
                input_schema=schema,
                annotations=annotations if isinstance(annotations, dict) else {},
            )
        case _:
            raise _unreadable("a tool without name or inputSchema")


def _unreadable(what: str) -> ServerFailedError:
    return ServerFailedError(f"the server sent {what}", code="server-unreadable")


def _ended() -> ServerFailedError:
    return ServerFailedError(
        "the server ended before it had answered",
        code="server-ended",
        hint="start its command by hand, as its user, and read what it says",
    )
