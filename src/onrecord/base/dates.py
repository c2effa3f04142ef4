"""Dates and clocks. Intervals are measured by CLOCK_BOOTTIME, which no one can set; wall time is for people."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone
from functools import cache, lru_cache
from pathlib import Path

from onrecord.base.errors import MalformedError

_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)


class Clock:
    """Wall clock and boot-time clock, in nanoseconds. Pass another one to control time in tests."""

    def now_ns(self) -> int:
        """Return nanoseconds since 1970-01-01T00:00:00Z."""
        return time.time_ns()

    def boottime_ns(self) -> int:
        """Return nanoseconds since boot, suspended time included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class ManualClock(Clock):
    """A clock that stands still until it is moved."""

    def __init__(self, now: str = "2026-11-30T10:00:00Z", *, boottime_ns: int = 1_000_000_000) -> None:
        self._now_ns = epoch_ns(parse_date(now))
        self._boottime_ns = boottime_ns

    def now_ns(self) -> int:
        """Return where the wall clock stands."""
        return self._now_ns

    def boottime_ns(self) -> int:
        """Return where the boot-time clock stands."""
        return self._boottime_ns

    def advance(self, seconds: float) -> None:
        """Move both clocks by this many seconds."""
        self._now_ns += round(seconds * 1e9)
        self._boottime_ns += round(seconds * 1e9)

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock off by this many seconds, as an operator would; boot time goes on."""
        self._now_ns += round(seconds * 1e9)


SYSTEM_CLOCK = Clock()


def utc_now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)


def boottime_ns() -> int:
    """Return CLOCK_BOOTTIME in nanoseconds."""
    return SYSTEM_CLOCK.boottime_ns()


@cache
def boot_id() -> str:
    """Return the kernel's boot id (a UUID), or the nil UUID where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "00000000-0000-0000-0000-000000000000"


_seconds: tuple[int, str] = (-1, "")


def format_ms(epoch_ns: int) -> str:
    """Return "2026-11-30T10:00:00.010Z": UTC with exactly three digits, the form of wire and journal.

    `epoch_ns` is in nanoseconds since 1970.
    """
    global _seconds  # noqa: PLW0603 - the text of the present second, kept because it is asked thousands of times
    second, rest = divmod(epoch_ns, 1_000_000_000)
    if _seconds[0] != second:
        _seconds = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
    return f"{_seconds[1]}.{rest // 1_000_000:03d}Z"


@lru_cache(8)
def seconds_text(epoch_seconds: int) -> str:
    """Return "2026-11-30T10:00:15Z", for display. The same second is asked for thousands of times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_seconds))


def format_date(moment: datetime) -> str:
    """Return the vCon form: UTC, milliseconds at most, trailing zeros of the fraction left out.

    Source: record.md D-08.
    """
    utc = moment.astimezone(UTC)
    text = utc.strftime("%Y-%m-%dT%H:%M:%S")
    millis = utc.microsecond // 1000
    return f"{text}.{millis:03d}".rstrip("0") + "Z" if millis else text + "Z"


def parse_date(text: str) -> datetime:
    """Read an RFC 3339 date-time with offset.

    Lower-case t and z are accepted here; a caller that cares reports them. Second 60 is read as 59.999999.

    Raises `MalformedError` with code "date-invalid".
    """
    match = _DATE.fullmatch(text)
    if not match:
        raise MalformedError("not an RFC 3339 date-time with offset", code="date-invalid")
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    micro = int(((match[7] or ".")[1:] + "000000")[:6])
    if second == 60:
        second, micro = 59, 999_999
    offset = UTC
    if match[9]:
        span = timedelta(hours=int(match[10]), minutes=int(match[11]))
        if int(match[10]) > 23 or int(match[11]) > 59:
            raise MalformedError("not an RFC 3339 date-time with offset", code="date-invalid")
        offset = timezone(-span if match[9] == "-" else span)
    try:
        return datetime(year, month, day, hour, minute, second, micro, tzinfo=offset)
    except ValueError:
        raise MalformedError("not a date that exists", code="date-invalid") from None


def epoch_ns(moment: datetime) -> int:
    """Return nanoseconds since 1970 of an aware datetime, exactly."""
    span = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((span.days * 86400 + span.seconds) * 1_000_000 + span.microseconds) * 1000
