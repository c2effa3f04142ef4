"""Importer of Verifiable Agent Conversation Records, version 3 (native-logs.md 4.10; AA appendix C)."""

from onrecord.record.logs.vacr.records import VacrImporter

__all__ = ["VacrImporter"]
