"""What a client's model reads when a call did not happen. Never a rule, never a fact of policy.

Source: running.md 6; call-proof.md 5.3.
"""

from __future__ import annotations

from typing import Any, Final

from onrecord.base.errors import OnrecordError
from onrecord.base.wire import RpcError, error_line

AUTHORITY_UNREACHABLE: Final = -33007
RATE_LIMITED: Final = -33008
_KEPT: Final = (
    "reason",
    "ref",
    "approvalId",
    "expiresAt",
    "retryAfterMs",
    "operationId",
    "detail",
    "supported",
)

_TEXTS: Final = {
    "approval_rejected": "A person rejected this call.",
    "approval_expired": "Nobody approved this call in time: nothing was executed. Repeat it to ask again.",
    "unknown_caller": "This agent is not known to the authority. Nothing was executed; tell the user.",
    "not_authorized": "This agent may not ask for this. Nothing was executed; tell the user.",
    "policy_unavailable": "No policy is in force. Nothing was executed; try again later.",
    "audit_unavailable": "The authority cannot write its log. Nothing was executed; try again later.",
    "key_unavailable": "The authority cannot use its key. Nothing was executed; try again later.",
    "rate_limited": "Too many calls. Nothing was executed; try again later.",
    "authority_unreachable": "The authority cannot be reached. Nothing was executed; try again later.",
    "unknown_server": "The authority does not know this server. Nothing was executed; tell the user.",
}


def refusal_text(error: RpcError) -> str:
    """Return the text for the model."""
    reason, data = error.reason, error.data
    if reason == "denied":
        ref = data.get("ref")
        named = f" (ref {ref})" if type(ref) is str else ""
        return f"Denied by policy{named}. Nothing was executed. Do not retry; tell the user."
    if reason == "approval_pending":
        approval = data.get("approvalId")
        named = f" {approval}" if type(approval) is str else ""
        return (
            f"Waiting for approval{named}: nothing was executed. Ask the user to run `onrecord approvals`, "
            "then repeat exactly this call."
        )
    return _TEXTS.get(reason or "", str(error) or "Refused")


def refusal_line(request_id: Any, answer: Any) -> bytes:
    """Return the line that answers a call whose issue did not give a proof.

    `answer` is the error that the authority sent, or the failure to reach it.
    """
    if not isinstance(answer, RpcError):
        answer = unreachable(answer)
    data = {name: answer.data[name] for name in _KEPT if name in answer.data}
    if answer.reason is not None:
        data["reason"] = answer.reason
    return error_line(request_id, answer.rpc_code, refusal_text(answer), data)


def unreachable(cause: Any = None) -> RpcError:
    """Return the error of an authority that could not be asked."""
    detail = {"detail": cause.code} if isinstance(cause, OnrecordError) else {}
    return RpcError(
        AUTHORITY_UNREACHABLE, "Authority unreachable", {"reason": "authority_unreachable", **detail}
    )


def too_many_held(request_id: Any) -> bytes:
    """Return the line for a call that would have to wait beside too many others."""
    data = {"reason": "rate_limited", "retryAfterMs": 1000}
    return error_line(request_id, RATE_LIMITED, _TEXTS["rate_limited"], data)
