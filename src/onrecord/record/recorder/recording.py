"""The state of a running recorder: sources, open sessions, closed ones; every change goes to the journal first.

Knows no sockets and no threads. `append` is called by the service, `tick` a few times a second.

Source: running.md 7, 8, 12.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from onrecord.base.dates import SYSTEM_CLOCK, Clock, boot_id, format_ms
from onrecord.base.errors import StorageError, UsageError
from onrecord.base.ids import uuid7, uuid8
from onrecord.base.wire import RpcError
from onrecord.record.ledger.journal import Journal
from onrecord.record.ledger.records import SESSION_CLOSE, SESSION_OPEN, Receipt
from onrecord.record.recorder import recorded, recovery
from onrecord.record.recorder.assembly import ms_of
from onrecord.record.recorder.carry import Carry
from onrecord.record.recorder.directory import Directory
from onrecord.record.recorder.entries import Decision, Invocation
from onrecord.record.recorder.filtering import ContentFilter
from onrecord.record.recorder.hosts import Hosts
from onrecord.record.recorder.recorded import Origin, Stored
from onrecord.record.recorder.recovery import nothing
from onrecord.record.recorder.sealing import ClosedSession, ranges
from onrecord.record.recorder.session import RecordedGap, Session, SessionKey
from onrecord.record.recorder.sessions import SessionTable
from onrecord.record.recorder.settings import KEPT_SUMMARIES, RecorderSettings
from onrecord.record.recorder.sources import RECORD_UNAVAILABLE, Arrival, Source, Sources

_MS: Final = 1_000_000
_SECOND: Final = 1_000_000_000

RESTART: Final = "recorder-restart"
"""Cause of a gap that a restart of the recorder made."""

_log = logging.getLogger("onrecord.recorder")


class Recording:
    """Sources and sessions over one journal."""

    def __init__(
        self,
        settings: RecorderSettings,
        *,
        directory: Directory,
        journal: Journal,
        content_filter: ContentFilter,
        hosts: Hosts,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.settings = settings
        self.sources = Sources()
        self.closed: OrderedDict[str, ClosedSession] = OrderedDict()
        self.table = SessionTable(settings, hosts=hosts, open_session=self._open_session)
        self._directory = directory
        self._journal = journal
        self._filter = content_filter
        self._clock = clock
        self._last_closed: dict[SessionKey, str] = {}
        self._finished: list[ClosedSession] = []
        self._started_ns = clock.boottime_ns()
        self._state_seq = 0

    # Start ---------------------------------------------------------------------------------------------------

    def recover(self, *, progress: Callable[[], None] = nothing) -> list[ClosedSession]:
        """Take up what the journal says, and return the closed sessions that are not settled, oldest first.

        A long open session takes seconds: `progress` is called again and again meanwhile.

        Open sessions whose process lives go on, with a gap; the others will be closed with cause "recovered".

        Raises what `recovery.scan` raises, and `StorageError` if the journal cannot be written.

        Source: running.md 7.4.
        """
        found = recovery.scan(self._journal, progress=progress)
        now_ns = self._started_ns = self._clock.boottime_ns()
        self.sources = found.sources
        self._state_seq = found.state_seq
        for source in self.sources:
            source.lost_ns = now_ns
        for closed in found.closed.values():
            self._remember_closed(closed)
        for session in found.open.values():
            session.last_ns = now_ns
            self.table.add(session)
        self._replay(found, now_ns, progress)
        for session in found.open.values():
            # A guard without an open connection of this session has nothing more for it.
            session.awaited = {one for one in session.origins if one.server is None}
            session.awaited |= {connection.origin for connection in session.connections}
            if session.host is not None:
                self._reopen(session, since=found.last_times[session.id])
            else:
                self.table.begin_closing(session, cause="recovered", now_ns=now_ns)
        return [one for one in self.closed.values() if not one.is_settled or not one.is_erased]

    def _replay(self, found: recovery.Recovered, now_ns: int, progress: Callable[[], None]) -> None:
        """Note the entries of open sessions again, so that later ones find their place."""
        by_id = found.open
        for first, last in ranges(found.seqs):
            position = first
            while position <= last:
                page = self._journal.read(position, min(1000, last - position + 1))
                if not page:
                    break
                position = page[-1].seq + 1
                for record in page:
                    if record.type == recorded.TRACE:
                        entry, origin, size = recovery.load(self._journal, record)
                        session = by_id.get(record.session) if record.session is not None else None
                        self.table.note(
                            entry, origin, session, seq=record.seq, size_bytes=size, now_ns=now_ns
                        )
                    elif record.session in by_id:
                        by_id[record.session].seqs.append(record.seq)
                progress()

    def _reopen(self, session: Session, *, since: str) -> None:
        gap = RecordedGap(since, format_ms(self._clock.now_ns()), RESTART)
        self._journal.append(
            recorded.GAP, {"from": gap.start, "to": gap.end, "cause": gap.cause}, session=session.id
        )
        session.gaps.append(gap)

    def resume_calls(self, closed: ClosedSession, carry: Carry | None) -> None:
        """Let late responses to the open calls of a sealed session find the following one."""
        for call, _, _ in carry.calls if carry is not None else ():
            self.table.resume_call(call, closed.key)

    # Entries -------------------------------------------------------------------------------------------------

    def hello(self, origin: Origin, *, pid: int) -> Source:
        """Count a connection of a source in."""
        source = self.sources.of(origin)
        self.sources.connected(source, pid=pid, now_ns=self._clock.boottime_ns())
        self.arrived(origin)
        return source

    def arrived(self, origin: Origin) -> None:
        """Note that a source from before a restart is back: what it still has comes now."""
        for session in self.table:
            session.awaited.discard(origin)

    def goodbye(self, source: Source) -> None:
        """Count a connection of a source out."""
        self.sources.disconnected(source, now_ns=self._clock.boottime_ns())

    def append(self, source: Source, raws: Sequence[Any]) -> asyncio.Future[Receipt] | None:
        """Take a batch of entries and return the future of its receipt, None if nothing in it is new.

        Raises `RpcError` with reason "record_gap" or "record_unavailable"; what was taken before the journal failed
        is kept and acknowledged when it comes again.
        """
        arrivals = source.take(list(raws))
        future: asyncio.Future[Receipt] | None = None
        try:
            for index, arrival in enumerate(arrivals):
                future = self._take(source, arrival, is_last=index == len(arrivals) - 1)
        except StorageError as error:
            raise unavailable() from error
        return future

    def _take(self, source: Source, arrival: Arrival, *, is_last: bool) -> asyncio.Future[Receipt] | None:
        now_ns = self._clock.boottime_ns()
        origin = source.origin
        session: Session | None = None
        if arrival.entry is None:
            type_, stored = recorded.TRACE_INVALID, self._invalid(arrival, origin)
        else:
            entry, replaced = self._filter.apply(arrival.entry)
            uid = entry.uid if isinstance(entry, Decision | Invocation) else None
            caller = self._directory.caller_id(uid) if uid is not None else None
            session = self.table.take(entry, origin, caller=caller)
            if (
                isinstance(entry, Invocation)
                and entry.arguments is not None
                and session is not None
                and self.table.is_refused(entry, session)
            ):
                entry = replace(entry, arguments=None)
            type_, stored = recorded.TRACE, recorded.store(entry, origin, replaced=replaced)
        seq, future = self._write(type_, stored, session, is_last=is_last)
        source.took(arrival, seq=seq, now_ns=now_ns)
        if arrival.entry is not None:
            self.table.note(
                arrival.entry, origin, session, seq=seq, size_bytes=stored.size_bytes, now_ns=now_ns
            )
            if session is not None and self.table.full(session):
                self._end(session, cause="size")
        return future

    def _write(
        self, type_: str, stored: Stored, session: Session | None, *, is_last: bool
    ) -> tuple[int, asyncio.Future[Receipt] | None]:
        id_ = session.id if session is not None else None
        if not is_last:
            return self._journal.append(
                type_, stored.data, session=id_, bodies=stored.bodies, lazy=True
            ), None
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def done(outcome: Receipt | BaseException) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(_settle, future, outcome)

        seq = self._journal.append(
            type_, stored.data, session=id_, bodies=stored.bodies, done=done, lazy=True
        )
        return seq, future

    def _invalid(self, arrival: Arrival, origin: Origin) -> Stored:
        filtered, _ = self._filter.value(arrival.raw)
        return recorded.store_invalid(
            arrival.raw, origin, n=arrival.n, member=arrival.bad_member or "(entry)", filtered=filtered
        )

    def _open_session(self, key: SessionKey, caller: str | None) -> Session:
        idle = self.table.longest_idle()
        if idle is not None:
            self._end(idle, cause="limit")
        now_ns = self._clock.now_ns()
        session = Session(
            id=uuid7(clock=self._clock),
            key=key,
            caller=caller,
            opened_us=now_ns // 1000,
            opened_ns=self._clock.boottime_ns(),
            boot=boot_id(),
            previous=self._last_closed.get(key),
        )
        session.last_ns = session.opened_ns
        data: dict[str, Any] = {
            "uid": key.uid,
            "caller": caller,
            "label": key.label,
            "wall_us": session.opened_us,
            "mono_ns": session.opened_ns,
            "open_sessions": len(self.table) + 1,
        }
        if session.previous is not None:
            data["previous"] = session.previous
        session.open_seq = self._journal.append(SESSION_OPEN, data, session=session.id, lazy=True)
        return session

    # Ends ----------------------------------------------------------------------------------------------------

    def tick(self) -> list[ClosedSession]:
        """Look after time: lost guards, sessions that end. Returns the sessions that were closed since the last call.

        A session whose end cannot be written stays open until it can.
        """
        now_ns = self._clock.boottime_ns()
        self._drop_lost(now_ns)
        self.table.look(now_ns)

        def passed(moment_ns: int) -> bool:
            return self.sources.authority_has_passed(
                moment_ns,
                now_ns=now_ns,
                grace_ns=self.settings.close_grace_ms * _MS,
                patience_ns=self.settings.authority_wait_ms * _MS,
            )

        for session in self.table.due(now_ns, passed=passed):
            if session.awaited and now_ns - self._started_ns < self.settings.source_lost_ms * _MS:
                continue  # what was sent while we were away may still come
            try:
                self._end(session, cause=session.cause or "requested")
            except StorageError:
                break
        self._note_state()
        finished, self._finished = self._finished, []
        return finished

    def _note_state(self) -> None:
        """Write down how far the sources are and where the oldest unfinished thing begins, once in a while."""
        size = self._journal.size
        if size - self._state_seq < self.settings.state_records or not self._journal.available:
            return
        begins = [session.open_seq for session in self.table]
        begins += [one.open_seq for one in self.closed.values() if not one.is_finished]
        connection = self.table.first_connection_seq()
        begins += [] if connection is None else [connection]
        sources = [
            [*source.origin, source.through, source.last_seq, source.is_after_gap, source.last_mono_ns]
            for source in self.sources
            if source.through
        ]
        data = {"from": min(begins, default=size), "sources": sources}
        try:
            self._state_seq = self._journal.append(recorded.STATE, data, lazy=True)
        except (StorageError, UsageError):  # a note of too many sources: the next start reads further back
            return

    def end_now(self) -> list[ClosedSession]:
        """Close the sessions that are closing already, without waiting any longer: the recorder stops."""
        for session in self.table:
            if session.is_closing and session.cause != "recovered":
                try:
                    self._end(session, cause=session.cause or "requested")
                except StorageError:
                    break
        finished, self._finished = self._finished, []
        return finished

    def _drop_lost(self, now_ns: int) -> None:
        limit = self.settings.source_lost_ms * _MS
        for key in self.table.open_connections():
            source = self.sources.get(key.origin)
            if source is None or source.is_live:
                continue
            if source.lost_ns is None or now_ns - source.lost_ns >= limit or source.is_gone():
                self.table.drop_connection(key)

    def _end(self, session: Session, *, cause: str) -> None:
        """Write `session.close` and hand the session to sealing. Raises `StorageError`; the session stays then."""
        gaps = tuple(self._settled_gaps(session))
        vcon = (
            uuid8(self.settings.domain, clock=self._clock)
            if self.settings.domain
            else uuid7(clock=self._clock)
        )
        closed = ClosedSession(
            id=session.id,
            key=session.key,
            caller=session.caller,
            opened_us=session.opened_us,
            opened_ns=session.opened_ns,
            boot=session.boot,
            open_seq=session.open_seq,
            previous=session.previous,
            cause=cause,
            closed=format_ms(self._clock.now_ns()),
            vcon=vcon,
            entries=len(session.seqs),
            ranges=ranges(session.seqs),
            gaps=gaps,
        )
        data: dict[str, Any] = {
            "cause": cause,
            "entries": closed.entries,
            "records": [list(pair) for pair in closed.ranges],
            "vcon": vcon,
        }
        if gaps:
            data["gaps"] = [_gap_json(gap) for gap in gaps]
        self._journal.append(SESSION_CLOSE, data, session=session.id)
        self.table.remove(session)
        self._remember_closed(closed)
        self._finished.append(closed)

    def _settled_gaps(self, session: Session) -> list[RecordedGap]:
        """Return the gaps, filled where every source of before came back and missed nothing."""
        settled = []
        for gap in session.gaps:
            if not gap.is_filled and not session.awaited:
                filled = replace(gap, is_filled=True)
                self._journal.append(recorded.GAP, _gap_json(filled), session=session.id)
                settled.append(filled)
            else:
                settled.append(gap)
        return settled

    def _remember_closed(self, closed: ClosedSession) -> None:
        self.closed[closed.id] = closed
        self._last_closed[closed.key] = closed.id
        settled = (
            [one for one in self.closed.values() if one.is_settled and one.is_erased]
            if len(self.closed) > KEPT_SUMMARIES
            else []
        )
        for one in settled[: len(self.closed) - KEPT_SUMMARIES]:
            del self.closed[one.id]
            if self._last_closed.get(one.key) == one.id:
                del self._last_closed[one.key]

    def forgettable(self, before_ms: int) -> list[ClosedSession]:
        """Return settled sessions that were closed before a moment (ms since 1970) and still remember something."""
        return [
            one
            for one in self.closed.values()
            if one.is_settled and one.has_carry and ms_of(one.closed) < before_ms
        ]

    def ask_to_close(self, session: Session) -> None:
        """Let a session end on an operator's request."""
        self.table.begin_closing(session, cause="requested", now_ns=self._clock.boottime_ns())


def unavailable() -> RpcError:
    """Return the error for a journal that cannot be written now."""
    return RpcError(
        RECORD_UNAVAILABLE, "The record journal cannot be written", {"reason": "record_unavailable"}
    )


def _gap_json(gap: RecordedGap) -> dict[str, Any]:
    data: dict[str, Any] = {"from": gap.start, "to": gap.end, "cause": gap.cause}
    if gap.is_filled:
        data["filled"] = True
    return data


def _settle(future: asyncio.Future[Receipt], outcome: Receipt | BaseException) -> None:
    if future.done():
        return
    if isinstance(outcome, Receipt):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
