"""The user's message of Cursor, cut into what a person typed and what the editor put around it (D-LOG-07)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

QUERY: Final = "user_query"
TIMESTAMP: Final = "timestamp"

INJECTED: Final = frozenset(
    [
        "additional_data",
        "attached_files",
        "git_status",
        "open_and_recently_viewed_files",
        "rules",
        "system_reminder",
        "user_info",
    ]
)
"""Tags around text of the editor."""

_OPEN: Final = re.compile(f"<({'|'.join(sorted(INJECTED | {QUERY, TIMESTAMP}))})>")


class Cut(NamedTuple):
    """A piece of a message: `tag` is None for text outside the tags; `text` is without the tag, `whole` with it."""

    tag: str | None
    text: str
    whole: str


def cuts(text: str) -> Iterator[Cut]:
    """Yield the pieces of a message in their order. A tag that is not closed is text; time is linear."""
    position = start = 0
    never_closed: set[str] = set()
    while (found := _OPEN.search(text, position)) is not None:
        tag = found[1]
        position = found.end()
        if tag in never_closed:
            continue
        end = text.find(f"</{tag}>", position)
        if end < 0:
            never_closed.add(tag)
            continue
        yield from _outside(text[start : found.start()])
        start = end + len(tag) + 3
        yield Cut(tag, _bare(text[position:end]), text[found.start() : start])
        position = start
    yield from _outside(text[start:])


def _outside(text: str) -> Iterator[Cut]:
    if text.strip():
        bare = _bare(text)
        yield Cut(None, bare, text)


def _bare(text: str) -> str:
    """Take away the line breaks that belong to the tags."""
    return text.removeprefix("\r").removeprefix("\n").removesuffix("\n").removesuffix("\r")
