"""The strict JSON reader of every vCon and JWS: what is fatal is refused with its place, what is odd is reported.

    >>> document = read_json(b'{"uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd"}')
    >>> sorted(document.value)
    ['uuid']

The fast parser is taken where its result provably is the exact one, for everything else there is the slow way.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NoReturn

import msgspec
import orjson

from onrecord.base.errors import MalformedError, Where
from onrecord.base.strict_json import MAX_SAFE_INTEGER
from onrecord.record.vcon.paths import Path, pointer_of

MAX_BYTES: Final = 256 * 1024 * 1024
"""Largest input read by default (record.md D-07). The caller may set another limit; there is no hidden one."""

MAX_DEPTH: Final = 128
"""Deepest nesting of arrays and objects read (record.md D-07): no real vCon comes near, a parser bomb does."""

MAX_NUMBER_CHARACTERS: Final = 400
"""Longest number spelling that is compared exactly. Longer ones are noted; converting them takes quadratic time."""

MAX_NOTES: Final = 10_000
"""Notes kept per document; a hostile file of a million odd numbers must not become a million findings."""

_WHITE_SPACE: Final = b" \n\r\t"
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,]', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed JSON text: its bytes as they came, its value, and what was odd but readable."""

    raw: bytes = field(repr=False)
    value: Any = field(repr=False)
    notes: tuple[tuple[str, str], ...] = ()
    notes_left_out: int = 0

    def require_whole_texts(self) -> None:
        """Refuse what UTF-8 cannot say, before it is written or signed.

        Raises `MalformedError` with code "json-lone-surrogate".

        Source: record.md 6.2.
        """
        for code, pointer in self.notes:
            if code == "json-lone-surrogate":
                raise MalformedError(
                    "a text holds half a surrogate pair, which UTF-8 cannot say",
                    code=code,
                    where=Where(pointer=pointer),
                    hint="put U+FFFD or the whole character in its place",
                )


def read_json(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Document:
    """Parse a JSON text strictly.

    Refused: input above `max_bytes`, a byte order mark, bytes that are not UTF-8, NaN and Infinity, a member name
    that occurs twice, nesting above `max_depth`. Noted: lone surrogates, integers beyond 2^53-1, and numbers that a
    double does not keep.

    Raises `MalformedError` with code "size-limit", "json-invalid", "json-duplicate-member" or "json-depth"; its
    `where` holds the pointer.

    Source: record.md D-07.
    """
    if len(data) > max_bytes:
        _refuse("size-limit", f"the input has {len(data)} bytes, the limit is {max_bytes}")
    document = _read_fast(data, max_depth)
    return document if document is not None else _read_exactly(data, max_depth)


def _refuse(code: str, message: str, pointer: str = "") -> NoReturn:
    raise MalformedError(message, code=code, where=Where(pointer=pointer)) from None


def _read_fast(data: bytes, max_depth: int) -> Document | None:
    """Return the document if the fast parser provably read it as the exact way would, else None.

    The parser is the one that makes no tree of its own first, which would be half as large again as the result.
    The proof is to write the value back: equal bytes, white space aside, are equal tokens, so no name was lost and
    each number keeps its spelling. The writer refuses integers beyond 2^53-1 and nesting beyond its own limit, which
    enough arrays around the value bring down to `max_depth`.
    """
    spare = _WRITER_DEPTH - max_depth
    if not 0 <= spare <= _WRITER_DEPTH:
        return None
    try:
        value = msgspec.json.decode(data)
        wrapped = value
        for _ in range(spare):
            wrapped = [wrapped]
        written = orjson.dumps(wrapped, option=orjson.OPT_STRICT_INTEGER)
    except (msgspec.MsgspecError, orjson.JSONEncodeError, ValueError, RecursionError):
        return None
    if len(written) == len(data) + 2 * spare and written.startswith(data, spare):
        return Document(data, value)
    if written[spare : len(written) - spare].translate(None, _WHITE_SPACE) == data.translate(
        None, _WHITE_SPACE
    ):
        return Document(data, value)
    return None


def _writer_depth() -> int:
    value: Any = 0
    for depth in range(1_100):
        value = [value]
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            return depth
    return -1


_WRITER_DEPTH: Final = _writer_depth()
"""Nesting that the fast writer accepts, found by trying; -1 if it has no limit, and then it is not used."""


class _Doubled(dict[str, Any]):
    """An object in whose text a name occurs twice."""


class _Wide(int):
    """An integer beyond the safe range."""


class _Lossy(float):
    """A number whose text says more than a double keeps."""


class _Hooks:
    """Marks what the standard parser would pass over in silence."""

    def __init__(self) -> None:
        self.marked = False

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        self.marked = True
        return _Doubled(members)

    def integer(self, token: str) -> int | float:
        if len(token) < 16:
            return int(token)
        if len(token) > MAX_NUMBER_CHARACTERS:
            return self._lossy(float("-inf" if token[0] == "-" else "inf"))
        value = int(token)
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return value
        self.marked = True
        return _Wide(value)

    def number(self, token: str) -> float:
        value = float(token)
        if len(token) > MAX_NUMBER_CHARACTERS or value in (float("inf"), float("-inf")):
            return self._lossy(value)
        return value if Decimal(token) == Decimal(repr(value)) else self._lossy(value)

    def constant(self, _token: str) -> NoReturn:
        raise ValueError("NaN or Infinity")

    def _lossy(self, value: float) -> float:
        self.marked = True
        return _Lossy(value)


def _read_exactly(data: bytes, max_depth: int) -> Document:
    if data.startswith(b"\xef\xbb\xbf"):
        _refuse("json-invalid", "the input begins with a byte order mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse("json-invalid", f"the input is not UTF-8 at byte {error.start}")
    hooks = _Hooks()
    try:
        value = json.loads(
            text,
            object_pairs_hook=hooks.pairs,
            parse_int=hooks.integer,
            parse_float=hooks.number,
            parse_constant=hooks.constant,
        )
    except json.JSONDecodeError as error:
        _refuse("json-invalid", f"the input is not JSON at line {error.lineno}, column {error.colno}")
    except (ValueError, ArithmeticError):
        _refuse("json-invalid", "the input holds NaN or Infinity")
    except RecursionError:
        _refuse("json-depth", f"nesting deeper than {max_depth}", _deepest_pointer(data, max_depth))
    if _nesting(value) > max_depth:
        _refuse("json-depth", f"nesting deeper than {max_depth}", _deepest_pointer(data, max_depth))
    if not hooks.marked and b"\\ud" not in data and b"\\uD" not in data:
        return Document(data, value)
    walk = _Walk()
    value = walk.plain(value)
    return Document(data, value, tuple(walk.notes), walk.left_out)


def _nesting(value: Any) -> int:
    depth = 0
    level = [value] if type(value) in _CONTAINERS else []
    while level:
        depth += 1
        following: list[Any] = []
        for container in level:
            items = container if type(container) is list else container.values()
            following += [item for item in items if type(item) in _CONTAINERS]
        level = following
    return depth


_CONTAINERS: Final = frozenset((dict, list, _Doubled))
_SCALARS_TO_SEE: Final = frozenset((str, _Wide, _Lossy))


class _Walk:
    """Goes once through a parsed value: refuses doubled names, notes odd values and makes them plain."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []
        self.left_out = 0

    def plain(self, root: Any) -> Any:
        if type(root) not in _CONTAINERS:
            return self._plain_scalar(root, None)
        work: list[tuple[Any, Path]] = [(root, None)]
        while work:
            container, path = work.pop()
            if type(container) is _Doubled:
                _refuse("json-duplicate-member", "a member name occurs twice in one object", pointer_of(path))
            entries = enumerate(container) if type(container) is list else list(container.items())
            for key, item in entries:
                if type(key) is str and not key.isascii() and _SURROGATE.search(key):
                    self._note("json-lone-surrogate", (path, key))
                kind = type(item)
                if kind in _CONTAINERS:
                    work.append((item, (path, key)))
                elif kind in _SCALARS_TO_SEE:
                    container[key] = self._plain_scalar(item, (path, key))
        self.notes.reverse()
        return root

    def _plain_scalar(self, item: Any, path: Path) -> Any:
        if type(item) is str:
            if not item.isascii() and _SURROGATE.search(item):
                self._note("json-lone-surrogate", path)
            return item
        if type(item) is _Wide or type(item) is _Lossy:
            self._note("json-number-range", path)
            return int(item) if type(item) is _Wide else float(item)
        return item

    def _note(self, code: str, path: Path) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append((code, pointer_of(path)))
        else:
            self.left_out += 1


def _deepest_pointer(data: bytes, max_depth: int) -> str:
    """Return the pointer of the first value nested deeper than `max_depth`. Wrong syntax is not judged here."""
    path: list[str | int] = []
    last_string = b'""'
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token[0] == 0x22:
            last_string = token
        elif token == b":" and path:
            path[-1] = _name_of(last_string)
        elif token == b"," and path:
            position = path[-1]
            if type(position) is int:
                path[-1] = position + 1
        elif token in (b"{", b"["):
            if len(path) >= max_depth:
                break
            path.append(0 if token == b"[" else "")
        elif token in (b"}", b"]") and path:
            path.pop()
    place: Path = None
    for part in path:
        place = (place, part)
    return pointer_of(place)


def _name_of(token: bytes) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return ""
