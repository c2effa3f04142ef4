"""The spool: entries on disk before their effect, until the recorder has them.

A file of lines, each one entry of record/append, held by `flock`. What is acknowledged is cut away. The file has a
bound; a part of it is kept for the ends of calls that already run.

Source: running.md R-05 (5.4) and 12.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

import orjson

from onrecord.base.dates import SYSTEM_CLOCK, Clock, format_ms
from onrecord.base.strict_json import MAX_SAFE_INTEGER
from onrecord.record.recorder.settings import APPEND_BATCH

BATCH_BYTES: Final = 17 * 1_048_576 - 4096
"""Bytes of entries per record/append: RECORD_LINE_BYTES of running.md 12 less the request around them."""

COMPACT_BYTES: Final = 4_194_304
"""Acknowledged bytes at the front of the file that are worth a rewrite of the rest."""

CUT_BYTES: Final = 1_048_576
"""At this size a file whose entries are all acknowledged is emptied at once; a smaller one waits for a pause."""

PROBE_SECONDS: Final = 1.0
"""A spool that could not be written is tried again this often (call-proof.md 10.2 has the same pace)."""

_ALLOCATE_BYTES: Final = 1_048_576
_FALLOC_FL_KEEP_SIZE: Final = 1
_SUFFIX: Final = ".spool"
_NEW_SUFFIX: Final = ".new"
_OPEN: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND


class Batch(NamedTuple):
    """Entries in their order: their lines, the number of the last one, and where the next one begins."""

    lines: tuple[bytes, ...]
    first: int
    last: int
    end: int


class Spool:
    """The spool of one guard process. Make it with `create`, or `adopt` one that a dead guard has left."""

    def __init__(self, path: Path, *, limit_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self.source = path.name.removesuffix(_SUFFIX)
        self._limit = limit_bytes
        self._clock = clock
        self._descriptor = -1
        self._size = 0
        self._start = 0
        self._allocated = 0
        self._next = 1
        self._acknowledged = 0
        self._failing_since_ns: int | None = None
        self._probe_after_ns = 0
        self._lost = 0
        self._lost_from_ns = 0
        self.is_dirty = False

    @classmethod
    def create(cls, path: Path, *, limit_bytes: int, clock: Clock = SYSTEM_CLOCK) -> Self:
        """Make a new spool. One that cannot be made is tried again later, as one that cannot be written is."""
        spool = cls(path, limit_bytes=limit_bytes, clock=clock)
        spool._open_new()
        return spool

    @classmethod
    def adopt(cls, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> Self | None:
        """Take over a spool that nobody holds; None if somebody does, or it is gone.

        A torn last line is cut off and replaced by a gap entry; so is a line that cannot be read.
        """
        spool = cls(path, limit_bytes=1 << 62, clock=clock)
        try:
            descriptor = os.open(path, _OPEN)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink == 0:
                raise BlockingIOError
        except OSError:
            os.close(descriptor)
            return None
        spool._descriptor = descriptor
        if not spool._recover():
            os.close(spool._descriptor)
            return None
        return spool

    @property
    def held_bytes(self) -> int:
        """Bytes that are not acknowledged."""
        return self._size - self._start

    @property
    def pending(self) -> int:
        """Entries that are not acknowledged."""
        return self._next - 1 - self._acknowledged

    @property
    def acknowledged(self) -> int:
        """Number of the last entry that the recorder has."""
        return self._acknowledged

    def has_room(self, size_bytes: int) -> bool:
        """Say whether a new call of about this size may begin. An eighth of the bound is kept for ends of calls."""
        if self._failing_since_ns is not None and not self._probe():
            return False
        if self.held_bytes + size_bytes > self._limit - self._limit // 8:
            return False
        return self._size + size_bytes <= self._allocated or self._allocate(size_bytes)

    def append(self, *entries: bytes) -> bool:
        """Number the entries and write them, all or none. False: they are lost, and counted for a gap entry.

        Each is a JSON object with members, in which the number is still missing.
        """
        if self._failing_since_ns is not None and not self._probe():
            return self._lose(len(entries))
        gap = self._gap_line(self._next) if self._lost else b""
        number = self._next + bool(gap)
        lines = [gap] if gap else []
        for entry in entries:
            lines.append(b'{"n":%d,%b\n' % (number, entry[1:]))
            number += 1
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        if self.held_bytes + len(data) > self._limit or not self._write(data):
            return self._lose(len(entries))
        self._next = number
        if gap:
            self._lost = 0
        return True

    def refuse(self) -> None:
        """Count one entry that will not be written, because its call was refused for want of room."""
        self._lose(1)

    def batch(self) -> Batch | None:
        """Return the oldest entries that are not acknowledged, or None if there are none."""
        if not self.pending:
            return None
        lines: list[bytes] = []
        size = 0
        for line in self._read_lines(self._start):
            if lines and (len(lines) >= APPEND_BATCH or size + len(line) + 1 > BATCH_BYTES):
                break
            lines.append(line)
            size += len(line) + 1
        first = orjson.loads(lines[0])["n"]
        last = orjson.loads(lines[-1])["n"]
        return Batch(tuple(lines), first, last, self._start + size)

    def confirm(self, batch: Batch) -> None:
        """Take note that the recorder has a batch; empty the file when it has everything."""
        self._start, self._acknowledged = batch.end, batch.last
        if self._start >= self._size and self._size >= CUT_BYTES:
            self.cut()
        elif self._start >= COMPACT_BYTES and self._start >= self._size - self._start:
            self._compact()

    def gap(self, *, through: int, before: int, cause: str) -> bytes:
        """Return the line of a gap entry that follows `through` when the entries up to `before` cannot be had."""
        now = format_ms(self._clock.now_ns())
        return orjson.dumps(
            {
                "n": through + 1, "kind": "gap", "time": now, "mono_ns": wide_number(self._clock.boottime_ns()),
                "from": now, "to": now, "entries": before - through - 1, "cause": cause,
            }
        )  # fmt: skip

    def sync(self) -> None:
        """Wait until what was written is on disk. Called from another thread; a failure shows at the next write."""
        self.is_dirty = False
        descriptor = self._descriptor
        if descriptor >= 0:
            try:
                os.fdatasync(descriptor)
            except OSError as error:
                if error.errno != errno.EBADF:
                    self.is_dirty = True

    def close(self) -> None:
        """Close the file; remove it if the recorder has everything."""
        if self._descriptor < 0:
            return
        if not self.pending and not self._lost:
            for path in (self.path, self.path.with_suffix(_NEW_SUFFIX)):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        os.close(self._descriptor)
        self._descriptor = -1

    def _open_new(self) -> bool:
        # It has another suffix until it is locked: another guard would find it empty and remove it.
        fresh = self.path.with_suffix(_NEW_SUFFIX)
        try:
            descriptor = os.open(fresh, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            self._fail()
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(fresh, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            os.close(descriptor)
            self._fail()
            return False
        self._descriptor = descriptor
        return True

    def _recover(self) -> bool:
        """Find the numbers of what is there; replace what cannot be read by gap entries. False: no room for that."""
        size = os.fstat(self._descriptor).st_size
        whole = 0
        good: list[bytes] = []
        damaged = False
        last = 0
        last_time: str | None = None
        for line in self._read_lines(0, size):
            whole += len(line) + 1
            entry = _entry(line)
            if entry is None or entry[0] <= last:
                damaged = True
                last += 1
                good.append(self._damage(last, last_time))
                continue
            last, last_time = entry
            good.append(line)
        torn = whole < size
        if torn:
            last += 1
            good.append(self._damage(last, last_time))
        if damaged or torn:
            if not self._replace(b"".join(line + b"\n" for line in good)):
                return False
        else:
            self._size = size
        self._next = last + 1
        first = _entry(good[0]) if good else None
        self._acknowledged = (first[0] if first else self._next) - 1
        return True

    def _damage(self, number: int, last_time: str | None) -> bytes:
        now = format_ms(self._clock.now_ns())
        return orjson.dumps(
            {
                "n": number, "kind": "gap", "time": now, "mono_ns": wide_number(self._clock.boottime_ns()),
                "from": last_time or now, "to": now, "entries": 1, "cause": "torn",
            }
        )  # fmt: skip

    def _gap_line(self, number: int) -> bytes:
        now_ns = self._clock.now_ns()
        return (
            orjson.dumps(
                {
                    "n": number,
                    "kind": "gap",
                    "time": format_ms(now_ns),
                    "mono_ns": wide_number(self._clock.boottime_ns()),
                    "from": format_ms(self._lost_from_ns),
                    "to": format_ms(now_ns),
                    "entries": self._lost,
                    "cause": "spool-full",
                }
            )
            + b"\n"
        )

    def _lose(self, count: int) -> bool:
        if not self._lost:
            self._lost_from_ns = self._clock.now_ns()
        self._lost += count
        return False

    def _write(self, data: bytes) -> bool:
        try:
            written = os.write(self._descriptor, data)
        except OSError:
            written = 0
        if written != len(data):
            if written:
                os.ftruncate(self._descriptor, self._size)
            self._fail()
            return False
        self._size += written
        self.is_dirty = True
        return True

    def _fail(self) -> None:
        now = self._clock.boottime_ns()
        if self._failing_since_ns is None:
            self._failing_since_ns = now
        self._probe_after_ns = now + int(PROBE_SECONDS * 1e9)

    def _probe(self) -> bool:
        """Try a failing spool again, once a second; writing the gap entry is the test."""
        if self._clock.boottime_ns() < self._probe_after_ns:
            return False
        if self._descriptor < 0 and not self._open_new():
            return False
        if self._lost:
            if not self._write(self._gap_line(self._next)):
                return False
            self._next += 1
            self._lost = 0
        self._failing_since_ns = None
        return True

    def _allocate(self, size_bytes: int) -> bool:
        """Make sure that the file system has the blocks, so that a full disk shows before a proof is spent."""
        want = max(_ALLOCATE_BYTES, size_bytes * 2)
        want = min(want, max(size_bytes, self._limit - self.held_bytes))
        if not _fallocate(self._descriptor, self._size, want):
            return False
        self._allocated = self._size + want
        return True

    def _read_lines(self, start: int, end: int | None = None) -> Iterator[bytes]:
        """Yield whole lines from `start` on; a last one without LF is left out."""
        position = start
        end = self._size if end is None else end
        rest = b""
        while position < end:
            chunk = os.pread(self._descriptor, min(1 << 20, end - position), position)
            if not chunk:
                return
            position += len(chunk)
            *lines, rest = (rest + chunk if rest else chunk).split(b"\n")
            yield from lines

    def cut(self) -> None:
        """Empty the file if the recorder has everything. Called when there is a pause, since it costs a millisecond."""
        if self.pending or not self._size:
            return
        try:
            os.ftruncate(self._descriptor, 0)
        except OSError:
            return
        self._size = self._start = self._allocated = 0

    def _compact(self) -> None:
        """Write the rest into a new file that takes the place of this one."""
        self._replace(os.pread(self._descriptor, self._size - self._start, self._start))

    def _replace(self, data: bytes) -> bool:
        # The new file has another suffix until it is complete and locked, so nobody adopts half of it.
        fresh = self.path.with_suffix(_NEW_SUFFIX)
        try:
            descriptor = os.open(fresh, _OPEN | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fdatasync(descriptor)
            os.rename(fresh, self.path)
        except OSError:
            os.close(descriptor)
            return False
        os.close(self._descriptor)
        self._descriptor, self._size, self._start, self._allocated = descriptor, len(data), 0, 0
        return True


def orphans(directory: Path) -> list[Path]:
    """Return the spools in a directory, oldest first; whether somebody holds one shows when it is adopted."""
    found = [
        (entry.stat(follow_symlinks=False).st_mtime_ns, Path(entry.path))
        for entry in os.scandir(directory)
        if entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False)
    ]
    return [path for _, path in sorted(found)]


def spool_path(directory: Path, source: str) -> Path:
    """Return where the spool of a source stands."""
    return directory / (source + _SUFFIX)


def wide_number(number: int) -> int | str:
    """Return a clock reading as JSON readers keep it: as text beyond 2^53-1, which takes 104 days of uptime."""
    return number if number <= MAX_SAFE_INTEGER else str(number)


def _entry(line: bytes) -> tuple[int, str | None] | None:
    try:
        value = orjson.loads(line)
    except ValueError:
        return None
    number = value.get("n") if type(value) is dict else None
    if type(number) is not int or number < 1:
        return None
    time = value.get("time")
    return number, time if type(time) is str else None


def _fallocate(descriptor: int, offset: int, size: int) -> bool:
    """Reserve blocks beyond the end of the file without changing its size. True too where that is not supported."""
    libc = _libc()
    call = libc.fallocate64 if hasattr(libc, "fallocate64") else libc.fallocate
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if call(descriptor, _FALLOC_FL_KEEP_SIZE, offset, size) == 0:
        return True
    return ctypes.get_errno() not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EBADF)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
