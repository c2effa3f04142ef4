"""Runs the state models over a record: every event goes to its attempt, every decision to what it is about.

Each event is looked at once, in order of time. Tens of thousands of them are usual, so the way of an event on the
model is kept short, and what only findings need is worked out at the end.

Source: record.md 4.4 to 4.7, D-45 to D-51.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from onrecord.base.namespaces import AI_AGENT_EXTENSION, POLICY_DECISION
from onrecord.record._sorted_numbers import SortedNumbers
from onrecord.record.operations import (
    OPERATION,
    AttemptSummary,
    History,
    OperationSummary,
    Remark,
    StandingSummary,
)
from onrecord.record.standing import STRICTNESS, Standing, StandingDecisions, Target
from onrecord.record.states import ACTIVE, PERFORMING, WORKING, Attempt, DecisionState, decide
from onrecord.record.vcon.event_types import AMBIGUOUS, TI_EVENTS, kind_of
from onrecord.record.vcon.views import index_of

_NOT_OURS: Final = frozenset([AI_AGENT_EXTENSION, AMBIGUOUS])
_TOOL_OPERATION: Final = (None, OPERATION)
"""Values of `operation` in a decision about a tool; null is read as absent (record.md D-09)."""

_BEFORE_ALL_DATES: Final = -(1 << 80)


class _Attempt(Attempt):
    """An attempt with its events and the decision that was in effect when it started."""

    __slots__ = ("decision", "events", "party")

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.events: list[int] = []
        self.decision: Standing | None = None
        self.party: int | None = None


class _Operation:
    __slots__ = (
        "attempts",
        "decided",
        "decision_events",
        "decisions",
        "earlier",
        "has_other_party",
        "highest",
        "latest",
        "party",
        "server",
        "tool",
    )

    def __init__(self) -> None:
        self.server: str | None = None
        self.tool: str | None = None
        self.party: int | None = None
        self.has_other_party = False
        self.decisions: dict[int, Standing] = {}
        """The once decision that counts, by the attempt it precedes."""
        self.decided: SortedNumbers | None = None
        """The attempts with a once decision, if there is more than one."""
        self.decision_events: list[int] = []
        self.attempts: dict[int, _Attempt] = {}
        self.highest = 0
        self.latest: _Attempt | None = None
        """The attempt that was observed last, and in `earlier` the one before it."""
        self.earlier: _Attempt | None = None

    def decide(self, number: int, decision: Standing) -> None:
        """Take a once decision; of several for one attempt the last counts."""
        if number not in self.decisions and self.decisions:
            if self.decided is None:
                self.decided = SortedNumbers()
                self.decided.add(next(iter(self.decisions)))
            self.decided.add(number)
        self.decisions[number] = decision
        self.decision_events.append(decision.event)

    def decision_for(self, number: int) -> Standing | None:
        """Return the once decision with the highest attempt not above this one (record.md D-49)."""
        own = self.decisions.get(number)
        if own is not None or not self.decisions:
            return own
        lower = next(iter(self.decisions)) if self.decided is None else self.decided.highest_up_to(number)
        return None if lower is None or lower > number else self.decisions[lower]

    def note_party(self, value: Any) -> None:
        """Take the party of an event that is not the one known so far."""
        party = index_of(value)
        if self.party is None:
            self.party = party
        elif party is not None:
            self.has_other_party = True


class OperationReader:
    """Reads the operations of one record."""

    def __init__(self, events: Sequence[Any], moments: Sequence[int | None]) -> None:
        self._events = events
        self._moments = moments
        self._operations: dict[str, _Operation] = {}
        self._book = StandingDecisions()
        self._standing: dict[int, StandingSummary] = {}
        self._disallowed: list[int] = []
        self.remarks: list[Remark] = []

    def read(self, extensions: frozenset[str]) -> History:
        """Run the models over all events and return what they amount to."""
        operations, remarks = self._operations, self.remarks
        for _, index, event in self._in_time_order(extensions):
            name = event["type"]
            if name == POLICY_DECISION and event.get("policy_life") == "standing":
                self._take_standing(index, event)
                continue
            operation_id, number = event.get("operation_id"), event.get("attempt")
            if type(number) is not int:
                number = index_of(number)
            if type(operation_id) is not str or number is None or number < 0:
                continue
            if name == POLICY_DECISION:
                if event.get("policy_life") == "once" and event.get("operation") in _TOOL_OPERATION:
                    self._take_decision(index, event, operation_id, number)
                continue
            operation = operations.get(operation_id)
            if operation is None:
                operation = operations[operation_id] = _Operation()
            attempt = operation.attempts.get(number)
            if attempt is None:
                attempt = self._observe(index, operation, number)
            attempt.events.append(index)
            if event.get("party") != operation.party:
                operation.note_party(event.get("party"))
            if name == OPERATION:
                self._take_invocation(index, event, operation, attempt)
            else:
                code = attempt.apply(name)
                if code is not None:
                    data = {"state": attempt.state.value} if code == "pending-out-of-model" else None
                    remarks.append(Remark(code, index, data=data))
        return self._finish()

    def _in_time_order(self, extensions: frozenset[str]) -> list[tuple[int, int, Mapping[str, Any]]]:
        """Return the tool-invocation events by time, ties by index; one without a date takes its predecessor's."""
        keyed: list[tuple[int, int, Mapping[str, Any]]] = []
        last = _BEFORE_ALL_DATES
        for index, (event, ns) in enumerate(zip(self._events, self._moments, strict=True)):
            if type(event) is not dict:
                continue
            if ns is not None:
                last = ns
            name = event.get("type")
            if (
                type(name) is str
                and name in TI_EVENTS
                and (name != "tool-result" or kind_of(event, extensions) not in _NOT_OURS)
            ):
                keyed.append((last, index, event))
        keyed.sort()  # the index is unique, so events themselves are never compared
        return keyed

    def _observe(self, index: int, operation: _Operation, number: int) -> _Attempt:
        """Begin an attempt of which nothing was seen before."""
        if number != operation.highest + 1:
            self.remarks.append(Remark("attempt-gap", index))
        attempt = operation.attempts[number] = _Attempt(number)
        operation.earlier, operation.latest = operation.latest, attempt
        operation.highest = max(operation.highest, number)
        return attempt

    def _take_invocation(
        self, index: int, event: Mapping[str, Any], operation: _Operation, attempt: _Attempt
    ) -> None:
        if attempt.started:
            self.remarks.append(Remark("operation-id-reused", index))
            return
        previous = operation.earlier if operation.latest is attempt else operation.latest
        if previous is not None and previous.state in ACTIVE:
            severity = "warning" if previous.state in WORKING else None
            self.remarks.append(Remark("attempt-overlap", index, severity=severity))
        attempt.start(index)
        attempt.party = index_of(event.get("party"))
        self._compare_target(index, event, operation)
        attempt.decision = operation.decision_for(attempt.number)
        if attempt.decision is None and self._standing:
            attempt.decision = self._covering(event)
        state = attempt.decision and decide(attempt.decision.decision)
        if state is DecisionState.ALLOWED:
            return
        if state is DecisionState.DISALLOWED:
            self._disallowed.append(index)
        code = PERFORMING[state or DecisionState.UNDECIDED]
        assert code is not None
        self.remarks.append(Remark(code, index))

    def _covering(self, event: Mapping[str, Any]) -> Standing | None:
        """Return the standing decision for the tool of an event, else the one for its server."""
        party, server, tool = index_of(event.get("party")), event.get("server"), event.get("tool")
        if party is None or type(server) is not str:
            return None
        return self._book.effective(
            party=party, operation=OPERATION, server=server, tool=tool if type(tool) is str else None
        )

    def _take_decision(self, index: int, event: Mapping[str, Any], operation_id: str, number: int) -> None:
        value = event.get("decision")
        if type(value) is not str or value not in STRICTNESS:
            return
        operation = self._operations.get(operation_id)
        if operation is None:
            operation = self._operations[operation_id] = _Operation()
        self._compare_target(index, event, operation)
        if event.get("party") != operation.party:
            operation.note_party(event.get("party"))
        attempt = operation.attempts.get(number)
        if attempt is not None and attempt.started:
            self.remarks.append(Remark("decision-after-invocation", index))
        elif number in operation.decisions:
            self.remarks.append(Remark("decision-changed", index))
        if self._standing and self._covering(event) is not None:
            self.remarks.append(Remark("once-under-standing", index))
        operation.decide(number, Standing(value, index, "once"))

    def _take_standing(self, index: int, event: Mapping[str, Any]) -> None:
        value, party, server = event.get("decision"), index_of(event.get("party")), event.get("server")
        tool = event.get("tool")
        if type(value) is not str or value not in STRICTNESS or party is None or type(server) is not str:
            return
        if event.get("operation") not in _TOOL_OPERATION:
            return
        if tool is not None and type(tool) is not str:
            return  # nobody meant every tool of the server by it (record.md D-53)
        target = Target(party, OPERATION, server, tool)
        replaced = self._book.in_effect(target)
        if replaced is not None:
            self._standing[replaced] = self._standing[replaced]._replace(replaced_by=index)
        self._standing[index] = StandingSummary(index, value, party, server, target.tool, None)
        milder = self._book.record(target, value, index)
        if milder:
            self.remarks.append(Remark("standing-conflict", index, data={"tools": milder}))

    def _compare_target(self, index: int, event: Mapping[str, Any], operation: _Operation) -> None:
        server, tool = event.get("server"), event.get("tool")
        if type(server) is not str or type(tool) is not str:
            return
        if operation.server is None:
            operation.server, operation.tool = server, tool
        elif server != operation.server or tool != operation.tool:
            self.remarks.append(Remark("operation-target-changed", index))

    def _finish(self) -> History:
        refused: set[str] = set()
        for operation_id, operation in self._operations.items():
            for number, decision in operation.decisions.items():
                if number > operation.highest:
                    data = {"decision": decision.decision}
                    self.remarks.append(Remark("not-performed", decision.event, data=data))
            for attempt in operation.attempts.values():
                if attempt.start_index is not None and attempt.state in ACTIVE:
                    self.remarks.append(Remark("attempt-unfinished", attempt.start_index))
            if operation.has_other_party:
                self._compare_parties(operation)
            if operation.decisions and not operation.attempts:
                refused.add(operation_id)
        return History(
            remarks=tuple(self.remarks),
            standing=tuple(self._standing.values()),
            refused=frozenset(refused),
            disallowed=tuple(self._disallowed),
            summarize=self._summaries,
        )

    def _compare_parties(self, operation: _Operation) -> None:
        """Report events of another party than their tool-invocation, and keep the party of the first one."""
        started = [one.party for one in operation.attempts.values() if one.party is not None]
        first = started[0] if started else None
        numbered = [
            (index, attempt.party) for attempt in operation.attempts.values() for index in attempt.events
        ]
        for index in operation.decision_events:
            number = index_of(self._events[index].get("attempt"))
            own = operation.attempts.get(-1 if number is None else number)
            numbered.append((index, None if own is None else own.party))
        for index, own_party in sorted(numbered):
            party = index_of(self._events[index].get("party"))
            expected = first if own_party is None else own_party
            if party is not None and expected is not None and party != expected:
                self.remarks.append(Remark("party-changed", index, "party"))
        if first is not None:
            operation.party = first

    def _summaries(self) -> tuple[OperationSummary, ...]:
        return tuple(self._summarized())

    def _summarized(self) -> Iterator[OperationSummary]:
        """Yield the summaries, and let go of each operation: there may be a hundred thousand."""
        operations = list(self._operations.items())
        self._operations.clear()
        operations.reverse()
        while operations:
            yield _summarize(*operations.pop())


def _summarize(operation_id: str, operation: _Operation) -> OperationSummary:
    numbers = sorted(operation.attempts)
    attempts = tuple(_summarize_attempt(operation.attempts[number]) for number in numbers)
    decision: Standing | None = None
    outcome = "not-performed"
    if numbers:
        last = operation.attempts[numbers[-1]]
        decision = last.decision
        outcome = last.state.value if last.state.is_ended else "unfinished"
    elif operation.decisions:
        decision = operation.decisions[max(operation.decisions)]
    return OperationSummary(
        operation_id=operation_id,
        server=operation.server,
        tool=operation.tool,
        party=operation.party,
        decision=None if decision is None else decision.decision,
        decision_source="none" if decision is None else decision.source,
        performed=bool(attempts),
        outcome=outcome,
        attempts=attempts,
        decisions=tuple(operation.decision_events),
    )


def _summarize_attempt(attempt: _Attempt) -> AttemptSummary:
    decision = attempt.decision
    return AttemptSummary(
        attempt=attempt.number,
        state=attempt.state.value,
        decision=None if decision is None else decision.decision,
        decision_source="none" if decision is None else decision.source,
        decision_event=None if decision is None else decision.event,
        late=attempt.late,
        start=attempt.start_index,
        events=tuple(attempt.events),
    )
