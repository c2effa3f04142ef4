"""What came of one call, as the agent host tells the driver: a result, a failure of the tool, or an error.

The approver tells what it decided in the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from onrecord.base.namespaces import CALL_PROOF_REJECTED

Kind = Literal["result", "failure", "error", "approved", "rejected"]


@dataclass(frozen=True)
class Outcome:
    """`text` is what the tool returned; `code` and `reason` are those of a JSON-RPC error, or say who decided."""

    kind: Kind
    text: str = ""
    code: int = 0
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the members for the line to the driver."""
        return {"kind": self.kind, "text": self.text, "code": self.code, "reason": self.reason}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(members["kind"], members["text"], members["code"], members["reason"])

    def is_rejection(self, reason: str) -> bool:
        """Tell whether the tool side rejected the call for `reason`."""
        return self.kind == "error" and self.code == CALL_PROOF_REJECTED and self.reason == reason

    def __str__(self) -> str:
        """Say it in a few words, without any content."""
        match self.kind:
            case "error":
                return f"{self.code} {self.reason}".strip()
            case "approved" | "rejected":
                return f"{self.kind} by {self.reason}"
            case _:
                return self.kind
