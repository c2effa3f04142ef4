"""The checkout as other uids see it, and what is installed beside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from support.data import REPOSITORY


def is_closed_to_others() -> bool:
    """Say whether some directory down to the checkout may not be passed by other uids."""
    places = [REPOSITORY, *REPOSITORY.parents]
    return not all(stat.S_IMODE(os.stat(place).st_mode) & 0o001 for place in places)


def installed_servers() -> Path:
    """Return the directory of real servers: `$ONRECORD_TEST_SERVERS`, else `.test-servers` of the checkout."""
    named = os.environ.get("ONRECORD_TEST_SERVERS")
    return Path(named) if named else (REPOSITORY / ".test-servers").resolve()
