"""The recorder's service on record.sock: who may do what, and the answers.

    recorder = Recorder(settings, recording=recording, sealer=sealer, directory=directory, journal=journal)
    await recorder.start()

Source: running.md 2, 8, 12; call-proof.md 4.4.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import StorageError
from onrecord.base.namespaces import PROTOCOL_VERSION
from onrecord.base.rpc_server import Answer, RpcConnection, RpcServer, ServerLimits
from onrecord.base.wire import INVALID_PARAMS, INVALID_REQUEST, UNKNOWN_METHOD, Request, RpcError, result_line
from onrecord.record.ledger.journal import Journal
from onrecord.record.ledger.records import Receipt
from onrecord.record.recorder.directory import Directory
from onrecord.record.recorder.entries import AUTHORITY_KINDS, GUARD_KINDS
from onrecord.record.recorder.listing import closed_summary, open_summary
from onrecord.record.recorder.reading import read_line
from onrecord.record.recorder.recorded import Origin
from onrecord.record.recorder.recording import Recording, unavailable
from onrecord.record.recorder.recovery import nothing
from onrecord.record.recorder.sealing import Sealer
from onrecord.record.recorder.sealing_queue import SealingQueue, name_of
from onrecord.record.recorder.session import Session
from onrecord.record.recorder.settings import (
    APPEND_BATCH,
    CARRY_MS,
    CONNECTIONS,
    RECORD_LINE_BYTES,
    RecorderSettings,
)
from onrecord.record.recorder.signing import Signing
from onrecord.record.recorder.sources import Source
from onrecord.record.recorder.spools import find_orphans, ship

NOT_AUTHORIZED: Final = -33005
UNSUPPORTED_VERSION: Final = -33009

TICK_SECONDS: Final = 0.25
"""Pause between two looks at sessions that may have ended."""

CLOSE_ANSWER_SECONDS: Final = 20.0
"""record/close is answered at the latest then, also when the vCon is not signed yet."""

_SOURCE = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)
_SERVER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)

_log = logging.getLogger("onrecord.recorder")


@dataclass(slots=True, eq=False)
class _Peer:
    """What a connection may do. `servers` are the ids that it may speak for, None for any."""

    uid: int
    is_authority: bool
    servers: frozenset[str] | None
    is_operator: bool
    source: Source | None = None
    was_refused: bool = False


class Recorder:
    """The handler of record.sock, and the two tasks behind it: looking after time, and sealing."""

    def __init__(
        self,
        settings: RecorderSettings,
        *,
        recording: Recording,
        sealer: Sealer,
        signing: Signing,
        directory: Directory,
        journal: Journal,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._settings = settings
        self._recording = recording
        self._directory = directory
        self._journal = journal
        self._clock = clock
        self._spools: asyncio.Task[None] | None = None
        self._server: RpcServer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._sealing = SealingQueue(recording, sealer, signing=signing, journal=journal)
        self._retry_ns = 0
        self._is_stopping = False

    # Life ----------------------------------------------------------------------------------------------------

    async def start(self, *, progress: Callable[[], None] = nothing) -> None:
        """Take up the journal, listen, and begin to look after time; `progress` is called while it reads.

        Raises what `Recording.recover` and `RpcServer.start` raise.
        """
        for closed in self._recording.recover(progress=progress):
            self._sealing.put(closed)
        self._sealing.resume_calls()
        limits = ServerLimits(
            max_line_bytes=RECORD_LINE_BYTES,
            idle_seconds=0,
            connections=CONNECTIONS,
            connections_per_uid=CONNECTIONS,
        )
        self._server = RpcServer(
            self,
            path=self._settings.socket,
            mode=0o660 if self._settings.is_system_mode else 0o600,
            gid=self._settings.record_gid,
            limits=limits,
            report=_report,
            reader=read_line,
        )
        await self._server.start()
        self._retry_ns = self._clock.boottime_ns()
        self._tasks = [asyncio.create_task(self._keep_time()), asyncio.create_task(self._sealing.run())]

    async def stop(self) -> None:
        """Stop listening, seal what is closed, and leave the other sessions to the next start."""
        self._is_stopping = True
        if self._server is not None:
            await self._server.stop()
        for task in self._tasks[:1]:
            task.cancel()
        for closed in self._recording.end_now():
            self._sealing.put(closed)
        if self._tasks:
            await self._sealing.join()
        running = [*self._tasks, *([self._spools] if self._spools is not None else [])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                self.look()
            except Exception as error:  # the recorder lives on; what it could not do it tries again
                _log.error("looking after sessions failed: %s", name_of(error))

    def look(self) -> None:
        """Do what is due: close sessions, try again what could not be sealed, read orphan spools."""
        for closed in self._recording.tick():
            self._sealing.put(closed)
        now_ns = self._clock.boottime_ns()
        if now_ns < self._retry_ns:
            return
        self._retry_ns = now_ns + self._settings.retry_ms * 1_000_000
        self._sealing.try_again()
        self._sealing.forget_old(before_ms=self._clock.now_ns() // 1_000_000 - CARRY_MS)
        if self._settings.spools is not None and (self._spools is None or self._spools.done()):
            self._spools = asyncio.get_running_loop().create_task(self._read_spools(self._settings.spools))

    async def _read_spools(self, directory: Path) -> None:
        """Take over what killed guards have left."""
        own_uid = os.geteuid()
        for orphan in find_orphans(directory, owner=own_uid):
            try:
                await ship(orphan, self._recording, uid=own_uid, clock=self._clock)
            finally:
                orphan.close()

    # Connections ---------------------------------------------------------------------------------------------

    def on_connect(self, connection: RpcConnection) -> bool:
        """Find out what a peer may do; one that may do nothing is closed before a byte is read."""
        uid = connection.peer.uid
        if self._settings.own_uid is not None:
            if uid != self._settings.own_uid:
                return False
            connection.state = _Peer(uid, is_authority=True, servers=None, is_operator=True)
            return True
        if uid == 0:
            return False
        peer = _Peer(
            uid,
            is_authority=uid == self._directory.authority_uid,
            servers=self._directory.server_ids_of_uid(uid),
            is_operator=bool(self._directory.control_roles(uid)),
        )
        connection.state = peer
        return peer.is_authority or bool(peer.servers) or peer.is_operator

    def on_disconnect(self, connection: RpcConnection) -> None:
        """Count the connection's source out."""
        peer = connection.state
        if isinstance(peer, _Peer) and peer.source is not None:
            self._recording.goodbye(peer.source)
            peer.source = None

    def on_broken(self, connection: RpcConnection, answer: bytes) -> Answer:
        """Answer a line that could not be read."""
        return answer

    def on_request(self, connection: RpcConnection, request: Request) -> Answer:
        """Answer one request."""
        peer = connection.state
        if request.method == "record/append":
            return self._append(peer, request)
        if request.method == "record/hello":
            return self._hello(connection, peer, request)
        if request.method in ("record/sessions", "record/close", "record/status"):
            if not peer.is_operator:
                raise _not_authorized()
            if request.method == "record/sessions":
                return result_line(request.id, {"sessions": self._sessions()})
            if request.method == "record/status":
                return result_line(request.id, self.status())
            return self._close(request)
        raise RpcError(UNKNOWN_METHOD, "Unknown method", {"reason": "unknown_method"})

    # Methods -------------------------------------------------------------------------------------------------

    def _hello(self, connection: RpcConnection, peer: _Peer, request: Request) -> bytes:
        versions = request.params.get("versions")
        if not isinstance(versions, list) or PROTOCOL_VERSION not in versions:
            raise RpcError(
                UNSUPPORTED_VERSION,
                "No common version",
                {"reason": "unsupported_version", "supported": [PROTOCOL_VERSION]},
            )
        name = request.params.get("source")
        if not isinstance(name, str) or not _SOURCE.fullmatch(name):
            raise _invalid("source")
        server = self._server_of(peer, request.params.get("server"))
        origin = Origin(peer.uid, server, name)
        if peer.source is None or peer.source.origin != origin:
            if peer.source is not None:
                self._recording.goodbye(peer.source)
            peer.source = self._recording.hello(origin, pid=connection.peer.pid)
        else:
            self._recording.arrived(origin)
        through = peer.source.safe_through(self._journal.size)
        result = {"version": PROTOCOL_VERSION, "through": through, "status": self._health()}
        return result_line(request.id, result)

    def _server_of(self, peer: _Peer, server: Any) -> str | None:
        """Return the server id that a peer speaks for, None for the authority."""
        if server is None:
            if peer.is_authority:
                return None
            if peer.servers is not None and len(peer.servers) == 1:
                return next(iter(peer.servers))
            raise _not_authorized()
        if not isinstance(server, str) or not _SERVER.fullmatch(server):
            raise _invalid("server")
        if peer.servers is not None and server not in peer.servers:
            raise _not_authorized()
        return server

    def _append(self, peer: _Peer, request: Request) -> Answer:
        source = peer.source
        if source is None:
            raise RpcError(
                INVALID_REQUEST, "record/hello comes first", {"reason": "invalid_request", "detail": "hello"}
            )
        entries = request.params.get("entries")
        if not isinstance(entries, list) or not 1 <= len(entries) <= APPEND_BATCH:
            raise _invalid("entries")
        self._require_role(peer, source, entries)
        future = self._recording.append(source, entries)
        if future is None:
            return self._repeat(request, source)
        return self._acknowledge(request, source, future)

    def _require_role(self, peer: _Peer, source: Source, entries: list[Any]) -> None:
        own = source.origin.server
        allowed, others = (AUTHORITY_KINDS, GUARD_KINDS) if own is None else (GUARD_KINDS, AUTHORITY_KINDS)
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            kind = entry.get("kind")
            is_foreign = isinstance(kind, str) and kind in others and kind not in allowed
            if kind == "invocation" and own is not None:
                is_foreign = is_foreign or entry.get("server") != own
            if is_foreign:
                self._note_refusal(peer, source, kind if isinstance(kind, str) else None)
                raise _not_authorized()

    def _note_refusal(self, peer: _Peer, source: Source, kind: str | None) -> None:
        """Journal a peer that appends what is not its to say; once for each connection."""
        if peer.was_refused:
            return
        peer.was_refused = True
        data = {**source.origin.to_json(), "kind": kind}
        with contextlib.suppress(StorageError):
            self._journal.append("role.refused", data)

    async def _acknowledge(self, request: Request, source: Source, future: asyncio.Future[Receipt]) -> bytes:
        try:
            receipt = await future
        except StorageError:
            raise unavailable() from None
        return self._receipt_line(request, source, receipt)

    async def _repeat(self, request: Request, source: Source) -> bytes:
        """Acknowledge entries that are here already, once they are on disk."""
        if source.last_seq >= self._journal.size:
            if not self._journal.available:
                raise unavailable()
            try:
                await asyncio.to_thread(self._journal.flush)
            except StorageError:
                raise unavailable() from None
        size = self._journal.size
        return self._receipt_line(request, source, Receipt(size - 1, size, self._journal.checkpoint))

    def _receipt_line(self, request: Request, source: Source, receipt: Receipt) -> bytes:
        result = {
            "through": source.safe_through(self._journal.size),
            "seq": receipt.seq,
            "size": receipt.size,
            "note": receipt.note,
        }
        return result_line(request.id, result)

    async def _close(self, request: Request) -> bytes:
        sessions = self._named_sessions(request.params)
        waiting = []
        for session in sessions:
            self._recording.ask_to_close(session)
            waiting.append(self._sealing.event(session.id))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_ANSWER_SECONDS):
                for event in waiting:
                    await event.wait()
        ids = {session.id for session in sessions}
        listed = [one for one in self._sessions() if one["id"] in ids]
        return result_line(request.id, {"sessions": listed})

    def _named_sessions(self, params: dict[str, Any]) -> list[Session]:
        """Return the open sessions that a request names by id or label, or all."""
        if params.get("all") is True:
            return list(self._recording.table)
        name = params.get("session")
        if not isinstance(name, str):
            raise _invalid("session")
        found = [one for one in self._recording.table if name in (one.id, one.key.label)]
        if not found:
            raise RpcError(
                INVALID_PARAMS,
                "No open record session has this id or label",
                {"reason": "unknown_session"},
            )
        return found

    def _sessions(self) -> list[dict[str, Any]]:
        listed = [open_summary(session) for session in self._recording.table]
        listed += [closed_summary(closed) for closed in self._recording.closed.values()]
        return listed

    # Health --------------------------------------------------------------------------------------------------

    def _health(self) -> str:
        is_well = (
            self._settings.is_system_mode
            and self._journal.available
            and self._sealing.signing_state == "present"
            and not self._sealing.has_unsettled
        )
        return "ok" if is_well else "degraded"

    def status(self) -> dict[str, Any]:
        """Return what record/status answers."""
        return {
            "status": self._health(),
            "isolation": "system" if self._settings.is_system_mode else "degraded",
            "signing": self._sealing.signing_state,
            "journal": {"available": self._journal.available, "size": self._journal.size},
            "sessions": {
                "open": len(self._recording.table),
                "closed": len(self._recording.closed),
                "unsealed": self._sealing.waiting,
            },
            "sources": sum(source.is_live for source in self._recording.sources),
        }


def _not_authorized() -> RpcError:
    return RpcError(NOT_AUTHORIZED, "Not authorized", {"reason": "not_authorized"})


def _invalid(detail: str) -> RpcError:
    return RpcError(
        INVALID_PARAMS, f"{detail} is missing or wrong", {"reason": "invalid_params", "detail": detail}
    )


def _report(error: BaseException) -> None:
    _log.error("a request failed: %s", name_of(error))
