"""Suppressing findings: by code and place, never a fatal one."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onrecord.record.checks.suppression as module
from onrecord.base.errors import UsageError
from onrecord.record.checks.suppression import NO_SUPPRESSIONS, Suppressions
from onrecord.record.vcon.pointers import step, tokens

NAMES = st.lists(st.text("ab/~0é", min_size=1, max_size=3), max_size=4)


def pointer(names):
    return "".join(map(step, names))


class TestPlaces:
    def test_example(self):
        """The example in the module's docstring runs."""
        assert doctest.testmod(module).failed == 0

    @given(NAMES, NAMES)
    def test_prefix_by_whole_names(self, above, below):
        """A place covers itself and what lies below it: the names of its pointer are the first names of the other."""
        chosen = Suppressions.of([("uuid-version", pointer(above))])
        place = pointer(below)
        assert chosen.covers("uuid-version", place) is (tokens(place)[: len(above)] == above)
        assert not chosen.covers("uuid-invalid", place)

    def test_several_places(self):
        """One code may be suppressed at several places."""
        chosen = Suppressions.of([("member-null", "/subject"), ("member-null", "/dialog/1")])
        covered = [
            chosen.covers("member-null", place) for place in ("/subject", "/dialog/1/duration", "/dialog/10")
        ]
        assert covered == [True, True, False]

    def test_nothing(self):
        """Without rules nothing is suppressed."""
        assert not NO_SUPPRESSIONS
        assert not NO_SUPPRESSIONS.covers("uuid-version", "")


class TestRefusals:
    @pytest.mark.parametrize(
        ("code", "place", "error"),
        [
            ("uuid-versio", "", "finding-code-unknown"),
            ("", "", "finding-code-unknown"),
            ("json-invalid", "", "finding-code-fatal"),
            ("critical-unsupported", "/critical/0", "finding-code-fatal"),
            ("uuid-version", "dialog", "pointer-invalid"),
            ("uuid-version", "/dialog/", "pointer-invalid"),
            ("uuid-version", "/", "pointer-invalid"),
            ("uuid-version", "/a~2", "pointer-invalid"),
            ("uuid-version", "/a~", "pointer-invalid"),
            ("uuid-version", "#/a", "pointer-invalid"),
        ],
    )
    def test_bad_rules(self, code, place, error):
        """An unknown code, a fatal one and what is no pointer are refused with what to do."""
        with pytest.raises(UsageError) as caught:
            Suppressions.of([(code, place)])
        assert caught.value.code == error
        assert caught.value.hint
