"""Where Gemini CLI keeps things: the shape of a file, the parent of a sub-agent, the folder of a project."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from onrecord.base.errors import OnrecordError
from onrecord.base.files import regular_file

PROJECTS: Final = "projects.json"
"""The table of projects below `~/.gemini`."""

BESIDE: Final = frozenset(
    [
        PROJECTS,
        "google_accounts.json",
        "installation_id",
        "mcp-oauth-tokens.json",
        "oauth_creds.json",
        "settings.json",
        "state.json",
        "trustedFolders.json",
    ]
)
"""Files of `~/.gemini` that are no logs; some hold credentials."""

_MAX_PROJECTS: Final = 4 << 20
_ELEMENT: Final = re.compile(r"(\d{1,9})(/.*)?", re.ASCII | re.DOTALL)


def shape_of(head: bytes) -> Literal["lines", "document", "list"]:
    """Say what a file is from its beginning: JSON lines, one object over many lines, or a list."""
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").split(b"\n")]
    filled = [line for line in lines if line]
    if not filled:
        return "lines"
    first = filled[0]
    if first.startswith(b"["):
        return "list"
    if not first.startswith(b"{") or first.endswith(b"}") or len(filled) == 1:
        return "lines"
    return "lines" if filled[1].startswith(b'{"') else "document"


def stem(path: Path) -> str:
    """Return the name of a file without the suffixes of its format."""
    name = path.name
    for suffix in (".zst", ".gz", ".jsonl", ".json"):
        name = name.removesuffix(suffix)
    return name.encode("utf-8", "replace").decode("utf-8") or "log"


def by_element(pointers: Iterable[str], prefix: str) -> dict[int, list[str]]:
    """Divide JSON pointers into a list among its elements."""
    found: dict[int, list[str]] = {}
    for pointer in pointers:
        match = _ELEMENT.fullmatch(pointer[len(prefix) :]) if pointer.startswith(prefix) else None
        if match is not None:
            found.setdefault(int(match[1]), []).append(match[2] or "")
    return found


def parent_of(path: Path) -> str | None:
    """Return the session whose sub-agent has its chat here: `chats/<session id>/<file>`."""
    folder = path.parent
    return folder.name if folder.parent.name == "chats" and folder.name else None


def first_directory(members: Mapping[str, Any]) -> str | None:
    """Return the first of the `directories`."""
    directories = members.get("directories")
    first = directories[0] if isinstance(directories, list) and directories else None
    return first if isinstance(first, str) and first else None


def working_dir(path: Path, header: Mapping[str, Any]) -> str | None:
    """Return the directory of a session: from its header, else from the table of projects of the same store."""
    named = first_directory(header)
    return named if named is not None else _from_table(path, header.get("projectHash"))


def _from_table(path: Path, project_hash: Any) -> str | None:
    """Look the project up by the hash of its directory, or by the name of its folder in the table."""
    folders = path.absolute().parents
    chats = next((place for place in folders[:3] if place.name == "chats"), None)
    if chats is None or chats.parent.parent.name != "tmp":
        return None
    project = chats.parent
    try:
        with regular_file(project.parent.parent / PROJECTS) as (descriptor, status):
            if status.st_size > _MAX_PROJECTS:
                return None
            table = orjson.loads(os.read(descriptor, _MAX_PROJECTS))
    except (OSError, ValueError, OnrecordError):
        return None
    projects = table.get("projects") if isinstance(table, dict) else None
    if not isinstance(projects, dict):
        return None
    directory: str
    for directory, slug in projects.items():
        digest = hashlib.sha256(directory.encode("utf-8")).hexdigest()
        if digest in (project_hash, project.name):
            return directory
        if slug == project.name and not isinstance(project_hash, str):
            return directory
    return None
