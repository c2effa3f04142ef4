"""Which format a native log is in: by its content, up to 200 records or 2 MB (native-logs.md section 3).

The first record that is decisive for a format fixes it; where the file lies breaks ties only. A file that is of no
known format stays unknown: near neighbours look alike, and a log that is read as another's tells things that did not
happen.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import BinaryIO, Final, Literal, NamedTuple

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.interface import Importer
from onrecord.record.logs.reading import sqlite
from onrecord.record.logs.reading.beginnings import first_elements, member_names
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.reading.records import Record, Unreadable
from onrecord.record.logs.reading.values import read_values

MAX_RECORDS: Final = 200
"""Records that are looked at: first lines are often bookkeeping."""

MAX_BYTES: Final = 2_000_000
"""Bytes that are looked at, from the first that is neither blank nor NUL."""

UNSUPPORTED_TABLES: Final[Mapping[frozenset[str], str]] = {
    frozenset({"blobs", "meta"}): "a chat store of Cursor (store.db)",
    frozenset({"cursorDiskKV"}): "a global store of Cursor (state.vscdb)",
    frozenset({"ItemTable"}): "a store of Visual Studio Code or Cursor (state.vscdb)",
}
"""SQLite stores that are known and not read, by tables that they have at least."""

UNSUPPORTED_MEMBERS: Final[Mapping[frozenset[str], str]] = {
    frozenset({"requests", "responderUsername"}): "a chat of Copilot in Visual Studio Code",
    frozenset({"requests", "initialLocation"}): "a chat of Copilot in Visual Studio Code",
}
"""JSON objects that are known and not read, by members that they have at least."""

Carrier = Literal["lines", "document", "values", "sqlite"]
"""How a format comes in one file, as in `Importer.carriers`."""

_BLANK = b" \t\r\n\0"
_ZIP_MAGIC = b"PK\x03\x04"
_SHOWN_NAMES = 8


class Detection(NamedTuple):
    """The format of a file and how it comes, or the code of the finding that says why there is none.

    `reason` says what decided, `hint` what to do about a file without format; neither quotes content.
    """

    format: str | None
    reason: str
    hint: str = ""
    carrier: Carrier | None = None
    code: str | None = None


def detect(file: NativeFile, importers: Sequence[type[Importer]]) -> Detection:
    """Return the format of one file among those of `importers`, which are asked in this order.

    The codes of a file without format are "empty-file", "unknown-format" and "unsupported-store".

    Raises `UsageError` with code "unreadable-file" for a file that cannot be opened, or is a damaged SQLite file.

    Source: native-logs.md section 3.
    """
    hinted = sorted(importers, key=lambda importer: not importer.hints_at(file.path))
    told = FileFindings("")
    with file.open(told) as stream:
        head, is_whole = _head(stream)
    if head.startswith(sqlite.MAGIC):
        return _of_tables(file, hinted)
    if not head and told.total("truncated-archive"):
        return _unknown("nothing of the archive can be unpacked", hint="unpack it and import what is in it")
    if not head:
        return Detection(None, "the file is empty or blank", code="empty-file")
    if head.startswith(_ZIP_MAGIC):
        return _unknown("it is a zip archive")
    return _of_text(file, head, hinted, is_whole=is_whole)


def _head(stream: BinaryIO) -> tuple[bytes, bool]:
    """Return the beginning of a text from the first byte that says something, and whether that is all of it."""
    head: bytes = b""
    while not head:
        block = stream.read(1 << 18)
        if not block:
            return b"", True
        head = block.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    head += stream.read(MAX_BYTES - len(head)) if len(head) < MAX_BYTES else b""
    return head, not stream.read(1)


def _of_tables(file: NativeFile, importers: Sequence[type[Importer]]) -> Detection:
    if file.compression is not None:
        return _unknown("it is a packed SQLite file", hint="unpack it and import it again")
    with sqlite.open_copy(file.path, follow=file.follow) as connection:
        names = sqlite.table_names(connection)
    for importer in importers:
        if importer.recognises_tables(names):
            return Detection(importer.format, "its tables", carrier="sqlite")
    for tables, store in UNSUPPORTED_TABLES.items():
        if tables <= names:
            return _unsupported(store)
    return _unknown("it is an SQLite file without the tables of a known store")


def _of_text(
    file: NativeFile, head: bytes, importers: Sequence[type[Importer]], *, is_whole: bool
) -> Detection:
    first_line, _, _ = head.partition(b"\n")
    is_one_line = len(first_line) == len(head)
    is_first_cut = is_one_line and not is_whole
    starts_with_record = not is_first_cut and any(
        isinstance(item, Record) for item in _records(io.BytesIO(first_line))
    )
    # A record on the first line means lines. Otherwise a value goes over several lines, or the first line is broken;
    # lines inside a spread-out value can look like records, so that they are asked last.
    if starts_with_record:
        found = _of_lines(head, importers, is_whole=is_whole) or _of_values(
            head, importers, is_whole=is_whole
        )
    else:
        found = _of_values(head, importers, is_whole=is_whole)
        if found is None and not is_first_cut:
            found = _of_lines(head, importers, is_whole=is_whole)
    if found is None and is_first_cut:
        found = _of_long_line(file, importers)
    if found is not None:
        return found
    names = member_names(head)
    for members, store in UNSUPPORTED_MEMBERS.items():
        if members <= names:
            return _unsupported(store)
    return _unknown(_seen(names))


def _records(stream: BinaryIO) -> Iterator[Record | Unreadable]:
    return islice(read_lines(stream, FileFindings("")), MAX_RECORDS)


def _of_lines(head: bytes, importers: Iterable[type[Importer]], *, is_whole: bool) -> Detection | None:
    text = head if is_whole else head[: head.rfind(b"\n") + 1]
    asked = [importer for importer in importers if "lines" in importer.carriers]
    return _first_decisive(_records(io.BytesIO(text)), asked, carrier="lines")


def _of_values(head: bytes, importers: Sequence[type[Importer]], *, is_whole: bool) -> Detection | None:
    """Decide by a value over several lines, or by several of them."""
    values = list(islice(read_values(io.BytesIO(head), FileFindings(""), objects=False), MAX_RECORDS))
    documents = [importer for importer in importers if "document" in importer.carriers]
    if len(values) == 1 and not (isinstance(values[0], Record) and is_whole):
        return _of_beginning(head, documents)
    asked = [importer for importer in importers if "values" in importer.carriers]
    if len(values) == 1:
        return _of_document(values, documents) or _first_decisive(values, asked, carrier="values")
    # Around a document may stand rubbish, or a second one behind it: it is a document all the same.
    return _first_decisive(values, asked, carrier="values") or _of_document(values, documents)


def _of_document(
    values: Iterable[Record | Unreadable], importers: Iterable[type[Importer]]
) -> Detection | None:
    """Decide by the first value that can be read."""
    first = next((value for value in values if isinstance(value, Record)), None)
    if first is not None:
        for importer in importers:
            if importer.recognises_document(first.value):
                return Detection(importer.format, "the whole document", carrier="document")
    return None


def _of_beginning(head: bytes, importers: Iterable[type[Importer]]) -> Detection | None:
    """Decide by the beginning of a value that is too large, or that is cut."""
    names = member_names(head)
    elements = first_elements(head)
    for importer in importers:
        if (names and importer.recognises_members(names)) or (
            elements and importer.recognises_document(elements)
        ):
            return Detection(importer.format, "the beginning of the document", carrier="document")
    return None


def _of_long_line(file: NativeFile, importers: Sequence[type[Importer]]) -> Detection | None:
    """Decide by the first record where it alone is longer than what is looked at otherwise."""
    with file.open() as stream:
        for item in islice(read_lines(stream, FileFindings("")), 1):
            if isinstance(item, Record):
                value = item.value
                for importer in importers:
                    if "lines" in importer.carriers and importer.recognises(value):
                        return Detection(importer.format, "record 1", carrier="lines")
                    if "document" in importer.carriers and importer.recognises_document(value):
                        return Detection(importer.format, "the whole document", carrier="document")
    return None


def _first_decisive(
    items: Iterable[Record | Unreadable], importers: Iterable[type[Importer]], *, carrier: Carrier
) -> Detection | None:
    asked = list(importers)
    for item in items:
        if isinstance(item, Record) and isinstance(item.value, dict):
            for importer in asked:
                if importer.recognises(item.value):
                    return Detection(importer.format, f"record {item.number}", carrier=carrier)
    return None


def _seen(names: frozenset[str]) -> str:
    """Say what was seen instead of a known format, by names of members."""
    if not names:
        return "its beginning is no JSON object of a known format"
    shown = ", ".join(sorted(name[:64] for name in names)[:_SHOWN_NAMES])
    return f"no record of a known format in its beginning; the first object has {shown}"


def _unknown(reason: str, *, hint: str = "") -> Detection:
    hint = hint or "if it is a log of a supported agent, name its format with --format"
    return Detection(None, reason, hint, code="unknown-format")


def _unsupported(store: str) -> Detection:
    return Detection(
        None,
        f"it is {store}",
        "this store is not read; give the transcripts that the program writes beside it, or an export",
        code="unsupported-store",
    )
