"""Values of Python as a vCon holds them: JSON, dates as text, and nothing that could not be written.

>>> plain({"parties": (0, 1), "duration": 2.0}, "/sessions/0")
{'parties': [0, 1], 'duration': 2}
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any, Final

from onrecord.base.dates import format_date
from onrecord.base.errors import UsageError, Where
from onrecord.record.vcon.paths import Path, pointer_of
from onrecord.record.vcon.reader import MAX_DEPTH

MAX_EXACT: Final = 2**53 - 1
"""The largest integer that every reader of JSON keeps (record.md D-07)."""

_AS_THEY_ARE: Final = frozenset([bool, type(None)])


def plain(value: Any, pointer: str, *, lenient: bool = False, depth: int = 2) -> Any:
    """Return a deep copy of a value as JSON holds it: dates as text, tuples as arrays, integral numbers as integers.

    `pointer` is where it will stand and `depth` how deep that is. With `lenient` half surrogate pairs, wide integers
    and numbers that are infinite are let through, for the writer to decide about.

    Raises `UsageError` with code "json-lone-surrogate", "json-number-range", "json-depth", "date-invalid" for a
    datetime without time zone, or "type-mismatch" for what JSON has no type for.
    """
    if type(value) is str and value.isascii():
        return value
    return _Plain(pointer, is_lenient=lenient).of(value, None, depth)


class _Plain:
    def __init__(self, pointer: str, *, is_lenient: bool) -> None:
        self._pointer = pointer
        self._is_lenient = is_lenient

    def of(self, value: Any, path: Path, depth: int) -> Any:
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, (int, float)) and kind is not bool:
            return self._number(value, path)
        if isinstance(value, (Mapping, list, tuple)):
            if depth >= MAX_DEPTH:
                raise self._error(
                    "the value is nested too deep, or holds itself",
                    path,
                    code="json-depth",
                    hint=f"nest objects and arrays at most {MAX_DEPTH} deep",
                )
            if isinstance(value, Mapping):
                return {
                    self._name(name, path): self.of(item, (path, name), depth + 1)
                    for name, item in value.items()
                }
            return [self.of(item, (path, index), depth + 1) for index, item in enumerate(value)]
        if isinstance(value, datetime):
            return self._date(value, path)
        raise self._error(
            f"a {kind.__name__} is no JSON value",
            path,
            code="type-mismatch",
            hint="bytes go in with content=Content.binary(…), other objects as text, numbers, lists and dicts",
        )

    def _name(self, name: Any, path: Path) -> str:
        if not isinstance(name, str):
            raise self._error(
                f"a {type(name).__name__} names a member",
                path,
                code="type-mismatch",
                hint="names of members are strings",
            )
        return self._text(name, path)

    def _text(self, value: str, path: Path) -> str:
        text = str.__str__(value)
        if not self._is_lenient and not text.isascii():
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                raise self._error(
                    "a text holds half a surrogate pair, which UTF-8 cannot say",
                    path,
                    code="json-lone-surrogate",
                    hint="put U+FFFD or the whole character in its place",
                ) from None
        return text

    def _number(self, value: Any, path: Path) -> int | float:
        if isinstance(value, float) and isfinite(value) and value.is_integer():
            value = int(value)
        exact = isfinite(value) if isinstance(value, float) else -MAX_EXACT <= value <= MAX_EXACT
        if not exact and not self._is_lenient:
            raise self._error(
                "a number is infinite, or an integer beyond 2^53-1",
                path,
                code="json-number-range",
                hint="write long numbers as strings",
            )
        return int(value) if isinstance(value, int) else float(value)

    def _date(self, value: datetime, path: Path) -> str:
        if value.tzinfo is None:
            raise self._error(
                "a datetime has no time zone",
                path,
                code="date-invalid",
                hint="datetime(…, tzinfo=UTC), or a text such as 2026-11-30T12:00:00Z",
            )
        return format_date(value)

    def _error(self, message: str, path: Path, *, code: str, hint: str) -> UsageError:
        return UsageError(message, code=code, where=Where(pointer=pointer_of(path, self._pointer)), hint=hint)
