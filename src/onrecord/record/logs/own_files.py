"""The names of the files that an import writes."""

from __future__ import annotations

import re
from typing import Final

FILE_NAME: Final = ".onrecord-import.state"
"""Name of the notes about an import in the folder of the vCons."""

UUID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A UUID as vCons carry it, and as their files are called."""

TEMPORARY: Final = re.compile(
    rf"\.(?:{UUID.pattern}\.vcon\.[0-9a-f]{{12}}(?:\.part)?|{re.escape(FILE_NAME)}\.[0-9a-f]{{12}})"
)
"""Names of files that an import writes before it gives them their own: vCons, signed ones, and its notes."""

OWN_FILES: Final = re.compile(rf"{UUID.pattern}\.vcon|{re.escape(FILE_NAME)}|{TEMPORARY.pattern}")
"""Names of all files that an import puts into the folder of the vCons."""
