"""The gate that every tools/call of one connection passes: held for its verdict, then executed, rejected or dropped.

Lines leave in the order they came; a call whose proof is being verified holds back the lines after it. The gate knows
nothing of transports: the relay stands it between two pipes, the SDK hook between a transport and the server object.

Source: call-proof.md 6.3 to 6.6.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from onrecord.authorize import digest as digests
from onrecord.authorize.guard.authority_link import UNREACHABLE, Verdict
from onrecord.authorize.guard.call_entries import CallEntries
from onrecord.authorize.guard.extension import Evidence, Malformed, rejection
from onrecord.authorize.guard.held_lines import HeldCall, HeldLine, Prepared
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.mcp_events import Attempts
from onrecord.authorize.guard.opening import Opening
from onrecord.authorize.guard.reading import TOOLS_CALL, Call, Id, Message
from onrecord.authorize.guard.recording import Recording
from onrecord.authorize.guard.relay_rules import ClientPeer, RelayRules, Verifier
from onrecord.authorize.guard.tools_listing import ToolsListing
from onrecord.base.namespaces import CALL_PROOF_REJECTED
from onrecord.base.wire import INTERNAL_ERROR, error_line

RECORD_UNAVAILABLE: Final = "record_unavailable"
STOPPING: Final = "stopping"
REJECTED: Final = "Call proof rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateParts:
    """What a gate works with. All of it belongs to one connection, but for verifier, recording and log."""

    number: str
    rules: RelayRules
    peer: ClientPeer
    verifier: Verifier
    recording: Recording
    log: GuardLog
    attempts: Attempts
    entries: CallEntries
    listing: ToolsListing
    opening: Opening


class CallGate:
    """Holds lines in order. `to_client` and `to_server` take whole lines with LF.

    `forward` gets each line that needs no proof when its turn has come, `settled` is called when nothing is held any
    more, `later` gets work that can wait until the authority has been asked.
    """

    def __init__(
        self,
        parts: GateParts,
        *,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
        forward: Callable[[HeldLine], None],
        settled: Callable[[], None] = lambda: None,
        later: Callable[[Callable[[], None]], object] = lambda _: None,
    ) -> None:
        self._number = parts.number
        self._rules = parts.rules
        self._peer = parts.peer
        self._verifier = parts.verifier
        self._recording = parts.recording
        self._log = parts.log
        self._attempts = parts.attempts
        self._entries = parts.entries
        self._listing = parts.listing
        self._opening = parts.opening
        self._to_client = to_client
        self._to_server = to_server
        self._forward = forward
        self._on_settled = settled
        self._later = later
        self._held: deque[HeldLine] = deque()
        self._unsettled: list[tuple[HeldCall, asyncio.TimerHandle]] = []
        self._reports = 0
        self._is_closed = False
        self._takes_calls = True
        self.unproven = 0
        """Calls without proof that were executed in audit mode while the authority could not be told."""

    @property
    def held(self) -> int:
        """Lines that wait behind a verification, and calls without id of which the authority is being told."""
        return len(self._held) + self._reports

    def holds(self, request_id: Id) -> bool:
        """Say whether a request with this id waits here."""
        return bool(self._held) and any(
            one.message.id == request_id and type(one.message.id) is type(request_id)
            for one in self._held
            if not one.is_dropped and one.message.method is not None
        )

    def stop_calls(self) -> None:
        """Take no new calls; those that run go on."""
        self._takes_calls = False

    def close(self) -> None:
        """Drop everything that is held: nothing is forwarded any more."""
        self._is_closed = True
        for held, timer in self._unsettled:
            timer.cancel()
            held.is_dropped = True
        self._unsettled.clear()
        self._held.clear()

    def pass_on(self, held: HeldLine) -> None:
        """Forward a line that needs no proof, behind the lines that wait."""
        if self._held:
            self._held.append(held)
        else:
            self._forward(held)

    def take(self, message: Message, call: Call, *, line_bytes: int) -> None:
        """Take a covered call whose id is free."""
        if not self._recording.admits(line_bytes):
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

    def without_id(self, message: Message) -> None:
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
        self._reports += 1
        self._verifier.verify(question, self._reported)

    def _reported(self, _verdict: Verdict) -> None:
        self._reports -= 1
        if not self._reports:
            self._on_settled()

    def cancel(self, message: Message) -> bool:
        """Drop the held call that a notifications/cancelled names, unanswered; say whether there was one."""
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

    def tools_settled(self) -> None:
        """Ask about the calls that waited until the authority knew the tools."""
        waiting, self._unsettled = self._unsettled, []
        for held, timer in waiting:
            timer.cancel()
            if not held.is_dropped:
                self._ask(held)

    def _await_tools(self, held: HeldCall) -> None:
        if not self._listing.has_begun:
            self._opening.list_tools(held.call.meta)
        timer = asyncio.get_running_loop().call_later(
            self._rules.report_timeout_ms / 1000, self._tools_late, held
        )
        self._unsettled.append((held, timer))

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
            held.prepared = Prepared(name, self._entries.prepare(held, name), server_line(held.message))

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
        attempt = self._attempts.continued(held.digest, call.request_state) if call.continues else None
        if attempt is not None:
            observed = self._attempts.resume(
                attempt, call.id, token=token, responses=call.input_responses, approved=approved
            )
            is_recorded = self._recording.observed(self._number, [observed])
            line = server_line(held.message)
        else:
            prepared = held.prepared
            if prepared is None:
                name = self._attempts.next_call()
                prepared = Prepared(name, self._entries.prepare(held, name), server_line(held.message))
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


def server_line(message: Message) -> bytes:
    """Return a call as the real server gets it: the value that was digested, written anew."""
    return orjson.dumps(message.value) + b"\n"
