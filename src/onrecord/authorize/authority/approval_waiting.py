"""Issue requests that are held open for an approval, bounded in number and in bytes.

Source: call-proof.md 5.2 (waitMs), 9.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onrecord.authorize.authority.asking import Waited

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from onrecord.authorize.authority.approvals import Approval
    from onrecord.authorize.authority.asking import Asked
    from onrecord.base.rpc_server import RpcConnection

MAX_WAITING: Final = 1024
"""Issue requests held open at one time; more are answered `approval_pending` at once."""

MAX_WAITING_BYTES: Final = 32 * 1024 * 1024
"""Bytes of all requests held open together: each keeps its arguments until it is answered."""

CALLER_SHARE: Final = 8
"""One caller gets an eighth of both. Arguments in memory take up to thirty times the bytes of their text, and others
have to wait as well."""


class _Used(NamedTuple):
    """What the requests of one caller take up."""

    requests: int
    size: int
    """Bytes of their lines."""


class WaitingRoom:
    """Requests that wait. A connection that ends takes its own out; approvals stay."""

    def __init__(self) -> None:
        self._by_connection: dict[RpcConnection, set[Callable[[], None]]] = {}
        self._used: dict[str, _Used] = {}
        self._bytes = 0
        self.count = 0
        """Requests that are held open now."""

    def admits(self, asked: Asked) -> bool:
        """Say whether a request may wait: it asked to, has time left, and there is room."""
        if not asked.params.wait_ms:
            return False
        if asked.waited is not None and asked.waited.deadline <= asyncio.get_running_loop().time():
            return False
        size, mine = len(asked.request.raw), self._used.get(asked.caller, _Used(0, 0))
        return (
            self.count < MAX_WAITING
            and self._bytes + size <= MAX_WAITING_BYTES
            and mine.requests < max(1, MAX_WAITING // CALLER_SHARE)
            and mine.size + size <= MAX_WAITING_BYTES // CALLER_SHARE
        )

    def enter(self, asked: Asked, approval: Approval) -> Awaitable[bool]:
        """Have a request wait until the approval is settled or the request's time is up.

        It is registered before this returns, so that nothing that happens next is missed. The result is awaited:
        whether the peer is still there to get an answer.
        """
        loop = asyncio.get_running_loop()
        deadline = (
            loop.time() + asked.params.wait_ms / 1000 if asked.waited is None else asked.waited.deadline
        )
        asked.waited = Waited(approval=approval, deadline=deadline)
        settled: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not settled.done():
                settled.set_result(None)

        approval.waiters.append(wake)
        self._by_connection.setdefault(asked.connection, set()).add(wake)
        self._take(asked, 1)
        return self._wait(asked, approval, settled, wake, deadline)

    async def _wait(
        self,
        asked: Asked,
        approval: Approval,
        settled: asyncio.Future[Any],
        wake: Callable[[], None],
        deadline: float,
    ) -> bool:
        timer = asyncio.get_running_loop().call_at(deadline, wake)
        try:
            await settled
        finally:
            timer.cancel()
            self._leave(asked, approval, wake)
        connection = asked.connection
        return not (connection.transport is None or connection.transport.is_closing() or connection.gone())

    def _leave(self, asked: Asked, approval: Approval, wake: Callable[[], None]) -> None:
        self._take(asked, -1)
        if wake in approval.waiters:
            approval.waiters.remove(wake)
        mine = self._by_connection.get(asked.connection, set())
        mine.discard(wake)
        if not mine:
            self._by_connection.pop(asked.connection, None)

    def _take(self, asked: Asked, sign: int) -> None:
        """Count a request in (1) or out (-1)."""
        size = sign * len(asked.request.raw)
        self.count += sign
        self._bytes += size
        before = self._used.get(asked.caller, _Used(0, 0))
        self._used[asked.caller] = _Used(before.requests + sign, before.size + size)
        if not self._used[asked.caller].requests:
            del self._used[asked.caller]

    def forget(self, connection: RpcConnection) -> None:
        """Let go of what waits for a connection that has ended."""
        for wake in list(self._by_connection.get(connection, ())):
            wake()

    def close(self) -> None:
        """Let go of everything: the authority ends."""
        for connection in list(self._by_connection):
            self.forget(connection)
