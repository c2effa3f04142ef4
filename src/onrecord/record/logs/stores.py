"""A folder that is one store, as a source like a file: its size and hash are those of all that lies in it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO, NoReturn

from onrecord.base.errors import OnrecordError, UsageError, Where
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.folders import files_of, shown
from onrecord.record.logs.reading.opening import NativeFile


class StoreFolder(NativeFile):
    """A folder that an importer reads as a whole.

    `sha256` is over the lines "<SHA-256 of a file>  <its path in the folder>", in the order of the paths' parts.
    """

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        self.path = path
        self.name = shown(path) if name is None else name
        self.compression = None
        self.follow = False
        self.on_read = None
        self.size = sum(status.st_size for _, status in files_of(path))
        self._digest: str | None = None

    def open(self, findings: FileFindings | None = None) -> BinaryIO:
        """Refuse: there is no text of a folder. Raises `UsageError` with code "unreadable-file"."""
        self._refuse()

    def head(self, size: int) -> bytes:
        """Refuse: there is no text of a folder. Raises `UsageError` with code "unreadable-file"."""
        self._refuse()

    @property
    def sha256(self) -> str:
        """The hash of the whole store in hex."""
        if self._digest is None:
            digest = hashlib.sha256()
            for path, _ in files_of(self.path):
                try:
                    own = NativeFile(path).sha256
                except (OnrecordError, OSError):
                    own = "-"
                digest.update(f"{own}  ".encode("ascii") + os.fsencode(path.relative_to(self.path)) + b"\n")
            self._digest = digest.hexdigest()
        return self._digest

    def _refuse(self) -> NoReturn:
        raise UsageError(
            "cannot be read: this is a folder", code="unreadable-file", where=Where(file=self.name)
        )
