"""The git repository of the demonstration: two commits, and one change that is staged and not committed.

`git reset` would take the staged change back, so an untouched index shows that it did not run.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Final

from onrecord.base.errors import StorageError, Where

COMMITS: Final = ("Count parcels", "Show the weight of a parcel")
"""Subjects of the commits, oldest first."""

GIT_SECONDS: Final = 30

_TEXTS: Final = (
    "export const parcels = new Map<string, number>();\n",
    "export const parcels = new Map<string, number>();\nexport const weights = new Map<string, number>();\n",
    "// Not finished.\nexport const parcels = new Map<string, number>();\n",
)


def make_repository(directory: Path) -> None:
    """Make the repository; configuration, templates and hooks of whoever runs this play no part.

    Raises `StorageError` with code "git-repository".
    """
    directory.mkdir(mode=0o700, parents=True)
    _git(directory, "init", "--quiet", "--template=", "--initial-branch=main")
    file = directory / "parcels.ts"
    for text, subject in zip(_TEXTS, (*COMMITS, None), strict=True):
        file.write_text(text)
        _git(directory, "add", "parcels.ts")
        if subject is not None:
            _git(directory, "commit", "--quiet", "--message", subject)


def fingerprint(directory: Path) -> str:
    """Return a hash over HEAD, all references and the index."""
    place = directory / ".git"
    files = [place / "HEAD", place / "index", place / "packed-refs", *sorted((place / "refs").rglob("*"))]
    found = hashlib.sha256()
    for path in files:
        if path.is_file():
            found.update(f"{path.relative_to(place)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _git(directory: Path, *arguments: str) -> None:
    person = {"NAME": "Linus Example", "EMAIL": "linus@example.com", "DATE": "2026-10-01T09:00:00Z"}
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    environment |= {
        f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in person.items()
    }
    try:
        subprocess.run(
            ["git", *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StorageError(
            f"git {arguments[0]} failed ({type(error).__name__})",
            code="git-repository",
            where=Where(str(directory)),
        ) from error
