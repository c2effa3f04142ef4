"""Unused numeric uids for a demonstration or a test that was started as root.

Agent, servers, authority, recorder and approver must be different principals, and no accounts are made for them.

Source: running.md 2.3.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

FIRST: Final = 59000
LAST: Final = 59999
"""The range that is searched; below are accounts, and 60000 and above belong to systemd and containers."""

BLOCK_SIZE: Final = 16
"""Uids of one block: five to eight principals, and as many socket groups."""

LOCK_FILE: Final = Path("/run/onrecord-uids.lock")
"""Where a process marks the block it has chosen. Nobody but root can put a file there. It is empty, and stays."""


def mapped_uids(text: str) -> Callable[[int], bool]:
    """Return a test for uids that a user namespace maps; `text` is /proc/self/uid_map (user_namespaces(7))."""
    ranges = []
    for line in text.splitlines():
        inside, _, length = (int(part) for part in line.split())
        ranges.append(range(inside, inside + length))
    return lambda uid: any(uid in one for one in ranges)


def uids_in_use(proc: Path = Path("/proc")) -> frozenset[int]:
    """Return the uids (real, effective, saved, file system) of all processes that can be seen."""
    found: set[int] = set()
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            for line in status.splitlines():
                if line.startswith("Uid:"):
                    found.update(int(part) for part in line.split()[1:])
                    break
    return frozenset(found)


def _has_account(number: int) -> bool:
    for known in (pwd.getpwuid, grp.getgrgid):
        try:
            known(number)
        except KeyError:
            continue
        return True
    return False


def find_uid_block(
    *,
    has_account: Callable[[int], bool] = _has_account,
    in_use: frozenset[int] | None = None,
    is_mapped: Callable[[int], bool] | None = None,
    take: Callable[[range], bool] = lambda _block: True,
) -> range | None:
    """Return the first block of 16 consecutive numbers that are nobody's, or None.

    No user or group has such a number, no process runs under it, and the user namespace maps it. `take` is asked
    last and may refuse a block. The other arguments stand for the machine and are given in tests.

    Source: running.md 2.3.
    """
    used = uids_in_use() if in_use is None else in_use
    if is_mapped is None:
        try:
            is_mapped = mapped_uids(Path("/proc/self/uid_map").read_text(encoding="ascii"))
        except OSError:
            return None
    for start in _starts():
        block = range(start, start + BLOCK_SIZE)
        if all(is_mapped(uid) and uid not in used and not has_account(uid) for uid in block) and take(block):
            return block
    return None


def reserve_uid_block(path: Path = LOCK_FILE) -> range | None:
    """Return a block as `find_uid_block` does, which no other process gets from here while this one lives.

    Two programs that start at the same moment see the same numbers free, for nothing runs under them yet. So the
    numbers are locked, each as one byte of a file that is never read; the kernel drops the locks of a process that
    ends. Where there can be no such file, a block is chosen without a lock.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return find_uid_block()

    def take(block: range) -> bool:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, len(block), block[0])
        except (BlockingIOError, PermissionError):  # another process has one of the numbers
            return False
        except OSError:  # a file system without locks
            return True
        return True

    # The descriptor stays open on purpose: closing it would drop the locks.
    return find_uid_block(take=take)


def _starts() -> Iterator[int]:
    yield from range(FIRST, LAST - BLOCK_SIZE + 2)


def may_use_several_uids() -> bool:
    """Say whether this process is root and may take other uids."""
    return os.geteuid() == 0


def refusal_of_interpreter(uid: int, *, executable: str = sys.executable) -> str | None:
    """Run the interpreter as `uid` and return why it cannot be used there, or None if it can.

    A Python below a home directory of mode 0700 cannot be executed by other uids. Needs root.

    Source: running.md R-03.
    """
    try:
        done = subprocess.run(
            [executable, "-I", "-c", "import ssl, sqlite3, onrecord"],
            user=uid,
            group=uid,
            extra_groups=[],
            cwd="/",
            env={"PATH": os.defpath}
            | {key: os.environ[key] for key in ("LD_LIBRARY_PATH",) if key in os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        return f"uid {uid} cannot execute {executable} ({error.strerror})"
    if done.returncode != 0:
        return f"uid {uid} cannot import ssl, sqlite3 and onrecord with {executable}"
    return None


def _prove() -> int:
    """Prove the running interpreter for other uids; what `make setup` ends with when it is root."""
    block = find_uid_block()
    reason = "no block of unused uids was found" if block is None else refusal_of_interpreter(block[0])
    if reason is not None:
        sys.stderr.write(f"setup: {reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_prove())
