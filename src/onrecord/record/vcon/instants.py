"""vCon dates as instants: RFC 3339 date-times with offset, compared with nanosecond precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import Final

_HEAD: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)([Tt])(\d\d):(\d\d):", re.ASCII)
_REST: Final = re.compile(r"(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()

MAX_REMEMBERED: Final = 65_536
"""Dates kept per reader: those of a large file fit, and a hostile one cannot fill memory."""

MAX_REMEMBERED_CHARACTERS: Final = 64
"""Longest text kept: no date is half as long."""


Instant = tuple[int, bool]
"""Nanoseconds since 1970, and whether the text is in the normal form of the drafts."""

_SECONDS: Final = {f"{second:02d}": second * 1_000_000_000 for second in range(61)}


class Instants:
    """Reads the dates of one file and remembers them: most are asked for more than once."""

    def __init__(self) -> None:
        self._known: dict[str, Instant | None] = {}
        self._heads: dict[str, Instant | None] = {}
        self._rests: dict[str, Instant | None] = {}

    def read(self, text: str) -> Instant | None:
        """Return the instant of a date-time, or None if the text is not one.

        Lower-case t and z and an all-zero fraction are read and marked as not normal; second 60 is read as the
        start of the next minute. Digits beyond nanoseconds are dropped.

        Source: record.md D-08; RFC 3339; RFC 8620 section 1.4.
        """
        try:
            return self._known[text]
        except KeyError:
            pass
        instant = self._parse(text)
        _remember(self._known, text, instant)
        return instant

    def read_all(self, texts: Iterable[str]) -> tuple[list[int | None], bool]:
        """Return the nanoseconds of many date-times, None for a text that is none, and whether all are normal."""
        heads, rests = self._heads, self._rests
        found: list[int | None] = []
        are_normal = True
        for text in texts:
            head, second, rest = heads.get(text[:17]), _SECONDS.get(text[17:19]), rests.get(text[19:])
            if head is not None and second is not None and rest is not None:
                found.append(head[0] + second + rest[0])
                are_normal = are_normal and head[1] and rest[1]
                continue
            instant = self._parse(text)
            found.append(None if instant is None else instant[0])
            are_normal = are_normal and instant is not None and instant[1]
        return found, are_normal

    def _parse(self, text: str) -> Instant | None:
        second = _SECONDS.get(text[17:19])
        if second is None:
            return None
        head = self._part(self._heads, text[:17], _read_head)
        rest = self._part(self._rests, text[19:], _read_rest)
        if head is None or rest is None:
            return None
        return head[0] + second + rest[0], head[1] and rest[1]

    @staticmethod
    def _part(
        memory: dict[str, Instant | None], text: str, read: Callable[[str], Instant | None]
    ) -> Instant | None:
        try:
            return memory[text]
        except KeyError:
            pass
        part = read(text)
        _remember(memory, text, part)
        return part

    def ns(self, value: object) -> int | None:
        """Return the nanoseconds of a member value, or None if it is not a date-time."""
        if type(value) is not str:
            return None
        instant = self.read(value)
        return None if instant is None else instant[0]


def _remember(memory: dict[str, Instant | None], text: str, instant: Instant | None) -> None:
    if len(text) <= MAX_REMEMBERED_CHARACTERS:
        if len(memory) >= MAX_REMEMBERED:
            memory.clear()
        memory[text] = instant


def _read_head(text: str) -> Instant | None:
    match = _HEAD.fullmatch(text)
    if match is None:
        return None
    hour, minute = int(match[5]), int(match[6])
    if hour > 23 or minute > 59:
        return None
    try:
        day = date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    return (day * 86_400 + hour * 3_600 + minute * 60) * 1_000_000_000, match[4] == "T"


def _read_rest(text: str) -> Instant | None:
    """Read what follows the seconds: the fraction, and the offset, which is taken off."""
    match = _REST.fullmatch(text)
    if match is None:
        return None
    ns = 0
    decimals: str | None = match[1]
    if decimals is not None:
        ns = int((decimals[:9] + "000000000")[:9])
    if match[3] is not None:
        hours, minutes = int(match[4]), int(match[5])
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 3_600 + minutes * 60) * 1_000_000_000
        ns += offset if match[3] == "-" else -offset
    normal = match[2] != "z" and (decimals is None or decimals.strip("0") != "")
    return ns, normal
