"""One MCP connection through the guard: what a client sends is checked here before the real server sees it.

Bytes in, bytes out: the relay owns no descriptor and no task. What happens to a tools/call is the gate's business.

Source: call-proof.md 6.3 to 6.6; running.md 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from onrecord.authorize.guard import mcp_content
from onrecord.authorize.guard.approved_input import TASKS_UPDATE, ApprovedInput, ApprovedTasks
from onrecord.authorize.guard.call_entries import CallEntries
from onrecord.authorize.guard.call_gate import CallGate, GateParts
from onrecord.authorize.guard.held_lines import HeldLine
from onrecord.authorize.guard.lines import Overlong
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.mcp_events import Attempts
from onrecord.authorize.guard.opening import OPENING_METHODS, Opening
from onrecord.authorize.guard.questions import Questions
from onrecord.authorize.guard.reading import (
    TOOLS_CALL,
    Broken,
    Id,
    Message,
    read_call,
    read_message,
    read_server_line,
    recover_id,
    write_value,
)
from onrecord.authorize.guard.recording import Recording
from onrecord.authorize.guard.relay_rules import ClientPeer, RelayRules, Verifier
from onrecord.authorize.guard.tools_listing import ID_PREFIX, ToolsListing
from onrecord.base.wire import INTERNAL_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, error_line

MAX_UNANSWERED: Final = 65_536
"""Requests other than calls that a server may leave unanswered on one connection before no more are taken."""

_FOLLOWED: Final = frozenset(
    ("notifications/cancelled", "tasks/get", "tasks/result", "tasks/cancel", "tasks/update")
)


class Relay:
    """The two directions of one connection. `to_client` and `to_server` take whole lines with LF.

    `approved_tasks` is shared by all connections of one server.
    """

    def __init__(
        self,
        number: str,
        *,
        rules: RelayRules,
        peer: ClientPeer,
        verifier: Verifier,
        recording: Recording,
        log: GuardLog,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
        settled: Callable[[], None] = lambda: None,
        later: Callable[[Callable[[], None]], object] = lambda _: None,
        approved_tasks: ApprovedTasks | None = None,
    ) -> None:
        approved_tasks = ApprovedTasks() if approved_tasks is None else approved_tasks
        self.number = number
        self._rules = rules
        self._recording = recording
        self._log = log
        self._to_client = to_client
        self._to_server = to_server
        self._attempts = Attempts(number, approved_task=approved_tasks.add)
        self._unanswered: set[Id] = set()
        self._questions = Questions()
        self._entries = CallEntries(number, server=rules.server, peer=peer, recording=recording)
        self._listing = ToolsListing(
            send=to_server,
            report=verifier.report,
            settled=self._tools_settled,
            failed=self._tools_unknown,
            log=log,
        )
        self._opening = Opening(
            rules=rules, entries=self._entries, listing=self._listing, to_client=to_client
        )
        parts = GateParts(
            number=number,
            rules=rules,
            peer=peer,
            verifier=verifier,
            recording=recording,
            log=log,
            attempts=self._attempts,
            entries=self._entries,
            listing=self._listing,
            opening=self._opening,
        )
        self._gate = CallGate(
            parts,
            to_client=to_client,
            to_server=to_server,
            forward=self._forward,
            settled=settled,
            later=later,
        )
        self._approved_input = ApprovedInput(
            number,
            attempts=self._attempts,
            tasks=approved_tasks,
            recording=recording,
            log=log,
            to_client=to_client,
            to_server=to_server,
        )
        self._is_closed = False

    # --- from the client -----------------------------------------------------------------------------------------

    def client_line(self, line: bytes | Overlong) -> None:
        """Take one line of the client, without LF."""
        message = read_message(line)
        if type(message) is Message:
            method = message.method
            if method == TOOLS_CALL:
                self._tools_call(message, line)  # type: ignore[arg-type]
            elif method == "notifications/cancelled" and self._gate.cancel(message):
                return
            elif method is None and not self._questions.answered(message):
                self._log.event("answer.unasked", connection=self.number)
            elif not self._refuse(message):
                self._gate.pass_on(HeldLine(message, line))  # type: ignore[arg-type]
        elif message is not None:
            assert isinstance(message, Broken)
            self._answer_broken(message)

    @property
    def running(self) -> int:
        """Calls that are held or run in the server."""
        return self._attempts.running + self._gate.held

    @property
    def held(self) -> int:
        """Lines that wait behind a verification."""
        return self._gate.held

    @property
    def unproven(self) -> int:
        """Calls without proof that were executed in audit mode while the authority could not be told."""
        return self._gate.unproven

    def stop_calls(self) -> None:
        """Take no new calls; those that run go on."""
        self._gate.stop_calls()

    def close(self, cause: str) -> None:
        """Take note that the connection is over: nothing is forwarded any more."""
        if self._is_closed:
            return
        self._is_closed = True
        if cause == "server-eof":
            ends = self._attempts.transport_ended()
            if ends:
                self._recording.observed(self.number, ends)
        self._opening.close()
        self._gate.close()
        self._entries.closed(cause)

    def _tools_call(self, message: Message, line: bytes) -> None:
        if message.id is None:
            self._gate.without_id(message)
            return
        call = read_call(message, line_bytes=len(line) + 1, limit_bytes=self._rules.call_line_bytes)
        if isinstance(call, Broken):
            self._answer_broken(call)
            return
        if TOOLS_CALL in self._rules.refuse_methods and self._refuse(message):
            return
        if self._is_id_in_use(call.id):
            self._refuse_id(call.id, TOOLS_CALL)
            return
        self._gate.take(message, call, line_bytes=len(line))

    def _tools_settled(self) -> None:
        self._opening.answer_probe()
        self._gate.tools_settled()

    def _tools_unknown(self) -> None:
        self._opening.answer_probe()

    def _refuse(self, message: Message) -> bool:
        """Answer a request that does not pass for its method or its id; say whether it was one."""
        if message.method is None:
            return False
        if message.method in self._rules.refuse_methods:
            self._log.event("method.refused", method=message.method)
            if message.id is not None:
                self._to_client(
                    error_line(message.id, UNKNOWN_METHOD, "Refused here", {"reason": "method_refused"})
                )
            return True
        if message.id is None:
            return False
        if self._is_id_in_use(message.id) or len(self._unanswered) >= MAX_UNANSWERED:
            self._refuse_id(message.id, message.method)
            return True
        return False

    def _is_id_in_use(self, request_id: Id) -> bool:
        if request_id in self._unanswered or self._attempts.is_waiting(request_id):
            return True
        if type(request_id) is str and request_id.startswith(ID_PREFIX):
            return True
        return self._gate.holds(request_id)

    def _refuse_id(self, request_id: Id, method: str) -> None:
        self._log.event("line.refused", method=method, reason="id_in_use")
        data = {"reason": "invalid_request", "detail": "id_in_use"}
        self._to_client(error_line(request_id, INVALID_REQUEST, "The id is in use", data))

    def _answer_broken(self, broken: Broken) -> None:
        self._log.event("line.refused", method=broken.method, reason=broken.reason)
        self._to_client(broken.answer)

    def _forward(self, held: HeldLine) -> None:
        """Send a line that needs no proof to the server, as it was received but for carriage returns.

        They are white space to JSON, but line ends to servers that read text with universal newlines, as Python's do:
        what stands between two of them would be a line of its own, a tools/call for instance.
        """
        message = held.message
        method = message.method
        # Not before its turn: the call before it may be the approved one that it brings input for.
        if method == TASKS_UPDATE and self._approved_input.refuse_update(
            message, is_modern=self._opening.is_modern
        ):
            return
        if method is not None and message.id is not None:
            self._unanswered.add(message.id)
        if method in OPENING_METHODS:
            self._opening.asked(message)
        elif method is None or method in _FOLLOWED:
            observed = self._attempts.from_client(method, message.value, now_ns=self._recording.moment()[1])
            if observed:
                self._recording.observed(self.number, observed)
        else:
            self._opening.before(message)
        line = held.line
        if b"\r" in line:
            line = line.rstrip(b"\r").replace(b"\r", b" ")
        self._to_server(line + b"\n")
        if method == "notifications/initialized":
            self._listing.begin()

    # --- from the server -----------------------------------------------------------------------------------------

    def server_line(self, line: bytes | Overlong) -> None:
        """Take one line of the server, without LF."""
        if isinstance(line, Overlong):
            self._server_overlong(line)
            return
        message, needs_care = read_server_line(line)
        if type(message) is dict:
            if not self._ends_here(message, line, needs_care=needs_care):
                self._to_client(line + b"\n")
        elif type(message) is list:
            self._server_batch(message, line, needs_care=needs_care)
        elif line.strip():
            self._log.event("stdout.noise", connection=self.number, size=len(line))

    def _server_batch(self, batch: list[Any], line: bytes, *, needs_care: bool) -> None:
        """Take a batch, as revision 2025-03-26 has them: what would end here alone is left out of it."""
        kept = [
            one
            for one in batch
            if type(one) is not dict or not self._ends_here(one, write_value(one), needs_care=needs_care)
        ]
        if len(kept) == len(batch):
            self._to_client(line + b"\n")
        elif kept:
            self._to_client(write_value(kept) + b"\n")

    def _ends_here(self, message: dict[str, Any], line: bytes, *, needs_care: bool) -> bool:
        """Look at a message of the server; say whether the client does not get it, or has got it already."""
        self._answered(message)
        if "method" in message:
            if self._server_request(message):
                return True
        elif self._listing.take(message, line) or self._opening.answered(message, line):
            return True
        self._observe(message, needs_care=needs_care)
        return False

    def _answered(self, message: dict[str, Any]) -> None:
        message_id = message.get("id")
        if "method" not in message and (type(message_id) is int or type(message_id) is str):
            self._unanswered.discard(message_id)

    def _observe(self, message: dict[str, Any], *, needs_care: bool) -> None:
        unattributed = self._attempts.unattributed
        observed = self._attempts.from_server(message)
        if self._attempts.unattributed != unattributed:
            self._log.event("input.unattributed", connection=self.number)
        if not observed:
            return
        if needs_care:
            observed = [one._replace(content=mcp_content.storable(one.content)) for one in observed]
        self._recording.observed(self.number, observed)

    def _server_request(self, message: dict[str, Any]) -> bool:
        """Look at a request or notification of the server; say whether it ends here."""
        method = message["method"]
        if method == "notifications/tools/list_changed":
            self._listing.begin()
        elif self._approved_input.refuse_question(message):
            return True
        self._questions.asked(message)
        return False

    def _server_overlong(self, line: Overlong) -> None:
        self._log.alert("server.line-too-long", connection=self.number, size=line.size_bytes)
        request_id = recover_id(line.head)
        if request_id is None:
            return
        answer = {
            "jsonrpc": "2.0",
            "id": request_id,
            "error": {"code": INTERNAL_ERROR, "message": "The answer is too long"},
        }
        self._answered(answer)
        self._observe(answer, needs_care=False)
        self._to_client(orjson.dumps(answer) + b"\n")
