"""Objects of vCons on disk until it is known which vCon they belong to, and what is added to them late.

An object is written once, as the members of its own and those of its `onrecord` member. What is only known later, such
as the usage of a response that goes on, is spliced in when the object is read again.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from onrecord.base.errors import StorageError

DIALOG: Final = 0
EVENT: Final = 1
ATTACHMENT: Final = 2
_LATE: Final = 3

FLAGS: Final = (
    "superseded",
    "replayed",
    "partial",
    "withheld",
    "queued",
    "injected",
    "human-input",
    "orphan",
)
"""The words of `onrecord.flags`, each one bit."""

_BITS: Final = {name: 1 << number for number, name in enumerate(FLAGS)}

_BLOCK_BYTES: Final = 1 << 20
"""Bytes that are written at once."""


_READ_BYTES: Final = 1 << 18
"""Bytes that are read at once: objects are mostly read in the order in which they were written."""


class Spooled(NamedTuple):
    """Members of an object and of its `onrecord` member, as JSON text without the braces."""

    head: bytes
    ext: bytes


class Spool:
    """All objects of an import, numbered from 0 in the order in which they come."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by close()
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._flushed = 0
        self._end = 0
        self._ends = array("Q")
        self._heads = array("I")
        self.kinds = array("B")
        self.sessions = array("I")
        self.entries = array("I")
        self.speakers = array("I")
        self._flags = array("B")
        self._block = b""
        self._block_start = 0
        self._late: dict[int, list[int]] = {}
        self._dropped: set[int] = set()

    def __len__(self) -> int:
        return len(self.kinds)

    def put(
        self,
        kind: int,
        *,
        session: int,
        entry: int,
        speaker: int,
        members: dict[str, Any],
        ext: dict[str, Any],
        flags: tuple[str, ...] = (),
    ) -> int:
        """Write an object and return its number."""
        bits = 0
        for flag in flags:
            bits |= _BITS[flag]
        return self._put(
            kind, session, entry, speaker, bits, orjson.dumps(members)[1:-1], orjson.dumps(ext)[1:-1]
        )

    def _put(
        self, kind: int, session: int, entry: int, speaker: int, bits: int, head: bytes, ext: bytes
    ) -> int:
        number = len(self.kinds)
        self._pending += (head, ext)
        size = len(head) + len(ext)
        self._end += size
        self._ends.append(self._end)
        self._heads.append(len(head))
        self.kinds.append(kind)
        self.sessions.append(session)
        self.entries.append(entry)
        self.speakers.append(speaker)
        self._flags.append(bits)
        self._pending_bytes += size
        if self._pending_bytes >= _BLOCK_BYTES:
            self._flush()
        return number

    def flag(self, number: int, flag: str) -> None:
        """Add a flag to an object."""
        self._flags[number] |= _BITS[flag]

    def has_flag(self, number: int, flag: str) -> bool:
        """Say whether an object has a flag."""
        return bool(self._flags[number] & _BITS[flag])

    def late(
        self, number: int, members: dict[str, Any] | None = None, ext: dict[str, Any] | None = None
    ) -> None:
        """Add members that the object does not have yet. Of two values given late for one member the last holds.

        Only `rest` may be there before: its members are joined.
        """
        blob = self._put(_LATE, 0, 0, 0, 0, orjson.dumps(members or {})[1:-1], orjson.dumps(ext or {})[1:-1])
        self._late.setdefault(number, []).append(blob)

    def drop(self, number: int) -> None:
        """Leave an object out of every vCon."""
        self._dropped.add(number)

    @property
    def has_dropped(self) -> bool:
        """Whether any object was left out."""
        return bool(self._dropped)

    def is_object(self, number: int) -> bool:
        """Say whether a number is that of an object that is written into a vCon."""
        return self.kinds[number] != _LATE and number not in self._dropped

    def read(self, number: int) -> Spooled:
        """Return an object with all that was added to it."""
        head, ext = self._read(number)
        late = self._late.get(number)
        bits = self._flags[number]
        if late is not None:
            heads, exts = [head] if head else [], [ext] if ext else []
            members: dict[str, Any] = {}
            others: dict[str, Any] = {}
            for blob in late:
                more, more_ext = self._read(blob)
                members |= orjson.loads(b"{" + more + b"}")
                added = orjson.loads(b"{" + more_ext + b"}")
                if "rest" in added and "rest" in others:
                    added["rest"] = others["rest"] | added["rest"]
                others |= added
            if "rest" in others and b'"rest":' in ext:
                own = orjson.loads(b"{" + ext + b"}")
                others = {**own, **others, "rest": own.get("rest", {}) | others["rest"]}
                exts.clear()
            if members:
                heads.append(orjson.dumps(members)[1:-1])
            if others:
                exts.append(orjson.dumps(others)[1:-1])
            head, ext = b",".join(heads), b",".join(exts)
        if bits:
            named = orjson.dumps([name for name in FLAGS if bits & _BITS[name]])
            ext = ext + b',"flags":' + named if ext else b'"flags":' + named
        return Spooled(head, ext)

    def _read(self, number: int) -> Spooled:
        start = self._ends[number - 1] if number else 0
        end = self._ends[number]
        if end > self._flushed:
            self._flush()
        begin = start - self._block_start
        if begin < 0 or begin + end - start > len(self._block):
            self._block = os.pread(self._file.fileno(), max(end - start, _READ_BYTES), start)
            self._block_start = start
            begin = 0
        cut = begin + self._heads[number]
        return Spooled(self._block[begin:cut], self._block[cut : begin + end - start])

    def _flush(self) -> None:
        block = memoryview(b"".join(self._pending))
        try:
            while block:
                written = self._file.write(block)
                self._flushed += written
                block = block[written:]
        except OSError as fault:
            raise StorageError(
                f"what was read cannot be kept: {fault.strerror}",
                code="vcon-unwritable",
                hint="make room in the folder for the vCons; it takes as much as the logs, twice",
            ) from fault
        self._pending.clear()
        self._pending_bytes = 0

    def close(self) -> None:
        """Forget everything."""
        self._file.close()
