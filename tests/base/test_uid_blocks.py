"""The search for uids that are nobody's (running.md 2.3)."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest

from onrecord.base.uid_blocks import (
    BLOCK_SIZE,
    FIRST,
    LAST,
    find_uid_block,
    mapped_uids,
    refusal_of_interpreter,
    reserve_uid_block,
    uids_in_use,
)


def find(accounts=(), in_use=(), is_mapped=lambda uid: True):
    return find_uid_block(
        has_account=set(accounts).__contains__, in_use=frozenset(in_use), is_mapped=is_mapped
    )


class TestBlock:
    def test_first(self):
        """On an empty machine the block begins at 59000."""
        assert find() == range(59000, 59016)

    def test_account_in_the_way(self):
        """A user or group with one of the numbers moves the block behind it."""
        assert find(accounts={59003}) == range(59004, 59020)

    def test_process_in_the_way(self):
        """A process under one of the numbers moves the block behind it."""
        assert find(in_use={59000, 59015}) == range(59016, 59032)

    def test_last_possible(self):
        """The last block ends with 59999, and behind it there is none."""
        assert find(accounts=range(FIRST, LAST - BLOCK_SIZE + 1)) == range(59984, 60000)
        assert find(accounts=range(FIRST, LAST - BLOCK_SIZE + 2)) is None

    def test_every_sixteenth_taken(self):
        """A number in each possible block: none."""
        assert find(accounts=range(FIRST + 15, LAST + 1, 16)) is None

    def test_not_mapped(self):
        """In a user namespace that maps only few uids there is no block."""
        assert find(is_mapped=mapped_uids("         0       1000          1\n")) is None
        assert find(is_mapped=mapped_uids("0 100000 65536\n")) is not None

    def test_map_with_two_ranges(self):
        """A block must be mapped as a whole."""
        is_mapped = mapped_uids("0 0 59010\n59012 200000 100\n")
        assert find(is_mapped=is_mapped) == range(59012, 59028)

    def test_own_uid_is_in_use(self):
        """The search sees this very process."""
        assert os.getuid() in uids_in_use()


OTHER = """
import sys
from pathlib import Path
from onrecord.base.uid_blocks import reserve_uid_block
print(reserve_uid_block(Path(sys.argv[1]))[0], flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(find_uid_block() is None, reason="no block of 16 unused uids from 59000 to 59999")
class TestReserve:
    def test_two_at_the_same_moment(self, tmp_path):
        """A block that another process has chosen is not given away, although nothing runs under it yet."""
        path = tmp_path / "lock"
        other = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            first = int(other.stdout.readline())
            own = reserve_uid_block(path)
            assert not set(own) & set(range(first, first + BLOCK_SIZE))
        finally:
            other.communicate()

    def test_free_after_the_end(self, tmp_path):
        """The numbers of a process that has ended are free again; the file that stays says nothing."""
        path = tmp_path / "lock"
        subprocess.run([sys.executable, "-c", OTHER, str(path)], input=b"", capture_output=True, check=True)
        with path.open("rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert (path.stat().st_size, path.stat().st_mode & 0o777) == (0, 0o600)

    def test_no_file_can_be_made(self, tmp_path):
        """Where there is no place for the file, a block is chosen all the same."""
        assert reserve_uid_block(tmp_path / "missing" / "lock") is not None

    def test_link(self, tmp_path):
        """A symbolic link in the place of the file is not followed."""
        (tmp_path / "lock").symlink_to(tmp_path / "target")
        assert reserve_uid_block(tmp_path / "lock") is not None
        assert not (tmp_path / "target").exists()


@pytest.mark.root
class TestInterpreter:
    def test_own(self, uid_block):
        """The interpreter of the tests can be run by other uids (else these tests would be skipped)."""
        assert refusal_of_interpreter(uid_block[0]) is None

    def test_below_a_closed_directory(self, uid_block, tmp_path):
        """An interpreter below a directory of mode 0700 is refused with the reason (running R-03)."""
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        (closed / "python").symlink_to(sys.executable)
        reason = refusal_of_interpreter(uid_block[0], executable=str(closed / "python"))
        assert "cannot execute" in reason
