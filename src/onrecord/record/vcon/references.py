"""The reference of a vCon to the version it was made from, under whichever name it stands.

>>> redacted_from({"vcon": "0.4.0", "redacted": {"uuid": "018a8b44", "type": "PII masked"}}).type
'PII masked'

Source: record.md 1.3, 2.10, D-03.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from onrecord.record.vcon.content_view import HashToken, hashes_of
from onrecord.record.vcon.members import View, texts_of
from onrecord.record.vcon.names import VCON_ALIASES

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    name: (name, *(old for old, new in VCON_ALIASES.items() if new == name))
    for name in ("redacted_from", "amended_from", "critical")
}
"""Members of the vCon that had other names, each with all of its names, the present one first."""


@dataclass(frozen=True, slots=True)
class PriorVersion(View):
    """The version that a vCon was made from: a Redacted or an Amended Object that says something."""

    name: str = ""
    """The name under which it stands in the vCon."""

    @property
    def uuid(self) -> str | None:
        """Return the uuid of that version; None if there is none to be had."""
        return self.text("uuid")

    @property
    def type(self) -> str | None:
        """Return the kind of redaction."""
        return self.text("type")

    @property
    def url(self) -> str | None:
        """Return where that version lies, as written. It is never fetched."""
        return self.text("url")

    @property
    def hashes(self) -> tuple[HashToken, ...]:
        """Return the hashes of what lies there."""
        return hashes_of(self.members)


def redacted_from(members: Mapping[str, Any]) -> PriorVersion | None:
    """Return the less redacted version of a vCon, or None if the vCon is not redacted."""
    return _prior(members, "redacted_from")


def amended_from(members: Mapping[str, Any]) -> PriorVersion | None:
    """Return the version that a vCon was added to, or None."""
    return _prior(members, "amended_from")


def _prior(members: Mapping[str, Any], name: str) -> PriorVersion | None:
    """Return the first reference that is an object with something in it: an empty one is none."""
    for spelling in NAMES[name]:
        value = members.get(spelling)
        if type(value) is dict and value:
            return PriorVersion(0, value, spelling)
    return None


def critical(members: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the extensions that a reader must know, under both names of the list, each once."""
    return tuple(
        dict.fromkeys(name for spelling in NAMES["critical"] for name in texts_of(members.get(spelling)))
    )
