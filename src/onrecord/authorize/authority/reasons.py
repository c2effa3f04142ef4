"""Every reason, error code and record type of the callProof interface, in one place.

Source: call-proof.md 5.3, 5.4, 10.1; describe.md 6.1 (control errors).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """`data.reason` of a refusal: agents act on this word, not on the code."""

    PARSE_ERROR = "parse_error"
    INVALID_REQUEST = "invalid_request"
    TOO_LARGE = "too_large"
    UNKNOWN_METHOD = "unknown_method"
    INVALID_PARAMS = "invalid_params"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNSUPPORTED_METHOD = "unsupported_method"
    UNKNOWN_SERVER = "unknown_server"
    DENIED = "denied"
    APPROVAL_PENDING = "approval_pending"
    APPROVAL_REJECTED = "approval_rejected"
    APPROVAL_EXPIRED = "approval_expired"
    UNKNOWN_CALLER = "unknown_caller"
    NOT_AUTHORIZED = "not_authorized"
    UNSUPPORTED_TYPE = "unsupported_type"
    POLICY_UNAVAILABLE = "policy_unavailable"
    AUDIT_UNAVAILABLE = "audit_unavailable"
    KEY_UNAVAILABLE = "key_unavailable"
    RATE_LIMITED = "rate_limited"
    UNSUPPORTED_VERSION = "unsupported_version"


CODES: Final[dict[Reason, int]] = {
    Reason.PARSE_ERROR: -32700,
    Reason.INVALID_REQUEST: -32600,
    Reason.TOO_LARGE: -32600,
    Reason.UNKNOWN_METHOD: -32601,
    Reason.INVALID_PARAMS: -32602,
    Reason.INVALID_ARGUMENTS: -32602,
    Reason.UNSUPPORTED_METHOD: -32602,
    Reason.UNKNOWN_SERVER: -32602,
    Reason.DENIED: -33001,
    Reason.APPROVAL_PENDING: -33002,
    Reason.APPROVAL_REJECTED: -33003,
    Reason.APPROVAL_EXPIRED: -33003,
    Reason.UNKNOWN_CALLER: -33004,
    Reason.NOT_AUTHORIZED: -33005,
    Reason.UNSUPPORTED_TYPE: -33006,
    Reason.POLICY_UNAVAILABLE: -33007,
    Reason.AUDIT_UNAVAILABLE: -33007,
    Reason.KEY_UNAVAILABLE: -33007,
    Reason.RATE_LIMITED: -33008,
    Reason.UNSUPPORTED_VERSION: -33009,
}
"""JSON-RPC code of each reason; outside the ranges that JSON-RPC and MCP reserve (call-proof.md 5.3)."""

MESSAGES: Final[dict[Reason, str]] = {
    Reason.PARSE_ERROR: "Not JSON",
    Reason.INVALID_REQUEST: "Not a valid request",
    Reason.TOO_LARGE: "The line is too long",
    Reason.UNKNOWN_METHOD: "Unknown method",
    Reason.INVALID_PARAMS: "Invalid parameters",
    Reason.INVALID_ARGUMENTS: "Invalid arguments",
    Reason.UNSUPPORTED_METHOD: "This method is not covered",
    Reason.UNKNOWN_SERVER: "Unknown server",
    Reason.DENIED: "Denied by policy",
    Reason.APPROVAL_PENDING: "Waiting for approval",
    Reason.APPROVAL_REJECTED: "Rejected by an approver",
    Reason.APPROVAL_EXPIRED: "The approval expired",
    Reason.UNKNOWN_CALLER: "Unknown caller",
    Reason.NOT_AUTHORIZED: "Not authorized for this method",
    Reason.UNSUPPORTED_TYPE: "No acceptable evidence type",
    Reason.POLICY_UNAVAILABLE: "No policy is in force",
    Reason.AUDIT_UNAVAILABLE: "The audit log cannot be written",
    Reason.KEY_UNAVAILABLE: "A key cannot be used",
    Reason.RATE_LIMITED: "Too many requests",
    Reason.UNSUPPORTED_VERSION: "No common version",
}
"""Fixed texts: nothing of the request, of policy or of a fact ever stands in a message."""


class Invalid(StrEnum):
    """`reason` of a verify answer that is not valid, in the order of the checks (call-proof.md 5.4)."""

    MISSING = "missing"
    UNKNOWN_TYPE = "unknown_type"
    MALFORMED = "malformed"
    INVALID = "invalid"
    MISMATCH = "mismatch"
    EXPIRED = "expired"
    REVOKED = "revoked"
    REPLAYED = "replayed"


class ControlReason(StrEnum):
    """`data.reason` of a refused control."""

    NOT_AUTHORIZED = "not_authorized"
    UNKNOWN_AGENT = "unknown_agent"
    CONFLICT = "conflict"
    OUT_OF_BOUNDS = "out_of_bounds"
    NOT_SUPPORTED = "not_supported"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


CONTROL_CODES: Final[dict[ControlReason, int]] = {
    ControlReason.NOT_AUTHORIZED: -33101,
    ControlReason.UNKNOWN_AGENT: -33102,
    ControlReason.CONFLICT: -33103,
    ControlReason.OUT_OF_BOUNDS: -33104,
    ControlReason.NOT_SUPPORTED: -33105,
    ControlReason.FAILED: -33106,
    ControlReason.UNAVAILABLE: -33107,
}
"""JSON-RPC code of each control reason (describe.md 6.1)."""

CONTROL_MESSAGES: Final[dict[ControlReason, str]] = {
    ControlReason.NOT_AUTHORIZED: "Not authorized for this control",
    ControlReason.UNKNOWN_AGENT: "Unknown agent",
    ControlReason.CONFLICT: "The request conflicts with an earlier one",
    ControlReason.OUT_OF_BOUNDS: "The value is out of bounds",
    ControlReason.NOT_SUPPORTED: "This control is not supported",
    ControlReason.FAILED: "The control failed",
    ControlReason.UNAVAILABLE: "The control is not available now",
}


class RecordType(StrEnum):
    """Types of the records in the decision journal (call-proof.md 10.1)."""

    START = "start"
    STOP = "stop"
    POLICY_LOADED = "policy.loaded"
    POLICY_REFUSED = "policy.refused"
    ISSUE_GRANTED = "issue.granted"
    ISSUE_DENIED = "issue.denied"
    ISSUE_REFUSED = "issue.refused"
    APPROVAL_PENDING = "approval.pending"
    APPROVAL_GRANTED = "approval.granted"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_EXPIRED = "approval.expired"
    VERIFY_VALID = "verify.valid"
    VERIFY_INVALID = "verify.invalid"
    CALL_WITHOUT_ID = "call.without_id"
    CALLER_UNKNOWN = "caller.unknown"
    CALLER_GONE = "caller.gone"
    ROLE_REFUSED = "role.refused"
    TOOLS_CHANGED = "tools.changed"


DECISION_RECORDS: Final = frozenset(
    {RecordType.ISSUE_GRANTED, RecordType.ISSUE_DENIED, RecordType.APPROVAL_PENDING}
)
"""Records that become `decision` or `proof` entries of the recorder (running.md 8)."""
