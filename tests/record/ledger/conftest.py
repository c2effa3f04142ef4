"""Fixtures of the journal's tests: two keys, and a place where a journal lives."""

from __future__ import annotations

import pytest

from onrecord.base.keys import PrivateKeySigner, generate_private_key
from support.journals import Place


@pytest.fixture(scope="session")
def signer():
    return PrivateKeySigner(generate_private_key("ed25519"))


@pytest.fixture(scope="session")
def other_signer():
    return PrivateKeySigner(generate_private_key("ed25519"))


@pytest.fixture
def place(tmp_path, signer):
    base = tmp_path / "place"
    base.mkdir(mode=0o700)
    return Place(base, signer)
