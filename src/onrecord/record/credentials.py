"""Finds credentials in recorded values and replaces them visibly.

    >>> replace({"note": "use AKIAABCDEFGHIJKLMNOP", "password": "x"})
    ({'note': 'use [credential replaced: aws-key-id]', 'password': '[credential replaced: password]'}, 2)

`find` and `replace` go the same way through a value, so what one reports the other changes. Time is linear in the
size of the text, whatever it holds. A hit never carries the text that matched.

Source: record.md 7.2 and D-74; running.md 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from onrecord.record.vcon.paths import Path, pointer_of

MARK: Final = "[credential replaced: {}]"
"""What stands in place of a credential; {} is the name of the pattern or member."""

REMOVED_MARKS: Final = ("[credential replaced:", "[credential removed]")
"""Beginnings of values that say that a credential was taken out before."""

MAX_DEPTH: Final = 256
"""Levels of arrays and objects that are searched. A value from the strict reader has at most half of them; deeper ones
are replaced whole."""

URL_USERINFO: Final = "url-userinfo"

MEMBER_NAMES: Final = frozenset(
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "client_secret",
        "client_assertion",
        "access_token",
        "refresh_token",
        "id_token",
        "session_token",
        "auth_token",
        "api_key",
        "api-key",
        "x-api-key",
        "private_key",
        "credential",
        "credentials",
        "pin",
        "otp",
    ]
)
"""Names of members that hold a credential: whole names, in any case."""

_NAME_LENGTHS: Final = frozenset(map(len, MEMBER_NAMES))
_SCHEMA_TYPES: Final = frozenset(["string", "number", "integer", "boolean", "object", "array", "null"])
_SCHEMA_WORDS: Final = frozenset(
    [
        "$id",
        "$ref",
        "$schema",
        "additionalProperties",
        "allOf",
        "anyOf",
        "deprecated",
        "description",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "properties",
        "readOnly",
        "required",
        "title",
        "type",
        "uniqueItems",
        "writeOnly",
    ]
)
"""Words of JSON schemas that hold no value: an object with any other member beside its type may hold one."""

MIN_KEY_CHARACTERS: Final = 8
"""Shortest member name that is searched: no credential of the patterns is shorter."""


class Hit(NamedTuple):
    """A credential in a value: where, which pattern or member name, and if a "text", a "member" or a "url" gave it."""

    pointer: str
    pattern: str
    kind: str


class Span(NamedTuple):
    """Start and end of a credential in a text, and the name of its pattern."""

    start: int
    end: int
    pattern: str


class Pattern(NamedTuple):
    """One kind of credential.

    `trigger` is a text without which it cannot occur, in any case where `is_folded`; five characters at most, since
    the interpreter searches short texts fastest. `in_json` occurs in every JSON text without \\u escapes in one of
    whose strings the credential stands.
    """

    name: str
    trigger: str
    spans: Callable[[str], Iterator[Span]]
    in_json: re.Pattern[bytes]
    is_folded: bool = False


def _by_expression(
    name: str, trigger: str, expression: str, in_json: bytes, *, is_folded: bool = False
) -> Pattern:
    compiled = re.compile(expression)

    def spans(text: str) -> Iterator[Span]:
        for match in compiled.finditer(text):
            yield Span(match.start(), match.end(), name)

    return Pattern(name, trigger, spans, re.compile(in_json), is_folded)


_TOKEN_END: Final = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_JWT_HEAD: Final = re.compile(r"(?<!\w)eyJ[A-Za-z0-9_-]+\Z")
_USERINFO: Final = re.compile(r"[^\s/?#@:]*:[^\s/?#@]*@")
_SCHEME_END: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z", re.ASCII)
MAX_SCHEME: Final = 64
"""Characters looked back for a URL scheme; the longest registered one has about 40."""

_KEY_BEGIN: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----", re.ASCII)
_KEY_END: Final = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY-----", re.ASCII)


def _jwts(text: str) -> Iterator[Span]:
    """Yield three-part tokens. Each dot is looked at once, and only back to the dot before it."""
    done = 0
    dot = text.find(".eyJ")
    while dot >= 0:
        head_start = dot
        while head_start > done and _TOKEN_END.fullmatch(text, head_start - 1, head_start):
            head_start -= 1
        following = dot + 1
        head = _JWT_HEAD.search(text, head_start, dot)
        middle = _TOKEN_END.match(text, following)
        if head is not None and middle is not None and text[middle.end() : middle.end() + 1] == ".":
            tail = _TOKEN_END.match(text, middle.end() + 1)
            if tail is not None:
                following = done = tail.end()
                yield Span(head.start(), following, "jwt")
        dot = text.find(".eyJ", following)


def _userinfos(text: str) -> Iterator[Span]:
    position = text.find("://")
    while position >= 0:
        following = position + 3
        if _SCHEME_END.search(text, max(0, position - MAX_SCHEME), position):
            match = _USERINFO.match(text, following)
            if match is not None and match.end() - match.start() > 2:
                following = match.end()
                yield Span(match.start(), match.end() - 1, URL_USERINFO)
        position = text.find("://", following)


def _private_keys(text: str) -> Iterator[Span]:
    begin = _KEY_BEGIN.search(text)
    while begin is not None:
        end = _KEY_END.search(text, begin.end())
        stop = len(text) if end is None else end.end()
        yield Span(begin.start(), stop, "private-key")
        begin = _KEY_BEGIN.search(text, stop)


_BLANKS: Final = rb"(?:[ \x80-\xff]|\\[tnrf])++"
"""What white space may look like in a JSON text: a blank, an escape, or a wide character."""

PATTERNS: Final = (
    _by_expression(
        "bearer",
        "earer",
        r"(?i:\bbearer)\s+[A-Za-z0-9._~+/=-]{16,}",
        rb"(?i:bearer)" + _BLANKS + rb"[A-Za-z0-9._~+/=-]{16}",
        is_folded=True,
    ),
    _by_expression(
        "basic",
        "basic",
        r"(?i:\bbasic)\s+[A-Za-z0-9+/=]{12,}",
        rb"(?i:basic)" + _BLANKS + rb"[A-Za-z0-9+/=]{12}",
        is_folded=True,
    ),
    _by_expression("aws-key-id", "AKIA", r"\bAKIA[0-9A-Z]{16}\b", rb"AKIA[0-9A-Z]{16}"),
    _by_expression("aws-session-key-id", "ASIA", r"\bASIA[0-9A-Z]{16}\b", rb"ASIA[0-9A-Z]{16}"),
    *(
        _by_expression(
            "github-token",
            f"gh{kind}_",
            rf"\bgh{kind}_[A-Za-z0-9]{{36,}}",
            rf"gh{kind}_[A-Za-z0-9]{{36}}".encode("ascii"),
        )
        for kind in "pousr"
    ),
    _by_expression("github-pat", "b_pat", r"\bgithub_pat_[A-Za-z0-9_]{50,}", rb"github_pat_[A-Za-z0-9_]{50}"),
    _by_expression("slack-token", "xox", r"\bxox[abprs]-[A-Za-z0-9-]{10,}", rb"xox[abprs]-[A-Za-z0-9-]{10}"),
    _by_expression("api-key-sk", "sk-", r"\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}", rb"sk-[A-Za-z0-9_-]{20}"),
    _by_expression("google-api-key", "AIza", r"\bAIza[0-9A-Za-z_-]{35}", rb"AIza[0-9A-Za-z_-]{35}"),
    Pattern("jwt", ".eyJ", _jwts, re.compile(rb"\.eyJ[A-Za-z0-9_-]*+\.")),
    Pattern("private-key", "KEY--", _private_keys, re.compile(rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")),
    Pattern(URL_USERINFO, "://", _userinfos, re.compile(rb'://(?:\\.|[^\\"/?#@ ])*+@')),
)
"""The patterns, at least those that record.md 7.2 asks for."""


def active_patterns(raw: bytes) -> tuple[Pattern, ...]:
    """Return the patterns that can occur in any string of a JSON text, judged by its bytes.

    An escape can spell any letter, so with one in the text all patterns stay.
    """
    if b"\\u" in raw or b"\\/" in raw:
        return PATTERNS
    folded = raw.lower()
    return tuple(
        pattern
        for pattern in PATTERNS
        if pattern.trigger.encode("ascii") in (folded if pattern.is_folded else raw)
        and pattern.in_json.search(raw)
    )


def spans(text: str, patterns: tuple[Pattern, ...] = PATTERNS) -> list[Span]:
    """Return where credentials stand in a text, in order, without overlaps."""
    found: list[Span] = []
    for pattern in patterns:
        if pattern.trigger in (text.lower() if pattern.is_folded else text):
            found.extend(pattern.spans(text))
    if len(found) < 2:
        return found
    found.sort(key=lambda span: (span.start, -span.end))
    apart: list[Span] = []
    for span in found:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
        elif span.end > apart[-1].end:
            apart[-1] = apart[-1]._replace(end=span.end)
    return apart


def is_credential_name(name: str) -> bool:
    """Say whether a member of this name holds a credential."""
    return len(name) in _NAME_LENGTHS and name.lower() in MEMBER_NAMES


def is_replaced(value: Any) -> bool:
    """Say whether a value is the mark of a credential that was taken out, and nothing else."""
    return isinstance(value, str) and value.startswith(REMOVED_MARKS) and value.find("]") == len(value) - 1


def find(value: Any, *, pointer: str = "", patterns: tuple[Pattern, ...] = PATTERNS) -> list[Hit]:
    """Return the credentials in a JSON value, in document order, with pointers that begin with `pointer`."""
    hits = list(search(value, pointer=pointer, patterns=patterns))
    hits.reverse()
    return hits


def search(value: Any, *, pointer: str = "", patterns: tuple[Pattern, ...] = PATTERNS) -> Iterator[Hit]:
    """Yield what `find` returns, the last first, so that a file full of credentials need not fill memory with hits."""
    work: list[tuple[Any, Path, str]] = [(value, None, "")]
    while work:
        item, path, name = work.pop()
        kind = type(item)
        if kind is dict:
            inside = "" if _is_schema(item) else name
            for key, member in item.items():
                if patterns and len(key) >= MIN_KEY_CHARACTERS:
                    for span in spans(key, patterns):
                        # The place is the object: a pointer to the member would quote the credential.
                        yield Hit(pointer_of(path, pointer), span.pattern, _kind_of(span))
                own = key.lower() if is_credential_name(key) else inside
                kind = type(member)
                if own or kind is dict or kind is list or (patterns and kind is str):
                    work.append((member, (path, key), own))
        elif kind is list:
            for index, member in enumerate(item):
                kind = type(member)
                if name or kind is dict or kind is list or (patterns and kind is str):
                    work.append((member, (path, index), name))
        elif kind is str:
            if patterns:
                for span in reversed(spans(item, patterns)):
                    yield Hit(pointer_of(path, pointer), span.pattern, _kind_of(span))
            if name and item and not is_replaced(item):
                yield Hit(pointer_of(path, pointer), name, "member")
        elif name and _is_number(item):
            yield Hit(pointer_of(path, pointer), name, "member")


def _kind_of(span: Span) -> str:
    return "url" if span.pattern == URL_USERINFO else "text"


def replace(value: Any) -> tuple[Any, int]:
    """Return a copy of a JSON value with each credential replaced by its mark, and how many were replaced.

    In a member that is named like a credential every text and number is replaced, also inside of arrays and objects
    there; an object that describes a value (a JSON schema) is gone through like any other. A value in which nothing
    was replaced is returned as it is.

    Source: record.md D-74.
    """
    return _replace(value, "", 0)


def _replace(value: Any, name: str, depth: int) -> tuple[Any, int]:
    kind = type(value)
    if kind is str:
        if name and value and not is_replaced(value):
            return MARK.format(name), 1
        return replace_in_text(value)
    if kind is dict or kind is list:
        if depth >= MAX_DEPTH:
            return MARK.format("nested too deep"), 1
        return _replace_in_dict(value, name, depth) if kind is dict else _replace_in_list(value, name, depth)
    if name and _is_number(value):
        return MARK.format(name), 1
    return value, 0


def _replace_in_dict(value: dict[str, Any], name: str, depth: int) -> tuple[Any, int]:
    inside = "" if _is_schema(value) else name
    count = 0
    members: dict[str, Any] = {}
    used: dict[str, int] = {}
    for key, member in value.items():
        own = key.lower() if is_credential_name(key) else inside
        replaced, found = _replace(member, own, depth + 1)
        count += found
        if len(key) >= MIN_KEY_CHARACTERS:
            clean, found = replace_in_text(key)
            if found:
                count += found
                members[_unused(clean, used, value)] = replaced
                continue
        members[key] = replaced
    return (members, count) if count else (value, 0)


def _unused(name: str, used: dict[str, int], members: dict[str, Any]) -> str:
    """Return a name for a member whose own was replaced, so that it takes no other member's place."""
    used[name] = used.get(name, 0) + 1
    own = name if used[name] == 1 else f"{name} {used[name]}"
    while own in members:
        used[name] += 1
        own = f"{name} {used[name]}"
    return own


def _replace_in_list(value: list[Any], name: str, depth: int) -> tuple[Any, int]:
    count = 0
    items: list[Any] = []
    for item in value:
        replaced, found = _replace(item, name, depth + 1)
        items.append(replaced)
        count += found
    return (items, count) if count else (value, 0)


def replace_in_text(text: str) -> tuple[str, int]:
    """Return a text with each credential replaced by its mark, and how many were replaced."""
    found = spans(text)
    if not found:
        return text, 0
    parts: list[str] = []
    position = 0
    for span in found:
        parts += [text[position : span.start], MARK.format(span.pattern)]
        position = span.end
    parts.append(text[position:])
    return "".join(parts), len(found)


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_schema(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind in _SCHEMA_TYPES and value.keys() <= _SCHEMA_WORDS
