"""The report of an import: what was read, what became of it, and the numbers that add up.

Source: native-logs.md sections 9 and 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.findings import SEVERITIES, Severity
from onrecord.record.logs.folders import Passed
from onrecord.record.logs.planning import Source
from onrecord.record.logs.sessions import NativeSession

NO_RECORDS: Final[Mapping[str, Any]] = {
    "records": 0,
    "mapped": 0,
    "of_mapped": {"conversation": 0, "system_event": 0},
    "duplicates": 0,
    "of_duplicates": {},
    "reported": 0,
}
"""The account of a file of which nothing was read."""


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What an import has done: the parts about its files, in order, and the sums.

    `changes` counts what became of the vCons: new, changed, same or refused. `faults` are codes of errors of ours.
    """

    files: list[dict[str, Any]] = field(default_factory=list)
    passed: Passed = field(default_factory=Passed)
    changes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    is_interrupted: bool = False
    target: str | None = None
    notes: list[str] = field(default_factory=list)

    def totals(self) -> dict[str, Any]:
        """Return the sums over all files."""
        accounts = [file["accounting"] or NO_RECORDS for file in self.files]
        return {
            "files": len(self.files),
            "unchanged": sum(1 for file in self.files if file.get("unchanged")),
            "not_imported": sum(1 for file in self.files if file["format"] is None),
            "not_looked_at": self.passed.to_json(),
            "sessions": sum(len(file["sessions"]) for file in self.files),
            "vcons": dict(sorted(self.changes.items())),
            **{
                name: sum(account[name] for account in accounts)
                for name in ("records", "mapped", "duplicates", "reported")
            },
            "bytes": sum(file["bytes"] for file in self.files),
            "seconds": round(self.seconds, 3),
        }

    def findings(self) -> Iterator[dict[str, Any]]:
        """Yield the findings of all files."""
        for file in self.files:
            yield from file["findings"]

    def to_json(self) -> dict[str, Any]:
        """Return the document of native-logs.md section 9."""
        document: dict[str, Any] = {"files": self.files, "totals": self.totals()}
        if self.is_interrupted:
            document["interrupted"] = True
        if self.notes:
            document["notes"] = self.notes
        return document

    def reaches(self, threshold: Severity) -> bool:
        """Say whether a finding is at least as severe as this."""
        floor = SEVERITIES.index(threshold)
        return any(SEVERITIES.index(finding["severity"]) >= floor for finding in self.findings())

    @property
    def has_fatal(self) -> bool:
        """Whether a file could not be read."""
        return any(finding.get("fatal") for finding in self.findings())

    @property
    def has_failed(self) -> bool:
        """Whether a fault of ours has cost a file."""
        return any(finding["code"] == "importer-failed" for finding in self.findings())


def _generation(source: Source) -> str | None:
    """Return the version of the program that wrote a log."""
    if source.trace is None:
        return None
    versions = (session.agent.cli_version for session in source.trace.sessions.values())
    return source.trace.generation or next(filter(None, versions), None)


def part_of(source: Source) -> dict[str, Any]:
    """Return what the report says about one source."""
    imported_as = source.importer.format if source.importer is not None and not source.has_failed else None
    part: dict[str, Any] = {
        "file": source.name,
        "number": source.number,
        "format": imported_as,
        "bytes": source.size,
        "sha256": _hash(source),
        "generation": _generation(source),
        "sessions": [_session(session, vcon) for session, vcon in source.sessions.values()],
        "accounting": source.accounting if source.accounting is not None else dict(NO_RECORDS),
        "findings": [finding.to_json() for finding in source.findings.listed()],
    }
    if source.twin_of is not None:
        part["twin_of"] = source.twin_of.name
    return part


def unchanged_part(source: Source) -> dict[str, Any]:
    """Return what the last import has said about a source that is the same since."""
    report = dict(source.known.report) if source.known is not None else part_of(source)
    return {**report, "file": source.name, "number": source.number, "unchanged": True}


def _hash(source: Source) -> str | None:
    """Return the hash of what was imported; what was not is not read for it."""
    if source.importer is None or source.has_failed or source.file is None:
        return None
    return source.sha256()


def _session(session: NativeSession, vcon: str | None) -> dict[str, Any]:
    usage, usage_source = session.usage_totals()
    first, last = session.first, session.last
    return {
        "vcon": vcon,
        "agent_session_id": session.agent_session_id,
        "agent": session.agent.cli_name,
        "parent": session.parent.agent_session_id if session.parent is not None else None,
        "start": first[1] if first is not None else None,
        "duration": (last[0] - first[0]) // 1_000_000 if first is not None and last is not None else None,
        "counts": dict(session.counts),
        "usage": usage,
        "usage_source": usage_source,
    }
