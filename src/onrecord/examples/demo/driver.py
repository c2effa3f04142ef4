"""Runs the demonstration: prepares everything, lets the agent host do its steps, judges, verifies, cleans up."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onrecord.base.errors import OnrecordError
from onrecord.base.uid_blocks import refusal_of_interpreter
from onrecord.examples.demo.bundle import CALLER
from onrecord.examples.demo.deployment import SERVERS, Deployment
from onrecord.examples.demo.evidence import RecordEvidence, examine, wait_for_vcon
from onrecord.examples.demo.host import AgentHost
from onrecord.examples.demo.journals import wait_for_record
from onrecord.examples.demo.keeping import choose_directory, keep_results, keep_transcript
from onrecord.examples.demo.principals import Cast
from onrecord.examples.demo.steps import RECORD_STEP, STEPS, Step, StepResult
from onrecord.examples.demo.tree import Tree
from onrecord.record.ledger.records import Record


@dataclass(frozen=True)
class Demonstration:
    """The whole outcome. `vcon` is the kept file, `work_tree` is there only when something went wrong."""

    steps: tuple[StepResult, ...]
    vcon: Path | None
    evidence: RecordEvidence
    kept: Path
    work_tree: Path | None

    @property
    def ok(self) -> bool:
        """Tell whether each step went as expected."""
        return all(step.ok for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `onrecord demo --json` (DESIGN.md)."""
        document: dict[str, Any] = {
            "steps": [step.to_json() for step in self.steps],
            "vcon": None if self.vcon is None else str(self.vcon),
            "verification": self.evidence.to_json(),
            "ok": self.ok,
        }
        return document if self.work_tree is None else document | {"workTree": str(self.work_tree)}


class Listener:
    """Hears of what happens while it happens; does nothing by itself."""

    def begins(self, cast: Cast, tree: Tree) -> None:
        """Everything is about to be prepared in `tree`."""

    def done(self, result: StepResult) -> None:
        """A step is done."""

    def fails(self, tree: Tree) -> None:
        """The run is broken; `tree` stays for a look."""


def require_mcp() -> None:
    """Raise `OnrecordError` with code "mcp-missing" when the official SDK is not installed."""
    if importlib.util.find_spec("mcp") is None:
        raise OnrecordError(
            "the demonstration uses the official MCP SDK, which is not installed",
            code="mcp-missing",
            hint="install it with: pip install 'onrecord[mcp]'",
        )


def run(*, keep: Path | None = None, listener: Listener | None = None) -> Demonstration:
    """Run all steps and return what was seen.

    Raises `UsageError` with code "not-empty"; `OnrecordError` with code "mcp-missing", "no-free-uids",
    "interpreter-closed" or "work-tree", or as setup and daemons do, when it could not run.
    """
    require_mcp()
    listener = listener or Listener()
    cast = Cast.choose(SERVERS)
    require_interpreter(cast)
    kept = choose_directory(keep)
    tree = Tree.create(cast)
    listener.begins(cast, tree)
    try:
        with ExitStack() as stack:
            deployment = Deployment.prepare(cast, tree)
            stack.callback(deployment.stop)
            deployment.start()
            results = _Run(deployment, cast, tree, listener).all_steps()
        found = examine(deployment.configuration)
        last = _record_result(found, canary_files=len(tree.occurrences(tree.canary)))
        listener.done(last)
        results.append(last)
        vcon = keep_results(kept, deployment.configuration, found.vcons[0] if len(found.vcons) == 1 else None)
    except BaseException as error:
        listener.fails(tree)
        if keep is None:
            with suppress(OSError):
                kept.rmdir()
        if isinstance(error, OnrecordError):
            # Whatever it is, the demonstration could not run, and that is exit status 3.
            raise OnrecordError(str(error), code=error.code, hint=error.hint, where=error.where) from error
        raise
    ok = all(result.ok for result in results)
    if ok:
        tree.remove()
    demonstration = Demonstration(tuple(results), vcon, found, kept, None if ok else tree.root)
    keep_transcript(kept, demonstration.to_json())
    return demonstration


def require_interpreter(cast: Cast) -> None:
    """Raise `OnrecordError` with code "interpreter-closed" when another uid cannot run our interpreter.

    Source: running.md R-03.
    """
    reason = refusal_of_interpreter(cast.agent) if cast.is_system else None
    if reason is not None:
        raise OnrecordError(
            reason,
            code="interpreter-closed",
            hint="`make setup` chooses one that all users can run; or run the demonstration as an ordinary user",
        )


class _Run:
    """The steps of one run."""

    def __init__(self, deployment: Deployment, cast: Cast, tree: Tree, listener: Listener) -> None:
        self._deployment = deployment
        self._cast = cast
        self._tree = tree
        self._listener = listener

    def all_steps(self) -> list[StepResult]:
        configuration = self._deployment.configuration
        results: list[StepResult] = []
        with ExitStack() as stack:
            log = stack.enter_context(open(self._tree.logs / "agent.log", "wb"))
            host = AgentHost.start(
                configuration.file, principal=self._cast.agent_principal, home=Path("/nonexistent"), log=log
            )
            stack.callback(host.end)
            for step in STEPS:
                result = self._one(step, host)
                self._listener.done(result)
                results.append(result)
        wait_for_vcon(configuration)
        return results

    def _one(self, step: Step, host: AgentHost) -> StepResult:
        before = self._tree.calls("filesystem")
        try:
            if step.id == "10a":
                host.step("10a-get")
                self._deployment.stop_authority()
            elif step.id == "10b":
                self._deployment.start_authority()
            outcomes = host.step(step.id)
        except OnrecordError as error:
            return StepResult(step.id, step.title, step.expected, str(error), ok=False)
        ran = self._tree.calls("filesystem") - before
        observed = [", then ".join(str(outcome) for outcome in outcomes), f"tool runs: {ran}"]
        ok = step.judge(outcomes) and ran == step.runs
        for name, holds in self._more(step):
            observed.append(f"{name}: {'yes' if holds else 'NO'}")
            ok = ok and holds
        return StepResult(step.id, step.title, step.expected, "; ".join(observed), ok)

    def _more(self, step: Step) -> Iterable[tuple[str, bool]]:
        """Yield what else a step has to show, and whether it does."""
        configuration = self._deployment.configuration
        authority, recorder = configuration.authority_state, configuration.recorder_state
        if step.id == "1":
            yield (
                "issue and verify journaled",
                wait_for_record(authority, _has_types("issue.granted", "verify.valid")),
            )
            yield "invocation recorded", wait_for_record(recorder, _has_invocation)
        elif step.id == "2":
            yield "denial journaled with the caller", wait_for_record(authority, _has_denial)
            yield "canary in no other file", not self._tree.occurrences(self._tree.canary)


def _record_result(found: RecordEvidence, *, canary_files: int) -> StepResult:
    """Judge step 11, after all daemons have ended: now every byte that will be written is written."""
    step = RECORD_STEP
    observed = f"{found}; canary in other files: {canary_files}"
    return StepResult(step.id, step.title, step.expected, observed, found.is_expected and not canary_files)


def _has_types(*types: str) -> Callable[[Iterable[Record]], bool]:
    return lambda records: set(types) <= {record.type for record in records}


def _has_denial(records: Iterable[Record]) -> bool:
    return any(record.type == "issue.denied" and record.data.get("caller") == CALLER for record in records)


def _has_invocation(records: Iterable[Record]) -> bool:
    return any(record.type == "trace" and record.data["entry"]["kind"] == "invocation" for record in records)
