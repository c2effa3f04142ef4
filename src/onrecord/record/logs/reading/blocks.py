"""Blocks of bytes without byte order mark and NUL bytes, and the way back to the places in the stream.

>>> import io
>>> blocks = Blocks(io.BytesIO(b"{}\\0\\0\\n{}"), FileFindings("a.jsonl"))
>>> list(blocks), blocks.offset(2), blocks.offset(3)
([b'{}\\n{}'], 4, 5)
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, Final

from onrecord.record.logs.findings import FileFindings

BLOCK_BYTES: Final = 1 << 19
"""Bytes that are read at once: enough that the loop over blocks costs nothing, little beside the program itself."""

MAX_GAPS: Final = 65_536
"""Most NUL runs of one line whose places are kept apart, so that runs alone cannot fill memory."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUL_RUN = re.compile(rb"\0+")


class Blocks:
    """The clean blocks of a stream. Places are told in rising order: `offset` forgets what lies before."""

    def __init__(self, stream: BinaryIO, findings: FileFindings, *, block_bytes: int = BLOCK_BYTES) -> None:
        self._stream = stream
        self._findings = findings
        self._block_bytes = block_bytes
        self._read = 0
        self._clean = 0
        self._shift = 0
        self._gaps: deque[tuple[int, int]] = deque()
        self._run_start = 0
        self._run_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        block = self._stream.read(self._block_bytes)
        while 0 < len(block) < len(_BYTE_ORDER_MARK) and (more := self._stream.read(1)):
            block += more
        if block.startswith(_BYTE_ORDER_MARK):
            self._findings.count("bom", action="skipped")
            self._read = self._shift = len(_BYTE_ORDER_MARK)
            block = block[len(_BYTE_ORDER_MARK) :] or self._stream.read(self._block_bytes)
        while block:
            length = len(block)
            if b"\0" in block:
                block = self._without_nul(block)
            elif self._run_bytes:
                self._end_run()
            self._read += length
            self._clean += len(block)
            if block:
                yield block
            block = self._stream.read(self._block_bytes)
        if self._run_bytes:
            self._end_run()

    def offset(self, clean: int) -> int:
        """Return the place in the stream of a byte of the clean text, for places that never go back."""
        gaps = self._gaps
        while gaps and gaps[0][0] <= clean:
            self._shift += gaps.popleft()[1]
        return clean + self._shift

    def _without_nul(self, block: bytes) -> bytes:
        removed = 0
        for run in _NUL_RUN.finditer(block):
            start, end = run.span()
            if self._run_bytes and start > 0:
                self._end_run()
            if not self._run_bytes:
                self._run_start = self._read + start
            self._run_bytes += end - start
            self._note_gap(self._clean + start - removed, end - start)
            removed += end - start
            if end < len(block):
                self._end_run()
        return block.replace(b"\0", b"")

    def _note_gap(self, clean: int, length: int) -> None:
        gaps = self._gaps
        if len(gaps) < MAX_GAPS:
            gaps.append((clean, length))
        else:  # nobody has asked for long: places between these two runs are told some bytes too far
            place, before = gaps[-1]
            gaps[-1] = place, before + length

    def _end_run(self) -> None:
        length = self._run_bytes
        self._run_bytes = 0
        self._findings.add(
            "nul-bytes",
            offset=self._run_start,
            message=f"{length} NUL bytes in a row",
            action="removed",
            data={"bytes": length},
        )
