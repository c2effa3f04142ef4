"""One changed file: which lines of it who wrote, while the edits go over it.

Source: native-logs.md F-02, F-04, F-05.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from onrecord.record.logs.attribution.differences import common_runs
from onrecord.record.logs.attribution.patches import Chunk, Hunk
from onrecord.record.logs.attribution.pieces import UNBOUNDED, Piece, Pieces
from onrecord.record.logs.attribution.texts import MAX_TEXT, LineText, Texts, is_followed

NEAR: Final = 250
"""Lines before and behind the place of a hunk in which its lines are looked for when they are not there."""


class Contributor(NamedTuple):
    """Who wrote lines: "human", "ai", "mixed" or "unknown", and the model if it is known."""

    type: str
    model_id: str | None = None

    def to_json(self) -> dict[str, str]:
        """Return the Contributor Object."""
        return (
            {"type": self.type} if self.model_id is None else {"type": self.type, "model_id": self.model_id}
        )


class ChangedFile:
    """The lines of a file and their contributors. Lines that nobody changed in this log have none."""

    __slots__ = ("_data", "_pieces", "_texts", "elsewhere", "last")

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._pieces: Pieces[Contributor] = Pieces([Piece(None, 0, UNBOUNDED, None)])
        self._data: bytes | None = None
        self.last: Contributor | None = None
        """Who changed the file last, None if nobody did."""
        self.elsewhere: list[Contributor] = []
        """Who changed the file at places that are not known."""

    @property
    def is_whole(self) -> bool:
        """Whether the number of its lines is known."""
        return self._pieces.length < UNBOUNDED // 2  # edits may have taken lines away from an unbounded run

    def forget(self) -> None:
        """Give up what is known of the lines: something changed the file, and nobody knows where."""
        self._pieces = Pieces([Piece(None, 0, UNBOUNDED, None)])
        self._data = None

    def release(self) -> None:
        """Free what only helps the next search."""
        self._data = None

    def adopt(self, text: str) -> None:
        """Take over what the log says the file holds: lines that differ from what was known have no contributor."""
        data = _ended(text.encode("utf-8", "replace"))
        if not (self.is_whole and self._is_equal(data)):
            self._write(data, None)

    def write(self, text: str, by: Contributor) -> bool:
        """Take over a text that `by` wrote: lines that it has in common with what was known keep their contributor.

        Returns whether the file is small enough to be followed; of one that is not, nothing is known behind this.
        """
        return self._write(_ended(text.encode("utf-8", "replace")), by)

    def apply(self, hunks: Sequence[Hunk], by: Contributor) -> None:
        """Apply the hunks of one edit, whose lines are numbered in the file as it is after the edit."""
        for hunk in sorted(hunks, key=lambda hunk: hunk.start):
            self._apply(hunk, by)

    def substitute(self, old: str, new: str, by: Contributor, *, every: bool) -> bool:
        """Replace a text that occurs once, or `every` one; return whether its place was found."""
        data = self._known_bytes()
        wanted, made = old.encode("utf-8", "replace"), new.encode("utf-8", "replace")
        if data is None or not wanted or not self._texts.spend(2 * len(data)):
            return False
        number = data.count(wanted)
        size = len(data) + number * (len(made) - len(wanted))
        if number == 0 or (number > 1 and not every) or size > MAX_TEXT or not self._texts.spend(size):
            return False
        if number > 1:
            return self._write(_ended(data.replace(wanted, made)), by)
        place = data.index(wanted)
        return self._write_at(data, (place, place + len(wanted)), made, by)

    def patch(self, chunks: Sequence[Chunk], by: Contributor) -> bool:
        """Apply the chunks of an `apply_patch`, found by their context; return whether all were found."""
        place = 0
        for chunk in chunks:
            data = self._known_bytes()
            if data is None:
                return False
            for header in chunk.headers:
                if not self._texts.spend(len(data) - place):
                    return False
                found = _find_header(data, header, place)
                place = place if found is None else found
            before = _joined(line[1:] for line in chunk.lines if line[0] != "+")
            found = _find_block(data, before, place, is_at_end=chunk.is_at_end)
            if not self._texts.spend(4 * len(data)) or found is None:
                return False
            after = _joined(line[1:] for line in chunk.lines if line[0] != "-")
            self._apply(Hunk(data.count(b"\n", 0, found), chunk.lines), by)
            self._data = data[:found] + after + data[found + len(before) :]
            place = found + len(after)
        return True

    def ranges(self) -> Iterator[tuple[dict[str, Any], Contributor]]:
        """Yield the Range Objects, without contributor, and who that is."""
        number = 0
        start, owner = 0, None
        digest = hashlib.sha256()
        for piece in self._pieces:
            if piece.owner != owner:
                if owner is not None:
                    yield _range(start, number, digest.hexdigest()), owner
                start, owner, digest = number, piece.owner, hashlib.sha256()
            if owner is not None:
                digest.update(piece.data or b"")
            number += piece.length
        if owner is not None:
            yield _range(start, number, digest.hexdigest()), owner

    def _is_equal(self, data: bytes) -> bool:
        place = 0
        for piece in self._pieces:
            known = piece.data
            if known is None or not data.startswith(known, place):
                return False
            place += len(known)
        return place == len(data)

    def _write(self, data: bytes, by: Contributor | None) -> bool:
        """Make `data` the lines of the file; new ones are by `by`."""
        if not is_followed(data):
            self.forget()
            return False
        text = self._texts.keep(LineText.of_data(data))
        self._data = None
        if not self.is_whole:
            self._pieces = Pieces(self._overlaid(text, by))
            return True
        known: list[bytes] = []
        for piece in self._pieces:
            lines = piece.data
            known.extend([b""] * piece.length if lines is None else lines.split(b"\n")[:-1])
        self._pieces = Pieces(self._merged(0, known, data, text, by))
        return True

    def _merged(
        self, start: int, old: Sequence[bytes], data: bytes, text: LineText, by: Contributor | None
    ) -> list[Piece[Contributor]]:
        """Return `text`, which is `data`, for the lines `old` from line `start` on: equal lines keep their owner."""
        new = data.split(b"\n")[:-1]
        made: list[Piece[Contributor]] = []
        behind = 0
        for old_at, new_at, number in common_runs(old, new):
            made.append(Piece(text, behind, new_at - behind, by))
            shift = new_at - old_at - start
            made.extend(
                Piece(text, first + shift, piece.length, piece.owner)
                for first, piece in self._pieces.run(start + old_at, number)
            )
            behind = new_at + number
        made.append(Piece(text, behind, len(new) - behind, by))
        return made

    def _overlaid(self, text: LineText, by: Contributor | None) -> Iterator[Piece[Contributor]]:
        """Yield the lines of a text over a file of which only some lines are known: those that fit keep their owner."""
        for first, piece in self._pieces.run(0, len(text)):
            data = piece.data
            is_same = data is not None and data == text.bytes_of(first, piece.length)
            yield Piece(text, first, piece.length, piece.owner if is_same else by)

    def _apply(self, hunk: Hunk, by: Contributor) -> None:
        old = [line[1:].encode("utf-8", "replace") for line in hunk.lines if line[0] != "+"]
        index = self._fitted(hunk.start, old)
        known, owners = self._known_lines(index, len(old))
        new: list[str] = []
        made: list[Contributor | None] = []
        place = 0
        for line in hunk.lines:
            if line[0] == "+":
                new.append(line[1:])
                made.append(by)
                continue
            if line[0] == " ":
                new.append(line[1:])
                made.append(owners[place] if known[place] == old[place] else None)
            place += 1
        text = self._texts.keep(LineText.of(new))
        self._data = None
        self._pieces.replace(index, len(old), [Piece(text, i, 1, owner) for i, owner in enumerate(made)])

    def _known_lines(self, start: int, number: int) -> tuple[list[bytes | None], list[Contributor | None]]:
        """Return some lines and their contributors, None for lines that nobody has seen."""
        known: list[bytes | None] = []
        owners: list[Contributor | None] = []
        for _, piece in self._pieces.run(start, number):
            data = piece.data
            known.extend([None] * piece.length if data is None else data.split(b"\n")[:-1])
            owners.extend([piece.owner] * piece.length)
        missing = number - len(known)
        return known + [None] * missing, owners + [None] * missing

    def _fitted(self, index: int, old: Sequence[bytes]) -> int:
        """Return where the lines of a hunk are, after moving what follows if others changed the file before that.

        The numbers of the hunk are right for the file as it was; if its lines stand some lines away, that many were
        added or removed in between by somebody who is not in the log.
        """
        known, _ = self._known_lines(index, len(old))
        if all(line is None or line == wanted for line, wanted in zip(known, old, strict=True)):
            return index
        start, stop = max(index - NEAR, 0), index + len(old) + NEAR
        if not self._texts.spend(sum(piece.size for _, piece in self._pieces.run(start, stop - start))):
            return index
        lines, _ = self._known_lines(start, stop - start)
        data = b"\n".join([b""] + [b"\xff" if line is None else line for line in lines] + [b""])
        block = b"\n" + b"".join(line + b"\n" for line in old)
        place = data.find(block)
        if place < 0 or data.find(block, place + 1) >= 0:
            return index
        found = start + data.count(b"\n", 0, place)
        if found < index:
            self._pieces.replace(found, 0, [Piece(None, 0, index - found, None)])
        else:
            self._pieces.replace(index, found - index, [])
        return index

    def _known_bytes(self) -> bytes | None:
        """Return the whole text, or None if lines of it are not known."""
        if self._data is None and self.is_whole:
            if not self._texts.spend(self._pieces.length + 64 * self._pieces.number):
                return None
            parts = [piece.data for piece in self._pieces]
            whole = [part for part in parts if part is not None]
            self._data = b"".join(whole) if len(whole) == len(parts) else None
        return self._data

    def _write_at(self, data: bytes, place: tuple[int, int], made: bytes, by: Contributor) -> bool:
        """Replace some bytes of the text: the lines that they touch and that become others are by `by`."""
        start = data.rfind(b"\n", 0, place[0]) + 1
        stop = place[1] if data[place[1] - 1 : place[1]] == b"\n" else data.find(b"\n", place[1]) + 1
        new = data[start : place[0]] + made + data[place[1] : stop]
        if new and not new.endswith(b"\n"):
            end = data.find(b"\n", stop) + 1
            new, stop = (new + data[stop:end], end) if end else (new + b"\n", stop)
        old_lines = data[start:stop].split(b"\n")[:-1]
        index = data.count(b"\n", 0, start)
        pieces = self._merged(index, old_lines, new, self._texts.keep(LineText.of_data(new)), by)
        self._pieces.replace(index, len(old_lines), pieces)
        self._data = data[:start] + new + data[stop:]
        return True


def _ended(data: bytes) -> bytes:
    """Return a text with a line feed behind its last line; only a line feed ends a line."""
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _joined(lines: Iterable[str]) -> bytes:
    return b"".join(line.encode("utf-8", "replace") + b"\n" for line in lines)


def _range(start: int, stop: int, digest: str) -> dict[str, Any]:
    return {"start_line": start + 1, "end_line": stop, "content_hash": digest}


def _find_header(data: bytes, header: str, place: int) -> int | None:
    """Return the place behind the next line that is `header`, white space at its sides not counted."""
    wanted = header.encode("utf-8", "replace")
    found = data.find(wanted, place)
    while found >= 0:
        start, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found)
        if data[start:end].strip() == wanted:
            return end + 1
        found = data.find(wanted, end)
    return None


def _find_block(data: bytes, block: bytes, place: int, *, is_at_end: bool) -> int | None:
    """Return where a block of whole lines begins, from `place` on, else before it."""
    if not block:
        return len(data)
    if is_at_end and data.endswith(block):
        start = len(data) - len(block)
        return start if start == 0 or data[start - 1 : start] == b"\n" else None
    if place == 0 and data.startswith(block):
        return 0
    found = data.find(b"\n" + block, max(place - 1, 0))
    if found >= 0:
        return found + 1
    return 0 if data.startswith(block) else None
