"""What each member of a vCon is, by the tables of the checks: structure that redaction keeps, text, or free content.

    >>> shape = TOP.member("dialog").element().member("body")
    >>> shape.is_free
    True
    >>> TOP.member("parties").element().member("shoe_size") is None
    True

Source: record.md 2.3 to 2.7, 3, 4.2; D-20, D-21.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.record.checks.event_tables import EVENT
from onrecord.record.checks.tables import (
    ANALYSIS,
    ATTACHMENT,
    DIALOG,
    OBJECTS,
    PARTY,
    SESSION,
    VCON,
    Table,
)
from onrecord.record.checks.values import CIVIC_KEYS, ENUMS, SHA512_CHARACTERS
from onrecord.record.vcon.bodies import BASE64, ENCODINGS, base64url_fault, encoding_of
from onrecord.record.vcon.event_types import KNOWN_EVENTS, SUPPORTED_EXTENSIONS
from onrecord.record.vcon.names import KEY_EVENT_ALIASES

INDEXED: Final[Mapping[str, Table]] = {
    "parties": PARTY,
    "sessions": SESSION,
    "dialog": DIALOG,
    "analysis": ANALYSIS,
    "attachments": ATTACHMENT,
    "events": EVENT,
}
"""The arrays that indices point into, and the table of their elements. Removed elements leave `{}` (record.md D-19)."""

VENDOR_MEMBER: Final = "onrecord"
"""Our vendor member. Its content comes from native logs, so it is free content here (record.md D-39)."""

NEVER_UNDERSTOOD: Final = frozenset(["group"])
"""Names that the drafts reserve without saying what they hold: old files keep whole vCons there."""

_STRUCTURE: Final = frozenset(
    [
        "date",
        "duration",
        "index",
        "indices",
        "channels",
        "filled",
        "one-or-more",
        "uint",
        "number",
        "attempt",
        "boolean",
        "enum",
        "mediatype",
        "content-hash",
    ]
)
"""Kinds of values that carry structure and no content: times, indices, numbers, words of a list."""

_WORDS: Final = frozenset(["type", "encoding", "disposition", "event", "vcon"])
"""Members whose value is a word of a list even where the tables call it a String."""

_NAMES: Final = frozenset(["extensions", "critical"])
"""Lists of names that readers go by: nothing of them is content."""

JOINS: Final = frozenset(["operation_id", "call_id", "entry_id", "parent_id", "agent_session_id"])
"""Identifiers that join objects: what was equal must stay equal, and what was different, different."""

_STRINGS: Final = frozenset(["strings", "civic-address"])
_KINDS_OF_NUMBERS: Final = frozenset(
    ["duration", "index", "indices", "channels", "filled", "one-or-more", "uint", "number", "attempt"]
)

_CLOCK: Final = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_DATE: Final = re.compile(
    rf"(?:\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}|\d{{1,2}}[./]\d{{1,2}}[./](?:\d{{2}}|\d{{4}}))"
    rf"(?:(?:[Tt]|, ?| {{1,2}}){_CLOCK})? ?(?:[AP]M ?)?(?:[Zz]|GMT|UTC|[+-]\d{{2}}:?\d{{2}})?"
    r"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}"
    rf"(?: {_CLOCK})?(?: (?:GMT|UTC|[+-]\d{{4}}))?",
    re.ASCII,
)
"""Dates as they are found in files: RFC 3339, mail headers, and those of old vCons. Nothing else may pass for one."""

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", re.ASCII)
_VERSION: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){0,3}", re.ASCII)
_SHA512: Final = re.compile(rf"sha512-[A-Za-z0-9_-]{{{SHA512_CHARACTERS}}}", re.ASCII)
_KNOWN_WORDS: Final = frozenset(
    [*ENCODINGS, BASE64, *KNOWN_EVENTS, *KEY_EVENT_ALIASES, *SUPPORTED_EXTENSIONS]
).union(*ENUMS.values())
_KNOWN_MEDIATYPES: Final = frozenset(
    [
        "text/plain",
        "text/html",
        "text/markdown",
        "text/csv",
        "application/json",
        "application/pdf",
        "application/octet-stream",
        "message/rfc822",
        "multipart/mixed",
        "multipart/alternative",
        "audio/wav",
        "audio/x-wav",
        "audio/mpeg",
        "audio/mp4",
        "video/mp4",
        "video/webm",
        "image/png",
        "image/jpeg",
    ]
)
"""Media types that are looked at no further, even if a person is called like a part of one."""

_SESSION_ID_NAMES: Final = frozenset(["local", "remote"])
_MEDIATYPE: Final = re.compile(
    r"[A-Za-z0-9.+_-]{1,80}/[A-Za-z0-9.+_-]{1,80}"
    r"(?:;\s*(?:charset|format|delsp|codecs)=\"?[A-Za-z0-9.,_+-]{1,80}\"?)*",
    re.ASCII,
)
_CONTENT_HASH: Final = re.compile(r"[A-Za-z0-9-]{1,20}[:-][A-Za-z0-9_=+/-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands at a place.

    `name` is the member's present name, `kind` the kind of its value in the tables ("" for objects of a table).
    `table` is the table of the object, or of the elements where `is_list`; `is_indexed` marks the arrays that indices
    point into; `is_required` a member that its object cannot do without. `is_free` says that any JSON value may stand
    here (bodies, arguments, results, data), `is_structure` that the value only goes together with its whole element.
    """

    name: str
    kind: str = ""
    table: Table | None = None
    is_list: bool = False
    is_indexed: bool = False
    is_required: bool = False
    is_free: bool = field(init=False)
    is_structure: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_free", self.kind in ("any", "object"))
        structure = self.table is None and (
            self.kind.split(" ")[0] in _STRUCTURE or self.name in _WORDS or self.name in _NAMES
        )
        object.__setattr__(self, "is_structure", structure)

    @property
    def joins(self) -> bool:
        """Say whether the value joins objects."""
        return self.name in JOINS

    def has_encoded_body(self, item: Mapping[str, Any]) -> bool:
        """Say whether an object of this shape has a body that stands for bytes."""
        return self.table is not None and not self.is_list and "body" in self.table.kinds and is_encoded(item)

    @property
    def members(self) -> Mapping[str, Shape]:
        """Return the members that an object of a table may have, none for what is no such object."""
        return _MEMBERS[self.table.name] if self.table is not None and not self.is_list else {}

    def member(self, name: str) -> Shape | None:
        """Return the shape of a member of this object, None if nobody knows the name."""
        if self.is_free:
            return FREE
        if self.table is not None and not self.is_list:
            return _MEMBERS[self.table.name].get(name)
        return Shape(name, "string" if self.kind in _STRINGS else "identifier")

    def element(self) -> Shape:
        """Return the shape of an element of this array."""
        if self.table is not None:
            return _ELEMENTS[self.table.name] if self.is_indexed else Shape(self.name, table=self.table)
        if self.kind in _STRINGS:
            return Shape(self.name, "string")
        return FREE if self.is_free else self

    def admits(self, value: Any) -> bool:
        """Say whether a value of structure looks like one: no text hides in a date, an index or a word."""
        kind = self.kind.split(" ")[0]
        if kind in _KINDS_OF_NUMBERS:
            return _is_numeric(value)
        if kind == "boolean":
            return type(value) is bool
        if kind == "date":
            return type(value) is str and _DATE.fullmatch(value) is not None
        if kind == "mediatype":
            return type(value) is str and _MEDIATYPE.fullmatch(value) is not None
        if kind == "content-hash":
            values = value if type(value) is list else [value]
            return all(type(item) is str and _CONTENT_HASH.fullmatch(item) for item in values)
        if (self.name in _NAMES) is not (type(value) is list):
            return False
        words = value if type(value) is list else [value]
        return all(type(item) is str and _WORD.fullmatch(item) for item in words)

    def may_hide(self, value: Any) -> bool:
        """Say whether a value of structure may be something else in the shape of a word, a media type or a hash."""
        if type(value) is list:
            return any(map(self.may_hide, value))
        if type(value) is not str or self.kind == "date":
            return False
        if self.kind == "mediatype":
            return value not in _KNOWN_MEDIATYPES
        if self.kind == "content-hash":
            return _SHA512.fullmatch(value) is None
        return value not in _KNOWN_WORDS and _VERSION.fullmatch(value) is None

    def admits_name(self, name: str) -> bool:
        """Say whether a member of this name may stand in an object of texts: nothing hides in the names of others."""
        if self.kind == "civic-address":
            return name.lower() in CIVIC_KEYS
        return not self.kind.startswith("session-id") or name in _SESSION_ID_NAMES


FREE: Final = Shape("", "any")
"""Any value inside of free content."""


def _is_numeric(value: Any) -> bool:
    work = [value]
    while work:
        item = work.pop()
        if type(item) is list:
            work += item
        elif item is not None and type(item) not in (int, float):
            return False
    return True


def _is_required(table: Table, name: str) -> bool:
    return any(levels.get(name) == "M" for levels in table.levels.values())


def _member_shape(table: Table, name: str, present: str) -> Shape:
    required = _is_required(table, present)
    if table is VCON and present in INDEXED:
        return Shape(present, table=INDEXED[present], is_list=True, is_indexed=True)
    inner = table.inner.get(present)
    if inner is not None:
        is_list = inner.endswith("[]")
        owned = OBJECTS[inner[:-2] if is_list else inner]
        return Shape(present, table=owned, is_list=is_list, is_required=required)
    kind = "string" if name in ("alg", "signature") else table.kinds[present]
    return Shape(present, kind, is_required=required)


def _members_of(table: Table) -> dict[str, Shape]:
    shapes = {name: _member_shape(table, name, name) for name in table.kinds}
    for name, present in table.aliases.items():
        if present in table.kinds:
            shapes.setdefault(name, _member_shape(table, name, present))
    shapes[VENDOR_MEMBER] = Shape(VENDOR_MEMBER, "any")
    for name in NEVER_UNDERSTOOD:
        shapes.pop(name, None)
    return shapes


def _all_tables() -> Iterable[Table]:
    return (VCON, *INDEXED.values(), *OBJECTS.values())


_MEMBERS: Final = {table.name: _members_of(table) for table in _all_tables()}
_ELEMENTS: Final = {table.name: Shape("", table=table) for table in INDEXED.values()}

TOP: Final = Shape("", table=VCON)
"""The vCon Object."""


def is_encoded(item: Mapping[str, Any]) -> bool:
    """Say whether a body is text that stands for bytes, by its encoding and by what it is."""
    body = item.get("body")
    return (
        type(body) is str
        and encoding_of(item) == "base64url"
        and base64url_fault(body) != "base64url-invalid"
    )
