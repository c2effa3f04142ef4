"""Which version of vCon core a file is of, and what a reader must know to process it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.base.errors import UsageError
from onrecord.record.vcon.event_types import SUPPORTED_EXTENSIONS

KNOWN: Final = ("0.0.1", "0.0.2", "0.3.0", "0.4.0", "0.5.0")
"""Syntax versions of vCon core, oldest first (record.md 1.1)."""

ALIASES: Final = {"0.0.3": "0.3.0"}
"""Values seen in the wild that stand for a version (record.md 1.1)."""

CRITICAL_MEMBERS: Final = ("critical", "must_support")
"""Names of the list of extensions that a reader must know, newest first; each is honoured in every version."""

_OLDEST_NAMES: Final = frozenset(["mimetype", "alg", "signature"])
_LISTS: Final = ("dialog", "analysis", "attachments")
_MARKS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("0.5.0", ("sessions", "events", "redacted_from", "amended_from")),
    ("0.4.0", ("critical", "amended")),
    ("0.0.1", ()),
    ("0.3.0", ("must_support", "appended")),
)
"""Members of the vCon that tell its version where it states none, in this order; 0.0.1 is told by `_OLDEST_NAMES`."""


def profile_of(vcon: Mapping[str, Any], *, profile: str | None = None) -> str:
    """Return the version whose rules hold for an unsigned vCon.

    `profile` is the caller's choice and wins. Otherwise a known `vcon` value, then member names of one version only.

    Raises `UsageError` with code "profile-unknown" if `profile` is no version of vCon core.

    Source: record.md D-01.
    """
    if profile is not None:
        if profile not in KNOWN:
            raise UsageError(
                f"there is no version {profile[:80]!r} of vCon core",
                code="profile-unknown",
                hint=f"known versions: {', '.join(KNOWN)}",
            )
        return profile
    stated = vcon.get("vcon")
    if isinstance(stated, str):
        stated = ALIASES.get(stated, stated)
        if stated in KNOWN:
            return stated
    for version, names in _MARKS:
        if any(vcon.get(name) is not None for name in names) or (not names and _has_oldest_names(vcon)):
            return version
    return "0.4.0" if vcon.get("dialog") else "0.5.0"


def _has_oldest_names(vcon: Mapping[str, Any]) -> bool:
    for list_name in _LISTS:
        elements = vcon.get(list_name)
        for element in elements if isinstance(elements, list) else ():
            if isinstance(element, dict) and not _OLDEST_NAMES.isdisjoint(element):
                return True
    return False


def unsupported_critical(vcon: Mapping[str, Any]) -> list[str]:
    """Return the pointers of what a vCon calls critical and this release does not know. No such vCon is processed.

    A list that is no list, or an entry that is no name, cannot be known either.

    Source: record.md 2.8.
    """
    found: list[str] = []
    for member in CRITICAL_MEMBERS:
        listed = vcon.get(member)
        if isinstance(listed, list):
            found += [
                f"/{member}/{index}"
                for index, name in enumerate(listed)
                if not isinstance(name, str) or name not in SUPPORTED_EXTENSIONS
            ]
        elif listed is not None:
            found.append(f"/{member}")
    return found
