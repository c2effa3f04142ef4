"""Proof that no text of a log got lost: each longer string of what was imported is looked for in the vCons.

The log is read again, apart from the importer: what that has overlooked is found here. A string counts as found when
it stands in the vCon as it is; as a time in its normal form; as the JSON text whose strings are all there; in pieces,
where a harness's own text was cut out of a message; or as its SHA-256, where a decision says so.

Source: native-logs.md A-05.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from onrecord.record.credentials import replace as replace_credentials
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.folders import files_of
from onrecord.record.logs.interface import Importer
from onrecord.record.logs.reading import sqlite
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.parsing import parse
from onrecord.record.logs.reading.records import NotJson, Record, Unreadable
from onrecord.record.logs.reading.values import read_values
from onrecord.record.logs.times import Times

if TYPE_CHECKING:
    from onrecord.record.logs.trace import Trace

MIN_CHARACTERS: Final = 8
"""Shorter strings are not looked for: they would be found anywhere."""

KINDS: Final = frozenset(["finish_reason", "key", "kind", "role", "status", "subtype", "type"])
"""Members whose words say what a thing is: in a vCon that is told by the member that it became."""

_WORD: Final = re.compile(r"[/.]")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,63}")
_MAX_DEPTH: Final = 8
_PIECES: Final = re.compile(r"</?[A-Za-z][^<>\n]*>|[\r\n]+")
_DATA_URL: Final = re.compile(r"data:[^,]{0,200},")


class Texts:
    """The strings of vCons, by hash."""

    def __init__(self, vcons: Iterable[Path]) -> None:
        self._strings: set[int] = set()
        self._pieces: set[int] | None = None
        self._vcons = list(vcons)
        self._times = Times()
        for text in self._all():
            self._strings.add(hash(text))

    def _all(self) -> Iterator[str]:
        for path in self._vcons:
            data = path.read_bytes()
            if not data.startswith(b'{"uuid"'):
                from onrecord.record.forms import open_form

                payload = open_form(data).payload
                data = payload.raw if payload is not None else b"{}"
            yield from _strings(orjson.loads(data))

    def has(self, text: str, depth: int = 0) -> bool:
        """Say whether a string is found."""
        return self.has_whole(text, depth) or self._has_pieces(text)

    def has_whole(self, text: str, depth: int = 0) -> bool:
        """Say whether a string is found in one piece: as it is, or in a form that a decision names."""
        return (
            hash(text) in self._strings
            or self._has_time(text)
            or self._has_hash(text)
            or self._has_json(text, depth)
        )

    def _has_time(self, text: str) -> bool:
        if len(text) > 40:
            return False
        time = self._times.read(text)
        return time is not None and hash(time.text) in self._strings

    def _has_hash(self, text: str) -> bool:
        if hash(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()) in self._strings:
            return True
        found = _DATA_URL.match(text)
        body = text[found.end() :] if found is not None else text
        if not body.isascii() or " " in body[:200]:
            return False
        url_form = body.rstrip("=").replace("+", "-").replace("/", "_")
        if hash(url_form) in self._strings:
            return True
        try:
            data = base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            return False
        return hash(hashlib.sha256(data).hexdigest()) in self._strings

    def _has_json(self, text: str, depth: int) -> bool:
        if depth > _MAX_DEPTH or text.lstrip()[:1] not in ("{", "[", '"'):
            return False
        try:
            value = parse(text.encode("utf-8", "replace")).value
        except NotJson:
            return False
        return all(self.has(inner, depth + 1) for _, inner in _looked_for(value))

    def _has_pieces(self, text: str) -> bool:
        """Say whether the lines of a text, without tags, all are lines of texts in the vCons."""
        wanted = [piece for piece in _pieces(text) if len(piece) >= MIN_CHARACTERS]
        if wanted == [text]:
            return False
        if self._pieces is None:
            self._pieces = {hash(piece) for known in self._all() for piece in _pieces(known)}
        pieces = self._pieces
        return all(hash(piece) in pieces for piece in wanted)


def missing(
    trace: Trace, vcons: Iterable[Path], *, elsewhere: Iterable[Path] = ()
) -> Iterator[tuple[int, str]]:
    """Yield record and pointer of each string of a source that is not found in the vCons made of it.

    `elsewhere` are vCons of other sources, where the duplicates lie of sources whose records are no lines.

    Raises `OnrecordError` and `OSError` when one of them cannot be read again.
    """
    texts = Texts(vcons)
    others: Texts | None = None
    may_be_elsewhere = trace.accounting()["duplicates"] > 0
    prepared: Callable[[Any], Any] = (
        (lambda value: replace_credentials(value)[0]) if trace.run.options.redact else (lambda value: value)
    )
    for number, value in _records(trace):
        for pointer, text in _looked_for(prepared(trace.importer.without_hashed(value))):
            if texts.has_whole(text):
                continue
            if may_be_elsewhere:
                others = others or Texts(elsewhere)
                if others.has_whole(text):
                    continue
            if not texts.has(text):
                yield number, pointer


def _records(trace: Trace) -> Iterator[tuple[int, Any]]:
    """Yield what was mapped of a source: its lines, the values in it, or the cells of its tables."""
    path = trace.path
    if path.is_dir():
        for inner, _ in files_of(path):
            if inner.suffix == ".json":
                with inner.open("rb") as stream:
                    yield from _values(stream)
        return
    with trace.file.open() as stream:
        start = stream.read(16)
    if start == sqlite.MAGIC:
        yield from _cells(trace)
        return
    is_lines = not trace.importer.carriers & {"document", "values"} or _is_lines(trace)
    with trace.file.open() as stream:
        told = FileFindings("")
        items = read_lines(stream, told) if is_lines else read_values(stream, told, objects=False)
        if _has_several_records(trace.importer):
            yield from _records_of(trace, items)
            return
        for item in items:
            if isinstance(item, Record) and (not is_lines or trace.is_mapped(item.number)):
                yield item.number, item.value


def _records_of(trace: Trace, items: Iterable[Record | Unreadable]) -> Iterator[tuple[int, Any]]:
    """Yield the mapped records of a format that has several in one value; their numbers are counted as they come."""
    number = 0
    for item in items:
        if not isinstance(item, Record):
            number += 1
            continue
        for record in trace.importer.records_in(item.value):
            number += 1
            if trace.is_mapped(number):
                yield number, record


def _has_several_records(importer: type[Importer]) -> bool:
    """Say whether a format has several records in one value, and tells them apart."""
    return any("records_in" in vars(kind) for kind in importer.__mro__ if kind is not Importer)


def _is_lines(trace: Trace) -> bool:
    with trace.file.open() as stream:
        return isinstance(next(read_lines(stream, FileFindings("")), None), Record)


def _values(stream: Any) -> Iterator[tuple[int, Any]]:
    for record in read_values(stream, FileFindings(""), objects=False):
        if isinstance(record, Record):
            yield record.number, record.value


def _cells(trace: Trace) -> Iterator[tuple[int, Any]]:
    with sqlite.open_copy(trace.path, follow=True) as connection:
        for table in sorted(trace.importer.tables & sqlite.table_names(connection)):
            columns = sqlite.column_names(connection, table)
            for number, row in enumerate(
                sqlite.rows(connection, table, FileFindings(""), columns=columns), 1
            ):
                yield number, list(row)


def _pieces(text: str) -> Iterator[str]:
    for piece in _PIECES.split(text):
        stripped = piece.strip()
        if stripped:
            yield stripped


def _looked_for(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the strings that are long enough to be looked for, with their pointers."""
    for pointer, text in _placed(value):
        if len(text) < MIN_CHARACTERS:
            continue
        if _WORD.split(pointer)[-1] not in KINDS or _KIND.fullmatch(text) is None:
            yield pointer, text


def _strings(value: Any) -> Iterator[str]:
    for _, text in _placed(value):
        yield text


def _placed(value: Any) -> Iterator[tuple[str, str]]:
    """Yield all strings in a value with their pointers, member names left out."""
    pending = [("", value)]
    while pending:
        pointer, here = pending.pop()
        if type(here) is str:
            yield pointer, here
        elif type(here) is dict:
            pending += [
                (f"{pointer}/{name[:64].replace('~', '~0').replace('/', '~1')}", inner)
                for name, inner in here.items()
            ]
        elif type(here) is list:
            pending += [(f"{pointer}/{index}", inner) for index, inner in enumerate(here)]
