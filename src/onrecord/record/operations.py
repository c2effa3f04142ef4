"""Operations of a vCon: decisions, attempts and outcomes, read from its tool-invocation events in order of time.

    >>> history = read_operations([{"type": "tool-invocation", "time": "2026-11-02T12:00:01Z", "party": 0,
    ...     "operation_id": "a", "attempt": 1, "server": "clock", "tool": "now"}])
    >>> history.operations[0].outcome
    'unfinished'

Source: TI 4 and 5; record.md 4.4 to 4.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

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


class AttemptSummary(NamedTuple):
    """An attempt at the end of the vCon. `start` is its tool-invocation; `events` are all its events, by time.

    `decision_event` is the policy-decision that was in effect when it started.
    """

    attempt: int
    state: str
    decision: str | None
    decision_source: str
    decision_event: int | None
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


class OperationSummary(NamedTuple):
    """An operation at the end of the vCon. `decisions` are the events of its once decisions, by time."""

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


class StandingSummary(NamedTuple):
    """A standing decision: its event, what it is about, and the later one with the same target that replaced it."""

    event: int
    decision: str
    party: int
    server: str
    tool: str | None
    replaced_by: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of `show --json`."""
        return self._asdict()


class History:
    """What the tool-invocation events of a vCon amount to.

    `remarks` are the findings of the state model, `standing` the standing decisions by time. `refused` are the ids
    of operations that were decided about and never performed; `disallowed` are the tool-invocations that started
    although the effective decision was "disallowed".
    """

    def __init__(
        self,
        *,
        remarks: tuple[Remark, ...],
        standing: tuple[StandingSummary, ...],
        refused: frozenset[str],
        disallowed: tuple[int, ...],
        summarize: Callable[[], tuple[OperationSummary, ...]],
    ) -> None:
        self.remarks = remarks
        self.standing = standing
        self.refused = refused
        self.disallowed = disallowed
        self._summarize = summarize

    @cached_property
    def operations(self) -> tuple[OperationSummary, ...]:
        """Return the operations in the order in which they were first seen. Made when asked for."""
        return self._summarize()


def read_operations(
    events: Sequence[Any],
    *,
    extensions: Sequence[str] = (),
    instants: Instants | None = None,
    moments: Sequence[int | None] | None = None,
) -> History:
    """Return the operations of a vCon's `events`, and the findings of the state model.

    `extensions` are the vCon's; they decide about a bare tool-result. Nothing is refused: an event without a usable
    operation_id or attempt is left out of the model and the checks of its members report it. `moments` are the times
    of the events in nanoseconds, where the caller has read them; else `instants` reads them.
    """
    from onrecord.record._operation_reader import OperationReader

    if moments is None:
        ns_of = (instants or Instants()).ns
        moments = [ns_of(event.get("time")) if type(event) is dict else None for event in events]
    return OperationReader(events, moments).read(frozenset(extensions))
