"""Collects findings: severities from the catalogue, no duplicates, a cap that counts what it leaves out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from onrecord.base.findings import SEVERITIES, Finding, Severity
from onrecord.record.checks.catalogue import CATALOGUE, STRICT
from onrecord.record.vcon.pointers import DocumentOrder

MAX_FINDINGS: Final = 10_000
"""Findings kept per file. A file can hold a fault per byte; the rest is counted and reported as a number."""

MAX_QUOTED: Final = 80
"""Characters of a member name quoted in a message: names come from the file and may be of any length."""


_Identity = tuple[str, str, str]
"""Code, pointer and data: what makes two findings one."""


class Collector:
    """The findings of one file."""

    def __init__(self, *, strict: bool = False, layer: str | None = None, limit: int = MAX_FINDINGS) -> None:
        self.layer = layer
        self.left_out: Counter[Severity] = Counter()
        self._strict = strict
        self._limit = limit
        self._findings: dict[_Identity, Finding] = {}
        self._kept: dict[Severity, list[_Identity]] = {severity: [] for severity in SEVERITIES}

    def add(
        self,
        code: str,
        pointer: str,
        *,
        severity: Severity | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a finding. `severity` replaces the catalogue's where a rule says so."""
        entry = CATALOGUE[code]
        level: Severity = severity or entry.severity
        if self._strict and level == "warning" and code in STRICT:
            level = "error"
        identity = (code, pointer, json.dumps(data, sort_keys=True, default=str) if data else "")
        if identity in self._findings:
            return
        if len(self._findings) >= self._limit and not self._make_room(level):
            self.left_out[level] += 1
            return
        self._kept[level].append(identity)
        self._findings[identity] = Finding(
            code=code,
            severity=level,
            pointer=pointer,
            message=_message(code, entry.meaning, data),
            source=entry.source,
            fatal=entry.fatal,
            layer=self.layer,
            data=data,
        )

    def _make_room(self, level: Severity) -> bool:
        """Give up the latest finding that is less severe than `level`: notes must not crowd out errors."""
        for weaker in SEVERITIES[: SEVERITIES.index(level)]:
            if self._kept[weaker]:
                del self._findings[self._kept[weaker].pop()]
                self.left_out[weaker] += 1
                return True
        return False

    def clear(self) -> None:
        """Forget everything that was added."""
        self._findings.clear()
        self.left_out.clear()
        for kept in self._kept.values():
            kept.clear()

    def has(self, code: str) -> bool:
        """Say whether a finding of this code was added."""
        return any(identity[0] == code for identity in self._findings)

    @property
    def errors(self) -> int:
        """Return how many errors were found, those beyond the cap included."""
        return self.left_out["error"] + sum(
            finding.severity == "error" for finding in self._findings.values()
        )

    def in_order(self, document: Any) -> tuple[Finding, ...]:
        """Return the findings in document order of their pointers, then by code."""
        order = DocumentOrder(document)
        return tuple(
            sorted(self._findings.values(), key=lambda finding: (order.key(finding.pointer), finding.code))
        )


_ASIDE: Final = re.compile(
    r" \((?:data|info|warning|error|otherwise|header|the default|decoded|one message|0\.0\.1|if ).*?\)"
)
"""What the catalogue says about a code in brackets: of use to its reader, not beside the place itself."""

MESSAGES: Final[Mapping[str, str]] = {
    "uuid-missing": "the vCon has no uuid",
    "uuid-invalid": "the uuid is not the text form of a UUID",
    "uuid-version": "the uuid is not of version 8",
    "created-at-missing": "the vCon has no created_at",
    "required-missing": "a parameter that must be present is absent",
    "recommended-missing": "a parameter that should be present is absent",
    "forbidden-present": "this parameter must not be present in an object of this type",
    "discouraged-present": "this parameter should not be present in an object of this type",
    "type-mismatch": "the value has the wrong JSON type",
    "enum-invalid": "the value is none of those that are allowed here",
    "enum-unknown": "the value is none of those that the draft names",
    "event-session-missing": "the event names no session",
    "critical-unsupported": "critical lists an extension that is not supported, so nothing else was checked",
    "jws-alg-refused": "the algorithm is not allowed, or does not fit the key",
    "jws-member-missing": "a member of the signature is missing or unreadable",
    "not-performed": "no attempt follows this decision",
    "attempt-overlap": "a new attempt starts while the one before it can still be answered",
}
"""Messages for people where the catalogue's wording is short."""


def _message(code: str, meaning: str, data: Mapping[str, Any] | None) -> str:
    message = MESSAGES.get(code) or _ASIDE.sub("", meaning)
    if not data:
        return message
    details = "; ".join(f"{name}: {_quoted(value)}" for name, value in data.items())
    return f"{message} ({details})"


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"
