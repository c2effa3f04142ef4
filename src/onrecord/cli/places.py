"""Places in a file for people: the first few of many, safe to print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from onrecord.cli.output import visible

SHOWN_PLACES: Final = 3
"""Places named in a line; the report in JSON has them all."""

MAX_PLACE: Final = 100
"""Characters of a place that are printed: the names in it come from the file."""


def places(pointers: Sequence[str]) -> str:
    """Return JSON pointers in a row, the first few of many. A word may follow a pointer."""
    shown = ", ".join(map(_place, pointers[:SHOWN_PLACES]))
    more = len(pointers) - SHOWN_PLACES
    return f"{shown} and {more} more" if more > 0 else shown


def _place(pointer: str) -> str:
    text = visible((pointer or "(top)")[: MAX_PLACE + 1])
    return text if len(text) <= MAX_PLACE else text[:MAX_PLACE] + "…"
