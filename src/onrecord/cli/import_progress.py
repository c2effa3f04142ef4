"""How far an import has come, in one line on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TextIO

from onrecord.cli.output import visible
from onrecord.cli.progress import Progress, size_text
from onrecord.record.logs.importing import Watcher

_MIN_SECONDS: Final = 0.5
"""Time from which on a speed says something."""


class ImportProgress(Progress, Watcher):
    """Files, bytes, speed and findings so far, on standard error if that is a terminal."""

    def __init__(self, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__("importing", stream=stream, clock=clock)
        self._looked_at = 0
        self._all_files = 0
        self._all_bytes = 0
        self._findings = 0
        self._inside = 0
        self._name = ""
        self._began = clock()

    def looking_at(self, name: str) -> None:
        self._looked_at += 1
        if self.is_due():
            files = "1 file" if self._looked_at == 1 else f"{self._looked_at} files"
            self.show(f"looking: {files}; {_shown(name)}")

    def planned(self, files: int, size: int) -> None:
        self._all_files, self._all_bytes = files, size
        self.files = self.bytes = self._findings = 0
        self._began = self._clock()

    def begin(self, name: str) -> None:
        self._name = name
        self._inside = 0
        self._tell()

    def read(self, size: int) -> None:
        self._inside += size
        self._tell()

    def end(self, size: int, findings: int = 0) -> None:
        super().end(size)
        self._inside = 0
        self._findings += findings

    def _tell(self) -> None:
        if not self.is_due():
            return
        done = self.bytes + self._inside
        parts = [
            f"{self.files} of {self._all_files} files",
            f"{size_text(done)} of {size_text(self._all_bytes)}",
        ]
        seconds = self._clock() - self._began
        if seconds > _MIN_SECONDS:
            parts.append(f"{size_text(round(done / seconds))}/s")
        if self._findings:
            parts.append("1 finding" if self._findings == 1 else f"{self._findings} findings")
        self.show(f"importing: {', '.join(parts)}; {_shown(self._name)}")


def _shown(name: str) -> str:
    """Return the end of a path: the line is cut behind, and what names begin with is the same for all files."""
    return visible(name.rstrip("/").rpartition("/")[2][-200:])
