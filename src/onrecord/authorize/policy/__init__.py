"""Signed policy: bundle, lint, facts and the compiled Cedar rules."""

from onrecord.authorize.policy.bundle import Bundle, LoadedVersion, read_bundle
from onrecord.authorize.policy.cedar import Policy
from onrecord.authorize.policy.decisions import DETAILS, CallRequest, Decision, NeededApproval, Touch
from onrecord.authorize.policy.explanation import Explanation, explain
from onrecord.authorize.policy.facts import schema_hash
from onrecord.authorize.policy.lint import check_bundle
from onrecord.authorize.policy.loading import PolicyLintError, load_bundle
from onrecord.authorize.policy.model import Caller, Limits, ServerPolicy
from onrecord.authorize.policy.rollback import RollbackState
from onrecord.authorize.policy.signing import Checked, check_policy, sign_source
from onrecord.authorize.policy.starter import write_source

__all__ = [
    "DETAILS",
    "Bundle",
    "CallRequest",
    "Caller",
    "Checked",
    "Decision",
    "Explanation",
    "Limits",
    "LoadedVersion",
    "NeededApproval",
    "Policy",
    "PolicyLintError",
    "RollbackState",
    "ServerPolicy",
    "Touch",
    "check_bundle",
    "check_policy",
    "explain",
    "load_bundle",
    "read_bundle",
    "schema_hash",
    "sign_source",
    "write_source",
]
