"""Which lines of a new text are those of an old one. Linear but for a sort, whatever the texts are.

Lines that occur once in both texts are the anchors, in their longest common order (the patience method); the gaps
between them are looked at again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

MAX_ROUNDS: Final = 16
"""How often gaps are looked at again; what is left then counts as replaced."""


def common_runs(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int]]:
    """Return runs of equal lines as (place in old, place in new, number), in order."""
    runs = sorted(_runs(old, new))
    made: list[tuple[int, int, int]] = []
    for a, b, number in runs:
        if made and made[-1][0] + made[-1][2] == a and made[-1][1] + made[-1][2] == b:
            made[-1] = (made[-1][0], made[-1][1], made[-1][2] + number)
        else:
            made.append((a, b, number))
    return made


def _runs(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, int]]:
    gaps = [(0, len(old), 0, len(new))]
    for _ in range(MAX_ROUNDS):
        following: list[tuple[int, int, int, int]] = []
        for gap in gaps:
            a, a_end, b, b_end = gap
            while a < a_end and b < b_end and old[a] == new[b]:
                a, b = a + 1, b + 1
            if a > gap[0]:
                yield gap[0], gap[2], a - gap[0]
            while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
                a_end, b_end = a_end - 1, b_end - 1
            if a_end < gap[1]:
                yield a_end, b_end, gap[1] - a_end
            anchors = _anchors(old, new, (a, a_end, b, b_end)) if a < a_end and b < b_end else []
            for anchor_a, anchor_b in anchors:
                yield anchor_a, anchor_b, 1
                following.append((a, anchor_a, b, anchor_b))
                a, b = anchor_a + 1, anchor_b + 1
            if anchors:
                following.append((a, a_end, b, b_end))
        gaps = following


def _anchors(
    old: Sequence[bytes], new: Sequence[bytes], gap: tuple[int, int, int, int]
) -> list[tuple[int, int]]:
    """Return the longest ordered choice of lines that occur once on both sides."""
    a, a_end, b, b_end = gap
    places = _once(old, a, a_end)
    pairs = sorted((places[line], place) for line, place in _once(new, b, b_end).items() if line in places)
    tails: list[int] = []
    chosen: list[int] = []
    before = [-1] * len(pairs)
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(tails, place)
        before[number] = chosen[at - 1] if at else -1
        if at == len(tails):
            tails.append(place)
            chosen.append(number)
        else:
            tails[at], chosen[at] = place, number
    path = []
    number = chosen[-1] if chosen else -1
    while number >= 0:
        path.append(pairs[number])
        number = before[number]
    return path[::-1]


def _once(lines: Sequence[bytes], start: int, stop: int) -> dict[bytes, int]:
    places: dict[bytes, int] = {}
    for place in range(start, stop):
        line = lines[place]
        places[line] = -1 if line in places else place
    return {line: place for line, place in places.items() if place >= 0}
