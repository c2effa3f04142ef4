"""The line table: it does what a plain list would, at any line number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.attribution import pieces as module
from onrecord.record.logs.attribution.pieces import UNBOUNDED, Piece, Pieces, joined
from onrecord.record.logs.attribution.texts import LineText


def flat(pieces):
    """Return the lines of a table as (text, owner)."""
    made = []
    for piece in pieces:
        data = piece.data
        lines = [None] * piece.length if data is None else data.split(b"\n")[:-1]
        made.extend((line, piece.owner) for line in lines)
    return made


EDITS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 12),
        st.lists(st.sampled_from(["a", "b", ""]), max_size=6),
        st.sampled_from("xyz"),
    ),
    max_size=40,
)


class TestLikeAList:
    @settings(max_examples=50)
    @given(EDITS, st.integers(0, 30), st.sampled_from([2, 4, 256]))
    def test_replace(self, edits, length, chunk):
        """After any edits the table holds the lines and owners of a plain list, whatever the size of its chunks."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "MAX_CHUNK", chunk)
            plain = [(b"old", None)] * length
            table = Pieces([Piece(LineText.of(["old"] * length), 0, length, None)])
            for start, removed, lines, owner in edits:
                plain += [(None, None)] * (start + removed - len(plain))
                plain[start : start + removed] = [(line.encode(), owner) for line in lines]
                table.replace(start, removed, [Piece(LineText.of(lines), 0, len(lines), owner)])
                assert table.length == len(plain)
            assert flat(table) == plain
            for start in range(0, len(plain), 7):
                run = list(table.run(start, 5))
                assert flat(piece for _, piece in run) == plain[start : start + 5]
                assert [first for first, _ in run] == [
                    start + sum(piece.length for _, piece in run[:at]) for at in range(len(run))
                ]

    def test_unbounded(self):
        """Line numbers of any size cost one piece each, and the end stays unknown."""
        table = Pieces([Piece(None, 0, UNBOUNDED, None)])
        for line in (10**9, 2**40, 5, 10**9 + 7):
            table.replace(line, 1, [Piece(LineText.of(["x", "y"]), 0, 2, line)])
        assert table.length > UNBOUNDED
        assert table.number == 9
        assert [(first, piece.owner) for first, piece in table.run(2**40 + 2, 2)] == [(2**40 + 2, 2**40)]

    def test_neighbours_are_joined(self):
        """Lines of one text and owner that lie side by side are one piece, and so are unknown ones."""
        text = LineText.of(["a", "b", "c"])
        assert joined([Piece(text, 0, 1, "me"), Piece(text, 1, 2, "me"), Piece(text, 0, 0, "you")]) == [
            Piece(text, 0, 3, "me")
        ]
        assert joined([Piece(None, 0, 4, None), Piece(None, 7, 4, None)]) == [Piece(None, 0, 8, None)]
        assert len(joined([Piece(text, 1, 1, "me"), Piece(text, 0, 1, "me")])) == 2

    def test_empty(self):
        """An empty table is a file without lines, which can grow."""
        table = Pieces()
        assert (table.length, list(table), list(table.run(0, 9))) == (0, [], [])
        table.replace(0, 0, [Piece(LineText.of(["a"]), 0, 1, "me")])
        assert flat(table) == [(b"a", "me")]
