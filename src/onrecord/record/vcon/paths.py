"""The way to a value inside of a JSON value, written out as a pointer only where something is to be said about it.

    >>> pointer_of(((None, "a/b"), 0))
    '/a~1b/0'

A walk that wrote the pointer of everything it passes would take quadratic time on a file with one very long name.
"""

from __future__ import annotations

from typing import Any, Final

from onrecord.record.vcon.pointers import step

Path = tuple[Any, str | int] | None
"""The way to a value: the way to what holds it, and its name or index there. None is the value at the top."""

MAX_CHARACTERS: Final = 4_096
"""Longest pointer written. Names come from the file; ten thousand findings below a name of a megabyte must not take
ten gigabytes."""


def pointer_of(path: Path, start: str = "") -> str:
    """Return the pointer of a value, which begins with `start`.

    Where it would be longer than `MAX_CHARACTERS`, it is that of the innermost object or array around the value whose
    pointer is short enough.
    """
    keys: list[str | int] = []
    while path is not None:
        path, key = path
        keys.append(key)
    pointer = start
    for key in reversed(keys):
        if type(key) is str and len(pointer) + len(key) >= MAX_CHARACTERS:
            break
        part = step(key)
        if len(pointer) + len(part) > MAX_CHARACTERS:
            break
        pointer += part
    return pointer
