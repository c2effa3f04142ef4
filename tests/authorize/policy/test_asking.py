"""What a failing server said is shown without the values of its variables (running.md 4.4)."""

import pytest

from onrecord.authorize.policy.advertised import SAID_LINE_BYTES
from onrecord.authorize.policy.asking import without_values

SECRET = "tok-3141592653589793"


@pytest.mark.parametrize("kept", [1, 4, len(SECRET) - 1])
def test_value_at_the_end_of_a_cut_line(kept):
    """A line is cut before values are looked for; the beginning of one at its end is taken out as well."""
    line = "x" * (SAID_LINE_BYTES - kept) + SECRET[:kept]
    (shown,) = without_values([line], {"T": SECRET})
    assert shown == "x" * (SAID_LINE_BYTES - kept) + "[value of T]"


def test_whole_lines():
    """In a line that was not cut, only whole values are replaced."""
    assert without_values([f"a {SECRET} b", "ends with t"], {"T": SECRET}) == (
        "a [value of T] b",
        "ends with t",
    )


def test_bytes_that_are_no_text():
    """A value that is no UTF-8 is found as the server's output shows it."""
    assert without_values(["a b\ufffdc1 d"], {"T": "b\udcffc1"}) == ("a [value of T] d",)
