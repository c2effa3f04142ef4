"""The entries of one connection: its opening, its calls, its close.

A connection is written down with its first call, because a handshake opens no record session.

Source: running.md 8 (R-08, R-09), 7.1.
"""

from __future__ import annotations

from typing import Any

from onrecord.authorize.guard import mcp_content
from onrecord.authorize.guard.extension import Evidence
from onrecord.authorize.guard.held_lines import HeldCall
from onrecord.authorize.guard.recording import Recording
from onrecord.authorize.guard.relay_rules import ClientPeer
from onrecord.base.hashes import ProofRef
from onrecord.base.ids import uuid7


class CallEntries:
    """Writes what happens to the calls of connection `number` of one server."""

    def __init__(self, number: str, *, server: str, peer: ClientPeer, recording: Recording) -> None:
        self._number = number
        self._server = server
        self._peer = peer
        self._recording = recording
        self._is_open = False
        self.protocol: str | None = None
        self.server_info: dict[str, str] | None = None

    def prepare(self, held: HeldCall, call: str) -> bytes:
        """Return the invocation of a call that will be admitted if its proof is valid."""
        return self._invocation(held, call, is_admitted=True)

    def admitted(self, held: HeldCall, invocation: bytes) -> bool:
        """Write the invocation of a call that goes to the server, as prepared; False if it is lost."""
        return self._write(held, invocation)

    def rejected(self, held: HeldCall, call: str, error: dict[str, Any]) -> bool:
        """Write the invocation of a rejected call, without its arguments, and the error that answers it."""
        end = self._recording.entry(
            mcp_content.error_kind(error), connection=self._number, call=call, content=error
        )
        return self._write(held, self._invocation(held, call, is_admitted=False), end)

    def closed(self, cause: str) -> None:
        """Write the end of the connection, if it was written down at all."""
        if self._is_open:
            self._recording.write(
                self._recording.entry("connection", connection=self._number, state="close", cause=cause)
            )

    def _write(self, held: HeldCall, *entries: bytes) -> bool:
        if self._is_open:
            return self._recording.write(*entries)
        self._is_open = self._recording.write(self._opening(held), *entries)
        return self._is_open

    def _session(self, held: HeldCall) -> dict[str, Any]:
        return {"uid": self._peer.uid, "label": held.label or self._peer.label}

    def _opening(self, held: HeldCall) -> bytes:
        members: dict[str, Any] = {"connection": self._number, "state": "open"}
        if self.protocol is not None:
            members["protocol"] = self.protocol
        if self.server_info is not None:
            members["serverInfo"] = self.server_info
        members["peer"] = {"uid": self._peer.uid, "pid": self._peer.pid}
        members["session"] = self._session(held)
        return self._recording.entry("connection", held.moment, **members)

    def _invocation(self, held: HeldCall, call: str, *, is_admitted: bool) -> bytes:
        members: dict[str, Any] = {
            "connection": self._number,
            "call": call,
            "session": self._session(held),
            "server": self._server,
            "tool": held.call.name,
            "actionDigest": held.digest,
        }
        if type(held.evidence) is Evidence:
            members["proofRef"] = ProofRef.of(held.evidence.value.encode())
        members["operationId"] = uuid7()
        members["admitted"] = is_admitted
        if is_admitted and "arguments" in held.call.params:
            members["arguments"] = held.call.arguments
        return self._recording.entry("invocation", held.moment, **members)
