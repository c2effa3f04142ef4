"""The patterns of credentials in text, and which of them a JSON text can hold at all.

    >>> [pattern.name for pattern in active_patterns(b'{"note":"use AKIAABCDEFGHIJKLMNOP"}')]
    ['aws-key-id']

Time is linear in the size of the text, whatever it holds.

Source: record.md 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

URL_USERINFO: Final = "url-userinfo"


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


FOLDED_BYTES: Final = 131_072
"""Part of a text that is folded to lower case at once, so that no copy of a large text is made."""


def active_patterns(raw: bytes) -> tuple[Pattern, ...]:
    """Return the patterns that can occur in any string of a JSON text, judged by its bytes.

    An escape can spell any letter, so with one in the text all patterns stay.
    """
    if b"\\u" in raw or b"\\/" in raw:
        return PATTERNS
    return tuple(
        pattern
        for pattern in PATTERNS
        if _occurs(pattern.trigger.encode("ascii"), raw, is_folded=pattern.is_folded)
        and pattern.in_json.search(raw)
    )


def _occurs(trigger: bytes, raw: bytes, *, is_folded: bool) -> bool:
    if not is_folded:
        return trigger in raw
    return any(
        trigger in raw[start : start + FOLDED_BYTES + len(trigger)].lower()
        for start in range(0, len(raw), FOLDED_BYTES)
    )
