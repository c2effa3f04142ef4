"""Operations of a vCon: decisions, attempts and outcomes, read from its tool-invocation events in order of time.

    >>> history = read_operations([{"type": "tool-invocation", "time": "2026-11-02T12:00:01Z", "party": 0,
    ...     "operation_id": "a", "attempt": 1, "server": "clock", "tool": "now"}])
    >>> history.operations[0].outcome
    'unfinished'

Source: TI 4 and 5; record.md 4.4 to 4.7.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from onrecord.base.namespaces import AI_AGENT_EXTENSION, POLICY_DECISION
from onrecord.record.standing import STRICTNESS, StandingDecisions, Target
from onrecord.record.states import PERFORMING, Attempt, DecisionState, decide
from onrecord.record.vcon.event_types import TI_EVENTS, kind_of
from onrecord.record.vcon.instants import Instants

OPERATION: Final = "tool-invocation"
"""The one kind of operation that the draft defines (TI 6.1.7)."""


class Remark(NamedTuple):
    """A finding about an event of the state model. `severity` replaces the usual one."""

    code: str
    event: int
    member: str = ""
    data: Mapping[str, Any] | None = None
    severity: str | None = None


class Decision(NamedTuple):
    """A once decision: its value and its event."""

    value: str
    event: int


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """An attempt at the end of the vCon. `start` is its tool-invocation; `events` are all its events, by time."""

    attempt: int
    state: str
    decision: str | None
    decision_source: str
    late: bool
    start: int | None
    events: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of `show --json`."""
        document: dict[str, Any] = {"attempt": self.attempt, "state": self.state}
        if self.decision is not None:
            document["decision"] = self.decision
        if self.late:
            document["late"] = True
        return document


@dataclass(frozen=True, slots=True)
class OperationSummary:
    """An operation at the end of the vCon."""

    operation_id: str
    server: str | None
    tool: str | None
    party: int | None
    decision: str | None
    decision_source: str
    performed: bool
    outcome: str
    attempts: tuple[AttemptSummary, ...]
    decisions: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of `show --json`."""
        return {
            "operation_id": self.operation_id,
            "server": self.server,
            "tool": self.tool,
            "party": self.party,
            "decision": self.decision,
            "decision_source": self.decision_source,
            "performed": self.performed,
            "outcome": self.outcome,
            "attempts": [attempt.to_json() for attempt in self.attempts],
        }


@dataclass(frozen=True, slots=True)
class History:
    """What the tool-invocation events of a vCon amount to."""

    operations: tuple[OperationSummary, ...]
    remarks: tuple[Remark, ...]
    standing: tuple[int, ...]
    refused: frozenset[str]
    """Ids of operations that were decided about and never performed."""


@dataclass(slots=True)
class _Attempt:
    machine: Attempt
    events: list[int] = field(default_factory=list)
    decision: str | None = None
    source: str = "none"
    party: int | None = None


@dataclass(slots=True)
class _Operation:
    server: str | None = None
    tool: str | None = None
    decisions: dict[int, Decision] = field(default_factory=dict)
    """The once decision that counts, by the attempt it precedes."""
    decided: list[int] = field(default_factory=list)
    """The attempts with a once decision, sorted."""
    decision_events: list[int] = field(default_factory=list)
    attempts: dict[int, _Attempt] = field(default_factory=dict)
    parties: list[tuple[int, int, int]] = field(default_factory=list)
    """Event, attempt and party of each event."""
    highest: int = 0
    latest: int | None = None


def read_operations(
    events: Sequence[Any], *, extensions: Sequence[str] = (), instants: Instants | None = None
) -> History:
    """Return the operations of a vCon's `events`, and the findings of the state model.

    `extensions` are the vCon's; they decide about a bare tool-result. Nothing is refused: an event without a usable
    operation_id or attempt is left out of the model and the checks of its members report it.
    """
    reader = _Reader(instants or Instants())
    for index, event in reader.in_time_order(events, frozenset(extensions)):
        reader.take(index, event)
    return reader.finish()


class _Reader:
    def __init__(self, instants: Instants) -> None:
        self._instants = instants
        self._operations: dict[str, _Operation] = defaultdict(_Operation)
        self._standing = StandingDecisions()
        self._standing_events: list[int] = []
        self.remarks: list[Remark] = []

    def in_time_order(
        self, events: Sequence[Any], extensions: frozenset[str]
    ) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the tool-invocation events by time, ties by index; one without a date takes its predecessor's."""
        keyed: list[tuple[int, int, Mapping[str, Any]]] = []
        last = -(1 << 80)
        ns_of = self._instants.ns
        for index, event in enumerate(events):
            if type(event) is not dict:
                continue
            ns = ns_of(event.get("time"))
            last = last if ns is None else ns
            name = event.get("type")
            if (
                type(name) is str
                and name in TI_EVENTS
                and (name != "tool-result" or kind_of(event, extensions) not in _NOT_OURS)
            ):
                keyed.append((last, index, event))
        keyed.sort()  # the index is unique, so events themselves are never compared
        for _, index, event in keyed:
            yield index, event

    def take(self, index: int, event: Mapping[str, Any]) -> None:
        name = event["type"]
        if name == POLICY_DECISION and event.get("policy_life") == "standing":
            self._take_standing(index, event)
            return
        operation_id = event.get("operation_id")
        number = _attempt_number(event.get("attempt"))
        if type(operation_id) is not str or number is None:
            return
        if name == POLICY_DECISION:
            if event.get("policy_life") == "once" and event.get("operation", OPERATION) == OPERATION:
                self._take_decision(index, event, self._operations[operation_id], number)
            return
        operation = self._operations[operation_id]
        attempt = operation.attempts.get(number)
        if attempt is None:
            attempt = self._observe(index, name, operation, number)
        attempt.events.append(index)
        if name == OPERATION:
            self._take_invocation(index, event, operation, attempt)
        else:
            code = attempt.machine.apply(name)
            if code is not None:
                data = {"state": attempt.machine.state.value} if code == "pending-out-of-model" else None
                self.remarks.append(Remark(code, index, data=data))
        _note_party(index, event, operation, number)

    def _observe(self, index: int, name: str, operation: _Operation, number: int) -> _Attempt:
        """Begin an attempt of which nothing was seen before."""
        if number != operation.highest + 1:
            self.remarks.append(Remark("attempt-gap", index))
        if name == OPERATION and operation.latest is not None:
            previous = operation.attempts[operation.latest].machine.state
            if previous.is_active:
                severity = "warning" if previous.is_working else None
                self.remarks.append(Remark("attempt-overlap", index, severity=severity))
        attempt = operation.attempts[number] = _Attempt(Attempt(number))
        operation.highest = max(operation.highest, number)
        operation.latest = number
        return attempt

    def _take_invocation(
        self, index: int, event: Mapping[str, Any], operation: _Operation, attempt: _Attempt
    ) -> None:
        if attempt.machine.started:
            self.remarks.append(Remark("operation-id-reused", index))
            return
        attempt.machine.start(index)
        attempt.party = _index(event.get("party"))
        self._compare_target(index, event, operation)
        self._decide(event, operation, attempt)
        state = decide(attempt.decision) if attempt.decision is not None else DecisionState.UNDECIDED
        code = PERFORMING[state or DecisionState.UNDECIDED]
        if code is not None:
            self.remarks.append(Remark(code, index))

    def _decide(self, event: Mapping[str, Any], operation: _Operation, attempt: _Attempt) -> None:
        """Set the effective decision: once, else standing for the tool, else standing for the server."""
        number = attempt.machine.number
        position = bisect_right(operation.decided, number)
        if position:
            attempt.decision = operation.decisions[operation.decided[position - 1]].value
            attempt.source = "once"
            return
        standing = self._covering(event)
        if standing is not None:
            attempt.decision, _, attempt.source = standing

    def _covering(self, event: Mapping[str, Any]) -> Any:
        party, server, tool = _index(event.get("party")), event.get("server"), event.get("tool")
        if party is None or type(server) is not str:
            return None
        return self._standing.effective(
            party=party, operation=OPERATION, server=server, tool=tool if type(tool) is str else None
        )

    def _take_decision(
        self, index: int, event: Mapping[str, Any], operation: _Operation, number: int
    ) -> None:
        value = event.get("decision")
        if type(value) is not str or value not in STRICTNESS:
            return
        self._compare_target(index, event, operation)
        _note_party(index, event, operation, number)
        attempt = operation.attempts.get(number)
        if attempt is not None and attempt.machine.started:
            self.remarks.append(Remark("decision-after-invocation", index))
        elif number in operation.decisions:
            self.remarks.append(Remark("decision-changed", index))
        if self._covering(event) is not None:
            self.remarks.append(Remark("once-under-standing", index))
        if number not in operation.decisions:
            insort(operation.decided, number)
        operation.decisions[number] = Decision(value, index)
        operation.decision_events.append(index)

    def _take_standing(self, index: int, event: Mapping[str, Any]) -> None:
        value, party, server = event.get("decision"), _index(event.get("party")), event.get("server")
        tool = event.get("tool")
        operation = event.get("operation", OPERATION)
        if type(value) is not str or value not in STRICTNESS or party is None or operation != OPERATION:
            return
        if type(server) is not str:
            return
        target = Target(party, OPERATION, server, tool if type(tool) is str else None)
        self._standing_events.append(index)
        milder = self._standing.record(target, value, index)
        if milder:
            self.remarks.append(Remark("standing-conflict", index, data={"tools": milder}))

    def _compare_target(self, index: int, event: Mapping[str, Any], operation: _Operation) -> None:
        server, tool = event.get("server"), event.get("tool")
        if type(server) is not str or type(tool) is not str:
            return
        if operation.server is None:
            operation.server, operation.tool = server, tool
        elif (server, tool) != (operation.server, operation.tool):
            self.remarks.append(Remark("operation-target-changed", index))

    def finish(self) -> History:
        refused: set[str] = set()
        summaries: list[OperationSummary] = []
        for operation_id, operation in self._operations.items():
            last_start = max(
                (number for number, attempt in operation.attempts.items() if attempt.machine.started),
                default=-1,
            )
            for number, decision in operation.decisions.items():
                if number > last_start:
                    self.remarks.append(
                        Remark("not-performed", decision.event, data={"decision": decision.value})
                    )
            for attempt in operation.attempts.values():
                start = attempt.machine.start_index
                if start is not None and attempt.machine.state.is_active:
                    self.remarks.append(Remark("attempt-unfinished", start))
            party = self._compare_parties(operation)
            summary = _summarize(operation_id, operation, party)
            if not summary.performed and summary.decision is not None:
                refused.add(operation_id)
            summaries.append(summary)
        return History(
            tuple(summaries), tuple(self.remarks), tuple(self._standing_events), frozenset(refused)
        )

    def _compare_parties(self, operation: _Operation) -> int | None:
        """Report events of another party than their tool-invocation, and return the party of the operation."""
        started = [attempt.party for attempt in operation.attempts.values() if attempt.party is not None]
        first = started[0] if started else None
        for index, number, party in operation.parties:
            attempt = operation.attempts.get(number)
            expected = first if attempt is None or attempt.party is None else attempt.party
            if expected is not None and party != expected:
                self.remarks.append(Remark("party-changed", index, "party"))
        if first is None and operation.parties:
            return operation.parties[0][2]
        return first


_NOT_OURS: Final = frozenset([AI_AGENT_EXTENSION, "ambiguous"])


def _note_party(index: int, event: Mapping[str, Any], operation: _Operation, number: int) -> None:
    party = _index(event.get("party"))
    if party is not None:
        operation.parties.append((index, number, party))


def _summarize(operation_id: str, operation: _Operation, party: int | None) -> OperationSummary:
    attempts = tuple(
        AttemptSummary(
            attempt=number,
            state=attempt.machine.state.value,
            decision=attempt.decision,
            decision_source=attempt.source,
            late=attempt.machine.late,
            start=attempt.machine.start_index,
            events=tuple(attempt.events),
        )
        for number, attempt in sorted(operation.attempts.items())
    )
    decision: str | None = None
    source = "none"
    if attempts:
        outcome = "unfinished"
        last = operation.attempts[attempts[-1].attempt]
        decision, source = last.decision, last.source
        if last.machine.state.is_ended:
            outcome = last.machine.state.value
    else:
        outcome = "not-performed"
        if operation.decided:
            decision, source = operation.decisions[operation.decided[-1]].value, "once"
    return OperationSummary(
        operation_id=operation_id,
        server=operation.server,
        tool=operation.tool,
        party=party,
        decision=decision,
        decision_source=source,
        performed=bool(attempts),
        outcome=outcome,
        attempts=attempts,
        decisions=tuple(operation.decision_events),
    )


def _attempt_number(value: Any) -> int | None:
    if type(value) is int:
        return value if value >= 0 else None
    return int(value) if type(value) is float and value.is_integer() and value >= 0 else None


def _index(value: Any) -> int | None:
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None
