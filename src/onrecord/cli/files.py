"""Reading the files that the vCon commands are given."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from onrecord.base.errors import UsageError, Where
from onrecord.record.vcon.reader import MAX_BYTES

VCON_SUFFIXES: Final = (".vcon", ".json", ".vcon.gz", ".json.gz")
"""Names that are taken for vCons when a folder is given. A file that is named itself may have any name."""


_SIGNED_RECORDS: Final = (
    "onrecord record sessions names the vCons of a running recorder; they lie below paths.records"
)


def read_file(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file, or of standard input for "-".

    Raises `UsageError` with code "file-missing", "file-unreadable", "file-not-regular" or "file-too-large".
    """
    descriptor = 0
    try:
        if str(path) != "-":
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise UsageError(
                    "this is no regular file",
                    code="file-not-regular",
                    hint="name one vCon; onrecord check also takes folders",
                    where=Where(file=str(path)),
                )
        with os.fdopen(descriptor, "rb", closefd=descriptor != 0) as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise UsageError(
            "there is no such file",
            code="file-missing",
            hint=_SIGNED_RECORDS,
            where=Where(file=str(path)),
        ) from None
    except OSError as error:
        raise UsageError(
            f"the file cannot be read: {error.strerror}",
            code="file-unreadable",
            where=Where(file=str(path)),
        ) from error
    if len(data) > max_bytes:
        raise UsageError(
            f"the file has more than {max_bytes} bytes",
            code="file-too-large",
            hint="take it apart, or read it with the Python interface and a larger limit",
            where=Where(file=str(path)),
        )
    return data


def expand(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files meant: those named, and in folders everything that looks like a vCon, sorted by name.

    Links to folders are not followed.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                if name.endswith(VCON_SUFFIXES):
                    yield Path(folder, name)
