"""The last step: the vCon that the recorder has made of the session, verified and checked.

Source: running.md 9 and 10 (step 11).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509

from onrecord.base.configuration import Configuration
from onrecord.base.findings import Finding
from onrecord.base.reports import Report
from onrecord.record.checks.checker import check
from onrecord.record.forms import verify

WAIT_SECONDS: Final = 60
"""The recorder closes a session two seconds after its host is gone; this is a bound for what went wrong."""

PAUSE_SECONDS: Final = 0.2

EXPECTED_WARNINGS: Final = Counter({"invocation-after-disallowed": 2})
"""The denied call was sent twice all the same, in steps 3 and 4."""


@dataclass(frozen=True)
class RecordEvidence:
    """What was found below `records`. Without a single vCon, `report` is None."""

    vcons: tuple[Path, ...]
    report: Report | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """Count the errors that `check` found."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> Counter[str]:
        """Count the warnings that `check` found, by code."""
        return Counter(finding.code for finding in self.findings if finding.severity == "warning")

    @property
    def is_expected(self) -> bool:
        """Tell whether there is one vCon, verified, without errors and with exactly the expected warnings."""
        verified = self.report is not None and self.report.verdict == "verified"
        return len(self.vcons) == 1 and verified and not self.errors and self.warnings == EXPECTED_WARNINGS

    def __str__(self) -> str:
        if self.report is None:
            return f"{len(self.vcons)} vCons"
        warnings = ", ".join(f"{count} {code}" for code, count in sorted(self.warnings.items())) or "none"
        return f"1 vCon; verify: {self.report.verdict}; check: {self.errors} errors, warnings: {warnings}"

    def to_json(self) -> dict[str, Any]:
        """Return the `verification` member of the JSON document."""
        if self.report is None:
            return {"verdict": "not-evaluated", "outcome": "no-vcon"}
        return self.report.to_json() | {"checkFindings": [finding.to_json() for finding in self.findings]}


def wait_for_vcon(configuration: Configuration) -> None:
    """Wait until the recorder has written a vCon, or for so long that it will not."""
    end = time.monotonic() + WAIT_SECONDS
    while not _vcons(configuration) and time.monotonic() < end:
        time.sleep(PAUSE_SECONDS)


def examine(configuration: Configuration) -> RecordEvidence:
    """Verify the vCon against the anchors of the configuration, and check it."""
    vcons = _vcons(configuration)
    if len(vcons) != 1:
        return RecordEvidence(vcons, None, ())
    data = vcons[0].read_bytes()
    report = verify(data, anchors=_anchors(configuration.trust.vcon))
    return RecordEvidence(vcons, report, check(data).findings)


def _vcons(configuration: Configuration) -> tuple[Path, ...]:
    return tuple(sorted(configuration.paths.records.rglob("*.vcon.json")))


def _anchors(directory: Path) -> list[x509.Certificate]:
    return [x509.load_pem_x509_certificate(path.read_bytes()) for path in sorted(directory.glob("*.pem"))]
