"""What the place of a file says: what lies in Claude Code's folder and is no log, which log is read behind others.

Source: native-logs.md 4.1 (Place, `progress`), R-21.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final

NO_LOGS: Final = frozenset(
    [
        ".claude.json",
        ".credentials.json",
        "config.json",
        "history.jsonl",
        "keybindings.json",
        "mcp-needs-auth-cache.json",
        "policy-limits.json",
        "remote-settings.json",
        "settings.json",
        "settings.local.json",
        "stats-cache.json",
    ]
)
"""Files in the folder `.claude` that hold keys, settings and sums."""

NO_LOG_FOLDERS: Final = frozenset(
    [
        "backups",
        "cache",
        "chrome",
        "debug",
        "downloads",
        "file-history",
        "ide",
        "image-cache",
        "paste-cache",
        "plugins",
        "session-env",
        "shell-snapshots",
        "statsig",
        "tasks",
        "telemetry",
        "todos",
    ]
)
"""Folders in the folder `.claude` that hold no logs of sessions."""

_QUOTED: Final = b'"agent_progress"'
_PIECE: Final = 1 << 20


def lies_beside_logs(path: Path) -> bool:
    """Say whether a path names something in Claude Code's folder that is no log of a session."""
    parts = path.parts
    if ".claude" not in parts:
        return False
    last = len(parts) - 1
    return any(
        folder == ".claude" and name in (NO_LOGS if place == last else NO_LOG_FOLDERS)
        for place, (folder, name) in enumerate(pairwise(parts), 1)
    )


def quotes_agents(path: Path) -> bool:
    """Say whether a session's file quotes messages of sub-agents that have files of their own.

    Agents that were given a copy of the session (`acompact`) repeat it, so that it must be read before them.
    """
    if path.suffix != ".jsonl":
        return False
    try:
        names = [entry.name for entry in (path.parent / path.stem / "subagents").iterdir()]
        if not any(name.startswith("agent-") for name in names):
            return False
        if any(name.startswith("agent-acompact") for name in names):
            return False
        with path.open("rb") as stream:
            before = b""
            while piece := stream.read(_PIECE):
                if _QUOTED in before + piece:
                    return True
                before = piece[-len(_QUOTED) :]
    except OSError:
        return False
    return False
