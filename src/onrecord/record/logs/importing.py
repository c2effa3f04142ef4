"""Native logs to vCons: the whole of an import, from paths to a report.

    report = import_paths([Path("~/.claude").expanduser()], to=Path("vcons"))

Source: native-logs.md sections 2, 3, 9 and 10.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from onrecord.base.dates import format_date, utc_now
from onrecord.record.logs.delivery import Delivered, Delivery, Sign
from onrecord.record.logs.group_import import GroupImport
from onrecord.record.logs.planning import Group, Plan, Source, plan
from onrecord.record.logs.report import ImportReport, part_of, unchanged_part
from onrecord.record.logs.runs import Options, Run
from onrecord.record.logs.sessions import NativeSession
from onrecord.record.logs.state import Known, KnownGroup, State

SETTLED_AFTER_NS: Final = 2_000_000_000
"""Age of a file's times from which on a change would give it other ones, whatever clock the file system has."""

_SAVED_EVERY_SECONDS: Final = 10.0


class Watcher:
    """Is told how an import goes on. This one does nothing."""

    def looking_at(self, name: str) -> None:
        """A file or folder is looked at, before anything is imported."""

    def planned(self, files: int, size: int) -> None:
        """So many files with so many bytes are going to be read."""

    def begin(self, name: str) -> None:
        """A file is read."""

    def read(self, size: int) -> None:
        """So many more bytes of the file were read."""

    def end(self, size: int, findings: int) -> None:
        """A file was read, with so many findings."""


@dataclass(frozen=True, kw_only=True)
class Signing:
    """How vCons are signed: `sign` makes the signed form, `identity` says with which key, for the notes of imports."""

    sign: Sign
    identity: str


class _OthersNeeded(Exception):
    """A session goes on in files that were thought unchanged. No error."""


class Import:
    """One import. `run` does it; `report` says at any time what was done until then.

    `to` is the folder for the vCons; None makes them to be looked at only, and keeps none. With `everything` also
    unchanged files are read, and so with `verify`, which looks for every text of the logs in the vCons that are made.
    `format` is what the files are taken for.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        to: Path | None,
        options: Options | None = None,
        format: str | None = None,
        signing: Signing | None = None,
        everything: bool = False,
        replaces: bool = False,
        verify: bool = False,
        watcher: Watcher | None = None,
    ) -> None:
        self._paths = list(paths)
        self._target = to
        self._options = options or Options()
        self._format = format
        self._signing = signing
        self._everything = everything or verify
        self._replaces = replaces
        self._verify = verify
        self._watcher = watcher or Watcher()
        self._report = ImportReport(target=str(to) if to is not None else None)
        self._parts: dict[int, dict[str, object]] = {}
        self._plan: Plan | None = None
        self._state = State("")
        self._next_state = State("")
        self._delivered: dict[str, Delivered] = {}
        self._started = time.monotonic()
        self._next_save = self._started + _SAVED_EVERY_SECONDS

    def run(self) -> ImportReport:
        """Import, and return the report.

        What was written when this is interrupted is whole, and stays. Raises `UsageError` with code "target-unusable",
        "target-in-use" or "log-format-unknown", `StorageError` with code "vcon-unwritable".
        """
        with self._folder() as name:
            folder = Path(name)
            delivery = Delivery(
                folder,
                now=format_date(utc_now()),
                sign=self._signing.sign if self._signing else None,
                replaces=self._replaces,
            )
            with delivery:
                try:
                    self._import(delivery)
                finally:
                    self._save()
        return self.report()

    def report(self) -> ImportReport:
        """Return the report so far."""
        self._report.files = [self._parts[place] for place in sorted(self._parts)]
        self._report.seconds = time.monotonic() - self._started
        if self._plan is not None:
            self._report.passed = self._plan.passed
        changes = self._report.changes
        changes.clear()
        changes.update(delivered.change for delivered in self._delivered.values())
        return self._report

    def _folder(self) -> AbstractContextManager[str]:
        if self._target is None:
            return tempfile.TemporaryDirectory(prefix="onrecord-")
        return nullcontext(str(self._target))

    # -- the way through the groups

    def _import(self, delivery: Delivery) -> None:
        rules = self._rules()
        self._state = State.read(delivery.folder, rules=rules)
        if self._state.fault is not None:
            self._report.notes.append(
                f"the notes of the last import are not used ({self._state.fault}): every file is read"
            )
        self._next_state = State(rules)
        self._next_state.sources = dict(self._state.sources)
        self._next_state.groups = dict(self._state.groups)
        self._next_state.vcons = dict(self._state.vcons)
        self._next_state.numbers = dict(self._state.numbers)
        known = State(rules) if self._everything else self._state
        self._plan = plan(
            self._paths,
            state=known,
            numbers=self._next_state.numbers,
            format=self._format,
            target=self._target,
            looking_at=self._watcher.looking_at,
        )
        to_read, skipped = self._divided(self._plan.groups, known)
        try:
            self._read_all(delivery, to_read, skipped)
        except _OthersNeeded:
            # Rare: a new file goes on with a session of unchanged ones, so these are needed after all.
            self._read_all(delivery, self._plan.groups, [])

    def _divided(self, groups: list[Group], state: State) -> tuple[list[Group], list[Group]]:
        """Divide the groups into those to be read and those to be skipped, where none tells of the other's sessions."""
        to_read: list[Group] = []
        skipped: list[Group] = []
        for group in groups:
            (skipped if group.is_unchanged(state, self._target) else to_read).append(group)
        told = {mark for group in to_read for mark in _marks(group, state)}
        while skipped:
            tied = [group for group in skipped if not told.isdisjoint(_marks(group, state))]
            if not tied:
                break
            told |= {mark for group in tied for mark in _marks(group, state)}
            to_read += tied
            skipped = [group for group in skipped if group not in tied]
        to_read.sort(key=lambda group: group.sources[0].place)
        return to_read, skipped

    def _read_all(self, delivery: Delivery, groups: list[Group], skipped: list[Group]) -> None:
        assert self._plan is not None
        sources = self._plan.sources
        self._parts.clear()
        for group in skipped:
            for source in group.sources:
                self._parts[source.place] = unchanged_part(source)
        for source in sources:
            if source.importer is None:
                self._parts[source.place] = part_of(source)
        reading = [source for group in groups for source in group.sources]
        self._watcher.planned(len(reading), sum(source.size for source in reading))
        skipped_marks = {mark for group in skipped for mark in _marks(group, self._state)}
        with Run(self._options, folder=delivery.folder) as run:
            work = GroupImport(
                run, delivery, sources, keeps_vcons=self._target is not None, verify=self._verify
            )
            self._delivered = work.delivered
            for group in groups:
                self._import_group(work, group, skipped_marks)
        for source in sources:
            if source.twin_of is not None:
                self._tell_twin(source, source.twin_of)

    def _import_group(self, work: GroupImport, group: Group, skipped_marks: set[str]) -> None:
        work.begin()
        for source in group.sources:
            self._watcher.begin(source.name)
            if source.file is not None:
                source.file.on_read = self._watcher.read
            work.read(source)
            self._watcher.end(source.size, sum(1 for _ in source.findings.listed()))
        told = {
            source.place: sorted(
                _mark(session) for session in (source.trace.sessions.values() if source.trace else ())
            )
            for source in group.sources
        }
        if not skipped_marks.isdisjoint(mark for marks in told.values() for mark in marks):
            raise _OthersNeeded
        touched, vcons = work.end(group)
        for source in touched:
            self._parts[source.place] = part_of(source)
        self._note(group, told, vcons)
        for source in touched:
            # Of another group before, whose session goes on in this one.
            known = self._next_state.sources.get(source.key)
            if known is not None and not source.has_failed:
                known.report = self._parts[source.place]
        if time.monotonic() > self._next_save:
            self._save()

    def _tell_twin(self, source: Source, of: Source) -> None:
        """Report a file whose text is that of another one: each of its records repeats that one's."""
        account = of.accounting
        if account is None and of.known is not None:
            account = of.known.report["accounting"]
        records = account["records"] if account is not None else 0
        source.accounting = {
            "records": records,
            "mapped": 0,
            "of_mapped": {"conversation": 0, "system_event": 0},
            "duplicates": records,
            "of_duplicates": {"file-twin": records} if records else {},
            "reported": 0,
        }
        source.has_failed = of.has_failed
        if not any(finding.code == "file-twin" for finding in source.findings.listed()):
            source.findings.add("file-twin", action=f"skipped as duplicate of {of.name}")
        self._parts[source.place] = part_of(source)

    # -- the notes for the next import

    def _rules(self) -> str:
        """Return what stands for all that the vCons depend on beside the files."""
        told = {**asdict(self._options), "signing": self._signing.identity if self._signing else None}
        return hashlib.sha256(json.dumps([told, self._format], sort_keys=True).encode()).hexdigest()[:16]

    def _note(self, group: Group, told: dict[int, list[str]], vcons: dict[str, int]) -> None:
        state = self._next_state
        state.vcons.update(vcons)
        if any(source.has_failed for source in group.sources):
            state.groups.pop(group.key, None)
            return
        now = time.time_ns()
        for source in group.sources:
            if source.stamp is not None and source.file is not None:
                newest = max(source.stamp.mtime_ns, source.stamp.ctime_ns)
                state.sources[source.key] = Known(
                    stamp=source.stamp,
                    sha256=source.file.sha256,
                    is_settled=now - newest > SETTLED_AFTER_NS,
                    group=group.key,
                    told=told[source.place],
                    report=part_of(source),
                )
        state.groups[group.key] = KnownGroup(side=group.side, vcons=list(vcons))

    def _save(self) -> None:
        begun = time.monotonic()
        if self._target is not None and self._plan is not None:
            with suppress(OSError):
                self._next_state.write(self._target)
        ended = time.monotonic()
        # The notes grow with the files; writing them shall stay a small part of a long import.
        self._next_save = ended + max(_SAVED_EVERY_SECONDS, 20 * (ended - begun))


def _mark(session: NativeSession) -> str:
    text = f"{session.format_id}\0{session.agent_session_id}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _marks(group: Group, state: State) -> Iterator[str]:
    for source in group.sources:
        known = state.sources.get(source.key)
        if known is not None:
            yield from known.told


def import_paths(
    paths: Iterable[Path],
    *,
    to: Path | None,
    options: Options | None = None,
    format: str | None = None,
    signing: Signing | None = None,
    everything: bool = False,
    replaces: bool = False,
    verify: bool = False,
    watcher: Watcher | None = None,
) -> ImportReport:
    """Import native logs into a folder of vCons and return the report; see `Import` for what it is told.

    Raises as `Import.run` does.
    """
    return Import(
        paths,
        to=to,
        options=options,
        format=format,
        signing=signing,
        everything=everything,
        replaces=replaces,
        verify=verify,
        watcher=watcher,
    ).run()


__all__ = ["Import", "ImportReport", "Options", "Signing", "Watcher", "import_paths"]
