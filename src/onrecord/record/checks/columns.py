"""Columns: whether a rule holds for many values at once, the same member of all objects of one shape.

    >>> sizes, instants = {"parties": 2}, Instants()
    >>> Columns(sizes, Values(sizes, instants), instants).hold("index parties", [0, 1, 1, 0])
    True

The rules of `values` say what is wrong with one value, in the interpreter's time. Nearly all values are right, and that
is found out here by the loops of the interpreter's own functions. "No" means only that the values must be asked one by
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from onrecord.base.strict_json import MAX_SAFE_INTEGER
from onrecord.record.checks.value_rules import Values
from onrecord.record.checks.values import ENUMS
from onrecord.record.vcon.instants import Instants

_STRINGS: Final = {str}
_INTEGERS: Final = {int}
_BOOLEANS: Final = {bool}
_LISTS: Final = {list}
_NUMBERS: Final = frozenset([int, float])
_PLAIN_MEDIATYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)

MAX_DISTINCT: Final = 1_000
"""Distinct values of one column that are looked at one by one: a column of media types or servers has a dozen."""


class Columns:
    """Rules for columns of one file, by the names of its `values`; `sizes` are those of its arrays."""

    def __init__(self, sizes: Mapping[str, int], values: Values, instants: Instants) -> None:
        self._sizes = sizes
        self._values = values
        self._instants = instants

    def hold(self, kind: str, values: Sequence[Any]) -> bool:
        """Say whether the rule of a kind is known to hold for every value."""
        shape, _, name = kind.partition(" ")
        if shape in _INDICES:
            return _INDICES[shape](values, self._sizes[name])
        if shape == "enum":
            return are_strings(values) and frozenset(ENUMS[name]).issuperset(values)
        if shape == "date":
            return are_strings(values) and self._instants.read_all(values)[1]
        if shape in _PLAIN:
            return _PLAIN[shape](values)
        rule = self._values.rule(kind)
        return all(problems is None for problems in map(rule, values))


def are_strings(values: Sequence[Any]) -> bool:
    """Say whether every value is a string."""
    return set(map(type, values)) == _STRINGS


def _are_identifiers(values: Sequence[Any]) -> bool:
    return are_strings(values) and "" not in values


def _are_mediatypes(values: Sequence[Any]) -> bool:
    if not are_strings(values):
        return False
    distinct = set(values)
    return len(distinct) <= MAX_DISTINCT and all(map(_PLAIN_MEDIATYPE.fullmatch, distinct))


def _are_attempts(values: Sequence[Any]) -> bool:
    return _are_integers(values) and min(values) >= 1 and max(values) <= MAX_SAFE_INTEGER


def _are_uints(values: Sequence[Any]) -> bool:
    return _are_integers(values) and min(values) >= 0 and max(values) <= MAX_SAFE_INTEGER


def _are_durations(values: Sequence[Any]) -> bool:
    return _NUMBERS.issuperset(map(type, values)) and min(values) >= 0


def _are_integers(values: Sequence[Any]) -> bool:
    return set(map(type, values)) == _INTEGERS


def _are_indices(values: Sequence[Any], size: int) -> bool:
    return _are_integers(values) and min(values) >= 0 and max(values) < size


def _are_index_lists(values: Sequence[Any], size: int) -> bool:
    """Say whether every value is a list of different indices, none of them empty."""
    if set(map(type, values)) != _LISTS or [] in values:
        return False
    items = list(chain.from_iterable(values))
    if not _are_indices(items, size):
        return False
    return len(items) == len(values) or sum(map(len, map(set, values))) == len(items)


def _are_one_or_more(values: Sequence[Any], size: int) -> bool:
    return _are_index_lists(values, size) or _are_indices(values, size)


def _are_channels(values: Sequence[Any], size: int) -> bool:
    if set(map(type, values)) != _LISTS:
        return _are_indices(values, size)
    items = list(chain.from_iterable(values))
    return not items or _are_indices(items, size)


_PLAIN: Final[Mapping[str, Callable[[Sequence[Any]], bool]]] = {
    "any": lambda _values: True,
    "attempt": _are_attempts,
    "boolean": lambda values: set(map(type, values)) == _BOOLEANS,
    "duration": _are_durations,
    "identifier": _are_identifiers,
    "mediatype": _are_mediatypes,
    "number": lambda values: _NUMBERS.issuperset(map(type, values)),
    "string": are_strings,
    "uint": _are_uints,
}
_INDICES: Final[Mapping[str, Callable[[Sequence[Any], int], bool]]] = {
    "channels": _are_channels,
    "filled": _are_index_lists,
    "index": _are_indices,
    "indices": _are_index_lists,
    "one-or-more": _are_one_or_more,
}
