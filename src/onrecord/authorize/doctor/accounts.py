"""What the accounts of this machine give to a uid beyond what one process holds just now.

Source: call-proof.md 1.5 (I1, I3, I8); getgrouplist(3), newgrp(1), subuid(5).
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

SUBUID: Final = Path("/etc/subuid")
SUBGID: Final = Path("/etc/subgid")


def account_groups(uid: int) -> frozenset[int]:
    """Return the groups of the account of `uid`: a process can take each of them by newgrp(1), without a password."""
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    return frozenset(os.getgrouplist(account.pw_name, account.pw_gid))


def subordinate_ids(uid: int, file: Path, wanted: Collection[int]) -> tuple[int, ...]:
    """Return which of the `wanted` numbers a file such as /etc/subuid lends to `uid` (newuidmap(1))."""
    names = {str(uid)}
    try:
        names.add(pwd.getpwuid(uid).pw_name)
    except KeyError:
        pass
    try:
        rows = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    found: set[int] = set()
    for row in rows:
        name, _, numbers = row.partition(":")
        start, _, count = numbers.partition(":")
        if name in names and start.isdecimal() and count.isdecimal():
            lent = range(int(start), int(start) + int(count))
            found |= {one for one in wanted if one in lent}
    return tuple(sorted(found))


def privileged_files(
    directories: Iterable[Path], *, uids: Collection[int], gids: Collection[int]
) -> tuple[Path, ...]:
    """Return the programs in these directories that give who executes them one of the uids or gids."""
    found = []
    for directory in dict.fromkeys(directories):
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            try:
                status = entry.stat()
            except OSError:
                continue
            gives = (status.st_mode & stat.S_ISUID and status.st_uid in uids) or (
                status.st_mode & stat.S_ISGID and status.st_gid in gids
            )
            if gives and stat.S_ISREG(status.st_mode) and os.access(entry.path, os.X_OK, effective_ids=True):
                found.append(Path(entry.path))
    return tuple(found)
