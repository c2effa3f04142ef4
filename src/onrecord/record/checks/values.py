"""Value rules: one small function per type of the drafts. Those that need to know the file are in `value_rules`.

A rule takes a value and returns None if it is right, else its problems, each with a pointer relative to the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from onrecord.base.findings import Severity
from onrecord.base.strict_json import MAX_SAFE_INTEGER
from onrecord.record.vcon.event_types import KEY_EVENTS, PARTY_EVENTS
from onrecord.record.vcon.names import KEY_EVENT_ALIASES
from onrecord.record.vcon.pointers import step


class Problem(NamedTuple):
    """What is wrong with a value. `place` is a pointer that starts at the value."""

    code: str
    place: str = ""
    data: Mapping[str, Any] | None = None
    severity: Severity | None = None


Problems = list[Problem]
Rule = Callable[[Any], Problems | None]

_UNKNOWN_TYPES: Final = {
    str: "String",
    bool: "Boolean",
    int: "Integer",
    float: "Number",
    list: "Array",
    dict: "Object",
}
_CONTENT_HASH: Final = re.compile(r"[a-z0-9]+-[A-Za-z0-9_-]+", re.ASCII)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_NOT_IN_URI: Final = re.compile(r'[\x00-\x20<>"{}|\\^`\x7f-\U0010ffff]')
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DID: Final = re.compile(
    r"did:[a-z0-9]+:[A-Za-z0-9._:%-]*(?<!:)(?:[/?#][A-Za-z0-9._:%/?#=&;,+~@!$'()*-]*)?", re.ASCII
)
"""DID or DID URL (W3C DID Core 3.1, 3.2): what follows the method does not end with a colon."""
_URI_REFERENCE: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*:|(?![^/?#:]*:))"
    r"(?://(?:[A-Za-z0-9._~%!$&'()*+,;=:-]*@)?(?:\[[0-9A-Za-z.:~!$&'()*+,;=_-]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]*)"
    r"(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
    r"[A-Za-z0-9._~%!$&'()*+,;=:@/-]*(?:\?[A-Za-z0-9._~%!$&'()*+,;=:@/?-]*)?"
    r"(?:#[A-Za-z0-9._~%!$&'()*+,;=:@/?-]*)?",
    re.ASCII,
)
"""URI reference (RFC 3986 4.1): a scheme or no colon before the first slash, authority, path, query, fragment."""
CIVIC_KEYS: Final = frozenset(
    ["country", "a1", "a2", "a3", "a4", "a5", "a6", "prd", "pod", "sts", "hno", "hns", "lmk", "loc", "flr", "nam", "pc"]
)  # fmt: skip
"""Members of a civic address (core "Party Object")."""
SHA512_CHARACTERS: Final = 86
"""Length of a SHA-512 in base64url without padding."""

ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "dialog-type": ("recording", "recording-set", "text", "transfer", "incomplete"),
    "disposition": ("no-answer", "congestion", "failed", "busy", "hung-up", "voicemail-no-message"),
    "party-type": ("person", "bot", "organization"),
    "reference-type": ("child", "peer", "precursor", "breakout"),
    "analysis-type": ("report", "sentiment", "summary", "transcript", "translation", "tts"),
    "decision": ("allowed", "permission-required", "disallowed"),
    "policy-life": ("once", "standing"),
    "contributor-type": ("human", "ai", "mixed", "unknown"),
}
_HISTORY: Final = (*PARTY_EVENTS, *KEY_EVENTS)
SHOULD_ENUMS: Final = frozenset(["party-type", "reference-type", "analysis-type"])
"""Value lists that say SHOULD: another value is a note (enum-unknown), not an error."""


def type_name(value: Any) -> str:
    """Return the JSON type of a parsed value, in words."""
    return "Null" if value is None else _UNKNOWN_TYPES.get(type(value), "value")


def mismatch(expected: str, value: Any, place: str = "") -> Problems:
    """Return the one problem of a value of the wrong type."""
    return [Problem("type-mismatch", place, {"expected": expected, "found": type_name(value)})]


def is_uint(value: Any) -> bool:
    """Say whether a value is read as UnsignedInt: 1 and 1.0 are, true and "1" are not (record.md D-09)."""
    if type(value) is float:
        return value.is_integer() and 0 <= value <= MAX_SAFE_INTEGER
    return type(value) is int and 0 <= value <= MAX_SAFE_INTEGER


def uint(value: Any) -> Problems | None:
    """UnsignedInt."""
    if type(value) is int and 0 <= value <= MAX_SAFE_INTEGER:
        return None
    if is_uint(value):
        return [Problem("integer-as-float")]
    return mismatch("UnsignedInt", value)


def string(value: Any) -> Problems | None:
    """String."""
    return None if type(value) is str else mismatch("String", value)


def identifier(value: Any) -> Problems | None:
    """String that names something, so not an empty one."""
    if type(value) is not str:
        return mismatch("String", value)
    return None if value else [Problem("empty-value")]


def strings(value: Any) -> Problems | None:
    """Array of Strings."""
    if type(value) is not list:
        return mismatch("String[]", value)
    problems = [mismatch("String", item, step(i))[0] for i, item in enumerate(value) if type(item) is not str]
    return problems or None


def boolean(value: Any) -> Problems | None:
    """Boolean."""
    return None if type(value) is bool else mismatch("Boolean", value)


def number(value: Any) -> Problems | None:
    """Number."""
    return None if type(value) in (int, float) else mismatch("Number", value)


def an_object(value: Any) -> Problems | None:
    """Object."""
    return None if type(value) is dict else mismatch("Object", value)


def anything(_value: Any) -> Problems | None:
    """Return None: any JSON value will do."""
    return None


def duration(value: Any) -> Problems | None:
    """Seconds, not negative."""
    if type(value) in (int, float) and value >= 0:
        return None
    return [Problem("duration-invalid", "", {"found": type_name(value)})]


def did(value: Any) -> Problems | None:
    """DID URI."""
    if type(value) is not str:
        return mismatch("String", value)
    return None if _DID.fullmatch(value) and not _BAD_PERCENT.search(value) else [Problem("did-invalid")]


def content_hash(value: Any) -> Problems | None:
    """One ContentHash or an array of them."""
    tokens = value if type(value) is list else [value]
    if not tokens:
        return [Problem("empty-value")]
    problems: Problems = []
    sha512 = False
    for index, token in enumerate(tokens):
        place = step(index) if tokens is value else ""
        if type(token) is not str:
            problems += mismatch("ContentHash", token, place)
        elif not _CONTENT_HASH.fullmatch(token):
            problems.append(Problem("content-hash-invalid", place))
        elif token.startswith("sha512-"):
            sha512 = True
            if len(token) != 7 + SHA512_CHARACTERS:
                data = {"expected": SHA512_CHARACTERS, "found": len(token) - 7}
                problems.append(Problem("content-hash-invalid", place, data))
        elif token.startswith("sha-"):
            problems.append(Problem("content-hash-invalid", place))
    if not problems and not sha512:
        problems.append(Problem("content-hash-no-sha512"))
    return problems or None


def uri_problem(value: str) -> bool:
    """Say whether a text is not an absolute URI."""
    match = _SCHEME.match(value)
    return match is None or match.end() == len(value) or _NOT_IN_URI.search(value) is not None


def url(value: Any) -> Problems | None:
    """URL of content: absolute, and https."""
    if type(value) is not str:
        return mismatch("String", value)
    if uri_problem(value):
        return [Problem("url-invalid")]
    if value[:8].lower() != "https://":
        return [Problem("url-not-https")]
    return None if len(value) > 8 and value[8] != "/" else [Problem("url-invalid")]


def uri_reference(value: Any) -> Problems | None:
    """URI reference of ai_agent: a link, never fetched."""
    if type(value) is not str:
        return mismatch("String", value)
    parsed = value and _URI_REFERENCE.fullmatch(value) and not _BAD_PERCENT.search(value)
    return None if parsed else [Problem("uri-invalid")]


def attempt(value: Any) -> Problems | None:
    """Attempt number: an integer of at least 1."""
    if type(value) is int and 1 <= value <= MAX_SAFE_INTEGER:
        return None
    if is_uint(value) and value >= 1:
        return [Problem("integer-as-float")]
    return [Problem("attempt-invalid", "", {"found": type_name(value)})]


def session_id(value: Any) -> Problems | None:
    """SessionId: an object with the Strings local and remote, or {} for a party without one."""
    if type(value) is not dict:
        return mismatch("SessionId", value)
    problems: Problems = []
    for name in ("local", "remote"):
        part = value.get(name)
        if value and part is None:
            problems.append(Problem("required-missing", "", {"parameter": name}))
        elif part is not None and type(part) is not str:
            problems += mismatch("String", value[name], step(name))
    return problems or None


def session_ids(value: Any) -> Problems | None:
    """SessionId of a dialog: one, or arrays of them in the shape of its parties, with null where there is none."""
    return _of_parties(value, session_id)


def session_ids_or_texts(value: Any) -> Problems | None:
    """The same in versions up to 0.3.0, where a SessionId was one String (record.md 1.3)."""
    return _of_parties(value, lambda one: None if type(one) is str else session_id(one))


def _of_parties(value: Any, rule: Rule) -> Problems | None:
    if type(value) is not list:
        return rule(value)
    problems: Problems = []
    for index, item in enumerate(value):
        if item is not None:
            found = _of_parties(item, rule) or ()
            problems += [problem._replace(place=step(index) + problem.place) for problem in found]
    return problems or None


def party_event(value: Any) -> Problems | None:
    """Event of a Party_History. Key events had other names in core-01 (record.md 1.3)."""
    if type(value) is not str:
        return mismatch("String", value)
    if value in KEY_EVENT_ALIASES:
        return [Problem("legacy-name", "", {"old": value, "new": KEY_EVENT_ALIASES[value]})]
    return None if value in _HISTORY else [Problem("enum-unknown", "", {"allowed": list(_HISTORY)})]


def civic_address(value: Any) -> Problems | None:
    """Object of Strings; its keys are those of the draft, in lower case."""
    if type(value) is not dict:
        return mismatch("Object", value)
    problems: Problems = []
    for name, part in value.items():
        if name != name.lower():
            problems.append(Problem("civicaddress-case", step(name)))
        elif part is None:
            problems.append(Problem("member-null", step(name)))
        elif type(part) is not str:
            problems += mismatch("String", part, step(name))
        elif name not in CIVIC_KEYS:
            problems.append(Problem("unknown-member", step(name)))
    return problems or None
