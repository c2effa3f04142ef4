"""Dates: which are read, which are normal, and that they are compared as instants."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.vcon.instants import MAX_REMEMBERED, Instants


def read(text):
    return Instants().read(text)


class TestRead:
    @pytest.mark.parametrize(
        ("text", "normal"),
        [
            ("2026-11-02T12:00:00Z", True),
            ("2026-11-02T12:00:00.5Z", True),
            ("2026-11-02T12:00:00.500Z", True),
            ("2026-11-02T12:00:00.123456789123Z", True),
            ("2026-11-02T12:00:00+01:00", True),
            ("2026-11-02T12:00:00-00:00", True),
            ("2016-12-31T23:59:60Z", True),
            ("2026-11-02t12:00:00Z", False),
            ("2026-11-02T12:00:00z", False),
            ("2026-11-02T12:00:00.000Z", False),
            ("2026-11-02T12:00:00.0+02:00", False),
        ],
    )
    def test_accepted(self, text, normal):
        """These are dates; only the last ones are not in normal form."""
        assert read(text)[1] is normal

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "2026-11-02",
            "2026-11-02T12:00:00",
            "2026-11-02 12:00:00Z",
            "Mon, 02 Nov 2026 12:50:00 +0000",
            "11/02/2026 12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "0000-01-01T00:00:00Z",
            "2026-11-02T24:00:00Z",
            "2026-11-02T12:60:00Z",
            "2026-11-02T12:00:61Z",
            "2026-11-02T12:00:00.Z",
            "2026-11-02T12:00:00+24:00",
            "2026-11-02T12:00:00+0100",
            "2026-11-02T12:00:00Z ",
            "\uff12\uff10\uff12\uff16-11-02T12:00:00Z",
            "2026-11-02T12:00:0\u0663Z",
        ],
    )
    def test_refused(self, text):
        """None of these is a date of the drafts."""
        assert read(text) is None

    def test_nanoseconds(self):
        """Two instants a nanosecond apart are different, and offsets are taken off."""
        one = read("2026-11-02T12:00:00.000000001Z")[0]
        other = read("2026-11-02T13:00:00.000000002+01:00")[0]
        assert other - one == 1

    @given(
        st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001 - zones are added below
        st.integers(-23 * 60, 23 * 60),
    )
    def test_same_as_datetime(self, moment, minutes):
        """Every date-time with an offset is the instant that the standard library says."""
        aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
        span = aware - datetime(1970, 1, 1, tzinfo=UTC)
        expected = (span.days * 86_400 + span.seconds) * 10**9 + span.microseconds * 1_000
        assert read(aware.isoformat())[0] == expected

    @given(st.text(max_size=40))
    def test_any_text(self, text):
        """Any text is a date or is not; a second look says the same."""
        instants = Instants()
        assert instants.read(text) == instants.read(text)

    @given(
        st.lists(
            st.sampled_from(
                ["2026-11-02T12:00:00Z", "2026-11-02T12:00:00.000Z", "2026-11-02t12:00:60.5-01:00"]
            )
            | st.datetimes().map(lambda moment: moment.isoformat() + "Z")
            | st.text(max_size=25)
        )
    )
    def test_many_at_once(self, texts):
        """Many dates at once are what each of them is alone, the first time and again."""
        instants = Instants()
        alone = [read(text) for text in texts]
        expected = [one and one[0] for one in alone], all(one is not None and one[1] for one in alone)
        assert instants.read_all(texts) == expected
        assert instants.read_all(texts) == expected

    def test_memory_is_bounded(self):
        """A file with a different text in each date does not fill memory."""
        instants = Instants()
        for number in range(MAX_REMEMBERED + 10):
            instants.read(str(number))
        assert len(instants._known) <= MAX_REMEMBERED
        instants.read("x" * 1_000)
        assert "x" * 1_000 not in instants._known
