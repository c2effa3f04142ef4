"""Command lines and resource names, as facts for policy.

    >>> normalize("git log --oneline")
    CommandFact(program='git', simple=True)
    >>> normalize("git log; rm -rf /")
    CommandFact(program='git', simple=False)

Source: call-proof.md 8.3.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from typing import Final, NamedTuple

MAX_COMMAND_CHARS: Final = 16_384
"""Longest command judged; shlex reads character by character, and a call must not hold up the authority."""

MAX_RESOURCE_BYTES: Final = 1024
"""Longest resource name judged."""

_META = re.compile(r"[|&;<>()$`\\*?\[\]{}~!#%^\x00-\x1f\x7f-\x9f\u2028\u2029]")
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


class CommandFact(NamedTuple):
    """A judged command: its first word, and whether it is free of shell metacharacters."""

    program: str
    simple: bool


def normalize(text: str) -> CommandFact | None:
    """Return the fact of one command line, or None for unbalanced quotes, no word, a NUL or too much text.

    `simple` is false as soon as a shell could do more than start that program: metacharacters, control characters,
    or an assignment in front.
    """
    if len(text) > MAX_COMMAND_CHARS or "\0" in text:
        return None
    try:
        words = shlex.split(text)
        text.encode()
    except ValueError:
        return None
    if not words or not words[0]:
        return None
    return CommandFact(words[0], _META.search(text) is None and "=" not in words[0])


def resource(value: str | int) -> str | None:
    """Return a resource name, or None for control, bidirectional or zero-width characters, not NFC, or too long."""
    text = str(value)
    if not text or _REFUSED.search(text) is not None or not unicodedata.is_normalized("NFC", text):
        return None
    return text if len(text.encode()) <= MAX_RESOURCE_BYTES else None
