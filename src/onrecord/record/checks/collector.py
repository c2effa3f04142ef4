"""Collects findings: severities from the catalogue, no duplicates, a cap that counts what it leaves out.

>>> collector = Collector()
>>> collector.add("type-mismatch", "/subject", data={"expected": "String", "found": "Integer"})
>>> [finding.message for finding in collector.in_order({"subject": 3})]
['subject: expected String, found Integer']
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from onrecord.base.findings import SEVERITIES, Finding, Severity
from onrecord.record.checks.catalogue import CATALOGUE, STRICT
from onrecord.record.checks.messages import message
from onrecord.record.checks.suppression import NO_SUPPRESSIONS, Suppressions
from onrecord.record.vcon.pointers import DocumentOrder

MAX_FINDINGS: Final = 10_000
"""Findings kept per file. A file can hold a fault per byte; the rest is counted and reported as a number."""

MAX_POINTER_CHARACTERS: Final = 4_000_000
"""Characters of all pointers kept per file: below a name of a megabyte, ten thousand faults would need ten gigabytes.
An ordinary pointer has twenty."""

_Identity = tuple[str, str, str]
"""Code, pointer and data: what makes two findings one."""


class Collector:
    """The findings of one file.

    `strict` raises the warnings of record.md D-73 to errors. `suppress` says what is counted in `suppressed` and
    otherwise forgotten; beyond `limit` findings are counted in `left_out` by severity.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        layer: str | None = None,
        limit: int = MAX_FINDINGS,
        suppress: Suppressions = NO_SUPPRESSIONS,
    ) -> None:
        self.layer = layer
        self.left_out: Counter[Severity] = Counter()
        self.suppressed = 0
        self._strict = strict
        self._limit = limit
        self._suppress = suppress
        self._passed_over: set[_Identity] = set()
        self._findings: dict[_Identity, Finding] = {}
        self._pointer_characters = 0
        self._kept: dict[Severity, list[_Identity]] = {severity: [] for severity in SEVERITIES}

    def add(
        self,
        code: str,
        pointer: str,
        *,
        severity: Severity | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a finding. `severity` replaces the catalogue's where a rule says so; found twice, the severer counts."""
        entry = CATALOGUE[code]
        level: Severity = severity or entry.severity
        if self._strict and level == "warning" and code in STRICT:
            level = "error"
        if self._pointer_characters + len(pointer) > MAX_POINTER_CHARACTERS and not entry.fatal:
            self.left_out[level] += 1
            return
        identity = (code, pointer, json.dumps(data, sort_keys=True, default=str) if data else "")
        if identity in self._findings:
            self._raise(identity, level)
            return
        if self._suppress and not entry.fatal and self._suppress.covers(code, pointer):
            self._pass_over(identity)
            return
        if len(self._findings) >= self._limit and not self._make_room(level):
            self.left_out[level] += 1
            return
        self._pointer_characters += len(pointer)
        self._kept[level].append(identity)
        self._findings[identity] = Finding(
            code=code,
            severity=level,
            pointer=pointer,
            message=message(code, entry.meaning, pointer, data),
            source=entry.source,
            fatal=entry.fatal,
            layer=self.layer,
            data=data,
        )

    def _raise(self, identity: _Identity, level: Severity) -> None:
        """Make a finding that was added before as severe as it was found to be now."""
        known = self._findings[identity]
        if SEVERITIES.index(level) > SEVERITIES.index(known.severity):
            self._kept[known.severity].remove(identity)
            self._kept[level].append(identity)
            self._findings[identity] = replace(known, severity=level)

    def _pass_over(self, identity: _Identity) -> None:
        """Count a suppressed finding, each once while there is room to remember it."""
        if identity not in self._passed_over:
            self.suppressed += 1
            if len(self._passed_over) < self._limit:
                self._pointer_characters += len(identity[1])
                self._passed_over.add(identity)

    def _make_room(self, level: Severity) -> bool:
        """Give up the latest finding that is less severe than `level`: notes must not crowd out errors."""
        for weaker in SEVERITIES[: SEVERITIES.index(level)]:
            if self._kept[weaker]:
                given_up = self._findings.pop(self._kept[weaker].pop())
                self._pointer_characters -= len(given_up.pointer)
                self.left_out[weaker] += 1
                return True
        return False

    def clear(self) -> None:
        """Forget everything that was added."""
        self._findings.clear()
        self.left_out.clear()
        self.suppressed = self._pointer_characters = 0
        self._passed_over.clear()
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
