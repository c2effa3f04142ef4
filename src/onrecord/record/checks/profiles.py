"""The rules of each version of vCon core, as data: the tables of the newest one, and what older ones say otherwise.

    >>> rules_of("0.3.0").tables["Dialog"].levels["text"]["start"]
    'M'

A later version is a change of the data here and in the tables: its number, the life of its names, and in the
difference of the version before it what that one says otherwise.

Source: record.md 1.1 to 1.3, D-03 to D-05.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, NamedTuple

from onrecord.base.findings import Severity
from onrecord.record.checks.event_tables import EVENT
from onrecord.record.checks.tables import (
    ANALYSIS,
    ATTACHMENT,
    DIALOG,
    OBJECTS,
    PARTY,
    SESSION,
    VCON,
    Table,
    read_table,
)
from onrecord.record.vcon.versions import KNOWN


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules of one version: its tables by name, and the severities that differ from the catalogue's.

    A severity of None means that the version has no such finding.
    """

    version: str
    tables: Mapping[str, Table]
    severities: Mapping[str, Severity | None]


class Life(NamedTuple):
    """The versions in which a member of a table has this name. `last` is None while the name is in use."""

    table: str
    name: str
    first: str
    last: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What a version, and every older one, says otherwise than the next newer one.

    `levels` and `kinds` are by table and member. `members` is the text of members that newer versions do not have.
    """

    version: str
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)
    severities: Mapping[str, Severity | None] = field(default_factory=dict)


class History(NamedTuple):
    """Everything that tells the versions apart. `tables` are those of the newest, `versions` begin with the oldest."""

    versions: Sequence[str]
    tables: Mapping[str, Table]
    lives: Sequence[Life]
    differences: Sequence[Difference]


def read_lives(text: str) -> tuple[Life, ...]:
    """Read lives of names: tables, name, first version, and last version if there was one."""
    lives: list[Life] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        tables, name, first, last = (part.strip() for part in line.split("|"))
        lives += [Life(table, name, first, last or None) for table in tables.split()]
    return tuple(lives)


LIVES: Final = read_lives(
    """
    vCon          | must_support    | 0.0.1 | 0.3.0
    vCon          | critical        | 0.4.0 |
    vCon          | appended        | 0.0.1 | 0.3.0
    vCon          | amended         | 0.4.0 | 0.4.0
    vCon          | amended_from    | 0.5.0 |
    vCon          | redacted        | 0.0.1 | 0.4.0
    vCon          | redacted_from   | 0.5.0 |
    vCon          | sessions        | 0.5.0 |
    vCon          | events          | 0.5.0 |
    Dialog        | transfer-target | 0.0.1 | 0.0.2
    Dialog        | transfer_target | 0.3.0 |
    Dialog        | target-dialog   | 0.0.1 | 0.0.2
    Dialog        | target_dialog   | 0.3.0 |
    Party_History | dtmf            | 0.0.1 | 0.4.0
    Dialog Attachment Analysis                  | mimetype     | 0.0.1 | 0.0.1
    Dialog Attachment Analysis                  | mediatype    | 0.0.2 |
    Dialog Attachment Analysis Redacted Amended | alg          | 0.0.1 | 0.0.1
    Dialog Attachment Analysis Redacted Amended | signature    | 0.0.1 | 0.0.1
    Dialog Attachment Analysis Redacted Amended | content_hash | 0.0.2 |
    """
)
"""Names that not every version has (record.md 1.3). Events came with 0.5.0, so their members have no history."""

_INLINE: Final = """
    body      | any       | O
    encoding  | string    | O
    mediatype | mediatype | O
    filename  | string    | O
"""
_TRANSFER_KINDS: Final = {
    **dict.fromkeys(("transferee", "transferor", "transfer_target"), "known-or-not parties"),
    **dict.fromkeys(("original", "target_dialog", "consultation"), "known-or-not dialog"),
}
DIFFERENCES: Final = (
    Difference("0.5.0", severities={"version-missing": None}),
    Difference(
        "0.4.0",
        kinds={"Dialog": _TRANSFER_KINDS},
        severities={"session-required": "info", "dialog-unreferenced": None},
    ),
    Difference(
        "0.3.0",
        levels={"Dialog": {"start": "M"}, "Attachment": {"dialog": "S"}},
        kinds={"Dialog": {"session_id": "session-ids-or-texts"}, "Party_History": {"event": "string"}},
        members={"Redacted": _INLINE, "Amended": _INLINE},
        severities={
            "created-at-missing": "info",
            "redacted-empty": "info",
            "version-missing": "error",
            "version-member-present": None,
            "group-present": None,
            "json-body-string": None,
            "session-id-shape": None,
        },
    ),
    Difference("0.0.1", severities={"hash-without-url": None}),
)
"""What the versions say otherwise, newest first (record.md D-04, D-05, D-15; the brackets of section 6).

Up to 0.3.0 a reference might hold the other vCon inline, `group` held vCons, JSON stood in a string, a session id was
one String, and `vcon` named the version. In 0.0.1 `alg` and `signature` might also belong to inline content."""

TABLES: Final[Mapping[str, Table]] = {
    table.name: table
    for table in (VCON, PARTY, SESSION, DIALOG, ATTACHMENT, ANALYSIS, EVENT, *OBJECTS.values())
}
"""The tables of the newest version, by name."""

HISTORY: Final = History(KNOWN, TABLES, LIVES, DIFFERENCES)
"""The versions of vCon core as they are known today."""


@cache
def rules_of(version: str) -> Profile:
    """Return the profile of a version of vCon core."""
    return make_profile(version, HISTORY)


def newest() -> Profile:
    """Return the profile that this package writes (record.md D-02)."""
    return rules_of(KNOWN[-1])


def make_profile(version: str, history: History) -> Profile:
    """Return the profile of a version: the newest tables, changed step by step down to it."""
    order = {name: number for number, name in enumerate(history.versions)}
    severities: dict[str, Severity | None] = {}
    tables = dict(history.tables)
    for difference in history.differences:
        if order[difference.version] < order[version]:
            break
        severities.update(difference.severities)
        for name in {**difference.members, **difference.kinds, **difference.levels}:
            tables[name] = _changed(tables[name], difference)
    for name in {life.table for life in history.lives}:
        lives = [life for life in history.lives if life.table == name]
        tables[name] = _named(tables[name], lives, order, version)
    return Profile(version, tables, severities)


def _changed(table: Table, difference: Difference) -> Table:
    """Return a table with what a version says otherwise. What must not be there stays so."""
    more = read_table(table.name, difference.members.get(table.name, ""))
    other_levels = difference.levels.get(table.name, {})
    return replace(
        table,
        kinds={**table.kinds, **more.kinds, **difference.kinds.get(table.name, {})},
        levels={
            variant: {
                **{
                    name: letter if letter == "X" else other_levels.get(name, letter)
                    for name, letter in column.items()
                },
                **more.levels[""],
            }
            for variant, column in table.levels.items()
        },
    )


def _named(table: Table, lives: Sequence[Life], order: Mapping[str, int], version: str) -> Table:
    """Return a table that knows which names are of this version, which are older, and which came later."""
    own: dict[str, list[str]] = {}
    others: list[tuple[Life, str]] = []
    for life in lives:
        code = _remark(life, order, version)
        if code is None:
            own.setdefault(table.aliases.get(life.name, life.name), []).append(life.name)
        else:
            others.append((life, code))
    spelled = {member: ", ".join(names) for member, names in own.items()}
    remarks: dict[str, tuple[str, dict[str, Any]]] = {}
    for life, code in others:
        member = table.aliases.get(life.name, life.name)
        new = spelled.get(member, member)
        if new != life.name:
            data = {"old": life.name, "new": new}
        else:
            data = {"since": life.first} if code == "future-name" else {"until": str(life.last)}
        remarks[life.name] = code, data
    return replace(table, remarks=remarks, spelled=spelled)


def _remark(life: Life, order: Mapping[str, int], version: str) -> str | None:
    if order[version] < order[life.first]:
        return "future-name"
    return "legacy-name" if life.last is not None and order[version] > order[life.last] else None
