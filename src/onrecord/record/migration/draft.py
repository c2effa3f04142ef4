"""The vCon while it is migrated: a copy of its members, and the list of what was done to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from onrecord.record.instances import copy_json
from onrecord.record.migration.report import Change
from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.pointers import step, tokens

CONTENT_ARRAYS: Final = ("dialog", "attachments", "analysis")
"""Arrays whose elements have content."""


class Draft:
    """A copy of a vCon's members that the steps of a migration change in place, each telling what it did."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members: dict[str, Any] = copy_json(dict(members))
        self.changes: list[Change] = []
        self.instants = Instants()

    def note(self, code: str, pointer: str, *, reversible: bool = True, **data: Any) -> None:
        """Tell what was done at a place."""
        self.changes.append(Change(code, pointer, reversible, data or None))

    def array(self, name: str) -> list[Any]:
        """Return an array of the vCon; an empty one if the member is absent or no array."""
        items = self.members.get(name)
        return items if type(items) is list else []

    def objects(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield index and element of each element of an array that is an object with members."""
        for index, item in enumerate(self.array(name)):
            if type(item) is dict and item:
                yield index, item

    def drop_empty(self, holder: dict[str, Any], pointer: str, name: str) -> None:
        """Drop a member whose value is null or empty."""
        self.note("empty-dropped", pointer + step(name), value=holder.pop(name))

    def can_append(self, name: str) -> bool:
        """Say whether a member of the vCon is an array, or can become one without a loss."""
        value = self.members.get(name)
        return type(value) is list or is_empty(value)

    def make_array(self, name: str) -> list[Any]:
        """Return an array of the vCon to append to; an empty value gives way to a new one. See `can_append`."""
        if name in self.members:
            if not is_empty(self.members[name]):
                return self.array(name)
            self.drop_empty(self.members, "", name)
        items = self.members[name] = []
        return items

    def give_name(self, holder: dict[str, Any], pointer: str, *, old: str, new: str) -> None:
        """Give the member `old`, if there is one, the name `new`, in its place."""
        if old not in holder:
            return
        if holder[old] is None:
            self.drop_empty(holder, pointer, old)
            return
        if new in holder and holder[new] is None:
            self.drop_empty(holder, pointer, new)
        place = pointer + step(old)
        if new not in holder:
            rename(holder, old, new)
            self.note("member-renamed", place, to=new)
        elif same_json(holder[old], holder[new]):
            del holder[old]
            self.note("duplicate-dropped", place, to=new)
        else:
            self.note("name-kept", place, to=new)


def is_empty(value: Any) -> bool:
    """Say whether a value is null, or an empty object, array or String. 0 and false are no empty values."""
    return value is None or (type(value) in (dict, list, str) and not value)


def place_of(members: Mapping[str, Any], pointer: str) -> tuple[Any, Any]:
    """Return the object or array that a place is in, and its name or index there.

    Raises `KeyError`, `IndexError`, `TypeError` or `ValueError` if there is no such object or array.
    """
    *steps, last = tokens(pointer)
    holder: Any = members
    for token in steps:
        holder = holder[int(token)] if type(holder) is list else holder[token]
    return holder, int(last) if type(holder) is list else last


def rename(holder: dict[str, Any], old: str, new: str) -> None:
    """Rename a member; the order of the members stays."""
    entries = [(new if name == old else name, value) for name, value in holder.items()]
    holder.clear()
    holder.update(entries)


_NUMBERS: Final = (int, float)


def same_json(one: Any, other: Any) -> bool:
    """Say whether two values are the same JSON value: 1 and 1.0 are, 1 and true are not.

    The work is bounded by the smaller of them: a large one is compared with many small ones in a hostile file.
    """
    if type(one) in _NUMBERS and type(other) in _NUMBERS:
        return bool(one == other)
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return len(one) == len(other) and all(
            name in other and same_json(value, other[name]) for name, value in one.items()
        )
    if type(one) is list:
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
