"""What lies at the paths that an import is given: files and stores, in the order of their names.

Links are never followed inside a folder, so nothing outside it is opened and no circle is walked: what a link inside
the folder leads to is met at its own place.

Source: native-logs.md R-21.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from onrecord.record.logs.own_files import OWN_FILES

_SUFFIXES = """
.7z .aac .avif .bash .bat .bin .bmp .bz2 .c .cc .cfg .cjs .class .cpp .crt .cs .css .csv .dart .db-shm
.db-wal .dll .dmg .docx .dylib .eot .exe .fish .flac .gif .go .h .heic .hpp .html .ico .ini .jar .java
.jpeg .jpg .js .jsx .key .kt .lock .lua .m .m4a .map .md .mdc .mdx .mjs .mkv .mov .mp3 .mp4 .o .ogg .otf
.pack .patch .pdf .pem .php .pid .pl .plist .png .pptx .ps1 .pub .py .pyc .rar .rb .rs .rst .scm .scss
.sh .so .sock .sql .sqlite-shm .sqlite-wal .state .svg .swift .swp .tar .tgz .tif .tiff .toml .ts .tsv .tsx
.ttf .txt .vcon .vim .vue .wasm .wav .webm .webp .woff .woff2 .xlsx .xml .xz .yaml .yml .zig .zsh
"""

NEVER_LOGS: Final = frozenset(_SUFFIXES.split())
"""Suffixes of files that are not opened when a folder is walked; a file that is named itself may have any name."""

NEVER_ENTERED: Final = frozenset([".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"])
"""Folders that are not entered: they hold no logs, and many files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the file system says about a file: when all of it is the same, so is the file."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Return the stamp of a file."""
        return cls(
            size=status.st_size, mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns, inode=status.st_ino
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file, or a folder that is one store with the format of it. `fault` says why it cannot be read."""

    path: Path
    is_named: bool = False
    stamp: Stamp | None = None
    format: str | None = None
    fault: str | None = None


@dataclass(slots=True)
class Passed:
    """How much was met on the way and not opened."""

    files: int = 0
    folders: int = 0
    links: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the counts of the report."""
        return {"files": self.files, "folders": self.folders, "links": self.links}


class Walk:
    """Goes through paths. `side_files` are those that belong to other files, by path, met on the way.

    `store_of` says which format reads a folder with these names as one store; `is_side_file` whether a file is read
    with another one; `target` is the folder of the vCons, in which our own files are passed by.
    """

    def __init__(
        self,
        *,
        store_of: Callable[[Path, frozenset[str]], str | None],
        is_side_file: Callable[[Path], bool],
        target: Path | None = None,
    ) -> None:
        self.passed = Passed()
        self.side_files: dict[Path, Stamp] = {}
        self._store_of = store_of
        self._is_side_file = is_side_file
        self._target = None if target is None else os.path.realpath(target)
        self._seen: set[str] = set()

    def over(self, paths: Iterable[Path]) -> Iterator[Found]:
        """Yield what is to be read: of each folder first its files, then its folders, by name; nothing twice."""
        for path in paths:
            try:
                status = os.stat(path)
            except (OSError, ValueError) as fault:
                yield Found(path=path, is_named=True, fault=_reason(fault))
                continue
            place = os.path.realpath(path)
            if stat.S_ISDIR(status.st_mode):
                yield from self._folder(path, place)
            elif place not in self._seen:
                self._seen.add(place)
                yield Found(path=path, is_named=True, stamp=Stamp.of(status))

    def _folder(self, top: Path, real: str) -> Iterator[Found]:
        pending = [(top, real)]
        while pending:
            folder, place = pending.pop()
            if place in self._seen:
                continue
            self._seen.add(place)
            try:
                with os.scandir(folder) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError as fault:
                yield Found(path=folder, is_named=folder == top, fault=_reason(fault))
                continue
            if place == self._target:
                found = [entry for entry in found if OWN_FILES.fullmatch(entry.name) is None]
            store = self._store_of(folder, frozenset(entry.name for entry in found))
            if store is not None:
                yield Found(path=folder, is_named=folder == top, format=store, stamp=stamp_of_folder(folder))
                continue
            inner = []
            for entry in found:
                if entry.is_symlink():
                    self.passed.links += 1
                elif entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
                else:
                    yield from self._file(folder / entry.name, entry, f"{place}/{entry.name}")
            for name in reversed(inner):
                below = os.path.join(place, name)
                if name in NEVER_ENTERED:
                    self.passed.folders += 1
                else:
                    pending.append((folder / name, below))

    def _file(self, path: Path, entry: os.DirEntry[str], place: str) -> Iterator[Found]:
        if place in self._seen:
            return
        self._seen.add(place)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as fault:
            yield Found(path=path, fault=_reason(fault))
            return
        if self._is_side_file(path):
            self.side_files[path] = Stamp.of(status)
        elif path.suffix.lower() in NEVER_LOGS or not stat.S_ISREG(status.st_mode):
            self.passed.files += 1
        else:
            yield Found(path=path, stamp=Stamp.of(status))


def files_of(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files below a folder, by name, without following a link; what cannot be listed is left out."""
    pending = [folder]
    while pending:
        here = pending.pop()
        try:
            with os.scandir(here) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        inner = []
        for entry in found:
            try:
                if entry.is_dir(follow_symlinks=False):
                    inner.append(here / entry.name)
                elif entry.is_file(follow_symlinks=False):
                    yield here / entry.name, entry.stat(follow_symlinks=False)
            except OSError:
                continue
        pending += reversed(inner)


def stamp_of_folder(folder: Path) -> Stamp:
    """Return the stamp of a store: the sizes of its files, the newest of their times, and how many there are."""
    size = mtime = ctime = count = 0
    for _, status in files_of(folder):
        size += status.st_size
        mtime = max(mtime, status.st_mtime_ns)
        ctime = max(ctime, status.st_ctime_ns)
        count += 1
    return Stamp(size=size, mtime_ns=mtime, ctime_ns=ctime, inode=count)


def shown(path: Any) -> str:
    """Return a path as it stands in reports: what is no Unicode becomes U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def _reason(fault: OSError | ValueError) -> str:
    return fault.strerror if isinstance(fault, OSError) and fault.strerror else "not a file name"
