"""Columns: a yes is a yes for every value; what is right in the usual way is not asked one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.checks.columns import Columns
from onrecord.record.checks.value_rules import Values
from onrecord.record.vcon.instants import Instants

SIZES = {"parties": 3, "sessions": 2, "dialog": 0}
KINDS = [
    "any", "string", "identifier", "strings", "boolean", "number", "object", "uint", "duration", "did", "content-hash",
    "url", "uri", "attempt", "session-id", "civic-address", "date", "mediatype", "enum decision", "enum party-type",
    "index parties", "index dialog", "indices parties", "indices dialog", "one-or-more sessions", "channels parties",
    "filled parties", "known-or-not parties", "session-ids", "session-ids-or-texts", "party-event",
]  # fmt: skip
RIGHT = {
    "string": ["", "a"],
    "identifier": ["a", "b"],
    "boolean": [True, False],
    "number": [1, 1.5, -1],
    "uint": [0, 2**53 - 1],
    "duration": [0, 1.5],
    "attempt": [1, 2],
    "date": ["2026-11-02T12:00:00Z", "2024-02-29T23:59:59.5+02:00"],
    "mediatype": ["text/plain", "application/json"],
    "enum decision": ["allowed", "disallowed"],
    "index parties": [0, 2],
    "indices parties": [[0], [1, 2]],
    "one-or-more sessions": [[0], [1, 0]],
    "channels parties": [[0, 0], [2], []],
    "filled parties": [[0], [1]],
}
INDEX = st.sampled_from([0, 1, 2, 3, -1, True, 1.0, None, "0", 10**20])
VALUES = st.one_of(
    INDEX,
    st.lists(INDEX, max_size=3),
    st.lists(st.lists(INDEX, max_size=2), max_size=2),
    st.sampled_from(["", "a", "allowed", "person", "text/plain", "text", "text/plain; a=b", "2026-11-02T12:00:00Z",
                     "2026-11-02T12:00:00.0Z", "2026-02-30T12:00:00Z", "2026-11-02t12:00:00Z", 1.5, -0.5, {}, {"a": 1},
                     float("inf"), 2**53]),
)  # fmt: skip


def columns():
    instants = Instants()
    return Columns(SIZES, Values(SIZES, instants), instants)


@pytest.mark.parametrize("kind", KINDS)
@given(values=st.lists(VALUES, min_size=1, max_size=4))
def test_yes_is_yes_for_each(kind, values):
    """Where a column holds, no value has a problem."""
    instants = Instants()
    if columns().hold(kind, values):
        rule = Values(SIZES, instants).rule(kind)
        assert [rule(value) for value in values] == [None] * len(values)


@pytest.mark.parametrize("kind", sorted(RIGHT))
def test_right_values_hold(kind):
    """Columns of right values in their usual form hold, alone and together."""
    assert columns().hold(kind, RIGHT[kind])
    assert all(columns().hold(kind, [value]) for value in RIGHT[kind])


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [("string", 1), ("identifier", ""), ("boolean", 1), ("number", True), ("uint", -1), ("uint", 2**53),
     ("duration", -1), ("attempt", 0), ("date", "2026-02-30T12:00:00Z"), ("mediatype", "text"),
     ("enum decision", "maybe"), ("index parties", 3), ("index parties", True), ("indices parties", [0, 0]),
     ("indices parties", [3]), ("one-or-more sessions", []), ("channels parties", [3]), ("filled parties", [])],
)  # fmt: skip
def test_one_wrong_value_is_enough(kind, wrong):
    """One wrong value among right ones, and the column does not hold."""
    assert not columns().hold(kind, [*RIGHT[kind], wrong, *RIGHT[kind]])
