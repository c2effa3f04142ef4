"""One MCP connection through the guard: what a client sends is checked here before the real server sees it.

Bytes in, bytes out: the relay owns no descriptor and no task. Lines go to the server in the order they came; a call
whose proof is being verified holds back the lines after it.

Source: call-proof.md 6.3 to 6.6; running.md 5.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import orjson

from onrecord.authorize import digest as digests
from onrecord.authorize.guard import mcp_content
from onrecord.authorize.guard.authority_link import UNREACHABLE, Verdict
from onrecord.authorize.guard.call_entries import CallEntries
from onrecord.authorize.guard.extension import Evidence, Malformed, rejection
from onrecord.authorize.guard.held_lines import HeldCall, HeldLine, Prepared
from onrecord.authorize.guard.lines import Overlong
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.mcp_events import Attempts
from onrecord.authorize.guard.opening import OPENING_METHODS, Opening
from onrecord.authorize.guard.reading import (
    TOOLS_CALL,
    Broken,
    Call,
    Id,
    Message,
    read_call,
    read_message,
    read_server_line,
    recover_id,
)
from onrecord.authorize.guard.recording import Recording
from onrecord.authorize.guard.relay_rules import ClientPeer, RelayRules, Verifier
from onrecord.authorize.guard.tools_listing import ID_PREFIX, ToolsListing
from onrecord.base.namespaces import CALL_PROOF_REJECTED
from onrecord.base.wire import INTERNAL_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, error_line, result_line

RECORD_UNAVAILABLE: Final = "record_unavailable"
STOPPING: Final = "stopping"
REJECTED: Final = "Call proof rejected"

MAX_UNANSWERED: Final = 65_536
"""Requests other than calls that a server may leave unanswered on one connection before no more are taken."""

_FOLLOWED: Final = frozenset(
    ("notifications/cancelled", "tasks/get", "tasks/result", "tasks/cancel", "tasks/update")
)


class Relay:
    """The two directions of one connection. `to_client` and `to_server` take whole lines with LF."""

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
    ) -> None:
        self.number = number
        self._rules = rules
        self._peer = peer
        self._verifier = verifier
        self._recording = recording
        self._log = log
        self._to_client = to_client
        self._to_server = to_server
        self._on_settled = settled
        self._later = later
        self._attempts = Attempts(number)
        self._held: deque[HeldLine] = deque()
        self._unanswered: set[Id] = set()
        self._unsettled: list[tuple[HeldCall, asyncio.TimerHandle]] = []
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
        self._is_closed = False
        self._takes_calls = True
        self.unproven = 0
        """Calls without proof that were executed in audit mode while the authority could not be told."""

    # --- from the client -----------------------------------------------------------------------------------------

    def client_line(self, line: bytes | Overlong) -> None:
        """Take one line of the client, without LF."""
        message = read_message(line)
        if type(message) is Message:
            method = message.method
            if method == TOOLS_CALL:
                self._tools_call(message, line)  # type: ignore[arg-type]
            elif method == "notifications/cancelled" and self._cancel_held(message):
                return
            elif not self._refuse(message):
                self._pass_on(HeldLine(message, line))  # type: ignore[arg-type]
        elif message is not None:
            assert isinstance(message, Broken)
            self._answer_broken(message)

    @property
    def running(self) -> int:
        """Calls that are held or run in the server."""
        return self._attempts.running + len(self._held)

    @property
    def held(self) -> int:
        """Lines that wait behind a verification."""
        return len(self._held)

    def stop_calls(self) -> None:
        """Take no new calls; those that run go on."""
        self._takes_calls = False

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
        for held, timer in self._unsettled:
            timer.cancel()
            held.is_dropped = True
        self._unsettled.clear()
        self._held.clear()
        self._entries.closed(cause)

    def _tools_call(self, message: Message, line: bytes) -> None:
        if message.id is None:
            self._without_id(message)
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
        if not self._recording.admits(len(line)):
            self._refuse_unrecorded(call)
            return
        held = HeldCall(message, call, self._recording.moment())
        self._held.append(held)
        if not self._takes_calls:
            self._verdict(held, Verdict(STOPPING))
        elif held.evidence is None and not self._rules.enforces:
            self._audit(held)
        elif type(held.evidence) is not Evidence or self._listing.is_settled:
            self._ask(held)
        else:
            self._await_tools(held)

    def _await_tools(self, held: HeldCall) -> None:
        if not self._listing.has_begun:
            self._opening.list_tools(held.call.meta)
        timer = asyncio.get_running_loop().call_later(
            self._rules.report_timeout_ms / 1000, self._tools_late, held
        )
        self._unsettled.append((held, timer))

    def _tools_settled(self) -> None:
        self._opening.answer_probe()
        waiting, self._unsettled = self._unsettled, []
        for held, timer in waiting:
            timer.cancel()
            if not held.is_dropped:
                self._ask(held)

    def _tools_unknown(self) -> None:
        self._opening.answer_probe()

    def _tools_late(self, held: HeldCall) -> None:
        self._unsettled = [pair for pair in self._unsettled if pair[0] is not held]
        if not held.is_dropped:
            self._log.alert("tools.not-acknowledged", server=self._rules.server)
            self._verdict(held, Verdict(UNREACHABLE))

    def _ask(self, held: HeldCall) -> None:
        question = held.question(self._rules.server, self._peer.verified_uid)
        self._verifier.verify(question, lambda verdict: self._verdict(held, verdict))
        if held.verdict is None and type(held.evidence) is Evidence and not held.call.continues:
            self._later(lambda: self._prepare(held))

    def _prepare(self, held: HeldCall) -> None:
        """Make ready what a valid proof lets out, while the authority looks at it; nothing leaves here."""
        if held.prepared is None and not held.is_ready and not self._is_closed:
            name = self._attempts.next_call()
            held.prepared = Prepared(name, self._entries.prepare(held, name), _server_line(held.message))

    def _audit(self, held: HeldCall) -> None:
        def told(verdict: Verdict) -> None:
            if verdict.reason == UNREACHABLE:
                self.unproven += 1
                self._log.event("call.unproven", count=self.unproven)

        self._verifier.verify(held.question(self._rules.server, self._peer.verified_uid), told)
        self._verdict(held, Verdict(None))

    def _verdict(self, held: HeldCall, verdict: Verdict) -> None:
        if held.is_dropped or self._is_closed:
            return
        if held.evidence is None and self._rules.enforces and verdict.reason != STOPPING:
            verdict = Verdict("missing")
        elif type(held.evidence) is Malformed:
            verdict = Verdict("malformed")
        held.verdict = verdict
        if verdict.reason is not None:
            held.is_dropped = True
            self._reject(held, verdict.reason)
        held.is_ready = True
        self._flush()

    def _flush(self) -> None:
        held = self._held
        while held and held[0].is_ready:
            first = held.popleft()
            if first.is_dropped:
                continue
            if isinstance(first, HeldCall):
                self._execute(first)
            else:
                self._forward(first)
        if not held:
            self._on_settled()

    def _execute(self, held: HeldCall) -> None:
        """Record an admitted call and send it to the server, as a re-serialization of what was digested."""
        assert held.verdict is not None
        call, approved = held.call, held.verdict.approved
        token = call.meta.get("progressToken") if call.meta is not None else None
        attempt = self._attempts.continued(held.digest) if call.continues else None
        if attempt is not None:
            observed = self._attempts.resume(
                attempt, call.id, token=token, responses=call.input_responses, approved=approved
            )
            is_recorded = self._recording.observed(self.number, [observed])
            line = _server_line(held.message)
        else:
            prepared = held.prepared
            if prepared is None:
                name = self._attempts.next_call()
                prepared = Prepared(name, self._entries.prepare(held, name), _server_line(held.message))
            line = prepared.line
            is_recorded = self._entries.admitted(held, prepared.invocation)
            if is_recorded or not self._recording.is_required:
                self._attempts.start(
                    call.id,
                    call=prepared.name,
                    digest=held.digest,
                    token=token,
                    started_ns=held.moment[1],
                    approved=approved,
                )
        if not is_recorded and self._recording.is_required:
            self._attempts.withdraw(call.id)
            self._refuse_unrecorded(call)
            return
        self._to_server(line)

    def _reject(self, held: HeldCall, reason: str) -> None:
        call = held.call
        self._log.event("call.rejected", method=TOOLS_CALL, tool=call.name, digest=held.digest, reason=reason)
        if reason == STOPPING:
            code, text = INTERNAL_ERROR, "The guard is stopping"
            answer = error_line(call.id, code, text, {"reason": reason})
        else:
            code, text = CALL_PROOF_REJECTED, REJECTED
            answer = rejection(call.id, reason, is_modern=call.is_modern or self._opening.is_modern)
        error = {"code": code, "message": text, "data": {"reason": reason}}
        name = self._attempts.next_call() if held.prepared is None else held.prepared.name
        self._entries.rejected(held, name, error)
        self._to_client(answer)

    def _refuse_unrecorded(self, call: Call) -> None:
        self._log.event("call.refused", tool=call.name, reason=RECORD_UNAVAILABLE)
        data = {"reason": RECORD_UNAVAILABLE}
        self._to_client(error_line(call.id, INTERNAL_ERROR, "The call cannot be recorded", data))

    def _without_id(self, message: Message) -> None:
        """Drop a tools/call that is a notification, and tell the authority: servers may run such calls."""
        params = message.value.get("params")
        name = params.get("name") if type(params) is dict else None
        arguments = params.get("arguments", {}) if type(params) is dict else None
        self._log.alert("call.without-id", tool=name if type(name) is str else None)
        if type(name) is not str or type(arguments) is not dict:
            return
        question: dict[str, Any] = {
            "actionDigest": digests.action_digest(TOOLS_CALL, name, arguments, facts=message.facts),
            "server": self._rules.server, "method": TOOLS_CALL, "name": name, "evidence": None, "withoutId": True,
        }  # fmt: skip
        if self._peer.verified_uid is not None:
            question["peerUid"] = self._peer.verified_uid
        self._verifier.verify(question, lambda _verdict: None)

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
        if message.method == "tasks/update" and self._attempts.approved_task(message.value.get("params")):
            self._log.event("input.refused", method=message.method)
            self._to_client(rejection(message.id, "missing", is_modern=self._opening.is_modern))
            return True
        return False

    def _is_id_in_use(self, request_id: Id) -> bool:
        if request_id in self._unanswered or self._attempts.is_waiting(request_id):
            return True
        if type(request_id) is str and request_id.startswith(ID_PREFIX):
            return True
        return bool(self._held) and any(
            one.message.id == request_id and type(one.message.id) is type(request_id)
            for one in self._held
            if not one.is_dropped and one.message.method is not None
        )

    def _refuse_id(self, request_id: Id, method: str) -> None:
        self._log.event("line.refused", method=method, reason="id_in_use")
        data = {"reason": "invalid_request", "detail": "id_in_use"}
        self._to_client(error_line(request_id, INVALID_REQUEST, "The id is in use", data))

    def _answer_broken(self, broken: Broken) -> None:
        self._log.event("line.refused", method=broken.method, reason=broken.reason)
        self._to_client(broken.answer)

    def _cancel_held(self, message: Message) -> bool:
        params = message.value.get("params")
        wanted = params.get("requestId") if type(params) is dict else None
        for held in self._held:
            if not isinstance(held, HeldCall) or held.is_dropped or type(wanted) is not type(held.call.id):
                continue
            if held.call.id == wanted:
                held.is_dropped = held.is_ready = True
                self._log.event("call.cancelled-before", tool=held.call.name, digest=held.digest)
                self._flush()
                return True
        return False

    def _pass_on(self, held: HeldLine) -> None:
        if self._held:
            self._held.append(held)
        else:
            self._forward(held)

    def _forward(self, held: HeldLine) -> None:
        """Send a line that needs no proof to the server, as it was received but for carriage returns.

        They are white space to JSON, but line ends to servers that read text with universal newlines, as Python's do:
        what stands between two of them would be a line of its own, a tools/call for instance.
        """
        message = held.message
        method = message.method
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
        if type(message) is list:
            for one in message:
                if type(one) is dict:
                    self._answered(one)
                    self._observe(one, needs_care=needs_care)
        elif type(message) is not dict:
            if line.strip():
                self._log.event("stdout.noise", connection=self.number, size=len(line))
            return
        else:
            self._answered(message)
            if "method" in message:
                if self._server_request(message):
                    return
            elif self._listing.take(message, line) or self._opening.answered(message, line):
                return
            self._observe(message, needs_care=needs_care)
        self._to_client(line + b"\n")

    def _answered(self, message: dict[str, Any]) -> None:
        message_id = message.get("id")
        if "method" not in message and (type(message_id) is int or type(message_id) is str):
            self._unanswered.discard(message_id)

    def _observe(self, message: dict[str, Any], *, needs_care: bool) -> None:
        observed = self._attempts.from_server(message)
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
        elif method == "elicitation/create" and self._attempts.any_approved():
            # Input for a call that a person has approved would change what was approved (call-proof.md 6.6).
            self._log.event("input.refused", method=method)
            message_id = message.get("id")
            if type(message_id) is int or type(message_id) is str:
                self._to_server(result_line(message_id, {"action": "cancel"}))
            return True
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


def _server_line(message: Message) -> bytes:
    """Return a call as the real server gets it: the value that was digested, written anew."""
    return orjson.dumps(message.value) + b"\n"
