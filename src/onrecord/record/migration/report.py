"""What a migration reports: one change for each place that was converted, derived, dropped or kept.

A change never holds content. What it needs to be undone is in the result, or is a name, an index, a date or the
spelling of an empty value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, Self

from onrecord.base.errors import MalformedError

Action = Literal["converted", "derived", "dropped", "kept"]
ACTIONS: Final[tuple[Action, ...]] = ("converted", "derived", "dropped", "kept")
"""What can happen at a place, in the order of the summary."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a code of the report stands for."""

    action: Action
    meaning: str


_TABLE: Final = """
    version-dropped       | dropped   | the vcon member; 0.5.0 has none
    version-kept          | kept      | the vcon member holds content, which is no version
    member-renamed        | converted | a member got its name of 0.5.0
    duplicate-dropped     | dropped   | the old name of a member whose new name holds the same value
    name-kept             | kept      | old and new name of one member hold different values; both stay
    empty-dropped         | dropped   | a null or empty value that says nothing
    group-kept            | kept      | group has content, which 0.5.0 only reserves a name for
    hash-joined           | converted | alg and signature became content_hash
    hash-kept             | kept      | alg and signature that are no SHA-512 hash
    encoding-derived      | derived   | the encoding that the body is read with was written down
    encoding-converted    | converted | encoding base64 became base64url
    encoding-kept         | kept      | an encoding that is missing or wrong and does not follow from the body
    body-respelled        | converted | a base64 body is spelled as base64url without padding; the bytes are the same
    json-parsed           | converted | a body that held JSON in a string is now that JSON value
    json-kept             | kept      | a JSON body in a string that has no exact value here
    session-id-split      | converted | a session_id in one String became an object with local and remote
    session-id-kept       | kept      | a session_id that is neither a String nor an object
    index-unwrapped       | converted | an array of one index became the index
    index-unknown-dropped | dropped   | an index -1, which said: not known
    transfer-kept         | kept      | a transfer dialog that no events could be derived from
    transfer-told         | derived   | an event that tells what a transfer dialog says
    party-added           | derived   | an empty party for a role that is not known
    party-history-moved   | converted | an entry of party_history became an event
    party-history-dropped | dropped   | an entry of party_history that an event tells already
    party-history-kept    | kept      | an entry of party_history that makes no correct event
    session-derived       | derived   | a session, from the dialogs that belong together
    number-rounded        | converted | a number whose text says more than a double keeps
    unknown-member        | kept      | a member that 0.5.0 does not know
    uuid-renewed          | derived   | a new uuid, for the source was signed or encrypted
    amended-from-set      | derived   | the reference to the source
    amended-from-replaced | converted | the reference to the version before the source now names the source
    amended-from-left-out | kept      | no reference to the source: it has no uuid, or it is a redacted vCon
    created-at-set        | derived   | the time of this migration, which made the new instance
    updated-at-set        | derived   | the time of this migration
"""


def _read_steps(text: str) -> Mapping[str, Step]:
    actions: dict[str, Action] = {action: action for action in ACTIONS}
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines() if line.strip()]
    return MappingProxyType({code: Step(actions[action], meaning) for code, action, meaning in rows})


STEPS: Final = _read_steps(_TABLE)
"""Every code of a migration report."""


@dataclass(frozen=True, slots=True)
class Change:
    """What happened at one place.

    `pointer` leads to the place in the source, or in the result if it was derived. `data` says where it went (`to`)
    and what else undoing needs. A change that is not `reversible` lost the old spelling, never the content.
    """

    code: str
    pointer: str
    reversible: bool = True
    data: Mapping[str, Any] | None = None

    @property
    def action(self) -> Action:
        """Return converted, derived, dropped or kept."""
        return STEPS[self.code].action

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of the report."""
        document: dict[str, Any] = {
            "code": self.code,
            "action": self.action,
            "pointer": self.pointer,
            "reversible": self.reversible,
            "message": STEPS[self.code].meaning,
        }
        if self.data:
            document["data"] = dict(self.data)
        return document

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read a change. Raises `MalformedError` with code "migration-report-invalid"."""
        if not isinstance(document, dict):
            raise invalid_report("a change is no object")
        code, pointer = document.get("code"), document.get("pointer")
        reversible, data = document.get("reversible"), document.get("data")
        if not isinstance(code, str) or code not in STEPS:
            raise invalid_report("a change has no code that is known here")
        if not isinstance(pointer, str) or type(reversible) is not bool:
            raise invalid_report("a change lacks its pointer, or does not say whether it is reversible")
        if data is not None and not isinstance(data, dict):
            raise invalid_report("the data of a change are no object")
        return cls(code, pointer, reversible, data)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration did. `source_version` and `target_version` are versions of vCon core."""

    source_version: str
    target_version: str
    changes: tuple[Change, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Say whether the result differs from the source."""
        return any(change.action != "kept" for change in self.changes)

    @property
    def is_reversible(self) -> bool:
        """Say whether `revert` gives back every value of the source."""
        return all(change.reversible for change in self.changes)

    def totals(self) -> dict[str, int]:
        """Return how often each action occurred, and how many changes are not reversible."""
        counts = Counter(change.action for change in self.changes)
        lost = sum(not change.reversible for change in self.changes)
        return {**{action: counts[action] for action in ACTIONS}, "irreversible": lost}

    def to_json(self) -> dict[str, Any]:
        """Return {"from", "to", "changed", "totals", "changes"}."""
        return {
            "from": self.source_version,
            "to": self.target_version,
            "changed": self.is_changed,
            "totals": self.totals(),
            "changes": [change.to_json() for change in self.changes],
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read a report that `to_json` made. Raises `MalformedError` with code "migration-report-invalid"."""
        if not isinstance(document, dict):
            raise invalid_report("it is no object")
        source, target, changes = (document.get(name) for name in ("from", "to", "changes"))
        if not isinstance(source, str) or not isinstance(target, str) or not isinstance(changes, list):
            raise invalid_report("it lacks from, to or changes")
        return cls(source, target, tuple(map(Change.from_json, changes)))


def invalid_report(what: str) -> MalformedError:
    """Return the error of a report that cannot be used."""
    return MalformedError(
        f"this is no migration report of the vCon: {what}",
        code="migration-report-invalid",
        hint="use the report that was written with this vCon",
    )
