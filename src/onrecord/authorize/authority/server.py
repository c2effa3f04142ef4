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
from typing import TYPE_CHECKING, Any, Final

import orjson

from onrecord import __version__
from onrecord.authorize.authority.approval_desk import ApprovalDesk
from onrecord.authorize.authority.approvals import ApprovalBook
from onrecord.authorize.authority.audit import Audit
from onrecord.authorize.authority.callers import DoorKind, Visitor
from onrecord.authorize.authority.control import ControlDesk
from onrecord.authorize.authority.doors import Reception, check_directories, door_places
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
from onrecord.authorize.evidence import ProfileSupplies, enabled_profiles
from onrecord.authorize.role_uids import shared_uids
from onrecord.base.dates import SYSTEM_CLOCK
from onrecord.base.errors import KeyAccessError, OnrecordError
from onrecord.base.keys import require_distinct, signer_from_uri
from onrecord.base.rpc_server import RpcServer, ServerLimits
from onrecord.base.wire import error_line, result_line
from onrecord.record.ledger.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from onrecord.authorize.authority.callers import Door
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
            shares_uids=bool(shared_uids(config, known_only=True)),
            own_uid=self._own_uid,
            clock=clock,
            profiles=(),
        )
        self.state.approvals = ApprovalBook(randomness=randomness)
        self._refusals = Refusals(self.state)
        self._issuer = Issuer(self.state, self._refusals)
        self._verifier = Verifier(self.state, self._refusals)
        self._reporter = ToolsReporter(
            self.state, self._refusals, tools_changed=self._issuer.gate.ends.tools_changed
        )
        self._keeper = PolicyKeeper(
            bundle=config.policy.bundle,
            trust=config.trust.policy,
            rollback=config.authority_state / ROLLBACK_FILE,
            is_user_mode=self._is_user_mode,
            own_uid=self._own_uid,
        )
        self._approvals = ApprovalDesk(self.state, self._refusals, self._issuer.gate.ends)
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
        check_directories(config, own_uid=self._own_uid)
        journal_signer, evidence_note = self._keys()
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
                **evidence_note,
            },
        )
        if not is_durable:
            _log.warning(
                "durability is relaxed: decisions survive a crash of this process, not of the machine"
            )
        if self._is_user_mode:
            _log.warning("user mode: all parts share one uid, so isolation is degraded")
        elif state.shares_uids:
            shared = "; ".join(shared_uids(config, known_only=True))
            _log.warning("roles share a uid, so isolation is degraded: %s", shared)
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
        self._issuer.gate.close()
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

    def _keys(self) -> tuple[Signer, dict[str, Any]]:
        """Open the journal key and the proof key and make the evidence profiles; return also what `start` says of it.

        A profile whose key cannot be used is disabled, by name in the start record; two purposes with one key never
        start. What a profile publishes stands in the start record too, for auditors.
        """
        journal = signer_from_uri(self._config.keys.authority_journal, purpose="authority_journal")
        note: dict[str, Any] = {}

        def proof_key() -> Signer:
            return signer_from_uri(self._config.keys.proof, purpose="proof")

        try:
            require_distinct({"authority_journal": journal, "proof": proof_key()})
        except KeyAccessError as error:
            if error.code == "key-shared":
                raise
            note["proofKey"] = error.code
        enabled = enabled_profiles(
            self._config.authority.evidence,
            supplies=ProfileSupplies(proof_key=proof_key, randomness=self._randomness),
        )
        self.state.profiles = enabled.profiles
        for type_, code in enabled.disabled.items():
            _log.error("the evidence type %s is disabled: its key cannot be used [%s]", type_, code)
            self.state.count(f"evidence.disabled.{type_}")
        if enabled.disabled:
            note["evidenceDisabled"] = dict(enabled.disabled)
        published = {profile.type: dict(profile.published()) for profile in enabled.profiles}
        if any(published.values()):
            note["evidenceKeys"] = {type_: keys for type_, keys in published.items() if keys}
        return journal, note

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
        """From here on this policy decides: cached decisions go, proofs and approvals of another version are void."""
        self.state.in_force = in_force
        self.state.decisions.clear()
        self._issuer.gate.ends.policy_changed(in_force.bundle)
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
        return [
            RpcServer(
                Reception(self, place.door),
                path=place.path,
                mode=place.mode,
                gid=place.gid,
                limits=self._limits(),
                report=report_fault,
            )
            for place in door_places(self._config)
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
            self._issuer.gate.forget(connection)
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
        door = visitor.door.kind
        if method == "callProof/hello":
            return self._hello(visitor, request)
        if door is DoorKind.CONTROL and method.startswith("control/") and self._desk is not None:
            return self._desk.handle(connection, request)
        if door is DoorKind.APPROVAL and method.startswith("approval/"):
            return self._approvals.handle(connection, request)
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


def report_fault(error: BaseException) -> None:
    """Log an unexpected error by its type alone: its text may hold content."""
    _log.error("internal error: %s", type(error).__name__)
