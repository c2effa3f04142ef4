"""Names that others see: our namespace, the keys of the MCP binding, the event types of tool-invocation."""

from __future__ import annotations

from typing import Final

NS: Final = "dev.onrecord"
"""Namespace of our evidence types and members. Provisional until the domain is held (call-proof.md, head)."""

CALL_PROOF_EXTENSION: Final = "io.modelcontextprotocol/call-proof"
"""Capability key of the call-proof extension (CP section 10). The prefix belongs to MCP, so it stands in one place."""

CALL_PROOF_META: Final = "io.modelcontextprotocol/callProof"
"""Key of the proof in `params._meta` (CP section 10)."""

RECORD_SESSION_META: Final = f"{NS}/recordSession"
"""Key of the record-session label in `params._meta` (running.md R-06)."""

HANDLE_TYPE: Final = f"{NS}/handle"
JWS_TYPE: Final = f"{NS}/jws"

PROTOCOL_VERSION: Final = "1"
"""Version of callProof and of record/append."""

TOOL_INVOCATION_EXTENSION: Final = "tool-invocation"
AI_AGENT_EXTENSION: Final = "ai_agent"

POLICY_DECISION: Final = "policy-decision"
TOOL_EVENT_TYPES: Final = (
    "tool-invocation",
    "tool-pending",
    "tool-progress",
    "tool-input",
    "tool-input-response",
    "tool-result",
    "tool-failure",
    "tool-error",
    "tool-denied",
    "tool-timeout",
    "tool-cancel",
)
"""The eleven tool event types (TI section 6.1)."""

TI_EVENT_TYPES: Final = (POLICY_DECISION, *TOOL_EVENT_TYPES)
"""All twelve event types of tool-invocation (TI section 12.1.2)."""

CALL_PROOF_REASONS: Final = (
    "missing",
    "malformed",
    "unknown_type",
    "invalid",
    "mismatch",
    "expired",
    "revoked",
    "replayed",
    "authority_unreachable",
)
"""Values of `data.reason` in a -32021 rejection (call-proof.md 6.3)."""

CALL_PROOF_REJECTED: Final = -32021
"""JSON-RPC code of a rejected call proof (CP section 10)."""
