"""What `onrecord doctor` says: one result per item, and one word about isolation.

Source: DESIGN.md (JSON shapes); call-proof.md 1.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    from onrecord.base.configuration import Configuration
    from onrecord.base.errors import OnrecordError

Result = Literal["ok", "warning", "failed"]

MAX_NAMED: Final = 3
"""Things named in one line, each of which may be a long path; the rest is counted."""


def weight(configuration: Configuration) -> Result:
    """Return what a shared uid weighs: in user mode it is known and said once; in system mode it is a failure."""
    return "warning" if configuration.mode == "user" else "failed"


def listed(found: Collection[str]) -> str:
    """Return the first few of these texts, and how many more there are."""
    names = list(found)
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return "; ".join(names[:MAX_NAMED]) + more


@dataclass(frozen=True, slots=True)
class Check:
    """One item. `hint` says what to do next and is empty where nothing is to be done.

    `items` are the things that `detail` is about, where it may not name all of them.
    """

    name: str
    result: Result
    detail: str
    hint: str = ""
    items: tuple[str, ...] = ()

    @property
    def is_shortened(self) -> bool:
        """Say whether `detail` names only the first of the items."""
        return len(self.items) > MAX_NAMED

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md; `items` only where the detail does not name all of them."""
        document = {"name": self.name, "result": self.result, "detail": self.detail, "hint": self.hint}
        return document | ({"items": list(self.items)} if self.is_shortened else {})

    @classmethod
    def failed(cls, name: str, error: OnrecordError) -> Check:
        """Return a failure that says what the error says."""
        place = str(error.where or "")
        place = f" ({place})" if place and place not in str(error) else ""
        return cls(name, "failed", f"{error}{place} [{error.code}]", error.hint or "")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All results. `isolation` is "isolated" only after the attempts of call-proof.md 1.5 were made and failed."""

    isolation: Literal["isolated", "degraded"]
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """0 with warnings, 1 when a check failed."""
        return 1 if any(check.result == "failed" for check in self.checks) else 0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md."""
        return {"isolation": self.isolation, "checks": [check.to_json() for check in self.checks]}
