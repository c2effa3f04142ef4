"""Putting onrecord into the configuration files of MCP clients, and taking it out again."""

from onrecord.authorize.wrap.candidates import Candidate, candidates
from onrecord.authorize.wrap.entries import LeftAlone
from onrecord.authorize.wrap.undoing import UndoReport, undo
from onrecord.authorize.wrap.wrapping import WrapReport, wrap

__all__ = ["Candidate", "LeftAlone", "UndoReport", "WrapReport", "candidates", "undo", "wrap"]
