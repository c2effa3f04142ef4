"""The control socket: what operators may see and do.

Every control that changes something has an idempotency key and a reason and is journaled before it takes effect.
Controls that are specified and not built yet answer `not_supported`.

Source: describe.md 6.1; running.md 1.2, 13.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onrecord.authorize.authority.control_log import LogFilter, search
from onrecord.authorize.authority.params import SERVER_ID
from onrecord.authorize.authority.policies import Candidate
from onrecord.authorize.authority.reasons import (
    CONTROL_CODES,
    CONTROL_MESSAGES,
    ControlReason,
    Reason,
    RecordType,
)
from onrecord.authorize.authority.refusals import refusal_line
from onrecord.base.dates import format_ms
from onrecord.base.errors import OnrecordError
from onrecord.base.ids import uuid7
from onrecord.base.wire import INVALID_PARAMS, RpcError, error_line, result_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from onrecord.authorize.authority.callers import Visitor
    from onrecord.authorize.authority.policies import PolicyKeeper
    from onrecord.authorize.authority.refusals import Refusals
    from onrecord.authorize.authority.state import AuthorityState, PolicyInForce
    from onrecord.base.rpc_server import Answer, RpcConnection
    from onrecord.base.wire import Request

LATER: Final = frozenset(
    {
        "control/pause-resume",
        "control/emergency-halt",
        "control/scope-restriction",
        "control/parameter-override",
        "control/state-query",
        "control/reasoning-export",
        "control/operation",
        "control/takeover",
        "control/rollback",
    }
)
"""Controls of describe.md 6.1 that this version does not have."""

REMEMBERED_KEYS: Final = 1000
"""Idempotency keys remembered with their answers; a repeat after that many other controls acts anew."""

MAX_TEXT_CHARACTERS: Final = 1024
"""Longest reason and idempotency key: they are journaled."""

AUDITOR: Final = "auditor"
POLICY_ADMIN: Final = "policy-admin"

_HEX_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class ControlRefused(RpcError):
    """A control that is refused with a reason of describe.md 6.1."""

    def __init__(self, reason: ControlReason, *, detail: str | None = None) -> None:
        data = {"reason": str(reason)} | ({} if detail is None else {"detail": detail})
        super().__init__(CONTROL_CODES[reason], CONTROL_MESSAGES[reason], data)
        self.refusal = reason


def _invalid(member: str) -> RpcError:
    return RpcError(INVALID_PARAMS, "Invalid parameters", {"reason": "invalid_params", "detail": member})


class Change(NamedTuple):
    """What every control that changes something carries."""

    idempotency_key: str
    reason: str
    expected_version: int | None


def read_change(params: dict[str, Any]) -> Change:
    """Read idempotencyKey, reason and expectedVersion. Raises `RpcError` with invalid_params."""
    texts = []
    for member in ("idempotencyKey", "reason"):
        text = params.get(member)
        if type(text) is not str or not 0 < len(text) <= MAX_TEXT_CHARACTERS:
            raise _invalid(member)
        texts.append(text)
    expected = params.get("expectedVersion")
    if "expectedVersion" in params and type(expected) is not int:
        raise _invalid("expectedVersion")
    return Change(texts[0], texts[1], expected)


class ControlDesk:
    """Answers control/* for operators. `reload` is told the policy that is in force from now on."""

    def __init__(
        self,
        state: AuthorityState,
        refusals: Refusals,
        *,
        keeper: PolicyKeeper,
        server_ids: tuple[str, ...],
        put_in_force: Callable[[PolicyInForce], None],
    ) -> None:
        self._state = state
        self._refusals = refusals
        self._keeper = keeper
        self._server_ids = server_ids
        self._put_in_force = put_in_force
        self._reloading = asyncio.Lock()
        self._answers: dict[tuple[int, str], tuple[dict[str, Any], dict[str, Any]]] = {}
        self._methods: dict[
            str, tuple[str, Callable[[Visitor, dict[str, Any]], Awaitable[dict[str, Any]]]]
        ] = {
            "control/metrics": (AUDITOR, self._metrics),
            "control/tools": (AUDITOR, self._tools),
            "control/decision-logging": (AUDITOR, self._decision_logging),
            "control/policy-reload": (POLICY_ADMIN, self._policy_reload),
        }

    def handle(self, connection: RpcConnection, request: Request) -> Answer:
        """Answer one control request of a visitor whose process is alive."""
        state = self._state
        visitor: Visitor = connection.state
        identity = state.identity(visitor)
        known = self._methods.get(request.method)
        if known is None and request.method not in LATER:
            return refusal_line(request.id, Reason.UNKNOWN_METHOD)
        if identity is None:
            # No policy is in force, so nobody has a role yet. A reload is judged by the roles of the new bundle.
            if request.method != "control/policy-reload":
                return _control_line(request.id, ControlReason.UNAVAILABLE)
        elif not identity.is_known:
            return self._refusals.unknown_caller(visitor, request)
        elif known is None:
            return _control_line(request.id, ControlReason.NOT_SUPPORTED)
        elif known[0] not in identity.roles:
            line = _control_line(request.id, ControlReason.NOT_AUTHORIZED)
            return self._refusals.role_refused(visitor, request, line, reason="not_authorized")
        assert known is not None
        return self._run(request, known[1](visitor, request.params))

    async def _run(self, request: Request, work: Awaitable[dict[str, Any]]) -> bytes:
        return result_line(request.id, await work)

    async def _metrics(self, _visitor: Visitor, _params: dict[str, Any]) -> dict[str, Any]:
        state = self._state
        return {
            "status": state.status,
            "mode": "user" if state.is_user_mode else "system",
            "isolation": state.isolation or "not-checked",
            "policyVersion": None if state.in_force is None else state.in_force.bundle.version,
            "since": state.since,
            "durability": "durable" if state.audit.is_durable else "relaxed",
            "connections": state.connections.total,
            "pendingApprovals": state.approvals.pending_count,
            "recorder": {"connected": state.feed.is_connected, "backlog": state.feed.backlog},
            **state.metrics.to_json(),
        }

    async def _tools(self, _visitor: Visitor, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("server")
        if "server" in params and (type(asked) is not str or not SERVER_ID.fullmatch(asked)):
            raise _invalid("server")
        bundle = None if self._state.in_force is None else self._state.in_force.bundle
        known = set(self._server_ids) | set(self._state.tools.reported())
        if bundle is not None:
            known |= set(bundle.servers)
        if asked is not None and asked not in known:
            raise RpcError(INVALID_PARAMS, "Unknown server", {"reason": "unknown_server"})
        chosen = sorted(known) if asked is None else [asked]
        return {"servers": [self._tools_of(server) for server in chosen]}

    def _tools_of(self, server: str) -> dict[str, Any]:
        state = self._state
        hashes = state.tools.advertised(server)
        pins: dict[str, str] = {}
        policy = None if state.in_force is None else state.in_force.bundle.servers.get(server)
        if policy is not None:
            pins = {binding.tool: binding.pin for binding in policy.bindings}
        tools = hashes or {}
        bound = sum(1 for name, pin in tools.items() if pins.get(name) == pin)
        changed = sum(1 for name, pin in tools.items() if name in pins and pins[name] != pin)
        return {
            "server": server,
            "enforce": None if policy is None else policy.enforce,
            "reported": hashes is not None,
            "tools": [{"name": name, "inputSchemaSha256": pin} for name, pin in sorted(tools.items())],
            "bound": bound,
            "changed": changed,
            "unbound": len(tools) - bound - changed,
        }

    async def _decision_logging(self, _visitor: Visitor, params: dict[str, Any]) -> dict[str, Any]:
        wanted = LogFilter.read(params)
        journal = self._state.audit.journal
        page = await asyncio.to_thread(search, journal, wanted)
        latest = self._state.audit.latest
        head = None
        if latest is not None:
            lines = latest.note.split("\n")
            head = {
                "seq": latest.size - 1,
                "digest": lines[2] if len(lines) > 2 else None,
                "note": latest.note,
            }
        return {"entries": list(page.entries), "next": page.next_cursor, "head": head}

    async def _policy_reload(self, visitor: Visitor, params: dict[str, Any]) -> dict[str, Any]:
        change = read_change(params)
        version, digest = params.get("version"), params.get("digest")
        if type(version) is not int:
            raise _invalid("version")
        if type(digest) is not str or not _HEX_DIGEST.fullmatch(digest):
            raise _invalid("digest")
        asked = {
            "method": "control/policy-reload",
            "version": version,
            "digest": digest,
            "reason": change.reason,
        }
        async with self._reloading:
            return await self._once(
                visitor, change, asked, lambda: self._reload(visitor, change, version, digest)
            )

    async def _once(
        self,
        visitor: Visitor,
        change: Change,
        asked: dict[str, Any],
        act: Callable[[], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        """Act once per idempotency key of a uid; a repeat gets the first answer, another request a conflict."""
        key = (visitor.peer.uid, change.idempotency_key)
        before = self._answers.get(key)
        if before is not None:
            if before[0] != asked:
                raise ControlRefused(ControlReason.CONFLICT, detail="idempotencyKey")
            return before[1]
        answer = await act()
        if len(self._answers) >= REMEMBERED_KEYS:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (asked, answer)
        return answer

    async def _reload(self, visitor: Visitor, change: Change, version: int, digest: str) -> dict[str, Any]:
        state = self._state
        clock = state.clock
        requested_ns, started_ns = clock.now_ns(), clock.boottime_ns()
        answer: dict[str, Any] = {
            "operationId": uuid7(clock=clock),
            "state": "failed",
            "requestedAt": format_ms(requested_ns),
            "effectiveAt": None,
        }
        current = None if state.in_force is None else state.in_force.bundle.version
        data: dict[str, Any] = {
            "platform": visitor.platform,
            "previous": current,
            "reason": change.reason,
            "idempotencyKey": change.idempotency_key,
        }
        if change.expected_version is not None and change.expected_version != current:
            raise ControlRefused(ControlReason.CONFLICT, detail="expectedVersion")
        loaded = await asyncio.to_thread(self._keeper.load)
        fault, detail = self._judge(visitor, loaded, version, digest)
        if fault is None and loaded.in_force is not None:
            try:
                await state.audit.commit(
                    RecordType.POLICY_LOADED,
                    data | {"policyVersion": version, "sha256": digest},
                )
                await asyncio.to_thread(self._keeper.accept, loaded.in_force.bundle)
            except OnrecordError as error:
                fault, detail = ControlReason.FAILED, error.code
        if fault is not None:
            state.count("policy.refused")
            await self._note_refusal(data | {"asked": version, "detail": detail})
            if fault is not ControlReason.FAILED:
                raise ControlRefused(fault, detail=detail)
            return answer | {"detail": detail, "latencyMs": _since_ms(clock.boottime_ns(), started_ns)}
        assert loaded.in_force is not None
        self._put_in_force(loaded.in_force)
        return answer | {
            "state": "effective",
            "effectiveAt": format_ms(clock.now_ns()),
            "latencyMs": _since_ms(clock.boottime_ns(), started_ns),
            "detail": None,
            "loaded": {"version": version, "digest": digest},
        }

    def _judge(
        self, visitor: Visitor, loaded: Candidate, version: int, digest: str
    ) -> tuple[ControlReason | None, str | None]:
        """Say why a loaded bundle may not be put in force, or (None, None)."""
        if loaded.in_force is None:
            return ControlReason.FAILED, loaded.fault
        bundle = loaded.in_force.bundle
        if self._state.in_force is None and POLICY_ADMIN not in self._keeper.control_roles(
            bundle, visitor.peer.uid
        ):
            return ControlReason.NOT_AUTHORIZED, None
        if bundle.version != version or bundle.sha256 != digest:
            return ControlReason.CONFLICT, "bundle-differs"
        return None, None

    async def _note_refusal(self, data: dict[str, Any]) -> None:
        try:
            await self._state.audit.commit(RecordType.POLICY_REFUSED, data)
        except OnrecordError:
            return  # the answer says failed either way, and nothing has changed


def _since_ms(now_ns: int, started_ns: int) -> int:
    return (now_ns - started_ns) // 1_000_000


def _control_line(request_id: Any, reason: ControlReason) -> bytes:
    return error_line(request_id, CONTROL_CODES[reason], CONTROL_MESSAGES[reason], {"reason": reason})
