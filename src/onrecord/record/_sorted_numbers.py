"""Numbers in order, where one can be added anywhere and the next lower one asked for at any time.

A plain sorted list moves everything behind a new number; a hostile record adds a million of them from the top down.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

_ROW: Final = 512
"""Numbers per row: a row moves within a microsecond, and a million numbers make some thousand rows."""


class SortedNumbers:
    """A set of integers, kept sorted in rows of bounded length.

    >>> numbers = SortedNumbers()
    >>> for number in (5, 1, 9):
    ...     numbers.add(number)
    >>> numbers.highest_up_to(8)
    5
    """

    __slots__ = ("_lasts", "_rows")

    def __init__(self) -> None:
        self._rows: list[list[int]] = []
        self._lasts: list[int] = []

    def add(self, number: int) -> None:
        """Add a number that is not there yet."""
        if not self._rows:
            self._rows.append([number])
            self._lasts.append(number)
            return
        place = min(bisect_left(self._lasts, number), len(self._rows) - 1)
        row = self._rows[place]
        insort(row, number)
        if len(row) > 2 * _ROW:
            self._rows.insert(place + 1, row[_ROW:])
            self._lasts.insert(place + 1, row[-1])
            del row[_ROW:]
        self._lasts[place] = row[-1]

    def highest_up_to(self, number: int) -> int | None:
        """Return the highest number that is not above the given one, or None."""
        place = bisect_left(self._lasts, number)
        if place < len(self._rows):
            row = self._rows[place]
            position = bisect_right(row, number)
            if position:
                return row[position - 1]
        return self._lasts[place - 1] if place else None
