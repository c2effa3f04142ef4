"""The proof store alone: order of checks, windows, tombstones, restarts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from onrecord.authorize.authority.proofs import IssueFacts, ProofStore
from onrecord.authorize.evidence import HandleProfile, ProofClaims
from onrecord.base.hashes import ActionDigest

SECOND = 1_000_000_000
DIGEST = str(ActionDigest.of(b"one"))
OTHER = str(ActionDigest.of(b"two"))
START = b"\x00\x00\x00\x01"


class Store:
    """A proof store with a clock that is moved by hand."""

    def __init__(self, *, start_id: bytes = START) -> None:
        self.now_ns = 100 * SECOND
        self.revoked: set[str] = set()
        self.profile = HandleProfile()
        self.store = ProofStore(
            [self.profile],
            start_id=start_id,
            is_revoked=lambda record: record.issue.operation_id in self.revoked,
        )

    def issue(
        self, *, digest=DIGEST, server="filesystem", caller="a", uid=1, inputs=None, window=15, operation="op"
    ):
        value, record = self.store.issue(
            self.profile,
            ProofClaims(digest, inputs, server, caller, 0, window),
            IssueFacts(self.now_ns, uid, "tools/call", "t", 1, 0, operation, ()),
        )
        self.store.keep(record)
        return {"type": self.profile.type, "value": value}

    def check(self, evidence, *, digest=DIGEST, server="filesystem", uid=1, inputs=None):
        return self.store.check(
            evidence,
            action_digest=digest,
            input_digest=inputs,
            server=server,
            peer_uid=uid,
            max_value_characters=4096,
            now_ns=self.now_ns,
        )

    def use(self, evidence, **more) -> str | None:
        presented = self.check(evidence, **more)
        if presented.reason is None:
            self.store.consume(presented.record, now_ns=self.now_ns)
            return None
        return str(presented.reason)


class TestOrder:
    @pytest.mark.req("CP-115", "CP-114")
    @pytest.mark.parametrize(
        ("used", "expired", "revoked", "digest", "server", "uid", "forged"),
        list(itertools.product([False, True], repeat=7)),
    )
    def test_matrix(self, used, expired, revoked, digest, server, uid, forged):
        """Authentic before binding, binding before freshness, freshness before revocation, single use last."""
        store = Store()
        evidence = store.issue()
        if used:
            assert store.use(evidence) is None
        if expired:
            store.now_ns += 15 * SECOND
        if revoked:
            store.revoked.add("op")
        if forged:
            evidence = evidence | {"value": HandleProfile().mint(None, start_id=START)[0]}
        reason = store.use(
            evidence,
            digest=OTHER if digest else DIGEST,
            server="archive" if server else "filesystem",
            uid=2 if uid else 1,
        )
        expected = None
        for holds, word in (
            (used, "replayed"),
            (revoked, "revoked"),
            (expired, "expired"),
            (digest or server or uid, "mismatch"),
            (forged, "invalid"),
        ):
            expected = word if holds else expected
        assert reason == expected


class TestWindow:
    @pytest.mark.req("CP-058")
    def test_expires(self):
        """A proof is good until, and not at, the end of its window."""
        store = Store()
        first, second = store.issue(), store.issue()
        store.now_ns += 15 * SECOND - 1
        assert store.use(first) is None
        store.now_ns += 1
        assert store.use(second) == "expired"

    @pytest.mark.req("CP-058")
    def test_longest_window(self):
        """Whatever a caller of the store asks for, 30 seconds is the end."""
        store = Store()
        first, second = store.issue(window=300), store.issue(window=300)
        store.now_ns += 30 * SECOND - 1
        assert store.use(first) is None
        store.now_ns += 1
        assert store.use(second) == "expired"

    @pytest.mark.req("CP-117")
    def test_other_start(self):
        """A value of another start is expired, not invalid, and says nothing about what it was for."""
        evidence = Store(start_id=b"\x00\x00\x00\x02").issue()
        assert Store().use(evidence) == "expired"
        assert Store().use(evidence, digest=OTHER) == "expired"


class TestTombstones:
    def sweep(self, store, *, seconds=600, count=100):
        for _ in range(100):
            store.store.sweep(now_ns=store.now_ns, tombstone_seconds=seconds, tombstones=count)

    @pytest.mark.req("CP-117")
    def test_better_reasons_for_a_while(self):
        """Used and expired proofs keep their reason for the tombstone time; then they are invalid, never valid."""
        store = Store()
        used, old = store.issue(), store.issue()
        store.use(used)
        store.now_ns += 16 * SECOND
        self.sweep(store)
        assert (store.use(used), store.use(old)) == ("expired", "expired")
        assert store.use(used, digest=OTHER) == "mismatch"
        store.now_ns += 601 * SECOND
        self.sweep(store)
        assert (store.use(used), store.use(old), len(store.store)) == ("invalid", "invalid", 0)

    def test_bounded(self):
        """Above the number of tombstones the oldest go first, and no live proof goes."""
        store = Store()
        used = [store.issue() for _ in range(150)]
        live = store.issue()
        for evidence in used:
            store.use(evidence)
        self.sweep(store)
        assert store.store.tombstones == 100
        assert store.use(used[0]) == "invalid"
        assert store.use(used[-1]) == "replayed"
        assert store.use(live) is None

    def test_outstanding(self):
        """A proof counts for its caller until it is used or swept as expired."""
        store = Store()
        first = store.issue(caller="a")
        store.issue(caller="a")
        store.issue(caller="b")
        assert (store.store.outstanding("a"), store.store.outstanding("b")) == (2, 1)
        store.use(first)
        assert store.store.outstanding("a") == 1
        store.now_ns += 15 * SECOND
        self.sweep(store)
        assert (store.store.outstanding("a"), store.store.outstanding("b")) == (0, 0)

    def test_reprs_hold_no_value(self):
        """Neither a record nor its outcome shows the proof value."""
        store = Store()
        evidence = store.issue()
        assert evidence["value"] not in repr(store.check(evidence).record)


class Machine(RuleBasedStateMachine):
    """Against a model: a proof is accepted at most once, only in its window, only for its own call."""

    proofs = Bundle("proofs")

    def __init__(self):
        super().__init__()
        self.store = Store()
        self.uses: dict[str, int] = {}

    @rule(target=proofs, digest=st.sampled_from([DIGEST, OTHER]), window=st.integers(1, 40))
    def issue(self, digest, window):
        evidence = self.store.issue(digest=digest, window=window)
        return evidence["value"], evidence, digest, self.store.now_ns + min(window, 30) * SECOND

    @rule(proof=proofs, digest=st.sampled_from([DIGEST, OTHER]), uid=st.sampled_from([1, 2]))
    def use(self, proof, digest, uid):
        value, evidence, own, expires = proof
        reason = self.store.use(evidence, digest=digest, uid=uid)
        if reason is None:
            assert digest == own
            assert uid == 1
            assert self.store.now_ns < expires
            self.uses[value] = self.uses.get(value, 0) + 1
        elif digest == own and uid == 1 and self.store.now_ns < expires:
            assert self.uses[value] == 1

    @rule(seconds=st.integers(1, 700))
    def wait(self, seconds):
        self.store.now_ns += seconds * SECOND

    @rule()
    def sweep(self):
        self.store.store.sweep(now_ns=self.store.now_ns, tombstone_seconds=600, tombstones=5)

    @invariant()
    def at_most_once(self):
        assert all(count == 1 for count in self.uses.values())


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
