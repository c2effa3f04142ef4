"""Asks a real server what tools it has, with requests of the guard's own, and hides the answers from the client.

Source: running.md 5.2; call-proof.md 5.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from onrecord.authorize.guard.authority_link import Tool
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.reading import CAPABILITIES_META, PROTOCOL_META
from onrecord.authorize.tool_names import MAX_TOOLS, is_tool_name
from onrecord.base.canonical import canonicalize
from onrecord.base.errors import MalformedError
from onrecord.base.hashes import SchemaHash
from onrecord.base.strict_json import MESSAGE_DEPTH, Refused, parse
from onrecord.base.wire import UNKNOWN_METHOD

ID_PREFIX: Final = "onrecord-tools-"
MAX_PAGES: Final = 1000
"""Pages of one listing; a server that always names another cursor is stopped here."""

MODERN_REVISION: Final = "2026-07-28"


class ToolsListing:
    """The listing of one real server. Calls are held until `is_settled`."""

    def __init__(
        self,
        *,
        send: Callable[[bytes], None],
        report: Callable[[Sequence[Tool], Callable[[], None]], None],
        settled: Callable[[], None],
        failed: Callable[[], None],
        log: GuardLog,
    ) -> None:
        self._send = send
        self._report = report
        self._settled = settled
        self._failed = failed
        self._log = log
        self._number = 0
        self._expected: str | None = None
        self._tools: dict[str, Tool | None] = {}
        self._pages = 0
        self._again = False
        self._revision: str | None = None
        self._round = 0
        self.is_settled = False
        self.has_begun = False

    def begin(self, *, revision: str | None = None) -> None:
        """Ask for all tools anew; calls wait until the authority has the answer.

        `revision` is the protocol revision that each request names in the modern era, None in the legacy one.
        """
        self.has_begun = True
        self.is_settled = False
        if revision is not None:
            self._revision = revision
        if self._expected is not None:
            self._again = True
            return
        self._tools, self._pages, self._again = {}, 0, False
        self._ask(None)

    def legacy(self) -> None:
        """Take note that this connection was opened by initialize."""
        self._revision = None

    def take(self, message: dict[str, Any], line: bytes) -> bool:
        """Take an answer of the server if it is one to our request; say whether it was."""
        if type(message.get("id")) is not str or not message["id"].startswith(ID_PREFIX):
            return False
        if message["id"] != self._expected:
            return True
        self._expected = None
        if self._again:
            self.begin()
            return True
        error = message.get("error")
        if error is not None:
            code = error.get("code") if type(error) is dict else None
            self._log.event("tools.list-refused", code=code)
            if code == UNKNOWN_METHOD:
                self._finish()
            else:
                self._give_up()
            return True
        self._page(message, line)
        return True

    def _ask(self, cursor: str | None) -> None:
        self._number += 1
        self._pages += 1
        self._expected = f"{ID_PREFIX}{self._number}"
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        if self._revision is not None:
            params["_meta"] = {
                PROTOCOL_META: self._revision,
                CAPABILITIES_META: {},
                "io.modelcontextprotocol/clientInfo": {"name": "onrecord-guard", "version": "1"},
            }
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": self._expected, "method": "tools/list"}
        if params:
            request["params"] = params
        self._send(orjson.dumps(request) + b"\n")

    def _page(self, message: dict[str, Any], line: bytes) -> None:
        result = message.get("result")
        tools = result.get("tools") if type(result) is dict else None
        if type(result) is not dict or type(tools) is not list:
            self._log.alert("tools.list-malformed")
            self._give_up()
            return
        strict = _strict_tools(line)
        for index, tool in enumerate(tools):
            self._add(tool, strict[index] if strict is not None else None)
        cursor = result.get("nextCursor")
        if type(cursor) is str and self._pages < MAX_PAGES and len(self._tools) < MAX_TOOLS:
            self._ask(cursor)
        else:
            self._finish()

    def _add(self, tool: Any, strict: Any) -> None:
        name = tool.get("name") if type(tool) is dict else None
        if type(name) is not str:
            return
        if not is_tool_name(name):
            # The authority would refuse the whole report for it, and so take all other tools of the server away.
            self._log.event("tools.left-out", size=len(name))
            return
        schema = (strict if strict is not None else tool).get("inputSchema")
        try:
            if strict is None:
                # The page as a whole is not strict; this one tool may be.
                parse(orjson.dumps(tool), max_depth=MESSAGE_DEPTH)
            entry: Tool | None = Tool(name, SchemaHash.of(canonicalize(schema)))
        except (MalformedError, TypeError, ValueError):
            entry = None
        if name in self._tools and self._tools[name] != entry:
            entry = None
        if entry is None:
            self._log.event("tools.left-out", tool=name)
        self._tools[name] = entry

    def _give_up(self) -> None:
        self._round += 1  # an acknowledgement that is still to come was for the list before
        self.has_begun = False
        self._failed()

    def _finish(self) -> None:
        self._round += 1
        current = self._round

        def acknowledged() -> None:
            if current == self._round and self._expected is None:
                self.is_settled = True
                self._settled()

        tools = [tool for tool in self._tools.values() if tool is not None]
        if len(tools) > MAX_TOOLS:
            self._log.alert("tools.too-many", count=len(tools))
        self._report(tools[:MAX_TOOLS], acknowledged)


def _strict_tools(line: bytes) -> list[Any] | None:
    try:
        message, _ = parse(line)
    except Refused:
        return None
    tools = message["result"]["tools"]
    return tools if type(tools) is list else None
