"""Finding codes of policy bundles and their sources.

>>> CODES["rule-id"].severity
'error'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from onrecord.base.findings import Code, Finding, Severity, register

_LINT = "call-proof.md 8.7"
_BUNDLE = "running.md 4.1"
_BINDING = "running.md 4.4"
_LATER = "running.md 13"
_SOURCE = "running.md 4.2"

CODES: Final[Mapping[str, Code]] = MappingProxyType(
    {
        "bundle-malformed": Code(
            "error", "a member is missing, unknown or of the wrong type", _BUNDLE, fatal=True
        ),
        "bundle-json": Code("error", "the text is not strict JSON", "call-proof.md 8.1", fatal=True),
        "bundle-schema": Code("error", "the schema is not the one shipped for this format", _BUNDLE),
        "bundle-created": Code("error", "created is not a UTC date-time", _BUNDLE),
        "uid-refused": Code("error", "uid 0 and the overflow uids are nobody's", _LINT),
        "uid-shared": Code("error", "one uid has two roles or two ids", _LINT),
        "id-duplicate": Code("error", "an id or name occurs twice", _LINT),
        "caller-differs": Code("error", "entries of one caller id differ in groups or agent", _LINT),
        "group-unknown": Code("error", "a group is used and not listed under groups", _BUNDLE),
        "group-cycle": Code("error", "groups contain each other", _BUNDLE),
        "user-mode": Code("error", "userMode names a caller or approver that is not there", _BUNDLE),
        "root-path": Code("error", "a root or base is not a plain absolute path", _BUNDLE),
        "root-duplicate": Code(
            "error", "two roots of one server have the same path, or a root is named outside", _BUNDLE
        ),
        "approvers-too-few": Code("error", "the group has fewer members than approvals are needed", _LINT),
        "retention-order": Code("error", "bodies would be kept longer than the journal", _BUNDLE),
        "descriptions-unsupported": Code("error", "verified descriptions are not built yet", _LATER),
        "passkey-unsupported": Code("error", "passkey approvals are not built yet", "call-proof.md 15"),
        "effects-unsupported": Code("error", "effects in a binding are not built yet", _LATER),
        "binding-undecided": Code(
            "error", "a proposed binding still has members that a person must decide", _BINDING
        ),
        "binding-pin": Code("error", "the pin is not the hash of an inputSchema", _BINDING),
        "binding-base": Code("error", "the base of a path argument is missing or unknown", _BINDING),
        "base-not-cwd": Code(
            "warning", "relative paths count from elsewhere than the server's working directory", _BUNDLE
        ),
        "binding-currency": Code("error", "the currency of an amount is missing or unknown", _BINDING),
        "binding-argument": Code("error", "a binding refers to an argument that does not fit", _BINDING),
        "binding-fact": Code("error", "an argument of this JSON type cannot give this fact", _BINDING),
        "binding-member": Code("error", "a member does not belong to an argument of this kind", _BINDING),
        "binding-missing-tool": Code("warning", "a rule names a tool that has no binding", _BINDING),
        "policies-syntax": Code("error", "the policies are not Cedar", _LINT, fatal=True),
        "policies-size": Code(
            "error", "the policies are too many, too long or nested too deep", "call-proof.md 8.5", fatal=True
        ),
        "policies-invalid": Code("error", "a rule does not pass validation against the schema", _LINT),
        "rule-id": Code("error", "a rule has no @id, or not one of the right form", _LINT),
        "rule-id-duplicate": Code("error", "two rules have the same @id", _LINT),
        "rule-id-reserved": Code("error", "ids that begin with onrecord. are reserved", "running.md 4.3"),
        "rule-template": Code("error", "templates are refused", _LINT),
        "rule-arithmetic": Code(
            "error",
            "arithmetic in a condition can overflow, and an error skips a forbid",
            "call-proof.md 8.5",
        ),
        "rule-operator": Code(
            "error", "a condition uses a function or operator that is refused", "call-proof.md 8.5"
        ),
        "rule-context": Code("error", "context is used as a whole, not by its members", _LINT),
        "rule-approval-effect": Code("error", "@approval stands on a permit", "call-proof.md 8.6"),
        "rule-approval-number": Code("error", "@approval is not a number from 1 to 9", "call-proof.md 8.6"),
        "rule-approval-unless": Code(
            "error", "the unless of an approval rule is not exactly its own approval", _LINT
        ),
        "rule-approval-elsewhere": Code(
            "error", "context.approvals is used outside of its approval rule", _LINT
        ),
        "rule-approvers": Code(
            "error", "@approval and @approvers do not stand together or name no known group", _LINT
        ),
        "rule-group-unknown": Code("error", "a rule names a group that is not listed under groups", _BUNDLE),
        "rule-name-unknown": Code(
            "warning", "a rule names a caller or server that the bundle does not have", _LINT
        ),
        "source-file": Code("error", "a file of the source cannot be read", _SOURCE, fatal=True),
        "source-schema": Code("error", "schema.cedar is not a copy of the shipped schema", _SOURCE),
        "version-not-new": Code(
            "warning", "policy sign would refuse the source beside the bundle that is there", _SOURCE
        ),
        "test-failed": Code("error", "a row of tests.json came out differently", _SOURCE),
    }
)
"""Codes with severity, meaning and source."""

register(CODES, group="policy")


def finding(
    code: str, pointer: str, message: str, *, severity: Severity | None = None, **data: Any
) -> Finding:
    """Return a finding with the severity and source of its code; `data` are its further members."""
    entry = CODES[code]
    return Finding(
        code=code,
        severity=severity or entry.severity,
        pointer=pointer,
        message=message,
        source=entry.source,
        fatal=entry.fatal,
        data=data or None,
    )
