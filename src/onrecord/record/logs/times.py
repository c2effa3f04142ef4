"""Times of native logs, in the one form that a vCon has: UTC with `Z`, six digits of a second at most.

    >>> Times().read("2026-07-01T12:00:01.250+02:00")
    Time(text='2026-07-01T10:00:01.25Z', ns=1782900001250000000, note=None, lost=True)

Source: native-logs.md R-14 and D-LOG-04.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeVar

_T = TypeVar("_T")

NAIVE: Final = "time-naive"
"""Note of a time that has no zone and was read as UTC."""

EPOCH: Final = "time-epoch"
"""Note of a number where the format otherwise has text."""

MAX_REMEMBERED: Final = 65_536
"""Parts of times kept: those of a large file fit, and a hostile one cannot fill memory."""

MAX_CHARACTERS: Final = 64
"""Longest text that is read as a time: none is half as long."""

_SECOND: Final = 1_000_000_000
_DAY: Final = 86_400 * _SECOND
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST: Final = (date.min.toordinal() - _EPOCH_DAY) * _DAY
_BEHIND_LAST: Final = (date.max.toordinal() + 1 - _EPOCH_DAY) * _DAY

_HEAD: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):", re.ASCII)
_REST: Final = re.compile(r"(?:[.,](\d+))?(?: ?(?:([Zz]|UTC)|([+-])(\d\d):?(\d\d)?))?", re.ASCII)
_DIGITS: Final = re.compile(r"\d{9,20}(?:\.\d{1,18})?", re.ASCII)
_SECONDS: Final = {f"{second:02d}": second * _SECOND for second in range(60)}

_MAGNITUDES: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3), (10**20, 1))
"""Below which number a unit is meant, and how many nanoseconds it has."""

_SMALLEST: Final = 10**8
"""Smaller numbers are no times but counters, durations or the zero of a member that nobody set."""

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TAG: Final = re.compile(
    r"(?:[A-Za-z]{3,9},? )?([A-Za-z]{3,9})\.? (\d{1,2}),? (\d{4}),?(?: at)? "
    r"(\d{1,2}):(\d\d)(?::(\d\d))?(?: ?([AaPp])\.?[Mm]\.?)?"
    r"(?: \(?(?:UTC|GMT)?(?:([+-])(\d{1,2})(?::?(\d\d))?)?\)?)?",
    re.ASCII,
)
_NAME: Final = re.compile(
    r"(?<!\d)(\d{4})-(\d\d)-(\d\d)[T_-](\d\d)[-_:.]?(\d\d)(?:[-_:.]?(\d\d))?(?!\d)", re.ASCII
)


class Time(NamedTuple):
    """A time of a log, as `text` for the vCon and as `ns`, nanoseconds since 1970.

    `note` is the finding it deserves, or None. `lost` says that the native form holds more than `text` does (an
    offset, digits, or that there was no zone) and belongs into `rest`.
    """

    text: str
    ns: int
    note: str | None = None
    lost: bool = False


_Rest = tuple[str, int, str | None, bool]
"""What follows the seconds: text, nanoseconds, note, and whether the native form holds more."""

_new: Final = tuple.__new__


class Times:
    """Reads the times of one file and remembers their parts: neighbours share the minute."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[str, int] | None] = {}
        self._rests: dict[str, _Rest | None] = {}

    def read(self, value: Any, *, is_text_format: bool = True) -> Time | None:
        """Return a native time, or None for null, `""`, booleans and everything that is no time.

        `is_text_format` says that the format writes its times as text, so that a number deserves a note. Second 60
        is read as the start of the next minute.

        Source: native-logs.md R-14.
        """
        if type(value) is str:
            if len(value) > MAX_CHARACTERS:
                return None
            second = value[17:19]
            try:
                (head, ns), (rest, fraction, note, lost) = self._heads[value[:17]], self._rests[value[19:]]  # type: ignore[misc]
                ns += _SECONDS[second] + fraction
            except (KeyError, TypeError):
                return self._parse(value, is_text_format=is_text_format)
            return _new(Time, (head + second + rest, ns, note, lost))
        if type(value) is int or type(value) is float:
            return _from_number(value, is_text_format=is_text_format)
        return None

    def _parse(self, value: str, *, is_text_format: bool) -> Time | None:
        head = _remembered(self._heads, value[:17], _read_head)
        if head is None:
            return _from_number(value, is_text_format=is_text_format) if _DIGITS.fullmatch(value) else None
        found = _read_rest(value[19:])
        second = 60 * _SECOND if value[17:19] == "60" else _SECONDS.get(value[17:19])
        if found is None or second is None:
            return None
        rest, offset = found
        if offset == 0:
            _remembered(self._rests, value[19:], lambda _: rest)
        return from_ns(
            head[1] + second + rest[1] - offset, note=rest[2], lost=rest[3] or value[17:19] == "60"
        )


def _remembered(memory: dict[str, _T], text: str, read: Callable[[str], _T]) -> _T:
    try:
        return memory[text]
    except KeyError:
        if len(memory) >= MAX_REMEMBERED:
            memory.clear()
        part = memory[text] = read(text)
        return part


def from_ns(ns: int, *, note: str | None = None, lost: bool = False) -> Time | None:
    """Return the time of nanoseconds since 1970, or None outside the years 1 to 9999.

    Digits beyond microseconds count as lost.
    """
    if not _FIRST <= ns < _BEHIND_LAST:
        return None
    days, rest = divmod(ns, _DAY)
    second, fraction = divmod(rest, _SECOND)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    text = f"{date.fromordinal(_EPOCH_DAY + days).isoformat()}T{hour:02d}:{minute:02d}:{second:02d}"
    return Time(f"{text}{_fraction(fraction)}Z", ns, note, lost or fraction % 1000 != 0)


def from_text_tag(text: str) -> Time | None:
    """Return the time that a tag in a text says, as in "Wednesday, Jul 1, 2026, 10:00 AM (UTC+2)".

    Source: native-logs.md 4.6 and D-LOG-04.
    """
    text = text[: 2 * MAX_CHARACTERS].strip()
    match = _TAG.fullmatch(text)
    if match is None:
        return Times().read(text)
    month = match[1][:3].lower()
    hour, minute, second = int(match[4]), int(match[5]), int(match[6] or 0)
    if match[7]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[7] in "Pp" else 0)
    if month not in _MONTHS or hour > 23 or minute > 59 or second > 59:
        return None
    days = _days(int(match[3]), _MONTHS.index(month) + 1, int(match[2]))
    if days is None:
        return None
    offset = 0
    if match[8]:
        hours, minutes = int(match[9]), int(match[10] or 0)
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 60 + minutes) * (-60 if match[8] == "-" else 60)
    has_zone = match[8] is not None or "UTC" in text or "GMT" in text
    ns = days * _DAY + (hour * 3600 + minute * 60 + second - offset) * _SECOND
    return from_ns(ns, note=None if has_zone else NAIVE, lost=True)


def from_file_name(name: str) -> Time | None:
    """Return the time in a file's name, as in "rollout-2026-07-17T09-00-00-….jsonl", read as UTC.

    Agents write local time there, so the note is "time-naive".

    Source: native-logs.md D-LOG-04.
    """
    for match in _NAME.finditer(name[:1024]):
        days = _days(int(match[1]), int(match[2]), int(match[3]))
        hour, minute, second = int(match[4]), int(match[5]), int(match[6] or 0)
        if days is not None and hour <= 23 and minute <= 59 and second <= 59:
            ns = days * _DAY + (hour * 3600 + minute * 60 + second) * _SECOND
            return from_ns(ns, note=NAIVE, lost=True)
    return None


def _from_number(value: float | str, *, is_text_format: bool) -> Time | None:
    """Read a number by its magnitude: seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if not isinstance(value, str) and not _SMALLEST <= value < 10**20:
        return None
    number = Decimal(str(value))
    if not _SMALLEST <= number < 10**20:
        return None
    factor = next(factor for limit, factor in _MAGNITUDES if number < limit)
    exact = number * factor
    ns = int(exact)
    return from_ns(ns, note=EPOCH if is_text_format else None, lost=is_text_format or ns != exact)


def _days(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def _fraction(ns: int) -> str:
    micros = ns // 1000
    return f".{micros:06d}".rstrip("0") if micros else ""


def _read_head(text: str) -> tuple[str, int] | None:
    """Read date, hour and minute."""
    match = _HEAD.fullmatch(text)
    if match is None:
        return None
    hour, minute = int(match[4]), int(match[5])
    days = _days(int(match[1]), int(match[2]), int(match[3]))
    if days is None or hour > 23 or minute > 59:
        return None
    return f"{text[:10]}T{text[11:]}", days * _DAY + (hour * 60 + minute) * 60 * _SECOND


def _read_rest(text: str) -> tuple[_Rest, int] | None:
    """Read the fraction and the zone; return also the nanoseconds of the offset."""
    match = _REST.fullmatch(text)
    if match is None:
        return None
    decimals: str = match[1] or ""
    ns = int((decimals[:9] + "000000000")[:9])
    offset = 0
    if match[3]:
        hours, minutes = int(match[4]), int(match[5] or 0)
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 60 + minutes) * (-60 if match[3] == "-" else 60) * _SECOND
    note = None if match[2] or match[3] else NAIVE
    lost = note is not None or match[3] == "-" or offset != 0 or decimals[6:].strip("0") != ""
    return (f"{_fraction(ns)}Z", ns, note, lost), offset
