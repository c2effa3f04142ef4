"""Native files: regular files only, unpacked and in UTF-8 while they are read, hashed on the way.

The name of a file decides nothing: archives and UTF-16 are known by their first bytes.

Source: native-logs.md R-02, R-11, R-21, A-06.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from onrecord.base.errors import UsageError, Where
from onrecord.base.files import regular_file
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.archives import GzipSource, ZstdSource
from onrecord.record.logs.reading.encodings import Utf16Source, utf16_of

READ_BYTES: Final = 1 << 19
"""Bytes that are taken from a file at once."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"


class NativeFile:
    """One file that an agent wrote.

    `name` is how messages show it; with `follow` a link is opened, as for a path that a person has named. Raises
    `UsageError` with the code "unreadable-file" for what is no readable regular file.
    """

    def __init__(self, path: Path, *, name: str | None = None, follow: bool = False) -> None:
        self.path = path
        self.name = str(path) if name is None else name
        self.follow = follow
        self.on_read: Callable[[int], None] | None = None
        """Told of the bytes that each read took from the disk, for progress."""
        self._sha256: str | None = None
        raw = self._raw()
        with raw:
            self.size = raw.size
            start = raw.read(4)
        self.compression: Literal["zst", "gz"] | None = _compression(start or b"")

    def open(self, findings: FileFindings | None = None) -> BinaryIO:
        """Return the text as UTF-8 from its beginning; `findings` learns of UTF-16 and of a damaged archive.

        Raises `UsageError` when the file can no longer be opened, and `OSError` while reading when the disk fails.
        """
        told = FileFindings(self.name) if findings is None else findings
        raw = self._raw(done=self._set_sha256, on_read=self.on_read)
        source: io.RawIOBase = raw
        if self.compression == "gz":
            source = GzipSource(raw, told)
        elif self.compression == "zst":
            source = ZstdSource(raw, told)
        stream = io.BufferedReader(source, READ_BYTES)
        encoding = utf16_of(stream.peek(8)[:8])
        if encoding is None:
            return stream
        told.count("utf-16", action="decoded")
        return io.BufferedReader(Utf16Source(stream, encoding), READ_BYTES)

    def head(self, size: int) -> bytes:
        """Return the first bytes of the text, at most `size`."""
        with self.open() as stream:
            return stream.read(size)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes on disk in hex; read for it alone when no reader came to the end."""
        if self._sha256 is None:
            with self._raw(done=self._set_sha256) as raw:
                while raw.read(READ_BYTES):
                    pass
        return self._sha256 or ""

    def _set_sha256(self, digest: str) -> None:
        self._sha256 = digest

    def _raw(
        self, *, done: Callable[[str], None] | None = None, on_read: Callable[[int], None] | None = None
    ) -> _HashedFile:
        try:
            return _HashedFile(self.path, follow=self.follow, done=done, on_read=on_read)
        except (OSError, ValueError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else "not a file name"
            raise UsageError(
                f"cannot be read: {reason}",
                code="unreadable-file",
                hint="give a regular file that may be read",
                where=Where(file=self.name),
            ) from None


class _HashedFile(io.RawIOBase):
    """A regular file; `done` gets the hash when the end was read, `on_read` the length of each read."""

    def __init__(
        self,
        path: Path,
        *,
        follow: bool,
        done: Callable[[str], None] | None,
        on_read: Callable[[int], None] | None,
    ) -> None:
        with regular_file(path, follow=follow) as (descriptor, status):
            self._file = os.fdopen(os.dup(descriptor), "rb", buffering=0)
        self.size = status.st_size
        self._hash = hashlib.sha256()
        self._done = done
        self._on_read = on_read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        if self._on_read is not None and count:
            self._on_read(count)
        if self._done is not None:
            if count:
                self._hash.update(memoryview(buffer)[:count])
            elif len(buffer):
                self._done(self._hash.hexdigest())
                self._done = None
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _compression(start: bytes) -> Literal["zst", "gz"] | None:
    if start.startswith(_GZIP_MAGIC):
        return "gz"
    if start == _ZSTD_MAGIC or (start[1:] == _SKIPPABLE_MAGIC and start[0] & 0xF0 == 0x50):
        return "zst"
    return None
