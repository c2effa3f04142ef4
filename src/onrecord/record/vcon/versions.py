"""Which version of vCon core a file is of, and which of them this release reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.base.errors import OnrecordError, UsageError, Where
from onrecord.record.vcon.event_types import SUPPORTED_EXTENSIONS

KNOWN: Final = ("0.0.1", "0.0.2", "0.3.0", "0.4.0", "0.5.0")
"""Syntax versions of vCon core, oldest first (record.md 1.1)."""

CHECKED: Final = frozenset(["0.5.0"])
"""The versions whose rules are checked by this release."""

ALIASES: Final = {"0.0.3": "0.3.0"}
"""Values seen in the wild that stand for a version (record.md 1.1)."""

CRITICAL_MEMBERS: Final = ("critical", "must_support")
"""Names of the list of extensions that a reader must know, newest first; each is honoured in every version."""

_OLDEST_NAMES: Final = ("mimetype", "alg", "signature")
_LISTS: Final = ("dialog", "analysis", "attachments")


class ProfileError(OnrecordError):
    """A file is of a version or form that this release does not read. Never a verdict about the file."""

    exit_code = 3


def profile_of(vcon: Mapping[str, Any], *, profile: str | None = None) -> str:
    """Return the version whose rules hold for an unsigned vCon.

    `profile` is the caller's choice and wins. Otherwise a known `vcon` value, then member names of one version only.

    Raises `UsageError` with code "profile-unknown" if `profile` is no version of vCon core.

    Source: record.md D-01.
    """
    if profile is not None:
        if profile not in KNOWN:
            raise UsageError(
                "there is no such version of vCon core",
                code="profile-unknown",
                hint=f"known versions: {', '.join(KNOWN)}",
            )
        return profile
    stated = vcon.get("vcon")
    if isinstance(stated, str):
        stated = ALIASES.get(stated, stated)
        if stated in KNOWN:
            return stated
    if any(vcon.get(name) is not None for name in ("sessions", "events", "redacted_from", "amended_from")):
        return "0.5.0"
    if "critical" in vcon or "amended" in vcon:
        return "0.4.0"
    if _has_oldest_names(vcon):
        return "0.0.1"
    if "must_support" in vcon or "appended" in vcon:
        return "0.3.0"
    return "0.4.0" if vcon.get("dialog") else "0.5.0"


def _has_oldest_names(vcon: Mapping[str, Any]) -> bool:
    for list_name in _LISTS:
        elements = vcon.get(list_name)
        if isinstance(elements, list):
            for element in elements:
                if isinstance(element, dict) and any(name in element for name in _OLDEST_NAMES):
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


def require_checked(version: str, *, file: str | None = None) -> None:
    """Refuse a version whose rules this release does not know.

    Raises `ProfileError` with code "profile-unsupported".
    """
    if version not in CHECKED:
        raise ProfileError(
            f"the file is a vCon of core version {version}; this release checks {', '.join(sorted(CHECKED))}",
            code="profile-unsupported",
            hint="pass --profile 0.5.0 to hold it to the rules of that version all the same",
            where=Where(file=file) if file is not None else None,
        )
