"""The progress line: on a terminal only, not for short runs, taken away before anything is printed."""

import doctest
import io

import pytest

import onrecord.cli.progress as module
from onrecord.cli.progress import Progress, size_text


class Screen(io.StringIO):
    """A terminal without a size."""

    def isatty(self):
        return True


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class TestProgress:
    def test_example(self):
        """The example in the module runs."""
        assert doctest.testmod(module).failed == 0

    def test_after_a_while(self):
        """A short run shows nothing; a longer one says files, bytes and what is next, and not too often."""
        screen, clock = Screen(), Clock()
        progress = Progress("checking", stream=screen, clock=clock)
        progress.begin("a.vcon")
        progress.end(1_500)
        assert screen.getvalue() == ""
        clock.now = 1.0
        progress.begin("b\x1b[31m.vcon")
        line = screen.getvalue()
        assert "checking: 1 file, 1.5 kB; b\\u{1b}[31m.vcon" in line
        progress.begin("c.vcon")
        assert screen.getvalue() == line
        progress.clear()
        assert screen.getvalue().endswith("\r\x1b[K")
        progress.clear()
        assert screen.getvalue().count("\r") == 2

    def test_no_terminal(self):
        """In a pipe and in a log nothing is shown."""
        stream, clock = io.StringIO(), Clock()
        progress = Progress("checking", stream=stream, clock=clock)
        clock.now = 9.0
        progress.begin("a.vcon")
        progress.clear()
        assert stream.getvalue() == ""

    def test_long_name(self):
        """The line is cut to the width of the terminal, so that it can be taken away again."""
        screen, clock = Screen(), Clock()
        progress = Progress("checking", stream=screen, clock=clock)
        clock.now = 9.0
        progress.begin("\u4e2d" * 500)
        shown = screen.getvalue().removeprefix("\r").removesuffix("\x1b[K")
        assert len(shown) < 80

    @pytest.mark.parametrize(
        ("size", "shown"),
        [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (999_949, "999.9 kB"), (10**9, "1.0 GB")],
    )
    def test_sizes(self, size, shown):
        """Sizes are in powers of ten."""
        assert size_text(size) == shown
