"""The guard's own log: its decisions, and what the real server writes to standard error. Never arguments or proofs.

Source: call-proof.md 6.5 rule 7; running.md 5.1.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Final

from onrecord.base.dates import SYSTEM_CLOCK, Clock, format_ms
from onrecord.base.errors import StorageError, Where

BYTES_PER_SECOND: Final = 1_048_576
"""More than this per second is counted instead of written (running.md 5.1): a log must not fill the disk."""

ALERTS_PER_SECOND: Final = 100
"""More than this go to the file alone. A client can cause alerts, and standard error may be read slowly."""

FILE_BYTES: Final = 16_777_216
"""At this size the file becomes `guard.log.1`, and the older one goes."""

LINE_BYTES: Final = 8192
"""Longest line; what a server writes beyond it is cut."""


def escape(text: str) -> str:
    r"""Return text with everything that a terminal or a log reader could act on written as \u{..}."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)


class GuardLog:
    """An append-only text file, one event a line. Writing never raises: a full disk must not end a call."""

    def __init__(self, path: Path | None, *, clock: Clock = SYSTEM_CLOCK, to_stderr: bool = False) -> None:
        self._path = path
        self._clock = clock
        self._to_stderr = to_stderr
        self._descriptor = -1
        self._size = 0
        self._second = -1
        self._budget = 0
        self._dropped = 0
        self._alert_second = -1
        self._alerts = 0
        if path is not None:
            try:
                self._open(path)
            except OSError as error:
                raise StorageError(
                    f"cannot open the log ({error.strerror})", code="log-unusable", where=Where(str(path))
                ) from error

    def event(self, word: str, **facts: object) -> None:
        """Write one event of the guard: a word, then `name=value` for each fact that is not None."""
        told = "".join(f" {name}={escape(str(value))}" for name, value in facts.items() if value is not None)
        self._write("guard", f"{word}{told}")

    def alert(self, word: str, **facts: object) -> None:
        """Write one event that a person should see: to standard error as well."""
        told = "".join(f" {name}={escape(str(value))}" for name, value in facts.items() if value is not None)
        self._write("guard", f"{word}{told}")
        if not self._to_stderr and self._may_alert():
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"onrecord guard: {word}{told}\n")
                sys.stderr.flush()

    def server_line(self, connection: str, line: bytes) -> None:
        """Write one line that the real server wrote to standard error."""
        self._write(f"server {connection}", escape(line.decode("utf-8", "replace")))

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _may_alert(self) -> bool:
        second = self._clock.now_ns() // 1_000_000_000
        if second != self._alert_second:
            self._alert_second, self._alerts = second, 0
        self._alerts += 1
        return self._alerts <= ALERTS_PER_SECOND

    def _write(self, origin: str, text: str) -> None:
        now = self._clock.now_ns()
        second = now // 1_000_000_000
        if second != self._second:
            self._second, self._budget = second, BYTES_PER_SECOND
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self._put(f"{format_ms(now)} guard log.dropped lines={dropped}\n")
        line = f"{format_ms(now)} {origin} {text[:LINE_BYTES]}\n"
        if len(line) > self._budget:
            self._dropped += 1
            return
        self._budget -= len(line)
        self._put(line)

    def _put(self, line: str) -> None:
        data = line.encode("utf-8", "backslashreplace")
        if self._to_stderr:
            with contextlib.suppress(OSError):
                os.write(2, data)
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            if self._size + len(data) > FILE_BYTES and self._path is not None:
                os.close(self._descriptor)
                os.replace(self._path, self._path.with_name(self._path.name + ".1"))
                self._open(self._path)
            self._size += os.write(self._descriptor, data)

    def _open(self, path: Path) -> None:
        self._descriptor = -1
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(path, flags, 0o600)
        self._size = os.fstat(self._descriptor).st_size
