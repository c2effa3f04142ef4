"""How a connection begins: which era it is, what is advertised, when the tools are asked for.

Source: call-proof.md 6.1; running.md 5.2, 6; mcp.md 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from onrecord.authorize.guard.call_entries import CallEntries
from onrecord.authorize.guard.mcp_content import storable
from onrecord.authorize.guard.reading import PROTOCOL_META, Id, Message
from onrecord.authorize.guard.relay_rules import RelayRules
from onrecord.authorize.guard.tools_listing import MODERN_REVISION, ToolsListing

DISCOVER_ID: Final = "onrecord-discover-1"
"""Id of the connector's own server/discover, sent when a client's first line is a call (running.md 6)."""

NOTE_CHARS: Final = 200
"""Longest protocol, name or version of a server in an entry; all are self-reported."""

OPENING_METHODS: Final = frozenset(("initialize", "server/discover"))


class Opening:
    """The first exchanges of one connection."""

    def __init__(
        self,
        *,
        rules: RelayRules,
        entries: CallEntries,
        listing: ToolsListing,
        to_client: Callable[[bytes], None],
    ) -> None:
        self._rules = rules
        self._entries = entries
        self._listing = listing
        self._to_client = to_client
        self._asked: dict[Id, str] = {}
        self._probe: tuple[bytes, asyncio.TimerHandle] | None = None
        self._is_legacy = False
        self._has_discovered = False

    @property
    def is_modern(self) -> bool:
        """Say whether the server has answered server/discover and no initialize came."""
        return self._has_discovered and not self._is_legacy

    def asked(self, message: Message) -> None:
        """Take note of an initialize or server/discover that goes to the server."""
        if message.id is None or message.method is None:
            return
        self._asked[message.id] = message.method
        if message.method == "initialize":
            self._is_legacy = True
            self._listing.legacy()

    def before(self, message: Message) -> None:
        """Ask for the tools ahead of the first request of a modern connection."""
        if message.id is not None and not self._listing.has_begun and not self._is_legacy:
            params = message.value.get("params")
            self.list_tools(params.get("_meta") if type(params) is dict else None)

    def list_tools(self, meta: Any) -> None:
        """Ask for the tools in the era of this connection; `meta` is that of a request of the client."""
        if self._is_legacy:
            self._listing.begin()
            return
        revision = meta.get(PROTOCOL_META) if type(meta) is dict else None
        if type(revision) is not str:
            revision = MODERN_REVISION
        elif self._entries.protocol is None:
            self._entries.protocol = revision[:NOTE_CHARS]
        self._listing.begin(revision=revision)

    def answered(self, message: dict[str, Any], line: bytes) -> bool:
        """Send the answer to an opening on, with what we advertise; False if this is no such answer."""
        message_id = message.get("id")
        if not self._asked or (type(message_id) is not int and type(message_id) is not str):
            return False
        method = self._asked.pop(message_id, None)
        if method is None:
            return False
        is_initialize = method == "initialize"
        result = message.get("result")
        if type(result) is dict:
            self._note_server(result)
        is_probe = message_id == DISCOVER_ID
        if not is_initialize and (type(result) is dict or is_probe) and not self._listing.has_begun:
            self._has_discovered = type(result) is dict
            self._listing.begin(revision=MODERN_REVISION if self._has_discovered else None)
        changed = self._rules.advertisement.add_to(message, is_initialize=is_initialize) or line + b"\n"
        if is_probe and not self._listing.is_settled:
            # The connector asks so that the tools are reported before it asks for its first proof.
            seconds = self._rules.report_timeout_ms / 1000
            self._probe = changed, asyncio.get_running_loop().call_later(seconds, self.answer_probe)
        else:
            self._to_client(changed)
        return True

    def answer_probe(self) -> None:
        """Answer the connector's probe, if it waits."""
        if self._probe is not None:
            (answer, timer), self._probe = self._probe, None
            timer.cancel()
            self._to_client(answer)

    def close(self) -> None:
        """Forget a probe that waits."""
        if self._probe is not None:
            self._probe[1].cancel()
            self._probe = None

    def _note_server(self, result: dict[str, Any]) -> None:
        version = result.get("protocolVersion")
        if type(version) is str:
            self._entries.protocol = version[:NOTE_CHARS]
        info = result.get("serverInfo")
        if type(info) is not dict and type(result.get("_meta")) is dict:
            info = result["_meta"].get("io.modelcontextprotocol/serverInfo")
        if type(info) is dict:
            told = {key: info[key][:NOTE_CHARS] for key in ("name", "version") if type(info.get(key)) is str}
            self._entries.server_info = storable(told) or None
