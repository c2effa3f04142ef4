"""Findings that somebody has looked at and need not see again: by code, and by place if they like.

    >>> chosen = Suppressions.of([("uuid-version", ""), ("legacy-name", "/dialog")])
    >>> chosen.covers("legacy-name", "/dialog/3/mimetype"), chosen.covers("legacy-name", "/dialogue")
    (True, False)

What is suppressed is counted, and a fatal finding cannot be: where reading stops, nothing else is known.

Source: record.md 6.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from onrecord.base.errors import UsageError
from onrecord.record.checks.catalogue import known_code

_POINTER: Final = re.compile(r"(?:/(?:[^/~]|~[01])+)*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Suppressions:
    """Codes, each with the JSON pointers below which it is not reported; "" is the whole layer of the file."""

    places: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, rules: Iterable[tuple[str, str]]) -> Suppressions:
        """Make them from pairs of code and pointer.

        Raises `UsageError` with code "finding-code-unknown", "finding-code-fatal" or "pointer-invalid".
        """
        places: dict[str, set[str]] = {}
        for name, pointer in rules:
            if known_code(name).fatal:
                raise UsageError(
                    f"{name} cannot be suppressed: reading stops there, and nothing else of the file is known",
                    code="finding-code-fatal",
                    hint="leave the file out, or correct it",
                )
            if not _POINTER.fullmatch(pointer):
                raise UsageError(
                    f"the place of {name} is no JSON pointer",
                    code="pointer-invalid",
                    hint="begin it with / and end it without, as in /dialog/0; ~ is written ~0, and / in a name ~1",
                )
            places.setdefault(name, set()).add(pointer)
        return cls(MappingProxyType({name: frozenset(pointers) for name, pointers in places.items()}))

    def __bool__(self) -> bool:
        return bool(self.places)

    def covers(self, code: str, pointer: str) -> bool:
        """Say whether a finding of this code at this pointer is suppressed."""
        above = self.places.get(code)
        if above is None:
            return False
        while pointer not in above:
            if not pointer:
                return False
            pointer = pointer.rpartition("/")[0]
        return True


NO_SUPPRESSIONS: Final = Suppressions()
"""Everything is reported."""
