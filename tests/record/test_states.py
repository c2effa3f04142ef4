"""The state model of an attempt: every cell of the table, and the groups of states."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.states import (
    ACTIVE,
    ENDED,
    ENDS,
    PERFORMING,
    TRANSITIONS,
    WORKING,
    Attempt,
    DecisionState,
    State,
    decide,
)

RUN, PEND, INPUT = State.RUNNING, State.PENDING, State.INPUT_REQUIRED
TIMED, CANCEL = State.TIMED_OUT, State.CANCEL_REQUESTED
SIGNALS = (
    "tool-pending",
    "tool-progress",
    "tool-input",
    "tool-input-response",
    "tool-timeout",
    "tool-cancel",
)
STAY = None

CELLS = {
    RUN: ((PEND, None), (STAY, None), (INPUT, None), (STAY, "input-response-without-input"), (TIMED, None),
          (CANCEL, None)),
    PEND: ((STAY, "pending-out-of-model"), (STAY, None), (INPUT, None), (STAY, "input-response-without-input"),
           (TIMED, None), (CANCEL, None)),
    INPUT: ((STAY, "pending-out-of-model"), (STAY, "progress-while-input-required"),
            (STAY, "input-out-of-model"), (RUN, None), (TIMED, None), (CANCEL, None)),
    TIMED: ((STAY, "pending-out-of-model"), (STAY, None), (STAY, "input-out-of-model"),
            (STAY, "input-response-without-input"), (STAY, "timeout-out-of-model"), (CANCEL, None)),
    CANCEL: ((STAY, "pending-out-of-model"), (STAY, None), (STAY, "input-out-of-model"),
             (STAY, "input-response-without-input"), (STAY, "timeout-out-of-model"),
             (STAY, "cancel-out-of-model")),
}  # fmt: skip
"""The table of the specification, written down a second time: next state and finding by signal."""

REQ = {
    "tool-pending": "TI-055",
    "tool-progress": "TI-056",
    "tool-input": "TI-058",
    "tool-input-response": "TI-059",
    "tool-timeout": "TI-061",
    "tool-cancel": "TI-062",
    "tool-result": "TI-063",
    "tool-failure": "TI-064",
    "tool-error": "TI-065",
    "tool-denied": "TI-066",
}
WAYS = {
    RUN: (),
    PEND: ("tool-pending",),
    INPUT: ("tool-input",),
    TIMED: ("tool-timeout",),
    CANCEL: ("tool-cancel",),
    State.COMPLETED: ("tool-result",),
    State.FAILED: ("tool-failure",),
    State.ERRORED: ("tool-error",),
    State.DENIED: ("tool-denied",),
}


def attempt_in(state):
    attempt = Attempt(1)
    attempt.start(0)
    for signal in WAYS[state]:
        attempt.apply(signal)
    assert attempt.state is state
    return attempt


CELL_PARAMETERS = [
    pytest.param(state, signal, *cell, marks=pytest.mark.req(REQ[signal]), id=f"{state.value}-{signal}")
    for state, row in CELLS.items()
    for signal, cell in zip(SIGNALS, row, strict=True)
]


class TestAttempt:
    @pytest.mark.req("TI-054")
    def test_start(self):
        """The tool-invocation starts an attempt in Running, and a second one changes nothing."""
        attempt = Attempt(1)
        assert attempt.state is State.NONE
        attempt.start(4)
        assert (attempt.state, attempt.start_index) == (RUN, 4)
        attempt.apply("tool-result")
        attempt.start(9)
        assert (attempt.state, attempt.start_index) == (State.COMPLETED, 4)

    @pytest.mark.parametrize(("state", "signal", "following", "finding"), CELL_PARAMETERS)
    def test_cell(self, state, signal, following, finding):
        """Each cell leads where the table says and gives the finding that stands in it."""
        attempt = attempt_in(state)
        assert attempt.apply(signal) == finding
        assert attempt.state is (following or state)

    @pytest.mark.parametrize(
        ("signal", "end"), [pytest.param(*pair, marks=pytest.mark.req(REQ[pair[0]])) for pair in ENDS.items()]
    )
    @pytest.mark.parametrize("state", [RUN, PEND, INPUT, TIMED, CANCEL])
    def test_ends(self, state, signal, end):
        """From every active state an answer ends the attempt; after time-out or cancel it is late."""
        attempt = attempt_in(state)
        late = state in (TIMED, CANCEL)
        assert attempt.apply(signal) == ("late-response" if late else None)
        assert (attempt.state, attempt.late) == (end, late)

    @pytest.mark.parametrize("signal", [*SIGNALS, *ENDS])
    @pytest.mark.parametrize("state", sorted(ENDED, key=lambda state: state.value))
    def test_after_the_end(self, state, signal):
        """After an end nothing changes any more: the first end counts."""
        attempt = attempt_in(state)
        assert attempt.apply(signal) == ("second-end" if signal in ENDS else "event-after-end")
        assert attempt.state is state

    @pytest.mark.parametrize("signal", [*SIGNALS, *ENDS])
    def test_before_the_invocation(self, signal):
        """Without a tool-invocation an event is taken as in Running, with a note; later ones as usual."""
        attempt = Attempt(1)
        assert attempt.apply(signal) == "response-before-invocation"
        step = TRANSITIONS[RUN][signal]
        assert attempt.state is (step.state or RUN)
        assert not attempt.started

    @pytest.mark.parametrize("origin", [RUN, PEND])
    @pytest.mark.req("TI-059")
    def test_input_returns_to_where_it_came_from(self, origin):
        """A response to input leads back to Running or Pending, whichever asked for it."""
        attempt = attempt_in(origin)
        attempt.apply("tool-input")
        assert attempt.apply("tool-input-response") is None
        assert attempt.state is origin

    def test_groups(self):
        """Working, active and ended are the groups of the draft; no state is called cancelled."""
        assert {RUN, PEND, INPUT} == WORKING
        assert WORKING | {TIMED, CANCEL} == ACTIVE
        assert {state.value for state in ENDED} == {"completed", "failed", "errored", "denied"}
        assert not ACTIVE & ENDED
        assert "cancelled" not in {state.value for state in State}
        assert set(TRANSITIONS) == ACTIVE | ENDED

    @given(st.lists(st.sampled_from([*SIGNALS, *ENDS, "tool-invocation"])))
    def test_any_sequence(self, signals):
        """Whatever comes in whatever order: one end at most, and off-model events never move the state."""
        attempt = Attempt(1)
        ended = None
        for signal in signals:
            if signal == "tool-invocation":
                attempt.start()
                continue
            before = attempt.state
            finding = attempt.apply(signal)
            if finding in ("event-after-end", "second-end"):
                assert attempt.state is before
            if ended is not None:
                assert attempt.state is ended
            elif attempt.state.is_ended:
                ended = attempt.state


class TestDecision:
    @pytest.mark.parametrize(
        ("value", "state"),
        [
            pytest.param("allowed", DecisionState.ALLOWED, marks=pytest.mark.req("TI-029")),
            pytest.param(
                "permission-required", DecisionState.PERMISSION_REQUIRED, marks=pytest.mark.req("TI-030")
            ),
            pytest.param("disallowed", DecisionState.DISALLOWED, marks=pytest.mark.req("TI-031")),
            ("denied", None),
        ],
    )
    def test_decide(self, value, state):
        """Each decision leads to its state; other words lead nowhere."""
        assert decide(value) is state

    @pytest.mark.req("TI-032", "TI-033")
    def test_performing(self):
        """An operation is performed from every state; only Allowed gives no finding."""
        assert PERFORMING[DecisionState.ALLOWED] is None
        assert PERFORMING[DecisionState.PERMISSION_REQUIRED] == "permission-unobserved"
        assert PERFORMING[DecisionState.DISALLOWED] == "invocation-after-disallowed"
        assert PERFORMING[DecisionState.UNDECIDED] == "undecided"
