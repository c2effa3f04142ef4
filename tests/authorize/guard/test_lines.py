"""Lines out of a byte stream."""

from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.guard.lines import HEAD_BYTES, LineBuffer, Overlong


@given(st.binary(max_size=400), st.lists(st.integers(1, 40), max_size=60), st.integers(4, 60))
def test_any_cutting_gives_the_same_lines(data, sizes, limit):
    """However the bytes arrive, the same lines come out, and lines at or over the limit only as their size."""
    expected = []
    pieces = data.split(b"\n")
    for index, piece in enumerate(pieces):
        is_last = index == len(pieces) - 1
        if not is_last or piece:
            expected.append(len(piece) if len(piece) >= limit else piece)
    buffer = LineBuffer(limit)
    found = []
    position = 0
    for size in [*sizes, len(data) + 1]:
        found += buffer.feed(data[position : position + size])
        position += size
    last = buffer.end()
    if last is not None:
        found.append(last)
    assert [one.size_bytes if isinstance(one, Overlong) else one for one in found] == expected


def test_a_line_that_never_ends_takes_no_memory():
    """Of a line over the limit only the first bytes are kept."""
    buffer = LineBuffer(1000)
    for _ in range(1000):
        assert buffer.feed(b"x" * 1000) == []
    (line,) = buffer.feed(b"\n")
    assert line.size_bytes == 1_000_000
    assert len(line.head) <= HEAD_BYTES


def test_the_limit_counts_the_line_feed():
    """A line of limit bytes with its LF passes, one more does not."""
    assert LineBuffer(10).feed(b"123456789\n") == [b"123456789"]
    assert isinstance(LineBuffer(10).feed(b"1234567890\n")[0], Overlong)


def test_the_next_line_is_read_after_a_long_one():
    """A line over the limit does not end the connection."""
    lines = LineBuffer(10).feed(b"x" * 50 + b"\nshort\n")
    assert isinstance(lines[0], Overlong)
    assert lines[1] == b"short"
