"""Which lines of which files the agent wrote, for the File Attribution of a vCon."""

from onrecord.record.logs.attribution.edits import Attribution

__all__ = ["Attribution"]
