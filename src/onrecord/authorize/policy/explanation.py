"""What one call would be, and why: facts, touches, decision. For people at a terminal, offline.

Source: running.md 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from onrecord.authorize.policy.cedar import Policy
from onrecord.authorize.policy.decisions import DETAILS, CallRequest, Decision
from onrecord.authorize.policy.facts import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One call, what it was read as, and the decision."""

    call: CallRequest
    reading: Reading = field(repr=False)
    decision: Decision

    def to_json(self) -> dict[str, Any]:
        """Return facts, touches, decision, rules and the approvals that are needed."""
        document: dict[str, Any] = {
            "caller": self.call.caller,
            "server": self.call.server,
            "name": self.call.name,
            "facts": {
                "op": self.reading.op,
                "impact": self.reading.impact,
                "round": self.call.round,
                "unknown": list(self.reading.unknown),
            },
            "touches": [
                {"facts": dict(touch.facts), "decision": touch.effect, "rules": list(touch.rules)}
                for touch in self.decision.touches
            ],
            "decision": self.decision.effect,
            "rules": list(self.decision.rules),
            "approvals": [need._asdict() for need in self.decision.approvals],
        }
        if self.decision.detail is not None:
            document["detail"] = self.decision.detail
            document["meaning"] = DETAILS[self.decision.detail]
        return document


def explain(policy: Policy, call: CallRequest) -> Explanation:
    """Return the explanation of a call; where it says nothing of it, the server advertises what is pinned."""
    if call.advertised is None:
        call = replace(call, advertised=policy.pins(call.server))
    return Explanation(call=call, reading=policy.read(call), decision=policy.decide(call))
