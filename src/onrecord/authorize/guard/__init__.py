"""Runs an MCP tool server behind enforcement: no covered call reaches it without a valid proof."""

from onrecord.authorize.guard.service import run_guard

__all__ = ["run_guard"]
