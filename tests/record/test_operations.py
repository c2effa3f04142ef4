"""Operations over a whole vCon: order of time, decisions, standing decisions, attempts, outcomes."""

import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record import _sorted_numbers
from onrecord.record._sorted_numbers import SortedNumbers
from onrecord.record.operations import read_operations
from onrecord.record.standing import STRICTNESS, StandingDecisions, Target
from support.vcons import answer, decision, invocation, standing

MEMBERS = ["type", "time", "party", "operation_id", "attempt", "decision", "policy_life", "server", "tool"]
VALUES = ["tool-invocation", "policy-decision", "tool-result", "a", 1, 2, 0, -1, 1.0, None, [], {}, True,
          "allowed", "disallowed", "once", "standing", "2026-11-02T12:00:00Z"]  # fmt: skip


def told(*events):
    history = read_operations(list(events))
    return history, {one.operation_id: one for one in history.operations}


def remarks(*events):
    return [(one.code, one.event) for one in read_operations(list(events)).remarks]


class TestOrder:
    def test_time_not_position(self):
        """Events count in the order of their times, whatever their order in the array."""
        history, operations = told(answer("tool-result", 3), invocation(1), decision(second=0))
        assert operations["a"].attempts[0].events == (1, 0)
        assert history.remarks == ()

    def test_ties_by_index(self):
        """Events of one time count in the order of the array."""
        assert remarks(decision(second=1), invocation(1), answer("tool-result", 1)) == []

    def test_without_date(self):
        """An event without a date takes the place of its predecessor."""
        assert remarks(decision(), invocation(1), answer("tool-result", time="soon")) == []

    @pytest.mark.req("TI-075")
    def test_late_answer_belongs_to_its_attempt(self):
        """A late answer to attempt 1 changes attempt 1 only, though attempt 2 runs."""
        _, operations = told(
            invocation(1), answer("tool-timeout", 2), invocation(3, attempt=2), answer("tool-result", 4)
        )
        states = [(one.attempt, one.state, one.late) for one in operations["a"].attempts]
        assert states == [(1, "completed", True), (2, "running", False)]
        assert operations["a"].outcome == "unfinished"


class TestDecisions:
    @pytest.mark.req("TI-038", "TI-140")
    def test_decision_comes_before(self):
        """A once decision recorded after the invocation does not count for it."""
        assert ("decision-after-invocation", 1) in remarks(invocation(1), decision(second=2))
        _, operations = told(invocation(1), decision("disallowed", second=2))
        assert operations["a"].decision is None

    @pytest.mark.req("TI-020", "TI-039")
    def test_highest_attempt_not_above(self):
        """For attempt n the decision with the highest attempt not above n counts, of several the last."""
        events = (
            decision("disallowed", 0),
            decision("allowed", 1),
            invocation(2),
            answer("tool-failure", 3),
            invocation(4, attempt=2),
            answer("tool-failure", 5, attempt=2),
            decision("permission-required", 6, attempt=3),
            invocation(7, attempt=3),
        )
        history, operations = told(*events)
        assert [one.decision for one in operations["a"].attempts] == [
            "allowed",
            "allowed",
            "permission-required",
        ]
        codes = [(one.code, one.event) for one in history.remarks]
        assert codes == [("decision-changed", 1), ("permission-unobserved", 7), ("attempt-unfinished", 7)]

    def test_not_performed(self):
        """A decision that no attempt follows is reported once, with its value."""
        history, operations = told(decision("permission-required"))
        assert [(one.code, one.data) for one in history.remarks] == [
            ("not-performed", {"decision": "permission-required"})
        ]
        assert operations["a"].outcome == "not-performed"
        assert history.refused == {"a"}

    @pytest.mark.parametrize(
        ("value", "code"),
        [
            ("disallowed", "invocation-after-disallowed"),
            ("permission-required", "permission-unobserved"),
            ("allowed", None),
        ],
    )
    def test_performed_all_the_same(self, value, code):
        """What happened is kept whatever policy said, and the record says so."""
        found = remarks(decision(value), invocation(1), answer("tool-result"))
        assert found == ([(code, 1)] if code else [])

    def test_other_operation_is_no_decision_about_tools(self):
        """A decision about another kind of operation does not count for a tool."""
        assert ("undecided", 1) in remarks(decision(operation="delegation"), invocation(1))


class TestStanding:
    @pytest.mark.req("TI-043")
    def test_for_tool_and_server(self):
        """The decision for the tool applies, whatever the order; else the one for the server."""
        for events in (
            (standing("allowed", 0), standing("disallowed", 1, tool=None)),
            (standing("disallowed", 0, tool=None), standing("allowed", 1)),
        ):
            _, operations = told(*events, invocation(2))
            assert (operations["a"].decision, operations["a"].decision_source) == ("allowed", "standing-tool")
        _, operations = told(standing("disallowed", 0, tool=None), invocation(2))
        assert operations["a"].decision_source == "standing-server"

    def test_never_backwards(self):
        """A standing decision does not reach operations before it."""
        _, operations = told(invocation(1), standing("allowed", 2))
        assert operations["a"].decision_source == "none"

    def test_replaced(self):
        """A later standing decision with the same target ends the earlier one; once decisions do not."""
        _, operations = told(
            standing("allowed", 0),
            standing("disallowed", 1),
            decision("allowed", 2, operation_id="b"),
            invocation(3),
        )
        assert operations["a"].decision == "disallowed"

    @pytest.mark.parametrize("member", [{"party": 5}, {"server": "other"}, {"tool": "other"}])
    def test_key(self, member):
        """Party, server and tool are the key of a standing decision."""
        _, operations = told(standing("disallowed", 0, **member), invocation(1))
        assert operations["a"].decision is None

    def test_session_is_not_part_of_the_key(self):
        """A standing decision of another session holds."""
        _, operations = told(standing("allowed", 0, sessions=[7]), invocation(1))
        assert operations["a"].decision == "allowed"

    def test_once_wins(self):
        """A once decision under a standing one is noted and wins for its operation."""
        history, operations = told(standing("allowed", 0), decision("disallowed", 1), invocation(2))
        assert operations["a"].decision == "disallowed"
        assert ("once-under-standing", 1) in [(one.code, one.event) for one in history.remarks]

    def test_told_with_what_replaced_it(self):
        """Every standing decision is kept: by time, with its target, and with the later one that replaced it."""
        history, operations = told(
            standing("allowed", 2),
            standing("disallowed", 0),
            standing("permission-required", 1, tool=None),
            invocation(3),
        )
        assert [(one.event, one.decision, one.tool, one.replaced_by) for one in history.standing] == [
            (1, "disallowed", "now", 0),
            (2, "permission-required", None, None),
            (0, "allowed", "now", None),
        ]
        assert operations["a"].attempts[0].decision_event == 0

    @pytest.mark.parametrize("tool", [5, ["now", "other"], {}, True])
    def test_no_tool(self, tool):
        """A decision whose tool is no name is not one for every tool of the server (D-53)."""
        event = {**standing("allowed", 0), "tool": tool}
        history, operations = told(event, invocation(1))
        assert (operations["a"].decision, history.standing) == (None, ())
        assert told({**standing("allowed", 0), "tool": None}, invocation(1))[1]["a"].decision == "allowed"

    def test_no_decision(self):
        """A decision that is none of the three makes no operation."""
        history, operations = told(decision("perhaps"))
        assert (operations, history.refused, history.remarks) == ({}, frozenset(), ())

    def test_disallowed_starts(self):
        """Tool-invocations that started against a decision are named, whatever kind of decision it was."""
        history, _ = told(
            decision("disallowed"),
            invocation(1),
            standing("disallowed", 2, server="files", tool=None),
            invocation(3, operation_id="b", server="files"),
            invocation(4, operation_id="c"),
        )
        assert history.disallowed == (1, 3)

    def test_conflict(self):
        """A later server-wide decision that is stricter than one of its tools is reported, a milder one is not."""
        assert ("standing-conflict", 1) in remarks(
            standing("allowed", 0), standing("disallowed", 1, tool=None)
        )
        assert remarks(standing("disallowed", 0), standing("allowed", 1, tool=None)) == []
        assert remarks(standing("disallowed", 0, tool=None), standing("allowed", 1)) == []

    @pytest.mark.req("TI-047")
    def test_restating(self):
        """What a new vCon restates is every decision in effect, once each, with the values of the last."""
        book = StandingDecisions()
        one, other = Target(0, "tool-invocation", "s", "t"), Target(0, "tool-invocation", "s", None)
        for target, value in ((one, "allowed"), (other, "disallowed"), (one, "permission-required")):
            book.record(target, value, 0)
        assert [(target, value) for target, value, _ in book.all_in_effect()] == [
            (one, "permission-required"),
            (other, "disallowed"),
        ]

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["s", "r"]),
                st.sampled_from(["t", "u", None]),
                st.sampled_from(list(STRICTNESS)),
            )
        ),
        st.sampled_from(["s", "r"]),
        st.sampled_from(["t", "u", "v"]),
    )
    def test_same_as_naive(self, decisions, server, tool):
        """The decision in effect, and the number of milder tools, are those of a search through everything."""
        book = StandingDecisions()
        for index, (own_server, own_tool, value) in enumerate(decisions):
            milder = book.record(Target(0, "x", own_server, own_tool), value, index)
            if own_tool is None:
                last = {t: v for s, t, v in decisions[:index] if s == own_server and t is not None}
                assert milder == sum(STRICTNESS[other] < STRICTNESS[value] for other in last.values())
        found = book.effective(party=0, operation="x", server=server, tool=tool)
        for wanted in (tool, None):
            fitting = [v for s, t, v in decisions if (s, t) == (server, wanted)]
            if fitting:
                assert found.decision == fitting[-1]
                break
        else:
            assert found is None


SIGNALS = ["tool-invocation", "tool-pending", "tool-progress", "tool-input", "tool-input-response",
           "tool-timeout", "tool-cancel", "tool-result", "tool-failure", "tool-error", "tool-denied"]  # fmt: skip
ENDS = {
    "tool-result": "completed",
    "tool-failure": "failed",
    "tool-error": "errored",
    "tool-denied": "denied",
}


def slow_state(kinds):
    """The state after some events of one attempt, written down from the sentences of the draft."""
    state, origin = "running", "running"
    for kind in kinds:
        working = state in ("running", "pending", "input-required")
        if state in ENDS.values():
            break
        if kind in ENDS:
            state = ENDS[kind]
        elif kind == "tool-cancel":
            state = "cancel-requested"
        elif kind == "tool-timeout" and working:
            state = "timed-out"
        elif kind == "tool-pending" and state == "running":
            state = "pending"
        elif kind == "tool-input" and state in ("running", "pending"):
            state, origin = "input-required", state
        elif kind == "tool-input-response" and state == "input-required":
            state = origin
    return state


def slow_decision(before, started):
    """The decision in effect for a tool-invocation, found by looking through everything before it."""
    once = [
        (event["attempt"], place, event["decision"])
        for place, event in enumerate(before)
        if event["type"] == "policy-decision"
        and event["policy_life"] == "once"
        and event["operation_id"] == started["operation_id"]
        and event["attempt"] <= started["attempt"]
    ]
    if once:
        return max(once)[2], "once"
    for source, tool in (("standing-tool", started["tool"]), ("standing-server", None)):
        for event in reversed(before):
            if (
                event.get("policy_life") == "standing"
                and (event["party"], event["server"]) == (started["party"], started["server"])
                and event.get("tool") == tool
            ):
                return event["decision"], source
    return None, "none"


def slow_summaries(events):
    """Operations with the state and the decision of each attempt, each found by a search of its own."""
    ordered = [
        event for _, event in sorted(enumerate(events), key=lambda entry: (entry[1]["time"], entry[0]))
    ]
    found = {}
    for place, event in enumerate(ordered):
        if event["type"] == "policy-decision":
            if event["policy_life"] == "once":
                found.setdefault(event["operation_id"], {})
            continue
        attempts = found.setdefault(event["operation_id"], {})
        own = attempts.setdefault(
            event["attempt"], {"kinds": [], "decision": (None, "none"), "started": False}
        )
        own["kinds"].append(event["type"])
        if event["type"] == "tool-invocation" and not own["started"]:
            own["started"] = True
            own["decision"] = slow_decision(ordered[:place], event)
    return {
        name: {number: (slow_state(own["kinds"]), *own["decision"]) for number, own in attempts.items()}
        for name, attempts in found.items()
    }


@st.composite
def any_event(draw):
    second, attempt = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    own = {
        "operation_id": draw(st.sampled_from("ab")),
        "attempt": attempt,
        "party": draw(st.sampled_from([0, 0, 0, 1])),
    }
    target = {"server": draw(st.sampled_from("sssr")), "tool": draw(st.sampled_from("tttu"))}
    value = draw(st.sampled_from(sorted(STRICTNESS)))
    kind = draw(st.sampled_from(["once", "standing", "standing", "signal", "invocation", "invocation"]))
    if kind == "once":
        return decision(value, second, **own, **target)
    if kind == "standing":
        tool = draw(st.sampled_from(["t", "t", "u", None, None]))
        return standing(value, second, party=own["party"], server=target["server"], tool=tool)
    if kind == "invocation":
        return invocation(second, **own, **target)
    return answer(draw(st.sampled_from(SIGNALS[1:])), second, **own)


@settings(max_examples=100, deadline=None)
@given(st.lists(any_event(), min_size=8, max_size=16))
def test_against_a_slow_model(events):
    """Scope, precedence, replacement and states are those that a plain search through the record finds."""
    history = read_operations(events)
    quick = {
        one.operation_id: {
            own.attempt: (own.state, own.decision, own.decision_source) for own in one.attempts
        }
        for one in history.operations
    }
    assert quick == slow_summaries(events)
    counted = [index for one in history.operations for own in one.attempts for index in own.events]
    counted += [index for one in history.operations for index in one.decisions]
    counted += [one.event for one in history.standing]
    assert sorted(counted) == list(range(len(events)))  # every event is kept, none twice


class TestSortedNumbers:
    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.integers(0, 400), unique=True), st.integers(-1, 401))
    def test_highest(self, numbers, asked):
        """The highest number not above the one asked for is found, in whatever order they came."""
        held = SortedNumbers()
        for number in numbers:
            held.add(number)
        assert held.highest_up_to(asked) == max((one for one in numbers if one <= asked), default=None)

    @pytest.mark.parametrize("step", [1, -1])
    def test_many(self, step):
        """Rows are split, and numbers are found in each of them."""
        held = SortedNumbers()
        numbers = range(0, 20_000, 2)[::step]
        for number in numbers:
            held.add(number)
        assert [held.highest_up_to(number + 1) for number in numbers] == list(numbers)
        assert held.highest_up_to(-1) is None
        assert held.highest_up_to(10**9) == 19_998

    def test_example(self):
        """The example in the class gives what it says."""
        assert doctest.testmod(_sorted_numbers).failed == 0


class TestAttempts:
    @pytest.mark.req("TI-071", "TI-072", "TI-074", "TI-131", "TI-142")
    def test_all_attempts_are_kept(self):
        """Failing and succeeding attempts of one operation are both there, and the last one counts."""
        _, operations = told(
            invocation(1),
            answer("tool-error", 2),
            invocation(3, attempt=2),
            answer("tool-result", 4, attempt=2),
        )
        assert [one.state for one in operations["a"].attempts] == ["errored", "completed"]
        assert operations["a"].outcome == "completed"

    @pytest.mark.parametrize(
        ("numbers", "gaps"),
        [((1, 2, 3), 0), ((2,), 1), ((1, 3), 1), ((1, 3, 4), 1), ((0,), 1), ((2, 1), 2)],
    )
    @pytest.mark.req("TI-141")
    def test_gaps(self, numbers, gaps):
        """Attempts begin with 1 and go up by one; anything else was not observed."""
        events = []
        for second, number in enumerate(numbers):
            events += [
                invocation(2 * second, attempt=number),
                answer("tool-result", 2 * second, attempt=number),
            ]
        assert [code for code, _ in remarks(*events)].count("attempt-gap") == gaps

    def test_answer_is_an_attempt(self):
        """A decision whose attempt is known from an answer alone was followed by one; the next decision was not."""
        events = [decision(), answer("tool-failure", 2), decision(second=3, attempt=2)]
        told = remarks(*events)
        assert [index for code, index in told if code == "not-performed"] == [2]
        assert ("response-before-invocation", 1) in told

    @pytest.mark.parametrize(
        ("between", "severity"),
        [((), "warning"), (("tool-timeout",), None), (("tool-cancel",), None), (("tool-input",), "warning")],
    )
    def test_overlap(self, between, severity):
        """A new attempt while the one before works is a warning, while it is given up a note."""
        events = [invocation(1), *(answer(kind, 2) for kind in between), invocation(3, attempt=2)]
        history = read_operations(events)
        found = [one.severity for one in history.remarks if one.code == "attempt-overlap"]
        assert found == [severity]

    def test_overlap_after_an_early_answer(self):
        """An answer that comes before its tool-invocation does not hide that the attempt before was still at work."""
        events = [invocation(1), answer("tool-progress", 2, attempt=2), invocation(3, attempt=2)]
        assert ("attempt-overlap", 2) in remarks(*events)
        assert "attempt-overlap" not in [code for code, _ in remarks(*events[1:])]

    @pytest.mark.req("TI-132")
    def test_reused(self):
        """The same id and attempt in two invocations is an error, and the second changes nothing."""
        history, operations = told(invocation(1), answer("tool-result", 2), invocation(3))
        assert ("operation-id-reused", 2) in [(one.code, one.event) for one in history.remarks]
        assert operations["a"].attempts[0].state == "completed"

    def test_target_and_party(self):
        """Another tool or party within an operation is reported where it differs."""
        found = remarks(
            decision(party=2),
            invocation(1),
            invocation(2, attempt=2, tool="x"),
            answer("tool-result", 3, party=3),
        )
        assert ("operation-target-changed", 2) in found
        assert ("party-changed", 3) in found
        assert ("party-changed", 0) in found

    def test_many_are_linear(self):
        """Tens of thousands of decisions and attempts of one operation are no quadratic work."""
        count = 20_000
        events = [decision(attempt=number) for number in range(count, 0, -1)]
        events += [standing(tool=f"t{number}") for number in range(count)]
        events += [standing("disallowed", tool=None)] * count
        history = read_operations(events)
        assert len(history.operations) == 1

    @given(
        st.lists(st.dictionaries(st.sampled_from(MEMBERS), st.sampled_from(VALUES)) | st.none(), max_size=8)
    )
    def test_any_events(self, events):
        """Whatever the events hold, there is a history."""
        read_operations(events)
