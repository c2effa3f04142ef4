"""One JSON text to a clean value: what any vCon reader reads in the same way (native-logs.md R-04, R-08, R-09).

>>> parse(b'{"a":1,"a":12345678901234567890}').value
{'a': '12345678901234567890'}
>>> parse(b'{"a":1,"a":12345678901234567890}').faults
{'unsafe-integer': 1, 'duplicate-member': 1}
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NamedTuple

import orjson

from onrecord.base.strict_json import MAX_SAFE_INTEGER
from onrecord.record.logs.reading.records import NotJson

MAX_DEPTH: Final = 100
"""Deepest nesting of a record; the vCon reader stops at 128 and a record comes to lie some levels down (R-08)."""

MAX_POINTERS: Final = 1_000
"""Most changed numbers of one record whose places are kept."""

_INTEGER_CHARACTERS: Final = 17
_PAIR_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_NUMBER_TAILS = (".", "e", "E", "e-", "e+", "E-", "E+")
_WORDS = {
    "Unterminated string": "a string without end",
    "Expecting value": "no value",
    "Expecting ','": "no comma and no end",
    "Expecting ':'": "no colon behind a name",
    "Expecting property name": "no member name",
    "Invalid \\u": "a broken Unicode escape",
    "Invalid \\": "an unknown escape",
}
_BLANK = " \t\r\n"
_CONTAINERS = frozenset((dict, list))


class Parsed(NamedTuple):
    """A clean value, the pointers of its changed numbers, and how often each fault was mended, by code."""

    value: Any
    numbers: list[str]
    faults: dict[str, int]


class Fault(NamedTuple):
    """Why a text gives no value: the code of the finding, words about it, and whether only its end is missing."""

    code: str
    detail: str
    ends_inside: bool = False


TOO_DEEP: Final = Fault("too-deep", f"nested beyond {MAX_DEPTH} levels")
"""The fault of a value with more levels than a vCon can take."""


class _Wide(str):
    """The digits of an integer that doubles do not keep, until its place is known."""

    __slots__ = ()


class _NotFinite:
    """A number that is none, until its place is known."""


_NOT_FINITE = _NotFinite()


class _Reader(threading.local):
    """The standard decoder with hooks. Made once per thread, because making one costs as much as a parse."""

    def __init__(self) -> None:
        self.duplicates = 0
        self.changed = False
        # Not strict: raw VT, FF, FS and their like stand in strings of real logs.
        self.raw_decode: Callable[..., tuple[Any, int]] = JSONDecoder(
            object_pairs_hook=self.pairs,
            parse_float=self.number,
            parse_int=self.integer,
            parse_constant=self.constant,
            strict=False,
        ).raw_decode

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        self.duplicates += len(pairs) - len(members)
        return members

    def number(self, token: str) -> Any:
        value = float(token)
        if math.isinf(value):
            self.changed = True
            return _NOT_FINITE
        return value

    def integer(self, token: str) -> Any:
        # Longer tokens are out of range whatever they say, and int() is slow on long ones.
        if len(token) <= _INTEGER_CHARACTERS:
            value = int(token)
            if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                return value
        self.changed = True
        return _Wide(token)

    def constant(self, token: str) -> Any:
        self.changed = True
        return _NOT_FINITE


_reader = _Reader()


def is_deep(value: Any) -> bool:
    """Say whether containers are nested beyond `MAX_DEPTH`; the outermost is level 1."""
    if type(value) not in _CONTAINERS:
        return False
    level = [value]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        below = []
        for container in level:
            for child in container.values() if type(container) is dict else container:
                if type(child) in _CONTAINERS:
                    below.append(child)  # noqa: PERF401 - a comprehension is slower here
        level = below
    return False


def parse(data: bytes) -> Parsed:
    """Read one JSON text; blanks around it are allowed.

    Raises `NotJson`: "too-deep", or "malformed-line" for what is no JSON, with `ends_inside` when only its end is
    missing.
    """
    read = try_parse(data)
    if isinstance(read, Fault):
        raise NotJson(read.code, read.detail, ends_inside=read.ends_inside)
    return read


def try_parse(data: bytes) -> Parsed | Fault:
    """Read one JSON text like `parse`, and return what is wrong with it instead of raising it."""
    data = data.strip(b" \t\r\n")
    try:
        value = orjson.loads(data)
        # A fast reader is believed when writing its value gives the same bytes again: no member came twice, no number
        # was bent. Two blanks of indentation are what most programs write into files for people.
        option = orjson.OPT_STRICT_INTEGER | (orjson.OPT_INDENT_2 if data[1:2] == b"\n" else 0)
        if orjson.dumps(value, option=option) == data:
            return TOO_DEEP if is_deep(value) else Parsed(value, [], {})
    except (ValueError, TypeError):
        pass  # the exact reader below says what it is
    faults: dict[str, int] = {}
    ends_inside = False
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        text = data.decode("utf-8", "replace")
        ends_inside = fault.end == len(data) and fault.reason == "unexpected end of data"
        faults["invalid-utf8"] = 1
    reader = _reader
    reader.duplicates = 0
    reader.changed = False
    try:
        value, end = reader.raw_decode(text)
    except JSONDecodeError as fault:
        return Fault("malformed-line", _in_words(fault), ends_inside or _ends_inside(text, fault))
    except RecursionError:
        return TOO_DEEP
    if end != len(text):
        return Fault("malformed-line", f"more text behind the value, at character {end}")
    if is_deep(value):
        return TOO_DEEP
    return _settled(value, text, faults)


def _in_words(fault: JSONDecodeError) -> str:
    words = next((words for start, words in _WORDS.items() if fault.msg.startswith(start)), "no JSON")
    return f"{words}, at character {fault.pos}"


def _ends_inside(text: str, fault: JSONDecodeError) -> bool:
    """Say whether a text that does not parse is the beginning of one that does."""
    if fault.msg.startswith("Unterminated string"):
        return True
    rest = text[fault.pos : fault.pos + 12]
    if fault.pos + len(rest) < len(text):
        return not text[fault.pos :].strip(_BLANK)
    if fault.msg.startswith("Invalid \\uXXXX"):
        return '"' not in rest
    if fault.msg.startswith("Expecting value"):
        return any(literal.startswith(rest.strip(_BLANK)) for literal in _LITERALS)
    return not rest.strip(_BLANK) or rest in _NUMBER_TAILS


def _settled(value: Any, text: str, faults: dict[str, int]) -> Parsed:
    """Put clean values where the decoder left marks, and count what was mended."""
    numbers: list[str] = []
    reader = _reader
    duplicates = reader.duplicates
    if reader.changed or _PAIR_ESCAPE.search(text):
        value = _clean(value, "", numbers, faults)
    if duplicates:
        faults["duplicate-member"] = duplicates
    return Parsed(value, numbers, faults)


def _clean(value: Any, pointer: str, numbers: list[str], faults: dict[str, int]) -> Any:
    """Return a value without marks and lone surrogates. Its depth is bounded by `MAX_DEPTH`."""
    kind = type(value)
    if kind is str:
        return _text(value, faults)
    if kind is dict:
        cleaned = {}
        for name, member in value.items():
            clear = _text(name, faults)
            here = "" if type(member) is str else f"{pointer}/{clear.replace('~', '~0').replace('/', '~1')}"
            cleaned[clear] = _clean(member, here, numbers, faults)
        return cleaned
    if kind is list:
        return [_clean(item, f"{pointer}/{index}", numbers, faults) for index, item in enumerate(value)]
    if kind is _Wide or kind is _NotFinite:
        if len(numbers) < MAX_POINTERS:
            numbers.append(pointer)
        code = "unsafe-integer" if kind is _Wide else "not-finite"
        faults[code] = faults.get(code, 0) + 1
        return str(value) if kind is _Wide else None
    return value


def _text(text: str, faults: dict[str, int]) -> str:
    if text.isascii() or not _SURROGATES.search(text):
        return text
    faults["lone-surrogate"] = faults.get("lone-surrogate", 0) + 1
    return _SURROGATES.sub("\ufffd", text)
