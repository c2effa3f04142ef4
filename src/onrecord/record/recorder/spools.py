"""Orphan spools: what a guard wrote before it was killed, read by the recorder itself (user mode).

A spool is `<server>/<source>.spool` below the directory of guard states, one record/append entry a line. Its guard
holds a `flock` on it; a spool that can be locked belongs to nobody.

Source: running.md 5.4, 12.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from onrecord.base.dates import SYSTEM_CLOCK, Clock, format_ms
from onrecord.base.errors import OnrecordError, StorageError
from onrecord.base.wire import RpcError
from onrecord.record.recorder.reading import read_value
from onrecord.record.recorder.recorded import Origin
from onrecord.record.recorder.recording import Recording
from onrecord.record.recorder.settings import APPEND_BATCH, RECORD_LINE_BYTES
from onrecord.record.recorder.sources import Source

TORN: Final = "spool-torn"
"""Cause of the gap for a last line that was cut off by a crash."""

HOLE: Final = "spool-hole"
"""Cause of the gap for lines that are missing in the middle."""

_SPOOL = re.compile(r"([A-Za-z0-9._:-]{1,64})\.spool", re.ASCII)
_SERVER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_CHUNK: Final = 1 << 20

_log = logging.getLogger("onrecord.recorder")


@dataclass(frozen=True, slots=True)
class Orphan:
    """A spool that nobody holds, locked by us. `descriptor` is open until `close`."""

    path: Path
    server: str
    source: str
    descriptor: int

    def close(self) -> None:
        """Give the lock back."""
        os.close(self.descriptor)


def find_orphans(directory: Path, *, owner: int) -> Iterator[Orphan]:
    """Yield the spools below `directory` that belong to `owner` and are locked by nobody; close each one."""
    for folder in _entries(directory):
        if not _SERVER.fullmatch(folder.name):
            continue
        for path in _entries(folder):
            match = _SPOOL.fullmatch(path.name)
            descriptor = _lock(path, owner) if match is not None else None
            if match is not None and descriptor is not None:
                yield Orphan(path, folder.name, match[1], descriptor)


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _lock(path: Path, owner: int) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise OSError
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path, follow_symlinks=False).st_ino != status.st_ino:
            raise OSError
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


async def ship(orphan: Orphan, recording: Recording, *, uid: int, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Append all entries of an orphan and remove it; False if that was not possible now.

    Lines that are no JSON become `trace.invalid`; a torn last line becomes a gap of one entry.
    """
    origin = Origin(uid, orphan.server, orphan.source)
    known = recording.sources.get(origin)
    if known is not None and known.is_live:
        return False
    source = recording.hello(origin, pid=os.getpid())
    try:
        batch: list[Any] = []
        for value in _values(orphan.descriptor, clock):
            batch.append(value)
            if len(batch) == APPEND_BATCH:
                await _append(recording, source, batch, clock)
                batch = []
        if batch:
            await _append(recording, source, batch, clock)
        os.unlink(orphan.path)
    except (OnrecordError, OSError) as error:
        _log.warning("an orphan spool of %s could not be read now: %s", orphan.server, type(error).__name__)
        return False
    finally:
        recording.goodbye(source)
    return True


async def _append(recording: Recording, source: Source, batch: list[Any], clock: Clock) -> None:
    try:
        future = recording.append(source, batch)
    except RpcError as error:
        if error.reason != "record_gap":
            raise StorageError("the journal cannot be written now", code="record-unavailable") from None
        future = recording.append(source, _with_gaps(batch, source.through, clock))
    if future is not None:
        await future


def _with_gaps(batch: list[Any], through: int, clock: Clock) -> list[Any]:
    """Return a batch in which a gap entry stands for every run of missing numbers."""
    whole: list[Any] = []
    for value in batch:
        n = value.get("n") if isinstance(value, dict) else None
        if type(n) is int and n > through + 1:
            whole.append(_gap(through + 1, clock, entries=n - through - 1, cause=HOLE))
        whole.append(value)
        through = n if type(n) is int and n > through else through + (n is None)
    return whole


def _gap(n: int, clock: Clock, *, entries: int, cause: str) -> dict[str, Any]:
    return {
        "n": n,
        "kind": "gap",
        "time": format_ms(clock.now_ns()),
        "mono_ns": clock.boottime_ns(),
        "entries": entries,
        "cause": cause,
    }


def _values(descriptor: int, clock: Clock) -> Iterator[Any]:
    """Yield the entries of a spool from its beginning, memory bounded by its longest line."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    last = 0
    with open(descriptor, "rb", buffering=_CHUNK, closefd=False) as stream:
        while line := stream.readline(RECORD_LINE_BYTES):
            if not line.endswith(b"\n"):
                is_torn = not _skip_line(stream)
                yield _gap(last + 1, clock, entries=1, cause=TORN if is_torn else HOLE)
                last += 1
                continue
            value = read_value(line)
            n = value.get("n") if isinstance(value, dict) else None
            last = n if type(n) is int and n > last else last + 1
            yield value


def _skip_line(stream: BinaryIO) -> bool:
    """Read on behind the end of a line that is too long; False if the file ends in it."""
    while part := stream.readline(_CHUNK):
        if part.endswith(b"\n"):
            return True
    return False
