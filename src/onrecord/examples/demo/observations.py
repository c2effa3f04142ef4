"""What else a step has to show beside the outcomes of its calls: journals, files, the git repository.

Source: running.md 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from onrecord.base.configuration import Configuration
from onrecord.examples.demo.bundle import CALLER
from onrecord.examples.demo.journals import wait_for_record
from onrecord.examples.demo.repository import fingerprint
from onrecord.examples.demo.tree import Tree
from onrecord.record.ledger.records import Record

COUNTING: Final = ("filesystem", "archive")
"""The servers that count the calls that run."""


@dataclass(frozen=True)
class Before:
    """How things were when a step began. `repository` is None without the server "git"."""

    calls: dict[str, int]
    comments: int
    repository: str | None

    @classmethod
    def of(cls, tree: Tree) -> Before:
        """Look at the tree now."""
        repository = fingerprint(tree.git_work) if tree.git_work.is_dir() else None
        return cls({server: tree.calls(server) for server in COUNTING}, _lines(tree), repository)


def observe(
    step: str, configuration: Configuration, *, tree: Tree, before: Before
) -> Iterable[tuple[str, bool]]:
    """Yield what `step` has to show now that its calls are done, and whether it does."""
    authority, recorder = configuration.authority_state, configuration.recorder_state
    match step:
        case "1":
            yield (
                "issue and verify journaled",
                wait_for_record(authority, _has_types("issue.granted", "verify.valid")),
            )
            yield "invocation recorded", wait_for_record(recorder, _has_invocation)
        case "2":
            yield "denial journaled with the caller", wait_for_record(authority, _has_denial)
            yield "canary in no other file", not tree.occurrences(tree.canary)
        case "8":
            yield "one comment was posted", _lines(tree) - before.comments == 1
        case "9b":
            yield "one attempt recorded", wait_for_record(recorder, _has_attempt_with_input)
        case "9":
            yield "HEAD and index unchanged", fingerprint(tree.git_work) == before.repository


def _lines(tree: Tree) -> int:
    try:
        return len(tree.comments.read_bytes().splitlines())
    except FileNotFoundError:
        return 0


def _has_types(*types: str) -> Callable[[Iterable[Record]], bool]:
    return lambda records: set(types) <= {record.type for record in records}


def _has_denial(records: Iterable[Record]) -> bool:
    return any(record.type == "issue.denied" and record.data.get("caller") == CALLER for record in records)


def _has_attempt_with_input(records: Iterable[Record]) -> bool:
    """Find one call with all that a call with input and a task leaves in the record."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for record in records:
        entry = record.data["entry"] if record.type == "trace" else {}
        if "call" in entry:
            kinds.setdefault((entry["connection"], entry["call"]), set()).add(entry["kind"])
    wanted = {"invocation", "input", "input-response", "pending", "result"}
    return any(wanted <= found for found in kinds.values())


def _has_invocation(records: Iterable[Record]) -> bool:
    return any(record.type == "trace" and record.data["entry"]["kind"] == "invocation" for record in records)
