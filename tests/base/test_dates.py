"""Dates and clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.dates import ManualClock, epoch_ns, format_date, format_ms, parse_date
from onrecord.base.errors import MalformedError


class TestParse:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2026-11-30T10:00:00Z", datetime(2026, 11, 30, 10, tzinfo=UTC)),
            ("2026-11-30t10:00:00.5z", datetime(2026, 11, 30, 10, 0, 0, 500_000, tzinfo=UTC)),
            ("2026-11-30T10:00:00+02:00", datetime(2026, 11, 30, 8, tzinfo=UTC)),
            ("2026-11-30T10:00:00-00:30", datetime(2026, 11, 30, 10, 30, tzinfo=UTC)),
            ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ],
    )
    def test_accepted(self, text, expected):
        """RFC 3339 date-times with any offset are read as instants."""
        assert parse_date(text) == expected

    @pytest.mark.parametrize(
        "text",
        ["", "2026-11-30", "2026-11-30T10:00:00", "2026-11-30 10:00:00Z", "2026-02-30T10:00:00Z",
         "2026-11-30T24:00:00Z", "2026-11-30T10:00:61Z", "2026-11-30T10:00:00+24:00", "2026-11-30T10:00:00+01:60",
         "٢٠٢٦-11-30T10:00:00Z", "2026-11-30T10:00:00Z\n", "Mon, 30 Nov 2026 10:00:00 GMT"],
    )  # fmt: skip
    def test_refused(self, text):
        """No offset, a blank for T, impossible days, other digits and other formats are refused."""
        with pytest.raises(MalformedError) as caught:
            parse_date(text)
        assert caught.value.code == "date-invalid"

    @given(st.text(max_size=30))
    def test_any_text(self, text):
        """Any text gives a date or our error."""
        try:
            parse_date(text)
        except MalformedError:
            pass


class TestWrite:
    @pytest.mark.parametrize(
        ("micro", "tail"),
        [(0, "00Z"), (10_000, "00.01Z"), (123_999, "00.123Z"), (999, "00Z"), (500_000, "00.5Z")],
    )
    def test_vcon_form(self, micro, tail):
        """VCon dates have UTC, milliseconds at most and no trailing zeros."""
        moment = datetime(2026, 11, 30, 11, 0, 0, micro, tzinfo=timezone(timedelta(hours=1)))
        assert format_date(moment) == "2026-11-30T10:00:" + tail

    @given(st.integers(0, 4_000_000_000_000_000_000))
    def test_wire_form(self, nanoseconds):
        """The wire form has three digits, truncates, and reads back as the same millisecond."""
        text = format_ms(nanoseconds)
        assert text[19] == "."
        assert len(text) == 24
        assert epoch_ns(parse_date(text)) == nanoseconds // 1_000_000 * 1_000_000


class TestManualClock:
    def test_step_leaves_boot_time(self):
        """Setting the wall clock does not move the boot-time clock; time passing moves both."""
        clock = ManualClock()
        before = clock.boottime_ns()
        clock.step_wall(86_400)
        assert clock.boottime_ns() == before
        clock.advance(1.5)
        assert clock.boottime_ns() == before + 1_500_000_000
        assert format_ms(clock.now_ns()) == "2026-12-01T10:00:01.500Z"
