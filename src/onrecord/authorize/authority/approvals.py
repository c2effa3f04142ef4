"""Approvals: which calls wait for people, who may decide, what was decided, and for how long that counts.

Plain memory, changed by one thread only; a restart empties it on purpose, which voids every approval. One approval is
for exactly one call (Action Digest, inputs, server, caller, policy version) and releases exactly one proof.

Source: call-proof.md 4.5, 8.6, 9.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onrecord.base.hashes import b64url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from onrecord.authorize.authority.decisions import Operation
    from onrecord.authorize.authority.proofs import ProofRecord
    from onrecord.authorize.policy import NeededApproval

APPROVAL_ID_BYTES: Final = 16
"""Random bytes of an approval id: nobody guesses one."""

MAX_SETTLED: Final = 10_000
"""Approvals remembered after they were decided or expired, oldest out. Beyond it a rejection may hold shorter."""

MAX_HELD_BYTES: Final = 64 * 1024 * 1024
"""Bytes of arguments that all pending approvals hold together. An agent may send a mebibyte with each call."""

RATE_WINDOW_NS: Final = 60_000_000_000
"""The minute of `approvalRequestsPerApproverMinute`."""

PROOF_MEMORY_NS: Final = 30_000_000_000
"""A used approval is known for at least the longest window of a proof, so that it can be withdrawn."""


class ApprovalState(StrEnum):
    """Where an approval is. PENDING and GRANTED are open; the others are final."""

    PENDING = "pending"
    GRANTED = "granted"
    USED = "used"
    """Granted, and its one proof was released."""
    REJECTED = "rejected"
    EXPIRED = "expired"
    VOID = "void"
    """Policy or the tool changed: what was asked is not what would run."""


OPEN: Final = frozenset({ApprovalState.PENDING, ApprovalState.GRANTED})


class ApprovalKey(NamedTuple):
    """What an approval is for: the same call by the same caller finds it again."""

    caller: str
    server: str
    action_digest: str
    input_digest: str | None
    policy_version: int


@dataclass(slots=True, kw_only=True, eq=False)
class Approval:
    """One approval. What was asked is fixed; `state`, `approved_by` and `proof` change.

    `designated` are, for each rule, the ids of the approvers that may lift it. `record` are the members that every
    journal record about it has. Times are CLOCK_BOOTTIME in nanoseconds; `expires_at` is for display.
    """

    id: str
    number: int
    key: ApprovalKey
    tool: str
    tool_revision: int
    needed: tuple[NeededApproval, ...]
    designated: Mapping[str, frozenset[str]] = field(repr=False)
    operation: Operation = field(repr=False)
    record: Mapping[str, Any] = field(repr=False)
    created_ns: int
    expires_ns: int
    expires_at: str
    summary: tuple[str, ...] = field(repr=False)
    call: bytes = field(repr=False)
    """Arguments and inputs as JSON, for the approver who wants to see all of them; empty after the decision."""
    state: ApprovalState = ApprovalState.PENDING
    cause: str | None = None
    due_ns: int = 0
    approved_by: dict[str, int] = field(default_factory=dict)
    """Approver id to uid."""
    proof: ProofRecord | None = None
    waiters: list[Callable[[], None]] = field(default_factory=list, repr=False)
    """Issue requests that are held open for it, oldest first."""

    @property
    def approvers(self) -> frozenset[str]:
        """Ids of all approvers that may decide."""
        return frozenset().union(*self.designated.values())

    def given(self, need: NeededApproval) -> int:
        """Return how many of the people that a rule asks for have approved, by id and by uid."""
        people = {who: uid for who, uid in self.approved_by.items() if who in self.designated[need.rule]}
        return min(need.number, len(people), len(set(people.values())))

    @property
    def needed_count(self) -> int:
        """How many approvals all rules ask for together."""
        return sum(need.number for need in self.needed)

    @property
    def given_count(self) -> int:
        """How many of them were given. One person counts once for each rule that names one of their groups."""
        return sum(self.given(need) for need in self.needed)

    def wake(self) -> None:
        """Wake who waits, the newest first: whoever asked last is most surely still there."""
        waiters, self.waiters = self.waiters, []
        for wake in reversed(waiters):
            wake()


class RequestRates:
    """How many new requests each approver got within the last minute, and of which callers."""

    def __init__(self) -> None:
        self._asked: dict[str, deque[tuple[int, str]]] = {}

    def wait_ms(
        self, approvers: Iterable[str], *, caller: str, per_minute: int, is_shared: bool, now_ns: int
    ) -> int:
        """Return 0 if all of them may get one more request, else the milliseconds until they may.

        `is_shared` says that there are other callers. Then one request of each minute is kept for them: a caller
        that asks for ever would take every place in the moment it gets free.
        """
        wait_ns = 0
        for approver in approvers:
            asked = self._asked.get(approver)
            while asked and asked[0][0] <= now_ns - RATE_WINDOW_NS:
                asked.popleft()
            if not asked:
                continue
            times = [time_ns for time_ns, _ in asked]
            wait_ns = max(wait_ns, _until_free(times, number=per_minute, now_ns=now_ns))
            if is_shared:
                mine = [time_ns for time_ns, who in asked if who == caller]
                wait_ns = max(wait_ns, _until_free(mine, number=max(1, per_minute - 1), now_ns=now_ns))
        return -(-wait_ns // 1_000_000)

    def note(self, approvers: Iterable[str], *, caller: str, now_ns: int) -> None:
        """Count one new request of a caller for each of them."""
        for approver in approvers:
            self._asked.setdefault(approver, deque()).append((now_ns, caller))

    def keep(self, approvers: Iterable[str]) -> None:
        """Forget everybody else: the policy no longer knows them."""
        known = set(approvers)
        self._asked = {who: asked for who, asked in self._asked.items() if who in known}


def _until_free(times_ns: list[int], *, number: int, now_ns: int) -> int:
    """Return the nanoseconds until fewer than `number` of these times lie within the last minute."""
    return times_ns[-number] + RATE_WINDOW_NS - now_ns if len(times_ns) >= number else 0


class ApprovalBook:
    """All approvals of one start of the authority. `randomness` gives the ids."""

    def __init__(self, *, randomness: Callable[[int], bytes]) -> None:
        self._randomness = randomness
        self._by_id: dict[str, Approval] = {}
        self._by_key: dict[ApprovalKey, Approval] = {}
        self._due: list[tuple[int, int, str]] = []
        self._pending: Counter[str] = Counter()
        self._settled: deque[str] = deque()
        self._number = 0
        self.held_bytes = 0
        """Bytes of arguments that pending approvals hold."""
        self.rates = RequestRates()

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def pending_count(self) -> int:
        """Approvals that wait for people."""
        return self._pending.total()

    def pending_of(self, caller: str) -> int:
        """Approvals of one caller that wait for people."""
        return self._pending[caller]

    def find(self, key: ApprovalKey) -> Approval | None:
        """Return the approval that an issue request with this key meets, if any."""
        return self._by_key.get(key)

    def get(self, approval_id: str) -> Approval | None:
        """Return an approval by its id, also a settled one as long as it is remembered."""
        return self._by_id.get(approval_id)

    def pending(self) -> Iterator[Approval]:
        """Yield the approvals that wait for people, oldest first."""
        for approval in self._by_id.values():
            if approval.state is ApprovalState.PENDING:
                yield approval

    def is_withdrawn(self, approval_id: str) -> bool:
        """Say whether the approval behind a proof was taken back, or is not known any more."""
        approval = self._by_id.get(approval_id)
        return approval is None or approval.state is not ApprovalState.USED

    def next_identity(self) -> tuple[str, int]:
        """Return an id and a number for a new approval. No id begins with "-", which a command would misread."""
        text = b64url(self._randomness(APPROVAL_ID_BYTES))
        self._number += 1
        return ("a" + text[1:] if text[0] in "-_" else text), self._number

    def open(self, approval: Approval) -> None:
        """Add a new approval and count it for its approvers."""
        self._by_id[approval.id] = approval
        self._by_key[approval.key] = approval
        self._pending[approval.key.caller] += 1
        self.held_bytes += len(approval.call)
        self.rates.note(approval.approvers, caller=approval.key.caller, now_ns=approval.created_ns)
        self._set_due(approval, approval.expires_ns)

    def approve(self, approval: Approval, approver: str, uid: int) -> bool:
        """Count one person's approval; return whether all that are needed were given now."""
        approval.approved_by[approver] = uid
        if approval.given_count < approval.needed_count:
            return False
        self._leave_pending(approval, ApprovalState.GRANTED)
        return True

    def use(self, approval: Approval, proof: ProofRecord, *, now_ns: int) -> None:
        """Mark the one proof of a granted approval as released. The same call asks anew from here on."""
        approval.proof = proof
        self._settle(approval, ApprovalState.USED, due_ns=max(approval.expires_ns, now_ns + PROOF_MEMORY_NS))
        self._unlink(approval)

    def reject(self, approval: Approval, *, hold_seconds: int, now_ns: int) -> None:
        """Settle an approval as rejected; that holds for the same call as long as `hold_seconds`."""
        self._settle(approval, ApprovalState.REJECTED, due_ns=now_ns + hold_seconds * 1_000_000_000)
        self._by_key.setdefault(approval.key, approval)

    def forget_key(self, approval: Approval) -> None:
        """Let the same call start again: its expiry was answered."""
        self._unlink(approval)

    def void(self, chosen: Callable[[Approval], bool], *, cause: str, now_ns: int) -> list[Approval]:
        """Void the open approvals that `chosen` picks, and return them."""
        voided = [one for one in self._by_id.values() if one.state in OPEN and chosen(one)]
        for approval in voided:
            approval.cause = cause
            self._settle(approval, ApprovalState.VOID, due_ns=max(approval.expires_ns, now_ns))
            self._unlink(approval)
        return voided

    def expire(self, *, now_ns: int) -> list[Approval]:
        """Settle what has expired and forget what was remembered long enough. Returns those that expired now."""
        expired: list[Approval] = []
        while self._due and self._due[0][0] <= now_ns:
            _, _, approval_id = heapq.heappop(self._due)
            approval = self._by_id.get(approval_id)
            if approval is None:
                continue
            if approval.due_ns > now_ns:
                continue  # it has another date by now, which is in the heap as well
            if approval.state in OPEN:
                # It stays as long again, so that the caller learns of the expiry once.
                lifetime_ns = approval.expires_ns - approval.created_ns
                self._settle(approval, ApprovalState.EXPIRED, due_ns=now_ns + lifetime_ns)
                expired.append(approval)
            else:
                self._drop(approval)
        while len(self._settled) > MAX_SETTLED:
            oldest = self._by_id.get(self._settled.popleft())
            if oldest is not None:
                self._drop(oldest)
        return expired

    def next_due_ns(self) -> int | None:
        """Return when `expire` has something to do, None if nothing is remembered."""
        return self._due[0][0] if self._due else None

    # Bookkeeping ---------------------------------------------------------------------------------------------

    def _leave_pending(self, approval: Approval, state: ApprovalState) -> None:
        if approval.state is ApprovalState.PENDING:
            caller = approval.key.caller
            self._pending[caller] -= 1
            if not self._pending[caller]:
                del self._pending[caller]
            # Arguments are kept until the decision and no longer.
            self.held_bytes -= len(approval.call)
            approval.call = b""
            approval.summary = ()
        approval.state = state

    def _settle(self, approval: Approval, state: ApprovalState, *, due_ns: int) -> None:
        if approval.state in OPEN:
            self._settled.append(approval.id)
        self._leave_pending(approval, state)
        self._set_due(approval, due_ns)

    def _set_due(self, approval: Approval, due_ns: int) -> None:
        approval.due_ns = due_ns
        heapq.heappush(self._due, (due_ns, approval.number, approval.id))

    def _unlink(self, approval: Approval) -> None:
        if self._by_key.get(approval.key) is approval:
            del self._by_key[approval.key]

    def _drop(self, approval: Approval) -> None:
        del self._by_id[approval.id]
        self._unlink(approval)
