"""Shows a demonstration to people: step by step while it runs, then a table, the story of the record, the path."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from onrecord.examples.demo.driver import Demonstration, Listener
from onrecord.examples.demo.principals import Cast
from onrecord.examples.demo.steps import StepResult
from onrecord.examples.demo.tree import Tree
from onrecord.record.story import render
from onrecord.record.vcon.model import Vcon

SCRIPT: Final = (
    "The agent in this demonstration is a script. It stands for a model that follows an instruction it has read in "
    "a pull request; everything else is real: processes, sockets, keys, policy, journals and the signed record."
)


def mode_line(cast: Cast) -> str:
    """Return the first line of the output: which mode, and what that means."""
    if not cast.is_system:
        return "User mode: all parts run under one uid, so the isolation is degraded. Run it as root for system mode."
    servers = ", ".join(f"{name} {uid}" for name, uid in cast.servers)
    return (
        f"System mode: one uid per part (agent {cast.agent}, authority {cast.authority}, recorder {cast.recorder}, "
        f"{servers}, approver {cast.approver})."
    )


class ConsoleListener(Listener):
    """Prints each step when it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def begins(self, cast: Cast, tree: Tree) -> None:
        """Say which mode it is, that the agent is a script, and where things are."""
        self._console.print(escape(mode_line(cast)))
        self._console.print(SCRIPT)
        self._console.print(f"Work tree: {tree.root}\n")

    def done(self, result: StepResult) -> None:
        """Print the step with what was expected and what was seen."""
        mark = "[green]ok[/green]    " if result.ok else "[red]NOT OK[/red]"
        self._console.print(f"{mark} [bold]{result.step:<4}[/bold]{escape(result.title)}")
        self._console.print(f"            expected  {escape(result.expected)}", style="dim")
        self._console.print(
            f"            observed  {escape(result.observed)}", style="" if result.ok else "red"
        )

    def fails(self, tree: Tree) -> None:
        """Name the work tree."""
        self._console.print(f"The demonstration could not run; the work tree stays: {tree.root}", style="red")


class QuietListener(Listener):
    """Says nothing but where the work tree is when the run breaks, on standard error."""

    def fails(self, tree: Tree) -> None:
        """Name the work tree."""
        print(f"onrecord demo: could not run; the work tree stays: {tree.root}", file=sys.stderr)  # noqa: T201


def print_summary(console: Console, demonstration: Demonstration) -> None:
    """Print the table of verification, the story and where everything is."""
    report = demonstration.evidence.report
    if report is not None:
        table = Table("axis", "result", "count", "grounds", title="Verification of the record")
        for name, axis in report.axes.items():
            count = "" if axis.count is None else str(axis.count)
            table.add_row(name, axis.result, count, escape(axis.grounds))
        console.print(table)
        for item in report.not_checked:
            console.print(f"not checked: {escape(item)}")
    if demonstration.vcon is not None and report is not None and report.payload is not None:
        console.print(render(Vcon.read(report.payload)))
    if demonstration.vcon is not None:
        console.print(f"Record: {escape(str(demonstration.vcon))}")
    console.print(f"Kept:   {escape(str(demonstration.kept))}")
    if demonstration.work_tree is not None:
        console.print(f"The work tree stays for a look: {demonstration.work_tree}", style="red")
    good = sum(step.ok for step in demonstration.steps)
    console.print(
        f"{good} of {len(demonstration.steps)} steps as expected.",
        style="green" if demonstration.ok else "red",
    )
