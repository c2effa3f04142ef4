"""Lines for people: wrapped within the terminal, plain in a pipe, nothing lost."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from onrecord.cli.lines import Lines

STYLES = st.sampled_from(["", "bold", "dim bold", "bold red", "cyan"])
WORDS = st.text(st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="\u3000"), max_size=30)
SEGMENTS = st.lists(st.tuples(WORDS, STYLES), max_size=5)


def printed(head, body, *, width=40, terminal=True, **options):
    out = Console(
        file=io.StringIO(), force_terminal=terminal, width=width, color_system="standard", **options
    )
    lines = Lines(out)
    lines.add(head, body)
    lines.flush()
    return out.file.getvalue()


class TestTerminal:
    @given(SEGMENTS, SEGMENTS, st.integers(2, 60))
    def test_within_the_width(self, head, body, width):
        """No line of a body is wider than the terminal, and all that is not blank is there, in order."""
        head = [(text[:1], style) for text, style in head[:2]]
        shown = Text.from_ansi(printed(head, body, width=width)).plain
        whole = "".join(text for text, _ in (*head, *body))
        assert "".join(shown.split()) == "".join(whole.split())
        if body:
            assert all(cell_len(line) <= max(width, 2) for line in shown.splitlines()[1:])

    def test_indent(self):
        """What follows stands below the beginning of the body, not of the line."""
        shown = printed([("  error   ", "bold red")], [("one two three four five six seven", "")], width=30)
        assert Text.from_ansi(shown).plain.splitlines() == [
            "  error   one two three four",
            "          five six seven",
        ]

    def test_narrow(self):
        """Where an indent would leave no room, there is none."""
        shown = Text.from_ansi(printed([("  error   ", "")], [("one two", "")], width=12)).plain
        assert shown.splitlines()[0].startswith("  error")

    def test_colours(self):
        """Styles become escapes on a terminal; with NO_COLOR the weight stays and the colour goes."""
        assert "\x1b[1;31mx\x1b[0m" in printed([("x", "bold red")], [])
        plain = printed([("x", "bold red")], [], no_color=True)
        assert "\x1b[1mx\x1b[0m" in plain


class TestPipe:
    @given(SEGMENTS, SEGMENTS)
    def test_as_it_is(self, head, body):
        """In a pipe a line is one line without escapes, however long."""
        shown = printed(head, body, terminal=False, width=10)
        assert shown == "".join(text for text, _ in (*head, *body)) + "\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_added(terminal):
    """Without lines nothing is written."""
    out = Console(file=io.StringIO(), force_terminal=terminal)
    Lines(out).flush()
    assert out.file.getvalue() == ""
