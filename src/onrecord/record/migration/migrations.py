"""The migration of a vCon to the present version of vCon core.

The steps look at what stands there, not at the version: a vCon of the present version without old forms comes back
byte for byte, and so does a result that is migrated again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.record.checks.tables import ANALYSIS, ATTACHMENT, DIALOG, OBJECTS, PARTY, SESSION, VCON, Table
from onrecord.record.migration.content import convert_content, join_hash
from onrecord.record.migration.dialogs import convert_dialogs
from onrecord.record.migration.draft import CONTENT_ARRAYS, Draft, is_empty, place_of
from onrecord.record.migration.events import derive_events
from onrecord.record.migration.identity import settle_identity
from onrecord.record.migration.report import MigrationReport
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.names import VCON_ALIASES
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.versions import KNOWN, unsupported_critical

TARGET: Final = KNOWN[-1]
"""The version that is written (record.md D-02)."""

_REFERENCES: Final = ("redacted_from", "amended_from")
_OLD_REFERENCES: Final = tuple(old for old, new in VCON_ALIASES.items() if new in _REFERENCES)
_ARRAY_TABLES: Final[Mapping[str, Table]] = {
    "parties": PARTY,
    "sessions": SESSION,
    "dialog": DIALOG,
    "attachments": ATTACHMENT,
    "analysis": ANALYSIS,
}
_VERSION: Final = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){2}", re.ASCII)
_LONGEST_VERSION: Final = 32
"""Characters of a version that is not known, for instance one with the name of a draft."""

_OWN_MEMBER: Final = "onrecord"


@dataclass(frozen=True, slots=True)
class Migration:
    """The result of a migration, and what was done. An unchanged vCon is the one that was given, with its bytes."""

    vcon: Vcon
    report: MigrationReport

    def to_bytes(self) -> bytes:
        """Return the text of the result: as it was read if nothing changed, else written anew.

        Raises `MalformedError` with code "not-canonical" for lone surrogates and numbers beyond a double.
        """
        return self.vcon.to_bytes()


def migrate(
    vcon: Vcon,
    *,
    to: str = TARGET,
    new_instance: bool = False,
    domain: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Migration:
    """Make a vCon of the present version out of one of any version; the one that is given stays as it is.

    Array positions of dialogs, parties, attachments and analyses stay. What cannot be converted is kept and reported.
    `new_instance` is for a vCon that came out of a signed or encrypted file: it gets a new uuid, of version 8 if
    `domain` names one's own domain, and refers to its source by `amended_from`. Whether the signature is good is for
    the caller to find out before. Without `new_instance` the uuid stays and `updated_at` is set.

    Raises `UsageError` with code "migration-target" for a version that is not written here, and `MalformedError` with
    code "version-newer", "critical-unsupported" or "json-depth" for a vCon that nothing may be made of.

    Source: record.md 1.4, D-32.
    """
    if to != TARGET:
        raise UsageError(
            f"vCons are written in version {TARGET} only",
            code="migration-target",
            hint=f"leave the target out, or name {TARGET}",
        )
    _refuse(vcon.members)
    with paused_collection(len(vcon.raw or b"")):
        return _migrate(vcon, is_new=new_instance, domain=domain, clock=clock)


def _migrate(vcon: Vcon, *, is_new: bool, domain: str | None, clock: Clock) -> Migration:
    try:
        draft = Draft(vcon.members)
    except RecursionError:  # one that was built; what is read is not so deep
        raise MalformedError(
            "the vCon is nested too deep", code="json-depth", where=Where(pointer="")
        ) from None
    for pointer in _rounded_numbers(vcon):
        draft.note("number-rounded", pointer, reversible=False)
    rounded = len(draft.changes)
    _convert_top(draft)
    unknown = convert_dialogs(draft)
    for name in CONTENT_ARRAYS:
        for index, item in draft.objects(name):
            convert_content(draft, item, f"/{name}/{index}")
    derive_events(draft, unknown)
    changed = any(change.action != "kept" for change in draft.changes[rounded:])
    if changed:
        settle_identity(draft, is_new=is_new, domain=domain, clock=clock)
    else:
        del draft.changes[:rounded]
    for pointer in _unknown_members(draft):
        draft.note("unknown-member", pointer)
    report = MigrationReport(vcon.version, TARGET, tuple(draft.changes))
    return Migration(Vcon(draft.members) if changed else vcon, report)


def _rounded_numbers(vcon: Vcon) -> Iterator[str]:
    """Yield where numbers stand that the text spells with more than a double keeps."""
    for code, pointer in vcon.notes:
        if code == "json-number-range":
            holder, name = place_of(vcon.members, pointer)
            if type(holder[name]) is float:
                yield pointer


def _refuse(members: Mapping[str, Any]) -> None:
    """Refuse what is newer than this release, and what needs an extension that is not known here."""
    stated = members.get("vcon")
    if isinstance(stated, str) and _VERSION.fullmatch(stated) and _parts(stated) > _parts(TARGET):
        raise MalformedError(
            f"the vCon says that it is of a version after {TARGET}",
            code="version-newer",
            hint="there is nothing to upgrade here; use a release of onrecord that knows this version",
            where=Where(pointer="/vcon"),
        )
    for pointer in unsupported_critical(members):
        raise MalformedError(
            "the vCon needs an extension that is not known here, so nothing is made of it",
            code="critical-unsupported",
            hint="onrecord check FILE names the extension",
            where=Where(pointer=pointer),
        )


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _convert_top(draft: Draft) -> None:
    """Convert the members of the vCon Object: version, names, references, group."""
    members = draft.members
    if "vcon" in members:
        stated = members["vcon"]
        if _has_content(stated):
            draft.note("version-kept", "/vcon")
        else:
            del members["vcon"]
            is_told = is_empty(stated) or (isinstance(stated, str) and _VERSION.fullmatch(stated) is not None)
            draft.note(
                "version-dropped", "/vcon", reversible=is_told, **({"value": stated} if is_told else {})
            )
    for name in (*_OLD_REFERENCES, *_REFERENCES):
        value = members.get(name)
        if name in members and is_empty(value):
            draft.drop_empty(members, "", name)
        elif type(value) is dict:
            join_hash(draft, value, step(name))
    for old, new in VCON_ALIASES.items():
        draft.give_name(members, "", old=old, new=new)
    if "group" in members:
        if is_empty(members["group"]):
            draft.drop_empty(members, "", "group")
        else:
            draft.note("group-kept", "/group")


def _has_content(stated: Any) -> bool:
    """Say whether the vcon member holds more than any name of a version: some programs wrap a whole vCon in it."""
    if isinstance(stated, str):
        return len(stated) > _LONGEST_VERSION
    return isinstance(stated, dict | list) and bool(stated)


def _unknown_members(draft: Draft) -> Iterator[str]:
    """Yield where members stand that the present version does not know. Old names that stayed are told already."""
    yield from _foreign(VCON, draft.members, "")
    for name, table in (("redacted_from", OBJECTS["Redacted"]), ("amended_from", OBJECTS["Amended"])):
        value = draft.members.get(name)
        if type(value) is dict:
            yield from _foreign(table, value, step(name))
    for name, table in _ARRAY_TABLES.items():
        for index, item in draft.objects(name):
            yield from _foreign(table, item, f"/{name}/{index}")


def _foreign(table: Table, item: Mapping[str, Any], pointer: str) -> Iterator[str]:
    for name in item:
        if name not in table.kinds and name not in table.aliases and name != _OWN_MEMBER:
            yield pointer + step(name)
