"""Join, attempt numbers and carry, as pure functions (running.md 8)."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.hashes import b64url
from onrecord.record.recorder.carry import Carry, limited
from onrecord.record.recorder.correlation import Placed, correlate
from onrecord.record.recorder.entries import read_entry
from onrecord.record.recorder.recorded import Origin, load, store

AUTHORITY = Origin(900, None, "a-1")
GUARD = Origin(3001, "filesystem", "g-1")


def digest(number: int) -> str:
    return b64url(bytes([number]) * 32)


def place(raws, origin, first_seq=0):
    placed = []
    for index, raw in enumerate(raws):
        entry = read_entry(raw)
        placed.append(Placed(first_seq + index, origin, entry, entry.wall_ms))
    return placed


def events(authority, guard, **how):
    return correlate([*place(authority, AUTHORITY), *place(guard, GUARD, 1000)], **how)


def triples(result):
    return [(one.type, one.operation_id[-2:], one.attempt) for one in result.events]


class TestJoin:
    def test_by_proof(self, entries):
        """Rule 1: the proof of the invocation names its operation, whatever the guard called it."""
        result = events(
            [entries.decision(1, 1, digest(1), operation="op-01", proofRef=digest(9))],
            [entries.invocation(1, 2, digest(1), call="1.1", proofRef=digest(9))],
        )
        assert triples(result) == [("policy-decision", "01", 1), ("tool-invocation", "01", 1)]

    @pytest.mark.parametrize("change", [{"actionDigest": digest(2)}, {"server": "git"}])
    def test_proof_of_another_action_or_server_does_not_join(self, entries, change):
        """Rule 1 wants the same action digest and server."""
        result = events(
            [entries.decision(1, 1, digest(1), operation="op-01", proofRef=digest(9))],
            [entries.invocation(1, 2, digest(1), call="1.1", proofRef=digest(9)) | change],
        )
        assert {one.operation_id for one in result.events if one.type == "tool-invocation"} != {"op-01"}

    def test_denied_call_sent_all_the_same(self, entries):
        """Rule 2: an invocation without proof lands on the latest denial of its action, each time as a new attempt."""
        result = events(
            [entries.decision(1, 1, digest(1), "disallowed", operation="op-01")],
            [
                entries.invocation(1, 2, digest(1), call="1.1", admitted=False),
                entries.invocation(2, 3, digest(1), call="1.2", admitted=False, proofRef=digest(7)),
            ],
        )
        assert triples(result) == [
            ("policy-decision", "01", 1),
            ("tool-invocation", "01", 1),
            ("tool-invocation", "01", 2),
        ]

    def test_allowed_decision_is_taken_once(self, entries):
        """Rule 2: an allowed decision joins an invocation without proof only while it has none."""
        result = events(
            [entries.decision(1, 1, digest(1), operation="op-01", proofRef=digest(9))],
            [
                entries.invocation(1, 2, digest(1), call="1.1", admitted=False),
                entries.invocation(2, 3, digest(1), call="1.2", admitted=False),
            ],
        )
        ids = [one.operation_id for one in result.events if one.type == "tool-invocation"]
        assert ids[0] == "op-01"
        assert ids[1] != "op-01"

    def test_decision_after_the_invocation_does_not_join_by_action(self, entries):
        """Rule 2 looks back only."""
        result = events(
            [entries.decision(1, 5, digest(1), "disallowed", operation="op-01")],
            [entries.invocation(1, 2, digest(1), call="1.1")],
        )
        assert [one.operation_id == "op-01" for one in result.events] == [False, True]

    def test_latest_decision_wins(self, entries):
        """Of two denials of one action, the latest before the invocation counts."""
        result = events(
            [
                entries.decision(1, 1, digest(1), "disallowed", operation="op-01"),
                entries.decision(2, 3, digest(1), "disallowed", operation="op-02"),
            ],
            [
                entries.invocation(1, 2, digest(1), call="1.1", admitted=False),
                entries.invocation(2, 4, digest(1), call="1.2", admitted=False),
            ],
        )
        assert [one.operation_id for one in result.events if one.type == "tool-invocation"] == [
            "op-01",
            "op-02",
        ]

    @pytest.mark.req("TI-132")
    def test_guard_that_claims_an_operation_of_the_authority(self, entries):
        """A guard's own id that is somebody else's is replaced, so that ids stay unique."""
        result = events(
            [entries.decision(1, 1, digest(1), operation="op-01")],
            [
                entries.invocation(1, 2, digest(2), call="1.1", operationId="op-01"),
                entries.invocation(2, 3, digest(3), call="1.2", operationId="g-1"),
                entries.invocation(3, 4, digest(4), call="1.3", operationId="g-1"),
            ],
        )
        assert len({one.operation_id for one in result.events}) == 4


class TestAttempts:
    @pytest.mark.req("TI-075", "TI-141", "TI-142", "TI-072", "TI-074")
    def test_proof_used_twice_is_two_attempts_and_late_answers_find_theirs(self, entries):
        """Attempts count 1, 2; a late result of the first call goes to attempt 1 although attempt 2 has begun."""
        result = events(
            [entries.decision(1, 1, digest(1), operation="op-01", proofRef=digest(9))],
            [
                entries.invocation(1, 2, digest(1), call="1.1", proofRef=digest(9)),
                entries.response(2, 3, "timeout", call="1.1", content={"waited_ms": 1000}),
                entries.invocation(3, 4, digest(1), call="1.2", proofRef=digest(9), admitted=False),
                entries.response(4, 5, "result", call="1.1", content=entries.text("late")),
                entries.response(
                    5, 6, "denied", call="1.2", content={"code": -32021, "data": {"reason": "replayed"}}
                ),
            ],
        )
        assert triples(result) == [
            ("policy-decision", "01", 1),
            ("tool-invocation", "01", 1),
            ("tool-timeout", "01", 1),
            ("tool-invocation", "01", 2),
            ("tool-result", "01", 1),
            ("tool-denied", "01", 2),
        ]

    @pytest.mark.req("TI-140")
    def test_second_decision_precedes_the_second_attempt(self, entries):
        """A decision gets the number of the attempt that follows it."""
        result = events(
            [
                entries.decision(1, 1, digest(1), operation="op-01", proofRef=digest(8)),
                entries.decision(2, 3, digest(1), operation="op-01", proofRef=digest(9)),
            ],
            [
                entries.invocation(1, 2, digest(1), call="1.1", proofRef=digest(8)),
                entries.invocation(2, 4, digest(1), call="1.2", proofRef=digest(9)),
            ],
        )
        assert [one.attempt for one in result.events] == [1, 1, 2, 2]

    def test_ties(self, entries):
        """At one moment: decision, invocation, then the rest by number."""
        result = events(
            [entries.decision(1, 1, digest(1), operation="op-01", proofRef=digest(9))],
            [
                entries.response(2, 1, "result", call="1.1", content=entries.text("x")),
                entries.invocation(1, 1, digest(1), call="1.1", proofRef=digest(9)),
            ],
        )
        assert [one.type for one in result.events] == ["policy-decision", "tool-invocation", "tool-result"]

    def test_denial_without_reason_is_an_error(self, entries):
        """-32021 without data.reason says that a capability is missing: tool-error (record.md D-60)."""
        result = events([], [entries.response(1, 1, "denied", call="1.1", content={"code": -32021})])
        assert [one.type for one in result.events] == ["tool-error"]

    @pytest.mark.req("TI-068")
    def test_events_off_the_model_are_kept(self, entries):
        """Responses after the end, or without a call, are events all the same."""
        result = events(
            [],
            [
                entries.invocation(1, 1, digest(1), call="1.1"),
                entries.response(2, 2, "result", call="1.1", content=entries.text("1")),
                entries.response(3, 3, "result", call="1.1", content=entries.text("2")),
                entries.response(4, 4, "progress", call="1.1", content={"progress": 1}),
                entries.response(5, 5, "cancel", call="9.9", content={"reason": "x"}),
            ],
        )
        assert len(result.events) == 5
        assert len({one.operation_id for one in result.events}) == 2


class TestCarry:
    def test_round_trip(self, entries):
        """What is left to the following session survives its JSON form."""
        result = events(
            [
                entries.decision(1, 1, digest(1), operation="op-01", proofRef=digest(9)),
                entries.decision(2, 1, digest(2), "permission-required", operation="op-02"),
            ],
            [entries.invocation(1, 2, digest(1), call="1.1", proofRef=digest(9))],
        )
        assert result.carry
        assert Carry.of(result.carry.to_json()) == result.carry
        assert [call[1:] for call in result.carry.calls] == [("op-01", 1)]

    def test_finished_denial_leaves_nothing(self, entries):
        """A refused operation is not carried on."""
        result = events([entries.decision(1, 1, digest(1), "disallowed", operation="op-01")], [])
        assert not result.carry

    def test_limit(self, entries):
        """The newest are kept."""
        decisions = [
            entries.decision(n, n, digest(n), operation=f"op-{n:02}", proofRef=digest(n)) for n in range(1, 9)
        ]
        carry = limited(events(decisions, []).carry, count=3)
        assert [one.operation_id for one in carry.operations] == ["op-06", "op-07", "op-08"]


ACTIONS = st.integers(1, 3)
AUTHORITY_STEPS = st.lists(st.tuples(ACTIONS, st.sampled_from(["allowed", "disallowed"])), max_size=6)
GUARD_STEPS = st.lists(st.tuples(ACTIONS, st.integers(0, 6), st.booleans()), max_size=6)


@given(authority=AUTHORITY_STEPS, guard=GUARD_STEPS, data=st.data())
@pytest.mark.req("TI-131", "TI-141", "TI-142")
def test_numbers_of_attempts_are_whole_and_arrival_is_irrelevant(authority, guard, data, entries):
    """For any entries: attempts of an operation are 1, 2, 3 …, and shuffling arrival changes nothing."""
    decisions = []
    for n, (action, verdict) in enumerate(authority, 1):
        more = {"proofRef": digest(100 + n)} if verdict == "allowed" else {}
        decisions.append(entries.decision(n, 2 * n, digest(action), verdict, operation=f"op-{n}", **more))
    calls = []
    for index, (action, proof, ends) in enumerate(guard):
        more = {"proofRef": digest(100 + proof)} if proof else {}
        calls.append(entries.invocation(2 * index + 1, 3 * index, digest(action), call=f"1.{index}", **more))
        if ends:
            calls.append(
                entries.response(2 * index + 2, 3 * index + 1, "result", call=f"1.{index}", content={})
            )
    placed = [*place(decisions, AUTHORITY), *place(calls, GUARD, 1000)]
    first = correlate(placed)
    assert correlate(data.draw(st.permutations(placed))) == first
    attempts = defaultdict(list)
    for event in first.events:
        if event.type == "tool-invocation":
            attempts[event.operation_id].append(event.attempt)
    for numbers in attempts.values():
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(first.events) == len(placed)


@given(seconds=st.floats(0, 1e6), admitted=st.booleans())
def test_stored_entries_come_back(seconds, admitted, entries):
    """An entry is the same after its way through the journal's form."""
    raw = entries.invocation(5, seconds, digest(1), call="1.1", admitted=admitted, proofRef=digest(2))
    raw |= {"arguments": {"path": "x"}} if admitted else {}
    entry = read_entry(raw)
    stored = store(entry, GUARD)
    assert load(stored.data, {body.part: body.bytes for body in stored.bodies}) == entry
    assert Origin.of(stored.data) == GUARD
