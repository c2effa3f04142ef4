"""The search for uids that are nobody's (running.md 2.3)."""

from __future__ import annotations

import os
import sys

import pytest

from onrecord.base.uid_blocks import (
    BLOCK_SIZE,
    FIRST,
    LAST,
    find_uid_block,
    mapped_uids,
    refusal_of_interpreter,
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
