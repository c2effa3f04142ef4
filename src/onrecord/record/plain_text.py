"""Content made safe to look at: one line, no control, bidirectional or invisible characters, no markup.

    >>> visible("a\\x1b[31m\\u202eb")
    'a\\\\u{1b}[31m\\\\u{202e}b'

Source: record.md PR-14; AA 8.4.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import orjson

from onrecord.base.escapes import escape_hidden

LINE_CHARACTERS: Final = 120
"""Characters of content shown on a line: enough to recognize a call, too few to flood a terminal."""

_SCANNED: Final = 4 * LINE_CHARACTERS
_PARTS: Final = 20
"""Members or elements of a value that are looked at: more of them seldom fit into a line."""

_LARGEST: Final = 2**63
"""Numbers from here on are not written out: they can have a million digits."""

_ON_ONE_LINE: Final = str.maketrans({"\n": "⏎", "\t": " ", "\xa0": " "})


def visible(text: str, *, limit: int | None = None) -> str:
    """Return a text on one line with everything that steers a terminal or hides text written out as \\u{hex}.

    With `limit` it is cut to so many characters, and the cut is shown.
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return escape_hidden(text.translate(_ON_ONE_LINE))


def excerpt(value: Any, *, limit: int = LINE_CHARACTERS) -> str:
    """Return the beginning of a JSON value on one line, safe to look at."""
    if isinstance(value, str):
        return visible(value, limit=limit)
    try:
        text = orjson.dumps(_shortened(value, 3)).decode("utf-8")
    except (TypeError, ValueError, RecursionError):
        return "(a value that cannot be shown)"
    return visible(text, limit=limit)


def _shortened(value: Any, depth: int) -> Any:
    """Return the parts of a value that can come into an excerpt: few members, short texts, few levels."""
    if isinstance(value, str):
        return value[:_SCANNED].encode("utf-8", "replace").decode("utf-8")
    shown = _PARTS if depth else 0
    if isinstance(value, dict):
        parts: dict[str, Any] = {
            str(_shortened(name, 0)): _shortened(item, depth - 1)
            for name, item in islice(value.items(), shown)
        }
        return parts if len(value) <= shown else {**parts, "…": len(value) - shown}
    if isinstance(value, list):
        items = [_shortened(item, depth - 1) for item in value[:shown]]
        return items if len(value) <= shown else [*items, f"… {len(value) - shown}"]
    if type(value) in (int, float) and not -_LARGEST < value < _LARGEST:
        return "(a large number)"
    return value
