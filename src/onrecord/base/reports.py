"""Verification reports: axes with their grounds, what was not checked, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onrecord.base.findings import Finding

Result = Literal["verified", "failed", "not-checked", "not-evaluated"]
Verdict = Literal["verified", "failed", "not-evaluated"]

EXIT_CODES: Mapping[Verdict, int] = {"verified": 0, "failed": 1, "not-evaluated": 3}


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that was looked at. `grounds` says which key, file or rule vouches; `count` how many items."""

    result: Result
    grounds: str
    count: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md."""
        document: dict[str, Any] = {"result": self.result, "grounds": self.grounds}
        if self.count is not None:
            document["count"] = self.count
        return document


@dataclass(frozen=True)
class Report:
    """The outcome of a verification.

    The verdict is "failed" if one axis failed, else "not-evaluated" if an axis in `required` is not verified, else
    "verified". `outcome` is the finer word of the specification and defaults to the verdict.
    """

    axes: Mapping[str, Axis]
    required: frozenset[str]
    not_checked: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    outcome_word: str | None = None
    payload: bytes | None = field(default=None, repr=False)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict that the axes amount to."""
        if any(axis.result == "failed" for axis in self.axes.values()):
            return "failed"
        if any(name not in self.axes or self.axes[name].result != "verified" for name in self.required):
            return "not-evaluated"
        return "verified"

    @property
    def outcome(self) -> str:
        """Return the finer word, or the verdict when there is none."""
        return self.outcome_word or self.verdict

    @property
    def exit_code(self) -> int:
        """Return the exit status of a command that ends with this report."""
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md."""
        return {
            "verdict": self.verdict,
            "outcome": self.outcome,
            "axes": {name: axis.to_json() for name, axis in self.axes.items()},
            "notChecked": list(self.not_checked),
            "findings": [finding.to_json() for finding in self.findings],
        }
