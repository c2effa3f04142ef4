"""Checks of the machine: clocks, disk space, the SQLite library.

Source: transparency.md 4.9; call-proof.md 11.
"""

from __future__ import annotations

import ctypes
import datetime
import os
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from onrecord.authorize.doctor.results import Check
from onrecord.base.dates import boot_id, boottime_ns
from onrecord.base.errors import OnrecordError

if TYPE_CHECKING:
    from pathlib import Path

    from onrecord.base.configuration import Configuration

FAILED_BYTES: Final = 64 << 20
"""Less free space than this: journals stop, and with them calls."""

WARN_BYTES: Final = 1 << 30

SAFE_SQLITE: Final = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""Releases with the repair of the WAL race: the first and later ones, and backports in their own series."""

_EARLIEST: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_TIME_ERROR: Final = 5
_TIMEX_BYTES: Final = 512


def check_clocks(*, now: datetime.datetime) -> Iterator[Check]:
    """Say whether the wall clock can be right, is synchronised, and the clock since boot is there."""
    if now < _EARLIEST:
        yield Check("clocks", "failed", f"the wall clock says {now:%Y-%m-%d}", "set the clock")
        return
    try:
        boottime_ns()
        boot_id()
    except (OSError, OnrecordError):
        yield Check(
            "clocks",
            "failed",
            "the clock since boot or the boot id cannot be read",
            "Linux with /proc is needed",
        )
        return
    if _is_synchronised() is False:
        yield Check(
            "clocks",
            "warning",
            "the kernel says that the wall clock is not synchronised",
            "run a time service; proofs use the clock since boot, only times in records suffer",
        )
    else:
        yield Check("clocks", "ok", "wall clock and clock since boot are usable")


def _is_synchronised() -> bool | None:
    """Ask adjtimex(2) without changing anything; None where it cannot be asked."""
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else bool(state != _TIME_ERROR)


def check_sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Check:
    """Name the SQLite release; older ones have a race that our one writer per file does not meet."""
    name = ".".join(map(str, version))
    safe = version >= SAFE_SQLITE[0] or any(
        version[:2] == one[:2] and version >= one for one in SAFE_SQLITE[1:]
    )
    if safe:
        return Check("sqlite", "ok", f"SQLite {name}")
    return Check(
        "sqlite",
        "ok",
        f"SQLite {name} has the WAL race of releases before 3.51.3; one writer per file does not meet it",
        "never open a journal read-write with another program",
    )


def check_disk(configuration: Configuration) -> Iterator[Check]:
    """Say how much room journals, spools and records have."""
    places = {"state": configuration.paths.state, "records": configuration.paths.records}
    devices: dict[int, str] = {}
    for name, path in places.items():
        try:
            device = os.stat(path).st_dev
            free = _free_bytes(path)
        except OSError as error:
            yield Check(
                "disk", "warning", f"paths.{name} cannot be looked at ({error.strerror})", "run onrecord init"
            )
            continue
        if device in devices:
            continue
        devices[device] = name
        mib = free >> 20
        if free < FAILED_BYTES:
            yield Check(
                "disk", "failed", f"paths.{name} has {mib} MiB left", "make room: calls stop when it is full"
            )
        elif free < WARN_BYTES:
            yield Check("disk", "warning", f"paths.{name} has {mib} MiB left", "make room in time")
        else:
            yield Check("disk", "ok", f"paths.{name} has {mib} MiB left")


def _free_bytes(path: Path) -> int:
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize
