"""Findings about native logs: one list per file, folded so that a million faults are not a million lines.

>>> findings = FileFindings("a.jsonl")
>>> findings.add("malformed-line", record=3, line=3, offset=1021, action="kept as unreadable-record")
>>> [finding.code for finding in findings.listed()]
['malformed-line']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.findings import Severity
from onrecord.record.logs.catalogue import CATALOGUE

MAX_NAME: Final = 64
"""Characters of a native name that are shown."""

MAX_PLACES: Final = 20
"""Places of one code that are shown in full; the others are counted."""


@dataclass(slots=True)
class LogFinding:
    """One finding about a native log, or several of one code as one with their `count`.

    `record` and `line` count from 1, `offset` is in bytes of the decompressed text. `message` quotes no content.
    """

    code: str
    file: str
    record: int | None = None
    line: int | None = None
    offset: int | None = None
    count: int = 1
    pointer: str = ""
    message: str = ""
    action: str = ""
    severity: Severity = "info"
    source: str = ""
    is_fatal: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of native-logs.md section 9."""
        document: dict[str, Any] = {"code": self.code, "severity": self.severity, "file": self.file}
        for name in ("record", "line", "offset"):
            value = getattr(self, name)
            if value is not None:
                document[name] = value
        document |= {
            "count": self.count,
            "pointer": self.pointer,
            "message": self.message,
            "action": self.action,
            "source": self.source,
        }
        if self.is_fatal:
            document["fatal"] = True
        if self.data:
            document["data"] = dict(self.data)
        return document


class FileFindings:
    """The findings about one file, in the order of its records."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[LogFinding] = []
        self._places: dict[str, int] = {}
        self._folded: dict[str, LogFinding] = {}
        self._named: dict[tuple[str, str], LogFinding] = {}

    def add(
        self,
        code: str,
        *,
        record: int | None = None,
        line: int | None = None,
        offset: int | None = None,
        pointer: str = "",
        message: str | None = None,
        action: str = "",
        name: str | None = None,
        count: int = 1,
        severity: Severity | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Report one fact.

        With a `name` (of a member, type or block) there is one finding per code and name, with a count; without, one
        per place until there are `MAX_PLACES`, and one that counts the others. `message` None means the meaning that
        the catalogue gives. `severity` None means the usual one.
        """
        if name is not None:
            first = self._named.get((code, name))
            if first is not None:
                first.count += count
                return
        places = self._places.get(code, 0)
        if places >= MAX_PLACES:
            folded = self._folded.get(code)
            if folded is not None:
                folded.count += count
                return
        self._places[code] = places + 1
        entry = CATALOGUE[code]
        finding = LogFinding(
            code=code,
            file=self.file,
            record=record,
            line=line,
            offset=offset,
            count=count,
            pointer=pointer,
            message=_told(entry.meaning if message is None else message, name),
            action=action,
            severity=severity or entry.severity,
            source=entry.source,
            is_fatal=entry.fatal,
            data={"name": name[:MAX_NAME], **(data or {})} if name else data or {},
        )
        if places == MAX_PLACES:
            finding.message = f"{entry.meaning} (further places, folded)"
            self._folded[code] = finding
        elif name is not None:
            self._named[code, name] = finding
        self._found.append(finding)

    def count(
        self,
        code: str,
        number: int = 1,
        *,
        record: int | None = None,
        message: str | None = None,
        action: str = "",
    ) -> None:
        """Count a fact of which the file has one finding."""
        self.add(code, name="", count=number, record=record, message=message, action=action)

    def total(self, code: str) -> int:
        """Return how often a code was reported."""
        return sum(finding.count for finding in self._found if finding.code == code)

    def listed(self) -> Iterator[LogFinding]:
        """Yield the findings in the order of their records, those about the whole file first."""
        yield from sorted(self._found, key=lambda finding: finding.record or 0)


def _told(message: str, name: str | None) -> str:
    return f"{message}: {name[:MAX_NAME]}" if name else message
