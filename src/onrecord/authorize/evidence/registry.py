"""Evidence profiles by their name in the configuration.

Source: running.md 3 (`authority.evidence`), 13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onrecord.authorize.evidence.handle import HandleProfile
from onrecord.base.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onrecord.authorize.evidence.interface import EvidenceProfile

PROFILES: Final[dict[str, Callable[[], EvidenceProfile]]] = {HandleProfile.short_name: HandleProfile}
"""Short name to a function that makes the profile. Users may add their own."""

LATER: Final = ("jws", "passkey", "otc", "otc-soft")
"""Specified profiles that this version does not have."""


def enabled_profiles(names: Sequence[str]) -> tuple[EvidenceProfile, ...]:
    """Return the profiles of `authority.evidence`, best first.

    Raises `ConfigurationError` with code "not-built-yet" for a specified profile that is not built yet, and
    "evidence-unknown" for any other name and for an empty list.
    """
    if not names:
        raise ConfigurationError(
            "authority.evidence is empty", code="evidence-unknown", hint=f"name one of: {', '.join(PROFILES)}"
        )
    profiles = []
    for name in dict.fromkeys(names):
        make = PROFILES.get(name)
        if make is None and name in LATER:
            raise ConfigurationError(
                f"the evidence type {name} is not part of this version yet",
                code="not-built-yet",
                hint='set authority.evidence = ["handle"]',
            )
        if make is None:
            raise ConfigurationError(
                f"authority.evidence names an unknown type {name!r}",
                code="evidence-unknown",
                hint=f"known are: {', '.join(PROFILES)}",
            )
        profiles.append(make())
    return tuple(profiles)
