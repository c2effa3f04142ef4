"""Look into the journals of running daemons, through copies.

A reader that opened a journal as root could leave files that its writer can no longer open.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from onrecord.base.errors import LogError
from onrecord.record.ledger.records import Record

WAIT_SECONDS: Final = 15
"""A journal is behind by one commit, and the record by one delivery; this is a bound for what went wrong."""

PAUSE_SECONDS: Final = 0.1


def read_records(directory: Path) -> tuple[Record, ...]:
    """Return what is committed in the journal files of `directory`; nothing where a copy was caught in mid-write."""
    records: list[Record] = []
    with tempfile.TemporaryDirectory(prefix="onrecord-demo-") as name:
        for path in sorted(directory.glob("journal-*.db")):
            copy = Path(name) / path.name
            try:
                for suffix in ("", "-wal"):
                    source = path.with_name(path.name + suffix)
                    if source.exists():
                        shutil.copyfile(source, copy.with_name(copy.name + suffix))
                with closing(sqlite3.connect(copy)) as connection:
                    rows = connection.execute("SELECT bytes FROM record ORDER BY seq").fetchall()
                    records += [Record.read(row) for (row,) in rows]
            except (sqlite3.Error, OSError, LogError):
                return ()
    return tuple(records)


def wait_for_record(directory: Path, condition: Callable[[Iterable[Record]], bool]) -> bool:
    """Wait until the journal in `directory` fulfils `condition`; False when it does not in time."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition(read_records(directory)):
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE_SECONDS)
    return True
