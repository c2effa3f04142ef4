"""What can be known of a large JSON value from its beginning (native-logs.md section 3).

>>> sorted(member_names(b'{"sessionId":"s","messages":[{"type":"us'))
['messages', 'sessionId']
>>> first_elements(b'[{"id":1},{"id":2},{"id"')
[{'id': 1}, {'id': 2}]
"""

from __future__ import annotations

from typing import Any, Final

from onrecord.record.logs.reading.extents import NOT_YET, Extent, scalar_end, skip_blanks
from onrecord.record.logs.reading.parsing import parse
from onrecord.record.logs.reading.records import NotJson

MAX_NAMES: Final = 1_000
"""Most member names that are collected; no format has a hundredth of them."""

MAX_ELEMENTS: Final = 200
"""Most elements that are read."""

_NAME_BYTES: Final = 256


def member_names(data: bytes) -> frozenset[str]:
    """Return the names of the members that begin in `data`, the beginning of an object; none for anything else."""
    names: set[str] = set()
    at = skip_blanks(data, 0)
    if data[at : at + 1] != b"{":
        return frozenset()
    at = skip_blanks(data, at + 1)
    while len(names) < MAX_NAMES and data[at : at + 1] == b'"':
        end = scalar_end(data, at)
        colon = skip_blanks(data, end) if end != NOT_YET else len(data)
        if data[colon : colon + 1] != b":":
            break
        if end - at <= _NAME_BYTES:
            try:
                names.add(parse(data[at:end]).value)
            except NotJson:
                break
        end = _value_end(data, skip_blanks(data, colon + 1))
        comma = skip_blanks(data, end) if end != NOT_YET else len(data)
        if data[comma : comma + 1] != b",":
            break
        at = skip_blanks(data, comma + 1)
    return frozenset(names)


def first_elements(data: bytes) -> list[Any]:
    """Return the elements that lie wholly in `data`, the beginning of an array, up to the first that does not."""
    elements: list[Any] = []
    at = skip_blanks(data, 0)
    if data[at : at + 1] != b"[":
        return elements
    at = skip_blanks(data, at + 1)
    while len(elements) < MAX_ELEMENTS:
        end = _value_end(data, at)
        if end == NOT_YET:
            break
        try:
            elements.append(parse(data[at:end]).value)
        except NotJson:
            break
        comma = skip_blanks(data, end)
        if data[comma : comma + 1] != b",":
            break
        at = skip_blanks(data, comma + 1)
    return elements


def _value_end(data: bytes, at: int) -> int:
    if at >= len(data):
        return NOT_YET
    if data[at] in b"[{":
        return Extent().scan(data, at)
    end = scalar_end(data, at)
    return NOT_YET if end in (at, len(data)) else end
