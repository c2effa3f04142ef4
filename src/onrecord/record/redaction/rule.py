"""One rule of redaction: where it looks, and what it does there.

Source: record.md PR-08.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from onrecord.record.redaction.paths import Path
from onrecord.record.redaction.patterns import Finder

ACTIONS: Final[Mapping[str, str]] = {
    "remove": "leave the member out; an element of an array becomes {}; what must be there becomes [redacted]",
    "null": "null where that may stand (input, output and inside of content), otherwise as remove",
    "mask": "[redacted] in place of each text, or a mark for each match of pattern, regex or words",
    "hash": "a salted SHA-256 of the value",
    "pseudonym": "a label and a number, the same for equal values",
    "random": "a random id, the same for equal values of this export",
    "commit": "content becomes its content_hash; shorter than 32 bytes it is left out",
    "placeholder": "the whole element becomes {}",
    "keep": "rules below this one leave it alone, and it stays even if nobody knows the name",
}
"""What a rule can do, and what that means."""

Condition = Mapping[str, frozenset[str]]
"""Members and the values that they may have."""

NO_CONDITION: Final[Condition] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `name` says in reports which one it is; `finders` are given for actions on parts of texts.

    `where` and `unless` look at the members of the array element that a place belongs to. `everywhere` says if what
    the rule takes out is also taken out of all other texts: "no", "value", or "words" for each of its words too.
    `is_own` is said of the user's own rules: profiles have many that fit nothing in most vCons, and say nothing of it.
    """

    name: str
    action: str
    path: Path
    where: Condition
    unless: Condition
    finders: tuple[Finder, ...] = ()
    has_credentials: bool = False
    label: str | None = None
    everywhere: str = "no"
    is_own: bool = False

    @property
    def is_search(self) -> bool:
        """Say whether the rule looks for parts of texts."""
        return bool(self.finders) or self.has_credentials
