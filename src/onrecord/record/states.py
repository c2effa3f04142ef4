"""The state model of an attempt, as a table: one request to a tool and everything that comes back.

    >>> attempt = Attempt(1)
    >>> attempt.start()
    >>> attempt.apply("tool-result")
    >>> attempt.state.value
    'completed'

Events off the model are never refused: they leave the state as it is and give a finding.

Source: TI 5, tables 1 and 2; record.md 4.5 to 4.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class State(Enum):
    """State of an attempt."""

    NONE = "none"
    RUNNING = "running"
    PENDING = "pending"
    INPUT_REQUIRED = "input-required"
    TIMED_OUT = "timed-out"
    CANCEL_REQUESTED = "cancel-requested"
    COMPLETED = "completed"
    FAILED = "failed"
    ERRORED = "errored"
    DENIED = "denied"

    __hash__ = (
        object.__hash__
    )  # members are unique; the hash of Enum is Python code, and each event asks for it

    @property
    def is_working(self) -> bool:
        """Say whether the tool is at work or waits for input."""
        return self in WORKING

    @property
    def is_active(self) -> bool:
        """Say whether an answer can still end the attempt."""
        return self in ACTIVE

    @property
    def is_ended(self) -> bool:
        """Say whether the attempt has ended. There is no state "cancelled"."""
        return self in ENDED


WORKING: Final = frozenset([State.RUNNING, State.PENDING, State.INPUT_REQUIRED])
ACTIVE: Final = WORKING | {State.TIMED_OUT, State.CANCEL_REQUESTED}
ENDED: Final = frozenset([State.COMPLETED, State.FAILED, State.ERRORED, State.DENIED])

ENDS: Final[Mapping[str, State]] = MappingProxyType(
    {
        "tool-result": State.COMPLETED,
        "tool-failure": State.FAILED,
        "tool-error": State.ERRORED,
        "tool-denied": State.DENIED,
    }
)
"""Event types that end an attempt, and the state they lead to."""


class Step(NamedTuple):
    """What an event does in a state: the next state (None: it stays) and the finding it gives, if any."""

    state: State | None = None
    finding: str | None = None
    to_origin: bool = False


_STAY: Final = Step()
_INPUT: Final = Step(State.INPUT_REQUIRED)
_TIMEOUT: Final = Step(State.TIMED_OUT)
_CANCEL: Final = Step(State.CANCEL_REQUESTED)
_PENDING_OFF: Final = Step(finding="pending-out-of-model")
_INPUT_OFF: Final = Step(finding="input-out-of-model")
_RESPONSE_OFF: Final = Step(finding="input-response-without-input")
_AFTER_END: Final = Step(finding="event-after-end")
_SECOND_END: Final = Step(finding="second-end")

_NOT_ENDS: Final = (
    "tool-pending",
    "tool-progress",
    "tool-input",
    "tool-input-response",
    "tool-timeout",
    "tool-cancel",
)


def _row(*steps: Step, late: bool = False) -> dict[str, Step]:
    row = dict(zip(_NOT_ENDS, steps, strict=True))
    finding = "late-response" if late else None
    row.update({name: Step(state, finding) for name, state in ENDS.items()})
    return row


_TABLE: dict[State, dict[str, Step]] = {
    #                      pending       progress  input       input-response  timeout       cancel
    State.RUNNING: _row(Step(State.PENDING), _STAY, _INPUT, _RESPONSE_OFF, _TIMEOUT, _CANCEL),
    State.PENDING: _row(_PENDING_OFF, _STAY, _INPUT, _RESPONSE_OFF, _TIMEOUT, _CANCEL),
    State.INPUT_REQUIRED: _row(
        _PENDING_OFF,
        Step(finding="progress-while-input-required"),
        _INPUT_OFF,
        Step(to_origin=True),
        _TIMEOUT,
        _CANCEL,
    ),
    State.TIMED_OUT: _row(
        _PENDING_OFF,
        _STAY,
        _INPUT_OFF,
        _RESPONSE_OFF,
        Step(finding="timeout-out-of-model"),
        _CANCEL,
        late=True,
    ),
    State.CANCEL_REQUESTED: _row(
        _PENDING_OFF,
        _STAY,
        _INPUT_OFF,
        _RESPONSE_OFF,
        Step(finding="timeout-out-of-model"),
        Step(finding="cancel-out-of-model"),
        late=True,
    ),
}
_TABLE.update(
    {
        state: {**dict.fromkeys(_NOT_ENDS, _AFTER_END), **dict.fromkeys(ENDS, _SECOND_END)}
        for state in (State.COMPLETED, State.FAILED, State.ERRORED, State.DENIED)
    }
)

TRANSITIONS: Final[Mapping[State, Mapping[str, Step]]] = MappingProxyType(_TABLE)
"""What each event type does in each state, except `State.NONE`, whose row is that of RUNNING with a finding."""


class Attempt:
    """One attempt as its events come in."""

    __slots__ = ("late", "number", "origin", "start_index", "started", "state")

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = State.NONE
        self.origin = State.RUNNING
        self.started = False
        self.late = False
        self.start_index: int | None = None

    def start(self, index: int | None = None) -> None:
        """Take a tool-invocation, the event at `index`. A second one changes nothing."""
        if not self.started:
            self.started = True
            self.start_index = index
            if self.state is State.NONE:
                self.state = State.RUNNING

    def apply(self, event_type: str) -> str | None:
        """Take a response event and return the finding code it gives, or None if it is on the model."""
        if self.state is State.NONE:
            self.state = State.RUNNING
            self._take(TRANSITIONS[State.RUNNING][event_type])
            return "response-before-invocation"
        return self._take(TRANSITIONS[self.state][event_type])

    def _take(self, step: Step) -> str | None:
        if step.to_origin:
            self.state = self.origin
        elif step.state is not None:
            if step.state is State.INPUT_REQUIRED:
                self.origin = self.state
            self.state = step.state
            self.late = self.late or step.finding == "late-response"
        return step.finding


class DecisionState(Enum):
    """What policy says about an operation before it is performed (TI 4, table 1)."""

    UNDECIDED = "undecided"
    ALLOWED = "allowed"
    PERMISSION_REQUIRED = "permission-required"
    DISALLOWED = "disallowed"


PERFORMING: Final[Mapping[DecisionState, str | None]] = MappingProxyType(
    {
        DecisionState.UNDECIDED: "undecided",
        DecisionState.ALLOWED: None,
        DecisionState.PERMISSION_REQUIRED: "permission-unobserved",
        DecisionState.DISALLOWED: "invocation-after-disallowed",
    }
)
"""The finding that a tool-invocation gives in each decision state. The operation is performed in all of them."""


def decide(decision: str) -> DecisionState | None:
    """Return the state that a policy-decision leads to, from any state; None if the value is not one of the three."""
    return _DECISIONS.get(decision)


_DECISIONS: Final = {state.value: state for state in DecisionState if state is not DecisionState.UNDECIDED}
