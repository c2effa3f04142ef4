"""Proof records: what was issued, for how long, and whether it was used.

The store is plain memory, changed by one thread only. A restart empties it on purpose: the start id in every value
says that an older proof is `expired`. Single use needs no tombstone, since a record is marked in the same step that
answers valid; tombstones only give better reasons.

Source: call-proof.md 4.5, 5.4, 5.5, 5.6.
"""

from __future__ import annotations

from collections import deque
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onrecord.authorize.authority.reasons import Invalid
from onrecord.authorize.evidence.interface import ForeignEvidence, ProofClaims
from onrecord.base.errors import MalformedError
from onrecord.base.hashes import ProofRef

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onrecord.authorize.evidence.interface import EvidenceProfile

MAX_SWEEP: Final = 64
"""Records moved to the tombstones in one step, so that no request waits for a large sweep."""

MAX_PROOF_SECONDS: Final = 30
"""Longest window (CP section 9, point 4). The bundle refuses more, and so does the store."""


class IssueFacts(NamedTuple):
    """On what grounds a proof was issued. `issued_ns` is CLOCK_BOOTTIME."""

    issued_ns: int
    uid: int
    method: str
    name: str
    policy_version: int
    tool_revision: int
    operation_id: str
    rules: tuple[str, ...]


class ProofRecord:
    """What the authority remembers of one proof. Everything but `used` and `is_buried` is fixed at issue."""

    __slots__ = (
        "action_digest",
        "approval_id",
        "caller",
        "expires_ns",
        "input_digest",
        "is_buried",
        "issue",
        "key",
        "proof_ref",
        "server",
        "type",
        "used",
    )

    def __init__(
        self,
        key: bytes,
        type_: str,
        claims: ProofClaims,
        issue: IssueFacts,
        proof_ref: str,
        approval_id: str | None = None,
    ) -> None:
        self.key = key
        self.type = type_
        self.action_digest = claims.action_digest
        self.input_digest = claims.input_digest
        self.server = claims.server
        self.caller = claims.caller
        self.issue = issue
        self.expires_ns = issue.issued_ns + min(claims.window_seconds, MAX_PROOF_SECONDS) * 1_000_000_000
        self.proof_ref = proof_ref
        self.approval_id = approval_id
        """Id of the approval that released this proof, None if it needed none."""
        self.used = False
        self.is_buried = False

    def __repr__(self) -> str:
        return f"<ProofRecord {self.proof_ref} {self.server}/{self.issue.name} used={self.used}>"


class Presented(NamedTuple):
    """Outcome of checks 0 to 7: a record that may be used now, or the reason why not."""

    reason: Invalid | None
    record: ProofRecord | None = None
    proof_ref: str | None = None
    type: str | None = None


class ProofStore:
    """All proofs of one start of the authority.

    `start_id` are the four bytes in every value. `is_revoked` says whether a record's grounds have changed since
    its issue. Times are CLOCK_BOOTTIME in nanoseconds and come in with each call.
    """

    def __init__(
        self,
        profiles: Sequence[EvidenceProfile],
        *,
        start_id: bytes,
        is_revoked: Callable[[ProofRecord], bool],
    ) -> None:
        self.profiles = {profile.type: profile for profile in profiles}
        self.start_id = start_id
        self._is_revoked = is_revoked
        self._records: dict[bytes, ProofRecord] = {}
        self._live: deque[ProofRecord] = deque()
        self._tombstones: deque[tuple[int, bytes]] = deque()
        self._outstanding: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._records)

    @property
    def tombstones(self) -> int:
        """Records that are kept for their reason alone."""
        return len(self._tombstones)

    def outstanding(self, caller: str) -> int:
        """Proofs of this caller that are neither used nor known to be expired."""
        return self._outstanding.get(caller, 0)

    def issue(
        self,
        profile: EvidenceProfile,
        claims: ProofClaims,
        issue: IssueFacts,
        *,
        approval_id: str | None = None,
    ) -> tuple[str, ProofRecord]:
        """Make a proof value and its record. The proof is good for nothing until `keep` is called with the record.

        The window of `claims` starts at `issue.issued_ns`. `approval_id` is that of the approval which releases it.

        Raises `KeyAccessError` if the profile's key cannot be used now.
        """
        value, key = profile.mint(claims, start_id=self.start_id)
        return value, ProofRecord(key.key, profile.type, claims, issue, _ref(value), approval_id)

    def keep(self, record: ProofRecord) -> None:
        """Make an issued proof usable: called once its journal record was handed over."""
        self._records[record.key] = record
        self._live.append(record)
        self._outstanding[record.caller] = self._outstanding.get(record.caller, 0) + 1

    def check(
        self,
        evidence: Any,
        *,
        action_digest: str,
        input_digest: str | None,
        server: str,
        peer_uid: int | None,
        max_value_characters: int,
        now_ns: int,
    ) -> Presented:
        """Run checks 0 to 7 of call-proof.md 5.4 on the `evidence` member of a verify request; first failure wins.

        Nothing is consumed: without a reason, the caller hands the journal its record and then calls `consume`
        before anything else happens on this thread.
        """
        if evidence is None:
            return Presented(Invalid.MISSING)
        if not isinstance(evidence, dict):
            return Presented(Invalid.MALFORMED)
        type_ = evidence.get("type")
        if not isinstance(type_, str) or not type_:
            return Presented(Invalid.MALFORMED)
        profile = self.profiles.get(type_)
        if profile is None:
            return Presented(Invalid.UNKNOWN_TYPE)
        value = evidence.get("value")
        if (
            not isinstance(value, str)
            or not 0 < len(value) <= max_value_characters
            or not value.isascii()
            or not value.isprintable()
        ):
            return Presented(Invalid.MALFORMED, type=type_)
        try:
            key = profile.read(value)
        except MalformedError:
            return Presented(Invalid.MALFORMED, None, _ref(value), type_)
        except ForeignEvidence:
            return Presented(Invalid.INVALID, None, _ref(value), type_)
        if key.start_id != self.start_id:
            # Made by an earlier start: its records are gone, and with them what it was for.
            return Presented(Invalid.EXPIRED, None, _ref(value), type_)
        record = self._records.get(key.key)
        if record is None or record.type != type_:
            return Presented(Invalid.INVALID, None, _ref(value), type_)
        # All comparisons run, in constant time each, so that the answer's delay does not tell which one failed.
        equal = compare_digest(record.action_digest, action_digest)
        equal &= compare_digest(record.server, server)
        equal &= compare_digest(record.input_digest or "", input_digest or "")
        reason: Invalid | None = None
        if not equal or (peer_uid is not None and peer_uid != record.issue.uid):
            reason = Invalid.MISMATCH
        elif now_ns >= record.expires_ns:
            reason = Invalid.EXPIRED
        elif self._is_revoked(record):
            reason = Invalid.REVOKED
        elif record.used:
            reason = Invalid.REPLAYED
        return Presented(reason, record, record.proof_ref, type_)

    def consume(self, record: ProofRecord, *, now_ns: int) -> None:
        """Mark a proof used. Runs in the step that answers valid, with nothing in between."""
        record.used = True
        self._bury(record, now_ns=now_ns)

    def sweep(self, *, now_ns: int, tombstone_seconds: int, tombstones: int) -> None:
        """Move expired proofs to the tombstones and drop old tombstones, a bounded number of each."""
        for _ in range(MAX_SWEEP):
            if not self._live:
                break
            oldest = self._live[0]
            if not oldest.is_buried and now_ns < oldest.expires_ns:
                break
            self._live.popleft()
            self._bury(oldest, now_ns=now_ns)
        horizon = now_ns - tombstone_seconds * 1_000_000_000
        for _ in range(MAX_SWEEP):
            if not self._tombstones:
                break
            if len(self._tombstones) <= tombstones and self._tombstones[0][0] > horizon:
                break
            del self._records[self._tombstones.popleft()[1]]

    def _bury(self, record: ProofRecord, *, now_ns: int) -> None:
        if record.is_buried:
            return
        record.is_buried = True
        self._tombstones.append((now_ns, record.key))
        left = self._outstanding[record.caller] - 1
        if left:
            self._outstanding[record.caller] = left
        else:
            del self._outstanding[record.caller]


def _ref(value: str) -> str:
    return str(ProofRef.of(value.encode("ascii")))
