"""Patches as agents log them: structured hunks, unified diffs, and the text of `apply_patch`.

    >>> parse_unified("@@ -1,2 +1,2 @@\\n a\\n-b\\n+c\\n")[0].hunks[0]
    Hunk(start=0, lines=(' a', '-b', '+c'))

Anything may stand in a patch: what is no hunk is left out, and no line number costs memory.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

MAX_LINE: Final = 2**31
"""Largest line number that is believed."""

_HUNK: Final = re.compile(r"@@ -(\d{1,10})(?:,(\d{1,10}))? \+(\d{1,10})(?:,(\d{1,10}))? @@")
_MARKS: Final = (" ", "+", "-")


class Hunk(NamedTuple):
    """Lines with their mark (space, + or -), from the 0-based line `start` of the new file on."""

    start: int
    lines: tuple[str, ...]


class FilePatch(NamedTuple):
    """The hunks of one file of a unified diff; `path` is that of the new file, None where the diff names none."""

    path: str | None
    hunks: tuple[Hunk, ...]


class Chunk(NamedTuple):
    """A place of an `apply_patch` update: lines with marks, behind `headers`, at the end of the file or anywhere."""

    headers: tuple[str, ...]
    lines: tuple[str, ...]
    is_at_end: bool


class PatchedFile(NamedTuple):
    """What an `apply_patch` does to one file. `kind` is "add", "update" or "delete"."""

    kind: str
    path: str
    move_path: str | None
    content: tuple[str, ...]
    chunks: tuple[Chunk, ...]


def parse_structured(patch: Any) -> tuple[Hunk, ...] | None:
    """Read a `structuredPatch`, a list of `{oldStart, oldLines, newStart, newLines, lines}`.

    Returns None if a hunk has another shape: then nobody knows where the lines of the others are.
    """
    if not isinstance(patch, list):
        return None
    hunks = []
    for value in patch:
        if not isinstance(value, dict):
            return None
        start, lines = value.get("newStart"), value.get("lines")
        if type(start) is not int or not 0 <= start <= MAX_LINE or not isinstance(lines, list):
            return None
        marked: list[str] = []
        for line in lines:
            if type(line) is not str or line[:1] not in (*_MARKS, "\\", "") or "\n" in line:
                return None
            if line[:1] != "\\":
                marked.append(line or " ")
        hunks.append(Hunk(max(start - 1, 0), tuple(marked)))
    return tuple(hunks)


def parse_unified(text: str) -> tuple[FilePatch, ...]:
    """Read a unified diff of one or several files. What stands before, between and behind the hunks is skipped."""
    files: list[FilePatch] = []
    path: str | None = None
    hunks: list[Hunk] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("--- ") and at < len(lines) and lines[at].startswith("+++ "):
            if hunks:
                files.append(FilePatch(path, tuple(hunks)))
                hunks = []
            path = _diff_path(lines[at][4:]) or _diff_path(line[4:])
            at += 1
            continue
        match = _HUNK.match(line) if line.startswith("@@ -") else None
        if match is None:
            continue
        old, new = int(match[2] or 1), int(match[4] or 1)
        start = int(match[3])
        index = start if new == 0 else max(start - 1, 0)
        marked: list[str] = []
        while at < len(lines) and (old > 0 or new > 0):
            line = lines[at] or " "
            if line[0] == " ":
                old, new = old - 1, new - 1
            elif line[0] == "-":
                old -= 1
            elif line[0] == "+":
                new -= 1
            elif line[0] != "\\":
                break
            if line[0] != "\\":
                marked.append(line)
            at += 1
        if index <= MAX_LINE:
            hunks.append(Hunk(index, tuple(marked)))
    if hunks:
        files.append(FilePatch(path, tuple(hunks)))
    return tuple(files)


def parse_apply_patch(text: str) -> tuple[PatchedFile, ...]:
    """Read what stands between `*** Begin Patch` and `*** End Patch`, wherever in a command that is."""
    lines = text.split("\n")
    begin = next(
        (number for number, line in enumerate(lines) if line.strip().endswith("*** Begin Patch")), None
    )
    if begin is None:
        return ()
    reader = _PatchReader()
    for line in lines[begin + 1 :]:
        if line.strip() == "*** End Patch":
            break
        reader.read(line)
    reader.end_file()
    return tuple(reader.files)


class _PatchReader:
    """Collects files and chunks line by line."""

    def __init__(self) -> None:
        self.files: list[PatchedFile] = []
        self._kind = ""
        self._path = ""
        self._move: str | None = None
        self._content: list[str] = []
        self._chunks: list[Chunk] = []
        self._headers: list[str] = []
        self._lines: list[str] = []

    def read(self, line: str) -> None:
        if line.startswith("*** "):
            self._directive(line.rstrip())
        elif self._kind == "add":
            if line.startswith("+"):
                self._content.append(line[1:])
        elif self._kind == "update":
            if line.startswith("@@"):
                if self._lines:
                    self._end_chunk(is_at_end=False)
                header = line[2:].strip()
                if header:
                    self._headers.append(header)
            elif line[:1] in _MARKS:
                self._lines.append(line)
            elif line == "":
                self._lines.append(" ")

    def _directive(self, line: str) -> None:
        for kind in ("add", "update", "delete"):
            head = f"*** {kind.capitalize()} File: "
            if line.startswith(head):
                self.end_file()
                self._kind, self._path = kind, line[len(head) :].strip()
                return
        if line.startswith("*** Move to: "):
            self._move = line[len("*** Move to: ") :].strip()
        elif line == "*** End of File":
            self._end_chunk(is_at_end=True)

    def _end_chunk(self, *, is_at_end: bool) -> None:
        if self._lines:
            self._chunks.append(Chunk(tuple(self._headers), tuple(self._lines), is_at_end))
            self._headers, self._lines = [], []

    def end_file(self) -> None:
        """Take what was read as a file."""
        self._end_chunk(is_at_end=False)
        if self._path:
            made = PatchedFile(self._kind, self._path, self._move, tuple(self._content), tuple(self._chunks))
            self.files.append(made)
        self._kind, self._path, self._move = "", "", None
        self._content, self._chunks, self._headers = [], [], []


def _diff_path(text: str) -> str | None:
    path = text.partition("\t")[0].strip()
    if path in ("", "/dev/null"):
        return None
    return path[2:] if path[:2] in ("a/", "b/") else path
