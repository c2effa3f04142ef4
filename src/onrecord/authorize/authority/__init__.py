"""The Call Authority: decides, hands out call proofs, checks them, and keeps the decision journal."""

from __future__ import annotations

from onrecord.authorize.authority.daemon import run_authority
from onrecord.authorize.authority.server import Authority
from onrecord.authorize.authority.summaries import summary_lines

__all__ = ["Authority", "run_authority", "summary_lines"]
