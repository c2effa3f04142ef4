"""The import of one group of sources: they are read, and the vCons of all sessions that they tell are written.

Source: native-logs.md R-17, R-22, A-02, A-05.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.base.errors import OnrecordError, StorageError, Where
from onrecord.record.logs.delivery import LEFT, Delivered, Delivery
from onrecord.record.logs.linking import Families, report_unlinked
from onrecord.record.logs.planning import Group, Source
from onrecord.record.logs.trace import Trace
from onrecord.record.logs.verification import missing
from onrecord.record.vcon.memory import paused_collection

if TYPE_CHECKING:
    from onrecord.record.logs.runs import Run
    from onrecord.record.logs.sessions import NativeSession

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Faults of a disk that is written to; reading gives none of them."""

_CONVERSATION: Final = ("dialogs", "tool_calls", "tool_results", "reasoning")


class GroupImport:
    """Imports groups of a plan, one after the other, into one run.

    `sources` are all of the plan. `delivered` is what was written last of each vCon, by uuid. With
    `keeps_vcons` off the report names no place of a vCon.
    """

    def __init__(
        self, run: Run, delivery: Delivery, sources: Sequence[Source], *, keeps_vcons: bool, verify: bool
    ) -> None:
        self.delivered: dict[str, Delivered] = {}
        self._run = run
        self._delivery = delivery
        self._sources = {source.number: source for source in sources}
        self._keeps_vcons = keeps_vcons
        self._verify = verify
        self._vcon_of: dict[int, Path] = {}
        self._families = Families(run)

    def begin(self) -> None:
        """Begin a group."""
        self._run.changed.clear()

    def read(self, source: Source) -> None:
        """Read one source of the group. Whatever goes wrong costs this source only, but for a disk that is full.

        Raises `StorageError` with code "vcon-unwritable".
        """
        assert source.importer is not None
        assert source.file is not None
        source.known = None
        source.sessions.clear()
        before = len(self._run.spool)
        trace = Trace(self._run, source.importer, source.file, name=source.name, file_number=source.number)
        source.trace, source.findings = trace, trace.findings
        try:
            with paused_collection(source.size):
                source.importer(trace).read()
            trace.finish()
            source.accounting = trace.accounting()
        except StorageError:
            raise  # That there is no room is no fault of the log.
        except OnrecordError as error:
            code = "unreadable-file" if error.code == "unreadable-file" else "importer-failed"
            self._give_up(source, before, code, f"{error} [{error.code}]")
        except OSError as fault:
            if fault.errno in _NO_ROOM:
                # What is read on the way lies on disk too. That there is no room is no fault of the log.
                raise StorageError(
                    f"what was read cannot be kept: {fault.strerror}",
                    code="vcon-unwritable",
                    where=Where(file=str(self._delivery.folder)),
                ) from fault
            self._give_up(source, before, "unreadable-file", f"cannot be read: {fault.strerror}")
        except Exception as error:
            # A fault of ours in one file of ten thousand must not cost the other ones their import.
            if os.environ.get("ONRECORD_DEBUG"):
                raise
            self._give_up(source, before, "importer-failed", f"internal error ({type(error).__name__})")

    def _give_up(self, source: Source, before: int, code: str, message: str) -> None:
        spool = self._run.spool
        for number in range(before, len(spool)):
            if spool.is_object(number):
                spool.drop(number)
        source.has_failed = True
        source.findings.add(code, message=message, action="nothing of the file was imported")

    def end(self, group: Group) -> tuple[list[Source], dict[str, int]]:
        """Write the vCons of all sessions that have changed.

        Returns the sources whose part of the report is new, and the sizes of the vCons by uuid. Raises `StorageError`
        with code "vcon-unwritable".
        """
        run = self._run
        touched = {source.place: source for source in group.sources}
        for index in run.changed:
            run.sessions[index].finish()
        told = self._families.changed(run.changed)
        report_unlinked(run.sessions[index] for index in run.changed)
        sizes: dict[str, int] = {}
        for family in told:
            if run.objects_of(family):
                delivered = self._write(family, touched)
                sizes[delivered.uuid] = delivered.size
        if self._verify:
            for source in group.sources:
                self._look_for_texts(source)
        return list(touched.values()), sizes

    def _write(self, family: Sequence[NativeSession], touched: dict[int, Source]) -> Delivered:
        for session in family:
            if session.index in self._run.changed and not any(session.counts[name] for name in _CONVERSATION):
                session.trace.findings.add("empty-session", action="kept, with its bookkeeping")
        delivered = self._delivery.deliver(self._run, family)
        if delivered.uuid not in self.delivered or delivered.change != "same":
            self.delivered[delivered.uuid] = delivered
        if delivered.change in LEFT:
            told = "what is there tells more than this log: a part of it, or an older copy"
            family[0].trace.findings.add(
                "vcon-not-replaced",
                message=told if delivered.change == "fuller" else None,
                action="what is there was left as it is",
            )
        vcon = str(delivered.path) if self._keeps_vcons and delivered.change not in LEFT else None
        for session in family:
            self._vcon_of[session.index] = delivered.path
            if session.files:
                first = self._sources[min(session.files)]
                first.sessions[session.index] = session, vcon
                touched[first.place] = first
        return delivered

    def _look_for_texts(self, source: Source) -> None:
        """Report each text of a source that its vCons do not have."""
        if source.has_failed or source.trace is None:
            return
        told = (session.index for session in source.trace.sessions.values())
        vcons = {self._vcon_of[index] for index in told if index in self._vcon_of}
        others = sorted(set(self._vcon_of.values()) - vcons)
        try:
            for record, pointer in missing(source.trace, sorted(vcons), elsewhere=others):
                source.findings.add("content-not-found", record=record, pointer=pointer)
        except (OnrecordError, OSError) as fault:
            source.findings.add("content-not-found", message=f"cannot be looked for: {str(fault)[:200]}")
