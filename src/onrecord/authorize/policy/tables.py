"""Table tests of a policy: calls with the decision that they must get.

Source: running.md 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from onrecord.authorize.policy.bundle import malformed, read_policy_file
from onrecord.authorize.policy.cedar import Policy
from onrecord.authorize.policy.codes import finding
from onrecord.authorize.policy.decisions import CallRequest, Decision, Effect
from onrecord.authorize.policy.loading import PolicyLintError
from onrecord.authorize.policy.model import Record
from onrecord.base import strict_json
from onrecord.base.errors import Where
from onrecord.base.findings import Finding


class Row(Record, frozen=True, kw_only=True):
    """One row: a call and what must come out. `rules`, if given, are exactly the ids that decide."""

    id: str
    caller: str
    server: str
    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    expect: Effect
    rules: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came out of one row."""

    row: Row
    decision: Decision

    @property
    def is_as_expected(self) -> bool:
        """Say whether effect and, if the row names them, rules are as expected."""
        rules = self.row.rules
        return self.decision.effect == self.row.expect and (
            rules is None or sorted(rules) == sorted(self.decision.rules)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the row's id, what was expected, what came out, and whether that is the same."""
        expected: dict[str, Any] = {"effect": self.row.expect}
        if self.row.rules is not None:
            expected["rules"] = list(self.row.rules)
        observed: dict[str, Any] = {"effect": self.decision.effect, "rules": list(self.decision.rules)}
        if self.decision.detail is not None:
            observed["detail"] = self.decision.detail
        return {"id": self.row.id, "expected": expected, "observed": observed, "ok": self.is_as_expected}


def read_rows(value: Any) -> tuple[tuple[Row, ...], tuple[Finding, ...]]:
    """Return the rows of a parsed tests.json, or what is wrong with it."""
    try:
        rows = msgspec.convert(value, tuple[Row, ...], strict=True)
    except msgspec.ValidationError as error:
        return (), (malformed(error),)
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            return (), (finding("id-duplicate", "", f"row {row.id} occurs twice"),)
        seen.add(row.id)
    return rows, ()


def load_rows(path: Path) -> tuple[Row, ...]:
    """Return the rows of a file.

    Raises `PolicyError` with code "policy-missing" or "policy-unreadable", `Refused`, or `PolicyLintError`.
    """
    value, _ = strict_json.parse(read_policy_file(path, follow=True))
    rows, problems = read_rows(value)
    if problems:
        raise PolicyLintError(problems, where=Where(file=str(path)))
    return rows


def run_rows(policy: Policy, rows: Sequence[Row]) -> tuple[Outcome, ...]:
    """Decide each row, as if every server advertised exactly the pinned tools."""
    pins: dict[str, Mapping[str, str]] = {row.server: policy.pins(row.server) for row in rows}
    return tuple(
        Outcome(
            row=row,
            decision=policy.decide(
                CallRequest(
                    caller=row.caller,
                    server=row.server,
                    name=row.name,
                    arguments=row.arguments,
                    advertised=pins[row.server],
                )
            ),
        )
        for row in rows
    )


def failures(outcomes: Sequence[Outcome]) -> tuple[Finding, ...]:
    """Return a finding for each row that came out differently."""
    return tuple(
        finding(
            "test-failed",
            f"/{index}",
            f"row {outcome.row.id}: expected {outcome.row.expect}, got {outcome.decision.effect}",
            file="tests.json",
        )
        for index, outcome in enumerate(outcomes)
        if not outcome.is_as_expected
    )
