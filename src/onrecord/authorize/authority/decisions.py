"""A cache of policy decisions, and the memory of operations.

Policy is a pure function of the call, the bundle and what the server advertises. A key holds all three: the digest
stands for the arguments, and calls with float tokens are never cached, because 1 and 1.0 have one digest and two
JSON types.

Source: call-proof.md 8.6 (last paragraph); running.md R-07.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from onrecord.authorize.policy import Decision
    from onrecord.base.dates import Clock

CACHED_DECISIONS: Final = 10_000
"""Decisions kept. Agents repeat few distinct calls; one entry has some hundred bytes."""

KNOWN_OPERATIONS: Final = 20_000
"""Operations that a later issue can continue. An older one starts anew, which loses a number and no protection."""

MAX_ROUNDS: Final = 64
"""Input rounds told apart within one operation; more count as the last one."""


class DecisionKey(NamedTuple):
    """Everything that a decision depends on; the bundle is left out since a reload empties the cache."""

    caller: str
    server: str
    tools_generation: int
    name: str
    action_digest: str
    round: int


class DecisionCache:
    """A bounded map; when it is full the oldest entry goes."""

    def __init__(self, *, capacity: int = CACHED_DECISIONS) -> None:
        self._capacity = capacity
        self._entries: dict[DecisionKey, Decision] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: DecisionKey) -> Decision | None:
        """Return the decision for exactly this key."""
        return self._entries.get(key)

    def put(self, key: DecisionKey, decision: Decision) -> None:
        """Keep a decision."""
        if len(self._entries) >= self._capacity:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = decision

    def clear(self) -> None:
        """Forget all, because policy changed."""
        self._entries.clear()


class Operation:
    """One operation of one record session: the same call, over its attempts and input rounds."""

    __slots__ = ("call", "id", "rounds")

    def __init__(self, id_: str, call: tuple[int, str, str, str, str]) -> None:
        self.id = id_
        self.call = call
        """uid, session label, server, name and Action Digest: what an operation belongs to."""
        self.rounds: tuple[str, ...] = ()

    def round_of(self, input_digest: str | None) -> int:
        """Return 1 for the call itself, n + 1 for the n-th distinct set of inputs."""
        if input_digest is None:
            return 1
        if input_digest not in self.rounds:
            if len(self.rounds) >= MAX_ROUNDS:
                return MAX_ROUNDS + 1
            self.rounds += (input_digest,)
        return self.rounds.index(input_digest) + 2


class Operations:
    """Operations that this start of the authority has named."""

    def __init__(self, *, clock: Clock, capacity: int = KNOWN_OPERATIONS) -> None:
        self._clock = clock
        self._capacity = capacity
        self._known: dict[str, Operation] = {}
        self._order: deque[str] = deque()
        """Ids, oldest first. The first key of a dict that loses its first keys is found slower and slower."""
        self._random = ""

    def enter(
        self, asked: str | None, *, uid: int, label: str, server: str, name: str, action_digest: str
    ) -> tuple[Operation, bool]:
        """Return the operation of a request and whether it continues an earlier one.

        `asked` is the request's operationId. It counts only if this session was given it for the same server, name
        and digest; anything else is a label and a new operation starts.
        """
        call = (uid, label, server, name, action_digest)
        known = None if asked is None else self._known.get(asked)
        if known is not None and known.call == call:
            return known, True
        if len(self._known) >= self._capacity:
            del self._known[self._order.popleft()]
        made = Operation(self._make_id(), call)
        self._known[made.id] = made
        self._order.append(made.id)
        return made, False

    def _make_id(self) -> str:
        """Return a version 7 UUID (RFC 9562 section 5.7); random bytes are fetched for many at once."""
        if len(self._random) < 20:
            self._random = os.urandom(1024).hex()
        digits, self._random = self._random[:20], self._random[20:]
        time_ = f"{self._clock.now_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF:012x}"
        variant = "89ab"[int(digits[3], 16) & 3]
        return f"{time_[:8]}-{time_[8:]}-7{digits[:3]}-{variant}{digits[4:7]}-{digits[7:19]}"
