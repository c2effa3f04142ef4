"""What the connector does with the lines of a client: a proof for each call, everything else as it came.

Bytes in, bytes out, like the relay: no descriptor and no task of its own.

Source: running.md 6; call-proof.md 1.4, 6.1 to 6.3.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import orjson

from onrecord.authorize.client import APPROVAL_WAIT_MS
from onrecord.authorize.connector.refusals import refusal_line, too_many_held
from onrecord.authorize.connector.rounds import Rounds
from onrecord.authorize.guard.extension import declare
from onrecord.authorize.guard.lines import Overlong
from onrecord.authorize.guard.opening import DISCOVER_ID
from onrecord.authorize.guard.reading import (
    CAPABILITIES_META,
    PROTOCOL_META,
    TOOLS_CALL,
    Broken,
    Call,
    Id,
    Message,
    read_call,
    read_message,
)
from onrecord.authorize.guard.tools_listing import MODERN_REVISION
from onrecord.base.namespaces import (
    CALL_PROOF_META,
    CALL_PROOF_REJECTED,
    RECORD_SESSION_META,
)
from onrecord.base.wire import RpcError, error_line

MAX_HELD_CALLS: Final = 64
"""Calls that wait for a proof at one time (running.md 12)."""

MAX_FOLLOWED_CALLS: Final = 4096
"""Calls whose answers are looked at for one more try; beyond it the oldest gets none."""

PROGRESS_SECONDS: Final = 5.0
"""Pace of progress notices while an approval is pending."""

RETRIED_REASONS: Final = frozenset(("expired", "replayed", "missing"))
"""Reasons after which a proof that the connector attached is renewed, once (running.md 6)."""

_WORTH_READING = re.compile(rb"tools/call|notifications/cancelled|\\")
_ANSWER_ID = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(-?[0-9]{1,18}|"[^"\\]*")\s*,\s*"(result|error)"'
)


class Issues(Protocol):
    """What the connector needs of the authority."""

    def issue(self, params: Mapping[str, Any], done: Callable[[Any], None], *, wait_ms: int = 0) -> None:
        """Ask for a proof; `done` gets the result or the error once."""


class _Pending:
    """A call on its way: waiting for a proof, or sent with one."""

    __slots__ = ("call", "deadline", "is_dropped", "is_retry", "message", "operation", "ticker")

    def __init__(self, message: Message, call: Call) -> None:
        self.message = message
        self.call = call
        self.operation: str | None = None
        self.is_dropped = False
        self.is_retry = False
        self.deadline: float | None = None
        self.ticker: asyncio.TimerHandle | None = None


class Calls:
    """The connector's part of one connection. `to_guard` and `to_client` take whole lines with LF."""

    def __init__(
        self,
        *,
        server: str,
        label: str,
        issues: Issues,
        to_guard: Callable[[bytes], None],
        to_client: Callable[[bytes], None],
        call_line_bytes: int,
        approval_wait_seconds: float = 50,
        approval_wait_progress_seconds: float = 280,
        probe_timeout_seconds: float = 2.0,
        settled: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = server
        self._label = label
        self._issues = issues
        self._to_guard = to_guard
        self._to_client = to_client
        self._call_line_bytes = call_line_bytes
        self._approval_wait = approval_wait_seconds
        self._approval_wait_progress = approval_wait_progress_seconds
        self._probe_timeout = probe_timeout_seconds
        self._on_settled = settled
        self._waiting: dict[Id, _Pending] = {}
        self._sent: dict[Id, _Pending] = {}
        self._rounds = Rounds()
        self._is_first = True
        self._probe: asyncio.TimerHandle | None = None
        self._behind_probe: list[_Pending] = []
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Calls that wait for a proof."""
        return len(self._waiting)

    @property
    def unanswered(self) -> int:
        """Calls that wait for a proof or for their answer."""
        return len(self._waiting) + len(self._sent)

    def client_line(self, line: bytes | Overlong) -> None:
        """Take one line of the client, without LF. A line over the limit is passed on by the reader of the stream."""
        if isinstance(line, Overlong):
            broken = read_message(line)
            if isinstance(broken, Broken):
                self._to_client(broken.answer)
            return
        is_first, self._is_first = self._is_first, False
        if _WORTH_READING.search(line) is not None:
            message = read_message(line)
            if type(message) is Message:
                if message.method == TOOLS_CALL and message.id is not None:
                    call = read_call(message, line_bytes=len(line) + 1, limit_bytes=self._call_line_bytes)
                    if type(call) is Call and not (call.meta is not None and CALL_PROOF_META in call.meta):
                        self._begin(_Pending(message, call), is_first=is_first)
                        return
                elif message.method == "notifications/cancelled" and self._cancel(message):
                    return
        self._to_guard(line + b"\n")

    def guard_line(self, line: bytes | Overlong) -> None:
        """Take one line of the guard, without LF."""
        if isinstance(line, Overlong):
            return  # the reader's limit is above the guard's own
        if self._sent or self._probe is not None:
            answer_id, is_error = _answer_of(line)
            if answer_id is not None:
                if answer_id == DISCOVER_ID:  # also when it comes late, after the calls went on without it
                    if self._probe is not None:
                        self._probe_answered()
                    return
                pending = self._sent.pop(answer_id, None)
                if pending is not None:
                    if is_error and self._retry(pending, line):
                        return
                    self._rounds.answered(pending.message, pending.call, pending.operation, line)
        elif DISCOVER_ID.encode() in line and _answer_of(line)[0] == DISCOVER_ID:
            return
        self._to_client(line + b"\n")
        if not self._waiting and not self._sent:
            self._on_settled()

    def close(self) -> None:
        """Forget everything: nobody is there any more."""
        self._is_closed = True
        if self._probe is not None:
            self._probe.cancel()
            self._probe = None
        for pending in [*self._waiting.values(), *self._sent.values()]:
            _stop_ticking(pending)
        self._waiting.clear()
        self._sent.clear()

    def _begin(self, pending: _Pending, *, is_first: bool) -> None:
        call = pending.call
        if call.id in self._waiting or call.id in self._sent:
            data = {"reason": "invalid_request", "detail": "id_in_use"}
            self._to_client(error_line(call.id, -32600, "The id is in use", data))
            return
        if len(self._waiting) >= MAX_HELD_CALLS:
            self._to_client(too_many_held(call.id))
            return
        pending.operation = self._rounds.operation(pending.message, call)
        self._waiting[call.id] = pending
        if is_first:
            self._ask_first(call)
        if self._probe is not None:
            self._behind_probe.append(pending)
        else:
            self._issue(pending)

    def _ask_first(self, call: Call) -> None:
        """A call as the very first line: make the guard report the tools before a proof is asked for."""
        meta: dict[str, Any] = {PROTOCOL_META: MODERN_REVISION}
        if call.is_modern and call.meta is not None:
            meta = dict(call.meta)
        for name in ("progressToken", RECORD_SESSION_META):
            meta.pop(name, None)
        meta.setdefault(CAPABILITIES_META, {})
        request = {
            "jsonrpc": "2.0",
            "id": DISCOVER_ID,
            "method": "server/discover",
            "params": {"_meta": meta},
        }
        self._probe = asyncio.get_running_loop().call_later(self._probe_timeout, self._probe_answered)
        self._to_guard(orjson.dumps(request) + b"\n")

    def _probe_answered(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            self._probe = None
        behind, self._behind_probe = self._behind_probe, []
        for pending in behind:
            if not pending.is_dropped:
                self._issue(pending)

    def _issue(self, pending: _Pending, *, wait_ms: int = 0) -> None:
        call = pending.call
        params: dict[str, Any] = {"method": TOOLS_CALL, "name": call.name, "server": self._server}
        if "arguments" in call.params:
            params["arguments"] = call.arguments
        if call.input_responses is not None:
            params["inputResponses"] = call.input_responses
        if call.request_state is not None:
            params["requestState"] = call.request_state
        params["recordSession"] = self._label
        if pending.operation is not None:
            params["operationId"] = pending.operation
        if wait_ms:
            params["waitMs"] = wait_ms
        self._issues.issue(params, lambda answer: self._issued(pending, answer), wait_ms=wait_ms)

    def _issued(self, pending: _Pending, answer: Any) -> None:
        if pending.is_dropped or self._is_closed:
            return
        if isinstance(answer, RpcError):
            self._keep_operation(pending, answer.data.get("operationId"))
            if answer.reason == "approval_pending" and self._wait_for_approval(pending, answer):
                return
        elif type(answer) is dict and _is_evidence(answer.get("evidence")):
            self._keep_operation(pending, answer.get("operationId"))
            self._send(pending, answer["evidence"])
            return
        self._waiting.pop(pending.call.id, None)
        _stop_ticking(pending)
        self._to_client(refusal_line(pending.call.id, answer))
        self._on_settled()

    def _send(self, pending: _Pending, evidence: dict[str, Any]) -> None:
        call = pending.call
        self._waiting.pop(call.id, None)
        _stop_ticking(pending)
        meta = call.params.get("_meta")
        if meta is None:
            meta = call.params["_meta"] = {}
        meta[CALL_PROOF_META] = {"type": evidence["type"], "value": evidence["value"]}
        meta[RECORD_SESSION_META] = self._label
        declare(meta)
        if len(self._sent) >= MAX_FOLLOWED_CALLS:
            del self._sent[next(iter(self._sent))]
        self._sent[call.id] = pending
        self._to_guard(orjson.dumps(pending.message.value) + b"\n")

    def _retry(self, pending: _Pending, line: bytes) -> bool:
        """Get a new proof, once, when the guard did not take the one that was attached here."""
        if pending.is_retry or pending.is_dropped:
            return False
        try:
            error = orjson.loads(line)["error"]
            if error["code"] != CALL_PROOF_REJECTED or fold(error["data"]["reason"]) not in RETRIED_REASONS:
                return False
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        pending.is_retry = True
        self._waiting[pending.call.id] = pending
        self._issue(pending)
        return True

    def _cancel(self, message: Message) -> bool:
        """Drop a call that waits for its proof; one that was sent is the guard's to cancel."""
        params = message.value.get("params")
        request_id = params.get("requestId") if type(params) is dict else None
        if type(request_id) is not int and type(request_id) is not str:
            return False
        pending = self._waiting.pop(request_id, None)
        if pending is not None:
            pending.is_dropped = True
            _stop_ticking(pending)
            self._on_settled()
            return True
        self._sent.pop(request_id, None)
        return False

    def _keep_operation(self, pending: _Pending, operation: Any) -> None:
        if type(operation) is str and 0 < len(operation) <= 64:
            pending.operation = operation

    def _wait_for_approval(self, pending: _Pending, error: RpcError) -> bool:
        """Ask again, held open, until the limit; say whether it was not yet reached."""
        loop = asyncio.get_running_loop()
        token = pending.call.meta.get("progressToken") if pending.call.meta is not None else None
        has_token = type(token) is int or type(token) is str
        if pending.deadline is None:
            wait = self._approval_wait_progress if has_token else self._approval_wait
            pending.deadline = loop.time() + wait
            if has_token:
                self._tick(pending, token)
        left_ms = int((pending.deadline - loop.time()) * 1000)
        if left_ms <= 0:
            return False
        retry_ms = error.data.get("retryAfterMs")
        pause = min(retry_ms, 1000) / 1000 if type(retry_ms) is int and retry_ms > 0 else 0.1
        loop.call_later(min(pause, left_ms / 1000), self._ask_again, pending, min(APPROVAL_WAIT_MS, left_ms))
        return True

    def _ask_again(self, pending: _Pending, wait_ms: int) -> None:
        if not pending.is_dropped and not self._is_closed:
            self._issue(pending, wait_ms=wait_ms)

    def _tick(self, pending: _Pending, token: Any) -> None:
        loop = asyncio.get_running_loop()
        assert pending.deadline is not None
        notice = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {
                "progressToken": token,
                # Negative and rising, so that it stays below whatever the server reports later.
                "progress": -max(0.0, pending.deadline - loop.time()) / 1e6,
                "message": "waiting for approval by reviewers",
            },
        }
        self._to_client(orjson.dumps(notice) + b"\n")
        pending.ticker = loop.call_later(PROGRESS_SECONDS, self._tick, pending, token)


def fold(reason: str) -> str:
    """Return a reason in its folded form (call-proof.md 6.3): lower case, "-" and space as "_"."""
    return reason.lower().replace("-", "_").replace(" ", "_")


def _stop_ticking(pending: _Pending) -> None:
    if pending.ticker is not None:
        pending.ticker.cancel()
        pending.ticker = None


def _is_evidence(value: Any) -> bool:
    return type(value) is dict and type(value.get("type")) is str and type(value.get("value")) is str


def _answer_of(line: bytes) -> tuple[Id | None, bool]:
    """Return the id that a line answers, or None, and whether it is an error."""
    match = _ANSWER_ID.match(line)
    try:
        if match is not None:
            return orjson.loads(match[1]), match[2] == b"error"
        message = orjson.loads(line)
    except ValueError:
        return None, False
    if type(message) is not dict or "method" in message:
        return None, False
    found = message.get("id")
    return (found if type(found) is int or type(found) is str else None), "error" in message
