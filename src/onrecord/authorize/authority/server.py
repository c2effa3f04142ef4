"""The authority daemon: opens its journal and sockets, loads policy, answers.

One thread runs the event loop and everything that decides; the journal's writer is the only other one that matters.

Source: running.md 1, 2, 13; call-proof.md 2, 4.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from onrecord import __version__
from onrecord.authorize.authority.audit import Audit
from onrecord.authorize.authority.callers import Door, DoorKind, Visitor
from onrecord.authorize.authority.control import ControlDesk
from onrecord.authorize.authority.hello import hello
from onrecord.authorize.authority.issue import Issuer
from onrecord.authorize.authority.params import RefusedRequest
from onrecord.authorize.authority.policies import ROLLBACK_FILE, PolicyKeeper
from onrecord.authorize.authority.proofs import ProofStore
from onrecord.authorize.authority.reasons import Reason, RecordType
from onrecord.authorize.authority.recorder_feed import RecorderFeed
from onrecord.authorize.authority.refusals import Refusals, audit_unavailable, refusal_line
from onrecord.authorize.authority.settings import refuse_unbuilt
from onrecord.authorize.authority.starts import next_start_id
from onrecord.authorize.authority.state import AuthorityState
from onrecord.authorize.authority.verify import ToolsReporter, Verifier
from onrecord.authorize.evidence import enabled_profiles
from onrecord.base.dates import SYSTEM_CLOCK
from onrecord.base.errors import KeyAccessError, OnrecordError, StorageError, Where
from onrecord.base.keys import require_distinct, signer_from_uri
from onrecord.base.rpc_server import RpcServer, ServerLimits
from onrecord.base.sockets import check_private_path
from onrecord.base.wire import error_line, result_line
from onrecord.record.ledger.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from onrecord.authorize.authority.state import PolicyInForce
    from onrecord.base.configuration import Configuration
    from onrecord.base.dates import Clock
    from onrecord.base.keys import Signer
    from onrecord.base.rpc_server import Answer, RpcConnection
    from onrecord.base.wire import Request

_log = logging.getLogger("onrecord.authority")

CURSOR_FILE: Final = "recorder.cursor"
START_FILE: Final = "start-id"
"""Files in the authority's state directory, beside the journal and the rollback state."""


class Authority:
    """One running authority. `start` opens everything, `stop` closes it.

    `own_uid` is the uid that this authority is for; in user mode every other peer is refused. `randomness` gives
    the start id and the proof values.
    """

    def __init__(
        self,
        config: Configuration,
        *,
        clock: Clock = SYSTEM_CLOCK,
        randomness: Callable[[int], bytes] = secrets.token_bytes,
        own_uid: int | None = None,
    ) -> None:
        refuse_unbuilt(config)
        self._config = config
        self._clock = clock
        self._randomness = randomness
        self._own_uid = os.geteuid() if own_uid is None else own_uid
        self._is_user_mode = config.mode == "user"
        self._servers: list[RpcServer] = []
        self._journal: Journal | None = None
        self.state = AuthorityState(
            is_user_mode=self._is_user_mode,
            own_uid=self._own_uid,
            clock=clock,
            profiles=enabled_profiles(config.authority.evidence),
        )
        self._refusals = Refusals(self.state)
        self._issuer = Issuer(self.state, self._refusals)
        self._verifier = Verifier(self.state, self._refusals)
        self._reporter = ToolsReporter(self.state, self._refusals)
        self._keeper = PolicyKeeper(
            bundle=config.policy.bundle,
            trust=config.trust.policy,
            rollback=config.authority_state / ROLLBACK_FILE,
            is_user_mode=self._is_user_mode,
            own_uid=self._own_uid,
        )
        self._desk: ControlDesk | None = None

    async def start(self) -> None:
        """Check paths, open the journal, load policy, then listen.

        Without a usable policy the authority runs and answers `policy_unavailable`. Everything else that is wrong
        raises an `OnrecordError`, and nothing is left open.
        """
        try:
            await self._start()
        except BaseException:
            await self._close()
            raise

    async def _start(self) -> None:
        config, state = self._config, self.state
        self._check_directories()
        journal_signer, key_note = self._keys()
        state_directory = config.authority_state
        journal = self._journal = Journal.open(
            state_directory,
            signer=journal_signer,
            name=f"{socket.gethostname()}/authority",
            marks=config.marks("authority"),
            durability=config.authority.durability,
            clock=self._clock,
        )
        start_id = next_start_id(state_directory / START_FILE, randomness=self._randomness)
        is_durable = config.authority.durability == "durable"
        state.audit = Audit(
            journal,
            loop=asyncio.get_running_loop(),
            is_durable=is_durable,
            isolation=state.isolation,
            unavailable=self._audit_unavailable,
        )
        state.proofs = ProofStore(state.profiles, start_id=start_id, is_revoked=state.is_revoked)
        state.feed = RecorderFeed(
            journal,
            socket=config.record_socket(),
            expected_uid=self._own_uid if self._is_user_mode else config.recorder_uid,
            cursor_file=state_directory / CURSOR_FILE,
            clock=self._clock,
        )
        state.audit.on_commit = state.feed.committed
        self._desk = ControlDesk(
            state,
            self._refusals,
            keeper=self._keeper,
            server_ids=tuple(config.servers),
            put_in_force=self._put_in_force,
        )
        await state.audit.commit(
            RecordType.START,
            {
                "version": __version__,
                "mode": config.mode,
                "startId": start_id.hex(),
                "evidence": [profile.type for profile in state.profiles],
                "durability": config.authority.durability,
                "pid": os.getpid(),
                **key_note,
            },
        )
        if not is_durable:
            _log.warning(
                "durability is relaxed: decisions survive a crash of this process, not of the machine"
            )
        if self._is_user_mode:
            _log.warning("user mode: all parts share one uid, so isolation is degraded")
        await self._load_policy()
        for server in self._doors():
            self._servers.append(server)
            await server.start()
        state.feed.start()

    async def stop(self) -> None:
        """Close the sockets, write `stop`, give the recorder what is left, close the journal."""
        await self._close(farewell=True)

    async def _close(self, *, farewell: bool = False) -> None:
        servers, self._servers = self._servers, []
        for server in servers:
            await server.stop()
        if hasattr(self.state, "feed"):
            await self.state.feed.stop()
        journal, self._journal = self._journal, None
        if journal is None:
            return
        try:
            if farewell and journal.available:
                await self.state.audit.commit(RecordType.STOP, {"pid": os.getpid()})
        except OnrecordError as error:
            _log.error("the stop could not be journaled [%s]", error.code)
        finally:
            await asyncio.to_thread(journal.close)

    # Opening -------------------------------------------------------------------------------------------------

    def _check_directories(self) -> None:
        """Make sure that nobody else can change what the authority trusts (call-proof.md 4.1)."""
        config, mine = self._config, {self._own_uid}
        if self._is_user_mode:
            for directory in (config.paths.state, config.marks("authority").parent, config.paths.runtime):
                _make_private(directory)
        for directory in (config.authority_state, config.marks("authority")):
            _make_private(directory)
            check_private_path(directory, owners=mine, mode_forbidden=0o077)
        sockets = {config.agent_socket().parent, config.control_socket().parent}
        for directory in sorted(sockets):
            check_private_path(directory, owners=mine, mode_forbidden=0o077 if self._is_user_mode else 0o022)

    def _keys(self) -> tuple[Signer, dict[str, str]]:
        """Open the journal key, and the proof key if it is there: no profile of this version signs with it."""
        journal = signer_from_uri(self._config.keys.authority_journal, purpose="authority_journal")
        try:
            proof = signer_from_uri(self._config.keys.proof, purpose="proof")
        except KeyAccessError as error:
            return journal, {"proofKey": error.code}
        require_distinct({"authority_journal": journal, "proof": proof})
        return journal, {}

    async def _load_policy(self) -> None:
        loaded = await asyncio.to_thread(self._keeper.load)
        if loaded.in_force is None:
            await self._refuse_policy(loaded.fault, loaded.message, loaded.hint)
            return
        bundle = loaded.in_force.bundle
        await self.state.audit.commit(
            RecordType.POLICY_LOADED,
            {"policyVersion": bundle.version, "sha256": bundle.sha256, "previous": None, "reason": "start"},
        )
        try:
            await asyncio.to_thread(self._keeper.accept, bundle)
        except OnrecordError as error:
            await self._refuse_policy(error.code, str(error), error.hint)
            return
        self._put_in_force(loaded.in_force)

    async def _refuse_policy(self, code: str | None, message: str | None, hint: str | None) -> None:
        _log.error("no policy is in force: %s [%s]%s", message, code, f"; next: {hint}" if hint else "")
        self.state.count("policy.refused")
        await self.state.audit.commit(RecordType.POLICY_REFUSED, {"detail": code, "reason": "start"})

    def _put_in_force(self, in_force: PolicyInForce) -> None:
        """From here on this policy decides: cached decisions go, proofs of another version are revoked."""
        self.state.in_force = in_force
        self.state.decisions.clear()
        for server in self._servers:
            server.limits = self._limits()

    def _limits(self) -> ServerLimits:
        if self.state.in_force is None:
            return ServerLimits()
        limits = self.state.in_force.bundle.limits
        return ServerLimits(
            unanswered=limits.unanswered_per_connection,
            idle_seconds=limits.idle_seconds,
            connections=limits.connections,
            connections_per_uid=limits.connections_per_uid,
        )

    def _doors(self) -> list[RpcServer]:
        config = self._config
        places: list[tuple[Path, Door, int | None]] = []
        if self._is_user_mode:
            mode, call_gid, control_gid = 0o600, None, None
            places.append((config.agent_socket(), Door(kind=DoorKind.AGENT), None))
            places += [
                (config.server_socket(server), Door(kind=DoorKind.SERVER, server=server), None)
                for server in config.servers
            ]
        else:
            mode, call_gid, control_gid = 0o660, config.call_gid, config.control_gid
            places.append((config.agent_socket(), Door(kind=DoorKind.CALL), call_gid))
        places.append((config.control_socket(), Door(kind=DoorKind.CONTROL), control_gid))
        return [
            RpcServer(
                Reception(self, door),
                path=path,
                mode=mode,
                gid=gid,
                limits=self._limits(),
                report=report_fault,
            )
            for path, door, gid in places
        ]

    # Answering -----------------------------------------------------------------------------------------------

    def welcome(self, connection: RpcConnection, door: Door) -> bool:
        """Take a connection, unless a limit is reached or the peer can have no role at all."""
        state = self.state
        limits = self._limits()
        uid = connection.peer.uid
        visitor = Visitor.of(connection, door=door)
        if self._is_user_mode and uid != self._own_uid:
            state.count("connection.other_uid")
            self._note(RecordType.CALLER_UNKNOWN, visitor, "other_uid")
            return False
        if not state.connections.admit(uid, per_uid=limits.connections_per_uid, total=limits.connections):
            state.count("connection.limit")
            return False
        connection.state = visitor
        return True

    def farewell(self, connection: RpcConnection) -> None:
        """Forget a connection that `welcome` took."""
        if connection.state is not None:
            self.state.connections.release(connection.peer.uid)
            connection.state = None

    def answer(self, connection: RpcConnection, request: Request) -> Answer:
        """Answer one request."""
        visitor: Visitor | None = connection.state
        if visitor is None:
            return None
        if connection.gone():
            self.state.count("caller.gone")
            self._note(RecordType.CALLER_GONE, visitor, None)
            connection.close()
            return None
        method = request.method
        is_control = visitor.door.kind is DoorKind.CONTROL
        if method == "callProof/hello":
            return self._hello(visitor, request)
        if is_control and method.startswith("control/") and self._desk is not None:
            return self._desk.handle(connection, request)
        if method == "callProof/issue":
            return self._issuer.handle(connection, request)
        if method == "callProof/verify":
            return self._verifier.handle(connection, request)
        if method == "callProof/tools":
            return self._reporter.handle(connection, request)
        if method.startswith(("control/", "approval/", "record/")):
            identity = self.state.identity(visitor)
            if identity is not None and not identity.is_known:
                return self._refusals.unknown_caller(visitor, request)
            return self._refusals.not_authorized(visitor, request)
        self.state.count(Reason.UNKNOWN_METHOD)
        return refusal_line(request.id, Reason.UNKNOWN_METHOD)

    def broken(self, connection: RpcConnection, line: bytes) -> Answer:
        """Count, and for an issue request journal, a line that the reader refused with this answer."""
        visitor: Visitor | None = connection.state
        answer = orjson.loads(line)
        data = answer["error"].get("data", {})
        if visitor is None or data.get("reason") != Reason.INVALID_ARGUMENTS:
            self.state.count(data.get("reason", Reason.INVALID_REQUEST))
            return line
        self.state.identity(visitor)
        return self._refusals.broken_issue(visitor, answer["id"], line, data.get("detail"))

    def _hello(self, visitor: Visitor, request: Request) -> Answer:
        identity = self.state.identity(visitor)
        if identity is not None and not identity.is_known:
            return self._refusals.unknown_caller(visitor, request)
        try:
            return result_line(request.id, hello(self.state, request.params))
        except RefusedRequest as refusal:
            self.state.count(refusal.refusal)
            return error_line(request.id, refusal.rpc_code, str(refusal), refusal.data)

    def _note(self, type_: RecordType, visitor: Visitor, detail: str | None) -> None:
        data: dict[str, Any] = {"platform": visitor.platform, "door": visitor.door.kind.value}
        if detail is not None:
            data["detail"] = detail
        try:
            self.state.audit.write(type_, data)
        except OnrecordError:
            self.state.count(Reason.AUDIT_UNAVAILABLE)

    def _audit_unavailable(self, request_id: Any) -> bytes:
        self.state.count(Reason.AUDIT_UNAVAILABLE)
        return audit_unavailable(request_id)


class Reception:
    """The handler of one socket: every connection of it came in by the same door."""

    def __init__(self, authority: Authority, door: Door) -> None:
        self.on_connect = partial(_welcome, authority, door)
        self.on_request = authority.answer
        self.on_disconnect = authority.farewell
        self.on_broken = authority.broken


def _welcome(authority: Authority, door: Door, connection: RpcConnection) -> bool:
    return authority.welcome(connection, door)


def _make_private(directory: Path) -> None:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make the directory ({error.strerror})",
            code="directory-unusable",
            where=Where(str(directory)),
        ) from error


def report_fault(error: BaseException) -> None:
    """Log an unexpected error by its type alone: its text may hold content."""
    _log.error("internal error: %s", type(error).__name__)
