"""Groups: the elements of an array that have the same type, the same encoding and the same members in the same order.

A record has thousands of elements and a dozen shapes. What the names of the members decide is decided once for a group,
and what their values decide can be tried as columns (see `columns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

MIN_GROUP: Final = 8
"""Elements of one shape from which on a group costs less than looking at each."""

AT_ONCE: Final = 1_000
"""Rows turned into columns at once: all of them would take as much memory again as the columns."""

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


def grouped(items: Sequence[Any]) -> Grouped:
    """Return the elements of an array in groups. What is no object with members is left out.

    One whose type or encoding is no string belongs to the rest, as do small groups.
    """
    rest: list[int] = []
    groups: list[Group] = []
    for indices in _alike(items, rest):
        if len(indices) < MIN_GROUP:
            rest += indices
        else:
            groups.append(_group(items, indices))
    rest.sort()
    return Grouped(groups, [(index, items[index]) for index in rest])


def _alike(items: Iterable[Any], rest: list[int]) -> Iterable[list[int]]:
    found: dict[tuple[Any, ...], list[int]] = {}
    for index, item in enumerate(items):
        if type(item) is not dict or not item:
            continue
        kind, encoding = item.get("type"), item.get("encoding")
        if type(kind) is not str or (encoding is not None and type(encoding) is not str):
            rest.append(index)
            continue
        key = (kind, encoding, *item)
        group = found.get(key)
        if group is None:
            found[key] = [index]
        else:
            group.append(index)
    return found.values()


def _group(items: Sequence[Any], indices: Sequence[int]) -> Group:
    first = items[indices[0]]
    columns: dict[str, list[Any]] = {name: [] for name in first}
    for start in range(0, len(indices), AT_ONCE):
        rows = [items[index].values() for index in indices[start : start + AT_ONCE]]
        for column, values in zip(columns.values(), zip(*rows, strict=True), strict=True):
            column.extend(values)
    return Group(first["type"], frozenset(first), first, indices, columns)
