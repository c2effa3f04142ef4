"""Several principals for a test that runs as root.

Tests of several processes (pytest-xdist, or two runs on one machine) must not take each other's uids. So each process
reserves one block for as long as it lives: under a lock it looks for a block and starts a program under its last uid,
which the next search finds in /proc, that of a demonstration included.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from onrecord.base.uid_blocks import may_use_several_uids, refusal_of_interpreter, reserve_uid_block

LOCK_FILE = Path(tempfile.gettempdir()) / "onrecord-test-uids.lock"


class Reservation:
    """A block of 16 uids that is this process's until `release`; `block` is None if there was none."""

    def __init__(self) -> None:
        self._holder: subprocess.Popen[bytes] | None = None
        descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self.block = reserve_uid_block()
            if self.block is not None:
                self._holder = _hold(self.block[-1])
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """End the program that holds the block."""
        if self._holder is not None:
            self._holder.communicate()
            self._holder = None


def _hold(uid: int) -> subprocess.Popen[bytes]:
    """Start a program under `uid` that ends with this process: it reads a pipe that nothing is written to."""
    return subprocess.Popen(
        ["cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": os.defpath},
        user=uid,
        group=uid,
        extra_groups=[],
    )


@cache
def reservation() -> Reservation:
    """Return the reservation of this process, made at the first call. Needs root."""
    return Reservation()


@cache
def _refusal(uid: int) -> str | None:
    return refusal_of_interpreter(uid)


def uid_block_or_skip() -> range:
    """Return the 16 unused uids of this process, or skip the test with the reason."""
    if not may_use_several_uids():
        pytest.skip("needs root, because it uses several uids")
    block = reservation().block
    if block is None:
        pytest.skip("no block of 16 unused uids from 59000 to 59999")
    refusal = _refusal(block[0])
    if refusal is not None:
        pytest.skip(refusal)
    return block
