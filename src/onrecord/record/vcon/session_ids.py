"""Session ids (RFC 7989), in the form of an object and in that of the older versions, one String.

>>> SessionId.read("ab30317f1a784dc48ff824d0d3715d86;remote=47755a9de7794ba387653f2099600ef2").remote
'47755a9de7794ba387653f2099600ef2'
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

from onrecord.record.vcon.members import text_of

NIL_SESSION_UUID: Final = "0" * 32
"""The nil UUID in the form of session ids: the other end is not known (RFC 7989 section 5)."""

REMOTE: Final = ";remote="
"""What stands between the two ends in a String."""


class SessionId(NamedTuple):
    """What the two ends of a session call it. None is an end of which nothing is said."""

    local: str | None
    remote: str | None

    @classmethod
    def read(cls, value: Any) -> Self | None:
        """Return a SessionId Object, or a String of version 0.3.0 and before, as this type; None if it is neither.

        Source: record.md 1.3, 2.2.
        """
        if type(value) is dict:
            return cls(text_of(value.get("local")), text_of(value.get("remote")))
        if type(value) is str:
            local, separator, remote = value.partition(REMOTE)
            return cls(local, remote if separator else NIL_SESSION_UUID)
        return None


def read_session_ids(value: Any) -> tuple[SessionId | None, ...]:
    """Return the session ids of a dialog, all channels in order. None stands for a channel without one."""
    if type(value) is list:
        return tuple(found for item in value for found in (read_session_ids(item) or (None,)))
    return () if value is None else (SessionId.read(value),)
