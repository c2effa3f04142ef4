"""Proofs about groups of elements: what they leave out has no finding, and everything else is looked at."""

import copy
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.checks import groups
from onrecord.record.checks.checker import check
from onrecord.record.checks.collector import Collector
from onrecord.record.checks.context import Context, indices
from onrecord.record.checks.groups import AT_ONCE, MIN_GROUP, grouped
from onrecord.record.vcon.versions import KNOWN
from support.hostile import SEEDS, mutated
from support.vcons import answer, decision, invocation, vcon

MANY = MIN_GROUP + 4


def repeated(document, source):
    """A vCon whose dialogs and events stand there often enough for groups, some of them a little different."""
    made = copy.deepcopy(document)
    for name in ("dialog", "events"):
        items = made.get(name)
        if isinstance(items, list):
            more = [copy.deepcopy(item) for item in items for _ in range(MANY)]
            for item in source.sample(more, min(len(more), 3)):
                if isinstance(item, dict) and item:
                    item[source.choice(list(item))] = source.choice(
                        [None, True, "", -1, 1.0, [0.0], [True], {}, "x"]
                    )
            made[name] = items + more
    return json.dumps(made).encode()


def outcome(data, profile):
    result = check(data, profile=profile)
    return [one.to_json() for one in result.findings], result.left_out, result.extensions


def places(events):
    found = check(json.dumps(vcon(*events)).encode()).findings
    return {(one.code, one.pointer) for one in found}


class TestDifference:
    @pytest.mark.parametrize("profile", KNOWN)
    @settings(max_examples=40)
    @given(seed=st.sampled_from(sorted(SEEDS)), steps=st.integers(0, 4), number=st.integers(0, 2**32))
    def test_same_findings_without_groups(self, profile, seed, steps, number):
        """Whatever the vCon, the findings are those of looking at every element by itself."""
        source = random.Random(number)
        document = mutated(SEEDS[seed](), source, steps)
        if not isinstance(document, dict):
            return
        data = repeated(document, source)
        with pytest.MonkeyPatch.context() as patch:
            with_groups = outcome(data, profile)
            patch.setattr(groups, "MIN_GROUP", 10**9)
            assert with_groups == outcome(data, profile)

    @pytest.mark.parametrize(
        "change",
        [{"attempt": True}, {"attempt": 0}, {"party": 9}, {"party": 0.0}, {"sessions": [False]}, {"sessions": [0, 0]},
         {"sessions": []}, {"time": "2026-11-02T12:00:00.0Z"}, {"time": "now"}, {"server": "!other"},
         {"server": "https://u:p@example.com/"}, {"server": 1}, {"tool": ""}, {"operation_id": None}],
    )  # fmt: skip
    def test_one_among_many(self, change):
        """One wrong event among many right ones is found at its place."""
        right = [invocation(operation_id=f"o{number}") for number in range(2 * MANY)]
        wrong = [*right]
        wrong[MANY] = {**right[MANY], **change}
        more = places(wrong) - places(right)
        assert more
        assert {pointer for _, pointer in more if not (pointer + "/").startswith(f"/events/{MANY}/")} <= {
            "/sessions/0/parties"
        }

    @pytest.mark.parametrize("body", [{"encoding": "json", "body": None}, {"encoding": "base64url", "body": "A"},
                                      {"encoding": "base64url", "body": "AA=="}, {"encoding": "none", "body": 1},
                                      {"body": "x", "encoding": None}])  # fmt: skip
    def test_content_among_many(self, body):
        """Content is judged by its encoding, also where one event has another one than the rest."""
        events = [answer("tool-progress", operation_id=f"o{number}") for number in range(2 * MANY)]
        alone = places([{**events[3], **body}])
        events[3] = {**events[3], **body}
        found = {
            (code, pointer) for code, pointer in places(events) if (pointer + "/").startswith("/events/3/")
        }
        assert found == {(code, pointer.replace("/events/0", "/events/3")) for code, pointer in alone}

    def test_extensions_are_noted(self):
        """Extensions that only groups use are still used: without a list of them that is reported."""
        events = [decision(operation_id=f"o{number}") for number in range(MANY)]
        found = check(json.dumps(vcon(*events, extensions=None)).encode()).findings
        assert ("extension-not-listed", "/extensions") in {(one.code, one.pointer) for one in found}


class TestGroups:
    def test_by_shape(self):
        """Elements are together if type, encoding, and members in their order are the same."""
        one, other = {"type": "a", "x": 1}, {"x": 1, "type": "a"}
        found = grouped([dict(one if index % 2 else other) for index in range(2 * MIN_GROUP)])
        assert [group.indices for group in found.groups] == [
            list(range(0, 2 * MIN_GROUP, 2)),
            list(range(1, 2 * MIN_GROUP, 2)),
        ]
        assert found.rest == []

    def test_small_groups_and_odd_types(self):
        """Too few of a shape, and elements whose type or encoding is no string, are looked at one by one, in order."""
        odd = [{"type": "b"}, {}, 3, None, {"type": 1}, {"type": "a", "encoding": []}, {"x": 1}]
        found = grouped([*odd, *[{"type": "a"}] * MIN_GROUP])
        assert [group.indices for group in found.groups] == [list(range(len(odd), len(odd) + MIN_GROUP))]
        assert [index for index, _ in found.rest] == [0, 4, 5, 6]
        assert grouped([{"type": "a"}] * (MIN_GROUP - 1)).groups == []

    @settings(max_examples=10)
    @given(st.integers(MIN_GROUP, 3 * AT_ONCE))
    def test_columns(self, count):
        """A column has the values of one member in the order of the elements."""
        (group,) = grouped([{"type": "a", "x": number} for number in range(count)]).groups
        assert group.columns == {"type": ["a"] * count, "x": list(range(count))}

    @given(
        st.lists(
            st.sampled_from(["2026-11-02T12:00:00Z", "2026-11-02T12:00:00.5+01:00", "x", 1, None]),
            max_size=30,
        )
    )
    def test_moments(self, times):
        """The moments of elements are those of each one's date, wherever it was grouped."""
        events = [{"type": "join", "time": time} if time != 1 else {"type": "join"} for time in times]
        context = Context({"events": [*events, {}, 3]}, Collector())
        expected = [context.instants.ns(event.get("time")) for event in events]
        assert context.moments("events") == [*expected, None, None]

    @given(st.lists(st.sampled_from([0, 1, True, 1.0, 1.5, -1, None, "0"])))
    def test_indices(self, value):
        """Indices are integers and integral floats, nothing else."""
        assert indices(value) == tuple(
            int(item) for item in value if type(item) in (int, float) and item == int(item)
        )
