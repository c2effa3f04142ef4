"""Other names of one file: a bind mount shows it below directories with other rights.

Source: proc_pid_mountinfo(5).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOUNTS = Path("/proc/self/mountinfo")

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One row: the device, the directory of its file system that is shown, and where."""

    device: str
    root: Path
    place: Path


def read_mounts() -> tuple[Mount, ...]:
    """Return all mounts in their order, or none where they cannot be read."""
    try:
        rows = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ()
    fields = (row.split(" ") for row in rows)
    return tuple(Mount(one[2], _path(one[3]), _path(one[4])) for one in fields if len(one) > 4)


def other_names(path: Path, mounts: tuple[Mount, ...]) -> tuple[Path, ...]:
    """Return the other paths at which these mounts show what `path` names."""
    mount = _mount_of(path, mounts)
    if mount is None:
        return ()
    inside = mount.root / path.relative_to(mount.place)
    found = []
    for other in mounts:
        if other.device == mount.device and inside.is_relative_to(other.root):
            name = other.place / inside.relative_to(other.root)
            if name != path and _mount_of(name, mounts) is other:
                found.append(name)
    return tuple(dict.fromkeys(found))


def _mount_of(path: Path, mounts: tuple[Mount, ...]) -> Mount | None:
    """Return the mount that a path lies in: the longest place, the last one of equal ones."""
    around = [one for one in mounts if path.is_relative_to(one.place)]
    return max(reversed(around), key=lambda one: len(one.place.parts), default=None)


def _path(text: str) -> Path:
    return Path(os.fsdecode(_ESCAPE.sub(lambda one: chr(int(one[1], 8)), text)))
