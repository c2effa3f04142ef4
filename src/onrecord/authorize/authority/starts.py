"""Start ids: four random bytes for each start of the authority, never the ones of the start before.

Source: call-proof.md 5.6.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from onrecord.authorize.evidence.interface import START_ID_BYTES
from onrecord.base.errors import StorageError, Where

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def next_start_id(path: Path, *, randomness: Callable[[int], bytes]) -> bytes:
    """Return a new start id and remember it in `path`, on disk before this returns.

    An unreadable file counts as none: the chance that the new id is the lost one is one in four billion.

    Raises `StorageError` with code "start-id-unwritable".
    """
    before = _read(path)
    start_id = randomness(START_ID_BYTES)
    while start_id == before:
        start_id = randomness(START_ID_BYTES)
    temporary = path.with_suffix(".new")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600)
        try:
            os.write(descriptor, start_id.hex().encode("ascii") + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(
            f"cannot remember the start id ({error.strerror})",
            code="start-id-unwritable",
            where=Where(str(path)),
        ) from error
    return start_id


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return bytes.fromhex(os.read(descriptor, 64).decode("ascii"))
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
