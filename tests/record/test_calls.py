"""Tool calls: calls with their results, and the views of both extensions as one."""

import doctest
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record import calls as module
from onrecord.record.calls import read_calls
from onrecord.record.operations import read_operations
from support.data import shared_data
from support.vcons import answer, decision, invocation


def call(second=1, call_id="a", **members):
    """A tool-call event."""
    event = {"type": "tool-call", "time": f"2026-11-02T12:00:{second:02d}Z", "session": 0, "party": 0,
             "tool_name": "now", "input": {}, "call_id": call_id, **members}  # fmt: skip
    return {name: value for name, value in event.items() if value is not None}


def result(second=2, call_id="a", **members):
    """Its result."""
    event = {"type": "tool-result", "time": f"2026-11-02T12:00:{second:02d}Z", "session": 0, "party": 0,
             "output": "x", "call_id": call_id, **members}  # fmt: skip
    return {name: value for name, value in event.items() if value is not None}


def read(*events, extensions=("ai_agent", "tool-invocation")):
    return read_calls(list(events), read_operations(list(events)).operations, extensions=extensions)


def joined(*events):
    return [(one.call, one.result, one.operation and one.operation.operation_id) for one in read(*events)]


class TestPairs:
    def test_by_call_id(self):
        """A result belongs to the call of its id, wherever both stand."""
        assert joined(result(5, "b"), call(1, "a"), call(2, "b"), result(4, "a")) == [
            (1, 3, None),
            (2, 0, None),
        ]

    def test_same_id_twice(self):
        """Of several calls and results with one id, the first belong together, by time."""
        assert joined(call(3), call(1), result(4), result(2)) == [(1, 3, None), (0, 2, None)]

    def test_merged_with_two_ids(self):
        """A result that names a call and an operation of another id makes them one: the call is counted once (D-68)."""
        merged = {**answer("tool-result", 3), "output": "x", "call_id": "c"}
        assert joined(call(1, "c"), invocation(2), merged) == [(0, 2, "a")]
        assert joined(invocation(2), merged) == [(None, 1, "a")]
        other = invocation(2, operation_id="c")
        assert joined(call(1, "c"), other, invocation(2), merged) == [(0, 3, "c"), (None, None, "a")]

    def test_open_and_dangling(self):
        """A call without result and a result without call are both there."""
        assert joined(call(1, "a"), result(2, "b")) == [(0, None, None), (None, 1, None)]
        assert [one.outcome for one in read(call(1, "a"), result(2, "b"))] == ["unfinished", "completed"]

    def test_without_id(self):
        """Calls and results without an id are no pair, whatever stands beside them."""
        assert joined(call(1, None), result(2, None)) == [(0, None, None), (None, 1, None)]

    @pytest.mark.parametrize(
        ("members", "outcome"),
        [
            ({}, "completed"),
            ({"status": "success"}, "completed"),
            ({"status": "completed", "is_error": False}, "completed"),
            ({"status": "error"}, "failed"),
            ({"is_error": True}, "failed"),
            ({"is_error": True, "status": "success"}, "failed"),
        ],
    )
    def test_outcome(self, members, outcome):
        """A result that says error in either way is a failure."""
        assert [one.outcome for one in read(call(), result(**members))] == [outcome]


class TestBothExtensions:
    """record.md 5.3: what both extensions recorded of one call is one call."""

    def test_counted_once(self):
        """Call, operation with two attempts and result are one call, with the outcome of the operation."""
        found = read(
            call(1),
            decision(second=1),
            invocation(2),
            answer("tool-error", 3),
            invocation(4, attempt=2),
            answer("tool-result", 5, attempt=2),
            result(6),
        )
        assert [(one.call, one.result, one.outcome) for one in found] == [(0, 6, "completed")]
        assert len(found[0].operation.attempts) == 2

    def test_operation_alone(self):
        """An operation that the model's side did not record is a call of its own."""
        assert joined(call(1, "b"), invocation(2)) == [(0, None, None), (None, None, "a")]

    def test_refused(self):
        """A refused call has the outcome of its operation, not that of the message to the model."""
        found = read(call(1, input=None), decision("disallowed", 1), result(2, is_error=True))
        assert [one.outcome for one in found] == ["not-performed"]

    def test_merged_result(self):
        """A result that carries the members of both extensions ends the operation and the call, and counts once."""
        merged = {**answer("tool-result", 3), "output": "x", "call_id": "a"}
        found = read(call(1), invocation(2), merged)
        assert [(one.call, one.result, one.outcome) for one in found] == [(0, 2, "completed")]
        without_id = {**answer("tool-result", 3), "output": "x"}
        assert joined(call(1), invocation(2), without_id) == [(0, 2, "a")]

    @pytest.mark.parametrize(
        ("extensions", "lone"),
        [(["ai_agent"], 1), (["tool-invocation"], 0), (["ai_agent", "tool-invocation"], 0)],
    )
    def test_bare_result(self, extensions, lone):
        """A result with members of neither extension counts only if the one listed is ai_agent."""
        bare = {"type": "tool-result", "time": "2026-11-02T12:00:02Z", "session": 0, "party": 0}
        assert len(read(bare, extensions=extensions)) == lone

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(st.sampled_from(["call", "result", "invocation", "answer"]), st.sampled_from("abc"))
        )
    )
    def test_every_event_once(self, program):
        """Each call and each result is in one call, each operation too, and an id is never joined twice."""
        make = {
            "call": lambda name: call(1, name),
            "result": lambda name: result(2, name),
            "invocation": lambda name: invocation(1, operation_id=name),
            "answer": lambda name: answer("tool-result", 2, operation_id=name),
        }
        events = [make[kind](name) for kind, name in program]
        found = read(*events)
        for place in ("call", "result"):
            told = [getattr(one, place) for one in found if getattr(one, place) is not None]
            assert sorted(told) == [index for index, (kind, _) in enumerate(program) if kind == place]
        operations = [one.operation.operation_id for one in found if one.operation is not None]
        assert sorted(operations) == sorted(
            {name for kind, name in program if kind in ("invocation", "answer")}
        )


def test_many_of_one_id():
    """Tens of thousands of calls with one id are no quadratic work."""
    count = 20_000
    assert len(read(*[call()] * count, *[result()] * count)) == count


def test_example():
    """The example of the module gives what it says."""
    assert doctest.testmod(module).failed == 0


def test_shared_pairs():
    """The pairs of the shared agent example are the expected ones."""
    document = json.loads(shared_data("vcon", "ai-agent-example.json").read_bytes())
    expected = json.loads(shared_data("vcon", "ai-agent-example.expected.json").read_bytes())
    found = read_calls(document["events"], extensions=document["extensions"])
    assert [one.to_json() for one in found] == expected["tool_pairs"]
