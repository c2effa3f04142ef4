"""Times of logs: every form that agents write becomes one, and nonsense stays nonsense (R-14)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs import times
from onrecord.record.logs.times import Time, Times, from_file_name, from_ns, from_text_tag
from onrecord.record.vcon.instants import Instants

SECOND = 1_000_000_000
NAIVE_FIRST, NAIVE_LAST = datetime.fromisoformat("0001-01-03"), datetime.fromisoformat("9999-12-29")
AT_TEN = 1_782_900_001 * SECOND


class TestText:
    @pytest.mark.parametrize(
        ("native", "text", "note", "lost"),
        [
            ("2026-07-01T10:00:01Z", "2026-07-01T10:00:01Z", None, False),
            ("2026-07-01T10:00:01.000Z", "2026-07-01T10:00:01Z", None, False),
            ("2026-07-01T10:00:01.250000Z", "2026-07-01T10:00:01.25Z", None, False),
            ("2026-07-01T10:00:01.250+00:00", "2026-07-01T10:00:01.25Z", None, False),
            ("2026-07-01t10:00:01.25z", "2026-07-01T10:00:01.25Z", None, False),
            ("2026-07-01T12:00:01.250+02:00", "2026-07-01T10:00:01.25Z", None, True),
            ("2026-07-01T04:30:01-0530", "2026-07-01T10:00:01Z", None, True),
            ("2026-07-01T10:00:01-00:00", "2026-07-01T10:00:01Z", None, True),
            ("2026-07-01T10:00:01.1234567Z", "2026-07-01T10:00:01.123456Z", None, True),
            ("2026-07-01T10:00:01.1234560Z", "2026-07-01T10:00:01.123456Z", None, False),
            ("2026-07-01 10:00:01", "2026-07-01T10:00:01Z", "time-naive", True),
            ("2026-07-01T10:00:01.5", "2026-07-01T10:00:01.5Z", "time-naive", True),
            ("2026-12-31T23:59:60Z", "2027-01-01T00:00:00Z", None, True),
        ],
    )
    def test_forms(self, native, text, note, lost):
        """Every form becomes UTC with Z; what is lost by that, and a missing zone, is said. Twice the same."""
        reader = Times()
        for _ in range(2):
            found = reader.read(native)
            assert (found.text, found.note, found.lost) == (text, note, lost)
            assert Instants().read(text) == (found.ns - found.ns % 1000, True)

    @pytest.mark.parametrize(
        "nonsense",
        [
            None,
            "",
            "yesterday",
            "2026-02-30T10:00:00Z",
            "2026-07-01",
            "2026-07-01T24:00:00Z",
            "2026-07-01T10:60:00Z",
            "2026-07-01T10:00:61Z",
            "2026-07-01T10:00:00+24:00",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "9999-12-31T23:59:60Z",
            "2026-07-01T10:00:00Z\n",
            "٢٠٢٦-07-01T10:00:00Z",
            "2026-07-01T10:00:00." + "1" * 100_000 + "Z",
            True,
            False,
            {},
            ["2026-07-01T10:00:00Z"],
            b"2026-07-01T10:00:00Z",
        ],
    )
    def test_nonsense(self, nonsense):
        """What is no time is no time: nothing raises, and no clock is asked."""
        assert Times().read(nonsense) is None

    @settings(max_examples=50)
    @given(
        st.datetimes(NAIVE_FIRST, NAIVE_LAST),
        st.integers(-1439, 1439),
        st.sampled_from("T "),
    )
    def test_same_as_datetime(self, moment, minutes, separator):
        """Each RFC 3339 text means what Python's reader says, and the text that comes out means the same."""
        native = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
        found = Times().read(native.isoformat(sep=separator))
        since = native.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        assert found.ns == (since.days * 86_400 + since.seconds) * SECOND + since.microseconds * 1000
        assert Times().read(found.text) == Time(found.text, found.ns)
        assert "." not in found.text or not found.text.endswith("0Z")

    @settings(max_examples=50)
    @given(
        st.one_of(
            st.text(max_size=70), st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d.{0,12}", fullmatch=True)
        )
    )
    def test_any_text(self, text):
        """Any text gives a time in the normal form or none, never a traceback."""
        found = Times().read(text)
        assert found is None or Instants().read(found.text)[1]

    def test_memory_is_bounded(self, monkeypatch):
        """A log with ever new times does not fill memory."""
        monkeypatch.setattr(times, "MAX_REMEMBERED", 10)
        reader = Times()
        for minute in range(59):
            assert reader.read(f"2026-07-01T10:{minute:02d}:00.{minute:03d}Z") is not None
        assert len(reader._heads) <= 10
        assert len(reader._rests) <= 10


class TestNumbers:
    @pytest.mark.parametrize(
        ("native", "text", "lost"),
        [
            (1_782_900_001, "2026-07-01T10:00:01Z", False),
            (1_782_900_001_250, "2026-07-01T10:00:01.25Z", False),
            (1_782_900_001_250_001, "2026-07-01T10:00:01.250001Z", False),
            (1_782_900_001_250_001_000, "2026-07-01T10:00:01.250001Z", False),
            (1_782_900_001_250_001_002, "2026-07-01T10:00:01.250001Z", True),
            ("1782900001250001000", "2026-07-01T10:00:01.250001Z", False),
            (1_782_900_001.25, "2026-07-01T10:00:01.25Z", False),
            ("1782900001.123456", "2026-07-01T10:00:01.123456Z", False),
        ],
    )
    def test_magnitudes(self, native, text, lost):
        """Seconds, milliseconds, microseconds and nanoseconds are told by size, as number and as digits."""
        assert Times().read(native, is_text_format=False)[0:4:3] == (text, lost)
        noted = Times().read(native)
        assert (noted.text, noted.note, noted.lost) == (text, "time-epoch", True)

    @pytest.mark.parametrize(
        "native",
        [
            0,
            1,
            -1_782_900_001,
            99_999_999,
            10**20,
            10**400,
            float("nan"),
            float("inf"),
            -1.5,
            "9" * 5000,
            "12345",
        ],
    )
    def test_no_times(self, native):
        """Zero, counters, and numbers beyond every unit are no times."""
        assert Times().read(native, is_text_format=False) is None

    @settings(max_examples=50)
    @given(st.one_of(st.integers(), st.floats()))
    def test_any_number(self, number):
        """Any number gives a time in the normal form or none."""
        found = Times().read(number)
        assert found is None or Instants().read(found.text)[1]

    def test_years(self):
        """Nanoseconds outside of the years 1 to 9999 are no time."""
        assert from_ns(-62_135_596_800 * SECOND).text == "0001-01-01T00:00:00Z"
        assert from_ns(-62_135_596_800 * SECOND - 1) is None
        assert from_ns(253_402_300_800 * SECOND - 1).text == "9999-12-31T23:59:59.999999Z"
        assert from_ns(253_402_300_800 * SECOND) is None


class TestOtherPlaces:
    @pytest.mark.parametrize(
        ("tag", "ns", "note"),
        [
            ("Wednesday, Jul 1, 2026, 12:00 PM (UTC+2)", AT_TEN - SECOND, None),
            ("Wednesday, July 1, 2026, 10:00:01 AM (UTC)", AT_TEN, None),
            ("Jul 1, 2026, 3:30 PM (UTC+5:30)", AT_TEN - SECOND, None),
            ("Jul 1, 2026, 10:00 AM", AT_TEN - SECOND, "time-naive"),
            (" 2026-07-01T10:00:01Z\n", AT_TEN, None),
        ],
    )
    def test_tags(self, tag, ns, note):
        """A time tag in a text is read with its offset; without one it is UTC and said to be naive."""
        found = from_text_tag(tag)
        assert (found.ns, found.note) == (ns, note)

    @pytest.mark.parametrize(
        "tag",
        ["", "soon", "Jul 32, 2026, 10:00 AM", "Foo 1, 2026, 10:00 AM", "Jul 1, 2026, 13:00 PM", "x" * 10**6],
    )
    def test_no_tags(self, tag):
        """A tag that is no time gives none."""
        assert from_text_tag(tag) is None

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("rollout-2026-07-17T09-00-00-example.jsonl", "2026-07-17T09:00:00Z"),
            ("session-2026-01-05T10-22-0a1b2c3d.json", "2026-01-05T10:22:00Z"),
            ("2025-05-12T20-27-36-04-00_browser.json", "2025-05-12T20:27:36Z"),
            ("9999-99-99T99-99-99-2026-07-17T09-00-00", "2026-07-17T09:00:00Z"),
        ],
    )
    def test_file_names(self, name, text):
        """The time in a file's name is found and said to be naive."""
        found = from_file_name(name)
        assert (found.text, found.note) == (text, "time-naive")

    @pytest.mark.parametrize(
        "name", ["0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl", "2026-07-17.json", "", "-" * 10**6]
    )
    def test_names_without_time(self, name):
        """Ids and bare days are no times."""
        assert from_file_name(name) is None
