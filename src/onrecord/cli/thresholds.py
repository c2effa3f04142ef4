"""From which severity on findings decide the exit status."""

from __future__ import annotations

from enum import Enum


class FailOn(Enum):
    """From which severity on findings make the command end with 1."""

    NEVER = "never"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
