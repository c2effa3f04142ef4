"""Reading the files that the vCon commands are given, and writing their results."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from onrecord.base.errors import UsageError, Where
from onrecord.base.files import write_new
from onrecord.cli.output import standard_output
from onrecord.record.vcon.reader import MAX_BYTES

OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", help="Write to this new file; default: standard output.", show_default=False
    ),
]

ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", help="Write the report, as JSON, to this new file.", show_default=False
    ),
]

VCON_SUFFIXES: Final = (".vcon", ".json", ".vcon.gz", ".json.gz")
"""Names that are taken for vCons when a folder is given. A file that is named itself may have any name."""


_SIGNED_RECORDS: Final = (
    "look at the name and the folder; onrecord record sessions names the vCons of a running recorder"
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
            hint="give yourself the right to read it; ls -l says whose it is",
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


def write_file(path: Path | None, data: bytes) -> None:
    """Write a new file with mode 0600, or standard output for None and "-". An existing file is never overwritten.

    The file appears whole or not at all.

    Raises `UsageError` with code "file-exists" or "file-unwritable".

    Source: record.md PR-15.
    """
    if path is None or str(path) == "-":
        _write_out(data)
        return
    where = Where(file=str(path))
    try:
        write_new(path, data, mode=0o600)
    except FileExistsError:
        raise _exists(where) from None
    except OSError as error:
        raise UsageError(
            f"the file cannot be written: {error.strerror}", code="file-unwritable", where=where
        ) from error


def _write_out(data: bytes) -> None:
    with standard_output("name a file with --out") as out:
        out.write(data)


def require_new(*paths: Path | None) -> None:
    """Refuse, before anything is written, several results of which one could not be written: half a set is none.

    None and "-" stand for standard output.

    Raises `UsageError` with code "file-exists", "file-unwritable" or "out-missing".
    """
    places: set[str] = set()
    for path in paths:
        if path is None or str(path) == "-":
            continue
        where = Where(file=str(path))
        place = os.path.join(os.path.realpath(path.parent), path.name)
        if place in places:
            raise UsageError(
                "two documents cannot go into one file",
                code="out-missing",
                hint="give each of them a name of its own",
                where=where,
            )
        if os.path.lexists(path):
            raise _exists(where)
        if not path.parent.is_dir():
            raise UsageError(
                "the file cannot be written: there is no such folder",
                code="file-unwritable",
                hint="make the folder first, or name another one",
                where=where,
            )
        places.add(place)


def _exists(where: Where) -> UsageError:
    return UsageError(
        "there is a file of this name, and it is not overwritten",
        code="file-exists",
        hint="name another one, or move that one away",
        where=where,
    )


def require_out(out: Path | None, *, as_json: bool) -> None:
    """Refuse a report and a result on one standard output.

    Raises `UsageError` with code "out-missing".
    """
    if as_json and (out is None or str(out) == "-"):
        raise UsageError(
            "--json prints the report on standard output, so the result needs a file",
            code="out-missing",
            hint="name it with --out FILE",
        )


def expand(paths: Iterable[Path]) -> Iterator[Path | UsageError]:
    """Yield the files meant: those named, and in folders everything that looks like a vCon, sorted by name.

    A folder that cannot be read gives a `UsageError` with code "folder-unreadable" in its place. Links to files are
    followed, links to folders only where they are named themselves.
    """
    for path in paths:
        if str(path) != "-" and os.path.isdir(path):
            yield from _walk(path)
        else:
            yield path


def _walk(top: Path) -> Iterator[Path | UsageError]:
    pending = [top]
    while pending:
        folder = pending.pop()
        names: list[str] = []
        inner: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if _is_folder(entry):
                        if not entry.is_symlink():
                            inner.append(entry.name)
                    elif entry.name.lower().endswith(VCON_SUFFIXES):
                        names.append(entry.name)
        except OSError as error:
            yield UsageError(
                f"the folder cannot be read: {error.strerror}",
                code="folder-unreadable",
                hint="give yourself the right to read it, or name the files that you mean",
                where=Where(file=str(folder)),
            )
        for name in sorted(names):
            yield folder / name
        pending += [folder / name for name in sorted(inner, reverse=True)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in a circle
        return False
