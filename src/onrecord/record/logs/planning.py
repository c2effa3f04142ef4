"""What an import is going to read: sources with their formats, which of them are twins, and which belong together.

Source: native-logs.md section 3, R-11, R-17, R-21.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onrecord.base.errors import OnrecordError
from onrecord.record.logs.detection import detect
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.folders import Found, Passed, Stamp, Walk, shown
from onrecord.record.logs.interface import Importer, importer_for, importers
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.state import Known, State
from onrecord.record.logs.stores import StoreFolder

if TYPE_CHECKING:
    from onrecord.record.logs.sessions import NativeSession
    from onrecord.record.logs.trace import Trace

_PIECE: Final = 1 << 20
_PACKED: Final = (".zst", ".gz")


@dataclass(slots=True, kw_only=True)
class Source:
    """A file or store on its way through an import.

    `place` is its index among all of this import. `number` is what `src` in the vCons calls it: its index in the
    report's `files` at the first import into a folder, and what it was called before at later ones.

    `importer` is None for what is not imported, with a finding that says why; `known` is what the last import noted,
    if nothing has changed since.
    """

    path: Path
    name: str
    place: int
    number: int
    is_named: bool
    findings: FileFindings
    stamp: Stamp | None = None
    file: NativeFile | None = None
    importer: type[Importer] | None = None
    is_store: bool = False
    known: Known | None = None
    twin_of: Source | None = None
    trace: Trace | None = None
    accounting: dict[str, Any] | None = None
    has_failed: bool = False
    sessions: dict[int, tuple[NativeSession, str | None]] = field(default_factory=dict)
    """The sessions that this source was the first to tell, by index, with the place of the vCon."""

    @property
    def key(self) -> str:
        """The source in the notes of imports: its absolute path."""
        return os.path.abspath(self.path)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.file.size if self.file is not None else self.stamp.size if self.stamp is not None else 0

    def sha256(self) -> str:
        """Return the hash of the source; that of the last import where nothing has changed.

        Raises `OnrecordError` and `OSError` for what can no longer be read.
        """
        if self.known is not None:
            return self.known.sha256
        return self.file.sha256 if self.file is not None else ""


@dataclass(slots=True, kw_only=True)
class Group:
    """Sources that are read together, because their sessions may be linked."""

    key: str
    sources: list[Source] = field(default_factory=list)
    side: str = ""

    def is_unchanged(self, state: State, folder: Path | None) -> bool:
        """Say whether the last import has read all of it as it is now, and its vCons are there."""
        known = state.groups.get(self.key)
        return (
            folder is not None
            and known is not None
            and known.side == self.side
            and all(source.known is not None and source.known.group == self.key for source in self.sources)
            and state.has_vcons(self.key, folder)
        )


@dataclass(slots=True, kw_only=True)
class Plan:
    """All sources in their order, the groups in the order of their first sources, and what was passed by."""

    sources: list[Source]
    groups: list[Group]
    passed: Passed


def plan(
    paths: Iterable[Path],
    *,
    state: State,
    numbers: dict[str, int],
    format: str | None = None,
    target: Path | None = None,
    looking_at: Callable[[str], None] | None = None,
) -> Plan:
    """Look at what lies at these paths.

    `format` is what named files are taken for, and all that is looked for in folders; `target` is the folder of
    the vCons. `numbers` gets those of files that are met for the first time.

    Raises `UsageError` with code "log-format-unknown".
    """
    asked = [importer_for(format)] if format is not None else list(importers())
    return _Planner(paths, state, numbers, asked, target, looking_at, is_forced=format is not None).plan()


class _Planner:
    def __init__(
        self,
        paths: Iterable[Path],
        state: State,
        numbers: dict[str, int],
        asked: Sequence[type[Importer]],
        target: Path | None,
        looking_at: Callable[[str], None] | None,
        *,
        is_forced: bool,
    ) -> None:
        self._paths = paths
        self._state = state
        self._numbers = numbers
        self._next_number = max(numbers.values(), default=-1) + 1
        self._asked = asked
        self._is_forced = is_forced
        self._looking_at = looking_at
        self._sources: list[Source] = []
        self._walk = Walk(
            store_of=self._store_of,
            is_side_file=lambda path: any(importer.is_side_file(path) for importer in asked),
            target=target,
        )

    def plan(self) -> Plan:
        for found in self._walk.over(self._paths):
            if self._looking_at is not None:
                self._looking_at(str(found.path))
            self._sources.append(self._source(found))
        self._find_twins()
        groups = list(self._groups())
        self._add_side_files(groups)
        return Plan(sources=self._sources, groups=groups, passed=self._walk.passed)

    def _store_of(self, folder: Path, names: frozenset[str]) -> str | None:
        for importer in self._asked:
            if importer.recognises_folder(folder, names):
                return importer.format
        return None

    # -- one source

    def _source(self, found: Found) -> Source:
        name = shown(found.path)
        source = Source(
            path=found.path,
            name=name,
            place=len(self._sources),
            number=self._number(found.path),
            is_named=found.is_named,
            findings=FileFindings(name),
            stamp=found.stamp,
            is_store=found.format is not None,
        )
        try:
            self._open(source, found)
        except (OnrecordError, OSError, ValueError) as fault:
            self._report_unreadable(source, str(fault))
        except Exception as error:
            # A fault of ours in telling the format of one file must not cost the other ones their import.
            if os.environ.get("ONRECORD_DEBUG"):
                raise
            source.importer = source.known = None
            source.has_failed = True
            message = f"internal error while the format was told ({type(error).__name__})"
            source.findings.add("importer-failed", message=message, action="not imported")
        return source

    def _number(self, path: Path) -> int:
        """Return the number of a file: the one that it had before, or the next."""
        numbers = self._numbers
        key = os.path.abspath(path)
        if key not in numbers:
            numbers[key] = self._next_number
            self._next_number += 1
        return numbers[key]

    def _open(self, source: Source, found: Found) -> None:
        if found.fault is not None:
            self._report_unreadable(source, f"cannot be read: {found.fault}")
            return
        if found.format is not None:
            source.file = StoreFolder(found.path, name=source.name)
            source.importer = importer_for(found.format)
            self._compare(source)
            return
        source.file = NativeFile(found.path, name=source.name, follow=found.is_named)
        self._compare(source)
        if source.known is not None:
            source.importer = importer_for(source.known.report["format"])
            if source.importer in self._asked:
                return
            source.known = source.importer = None
        detection = detect(source.file, self._asked)
        if self._is_forced and found.is_named and detection.code != "empty-file":
            source.importer = self._asked[0]
        elif detection.format is not None:
            source.importer = importer_for(detection.format)
        else:
            code = detection.code or "unknown-format"
            if source.file.compression is not None:
                # An archive without text may be a damaged one: reading it says so.
                with source.file.open(source.findings) as stream:
                    stream.read(1)
            is_error = code != "empty-file" and found.is_named
            source.findings.add(
                code,
                message=detection.reason,
                action="not imported",
                severity=None if code == "empty-file" else "error" if is_error else "warning",
            )

    @staticmethod
    def _report_unreadable(source: Source, message: str) -> None:
        source.importer = source.known = None
        source.has_failed = True
        source.findings.add("unreadable-file", message=message[:300], action="not imported")

    def _compare(self, source: Source) -> None:
        """Find out whether the source is what the last import has read: by its stamp, or else by its hash."""
        known = self._state.sources.get(source.key)
        stamp = source.stamp
        if known is None or stamp is None or source.file is None:
            return
        is_same = known.is_settled and known.stamp == stamp
        if is_same or (known.stamp.size == stamp.size and known.sha256 == source.file.sha256):
            source.known = known

    # -- twins

    def _find_twins(self) -> None:
        by_size: dict[tuple[int, str], list[Source]] = {}
        by_path: dict[Path, Source] = {}
        for source in self._sources:
            if source.importer is not None and source.stamp is not None and not source.is_store:
                by_path[source.path] = source
                by_size.setdefault((source.stamp.size, source.importer.format), []).append(source)
        for same in by_size.values():
            if len(same) > 1:
                self._mark_twins(same)
        for source in by_path.values():
            if source.path.suffix in _PACKED and source.twin_of is None:
                plain = by_path.get(source.path.with_suffix(""))
                if plain is not None and self._has_text_of(source, plain):
                    source.twin_of = plain.twin_of or plain

    def _mark_twins(self, same: Sequence[Source]) -> None:
        first: dict[str, Source] = {}
        for source in same:
            try:
                other = first.setdefault(source.sha256(), source)
            except (OnrecordError, OSError) as fault:
                self._report_unreadable(source, str(fault))
                continue
            if other is not source:
                source.twin_of = other

    @staticmethod
    def _has_text_of(packed: Source, plain: Source) -> bool:
        if packed.file is None:
            return False
        digest = hashlib.sha256()
        try:
            with packed.file.open() as stream:
                while piece := stream.read(_PIECE):
                    digest.update(piece)
            return digest.hexdigest() == plain.sha256()
        except (OnrecordError, OSError):
            return False

    # -- groups

    def _groups(self) -> Iterator[Group]:
        """Yield the groups; where sessions are linked in a folder, these are the outermost folders with logs."""
        folders: dict[str, Path] = {}
        groups: dict[str, Group] = {}
        for source in self._sources:
            importer = source.importer
            if importer is None or source.twin_of is not None:
                continue
            key = importer.format
            if importer.is_grouped_by_folder:
                place = Path(source.key).parent
                folder = folders.get(key)
                if folder is None or not place.is_relative_to(folder):
                    folder = folders[key] = place
                key = _key(importer, folder)
            if key not in groups:
                groups[key] = Group(key=key)
            groups[key].sources.append(source)
        for group in groups.values():
            group.sources.sort(key=_order)
            yield group

    @staticmethod
    def _add_log(source: Source, digest: Any) -> None:
        """Add the write-ahead log of a database: what is new may stand there alone."""
        with suppress(OSError):
            digest.update(repr(Stamp.of(os.stat(f"{source.path}-wal"))).encode("ascii"))

    def _add_side_files(self, groups: Sequence[Group]) -> None:
        by_key = {group.key: group for group in groups}
        digests: dict[str, Any] = {}
        for path, stamp in self._walk.side_files.items():
            for importer in self._asked:
                if not importer.is_side_file(path):
                    continue
                place = Path(os.path.abspath(path))
                keys = [importer.format, *(_key(importer, above) for above in place.parents)]
                for key in keys:
                    if key in by_key:
                        digest = digests.setdefault(key, hashlib.sha256())
                        digest.update(os.fsencode(place) + repr(stamp).encode("ascii") + b"\n")
        for group in groups:
            for source in group.sources:
                if source.importer is not None and "sqlite" in source.importer.carriers:
                    self._add_log(source, digests.setdefault(group.key, hashlib.sha256()))
        for key, digest in digests.items():
            by_key[key].side = digest.hexdigest()


def _key(importer: type[Importer], folder: Path) -> str:
    return f"{importer.format} {folder}"


def _order(source: Source) -> tuple[bool, int]:
    """Return when a source is read among those of its group; equal ones keep the order of the walk."""
    importer = source.importer
    assert importer is not None
    newest_first = importer.is_newest_first and source.stamp is not None
    return importer.comes_last(source.path), -source.stamp.mtime_ns if newest_first and source.stamp else 0
