"""The values in one piece of text, each a record or reported (native-logs.md R-06 to R-10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.extents import NOT_YET, Extent, scalar_end, skip_blanks
from onrecord.record.logs.reading.parsing import MAX_DEPTH, TOO_DEEP, Fault, Parsed, try_parse
from onrecord.record.logs.reading.records import Record, Unreadable, head_of

ACTIONS: Final = {
    "invalid-utf8": "kept with U+FFFD",
    "lone-surrogate": "kept with U+FFFD",
    "duplicate-member": "the last one is kept",
    "unsafe-integer": "kept as text",
    "not-finite": "kept as null",
}
"""What is done about each fault that can be mended."""

UNREADABLE_ACTION: Final = "kept as unreadable-record"
"""What is done about a piece that is no record."""


_VALUE_STARTS: Final = frozenset(b'{["-0123456789tfn')


class Pieces:
    """Makes records, numbers them and reports what is wrong with them."""

    def __init__(self, findings: FileFindings, *, objects: bool) -> None:
        self.findings = findings
        self.objects = objects
        self.number = 0

    def line(self, data: bytes, *, line: int, offset: int, is_tail: bool) -> Iterator[Record | Unreadable]:
        """Yield what stands on one line, which need not be clean. `is_tail`: the file ends in it."""
        start = skip_blanks(data, 0)
        if start == len(data):
            return
        whole = try_parse(data)
        if isinstance(whole, Parsed):
            yield self.value(whole, data.strip(b" \t\r\n"), line=line, offset=offset + start)
            return
        values = 0
        at = start
        while at < len(data):
            end, is_deep = _piece_end(data, at)
            is_rest = end == NOT_YET
            if at == start and (is_rest or skip_blanks(data, end) == len(data)):
                read: Parsed | Fault = whole
            elif is_deep:
                read = TOO_DEEP
            else:
                read = try_parse(data[at:] if is_rest else data[at:end])
            if isinstance(read, Fault):
                if is_deep:
                    read = TOO_DEEP
                elif is_tail and read.ends_inside and is_rest:
                    read = read._replace(code="truncated-tail")
                # A value that is only too deep ends somewhere; behind anything else nothing is certain.
                stop = len(data) if is_rest or read.code != "too-deep" else end
                yield self.unreadable(read.code, read.detail, data[at:stop], line=line, offset=offset + at)
                at = skip_blanks(data, stop)
                continue
            made = self.value(read, data[at:end], line=line, offset=offset + at)
            values += 1
            if values == 2:
                self.findings.add(
                    "multiple-values-on-line",
                    record=made.number,
                    line=line,
                    offset=offset + at,
                    action="read as several records",
                )
            yield made
            at = skip_blanks(data, end)

    def value(self, parsed: Parsed, data: bytes, *, line: int, offset: int) -> Record | Unreadable:
        """Return the record of a value, or report that it is no object."""
        if self.objects and type(parsed.value) is not dict:
            return self.unreadable("not-an-object", _kind(parsed.value), data, line=line, offset=offset)
        self.number += 1
        for code, count in parsed.faults.items():
            is_about_numbers = code in ("unsafe-integer", "not-finite")
            self.findings.add(
                code,
                record=self.number,
                line=line,
                offset=offset,
                pointer=parsed.numbers[0] if is_about_numbers else "",
                action=ACTIONS[code],
                count=count,
            )
        return Record(self.number, parsed.value, line, offset, len(data), parsed.numbers)

    def unreadable(
        self,
        code: str,
        detail: str,
        data: bytes,
        *,
        line: int,
        offset: int,
        size: int | None = None,
        sha256: str | None = None,
    ) -> Unreadable:
        """Report a piece that is no record and return it; `data` may be its beginning, with size and hash of all."""
        self.number += 1
        self.findings.add(
            code, record=self.number, line=line, offset=offset, message=detail, action=UNREADABLE_ACTION
        )
        if sha256 is None:
            sha256 = hashlib.sha256(data).hexdigest()
        size = len(data) if size is None else size
        return Unreadable(self.number, line, offset, size, code, sha256, head_of(data), detail)


def _piece_end(data: bytes, at: int) -> tuple[int, bool]:
    """Return where the value at a place ends, and whether it is nested too deep."""
    if data[at] in b"[{":
        extent = Extent()
        end = extent.scan(data, at)
        return end, extent.deepest > MAX_DEPTH
    end = scalar_end(data, at)
    if end in (NOT_YET, at):
        return NOT_YET, False
    # A line of prose or of a spread-out object may begin with a word, a number or a string: that alone is no value.
    follows = skip_blanks(data, end)
    return (end if follows == len(data) or data[follows] in _VALUE_STARTS else NOT_YET), False


def _kind(value: Any) -> str:
    kinds = {str: "a string", list: "an array", bool: "a boolean", type(None): "null"}
    return f"{kinds.get(type(value), 'a number')} where an object is expected"
