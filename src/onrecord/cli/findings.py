"""Findings as text for people: in document order, repetitions counted, and below them what to change, once per code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from onrecord.base.findings import SEVERITIES, Finding, Severity
from onrecord.cli.lines import Lines, Segment
from onrecord.cli.output import visible
from onrecord.record.checks.catalogue import CATALOGUE, STRICT, known_code

if TYPE_CHECKING:
    from rich.console import Console

SEVERITY_STYLES: Final[Mapping[Severity, str]] = {"error": "bold red", "warning": "yellow", "info": "dim"}
WORDS: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}

SHOWN_FINDINGS: Final = 200
"""Lines of findings printed per file; the rest is counted, and --json has them all."""

SHOWN_PLACES: Final = 3
"""Places printed of findings that differ in nothing else: more of them say nothing new to a reader."""

MAX_PLACE: Final = 160
"""Characters of a pointer that are printed: the names in it come from the file."""


def print_findings(out: Console, findings: Sequence[Finding]) -> None:
    """Print findings, one per line: severity, code, place, message."""
    lines = Lines(out)
    add_findings(lines, findings)
    lines.flush()


def add_findings(lines: Lines, findings: Sequence[Finding]) -> None:
    """Add findings, one per line, to the lines that wait."""
    for number, (head, body, shown) in enumerate(_lines(findings)):
        if number == SHOWN_FINDINGS:
            lines.add([(f"  and {len(findings) - shown} more findings; --json has them all", "")])
            return
        lines.add(head, body)


def _lines(findings: Sequence[Finding]) -> Iterator[tuple[list[Segment], list[Segment], int]]:
    """Yield head and body of each line, with the number of findings that the lines before it stand for."""
    totals: Counter[tuple[Any, ...]] = Counter()
    last: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        kind = _kind(finding)
        totals[kind] += 1
        last[kind] = finding
    seen: Counter[tuple[Any, ...]] = Counter()
    shown = 0
    for finding in findings:
        kind = _kind(finding)
        seen[kind] += 1
        total = totals[kind]
        # One line that stands for one finding would be no shorter than the finding.
        if seen[kind] <= SHOWN_PLACES or total == SHOWN_PLACES + 1:
            yield *_line(finding), shown
            shown += 1
        elif seen[kind] == SHOWN_PLACES + 1:
            more = total - SHOWN_PLACES
            body = [
                (f"and {more} more ", "dim"),
                (finding.code, "dim bold"),
                (f", the last at {_place(last[kind])}", "dim"),
            ]
            yield [(" " * 10, "")], body, shown
            shown += more


def _kind(finding: Finding) -> tuple[Any, ...]:
    return (finding.layer, finding.severity, finding.code, finding.message)


def _line(finding: Finding) -> tuple[list[Segment], list[Segment]]:
    head = [("  ", ""), (f"{finding.severity:8}", SEVERITY_STYLES[finding.severity])]
    body = [
        (finding.code, "bold"),
        (f" {_place(finding)}", "cyan"),
        (f"  {visible(finding.message)}", ""),
    ]
    return head, body


def _place(finding: Finding) -> str:
    pointer = finding.pointer or "(top)"
    if len(pointer) > MAX_PLACE:
        pointer = pointer[: MAX_PLACE // 2] + "…" + pointer[-MAX_PLACE // 2 :]
    place = visible(pointer)
    return f"envelope {place}" if finding.layer == "envelope" else place


class Totals:
    """How often each code was found, and in how many files."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self._severities: dict[str, Severity] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        """Count the findings of one file."""
        here: set[str] = set()
        for finding in findings:
            here.add(finding.code)
            self.codes[finding.code] += 1
            known = self._severities.get(finding.code)
            if known is None or SEVERITIES.index(known) < SEVERITIES.index(finding.severity):
                self._severities[finding.code] = finding.severity
        self.files.update(here)

    def add_advice(self, lines: Lines, *, several: bool) -> None:
        """Add each code with what to change: errors first, and the frequent before the rare."""
        if not self.codes:
            return
        lines.add([])
        lines.add([("What to change:", "bold")])
        rank = {severity: -index for index, severity in enumerate(SEVERITIES)}
        for code in sorted(self.codes, key=lambda one: (rank[self._severities[one]], -self.codes[one], one)):
            severity = self._severities[code]
            found = [(code, "bold")]
            if several:
                found.append((f", {_times(self.codes[code])} in {_counted(self.files[code], 'file')}", "dim"))
            lines.add([("  ", ""), (f"{severity:8}", SEVERITY_STYLES[severity])], found)
            lines.add([(" " * 10, "")], [(CATALOGUE[code].change, "")])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def count_text(counts: Mapping[Severity, int]) -> str:
    """Return how many findings there are, by severity, in words."""
    parts = [_counted(counts[severity], word) for severity, word in WORDS.items() if counts.get(severity)]
    return ", ".join(parts) or "no finding"


def explain(code: str) -> dict[str, Any]:
    """Return all that the catalogues of vCons and of native logs say about a code.

    Raises `UsageError` with code "finding-code-unknown".
    """
    from onrecord.record.logs.catalogue import CATALOGUE as LOG_CODES

    entry = LOG_CODES[code] if code in LOG_CODES and code not in CATALOGUE else known_code(code)
    return {
        "code": code,
        "severity": entry.severity,
        "fatal": entry.fatal,
        "strict": "error" if code in STRICT else entry.severity,
        "source": entry.source,
        "meaning": entry.meaning,
        "change": entry.change,
    }


def print_explanation(out: Console, explained: Mapping[str, Any]) -> None:
    """Print what `explain` returned."""
    lines = Lines(out)
    severity = explained["severity"]
    words = [WORDS[severity]]
    if explained["fatal"]:
        words.append("reading stops there")
    if explained["strict"] != severity:
        words.append(f"{explained['strict']} with --strict")
    lines.add([(explained["code"], "bold"), (f": {', '.join(words)}", SEVERITY_STYLES[severity])])
    for label, name in (("meaning", "meaning"), ("to change", "change"), ("source", "source")):
        lines.add([(f"  {label:11}", "dim")], [(explained[name], "")])
    lines.flush()
