"""Reading members: an index, indices, a text, a number, or nothing where the value is of another type.

What a file holds is judged by the checks; here a member of the wrong type is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any


def index_of(value: Any) -> int | None:
    """Return a member that is read as an index, or None."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None


def indices_of(value: Any) -> tuple[int, ...]:
    """Return the indices of a member that is one index or nested arrays of them, in order."""
    if type(value) is not list:
        index = index_of(value)
        return () if index is None else (index,)
    found: list[int] = []
    levels = [iter(value)]
    while levels:  # no recursion: each level would copy all that is below it
        for item in levels[-1]:
            if type(item) is list:
                levels.append(iter(item))
                break
            index = index_of(item)
            if index is not None:
                found.append(index)
        else:
            levels.pop()
    return tuple(found)


def text_of(value: Any) -> str | None:
    """Return a member that is a String, or None."""
    return value if type(value) is str else None


def texts_of(value: Any) -> tuple[str, ...]:
    """Return the Strings of an array; () if it is none."""
    return tuple(item for item in value if type(item) is str) if type(value) is list else ()


def objects_of(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of an array with their positions; what is no object counts, and is left out."""
    if type(value) is not list:
        return []
    return [(position, item) for position, item in enumerate(value) if type(item) is dict]


@dataclass(frozen=True, slots=True)
class View:
    """An object of a vCon: its index in the array that holds it, and its members as parsed.

    An object that is in no array has index 0.
    """

    index: int
    members: Mapping[str, Any] = field(repr=False)

    @property
    def is_placeholder(self) -> bool:
        """Say whether redaction left nothing of it."""
        return not self.members

    def has(self, name: str) -> bool:
        """Say whether a member is there. One that is null is absent (record.md D-09)."""
        return self.members.get(name) is not None

    def is_withheld(self, name: str) -> bool:
        """Say whether a member is there as null, which says of input, output and content that they were taken out.

        Source: record.md D-20, D-71.
        """
        return name in self.members and self.members[name] is None

    def text(self, name: str) -> str | None:
        """Return a String member, or None."""
        return text_of(self.members.get(name))

    def number(self, name: str) -> int | float | None:
        """Return a member that is a finite number and not negative, or None."""
        value = self.members.get(name)
        if type(value) is int or (type(value) is float and isfinite(value)):
            return value if value >= 0 else None
        return None

    def place(self, name: str) -> int | None:
        """Return a member that is an index into an array, or None.

        A negative one is none, so that it never counts from the end of a list in Python. Whether the array is long
        enough, only the checks say.
        """
        index = index_of(self.members.get(name))
        return index if index is not None and index >= 0 else None

    def places(self, name: str) -> tuple[int, ...]:
        """Return a member that is one index or nested arrays of them, in order; negative ones are left out."""
        return tuple(index for index in indices_of(self.members.get(name)) if index >= 0)

    def inner(self, name: str) -> dict[str, Any] | None:
        """Return a member that is an object, or None."""
        value = self.members.get(name)
        return value if type(value) is dict else None
