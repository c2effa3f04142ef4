"""Operations as people read them: each event with what it did to its attempt, and what is odd about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onrecord.base.namespaces import POLICY_DECISION
from onrecord.record.calls import Call
from onrecord.record.operations import OPERATION, AttemptSummary, History, OperationSummary
from onrecord.record.states import Attempt
from onrecord.record.story.model import Line, OperationStory, StandingStory
from onrecord.record.story.timeline import Timeline
from onrecord.record.story.words import party_of
from onrecord.record.vcon.views import Event, text_of


class Steps:
    """Tells the operations and standing decisions of a history."""

    def __init__(
        self, events: Sequence[Any], history: History, *, timeline: Timeline, parties: Sequence[str]
    ) -> None:
        self._events = events
        self._history = history
        self._timeline = timeline
        self._parties = parties
        self._remarks: dict[int, list[str]] = defaultdict(list)
        for remark in history.remarks:
            self._remarks[remark.event].append(remark.code)

    def operations(self, calls: Sequence[Call]) -> tuple[OperationStory, ...]:
        """Return every operation with its events; `calls` say which of them the model saw as a call."""
        seen = {
            call.operation.operation_id: call
            for call in calls
            if call.operation is not None and (call.call is not None or call.result is not None)
        }
        return tuple(
            self._operation(summary, seen.get(summary.operation_id)) for summary in self._history.operations
        )

    def standing(self) -> tuple[StandingStory, ...]:
        """Return the standing decisions by time, with the number of attempts that each one governed."""
        governed = Counter(
            attempt.decision_event
            for operation in self._history.operations
            for attempt in operation.attempts
            if attempt.decision_source.startswith("standing")
        )
        return tuple(
            StandingStory(
                summary=one,
                line=self._line(
                    one.event,
                    f"standing: {one.decision} for {one.server} › {'every tool' if one.tool is None else one.tool}",
                    state=one.decision,
                ),
                party=party_of(self._parties, one.party),
                governed=governed[one.event],
            )
            for one in self._history.standing
        )

    def _operation(self, summary: OperationSummary, call: Call | None) -> OperationStory:
        order = self._timeline.ns
        indexes = sorted(self._of(summary), key=lambda entry: (order[entry[0]], entry[0]))
        first = indexes[0][0] if indexes else None
        event: Mapping[str, Any] = {} if first is None else self._events[first]
        return OperationStory(
            summary=summary,
            lines=tuple(self._lines(summary, indexes)),
            who=party_of(self._parties, summary.party),
            ns=0 if first is None else order[first],
            sessions=Event(first or 0, event).sessions,
            took_ms=self._took_ms(summary, indexes),
            call=call,
        )

    def _took_ms(
        self, summary: OperationSummary, indexes: Sequence[tuple[int, AttemptSummary | None]]
    ) -> int | None:
        if summary.outcome in ("unfinished", "not-performed"):
            return None
        start = next((one.start for one in summary.attempts if one.start is not None), None)
        return self._timeline.took_ms(start, indexes[-1][0])

    def _of(self, summary: OperationSummary) -> Iterator[tuple[int, AttemptSummary | None]]:
        for index in summary.decisions:
            yield index, None
        for attempt in summary.attempts:
            for index in attempt.events:
                yield index, attempt

    def _lines(
        self, summary: OperationSummary, indexes: Sequence[tuple[int, AttemptSummary | None]]
    ) -> Iterator[Line]:
        """Yield the events by time; the state model runs again, to tell the state after each."""
        machines = {attempt.attempt: Attempt(attempt.attempt) for attempt in summary.attempts}
        for index, attempt in indexes:
            kind: str = self._events[index]["type"]
            if attempt is None or kind == POLICY_DECISION:
                decision = text_of(self._events[index].get("decision"))
                yield self._line(index, f"decided once: {decision}", state=decision)
                continue
            machine = machines[attempt.attempt]
            took = None
            if kind == OPERATION:
                machine.start(index)
            else:
                machine.apply(kind)
                took = self._timeline.took_ms(attempt.start, index)
            what = f"attempt {attempt.attempt}: {kind}"
            yield self._line(index, what, state=machine.state.value, took_ms=took)

    def _line(self, index: int, what: str, *, state: str | None, took_ms: int | None = None) -> Line:
        event = self._events[index]
        return Line(
            index=index,
            time=text_of(event.get("time")),
            what=what,
            state=state,
            took_ms=took_ms,
            note=text_of(event.get("reason")),
            remarks=tuple(self._remarks.get(index, ())),
            members=event,
        )
