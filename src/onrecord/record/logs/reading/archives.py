"""gzip and zstd by streaming, with bounded memory whatever the data claim (native-logs.md R-11).

A damaged or cut archive gives what comes before the damage, and one finding `truncated-archive`.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from abc import abstractmethod
from typing import Any, Final

import zstandard

from onrecord.record.logs.findings import FileFindings

_GZIP_BYTES: Final = 1 << 16
_GZIP_OUTPUT: Final = 1 << 18
_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_RAW, _RLE, _COMPRESSED = 0, 1, 2


class _Damaged(Exception):
    """The archive does not go on as it should; what was unpacked stays."""


class _Source(io.RawIOBase):
    """An unpacked stream, made of the pieces that `_more` gives."""

    def __init__(self, packed: io.RawIOBase, findings: FileFindings) -> None:
        self._packed = io.BufferedReader(packed, 1 << 18)
        self._findings = findings
        self._ready = memoryview(b"")
        self._at_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._at_end:
            try:
                piece = self._more()
            except _Damaged as fault:
                self._findings.add(
                    "truncated-archive", message=str(fault), action="what comes before it was read"
                )
                piece = None
            if piece is None:
                self._at_end = True
                while self._packed.read(1 << 18):  # the rest belongs to the file's hash
                    pass
            else:
                self._ready = memoryview(piece)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
        super().close()

    @abstractmethod
    def _more(self) -> bytes | None:
        """Return the next piece, which may be empty; None at the end. Raises `_Damaged`."""

    def _take(self, size: int) -> bytes:
        """Return that many bytes of the archive. Raises `_Damaged` if it ends before."""
        data = self._packed.read(size)
        if len(data) < size:
            raise _Damaged("the archive ends inside a frame")
        return data


class GzipSource(_Source):
    """gzip, several members in a row included."""

    def __init__(self, packed: io.RawIOBase, findings: FileFindings) -> None:
        super().__init__(packed, findings)
        self._member: Any = None
        self._rest = b""
        self._is_damaged = False

    def _more(self) -> bytes | None:
        if self._is_damaged:
            raise _Damaged("the archive is damaged")
        data = self._rest or self._packed.read(_GZIP_BYTES)
        self._rest = b""
        if self._member is None:
            data = data.lstrip(b"\0")  # padding between members and behind the last one
            if not data:
                return b"" if self._packed.peek(1) else None
            self._member = zlib.decompressobj(wbits=31)
        elif not data:
            raise _Damaged("the archive ends inside a member")
        before = self._member.copy()
        try:
            piece: bytes = self._member.decompress(data, _GZIP_OUTPUT)
        except zlib.error:
            self._is_damaged = True
            return _before_damage(before, data)
        if self._member.eof:
            self._rest = self._member.unused_data
            self._member = None
        else:
            self._rest = self._member.unconsumed_tail
        return piece


def _before_damage(member: Any, data: bytes) -> bytes:
    """Return what comes before the damage in `data`: a call that fails keeps back what it has unpacked."""
    pieces: list[bytes] = []
    with contextlib.suppress(zlib.error):
        for at in range(len(data)):
            pieces.append(member.decompress(data[at : at + 1]))  # noqa: PERF401 - those before the error count
    return b"".join(pieces)


class ZstdSource(_Source):
    """zstd, several frames in a row included.

    The decoder gets one block at a time: no block unpacks to more than 128 KiB (RFC 8878 3.1.1.2.4), and where the
    archive is cut, the whole blocks before the cut are there.
    """

    def __init__(self, packed: io.RawIOBase, findings: FileFindings) -> None:
        super().__init__(packed, findings)
        self._frame: Any = None
        self._has_checksum = False
        self._is_at_checksum = False

    def _more(self) -> bytes | None:
        if self._frame is None:
            return self._begin_frame()
        if self._is_at_checksum:
            piece = self._decoded(self._take(4))
            self._frame = None
            self._is_at_checksum = False
            return piece
        header = self._take(3)
        fields = int.from_bytes(header, "little")
        kind = fields >> 1 & 3
        if kind > _COMPRESSED:
            raise _Damaged("the archive is damaged")
        size = 1 if kind == _RLE else fields >> 3
        piece = self._decoded(header + self._take(size))
        if fields & 1:  # the last block
            if self._has_checksum:
                self._is_at_checksum = True
            else:
                self._frame = None
        return piece

    def _decoded(self, data: bytes) -> bytes:
        try:
            decoded: bytes = self._frame.decompress(data)
        except zstandard.ZstdError:
            raise _Damaged("the archive is damaged") from None
        return decoded

    def _begin_frame(self) -> bytes | None:
        magic = self._packed.read(4)
        if not magic:
            return None
        if magic[1:] == b"\x2a\x4d\x18" and magic[0] & 0xF0 == 0x50:
            left = int.from_bytes(self._take(4), "little")
            while left:
                left -= len(self._take(min(left, 1 << 16)))
            return b""
        if magic != _MAGIC:
            raise _Damaged("something else follows the last frame")
        descriptor = self._take(1)
        flags = descriptor[0]
        is_single = flags >> 5 & 1
        self._has_checksum = bool(flags & 4)
        size = (0 if is_single else 1) + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
        rest = self._take(size)
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        return self._decoded(magic + descriptor + rest)
