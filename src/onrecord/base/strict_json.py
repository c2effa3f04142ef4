"""Strict I-JSON (RFC 7493) in one pass, with the facts that decide how to canonicalize.

    >>> value, facts = parse(b'{"path":"repo/README.md"}')
    >>> value, facts.floats
    ({'path': 'repo/README.md'}, False)
    >>> parse(b'{"a":1,"a":2}')
    Traceback (most recent call last):
        ...
    onrecord.base.strict_json.Refused: duplicate: a member name occurs twice in one object

Two parsers that read one text differently see two calls under one digest. So what any common parser reads in its
own way is refused, with one class of call-proof.md 3.2.
"""

from __future__ import annotations

import math
import re
import threading
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NamedTuple

import orjson

from onrecord.base._json_scan import first_fault
from onrecord.base.errors import MalformedError

ARGUMENTS_BYTES: Final = 1_048_576
"""Largest text of a call's arguments (call-proof.md 3.2): a call is a request, not a file transfer."""

ARGUMENTS_DEPTH: Final = 64
"""Deepest nesting of arguments; the arguments object is level 1. Common parsers give up soon after 100."""

MESSAGE_DEPTH: Final = ARGUMENTS_DEPTH + 2
"""Deepest nesting of a whole message: arguments stand at the third level of a tools/call."""

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""Largest integer that every double-based parser keeps (RFC 7493 2.2)."""

REASONS: Final = {
    "too_large": "the text is larger than the limit",
    "bom": "the text starts with a byte order mark",
    "not_utf8": "the text is not UTF-8",
    "depth": "containers are nested deeper than the limit",
    "syntax": "the text is not JSON",
    "duplicate": "a member name occurs twice in one object",
    "nonfinite": "a number is infinite as a double",
    "unsafe_integer": "an integer lies beyond +-9007199254740991",
    "surrogate": "a string holds an unpaired surrogate",
    "not_object": "the value is not an object",
}
"""Refusal classes of call-proof.md 3.2 with their meaning."""


class Facts(NamedTuple):
    """What a parse saw: any float token, any member name that is not ASCII (call-proof.md 3.3)."""

    floats: bool
    wide_keys: bool


PLAIN: Final = Facts(floats=False, wide_keys=False)


class Refused(MalformedError):
    """A text that is not strict I-JSON; `reason` is a class of call-proof.md 3.2."""

    usual_hint = "write it as I-JSON (RFC 7493), of which all readers see the same"

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}: {REASONS[reason]}", code="refused")
        self.reason = reason

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md with the member `reason`."""
        document = super().to_json()
        document["error"]["reason"] = self.reason
        return document


class _FaultError(ValueError):
    """A rule is broken, named by its class; which one is the first in the text is found by the slow scanner."""


class _Reader(threading.local):
    """A decoder with hooks that collect facts. Made once per thread, because making one costs as much as a parse."""

    def __init__(self) -> None:
        self.floats = False
        self.wide_keys = False
        self.raw_decode = JSONDecoder(
            object_pairs_hook=self.pairs,
            parse_float=self.number,
            parse_int=self.integer,
            parse_constant=self.constant,
        ).raw_decode

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise _FaultError("duplicate")
        if not "".join(members).isascii():
            self.wide_keys = True
        return members

    def number(self, token: str) -> float:
        self.floats = True
        value = float(token)
        if math.isinf(value):
            raise _FaultError("nonfinite")
        return value

    def integer(self, token: str) -> int:
        # 16 digits and a sign at most: longer tokens are unsafe whatever they say, and int() is slow on them.
        if len(token) > 17:
            raise _FaultError("unsafe_integer")
        value = int(token)
        if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            raise _FaultError("unsafe_integer")
        return value

    def constant(self, token: str) -> Any:
        raise _FaultError("syntax")


_reader = _Reader()

_WHITESPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKET = re.compile(rb"[^\[\]{}]++")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(data: bytes, *, max_depth: int = MESSAGE_DEPTH, max_bytes: int | None = None) -> tuple[Any, Facts]:
    """Parse one JSON text strictly and return the value and the facts seen.

    `data` is UTF-8 without a byte order mark; `max_depth` counts containers, the outermost is level 1; `max_bytes`
    bounds the text. Integers are Python ints, numbers with a point or exponent are floats.

    Raises `Refused` with the class of the first fault: size, byte order mark, UTF-8 and depth before anything is
    parsed; syntax, duplicates and number ranges in text order (far inside a long text: the one that the parser meets
    first); surrogates last.

    Source: call-proof.md 3.2, 3.3; RFC 7493; RFC 8785 section 3.1.
    """
    if max_bytes is not None and len(data) > max_bytes:
        raise Refused("too_large")
    if data.count(b"[") + data.count(b"{") <= max_depth:
        plain = _read_plain(data)
        if plain is not None:
            return plain
    if data.startswith(b"\xef\xbb\xbf"):
        raise Refused("bom")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not_utf8") from None
    if data.count(b"[") + data.count(b"{") > max_depth and nesting(data) > max_depth:
        raise Refused("depth")
    reader = _reader
    reader.floats = reader.wide_keys = False
    try:
        value, end = reader.raw_decode(text, _WHITESPACE.match(text).end())  # type: ignore[union-attr]
        if end != len(text) and _WHITESPACE.match(text, end).end() != len(text):  # type: ignore[union-attr]
            raise _FaultError("syntax")
    except (_FaultError, JSONDecodeError, RecursionError) as fault:
        found = fault.args[0] if isinstance(fault, _FaultError) else "syntax"
        raise Refused(first_fault(text, found=found)) from None
    if _SURROGATE_ESCAPE.search(data) and has_surrogate(value):
        raise Refused("surrogate")
    return value, Facts(reader.floats, reader.wide_keys)


def _read_plain(data: bytes) -> tuple[Any, Facts] | None:
    """Read a text that says everything in the plainest way, as most clients write it; None for any other text.

    A lenient parser may be trusted with a text only if writing its value gives back the very same bytes: then no
    duplicate was dropped, no number bent, no escape or blank read in a way of its own. Integers are looked at again,
    because this parser keeps 64 bits of them.
    """
    try:
        value = orjson.loads(data)
        if orjson.dumps(value) != data:
            return None
    except (ValueError, TypeError):
        return None
    floats = wide_keys = False
    only_ascii = data.isascii()
    pending = [value]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is dict:
            pending.extend(item.values())
            if not (only_ascii or wide_keys):
                wide_keys = not "".join(item).isascii()
        elif kind is list:
            pending.extend(item)
        elif kind is float:
            floats = True
        elif kind is int and not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER:
            return None
    return value, Facts(floats, wide_keys)


def nesting(data: bytes) -> int:
    """Return the deepest container nesting of a JSON text; brackets inside strings do not count."""
    deepest = depth = 0
    for byte in _NOT_BRACKET.sub(b"", _STRING.sub(b"", data)):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def has_surrogate(value: Any) -> bool:
    """Say whether any string or member name in a parsed value holds an unpaired surrogate."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if not item.isascii() and any("\ud800" <= char <= "\udfff" for char in item):
                return True
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def parse_arguments(data: bytes) -> tuple[dict[str, Any], Facts]:
    """Parse the text of a call's arguments, which must be an object.

    Raises `Refused`, also with class "not_object". Source: call-proof.md 3.1, 3.2.
    """
    value, facts = parse(data, max_depth=ARGUMENTS_DEPTH, max_bytes=ARGUMENTS_BYTES)
    if not isinstance(value, dict):
        raise Refused("not_object")
    return value, facts
