"""The places of a listening guard: how many, for whom, and what is said about refusals."""

import pytest

from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.places import GUARD_CONNECTIONS, GUARD_CONNECTIONS_OF_ONE, Places
from onrecord.base.dates import ManualClock

GREEDY, OTHER = 2001, 2002
BOTH = frozenset((GREEDY, OTHER))


@pytest.fixture
def guard(tmp_path):
    """The places, their clock, and the lines of the log."""
    clock = ManualClock()
    path = tmp_path / "guard.log"
    log = GuardLog(path)
    yield Places(log=log, clock=clock), clock, lambda: path.read_text().splitlines()
    log.close()


def fill(places, uid, *, caller_uids):
    """Take places for `uid` until there is no room; returns how many it got."""
    for taken in range(GUARD_CONNECTIONS + 1):
        if not places.has_room(uid, caller_uids=caller_uids):
            return taken
        places.take(uid)
    return taken


def test_the_only_caller_gets_all(guard):
    """With one caller uid in the policy nobody else can be locked out."""
    places, _, _ = guard
    assert fill(places, GREEDY, caller_uids=frozenset((GREEDY,))) == GUARD_CONNECTIONS == 32


def test_one_of_several_gets_three_quarters(guard):
    """One uid gets 24 of 32, another one the rest, and no more than there are."""
    places, _, _ = guard
    assert fill(places, GREEDY, caller_uids=BOTH) == GUARD_CONNECTIONS_OF_ONE == 24
    assert fill(places, OTHER, caller_uids=BOTH) == 8


def test_a_place_given_back_is_given_away(guard):
    """A connection that has ended frees a place of its uid, and of the whole."""
    places, _, _ = guard
    fill(places, GREEDY, caller_uids=BOTH)
    fill(places, OTHER, caller_uids=BOTH)
    places.give_back(OTHER)
    assert not places.has_room(GREEDY, caller_uids=BOTH)
    assert places.has_room(OTHER, caller_uids=BOTH)


def test_another_caller_in_a_new_policy(guard):
    """Who holds more than its share when a second caller comes keeps it, and gets no more."""
    places, _, _ = guard
    fill(places, GREEDY, caller_uids=frozenset((GREEDY,)))
    for _ in range(GUARD_CONNECTIONS - GUARD_CONNECTIONS_OF_ONE):
        places.give_back(GREEDY)
    assert not places.has_room(GREEDY, caller_uids=BOTH)
    assert places.has_room(OTHER, caller_uids=BOTH)


def test_refusals_do_not_fill_the_log(guard):
    """Each refusal is counted; one line a second says how many there were, and the last number is not lost."""
    places, clock, lines = guard
    fill(places, GREEDY, caller_uids=BOTH)
    for _ in range(999):
        assert not places.has_room(GREEDY, caller_uids=BOTH)
    (line,) = lines()
    assert line.endswith(f"guard connection.refused reason=too many of one uid uid={GREEDY} total=1")
    clock.advance(1)
    places.has_room(GREEDY, caller_uids=BOTH)
    assert lines()[1].endswith(" total=1001")
    places.has_room(GREEDY, caller_uids=BOTH)
    places.close()
    assert lines()[2].endswith("guard connection.refused total=1002")
    places.close()
    assert len(lines()) == 3
