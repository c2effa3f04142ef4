"""Redaction of vCons: rules and profiles, the redactor with its report, and the proof that nothing leaked."""

from onrecord.record.redaction.comparison import compare
from onrecord.record.redaction.redactor import Redaction, redact
from onrecord.record.redaction.report import RedactionReport
from onrecord.record.redaction.rules import PROFILES, Rules

__all__ = ["PROFILES", "Redaction", "RedactionReport", "Rules", "compare", "redact"]
