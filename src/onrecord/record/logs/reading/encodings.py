"""UTF-16, which some editors and shells write, as UTF-8 (native-logs.md R-02)."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO, Final, Literal

Encoding = Literal["utf-16-le", "utf-16-be"]
"""Byte orders of UTF-16."""

_CHUNK_BYTES: Final = 1 << 18
_MARKS: dict[bytes, Encoding] = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def utf16_of(start: bytes) -> Encoding | None:
    """Return the byte order of a text in UTF-16 by its first bytes: a mark, or two ASCII characters in that width."""
    marked = _MARKS.get(start[:2])
    if marked is not None or len(start) < 4:
        return marked
    # Four bytes tell UTF-16 from a line with NUL bytes in it, of which there are long runs.
    if start[0] and not start[1] and start[2] and not start[3]:
        return "utf-16-le"
    if not start[0] and start[1] and not start[2] and start[3]:
        return "utf-16-be"
    return None


class Utf16Source(io.RawIOBase):
    """A stream of UTF-16 as UTF-8 without its byte order mark."""

    def __init__(self, stream: BinaryIO, encoding: Encoding) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._ready = memoryview(b"")
        self._at_start = True
        self._at_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._at_end:
            data = self._stream.read(_CHUNK_BYTES)
            self._at_end = not data
            text = self._decoder.decode(data, final=self._at_end)
            if self._at_start and text:
                text = text.removeprefix("\ufeff")
                self._at_start = False
            self._ready = memoryview(text.encode("utf-8"))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
