"""Standing policy decisions: which one is in effect for an operation at a point of the record.

    >>> book = StandingDecisions()
    >>> book.record(Target(1, "tool-invocation", "mail", None), "disallowed", 0)
    0
    >>> book.effective(party=1, operation="tool-invocation", server="mail", tool="send").source
    'standing-server'

Source: TI 4.1; record.md D-50 and D-51.
"""

from __future__ import annotations

from typing import Final, NamedTuple

STRICTNESS: Final = {"allowed": 0, "permission-required": 1, "disallowed": 2}
"""How strict a decision is, mildest first (record.md D-51)."""


class Target(NamedTuple):
    """What a standing decision is about. `tool` None means every tool of the server."""

    party: int
    operation: str
    server: str
    tool: str | None


class Standing(NamedTuple):
    """A standing decision in effect: the decision, the index of its event, and where it comes from."""

    decision: str
    event: int
    source: str


class StandingDecisions:
    """The standing decisions in effect as a record is read in order of time. The session is no part of the key."""

    def __init__(self) -> None:
        self._in_effect: dict[Target, tuple[str, int]] = {}
        self._counts: dict[Target, list[int]] = {}

    def record(self, target: Target, decision: str, index: int) -> int:
        """Take a standing decision, the event at `index`; it replaces the one with an equal target.

        Returns how many tools of the server have a milder decision of their own when this one is for the whole
        server: those stay in effect, and whoever meant to stop the server should know.
        """
        replaced = self._in_effect.get(target)
        self._in_effect[target] = (decision, index)
        counts = self._counts.setdefault(target._replace(tool=None), [0] * len(STRICTNESS))
        if target.tool is None:
            return sum(counts[: STRICTNESS[decision]])
        if replaced is not None:
            counts[STRICTNESS[replaced[0]]] -= 1
        counts[STRICTNESS[decision]] += 1
        return 0

    def in_effect(self, target: Target) -> int | None:
        """Return the event of the decision in effect for exactly this target, or None."""
        found = self._in_effect.get(target)
        return None if found is None else found[1]

    def effective(self, *, party: int, operation: str, server: str, tool: str | None) -> Standing | None:
        """Return the decision that covers an operation: the one for its tool, else the one for its server."""
        if tool is not None:
            found = self._in_effect.get(Target(party, operation, server, tool))
            if found is not None:
                return Standing(*found, "standing-tool")
        found = self._in_effect.get(Target(party, operation, server, None))
        return None if found is None else Standing(*found, "standing-server")

    def all_in_effect(self) -> tuple[tuple[Target, str, int], ...]:
        """Return every decision in effect, in the order in which its target first came: what a new vCon restates."""
        return tuple((target, decision, index) for target, (decision, index) in self._in_effect.items())
