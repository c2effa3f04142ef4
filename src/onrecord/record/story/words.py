"""Words of the story: times, lengths, names and excerpts of content, all safe to print."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onrecord.record.plain_text import LINE_CHARACTERS, excerpt, visible
from onrecord.record.vcon.bodies import has_body, mediatype_of

NAME_CHARACTERS: Final = 80
"""Characters of a name shown: those of long server URLs fit."""

SHOWN_NAMES: Final = 4
"""Names listed in a row, for instance the parties of a recording; the rest is counted."""

_BLOCKS: Final = 20
_FOREVER_MS: Final = 10**15
_LARGEST: Final = 2**63
"""Numbers beyond are not written out: no counter reaches them, and a hostile one can have a million digits."""

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt](?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_INK: Final = re.compile(r"\S")
_PARTY_NAMES: Final = ("name", "tel", "mailto", "sip", "did", "uuid")


def name(text: str) -> str:
    """Return a name on one line, cut. Two blanks part the columns of a line, so a name has no two in a row."""
    return _in_column(visible(text, limit=NAME_CHARACTERS))


def _in_column(text: str) -> str:
    return text.replace("  ", " ␣") if "  " in text else text


def short(text: str) -> str:
    """Return a text cut to the characters of a name, otherwise as it is: not yet safe to print."""
    return text if len(text) <= NAME_CHARACTERS else text[: NAME_CHARACTERS - 1] + "…"


def names(texts: Sequence[str]) -> str:
    """Return names in a row, the first few of many."""
    shown = ", ".join(name(text) for text in texts[:SHOWN_NAMES])
    return shown if len(texts) <= SHOWN_NAMES else f"{shown} and {len(texts) - SHOWN_NAMES} more"


def count(number: int, word: str) -> str:
    """Return "1 message", "2 messages", "10,000 messages"."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def party_name(party: Any, index: int) -> str:
    """Return what a party is called: its name, else how it is reached, else its number.

    It is cut, since every entry of the party repeats it.
    """
    if type(party) is dict:
        for member in _PARTY_NAMES:
            value = party.get(member)
            if type(value) is str and value:
                return short(value)
    return f"party {index}"


def party_of(parties: Sequence[str], index: int | None) -> str:
    """Return the name of the party of an index, whatever the index is."""
    if index is None:
        return "unknown"
    return parties[index] if 0 <= index < len(parties) else f"party {index}"


def clock(time: str | None) -> str:
    """Return the time of day with milliseconds, so that a column of them can be read; else the text itself."""
    if time is None:
        return ""
    parts = _TIME.fullmatch(time)
    if parts is None:
        return _in_column(visible(time, limit=24))
    return f"{parts['clock']}.{(parts['fraction'] or '')[:3]:0<3}{parts['zone']}"


def day(time: str | None) -> str | None:
    """Return the date of a date-time as written, or None."""
    return time[:10] if time is not None and _TIME.fullmatch(time) else None


def moment(time: str) -> str:
    """Return a date-time with a blank between date and time."""
    return f"{time[:10]} {time[11:]}" if _TIME.fullmatch(time) else name(time)


def length(milliseconds: float) -> str:
    """Return how long something took, with the unit that people would use."""
    if milliseconds >= _FOREVER_MS:
        return "forever"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 120_000:
        return f"{milliseconds / 1_000:.1f} s"
    if milliseconds < 7_200_000:
        return f"{milliseconds / 60_000:.1f} min"
    if milliseconds < 360_000_000:
        return f"{milliseconds / 3_600_000:.1f} h"
    return f"{milliseconds / 86_400_000:,.0f} days"


def content_of(members: Mapping[str, Any]) -> str | None:
    """Return an excerpt of the content of a message or event, or None if there is none. Nothing is fetched."""
    if has_body(members):
        return _body(members)
    for member in ("input", "output", "content", "data"):
        if members.get(member) not in (None, ""):
            return value_excerpt(members[member])
    url = members.get("url")
    if type(url) is str:
        return f"at {excerpt(url)}"
    return "removed, its hash is kept" if members.get("content_hash") not in (None, "", []) else None


def _body(members: Mapping[str, Any]) -> str:
    body, encoding, mediatype = members["body"], members.get("encoding"), _mediatype(members)
    if encoding not in ("base64url", "base64", "json", "none"):
        # Shown to people, a text that might be base64url is better read than counted (record.md D-16 for programs).
        encoding = "none" if mediatype is None or _is_text(mediatype) else "base64url"
    if encoding not in ("base64url", "base64") or type(body) is not str:
        return value_excerpt(body)
    text = _decoded(body) if mediatype is not None and _is_text(mediatype) else None
    if text is not None:
        return text
    return f"{len(body) * 3 // 4:,} bytes of {name(mediatype) if mediatype else 'base64url'}"


def _is_text(mediatype: str) -> bool:
    return mediatype[:5].lower() == "text/" or mediatype[:16].lower() == "application/json"


def _mediatype(members: Mapping[str, Any]) -> str | None:
    return mediatype_of(members)


def _decoded(body: str) -> str | None:
    """Return the beginning of a text in base64url."""
    head = body[: 16 * LINE_CHARACTERS].rstrip("=")
    head = head[: len(head) // 4 * 4] if len(body) > len(head) + 2 else head + "=" * (-len(head) % 4)
    try:
        data = b64decode(head.replace("+", "-").replace("/", "_"), altchars=b"-_")
    except (BinasciiError, ValueError):
        return None
    try:
        text = getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return None
    return excerpt(_beginning(text, more=len(body) > len(head) + 2)) or None


def value_excerpt(value: Any) -> str:
    """Return the beginning of a value; of the content blocks that agents and MCP servers use, their text."""
    if type(value) is str:
        return excerpt(_beginning(value))
    blocks = value
    if type(value) is dict and value.keys() <= {"content", "isError", "structuredContent"}:
        blocks = value.get("content")
    if type(blocks) is list and blocks:
        texts = [_block(block) for block in blocks[:_BLOCKS]]
        words = " ".join(text for text in texts if text)
        if words and None not in texts:
            return excerpt(words if len(blocks) <= _BLOCKS else f"{words} …")
    return excerpt(value)


def _beginning(text: str, *, more: bool = False) -> str:
    """Return what of a text can come into an excerpt, from its first letter on, with an ellipsis if more follows."""
    first = _INK.search(text)
    if first is None:
        return "…" if more else ""
    end = first.start() + 4 * LINE_CHARACTERS
    head = text[first.start() : end].rstrip()
    return f"{head}…" if more or len(text) > end else head


def _block(block: Any) -> str | None:
    """Return the text of a content block, "[image]" and such for others, None for what is no block."""
    if type(block) is not dict or type(block.get("type")) is not str:
        return None
    if block["type"] == "text":
        text = block.get("text")
        return _beginning(text) if type(text) is str else None
    return f"[{block['type'][:NAME_CHARACTERS]}]"


def tokens(usage: Any) -> str | None:
    """Return the token usage of a message in short, or None."""
    if type(usage) is not dict:
        return None
    parts = [
        f"{usage[member]:,} {word}"
        for member, word in (
            ("input", "in"),
            ("output", "out"),
            ("cached", "cached"),
            ("reasoning", "reasoning"),
        )
        if _is_number(usage.get(member))
    ]
    if not parts and _is_number(usage.get("total")):
        parts = [f"{usage['total']:,}"]
    cost = usage.get("cost")
    words = f"{', '.join(parts)} tokens" if parts else ""
    if cost is not None and _is_number(cost):
        words += f"{', ' if words else ''}{money(cost)}"
    return words or None


def money(cost: float) -> str:
    """Return US dollars, with as many decimals as small amounts need."""
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:,.4f}"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -_LARGEST < value < _LARGEST
