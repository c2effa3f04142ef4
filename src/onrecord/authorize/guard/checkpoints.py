"""Keeps the newest note of the decision journal in the guard's state: it shows a journal that was cut afterwards.

Source: transparency.md 4.6; call-proof.md 5.4.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from onrecord.authorize.guard.log import GuardLog
from onrecord.base.files import read_regular, replace_whole

FILE_NAME: Final = "checkpoint.json"

WRITE_SECONDS: Final = 1.0
"""A note is written at most this often; each answer of the authority carries a newer one."""

MAX_KEPT_BYTES: Final = 65_536
"""Largest file that is looked at; a note has less than one kilobyte."""


class CheckpointFile:
    """The file `checkpoint.json` of a directory."""

    def __init__(self, directory: Path, *, log: GuardLog) -> None:
        self._path = directory / FILE_NAME
        self._log = log
        self._newest: Mapping[str, Any] | None = None

    def keep(self, checkpoint: Mapping[str, Any]) -> None:
        """Take a note {seq, size, note}; it is written within `WRITE_SECONDS`, or by `write`."""
        size = checkpoint.get("size")
        if type(size) is not int:
            return
        if self._newest is None:
            asyncio.get_running_loop().call_later(WRITE_SECONDS, self.write)
        if self._newest is None or size >= self._newest["size"]:
            self._newest = checkpoint

    def write(self) -> None:
        """Write the newest note, unless the file holds a larger one of the same journal."""
        checkpoint, self._newest = self._newest, None
        if checkpoint is None or self._is_older(checkpoint):
            return
        try:
            line = orjson.dumps(dict(checkpoint)) + b"\n"
            replace_whole(self._path, line, mode=0o600, durable=False)
        except OSError as error:
            self._log.event("checkpoint.not-kept", error=error.strerror)

    def _is_older(self, checkpoint: Mapping[str, Any]) -> bool:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            kept = orjson.loads(read_regular(self._path, limit_bytes=MAX_KEPT_BYTES))
            return bool(kept["size"] > checkpoint["size"] and _origin(kept) == _origin(checkpoint))
        return False


def _origin(checkpoint: Mapping[str, Any]) -> str | None:
    """Return the first line of a note, which names the journal and its epoch."""
    note = checkpoint.get("note")
    return note.split("\n", 1)[0] if type(note) is str else None
