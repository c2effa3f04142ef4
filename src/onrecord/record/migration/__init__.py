"""Migration: a vCon of an older core version becomes one of the present version, and the report says what happened.

    >>> from onrecord.record.vcon.model import Vcon
    >>> old = Vcon.read(b'{"vcon":"0.0.1","uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd","redacted":{},"parties":[]}')
    >>> [change.code for change in migrate(old).report.changes]
    ['version-dropped', 'empty-dropped', 'updated-at-set']

Source: record.md 1.3, 1.4, D-32.
"""

from onrecord.record.migration.migrations import TARGET, Migration, migrate
from onrecord.record.migration.report import STEPS, Change, MigrationReport, Step
from onrecord.record.migration.reverting import revert

__all__ = ["STEPS", "TARGET", "Change", "Migration", "MigrationReport", "Step", "migrate", "revert"]
