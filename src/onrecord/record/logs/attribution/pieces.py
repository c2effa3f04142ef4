"""The lines of a file under edits: views into texts that were logged, and runs of lines that nobody has seen.

An edit costs the same near the start and near the end, and a line number of a thousand millions costs one piece.

    >>> pieces = Pieces([Piece(None, 0, UNBOUNDED, None)])
    >>> pieces.replace(999_999_999, 0, [Piece(LineText.of(["one"]), 0, 1, "me")])
    >>> [(piece.length, piece.owner) for _, piece in pieces.run(999_999_998, 3)]
    [(1, None), (1, 'me'), (1, None)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from onrecord.record.logs.attribution.texts import LineText

_Owner = TypeVar("_Owner")

UNBOUNDED: Final = 1 << 62
"""Length of the run of lines at the end of a file whose end nobody has seen."""

MAX_CHUNK: Final = 256
"""Pieces that are looked through one by one; beyond that the chunk is divided."""


class Piece(NamedTuple, Generic[_Owner]):
    """`length` lines of `text` from line `start` on, all of one owner; without a text nobody has seen them."""

    text: LineText | None
    start: int
    length: int
    owner: _Owner | None

    def part(self, start: int, length: int) -> Piece[_Owner]:
        """Return some of the lines."""
        return Piece(self.text, self.start + start, length, self.owner)

    @property
    def data(self) -> bytes | None:
        """The lines, or None if nobody has seen them."""
        return None if self.text is None else self.text.bytes_of(self.start, self.length)

    @property
    def size(self) -> int:
        """Bytes of the lines, none if nobody has seen them."""
        return 0 if self.text is None else self.text.size_of(self.start, self.length)


class Pieces(Generic[_Owner]):
    """A sequence of pieces, addressed by line.

    The pieces lie in chunks; a binary indexed tree over the chunks' lengths finds the chunk of a line.
    """

    __slots__ = ("_chunks", "_length", "_tree")

    def __init__(self, pieces: Iterable[Piece[_Owner]] = ()) -> None:
        self._chunks: list[list[Piece[_Owner]]] = [joined([piece for piece in pieces if piece.length])]
        self._tree: list[int] = []
        self._index()

    @property
    def length(self) -> int:
        """Number of lines; at least `UNBOUNDED` where the end of the file is not known."""
        return self._length

    @property
    def number(self) -> int:
        """Number of pieces."""
        return sum(map(len, self._chunks))

    def __iter__(self) -> Iterator[Piece[_Owner]]:
        for chunk in self._chunks:
            yield from chunk

    def run(self, start: int, length: int) -> Iterator[tuple[int, Piece[_Owner]]]:
        """Yield the pieces of some lines with the number of their first line (from 0), cut to these lines."""
        stop = min(start + length, self._length)
        if start >= stop:
            return
        number, first = self._find(start)
        while number < len(self._chunks):
            for piece in self._chunks[number]:
                behind = first + piece.length
                if behind > start:
                    head = max(start - first, 0)
                    yield first + head, piece.part(head, min(behind, stop) - first - head)
                if behind >= stop:
                    return
                first = behind
            number += 1

    def replace(self, start: int, length: int, pieces: Sequence[Piece[_Owner]]) -> None:
        """Put `pieces` in the place of `length` lines from line `start` (from 0) on.

        Lines beyond the end are lines that nobody has seen.
        """
        if start + length > self._length:
            self._append(Piece(None, 0, start + length - self._length, None))
        number, first = self._find(start)
        chunk = self._chunks[number]
        at = 0
        while at < len(chunk) and first + chunk[at].length <= start:
            first += chunk[at].length
            at += 1
        left = [chunk[at].part(0, start - first)] if first < start else []
        last, end = number, at
        while length and first + self._chunks[last][end].length < start + length:
            first += self._chunks[last][end].length
            end += 1
            while end >= len(self._chunks[last]):
                last, end = last + 1, 0
        right: list[Piece[_Owner]] = []
        following = self._chunks[last]
        if end < len(following) and (length or left):
            piece = following[end]
            keep = first + piece.length - (start + length)
            right = [piece.part(piece.length - keep, keep)] if keep else []
            end += 1
        self._put(number, at, last=last, end=end, pieces=[*left, *pieces, *right])

    def _put(self, number: int, at: int, *, last: int, end: int, pieces: list[Piece[_Owner]]) -> None:
        chunk = self._chunks[number]
        if number == last:
            low, high = max(at - 1, 0), min(end + 1, len(chunk))
            old = chunk[low:high]
            new = joined([*chunk[low:at], *pieces, *chunk[end:high]])
            chunk[low:high] = new
            if chunk and len(chunk) <= MAX_CHUNK:
                self._add(number, sum(piece.length for piece in new) - sum(piece.length for piece in old))
                return
        else:
            chunk[at:] = joined([*pieces, *self._chunks[last][end : end + 1]])
            del self._chunks[last][: end + 1]
            del self._chunks[number + 1 : last]
        self._index()

    def _append(self, piece: Piece[_Owner]) -> None:
        self._chunks[-1].append(piece)
        self._add(len(self._chunks) - 1, piece.length)

    def _index(self) -> None:
        """Divide what is too long, drop what is empty, and build the tree anew."""
        chunks: list[list[Piece[_Owner]]] = []
        for chunk in self._chunks:
            if len(chunk) <= MAX_CHUNK:
                if chunk:
                    chunks.append(chunk)
                continue
            step = MAX_CHUNK // 2
            chunks.extend(chunk[place : place + step] for place in range(0, len(chunk), step))
        self._chunks = chunks or [[]]
        tree = [0] + [sum(piece.length for piece in chunk) for chunk in self._chunks]
        self._length = sum(tree)
        for number in range(1, len(tree)):
            above = number + (number & -number)
            if above < len(tree):
                tree[above] += tree[number]
        self._tree = tree

    def _add(self, number: int, lines: int) -> None:
        self._length += lines
        number += 1
        while number < len(self._tree):
            self._tree[number] += lines
            number += number & -number

    def _find(self, line: int) -> tuple[int, int]:
        """Return the chunk of a line, and the number of the chunk's first line."""
        number, first = 0, 0
        step = 1 << (len(self._tree).bit_length() - 1)
        while step:
            if number + step < len(self._tree) and first + self._tree[number + step] <= line:
                number += step
                first += self._tree[number]
            step >>= 1
        if number >= len(self._chunks):
            number = len(self._chunks) - 1
            first = self._length - sum(piece.length for piece in self._chunks[number])
        return number, first


def joined(pieces: Iterable[Piece[_Owner]]) -> list[Piece[_Owner]]:
    """Return the pieces with neighbours made one where they are one run of one text and owner."""
    made: list[Piece[_Owner]] = []
    for piece in pieces:
        if not piece.length:
            continue
        if made:
            before = made[-1]
            if before.text is piece.text and before.owner == piece.owner:
                if piece.text is None:
                    made[-1] = Piece(None, 0, before.length + piece.length, before.owner)
                    continue
                if before.start + before.length == piece.start:
                    made[-1] = Piece(piece.text, before.start, before.length + piece.length, piece.owner)
                    continue
        made.append(piece)
    return made
