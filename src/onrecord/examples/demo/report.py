"""Shows a demonstration to people: step by step while it runs, then a table, the story of the record, the path."""

from __future__ import annotations

import shlex
import sys
import textwrap
from pathlib import Path
from shutil import which
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from onrecord.examples.demo.driver import Demonstration, Listener
from onrecord.examples.demo.principals import Cast
from onrecord.examples.demo.servers import SERVERS
from onrecord.examples.demo.steps import StepResult
from onrecord.examples.demo.tree import Tree
from onrecord.record.story import render
from onrecord.record.vcon.model import Vcon

SCRIPT: Final = (
    "The agent in this demonstration is a script. It stands for a model that follows an instruction it has read in "
    "a pull request; everything else is real: processes, sockets, keys, policy, journals and the signed record."
)

_MARKS: Final = {True: "[green]ok[/green]    ", False: "[red]NOT OK[/red]", None: "[yellow]--[/yellow]    "}
_STYLES: Final = {True: "", False: "red", None: "yellow"}


def mode_line(cast: Cast) -> str:
    """Return the first line of the output: which mode, and what that means."""
    if not cast.is_system:
        return "User mode: all parts run under one uid, so the isolation is degraded. Run it as root for system mode."
    return (
        f"System mode: one uid per part (agent {cast.agent}, authority {cast.authority}, recorder {cast.recorder}, "
        f"approver {cast.approver}, one per tool server)."
    )


def server_lines(cast: Cast) -> list[str]:
    """Return one line for each tool server: what it is, and who checks its calls."""
    present = dict(cast.servers)
    return [
        f"  {server.id:<11}{server.about}{f' (uid {present[server.id]})' if cast.is_system else ''}"
        for server in SERVERS
        if server.id in present
    ]


class ConsoleListener(Listener):
    """Prints each step when it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def begins(self, cast: Cast, tree: Tree) -> None:
        """Say which mode it is, that the agent is a script, where things are, and what is done now."""
        for line in (mode_line(cast), SCRIPT, "Tool servers:", *server_lines(cast)):
            self._console.print(escape(line))
        self._console.print(f"Work tree: {tree.root}")
        self._console.print("Preparing keys, policy and servers; this takes some seconds ...\n")

    def done(self, result: StepResult) -> None:
        """Print the step with what was expected and what was seen."""
        mark = _MARKS[result.ok]
        first, *more = self._lines(result.title, 11)
        self._console.print(f"{mark} [bold]{result.step:<4}[/bold]{escape(first)}")
        for line in more:
            self._console.print(f"{'':11}{escape(line)}")
        self._print_below("expected", result.expected, style="dim")
        self._print_below("observed", result.observed, style=_STYLES[result.ok])

    def _print_below(self, label: str, text: str, *, style: str) -> None:
        """Print a text with its label in front; on a terminal it wraps at words, under its own beginning."""
        indent = f"{'':11}{label}  "
        for number, line in enumerate(self._lines(text, len(indent))):
            before = indent if number == 0 else " " * len(indent)
            self._console.print(escape(before + line), style=style)

    def _lines(self, text: str, indent: int) -> list[str]:
        if not self._console.is_terminal:
            return [text]
        width = max(self._console.width - indent, 20)
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]

    def fails(self, tree: Tree) -> None:
        """Name the work tree."""
        self._console.print(f"The demonstration could not run; the work tree stays: {tree.root}", style="red")


class QuietListener(Listener):
    """Says nothing but where the work tree is when the run breaks, on standard error."""

    def fails(self, tree: Tree) -> None:
        """Name the work tree."""
        print(f"onrecord demo: could not run; the work tree stays: {tree.root}", file=sys.stderr)  # noqa: T201


def _program() -> str:
    """Return how the reader can call onrecord: by its name where the shell finds it, else as it was called now."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "onrecord" and not which("onrecord") else "onrecord"


def print_summary(console: Console, demonstration: Demonstration) -> None:
    """Print the table of verification, the story, where everything is, and how to look at it again."""
    report = demonstration.evidence.report
    if report is not None:
        console.print(Text("\nVerification of the record", style="bold"))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for name, axis in report.axes.items():
            count = "" if axis.count is None else str(axis.count)
            table.add_row(f"  {name}", axis.result, count, escape(axis.grounds))
        console.print(table)
        console.print(f"  not checked: {escape(', '.join(report.not_checked))}\n")
    if demonstration.vcon is not None and report is not None and report.payload is not None:
        console.print(render(Vcon.read(report.payload)))
    good = sum(step.ok is True for step in demonstration.steps)
    undone = ", ".join(step.step for step in demonstration.steps if step.ok is None)
    console.print(
        f"\n{good} of {len(demonstration.steps)} steps as expected{f'; not done: {undone}' if undone else ''}.",
        style=("yellow" if undone else "green") if demonstration.ok else "red",
    )
    console.print(f"Kept: {escape(str(demonstration.kept))}", soft_wrap=True)
    if demonstration.vcon is not None:
        record = shlex.quote(str(demonstration.vcon))
        anchor = shlex.quote(str(demonstration.kept / "trust" / "vcon" / "record-ca.pem"))
        program = escape(_program())
        console.print("Look again:")
        console.print(f"  {program} show {escape(record)}", soft_wrap=True)
        console.print(f"  {program} verify {escape(record)} --anchor {escape(anchor)}", soft_wrap=True)
    if demonstration.work_tree is not None:
        console.print(f"The work tree stays for a look: {demonstration.work_tree}", style="red")
