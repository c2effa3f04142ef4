"""Which roles share a uid."""

from __future__ import annotations

from pathlib import Path

import pytest

from onrecord.authorize.authority.state import AuthorityState
from onrecord.authorize.role_uids import role_uids, shared_uids
from onrecord.base.configuration import Configuration
from onrecord.base.dates import SYSTEM_CLOCK
from onrecord.base.errors import ConfigurationError


def configuration(authority=5, recorder=6, server=7, other=8):
    return Configuration.parse(
        f'mode = "system"\nprincipals.authority = {authority}\nprincipals.recorder = {recorder}\n'
        f'servers.a = {{command = "x", user = {server}}}\nservers.b = {{command = "x", user = {other}}}',
        file=Path("/etc/onrecord/onrecord.toml"),
    )


def test_apart():
    """Each role has its own."""
    assert role_uids(configuration()) == {"authority": 5, "recorder": 6, "server a": 7, "server b": 8}
    assert shared_uids(configuration()) == ()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"recorder": 5}, "authority and recorder (uid 5)"),
        ({"server": 5}, "authority and server a (uid 5)"),
        ({"other": 7}, "server a and server b (uid 7)"),
    ],
)
def test_shared(more, said):
    """Two roles with one uid are named, servers among each other included."""
    assert shared_uids(configuration(**more)) == (said,)


def test_unknown_account():
    """A name without account is an error, or left out where the account is needed elsewhere only."""
    made = configuration(server='"nobody-has-this-name"', other=5)
    with pytest.raises(ConfigurationError) as caught:
        shared_uids(made)
    assert caught.value.code == "user-unknown"
    assert shared_uids(made, known_only=True) == ("authority and server b (uid 5)",)


@pytest.mark.parametrize(
    ("is_user_mode", "shares", "expected"),
    [(True, False, "degraded"), (False, True, "degraded"), (False, False, None)],
)
def test_authority_says_so(is_user_mode, shares, expected):
    """In user mode, and in system mode with a shared uid, journal entries carry isolation degraded."""
    state = AuthorityState(
        is_user_mode=is_user_mode, shares_uids=shares, own_uid=5, clock=SYSTEM_CLOCK, profiles=()
    )
    assert state.isolation == expected
