"""The steps: what each of them expects, and how its outcomes are judged.

Source: running.md 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from onrecord.examples.demo.outcomes import Outcome
from onrecord.examples.demo.repository import COMMITS
from onrecord.examples.demo.tree import INJECTION, MAIN, README, REVIEWER

DENIED: Final = -33001
"""The authority's refusal to issue (call-proof.md 5.3)."""


@dataclass(frozen=True)
class Step:
    """One step.

    `judge` tells whether the outcomes of its calls are the expected ones; `runs` is how many tool calls have to
    run on `server` meanwhile (None: it does not count them). A step whose server is not there is not done.
    """

    id: str
    title: str
    expected: str
    judge: Callable[[Sequence[Outcome]], bool]
    runs: int | None
    server: str = "filesystem"


@dataclass(frozen=True)
class StepResult:
    """What was seen. `ok` is None for a step that was not done; `observed` then says why."""

    step: str
    title: str
    expected: str
    observed: str
    ok: bool | None

    @classmethod
    def of(cls, step: Step, observed: str, *, ok: bool | None) -> Self:
        """Return the result of `step`."""
        return cls(step.id, step.title, step.expected, observed, ok)

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


def _step_9(outcomes: Sequence[Outcome]) -> bool:
    log, reset = outcomes
    return (
        log.kind == "result"
        and all(subject in log.text for subject in COMMITS)
        and (reset.code, reset.reason) == (DENIED, "denied")
    )


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
        "8",
        "A comment needs the yes of a person",
        "the call waits, the approver approves it, then a result; the tool ran once",
        lambda outcomes: [outcome.kind for outcome in outcomes] == ["approved", "result"],
        1,
    ),
    Step(
        "9",
        "An unmodified server from the package index, mcp-server-git: git_log, then git_reset",
        "the log; git_reset denied at issue; HEAD and index unchanged",
        _step_9,
        None,
        server="git",
    ),
    Step(
        "9b",
        "A tool asks who should review, the agent host answers, and the tool goes on as a task",
        "a result that names the reviewer; input, answer, task and result recorded in one attempt; the tool ran once",
        lambda outcomes: len(outcomes) == 1 and outcomes[0].kind == "result" and REVIEWER in outcomes[0].text,
        1,
        server="archive",
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
