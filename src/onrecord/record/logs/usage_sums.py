"""Sums of token usage for the report."""

from __future__ import annotations

from typing import Literal

from onrecord.record.logs.usage import Usage

Scope = Literal["response", "turn", "session"]
"""What a usage is about (native-logs.md D-LOG-02, 03)."""


class UsageSums:
    """Sums of token usage in one scope."""

    __slots__ = ("cached", "count", "input", "output", "reasoning", "total")

    def __init__(self) -> None:
        self.count = self.input = self.output = self.cached = self.reasoning = self.total = 0

    def add(self, usage: Usage) -> None:
        """Count one usage."""
        self.count += 1
        self.input += usage.input or 0
        self.output += usage.output or 0
        self.cached += usage.cached or 0
        self.reasoning += usage.reasoning or 0
        self.total += usage.total or 0

    def to_json(self, *, responses: int) -> dict[str, int]:
        """Return the `usage` of a session in the report."""
        return {
            "responses": responses,
            "input": self.input,
            "output": self.output,
            "cached": self.cached,
            "reasoning": self.reasoning,
            "total": self.total,
        }
