"""Intake of the relaxed mode: records are handed to the operating system before anything else happens.

They survive the process, not the machine. Two files take turns; what the journal file already holds is written over.
They are shared memory maps: a copy into one belongs to the kernel at once, and unlike a write it does not hand the
interpreter to another thread. Their blocks are filled with zeros first, so that a full disk is an error here and not
a signal later. Frame: magic, CRC-32, number, lengths, then the record, its bodies and the ranges that it erases.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from onrecord.base.errors import StorageError, Where
from onrecord.record.ledger.records import (
    MAX_BODIES,
    MAX_BODY_BYTES,
    MAX_RECORD_BYTES,
    SALT_BYTES,
    SaltedBody,
)
from onrecord.record.ledger.store import Entry, unavailable

FILE_BYTES: Final = 1 << 22
"""Size of each file: some thousand records, read in a moment at start. A file grows only while the other is needed."""

MAX_EXTRA_BYTES: Final = MAX_BODIES * (MAX_BODY_BYTES + 1024)
"""Most bytes read behind a record: as many and as large bodies as a record can have."""

_HEAD: Final = struct.Struct(">4sIQII")
_BODY: Final = struct.Struct(">HI")
_RANGE: Final = struct.Struct(">QQ")
_MAGIC: Final = b"OrIn"


class _File:
    """A file that is mapped as a whole; `length` bytes of it are in use, the highest number in it is `last_seq`."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        try:
            self.capacity = FILE_BYTES
            self._fill(0, FILE_BYTES)
            self._map = mmap.mmap(self._descriptor, FILE_BYTES)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.length = 0
        self.last_seq = -1

    def put(self, frame: bytes, seq: int) -> None:
        """Add a frame; the file grows if it does not fit. Raises `OSError`, then the file is as it was."""
        end = self.length + len(frame)
        if end > self.capacity:
            capacity = max(end, 2 * self.capacity)
            self._fill(self.capacity, capacity)
            self._map.resize(capacity)
            self.capacity = capacity
        self._map[self.length : end] = frame
        self.length = end
        self.last_seq = seq

    def clear(self) -> None:
        """Forget everything; old frames beyond the first new one are below the journal's size, and so never read."""
        self.length = 0
        if self.capacity > FILE_BYTES:
            self._map.resize(FILE_BYTES)
            self.capacity = FILE_BYTES

    def close(self) -> None:
        self._map.close()
        os.close(self._descriptor)

    def _fill(self, begin: int, end: int) -> None:
        """Write zeros: blocks that were written need no room later, those of a hole do."""
        while begin < end:
            begin += os.pwrite(self._descriptor, bytes(min(end - begin, FILE_BYTES)), begin)


class Intake:
    """The two files `intake-0` and `intake-1` of a journal directory. The journal's lock guards all calls."""

    def __init__(self, directory: Path) -> None:
        self._files: list[_File] = []
        for path in _paths(directory):
            try:
                self._files.append(_File(path))
            except OSError as error:
                self.close()
                raise StorageError(
                    f"cannot use the intake file ({error.strerror})",
                    code="journal-unwritable",
                    where=Where(str(path)),
                ) from error
        self._active, self._other = self._files

    def write(self, entry: Entry) -> None:
        """Hand one record to the operating system.

        Raises `StorageError` with code "audit-unavailable"; then nothing of it is left in the file.
        """
        frame = _frame(entry)
        file = self._active
        if file.length + len(frame) > file.capacity and self._other.length == 0:
            file = self._active = self._other
            self._other = next(other for other in self._files if other is not file)
        try:
            file.put(frame, entry.seq)
        except (OSError, ValueError) as error:
            raise unavailable(getattr(error, "strerror", None) or "intake") from error

    def drop(self, size: int) -> None:
        """Forget records below `size`, which the journal file holds; only a whole file is ever cleared."""
        file = self._other
        if file.length and file.last_seq < size:
            with contextlib.suppress(OSError):  # tried again at the next call; a leftover is harmless
                file.clear()

    def close(self) -> None:
        """Close the files and leave them as they are."""
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        self._files = []


def remove(directory: Path) -> None:
    """Delete the intake files, after everything in them is in the journal file."""
    for path in _paths(directory):
        with contextlib.suppress(OSError):
            os.unlink(path)


@dataclass(frozen=True, slots=True)
class Leftover:
    """What an earlier process left: entries that follow the journal's end, and how many cannot be used.

    `lost` counts records behind a hole, which only a crash of the machine makes.
    """

    entries: tuple[Entry, ...]
    lost: int


def recover(directory: Path, *, size: int) -> Leftover:
    """Read both files and return the records that the journal of `size` records does not have yet.

    Raises `StorageError` with code "journal-unreadable".
    """
    found: dict[int, Entry] = {}
    for path in _paths(directory):
        try:
            found.update((entry.seq, entry) for entry in _read(path) if entry.seq >= size)
        except OSError as error:
            raise StorageError(
                f"cannot read the intake file ({error.strerror})",
                code="journal-unreadable",
                where=Where(str(path)),
            ) from error
    entries: list[Entry] = []
    while (entry := found.pop(size + len(entries), None)) is not None:
        entries.append(entry)
    return Leftover(tuple(entries), len(found))


def _paths(directory: Path) -> Sequence[Path]:
    return [directory / "intake-0", directory / "intake-1"]


def _frame(entry: Entry) -> bytes:
    data = entry.bytes
    if not entry.bodies and not entry.erase:
        return _HEAD.pack(_MAGIC, zlib.crc32(data), entry.seq, len(data), 0) + data
    parts: list[bytes] = [len(entry.bodies).to_bytes(2, "big")]
    for body in entry.bodies:
        part = body.part.encode("utf-8")
        parts += (_BODY.pack(len(part), len(body.bytes)), part, body.salt, body.bytes)
    parts += (_RANGE.pack(*closed) for closed in entry.erase)
    extra = b"".join(parts)
    return (
        _HEAD.pack(_MAGIC, zlib.crc32(extra, zlib.crc32(data)), entry.seq, len(data), len(extra))
        + data
        + extra
    )


def _read(path: Path) -> Iterator[Entry]:
    """Yield whole frames up to the first that is torn; a torn one was never acknowledged."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            magic, checksum, seq, length, extra_length = _HEAD.unpack(head)
            if magic != _MAGIC or length > MAX_RECORD_BYTES or extra_length > MAX_EXTRA_BYTES:
                return
            content = file.read(length + extra_length)
            if len(content) != length + extra_length or zlib.crc32(content) != checksum:
                return
            entry = _parse(seq, content[:length], content[length:])
            if entry is None:
                return
            yield entry


def _parse(seq: int, data: bytes, extra: bytes) -> Entry | None:
    """Take a frame apart; None if it is not ours."""
    if not extra:
        return Entry(seq, data)
    bodies: list[SaltedBody] = []
    at = 2
    try:
        for _ in range(int.from_bytes(extra[:2], "big")):
            part_length, body_length = _BODY.unpack_from(extra, at)
            part_at = at + _BODY.size
            salt_at = part_at + part_length
            body_at = salt_at + SALT_BYTES
            at = body_at + body_length
            part = extra[part_at:salt_at].decode("utf-8")
            bodies.append(SaltedBody(part, extra[salt_at:body_at], extra[body_at:at]))
        erase = tuple((first, last) for first, last in _RANGE.iter_unpack(extra[at:]))
    except (struct.error, UnicodeDecodeError):
        return None
    return Entry(seq, data, tuple(bodies), erase)
