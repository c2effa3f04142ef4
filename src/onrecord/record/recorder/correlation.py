"""Which invocation belongs to which decision, and which attempt it is. Done at the end, so arrival order is irrelevant.

    >>> correlate([]).events
    ()

Source: running.md 8 (join, attempt numbers); record.md 4.4, 4.6.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from onrecord.record.recorder.carry import CallKey, CarriedOperation, Carry
from onrecord.record.recorder.entries import (
    ENDS,
    Connection,
    Decision,
    Entry,
    Gap,
    Invocation,
    Proof,
    Response,
)
from onrecord.record.recorder.recorded import Origin


class Placed(NamedTuple):
    """An entry with its journal number, its origin and its place in time (ms since 1970 and CLOCK_BOOTTIME)."""

    seq: int
    origin: Origin
    entry: Entry
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event without its content: what it is, when, of which operation and attempt, and which entry made it.

    `server` is a deployment id, set where the event names a server. `may_hold_arguments` is False for the arguments
    of a call that was refused, or that ran without the permission it needed.
    """

    type: str
    seq: int
    time_ms: int
    operation_id: str
    attempt: int
    server: str | None = None
    tool: str | None = None
    decision: Literal["allowed", "permission-required", "disallowed"] | None = None
    reason: str | None = None
    may_hold_arguments: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """The events of a session in order, the names that servers gave themselves, and what the next session needs."""

    events: tuple[EventDraft, ...]
    server_names: Mapping[str, str]
    gaps: tuple[tuple[Gap, int], ...]
    caller: str | None
    last_ms: int | None
    carry: Carry


@dataclass(slots=True)
class _Operation:
    id: str
    server: str
    tool: str
    action_digest: str | None
    attempts: int = 0
    decision: str | None = None
    is_granted: bool = False
    proof_refs: set[str] = field(default_factory=set)
    guard: Origin | None = None


def order(placed: Iterable[Placed]) -> list[Placed]:
    """Return entries in time order; ties: decision, invocation, then number, then source (running.md 8)."""
    return sorted(placed, key=_order_key)


def _order_key(one: Placed) -> tuple[int, int, int, int, str, str, int]:
    rank = 0 if isinstance(one.entry, Decision | Proof) else 1 if isinstance(one.entry, Invocation) else 2
    origin = one.origin
    return one.time_ms, one.entry.mono_ns, rank, one.entry.n, origin.source, origin.server or "", origin.uid


def correlate(placed: Iterable[Placed], *, carry: Carry | None = None, scope: str = "") -> Correlation:
    """Join decisions, proofs, invocations and responses of one session.

    `carry` is what the session before of the same key left open. `scope` goes into the ids of operations that nobody
    named, so that they are unique; the same entries give the same result.
    """
    return _Correlator(carry or Carry(), scope).run(order(placed))


class _Correlator:
    def __init__(self, carry: Carry, scope: str) -> None:
        self._scope = scope
        self._operations: dict[str, _Operation] = {}
        self._by_proof: dict[tuple[str, str | None, str], str] = {}
        self._decided: defaultdict[tuple[str, str | None], list[str]] = defaultdict(list)
        self._carried_calls = {key: (operation, attempt) for key, operation, attempt in carry.calls}
        self._calls: defaultdict[CallKey, list[tuple[int, _Operation, int]]] = defaultdict(list)
        self._ended: set[tuple[str, int]] = set()
        self._events: list[EventDraft] = []
        for one in carry.operations:
            operation = _Operation(
                one.operation_id,
                one.server,
                one.tool,
                one.action_digest,
                attempts=one.attempts,
                decision=one.decision,
                is_granted=one.is_granted,
                proof_refs=set(one.proof_refs),
            )
            self._operations[operation.id] = operation
            for ref in one.proof_refs:
                self._by_proof[one.server, one.action_digest, ref] = operation.id
            if one.decision is not None and one.action_digest is not None:
                self._decided[one.server, one.action_digest].append(operation.id)

    def run(self, ordered: Sequence[Placed]) -> Correlation:
        # Ids that the authority gave, known before a guard can claim one of them.
        authority_ids = {one.entry.operation_id for one in ordered if isinstance(one.entry, Decision | Proof)}
        authority_ids |= set(self._operations)
        for one in ordered:
            entry = one.entry
            if isinstance(entry, Decision | Proof) and entry.proof_ref is not None:
                self._by_proof.setdefault(
                    (entry.server, entry.action_digest, entry.proof_ref), entry.operation_id
                )
        names: dict[str, str] = {}
        gaps: list[tuple[Gap, int]] = []
        caller: str | None = None
        responses: list[Placed] = []
        for one in ordered:
            entry = one.entry
            if isinstance(entry, Decision):
                caller = caller or entry.caller
                self._decide(one, entry)
            elif isinstance(entry, Proof):
                self._prove(entry)
            elif isinstance(entry, Invocation):
                self._invoke(one, entry, authority_ids)
            elif isinstance(entry, Response):
                responses.append(one)
            elif isinstance(entry, Connection):
                if entry.server_name is not None and one.origin.server is not None:
                    names.setdefault(one.origin.server, entry.server_name)
            elif isinstance(entry, Gap):
                gaps.append((entry, one.time_ms))
        for one in responses:
            self._respond(one)
        position = {one.seq: index for index, one in enumerate(ordered)}
        events = tuple(sorted(self._events, key=lambda event: position[event.seq]))
        return Correlation(
            events=events,
            server_names=names,
            gaps=tuple(gaps),
            caller=caller,
            last_ms=max((one.time_ms for one in ordered), default=None),
            carry=self._left(),
        )

    def _decide(self, one: Placed, entry: Decision) -> None:
        operation = self._operation(entry.operation_id, entry.server, entry.tool, entry.action_digest)
        operation.decision = entry.decision
        if entry.proof_ref is not None:
            operation.proof_refs.add(entry.proof_ref)
        if entry.decision != "permission-required":
            operation.is_granted = entry.decision == "allowed"
        self._decided[entry.server, entry.action_digest].append(operation.id)
        reason = entry.reason if entry.decision == "disallowed" else None
        if reason is not None and entry.ref is not None:
            reason = f"{reason}, ref {entry.ref}"
        self._events.append(
            EventDraft(
                type="policy-decision",
                seq=one.seq,
                time_ms=one.time_ms,
                operation_id=operation.id,
                attempt=operation.attempts + 1,
                server=entry.server,
                tool=entry.tool,
                decision=entry.decision,
                reason=reason,
            )
        )

    def _prove(self, entry: Proof) -> None:
        operation = self._operation(entry.operation_id, entry.server, "", entry.action_digest)
        operation.proof_refs.add(entry.proof_ref)

    def _operation(self, id_: str, server: str, tool: str, digest: str | None) -> _Operation:
        operation = self._operations.get(id_)
        if operation is None:
            operation = self._operations[id_] = _Operation(id_, server, tool, digest)
        return operation

    def _invoke(self, one: Placed, entry: Invocation, authority_ids: set[str]) -> None:
        operation, by_proof = self._join(one, entry, authority_ids)
        operation.attempts += 1
        operation.tool = operation.tool or entry.tool
        if by_proof:
            operation.is_granted = operation.decision != "disallowed"
        refused = operation.decision == "disallowed" or (
            operation.decision == "permission-required" and not operation.is_granted
        )
        self._calls[CallKey(one.origin, entry.connection, entry.call)].append(
            (entry.n, operation, operation.attempts)
        )
        self._events.append(
            EventDraft(
                type="tool-invocation",
                seq=one.seq,
                time_ms=one.time_ms,
                operation_id=operation.id,
                attempt=operation.attempts,
                server=entry.server,
                tool=entry.tool,
                may_hold_arguments=entry.is_admitted and not refused,
            )
        )

    def _join(self, one: Placed, entry: Invocation, authority_ids: set[str]) -> tuple[_Operation, bool]:
        """Return the operation of an invocation by the three rules, and whether its proof led there."""
        if entry.proof_ref is not None:
            found = self._by_proof.get((entry.server, entry.action_digest, entry.proof_ref))
            if found is not None:
                return self._operation(found, entry.server, entry.tool, entry.action_digest), True
        if entry.action_digest is not None:
            for found in reversed(self._decided.get((entry.server, entry.action_digest), ())):
                operation = self._operations[found]
                if operation.decision == "disallowed" or operation.attempts == 0:
                    return operation, False
        id_ = entry.operation_id
        known = self._operations.get(id_)
        is_own = known is not None and (known.guard, known.server, known.tool, known.action_digest) == (
            one.origin,
            entry.server,
            entry.tool,
            entry.action_digest,
        )
        if id_ in authority_ids or (known is not None and not is_own):
            # The guard names an operation that is not its own: a new id keeps ids unique (TI-132).
            id_ = self._made_up(one.origin, entry.connection, entry.call, str(entry.n))
        operation = self._operation(id_, entry.server, entry.tool, entry.action_digest)
        operation.guard = one.origin
        return operation, False

    def _respond(self, one: Placed) -> None:
        entry = one.entry
        assert isinstance(entry, Response)
        key = CallKey(one.origin, entry.connection, entry.call)
        operation_id, attempt = self._attempt_of(key, entry.n)
        kind = entry.kind
        if kind == "denied" and not _is_denial(entry.content):
            kind = "error"
        if kind in ENDS:
            self._ended.add((operation_id, attempt))
        self._events.append(
            EventDraft(
                type=f"tool-{kind}",
                seq=one.seq,
                time_ms=one.time_ms,
                operation_id=operation_id,
                attempt=attempt,
            )
        )

    def _attempt_of(self, key: CallKey, n: int) -> tuple[str, int]:
        attempts = self._calls.get(key)
        if attempts:
            earlier = [one for one in attempts if one[0] < n] or attempts[:1]
            return earlier[-1][1].id, earlier[-1][2]
        carried = self._carried_calls.get(key)
        if carried is not None:
            return carried
        return self._made_up(key.origin, key.connection, key.call, ""), 1

    def _made_up(self, origin: Origin, *parts: str) -> str:
        text = "\n".join([self._scope, str(origin.uid), origin.server or "", origin.source, *parts])
        digest = bytearray(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16])
        digest[6] = digest[6] & 0x0F | 0x80
        digest[8] = digest[8] & 0x3F | 0x80
        return str(uuid.UUID(bytes=bytes(digest)))

    def _left(self) -> Carry:
        calls = [
            (key, operation.id, attempt)
            for key, attempts in self._calls.items()
            for _, operation, attempt in attempts[-1:]
            if (operation.id, attempt) not in self._ended
        ]
        calls += [
            (key, operation_id, attempt)
            for key, (operation_id, attempt) in self._carried_calls.items()
            if (operation_id, attempt) not in self._ended and key not in self._calls
        ]
        running = {operation_id for _, operation_id, _ in calls}
        operations = [
            CarriedOperation(
                operation_id=one.id,
                server=one.server,
                tool=one.tool,
                action_digest=one.action_digest,
                attempts=one.attempts,
                decision=one.decision,
                is_granted=one.is_granted,
                proof_refs=tuple(sorted(one.proof_refs)),
            )
            for one in self._operations.values()
            if one.id in running or one.proof_refs or one.decision == "permission-required"
        ]
        return Carry(operations=tuple(operations), calls=tuple(calls))


def _is_denial(content: Any) -> bool:
    """Say whether a denial has the form of one: a reason, or an HTTP status (record.md D-60, D-61)."""
    if not isinstance(content, Mapping):
        return False
    data = content.get("data")
    return "http_status" in content or (isinstance(data, Mapping) and "reason" in data)
