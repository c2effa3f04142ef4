"""vCon dates as instants: RFC 3339 date-times with offset, compared with nanosecond precision."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

_HEAD: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)([Tt])(\d\d):(\d\d):", re.ASCII)
_TAIL: Final = re.compile(r"(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()

MAX_REMEMBERED: Final = 65_536
"""Dates kept per reader: those of a large file fit, and a hostile one cannot fill memory."""

MAX_REMEMBERED_CHARACTERS: Final = 64
"""Longest text kept: no date is half as long."""


Instant = tuple[int, bool]
"""Nanoseconds since 1970, and whether the text is in the normal form of the drafts."""

_SECONDS: Final = {f"{second:02d}": second * 1_000_000_000 for second in range(61)}
_POWERS: Final = tuple(10 ** (9 - digits) for digits in range(10))


class Instants:
    """Reads the dates of one file and remembers them: most are asked for more than once."""

    def __init__(self) -> None:
        self._known: dict[str, Instant | None] = {}
        self._heads: dict[str, Instant | None] = {}

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
        head_text = text[:17]
        try:
            head = self._heads[head_text]
        except KeyError:
            head = _read_head(head_text)
            _remember(self._heads, head_text, head)
        instant: Instant | None = None
        if head is not None:
            tail = _read_tail(text[17:])
            if tail is not None:
                instant = (head[0] + tail[0], head[1] and tail[1])
        if len(text) <= MAX_REMEMBERED_CHARACTERS:
            _remember(self._known, text, instant)
        return instant

    def ns(self, value: object) -> int | None:
        """Return the nanoseconds of a member value, or None if it is not a date-time."""
        if type(value) is not str:
            return None
        instant = self.read(value)
        return None if instant is None else instant[0]


def _remember(memory: dict[str, Instant | None], text: str, instant: Instant | None) -> None:
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


def _read_tail(text: str) -> Instant | None:
    """Read seconds, fraction and offset. The usual form, UTC with at most nine digits, goes without the expression."""
    whole = _SECONDS.get(text[:2])
    if whole is not None and text[-1:] == "Z":
        digits = text[3:-1]
        if len(text) == 3:
            return whole, True
        if text[2] == "." and len(digits) < 10 and digits.isascii() and digits.isdigit():
            fraction = int(digits)
            return whole + fraction * _POWERS[len(digits)], fraction > 0
    match = _TAIL.fullmatch(text)
    if match is None or int(match[1]) > 60:
        return None
    ns = int(match[1]) * 1_000_000_000
    decimals: str | None = match[2]
    if decimals is not None:
        ns += int((decimals[:9] + "000000000")[:9])
    if match[4] is not None:
        hours, minutes = int(match[5]), int(match[6])
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 3_600 + minutes * 60) * 1_000_000_000
        ns += offset if match[4] == "-" else -offset
    normal = match[3] != "z" and (decimals is None or decimals.strip("0") != "")
    return ns, normal
