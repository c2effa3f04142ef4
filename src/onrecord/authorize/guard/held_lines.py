"""Lines that wait in front of the real server."""

from __future__ import annotations

from typing import Any, NamedTuple

from onrecord.authorize import digest as digests
from onrecord.authorize.guard.authority_link import Verdict
from onrecord.authorize.guard.extension import Evidence, Malformed, take_evidence
from onrecord.authorize.guard.reading import TOOLS_CALL, Call, Message


class HeldLine:
    """A line that needs no proof, and waits only because something before it does."""

    __slots__ = ("is_dropped", "is_ready", "line", "message")

    def __init__(self, message: Message, line: bytes) -> None:
        self.message = message
        self.line = line
        self.is_ready = True
        self.is_dropped = False


class Prepared(NamedTuple):
    """What is written when a call is executed: its name, its invocation, and the line for the server."""

    name: str
    invocation: bytes
    line: bytes


class HeldCall(HeldLine):
    """A covered call until its verdict is there. Proof and label are taken out of the message here.

    `moment` is when it came: wall time and boot time in nanoseconds. `prepared` is what its execution needs.
    """

    __slots__ = ("call", "digest", "evidence", "label", "moment", "prepared", "verdict")

    def __init__(self, message: Message, call: Call, moment: tuple[int, int]) -> None:
        super().__init__(message, b"")
        self.is_ready = False
        self.call = call
        self.moment = moment
        self.digest = digests.action_digest(TOOLS_CALL, call.name, call.arguments, facts=message.facts)
        self.evidence, self.label = take_evidence(call)
        self.verdict: Verdict | None = None
        self.prepared: Prepared | None = None

    def question(self, server: str, peer_uid: int | None) -> dict[str, Any]:
        """Return the parameters of callProof/verify (call-proof.md 5.4, 5.5)."""
        evidence = self.evidence
        if type(evidence) is Evidence:
            shown: dict[str, str] | None = {"type": evidence.type, "value": evidence.value}
        else:
            # None would say that there was none; an empty object says malformed in the authority's log too.
            shown = (evidence.reported or {}) if type(evidence) is Malformed else None
        params: dict[str, Any] = {
            "actionDigest": self.digest,
            "server": server,
            "method": TOOLS_CALL,
            "name": self.call.name,
            "evidence": shown,
        }
        if self.call.continues:
            params["inputDigest"] = digests.input_digest(self.call.params, self.message.facts)
        if peer_uid is not None:
            params["peerUid"] = peer_uid
        return params
