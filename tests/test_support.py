"""What the tests stand on: uids that no other process of a test run takes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from onrecord.base.uid_blocks import BLOCK_SIZE, find_uid_block, uids_in_use
from support.uids import Reservation, reservation, uid_block_or_skip

OTHER = """
from support.uids import Reservation
reserved = Reservation()
print(reserved.block[0], flush=True)
input()
"""


@pytest.mark.root
class TestReservation:
    def test_two_processes(self):
        """Two processes of a test run have different blocks, and a demonstration takes neither of them."""
        own = uid_block_or_skip()
        others = [
            subprocess.Popen(
                [sys.executable, "-c", OTHER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            for _ in range(2)
        ]
        try:
            blocks = [
                range(first, first + BLOCK_SIZE) for first in (int(one.stdout.readline()) for one in others)
            ]
            taken = [own, *blocks, find_uid_block()]
            assert len({uid for block in taken for uid in block}) == 4 * BLOCK_SIZE
        finally:
            for one in others:
                one.communicate("\n", timeout=30)

    def test_release(self):
        """A block is free again after its release; its holder ends with the process, however that ends."""
        made = Reservation()
        held = made.block[-1]
        assert held in uids_in_use()
        made.release()
        assert held not in uids_in_use()
        killed = Reservation()
        killed._holder.stdin.close()  # as the end of a process does, kill -9 included
        assert killed._holder.wait(timeout=30) == 0

    def test_once_per_process(self):
        """All tests of one process use one block."""
        assert uid_block_or_skip() is reservation().block
