"""What one session leaves to the following one of the same key: operations and calls that are still open.

Source: running.md 7.3; record.md 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from onrecord.record.recorder.recorded import Origin


class CallKey(NamedTuple):
    """One tools/call line of one connection of one guard process."""

    origin: Origin
    connection: str
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOperation:
    """An operation that a following session may go on with."""

    operation_id: str
    server: str
    tool: str
    action_digest: str | None
    attempts: int
    decision: str | None
    is_granted: bool
    proof_refs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """What one session leaves to the following one of the same key: operations and calls that are still open."""

    operations: tuple[CarriedOperation, ...] = ()
    calls: tuple[tuple[CallKey, str, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.operations or self.calls)

    def to_json(self) -> dict[str, Any]:
        """Return the form in which it stands beside the session's statement."""
        return {
            "operations": [
                {
                    "operationId": one.operation_id,
                    "server": one.server,
                    "tool": one.tool,
                    "actionDigest": one.action_digest,
                    "attempts": one.attempts,
                    "decision": one.decision,
                    "granted": one.is_granted,
                    "proofRefs": list(one.proof_refs),
                }
                for one in self.operations
            ],
            "calls": [
                [
                    key.origin.uid,
                    key.origin.server,
                    key.origin.source,
                    key.connection,
                    key.call,
                    operation,
                    attempt,
                ]
                for key, operation, attempt in self.calls
            ],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Carry:
        """Read the form that `to_json` gives."""
        return cls(
            operations=tuple(
                CarriedOperation(
                    operation_id=one["operationId"],
                    server=one["server"],
                    tool=one["tool"],
                    action_digest=one["actionDigest"],
                    attempts=one["attempts"],
                    decision=one["decision"],
                    is_granted=one["granted"],
                    proof_refs=tuple(one["proofRefs"]),
                )
                for one in document["operations"]
            ),
            calls=tuple(
                (CallKey(Origin(uid, server, source), connection, call), operation, attempt)
                for uid, server, source, connection, call, operation, attempt in document["calls"]
            ),
        )


def limited(carry: Carry, *, count: int) -> Carry:
    """Return the newest `count` operations and calls of a carry."""
    return replace(carry, operations=carry.operations[-count:], calls=carry.calls[-count:])
