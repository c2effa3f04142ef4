"""Fixtures of the authority's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from authorize.authority.house import House
from support.runtime import make_short_dir
from support.uids import uid_block_or_skip


def make_house(mode: str, **options) -> House:
    uids = uid_block_or_skip() if mode == "system" or os.getuid() == 0 else None
    return House(make_short_dir(), mode=mode, uids=uids, **options)


@contextmanager
def running_house(mode: str) -> Iterator[House]:
    """An installation whose authority runs, with the tools of its servers reported."""
    made = make_house(mode)
    try:
        made.start()
        made.report("filesystem")
        made.report("archive")
        yield made
    finally:
        made.remove()


@pytest.fixture(params=["system", "user"])
def house(request):
    """A running authority in each mode, with the tools of its servers reported."""
    with running_house(request.param) as made:
        yield made


@pytest.fixture
def user_house():
    """A running authority in user mode, with the tools of its servers reported."""
    with running_house("user") as made:
        yield made


@pytest.fixture
def system_house():
    """A running authority with several uids, with the tools of its servers reported; skips when not root."""
    with running_house("system") as made:
        yield made


@pytest.fixture(params=["system", "user"])
def idle_house(request):
    """An installation whose authority is not started."""
    made = make_house(request.param)
    yield made
    made.remove()


@pytest.fixture
def new_house():
    """A function that makes installations; all are removed at the end."""
    made = []

    def make(mode: str = "user", **options) -> House:
        made.append(make_house(mode, **options))
        return made[-1]

    yield make
    for one in made:
        one.remove()
