"""Findings and the one registry of their codes. Each room registers its own table, so that no code has two meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from onrecord.base.errors import UsageError

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
"""Severities, weakest first."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a finding code means: usual severity, meaning, source section; `fatal` when reading stops there.

    `change` says to a person what to write in place of what was found.
    """

    severity: Severity
    meaning: str
    source: str
    fatal: bool = False
    change: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth reporting about a file, at a JSON pointer (RFC 6901) into it.

    Messages quote names, types and lengths, never content values: they may hold secrets.
    """

    code: str
    severity: Severity
    pointer: str
    message: str
    source: str
    fatal: bool = False
    layer: str | None = None
    data: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md."""
        document: dict[str, Any] = {
            "code": self.code,
            "severity": self.severity,
            "pointer": self.pointer,
            "message": self.message,
            "source": self.source,
        }
        if self.fatal:
            document["fatal"] = True
        if self.layer is not None:
            document["layer"] = self.layer
        if self.data is not None:
            document["data"] = dict(self.data)
        return document


_LETTERS: Final[Mapping[str, Severity]] = {"F": "error", "E": "error", "W": "warning", "I": "info"}


def read_table(text: str) -> Mapping[str, Code]:
    """Read a table of codes.

    Each row is "code | F, E, W or I | source | meaning"; an indented line below it is its `change`, and lines with #
    are comments.
    """
    table: dict[str, Code] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            table[name] = replace(table[name], change=line.strip())
        elif line and not line.startswith("#"):
            name, severity, source, meaning = line.split(" | ", 3)
            table[name] = Code(_LETTERS[severity], meaning, source, fatal=severity == "F")
    return MappingProxyType(table)


_registry: dict[str, Code] = {}
_groups: dict[str, set[str]] = {}


def register(table: Mapping[str, Code], *, group: str) -> None:
    """Add a room's codes to the registry; `group` names what they are about, as in "log" or "vcon".

    Raises `UsageError` with code "finding-code-taken" if a code is known with another meaning.
    """
    for name, code in table.items():
        if _registry.setdefault(name, code) != code:
            raise UsageError(f"finding code {name} is registered twice", code="finding-code-taken")
        _groups.setdefault(name, set()).add(group)


def groups(name: str) -> tuple[str, ...]:
    """Return the groups that have a code, sorted."""
    return tuple(sorted(_groups[name]))


def known() -> Mapping[str, Code]:
    """Return every registered code."""
    return MappingProxyType(_registry)


def at_or_above(findings: tuple[Finding, ...], threshold: Severity) -> bool:
    """Say whether any finding is at least as severe as `threshold`."""
    floor = SEVERITIES.index(threshold)
    return any(SEVERITIES.index(finding.severity) >= floor for finding in findings)
