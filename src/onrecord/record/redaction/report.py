"""The report of a redaction: what was taken out and by which rule, what was not understood, what nobody looked into.

It holds codes, pointers and counts, never a value, and no name out of free content.

Source: record.md PR-11, PR-17, 7.3.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.record.vcon.pointers import step

MAX_ENTRIES: Final = 10_000
"""Entries kept of each kind, as many as findings of a check. Beyond, they are counted."""

_NAME: Final = re.compile(r"(?=.{1,40}\Z)[a-z]+(?:[_-][a-z]+)*[0-9]{0,2}", re.ASCII)
"""Names of members as programs write them. Anything else may be a person, an address or a key."""

REMAINS: Final = (
    "times, sizes and the names of tools still say something about what was taken out",
    "two recipients of one signed vCon can tell from the equal signature that they hold the same one",
    "a signed original that has left the domain cannot be recalled",
)
"""What no redaction can undo (record.md 7.3)."""

CONTENT_REMAINS: Final = (
    "content of people or tools is still in {} places, and may hold personal data that no pattern knows"
)
"""Said where content stays (AA 7.1)."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one rule did at one place: `count` values or parts of texts."""

    rule: str
    action: str
    pointer: str
    count: int

    def to_json(self) -> dict[str, Any]:
        """Return the members of a report."""
        return {"rule": self.rule, "action": self.action, "pointer": self.pointer, "count": self.count}


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """What was left out because nobody knows what it is, with the finding code that a check gives it."""

    code: str
    pointer: str

    def to_json(self) -> dict[str, Any]:
        """Return the members of a report."""
        return {"code": self.code, "pointer": self.pointer}


@dataclass(slots=True)
class RedactionReport:
    """What a redaction did.

    `changes` and `not_understood` stop at a limit; `left_out` counts the rest. `not_searched` are pointers to binary
    content that stays, and `kept` counts the places that still hold content, by array. `idle` are the user's own rules
    that took out nothing, and `total` is how much all rules took out.
    """

    type: str
    rules: str
    source_uuid: str | None = None
    uuid: str | None = None
    changes: list[Change] = field(default_factory=list)
    not_understood: list[NotUnderstood] = field(default_factory=list)
    not_searched: list[str] = field(default_factory=list)
    seen_unsearched: set[str] = field(default_factory=set, repr=False)
    counts: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    idle: list[str] = field(default_factory=list)
    total: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def changed(self, rule: str, action: str, pointer: str, count: int = 1) -> None:
        """Note what a rule did."""
        self.counts[rule] += count
        self.total += count
        if len(self.changes) < MAX_ENTRIES:
            self.changes.append(Change(rule, action, pointer, count))
        else:
            self.left_out["changes"] += 1

    def took_nothing(self, rule: str) -> None:
        """Note a rule of the user's own that took out nothing: it may be a slip."""
        if len(self.idle) < MAX_ENTRIES:
            self.idle.append(rule)
        else:
            self.left_out["tookOutNothing"] += 1

    def dropped(self, code: str, pointer: str, name: str | None = None) -> None:
        """Note what was not understood. A `name` that is no plain word may be content, so only its object is shown."""
        if name is not None and _NAME.fullmatch(name):
            pointer += step(name)
        if len(self.not_understood) < MAX_ENTRIES:
            self.not_understood.append(NotUnderstood(code, pointer))
        else:
            self.left_out["notUnderstood"] += 1

    def unsearched(self, pointer: str) -> None:
        """Note binary content that stays and that no pattern was applied to."""
        if pointer in self.seen_unsearched:
            return
        if len(self.not_searched) < MAX_ENTRIES:
            self.not_searched.append(pointer)
            self.seen_unsearched.add(pointer)
        else:
            self.left_out["notSearched"] += 1

    @property
    def remains(self) -> tuple[str, ...]:
        """Return what a recipient may still learn, in sentences for people."""
        kept = sum(self.kept.values())
        return (CONTENT_REMAINS.format(kept), *REMAINS) if kept else REMAINS

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        document: dict[str, Any] = {
            "type": self.type,
            "rules": self.rules,
            "sourceUuid": self.source_uuid,
            "uuid": self.uuid,
            "counts": dict(self.counts),
            "tookOutNothing": list(self.idle),
            "changes": [change.to_json() for change in self.changes],
            "notUnderstood": [entry.to_json() for entry in self.not_understood],
            "notSearched": list(self.not_searched),
            "kept": dict(self.kept),
            "remains": list(self.remains),
        }
        if self.left_out:
            document["leftOut"] = dict(self.left_out)
        return document
