"""The order of time, as the story keeps it: ties by position, and what has no date stays by its predecessor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onrecord.record.vcon.instants import Instants

BEFORE_ALL_DATES: Final = -(1 << 80)


class Timeline:
    """The instants of the elements of an array; an element without a date takes that of the one before it."""

    def __init__(self, elements: Sequence[Any], member: str, instants: Instants) -> None:
        self.ns: list[int] = []
        self.dated: list[int | None] = []
        last = BEFORE_ALL_DATES
        for element in elements:
            own = instants.ns(element.get(member)) if type(element) is dict else None
            last = last if own is None else own
            self.ns.append(last)
            self.dated.append(own)

    def took_ms(self, start: int | None, end: int) -> int | None:
        """Return the milliseconds from one element to another, or None unless both have a date."""
        first, last = None if start is None else self.dated[start], self.dated[end]
        return None if first is None or last is None else (last - first) // 1_000_000


def objects(members: Mapping[str, Any], name: str) -> list[Any]:
    """Return the elements of an array member as they are, or none where it is no array."""
    value = members.get(name)
    return value if type(value) is list else []
