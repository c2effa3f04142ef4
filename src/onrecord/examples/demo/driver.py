"""Runs the demonstration: prepares everything, lets the agent host do its steps, judges, verifies, cleans up."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onrecord.base.errors import OnrecordError
from onrecord.base.uid_blocks import refusal_of_interpreter
from onrecord.examples.demo.approval import Approver, Approving
from onrecord.examples.demo.deployment import Deployment
from onrecord.examples.demo.evidence import RecordEvidence, examine, wait_for_vcon
from onrecord.examples.demo.host import AgentHost
from onrecord.examples.demo.keeping import choose_directory, keep_results, keep_transcript
from onrecord.examples.demo.observations import Before, observe
from onrecord.examples.demo.outcomes import Outcome
from onrecord.examples.demo.principals import Cast
from onrecord.examples.demo.servers import GIT, SERVERS, refusal_of_git
from onrecord.examples.demo.steps import RECORD_STEP, STEPS, Step, StepResult
from onrecord.examples.demo.tree import Tree


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
        """Tell whether each step that was done went as expected."""
        return all(step.ok is not False for step in self.steps)

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
            hint="install onrecord[mcp] from its checkout: pip install '/path/to/the/checkout[mcp]'",
        )


def run(
    *, keep: Path | None = None, approving: Approving = Approving.YES, listener: Listener | None = None
) -> Demonstration:
    """Run all steps and return what was seen; `approving` says who answers in step 8.

    Raises `UsageError` with code "not-empty"; `OnrecordError` with code "mcp-missing", "no-free-uids",
    "interpreter-closed", "work-tree" or "git-repository", or as setup and daemons do, when it could not run.
    """
    require_mcp()
    listener = listener or Listener()
    cast = Cast.choose([server.id for server in SERVERS])
    require_interpreter(cast)
    missing: dict[str, str] = {}
    if reason := refusal_of_git(cast.server(GIT.id) if cast.is_system else None):
        cast, missing = cast.without(GIT.id), {GIT.id: reason}
    kept = choose_directory(keep)
    tree = Tree.create(cast)
    listener.begins(cast, tree)
    try:
        with ExitStack() as stack:
            deployment = Deployment.prepare(cast, tree)
            stack.callback(deployment.stop)
            deployment.start()
            results = _Run(deployment, cast, tree, listener, approving, missing).all_steps()
        found = examine(deployment.configuration)
        last = _record_result(found, canary_files=len(tree.occurrences(tree.canary)))
        listener.done(last)
        results.append(last)
        vcon = keep_results(kept, deployment.configuration, found.vcons[0] if len(found.vcons) == 1 else None)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            tree.remove()  # whoever stops it does not want to look into it
        else:
            listener.fails(tree)
        if keep is None:
            with suppress(OSError):
                kept.rmdir()
        if isinstance(error, OnrecordError):
            # Whatever it is, the demonstration could not run, and that is exit status 3.
            raise OnrecordError(str(error), code=error.code, hint=error.hint, where=error.where) from error
        raise
    ok = all(result.ok is not False for result in results)
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


@dataclass(frozen=True)
class _Run:
    """The steps of one run. `missing` says of a server why it is not there."""

    _deployment: Deployment
    _cast: Cast
    _tree: Tree
    _listener: Listener
    _approving: Approving
    _missing: Mapping[str, str] = field(default_factory=dict)

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
        if step.server in self._missing:
            return StepResult.of(step, f"not done: {self._missing[step.server]}", ok=None)
        before = Before.of(self._tree)
        try:
            if step.id == "8":
                outcomes = self._with_approver(step, host)
            else:
                if step.id == "10a":
                    host.step("10a-get")
                    self._deployment.stop_authority()
                elif step.id == "10b":
                    self._deployment.start_authority()
                outcomes = host.step(step.id)
        except OnrecordError as error:
            return StepResult.of(step, str(error), ok=False)
        seen = [", then ".join(str(outcome) for outcome in outcomes)]
        ok = step.judge(outcomes)
        if step.runs is not None:
            ran = self._tree.calls(step.server) - before.calls[step.server]
            seen.append(f"tool runs: {ran}")
            ok = ok and ran == step.runs
        for name, holds in observe(step.id, self._deployment.configuration, tree=self._tree, before=before):
            seen.append(f"{name}: {'yes' if holds else 'NO'}")
            ok = ok and holds
        if outcomes and outcomes[0].kind == "rejected":
            seen.append("that is what a no does, and this step wants a yes")
        return StepResult.of(step, "; ".join(seen), ok=ok)

    def _with_approver(self, step: Step, host: AgentHost) -> Sequence[Outcome]:
        """Do a step whose call waits for a person, while the approver's process looks for it and decides."""
        with open(self._tree.logs / "approver.log", "wb") as log:
            approver = Approver.start(
                self._deployment.configuration,
                principal=self._cast.operator_principal,
                approving=self._approving,
                log=log,
            )
        try:
            outcomes = host.step(step.id, seconds=self._approving.call_seconds)
            return (approver.verdict(), *outcomes)
        finally:
            approver.end()


def _record_result(found: RecordEvidence, *, canary_files: int) -> StepResult:
    """Judge step 11, after all daemons have ended: now every byte that will be written is written."""
    step = RECORD_STEP
    observed = f"{found}; canary in other files: {canary_files}"
    return StepResult.of(step, observed, ok=found.is_expected and not canary_files)
