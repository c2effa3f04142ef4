"""Patterns of text that redaction rules can name: credentials, e-mail addresses, telephone numbers, home paths, more.

    >>> mask("ask ana@example.com", ("email",))
    ('ask [email removed]', 1)

Each pattern takes time linear in the text, whatever the text is: look-backs and repeats have bounds.

Source: record.md PR-08, 7.2; AA 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from onrecord.record.credentials import MARK as CREDENTIAL_MARK
from onrecord.record.credentials import spans as credential_spans
from onrecord.record.redaction.folding import plain

MARK: Final = "[{} removed]"
"""What stands in place of a text that a pattern found; {} is the name of the pattern."""

CREDENTIALS: Final = "credentials"
"""The pattern that is applied by the secret filter, which also knows names of members."""


class Found(NamedTuple):
    """A part of a text: from `start` to before `end`, and what it is replaced by."""

    start: int
    end: int
    mark: str


Finder = Callable[[str], Iterator[Found]]

_EMAIL_HEAD: Final = re.compile(r"[^\s@<>()\[\]\"',;:\\]{1,64}\Z")
_QUOTED_HEAD: Final = re.compile(r'"[^"\\\n]{1,64}"\Z')
_EMAIL_TAIL: Final = re.compile(
    r"(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_][\w-]{0,62}|\[(?:\d{1,3}\.){3}\d{1,3}\]|\[IPv6:[0-9A-Fa-f:.]{2,45}\]"
)
_MAX_EMAIL_HEAD: Final = 64

_TELEPHONE: Final = re.compile(
    r"(?<![\w.@/+-])"
    r"(?:(?:tel:)?\+[ ]?\d(?:[ ().\-/]{0,2}\d){6,16}"  # international
    r"|00[1-9]\d{0,2}[ /-]\d(?:[ ().\-/]{0,2}\d){5,14}"  # international, as dialled
    r"|tel:[0-9*#](?:[ ().\-/]{0,2}[0-9*#]){2,16}"
    r"|\(\d{2,5}\)[ ]?\d(?:[ .\-/]?\d){4,10}"  # area code in brackets
    r"|\d{3}[ .-]\d{3}[ .-]\d{4}"  # North America
    r"|0\d{1,4}(?:[ /-]\d{2,5}){2,5}|0\d{1,4}[ /-]\d{5,10})"
    r"(?![\w-]|\.\d)",
    re.ASCII | re.IGNORECASE,
)
MIN_TELEPHONE_DIGITS: Final = 7
"""Digits of the shortest number that is taken for one without a scheme: times and versions have fewer."""

_HOME: Final = re.compile(
    r"(?:(?<![\w.])/(?:home|Users)/|[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2})([^/\\\s\"'`<>:;|]{1,64})"
)
_IPV4: Final = re.compile(
    r"(?<![\w.-])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w-]|\.\d)",
    re.ASCII,
)
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{0,5}:[0-9A-Fa-f:]{1,34}(?![\w:])", re.ASCII)
_CARD: Final = re.compile(r"(?<![\w.-])[2-6](?:[ -]?\d){12,18}(?![\w-])", re.ASCII)


def _credentials(text: str) -> Iterator[Found]:
    for span in credential_spans(text):
        yield Found(span.start, span.end, CREDENTIAL_MARK.format(span.pattern))


def _emails(text: str) -> Iterator[Found]:
    done = 0
    at = text.find("@")
    while at >= 0:
        following = at + 1
        head = _EMAIL_HEAD.search(text, max(done, at - _MAX_EMAIL_HEAD), at)
        if head is None and text[at - 1 : at] == '"':
            head = _QUOTED_HEAD.search(text, max(done, at - _MAX_EMAIL_HEAD - 2), at)
        tail = _EMAIL_TAIL.match(text, following)
        if head is not None and tail is not None:
            following = done = tail.end()
            yield Found(head.start(), following, MARK.format("email"))
        at = text.find("@", following)


def _telephones(text: str) -> Iterator[Found]:
    for match in _TELEPHONE.finditer(text):
        if match[0][:4].lower() != "tel:" and sum(map(str.isdigit, match[0])) < MIN_TELEPHONE_DIGITS:
            continue
        yield Found(match.start(), match.end(), MARK.format("telephone"))


def _homes(text: str) -> Iterator[Found]:
    for match in _HOME.finditer(text):
        yield Found(match.start(1), match.end(1), MARK.format("user"))


def _addresses(text: str) -> Iterator[Found]:
    mark = MARK.format("ip-address")
    for match in _IPV4.finditer(text):
        yield Found(match.start(), match.end(), mark)
    if ":" in text:
        for match in _IPV6.finditer(text):
            if _is_ipv6(match[0]):
                yield Found(match.start(), match.end(), mark)


def _is_ipv6(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return text.count(":") > 2 or len(text) > 4


def _cards(text: str) -> Iterator[Found]:
    for match in _CARD.finditer(text):
        digits = [int(char) for char in match[0] if char.isdigit()]
        doubled = [
            digit if index % 2 == 0 else sum(divmod(2 * digit, 10))
            for index, digit in enumerate(digits[::-1])
        ]
        if sum(doubled) % 10 == 0 and len(set(digits)) > 1:
            yield Found(match.start(), match.end(), MARK.format("payment-card"))


PATTERNS: Final[Mapping[str, Finder]] = {
    CREDENTIALS: _credentials,
    "email": _emails,
    "telephone": _telephones,
    "home-path": _homes,
    "ip-address": _addresses,
    "payment-card": _cards,
}
"""Built-in patterns by the name that a rule gives."""


def mask(text: str, names: Iterable[str]) -> tuple[str, int]:
    """Return a text with what the named patterns find replaced, and how many places there were."""
    return mask_with(text, [PATTERNS[name] for name in names])


def mask_with(text: str, finders: Sequence[Finder]) -> tuple[str, int]:
    """Return a text with what the finders find replaced, and how many places there were.

    Where two overlap, the one that begins first counts, and its replacement covers both. Unseen characters, and wide or
    foreign forms of letters and digits, hide nothing.
    """
    found = [part for finder in finders for part in finder(text)]
    simple = plain(text)
    if simple.text != text:
        found += [
            Found(*simple.place(part.start, part.end), part.mark)
            for finder in finders
            for part in finder(simple.text)
            if part.start < part.end
        ]
    if not found:
        return text, 0
    found.sort(key=lambda part: (part.start, -part.end))
    parts: list[str] = []
    position = count = 0
    for start, end, mark in found:
        if start >= position:
            parts += [text[position:start], mark]
            position = end
            count += 1
        elif end > position:
            position = end
    parts.append(text[position:])
    return "".join(parts), count
