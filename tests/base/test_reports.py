"""Findings, reports and errors."""

from __future__ import annotations

import pytest

from onrecord.base import errors, findings
from onrecord.base.errors import OnrecordError, UsageError, Where
from onrecord.base.findings import Code, Finding, at_or_above
from onrecord.base.reports import Axis, Report

GOOD = Axis("verified", "key 00", 1)


class TestReport:
    @pytest.mark.parametrize(
        ("results", "verdict", "exit_code"),
        [
            ({"a": "verified", "b": "verified"}, "verified", 0),
            ({"a": "verified", "b": "failed"}, "failed", 1),
            ({"a": "not-evaluated", "b": "verified"}, "not-evaluated", 3),
            ({"a": "not-evaluated", "b": "failed"}, "failed", 1),
            ({"a": "verified", "b": "not-checked"}, "verified", 0),
            ({"b": "verified"}, "not-evaluated", 3),
            ({}, "not-evaluated", 3),
        ],
    )
    def test_verdict(self, results, verdict, exit_code):
        """One failed axis fails; a required axis that is not verified, or absent, is never a pass."""
        report = Report(
            axes={name: Axis(result, "") for name, result in results.items()}, required=frozenset({"a"})
        )
        assert (report.verdict, report.exit_code) == (verdict, exit_code)
        assert report.to_json()["verdict"] == verdict

    def test_json(self):
        """The JSON has verdict, outcome, axes, notChecked and findings; the payload is not in it."""
        report = Report({"a": GOOD}, frozenset({"a"}), ("revocation",), payload=b"secret")
        assert report.to_json() == {
            "verdict": "verified",
            "outcome": "verified",
            "axes": {"a": {"result": "verified", "grounds": "key 00", "count": 1}},
            "notChecked": ["revocation"],
            "findings": [],
        }
        assert "secret" not in repr(report)


class TestFindings:
    def test_threshold(self):
        """A threshold holds for its own severity and those above."""
        warning = Finding("c", "warning", "", "m", "s")
        assert at_or_above((warning,), "info")
        assert at_or_above((warning,), "warning")
        assert not at_or_above((warning,), "error")

    def test_no_code_has_two_meanings(self):
        """Registering a code again with the same meaning is fine, with another one it is refused."""
        findings.register({"test-code": Code("info", "a", "b")}, group="test")
        findings.register({"test-code": Code("info", "a", "b")}, group="test")
        with pytest.raises(UsageError):
            findings.register({"test-code": Code("error", "a", "b")}, group="test")
        assert findings.known()["test-code"].meaning == "a"


def test_error_shape():
    """An error has code, message, place and hint in the shape that scripts read."""
    error = OnrecordError("m", code="c-d", hint="h", where=Where("f", line=3, pointer="/a"))
    assert error.to_json() == {
        "error": {
            "code": "c-d",
            "message": "m",
            "where": {"file": "f", "line": 3, "pointer": "/a"},
            "hint": "h",
        }
    }
    assert str(error.where) == "f:3 at /a"


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OnrecordError)],
)
def test_no_error_without_a_next_step(kind):
    """Every kind of error says what to do next, also where nobody gave a hint for the very case."""
    assert kind("m", code="c-d").to_json()["error"]["hint"] == kind.usual_hint
    assert len(kind.usual_hint) > 20
