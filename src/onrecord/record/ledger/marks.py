"""The high-water file: the last released checkpoint, kept in another directory than the journal.

A journal that is smaller or different at the next start is refused (transparency.md 4.7).
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Final

from onrecord.base.errors import LogError, MalformedError, StorageError, Where
from onrecord.record.ledger._c2sp_note import MAX_NOTE_BYTES
from onrecord.record.ledger.checkpoints import Checkpoint, TrustedKeys
from onrecord.record.ledger.schema import sync_path

FILE_NAME: Final = "high-water"


class HighWater:
    """The file in `directory`, written by a thread of its own so that commits do not wait for it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self._draft = directory / f".{FILE_NAME}.new"
        self._changed = threading.Condition()
        self._offered: str | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._error: StorageError | None = None
        self._writing = threading.Lock()

    def read(self, *, trusted: TrustedKeys) -> Checkpoint | None:
        """Return the checkpoint in the file, or None if there is no file.

        Raises `StorageError` with code "marks-unreadable"; `LogError` with code "high-water-malformed",
        "checkpoint-signature-invalid" or "checkpoint-key-unknown".
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(MAX_NOTE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"cannot read the high-water file ({error.strerror})",
                code="marks-unreadable",
                where=Where(str(self.path)),
            ) from error
        try:
            return Checkpoint.open(data, trusted=trusted)
        except LogError as error:
            raise LogError(
                f"the high-water file: {error}", code=error.code, hint=error.hint, where=Where(str(self.path))
            ) from error
        except MalformedError as error:
            raise LogError(
                "the high-water file is not a checkpoint",
                code="high-water-malformed",
                where=Where(str(self.path)),
                hint="put the newest checkpoint that you hold of this journal in its place",
            ) from error

    def write(self, note: str) -> None:
        """Replace the file atomically; it is on disk when this returns.

        Raises `StorageError` with code "audit-unavailable".
        """
        with self._writing:
            self._replace(note)

    def _replace(self, note: str) -> None:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._draft, flags, 0o600)
            try:
                _write_all(descriptor, note.encode("utf-8"))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(self._draft, self.path)
            sync_path(self.path.parent)
        except OSError as error:
            raise StorageError(
                f"the high-water file cannot be written ({error.strerror})",
                code="audit-unavailable",
                where=Where(str(self.path)),
            ) from error
        self._error = None

    @property
    def error(self) -> StorageError | None:
        """Return why the last write failed, or None."""
        return self._error

    def offer(self, note: str) -> None:
        """Have the note written soon by the thread; a newer one may take its place before."""
        with self._changed:
            self._offered = note
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="journal-marks", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """End the thread. What was offered and not yet written is left to the caller's last `write`."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._offered is None and not self._is_closing:
                    self._changed.wait()
                if self._is_closing:
                    return
                note, self._offered = self._offered, None
            if note is not None:
                try:
                    self.write(note)
                except StorageError as error:
                    self._error = error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def prepare_directory(path: Path, *, code: str) -> None:
    """Make a directory for this uid only if it is missing.

    Raises `StorageError` with the given code.
    """
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        if not path.is_dir():
            raise NotADirectoryError(20, "not a directory")
    except OSError as error:
        raise StorageError(
            f"cannot use the directory ({error.strerror})", code=code, where=Where(str(path))
        ) from error
