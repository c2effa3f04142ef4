"""The catalogue of findings about native logs: every code, its severity, the rule it rests on, what it means.

    >>> CATALOGUE["truncated-tail"].severity
    'info'

The rows stand in `catalogue.txt` beside this module, each with a line that says what it means for the reader.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from onrecord.base.findings import read_table, register
from onrecord.record.checks.catalogue import known_code

CATALOGUE: Final = read_table((files(__package__) / "catalogue.txt").read_text(encoding="utf-8"))
"""Every finding code about native logs (native-logs.md 9)."""

SHARED: Final = frozenset(["credential-found", "unknown-member"])
"""Codes of vCons that mean the same in a log; only what it means for the reader is said in other words there."""

register(
    {name: known_code(name) if name in SHARED else code for name, code in CATALOGUE.items()}, group="log"
)
