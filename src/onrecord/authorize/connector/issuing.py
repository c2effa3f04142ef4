"""The agent side's connection to the authority: asks for proofs, comes back after a loss, is never asked twice.

Source: call-proof.md 4.5, 5.2.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from onrecord.base.errors import NetworkError, OnrecordError
from onrecord.base.rpc_client import RpcClient

Done = Callable[[Any], None]


class Issuer:
    """A connection for callProof/issue that is made anew when it has been lost.

    `connect` checks the authority's uid before the first byte.
    """

    def __init__(self, *, connect: Callable[[], Awaitable[RpcClient]], timeout_ms: int) -> None:
        self._connect = connect
        self._timeout_ms = timeout_ms
        self._client: RpcClient | None = None
        self._waiting: list[tuple[Mapping[str, Any], int, Done]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        """Say whether a connection stands."""
        return self._client is not None and not self._client.closed

    async def connect(self) -> None:
        """Connect now. Raises `NetworkError` with code "unreachable", "peer-uid" or "timeout"."""
        if not self.is_connected:
            self._client = await self._connect()

    def issue(self, params: Mapping[str, Any], done: Done, *, wait_ms: int = 0) -> None:
        """Ask for a proof. `done` gets the result, an `RpcError`, or a `NetworkError`, exactly once."""
        client = self._client
        if client is not None and not client.closed:
            client.send("callProof/issue", params, done, timeout_ms=self._timeout_ms + wait_ms)
            return
        self._waiting.append((params, wait_ms, done))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._reconnect())

    async def close(self) -> None:
        """Close the connection; what waits ends with code "closed"."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._client is not None:
            self._client.close()
            self._client = None
        self._answer_waiting(NetworkError("the connection was closed here", code="closed"))

    async def _reconnect(self) -> None:
        try:
            self._client = await self._connect()
        except OnrecordError as error:
            self._task = None
            self._answer_waiting(error)
            return
        self._task = None
        waiting, self._waiting = self._waiting, []
        for params, wait_ms, done in waiting:
            self._client.send("callProof/issue", params, done, timeout_ms=self._timeout_ms + wait_ms)

    def _answer_waiting(self, error: OnrecordError) -> None:
        waiting, self._waiting = self._waiting, []
        for _, _, done in waiting:
            done(error)
