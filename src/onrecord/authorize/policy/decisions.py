"""Calls to be decided, and decisions.

Source: call-proof.md 8.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

Effect = Literal["allow", "approval", "deny"]

DETAILS: Final[Mapping[str, str]] = {
    "no_permit": "no rule allows the call",
    "forbidden": "a rule forbids the call",
    "unknown_tool": "the tool has no binding that counts",
    "unknown_arguments": "an argument is not as its binding says, or cannot be judged",
    "too_many_touches": "the call touches more paths or hosts than are judged",
    "unknown_caller": "the bundle has no such caller",
    "unknown_server": "the bundle has no such server",
    "policy_error": "the evaluator gave no clean decision",
}
"""Why a call is denied, in one word for the journal; no fact and no rule text is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """One call to be decided.

    `advertised` are the pins that the server advertises now, None before it was asked. `approvals` are the ids of
    rules whose approvals have been granted for exactly this call.
    """

    caller: str
    server: str
    name: str
    arguments: Mapping[str, Any] = field(repr=False)
    round: int = 1
    advertised: Mapping[str, str] | None = field(default=None, repr=False)
    approvals: frozenset[str] = frozenset()


class NeededApproval(NamedTuple):
    """An approval that a call waits for: the rule, how many people, of which group."""

    rule: str
    number: int
    group: str


@dataclass(frozen=True, slots=True)
class Touch:
    """What one evaluation was about. The facts are for people who explain, never for a log."""

    facts: Mapping[str, Any] = field(repr=False)
    effect: Effect
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one call.

    `rules` are the ids that decided: permits of an allowed call, forbids of a denied one, approval rules of one that
    waits. `detail` is a word of `DETAILS` for a denied call.
    """

    effect: Effect
    rules: tuple[str, ...] = ()
    approvals: tuple[NeededApproval, ...] = ()
    detail: str | None = None
    touches: tuple[Touch, ...] = ()
