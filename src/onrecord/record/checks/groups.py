"""Groups: the elements of an array that have the same type, the same encoding and the same members in the same order.

A record has thousands of elements and a dozen shapes. What the names of the members decide is decided once for a group,
and what their values decide can be tried as columns (see `columns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

MIN_GROUP: Final = 8
"""Elements of one shape from which on a group costs less than looking at each."""

Place = tuple[int, dict[str, Any]]
"""Index and object of an element."""


class Group(NamedTuple):
    """Elements of one shape. `columns` has the values of each member, in the order of `indices`."""

    type: str
    names: frozenset[str]
    first: Mapping[str, Any]
    indices: Sequence[int]
    columns: Mapping[str, Sequence[Any]]


class Grouped(NamedTuple):
    """The elements of an array: those in groups, and the rest, which must be looked at one by one."""

    groups: Sequence[Group]
    rest: Sequence[Place]


def grouped(places: Sequence[Place]) -> Grouped:
    """Return elements in groups. One whose type or encoding is no string belongs to the rest, as do small groups."""
    if len(places) < MIN_GROUP:
        return Grouped((), places)
    rest: list[Place] = []
    groups: list[Group] = []
    for members in _alike(places, rest):
        if len(members) < MIN_GROUP:
            rest += members
        else:
            groups.append(_group(members))
    rest.sort()  # an index stands once, so the elements themselves are never compared
    return Grouped(groups, rest)


def _alike(places: Iterable[Place], rest: list[Place]) -> Iterable[list[Place]]:
    found: dict[tuple[Any, ...], list[Place]] = {}
    for place in places:
        item = place[1]
        kind, encoding = item.get("type"), item.get("encoding")
        if type(kind) is not str or (encoding is not None and type(encoding) is not str):
            rest.append(place)
            continue
        key = (kind, encoding, *item)
        group = found.get(key)
        if group is None:
            found[key] = [place]
        else:
            group.append(place)
    return found.values()


def _group(places: Sequence[Place]) -> Group:
    first = places[0][1]
    values = zip(*[item.values() for _, item in places], strict=True)
    return Group(
        type=first["type"],
        names=frozenset(first),
        first=first,
        indices=[index for index, _ in places],
        columns=dict(zip(first, values, strict=True)),
    )
