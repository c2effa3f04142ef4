"""The memory of approvals: what holds in any order of asking, deciding, fetching, expiry and reload."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from onrecord.authorize.authority import approvals as module
from onrecord.authorize.authority.approvals import (
    OPEN,
    RATE_WINDOW_NS,
    Approval,
    ApprovalBook,
    ApprovalKey,
    ApprovalState,
    RequestRates,
)
from onrecord.authorize.authority.decisions import Operation
from onrecord.authorize.policy import NeededApproval

SECOND = 1_000_000_000
LIFETIME, HOLD = 300 * SECOND, 300
NEEDED = (NeededApproval("first", 2, "reviewers"), NeededApproval("second", 1, "security"))
DESIGNATED = {"first": frozenset({"ada", "ben", "cyd"}), "second": frozenset({"cyd", "dan"})}
UIDS = {"ada": 1, "ben": 2, "cyd": 3, "dan": 4}


def counting():
    numbers = iter(range(10**9))
    return lambda size: next(numbers).to_bytes(size, "big")


def make(book: ApprovalBook, key: ApprovalKey, *, now_ns: int, size: int = 10) -> Approval:
    id_, number = book.next_identity()
    return Approval(
        id=id_,
        number=number,
        key=key,
        tool="t",
        tool_revision=0,
        needed=NEEDED,
        designated=DESIGNATED,
        operation=Operation("o", (1, "l", "s", "t", "d")),
        record={},
        created_ns=now_ns,
        expires_ns=now_ns + LIFETIME,
        expires_at="",
        summary=("line",),
        call=b"x" * size,
    )


def key(caller: str = "a", digest: str = "d", version: int = 1) -> ApprovalKey:
    return ApprovalKey(caller, "s", digest, None, version)


class Book(RuleBasedStateMachine):
    """Any history of a book. The model knows who approved, when it was asked, and what was released."""

    def __init__(self):
        super().__init__()
        self.book = ApprovalBook(randomness=counting())
        self.now = 0
        self.version = 1
        self.all: list[Approval] = []
        self.released: set[str] = set()
        self.gave: dict[str, set[str]] = {}
        self.rejected_until: dict[ApprovalKey, int] = {}

    def expire(self):
        for one in self.book.expire(now_ns=self.now):
            assert self.now >= one.expires_ns
            assert one.id not in self.released

    @rule(caller=st.sampled_from("ab"), digest=st.sampled_from("de"))
    def ask(self, caller, digest):
        self.expire()
        wanted = key(caller, digest, self.version)
        found = self.book.find(wanted)
        if found is None:
            assert self.rejected_until.get(wanted, 0) <= self.now
            made = make(self.book, wanted, now_ns=self.now)
            self.book.open(made)
            self.all.append(made)
            self.gave[made.id] = set()
        elif found.state is ApprovalState.EXPIRED:
            self.book.forget_key(found)
            assert self.book.find(wanted) is None
        elif found.state is ApprovalState.GRANTED:
            people = self.gave[found.id]
            assert len(people & DESIGNATED["first"]) >= 2
            assert people & DESIGNATED["second"]
            assert self.now < found.expires_ns
            assert found.id not in self.released
            self.released.add(found.id)
            self.book.use(found, object(), now_ns=self.now)
            assert self.book.find(wanted) is None

    def choose(self, data):
        self.expire()
        return data.draw(st.sampled_from(self.all))

    @precondition(lambda self: self.all)
    @rule(data=st.data(), who=st.sampled_from(sorted(UIDS)))
    def approve(self, data, who):
        one = self.choose(data)
        if one.state is not ApprovalState.PENDING or who in one.approved_by:
            return
        self.gave[one.id].add(who)
        if self.book.approve(one, who, UIDS[who]):
            assert one.state is ApprovalState.GRANTED

    @precondition(lambda self: self.all)
    @rule(data=st.data())
    def reject(self, data):
        one = self.choose(data)
        if one.state not in (*OPEN, ApprovalState.USED) or self.book.get(one.id) is None:
            return
        self.book.reject(one, hold_seconds=HOLD, now_ns=self.now)
        if self.book.find(one.key) is one:
            self.rejected_until[one.key] = self.now + HOLD * SECOND

    @rule(seconds=st.sampled_from((1, 29, 30, 299, 300, 301)))
    def wait(self, seconds):
        self.now += seconds * SECOND

    @rule()
    def reload(self):
        self.version += 1
        voided = self.book.void(
            lambda one: one.key.policy_version != self.version, cause="policy_changed", now_ns=self.now
        )
        assert all(one.state is ApprovalState.VOID for one in voided)
        assert not any(one.state in OPEN for one in self.all if self.book.get(one.id) is one)

    @invariant()
    def counts(self):
        pending = [one for one in self.all if one.state is ApprovalState.PENDING]
        assert self.book.pending_count == len(pending) == len(list(self.book.pending()))
        assert self.book.held_bytes == sum(len(one.call) for one in pending)
        assert all(one.call == b"" and one.summary == () for one in self.all if one not in pending)
        for caller in "ab":
            assert self.book.pending_of(caller) == sum(one.key.caller == caller for one in pending)

    @invariant()
    def nothing_withdrawn_counts(self):
        for one in self.all:
            if self.book.get(one.id) is not None:
                assert self.book.is_withdrawn(one.id) is (one.state is not ApprovalState.USED)
            else:
                assert self.book.is_withdrawn(one.id)


TestBook = Book.TestCase
TestBook.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class TestMemory:
    def test_everything_is_forgotten(self):
        """Whatever was asked is forgotten some time after it has ended, heap and keys included."""
        book = ApprovalBook(randomness=counting())
        for number in range(50):
            book.open(make(book, key(digest=str(number)), now_ns=0))
        book.expire(now_ns=LIFETIME)
        assert len(book) == 50
        book.expire(now_ns=2 * LIFETIME)
        assert (len(book), book.next_due_ns(), book.held_bytes) == (0, None, 0)
        assert book.find(key(digest="1")) is None

    def test_settled_ones_are_bounded(self, monkeypatch):
        """Of settled approvals only so many are remembered, the oldest go first; open ones never go by that."""
        monkeypatch.setattr(module, "MAX_SETTLED", 3)
        book = ApprovalBook(randomness=counting())
        waiting = make(book, key(digest="open"), now_ns=0)
        book.open(waiting)
        rejected = []
        for number in range(5):
            one = make(book, key(digest=str(number)), now_ns=0)
            book.open(one)
            book.reject(one, hold_seconds=HOLD, now_ns=0)
            rejected.append(one)
        book.expire(now_ns=1)
        assert [book.get(one.id) is one for one in rejected] == [False, False, True, True, True]
        assert book.find(rejected[0].key) is None
        assert book.get(waiting.id) is waiting

    def test_ids_are_no_options(self):
        """An id never begins with a dash, which a command would read as an option."""
        book = ApprovalBook(randomness=lambda size: b"\xf8" + bytes(size - 1))
        assert book.next_identity()[0].startswith("aA")

    def test_newest_waiter_first(self):
        """Who asked last is woken first, and each once."""
        one = make(ApprovalBook(randomness=counting()), key(), now_ns=0)
        woken: list[int] = []
        one.waiters += [lambda number=number: woken.append(number) for number in range(3)]
        one.wake()
        one.wake()
        assert woken == [2, 1, 0]

    def test_same_uid_counts_once(self):
        """Two ids under one uid are one person."""
        book = ApprovalBook(randomness=counting())
        one = make(book, key(), now_ns=0)
        book.open(one)
        book.approve(one, "ada", 1)
        book.approve(one, "ben", 1)
        assert one.given(NEEDED[0]) == 1
        assert one.state is ApprovalState.PENDING


def wait(rates, approvers, *, caller="a", is_shared=False, **more):
    return rates.wait_ms(approvers, caller=caller, is_shared=is_shared, **more)


class TestRates:
    def test_window(self):
        """The limit is per approver and for the last minute; the wait is until the oldest request leaves it."""
        rates = RequestRates()
        for number in range(3):
            assert wait(rates, ["ada"], per_minute=3, now_ns=number * SECOND) == 0
            rates.note(["ada"], caller="a", now_ns=number * SECOND)
        assert wait(rates, ["ada"], per_minute=3, now_ns=3 * SECOND) == 57_000
        assert wait(rates, ["ben"], per_minute=3, now_ns=3 * SECOND) == 0
        assert wait(rates, ["ben", "ada"], per_minute=3, now_ns=3 * SECOND) == 57_000
        assert wait(rates, ["ada"], per_minute=1, now_ns=3 * SECOND) == 59_000
        assert wait(rates, ["ada"], per_minute=3, now_ns=RATE_WINDOW_NS) == 0

    def test_one_place_is_kept_for_others(self):
        """Where there are several callers, none gets all requests of a minute, however often it asks."""
        rates = RequestRates()
        for number in range(2):
            rates.note(["ada"], caller="a", now_ns=number * SECOND)
        now_ns = 3 * SECOND
        assert wait(rates, ["ada"], per_minute=3, is_shared=True, now_ns=now_ns) == 57_000
        assert wait(rates, ["ada"], per_minute=3, now_ns=now_ns) == 0
        assert wait(rates, ["ada"], caller="b", per_minute=3, is_shared=True, now_ns=now_ns) == 0
        rates.note(["ada"], caller="b", now_ns=now_ns)
        assert wait(rates, ["ada"], caller="b", per_minute=3, is_shared=True, now_ns=now_ns) == 57_000
        assert wait(rates, ["ben"], per_minute=1, is_shared=True, now_ns=now_ns) == 0

    def test_people_who_left(self):
        """An approver whom the policy no longer knows takes no memory."""
        rates = RequestRates()
        rates.note(["ada", "ben"], caller="a", now_ns=0)
        rates.keep(["ben"])
        assert list(rates._asked) == ["ben"]
