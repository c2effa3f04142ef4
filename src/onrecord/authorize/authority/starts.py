"""Start ids: four random bytes for each start of the authority, never the ones of the start before.

Source: call-proof.md 5.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onrecord.authorize.evidence.interface import START_ID_BYTES
from onrecord.base.errors import StorageError, Where
from onrecord.base.files import read_regular, replace_whole

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
    try:
        replace_whole(path, start_id.hex().encode("ascii") + b"\n", mode=0o600)
    except OSError as error:
        raise StorageError(
            f"cannot remember the start id ({error.strerror})",
            code="start-id-unwritable",
            where=Where(str(path)),
        ) from error
    return start_id


def _read(path: Path) -> bytes | None:
    try:
        return bytes.fromhex(read_regular(path, limit_bytes=64).decode("ascii"))
    except (OSError, ValueError):
        return None
