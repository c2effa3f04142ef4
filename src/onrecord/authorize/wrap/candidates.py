"""Which files of MCP clients are there, and what directory a client starts the servers of a file in.

Source: running.md 5.3.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_IN_HOME: Final = (
    ("Claude Desktop", "{config}/Claude/claude_desktop_config.json"),
    ("Claude Code", "{home}/.claude.json"),
    ("Cursor", "{home}/.cursor/mcp.json"),
    ("VS Code", "{config}/Code/User/mcp.json"),
    ("Codex", "{codex}/config.toml"),
)
_IN_PROJECT: Final = (
    ("Claude Code", ".mcp.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".vscode/mcp.json"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file of a client at one of its usual places."""

    client: str
    path: Path


def candidates(*, environ: Mapping[str, str], project: Path) -> tuple[Candidate, ...]:
    """Return the client files that exist: those of the user, then those of the directory `project`."""
    home = environ.get("HOME") or "/nonexistent"
    places = {
        "home": home,
        "config": environ.get("XDG_CONFIG_HOME") or f"{home}/.config",
        "codex": environ.get("CODEX_HOME") or f"{home}/.codex",
    }
    found = [(client, Path(place.format(**places))) for client, place in _IN_HOME]
    found += [(client, project / place) for client, place in _IN_PROJECT]
    unique = {path: Candidate(client=client, path=path) for client, path in found if os.path.isfile(path)}
    return tuple(unique.values())


def start_directory(file: Path) -> Path | None:
    """Return the directory in which a client starts the servers of a project's file; None if it is not a project's.

    Relative paths in such a file count from there.
    """
    if file.name == ".mcp.json":
        return file.parent
    if file.name == "mcp.json" and file.parent.name in (".cursor", ".vscode"):
        project = file.parent.parent
        return None if file.parent.name == ".cursor" and _is_home(project) else project
    return None


def _is_home(directory: Path) -> bool:
    """Say whether this is the home directory of its owner: Cursor's own file lies there."""
    try:
        home = pwd.getpwuid(os.stat(directory).st_uid).pw_dir
    except (OSError, KeyError):
        home = ""
    return str(directory) in (home, os.path.expanduser("~"))
