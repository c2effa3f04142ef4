"""Several principals for a test that runs as root."""

from __future__ import annotations

from functools import cache

import pytest

from onrecord.base.uid_blocks import find_uid_block, may_use_several_uids, refusal_of_interpreter


@cache
def _refusal(uid: int) -> str | None:
    return refusal_of_interpreter(uid)


def uid_block_or_skip() -> range:
    """Return 16 unused uids, or skip the test with the reason."""
    if not may_use_several_uids():
        pytest.skip("needs root, because it uses several uids")
    block = find_uid_block()
    if block is None:
        pytest.skip("no block of 16 unused uids from 59000 to 59999")
    refusal = _refusal(block[0])
    if refusal is not None:
        pytest.skip(refusal)
    return block
