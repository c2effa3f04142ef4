"""The checkout as other uids see it."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from support.data import REPOSITORY

PARTS = ("tests", "docs", "examples", "pyproject.toml", "README.md")
"""What tests that run as another uid read of the checkout."""


def open_checkout(directory: Path, *, uid: int) -> Path:
    """Return the checkout if every uid can reach it, else a copy of what tests need of it, below `directory`."""
    places = [REPOSITORY, *REPOSITORY.parents]
    if all(stat.S_IMODE(os.stat(place).st_mode) & 0o005 for place in places):
        return REPOSITORY
    copy = directory / "checkout"
    copy.mkdir()
    for name in PARTS:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy(source, copy / name)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)
    return copy


def installed_servers() -> Path:
    """Return the directory of installed servers: `$ONRECORD_TEST_SERVERS`, else `.test-servers` of the checkout."""
    named = os.environ.get("ONRECORD_TEST_SERVERS")
    return Path(named) if named else (REPOSITORY / ".test-servers").resolve()
