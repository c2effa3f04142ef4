"""The steps: what each of them expects, and how its outcomes are judged.

Source: running.md 10; step 9 and its like follow with the second part (running.md 13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onrecord.examples.demo.outcomes import Outcome
from onrecord.examples.demo.tree import INJECTION, MAIN, README

DENIED: Final = -33001
"""The authority's refusal to issue (call-proof.md 5.3)."""


@dataclass(frozen=True)
class Step:
    """One step.

    `judge` tells whether the outcomes of its calls are the expected ones; `runs` is how many tool calls have to
    run on the server "filesystem" meanwhile.
    """

    id: str
    title: str
    expected: str
    judge: Callable[[Sequence[Outcome]], bool]
    runs: int


@dataclass(frozen=True)
class StepResult:
    """What was seen."""

    step: str
    title: str
    expected: str
    observed: str
    ok: bool

    def to_json(self) -> dict[str, Any]:
        """Return one entry of `steps` (DESIGN.md)."""
        return {"step": self.step, "expected": self.expected, "observed": self.observed, "ok": self.ok}


def _is_text(outcome: Outcome, text: str) -> bool:
    return outcome.kind == "result" and outcome.text == text


def _step_2(outcomes: Sequence[Outcome]) -> bool:
    read, denied = outcomes
    return (
        read.kind == "result"
        and INJECTION in read.text
        and (denied.code, denied.reason) == (DENIED, "denied")
    )


def _step_5(outcomes: Sequence[Outcome]) -> bool:
    first, second = outcomes
    return _is_text(first, MAIN) and second.is_rejection("replayed")


def _step_10b(outcomes: Sequence[Outcome]) -> bool:
    stale, fresh = outcomes
    return stale.is_rejection("expired") and _is_text(fresh, README)


def _rejected(reason: str) -> Callable[[Sequence[Outcome]], bool]:
    return lambda outcomes: len(outcomes) == 1 and outcomes[0].is_rejection(reason)


STEPS: Final = (
    Step(
        "1",
        "An allowed call, through the ordinary connector",
        "the text of repo/README.md; issue, verify and invocation journaled",
        lambda outcomes: _is_text(outcomes[0], README),
        1,
    ),
    Step(
        "2",
        "A pull request tells the agent to read a secret, and the agent obeys",
        "denied at issue; the journal names the caller; the canary is in no file",
        _step_2,
        1,
    ),
    Step(
        "3",
        "The agent sends the call all the same, without a proof",
        "-32021 missing; the tool did not run",
        _rejected("missing"),
        0,
    ),
    Step(
        "4",
        "With a proof that was issued for another call",
        "-32021 mismatch; the tool did not run",
        _rejected("mismatch"),
        0,
    ),
    Step("5", "One proof, two equal calls", "result, then -32021 replayed; the tool ran once", _step_5, 1),
    Step(
        "6",
        "A proof that was kept for 2.5 seconds",
        "-32021 expired; the tool did not run",
        _rejected("expired"),
        0,
    ),
    Step(
        "7", "A proof for another server", "-32021 mismatch; the tool did not run", _rejected("mismatch"), 0
    ),
    Step(
        "10a",
        "The authority is stopped; a good proof is sent",
        "-32021 authority_unreachable; the tool did not run",
        _rejected("authority_unreachable"),
        0,
    ),
    Step(
        "10b",
        "The authority is back; an older proof is sent, then a new call is made",
        "-32021 expired, then the text of repo/README.md; the tool ran once",
        _step_10b,
        1,
    ),
)

RECORD_STEP: Final = Step(
    "11",
    "The agent host ends",
    "one vCon; verify: verified; check: 0 errors, 2 invocation-after-disallowed; the canary is in no other file",
    lambda _: True,
    0,
)
