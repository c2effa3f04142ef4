"""What `onrecord check` prints, file by file as they are checked: nothing of a file is held but its counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onrecord.base.errors import OnrecordError
from onrecord.base.findings import Severity
from onrecord.cli.findings import Totals, add_findings, count_text
from onrecord.cli.lines import Lines, Segment
from onrecord.cli.output import json_text, note, visible, write_out
from onrecord.record.checks.checker import CheckResult

if TYPE_CHECKING:
    from rich.console import Console

MAX_FACTS: Final = 10
"""Extensions printed in the line of a file; --json has them all."""

MAX_FACT: Final = 60
"""Characters printed of the name of an extension: it comes from the file."""

_FORMS: Final[Mapping[str | None, str]] = {
    "unsigned": "unsigned",
    "signed": "signed (signature not verified)",
    "encrypted": "encrypted (envelope only)",
}
"""What a form is called, with what is not checked about it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One file: its result, or the error that kept it from being checked."""

    file: str
    result: CheckResult | None
    error: OnrecordError | None = None

    @property
    def is_read(self) -> bool:
        """Say whether the file was checked to its end."""
        return self.result is not None and not self.result.is_fatal

    @property
    def suppressed(self) -> int:
        """Return how many findings were suppressed."""
        return self.result.suppressed if self.result is not None else 0

    def counts(self) -> Mapping[Severity, int]:
        """Return how many findings there are of each severity, those beyond the cap included."""
        counts: Counter[Severity] = Counter()
        if self.result is not None:
            counts.update(finding.severity for finding in self.result.findings)
            counts.update(self.result.left_out)
        return counts

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md."""
        if self.result is not None:
            return {"file": self.file, **self.result.to_json(), "suppressed": self.result.suppressed}
        document: dict[str, Any] = {
            "file": self.file,
            "form": None,
            "version": None,
            "extensions": [],
            "findings": [],
            "suppressed": 0,
        }
        return document if self.error is None else {**document, **self.error.to_json()}


class Report(ABC):
    """Takes files one by one and prints them."""

    def __init__(self) -> None:
        self.files = 0
        self.without_error = 0
        self.not_checked = 0
        self.suppressed = 0
        self.totals = Totals()

    def add(self, checked: Checked) -> None:
        """Count a file and print it."""
        self.files += 1
        self.suppressed += checked.suppressed
        if not checked.is_read:
            self.not_checked += 1
        elif checked.result is not None and checked.result.is_valid:
            self.without_error += 1
        if checked.result is not None:
            self.totals.add(checked.result.findings)
        self._print(checked)

    @property
    def with_errors(self) -> int:
        """Return how many files were checked and have errors."""
        return self.files - self.without_error - self.not_checked

    @abstractmethod
    def _print(self, checked: Checked) -> None:
        """Print a file."""

    @abstractmethod
    def end(self, *, interrupted: bool) -> None:
        """Print the totals."""


class TextReport(Report):
    """For people: a line for each file, its findings below, and at the end what to change."""

    def __init__(self, out: Console) -> None:
        super().__init__()
        self._lines = Lines(out)

    def _print(self, checked: Checked) -> None:
        name: list[Segment] = [(visible(checked.file), "bold"), (": ", "")]
        if checked.error is not None:
            error = checked.error
            self._lines.add([], [*name, (f"not checked: {visible(str(error))} [{error.code}]", "bold red")])
            self._lines.add([("  next: ", "")], [(visible(error.hint or error.usual_hint), "")])
        if checked.result is not None:
            self._add_result(name, checked, checked.result)
        self._lines.flush()

    def _add_result(self, name: list[Segment], checked: Checked, result: CheckResult) -> None:
        facts = [_FORMS.get(result.form, "not readable")]
        if result.version is not None:
            facts.append(f"core {result.version}")
        facts += [visible(name[:MAX_FACT]) for name in result.extensions[:MAX_FACTS]]
        counts = checked.counts()
        style = "bold red" if counts.get("error") else "yellow" if counts.get("warning") else "green"
        body = [*name, (f"{', '.join(facts)}; ", ""), (count_text(counts), style)]
        if checked.suppressed:
            body.append((f", {checked.suppressed} suppressed", "dim"))
        self._lines.add([], body)
        add_findings(self._lines, result.findings)
        if result.left_out:
            more = count_text(result.left_out)
            self._lines.add([("  ", "")], [(f"and {more} more, counted and not kept", "")])

    def end(self, *, interrupted: bool) -> None:
        if interrupted:
            done = "1 file was" if self.files == 1 else f"{self.files} files were"
            note(f"onrecord: interrupted; {done} checked until then")
        self.totals.add_advice(self._lines, several=self.files > 1)
        if self.files > 1:
            parts = [f"{self.without_error} without error", f"{self.with_errors} with errors"]
            if self.not_checked:
                parts.append(f"{self.not_checked} not checked")
            text = f"{self.files} files: {', '.join(parts)}"
            if self.suppressed:
                text += f"; {self.suppressed} findings suppressed"
            self._lines.add([(text, "bold")])
        elif self.totals.codes:
            self._lines.add([], [("onrecord check --explain CODE says more about a code", "dim")])
        self._lines.flush()
        if self.not_checked:
            note(f"onrecord: {self.not_checked} of {self.files} files could not be checked")


class JsonReport(Report):
    """For programs: one document, whose list of files is written as it grows."""

    def _print(self, checked: Checked) -> None:
        head = '{\n  "files": [\n    ' if self.files == 1 else ",\n    "
        write_out(head + json_text(checked.to_json()).replace("\n", "\n    "))

    def end(self, *, interrupted: bool) -> None:
        head = '{\n  "files": [' if not self.files else "\n  "
        totals = {
            "files": self.files,
            "withoutError": self.without_error,
            "withErrors": self.with_errors,
            "notChecked": self.not_checked,
            "suppressed": self.suppressed,
            "codes": dict(sorted(self.totals.codes.items())),
        }
        tail = {"totals": totals, **({"interrupted": True} if interrupted else {})}
        write_out(head + "],\n" + json_text(tail).removeprefix("{\n") + "\n")
