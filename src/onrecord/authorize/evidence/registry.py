"""Evidence profiles by their name in the configuration.

Source: running.md 3 (`authority.evidence`), 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from onrecord.authorize.evidence.handle import HandleProfile
from onrecord.authorize.evidence.jws import JwsProfile
from onrecord.base.errors import ConfigurationError, KeyAccessError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onrecord.authorize.evidence.interface import EvidenceProfile, ProfileSupplies

PROFILES: Final[dict[str, type[EvidenceProfile]]] = {
    profile.short_name: profile for profile in (HandleProfile, JwsProfile)
}
"""Profiles by short name. Users may add their own."""

LATER: Final = ("passkey", "otc", "otc-soft")
"""Specified profiles that this version does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnabledProfiles:
    """The profiles of one start, best first, and those that were asked for and cannot be used.

    `disabled` maps the type of a profile whose key failed to the code of the error. A type is never replaced by
    another one silently: it is absent from hello, and the start record names it.
    """

    profiles: tuple[EvidenceProfile, ...]
    disabled: Mapping[str, str]


def enabled_profiles(names: Sequence[str], *, supplies: ProfileSupplies) -> EnabledProfiles:
    """Make the profiles of `authority.evidence`.

    Raises `ConfigurationError` with code "not-built-yet" for a specified profile that is not built yet, and
    "evidence-unknown" for any other name and for an empty list.
    """
    if not names:
        raise ConfigurationError(
            "authority.evidence is empty", code="evidence-unknown", hint=f"name one of: {', '.join(PROFILES)}"
        )
    profiles: list[EvidenceProfile] = []
    disabled: dict[str, str] = {}
    for name in dict.fromkeys(names):
        profile = PROFILES.get(name)
        if profile is None and name in LATER:
            raise ConfigurationError(
                f"the evidence type {name} is not part of this version yet",
                code="not-built-yet",
                hint='set authority.evidence = ["handle"]',
            )
        if profile is None:
            raise ConfigurationError(
                f"authority.evidence names an unknown type {name!r}",
                code="evidence-unknown",
                hint=f"known are: {', '.join(PROFILES)}",
            )
        try:
            profiles.append(profile.make(supplies))
        except KeyAccessError as error:
            disabled[profile.type] = error.code
    return EnabledProfiles(profiles=tuple(profiles), disabled=MappingProxyType(disabled))
