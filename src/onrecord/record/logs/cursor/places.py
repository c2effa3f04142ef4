"""Where transcripts lie: `<id>/<id>.jsonl`, and those of sub-agents in `<id>/subagents/`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_SUFFIXES: Final = (".zst", ".gz", ".jsonl")
_MAX_NAMES: Final = 1000


def stem(path: Path) -> str:
    """Return the session id that the name of a transcript tells."""
    name = path.name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name.encode("utf-8", "replace").decode("utf-8") or "log"


def parent_of(path: Path) -> str | None:
    """Return the session above that of a file in `subagents/`: that of the folder, or of the one file beside it."""
    folder = path.absolute().parent
    if folder.name != "subagents":
        return None
    above = folder.parent
    try:
        with os.scandir(above) as found:
            names = {
                stem(Path(entry.name))
                for entry, _ in zip(found, range(_MAX_NAMES), strict=False)
                if ".jsonl" in entry.name
            }
    except OSError:
        names = set()
    if above.name not in names and len(names) == 1:
        return names.pop()
    return above.name or None
