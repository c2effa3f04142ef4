"""The process behind a default session label, watched until it exits.

Source: running.md 7.1, 7.3.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, Protocol

from onrecord.base.dates import boot_id
from onrecord.base.sockets import has_exited, process_start_time

_LABEL: Final = re.compile(r"p([0-9]{1,10})-([0-9]{1,20})-([0-9a-f]{8})", re.ASCII)


class Host(Protocol):
    """A process that may exit."""

    def exited(self) -> bool:
        """Say whether it has exited."""

    def close(self) -> None:
        """Stop watching."""


class Hosts(Protocol):
    """Finds the process that a label names."""

    def find(self, label: str, *, uid: int) -> Host | None:
        """Return the process, or None if it cannot be opened or is not the one that the label means."""


class ProcessHost:
    """A process held by its pidfd, which no other process can take over."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd

    def exited(self) -> bool:
        """Say whether it has exited."""
        return self._pidfd >= 0 and has_exited(self._pidfd)

    def close(self) -> None:
        """Give the pidfd back."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class ProcessHosts:
    """Processes of this machine, by /proc and pidfd."""

    def find(self, label: str, *, uid: int) -> ProcessHost | None:
        """Return the live process of a default label whose owner and start time fit, else None."""
        match = _LABEL.fullmatch(label)
        if match is None or match[3] != boot_id().replace("-", "")[:8]:
            return None
        pid, start = int(match[1]), int(match[2])
        try:
            pidfd = os.pidfd_open(pid)
        except (OSError, OverflowError):
            return None
        # Looked at after opening: from here on the pid cannot become another process unnoticed.
        host = ProcessHost(pidfd)
        try:
            fits = process_start_time(pid) == start and _owner(pid) == uid
        except (OSError, ValueError, IndexError):
            fits = False
        if not fits or host.exited():
            host.close()
            return None
        return host


def _owner(pid: int) -> int:
    """Return the real uid of a process. /proc/PID itself belongs to root when the process is not dumpable."""
    status = Path(f"/proc/{pid}/status").read_bytes()
    return int(status[status.index(b"\nUid:") :].split(None, 2)[1])


def label_boot(label: str) -> str | None:
    """Return the first 8 hex characters of the boot id in a default label, or None for another label."""
    match = _LABEL.fullmatch(label)
    return match[3] if match else None
