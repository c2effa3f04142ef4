"""The guard's connection to the authority: reports tools, verifies proofs, comes back after a loss.

Source: call-proof.md 4.5, 5.4, 5.7; running.md 5.2.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from onrecord.authorize.guard.log import GuardLog
from onrecord.base.errors import OnrecordError
from onrecord.base.namespaces import CALL_PROOF_REASONS, PROTOCOL_VERSION
from onrecord.base.rpc_client import RpcClient

HELLO_SECONDS: Final = 30.0
"""An idle connection says hello this often: the authority closes after 60 s, and a dead one should show early."""

FIRST_RETRY_SECONDS: Final = 0.1
LAST_RETRY_SECONDS: Final = 1.0
"""Back-off between connections (running.md 5.2)."""

UNREACHABLE: Final = "authority_unreachable"


class Verdict(NamedTuple):
    """What the authority said of one proof; `reason` is None when it is valid."""

    reason: str | None
    approved: bool = False
    checkpoint: Mapping[str, Any] | None = None


class Tool(NamedTuple):
    """One tool as the server advertises it now."""

    name: str
    schema_hash: str


class _Waiting(NamedTuple):
    params: Mapping[str, Any]
    done: Callable[[Verdict], None]
    deadline: float
    timer: asyncio.TimerHandle


_UNREACHABLE_VERDICT: Final = Verdict(UNREACHABLE)


class AuthorityLink:
    """One connection of a guard process to its authority, shared by all its MCP connections."""

    def __init__(
        self,
        *,
        connect: Callable[[], Awaitable[RpcClient]],
        server: str,
        hello_timeout_ms: int,
        verify_timeout_ms: int,
        log: GuardLog,
        on_checkpoint: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._connect = connect
        self._server = server
        self._hello_timeout_ms = hello_timeout_ms
        self._verify_timeout_ms = verify_timeout_ms
        self._log = log
        self._on_checkpoint = on_checkpoint
        self._loop = asyncio.get_running_loop()
        self._client: RpcClient | None = None
        self._waiting: deque[_Waiting] = deque()
        self._report: tuple[Tool, ...] | None = None
        self._report_number = 0
        self._acknowledged = 0
        self._report_waiting: list[tuple[int, Callable[[], None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._lost = asyncio.Event()
        self._was_reachable = True
        self._is_closing = False
        self._last_use = 0.0

    def start(self) -> None:
        """Connect, and stay connected until `close`."""
        if self._task is None:
            self._task = self._loop.create_task(self._stay_connected())

    async def close(self) -> None:
        """End the connection; what waits is unreachable."""
        self._is_closing = True
        self._lost.set()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._client is not None:
            self._client.close()
            self._client = None
        self._fail_waiting()

    def report(self, tools: Sequence[Tool], done: Callable[[], None]) -> None:
        """Report the tools; `done` is called once the authority has acknowledged this or a newer report."""
        self._report = tuple(tools)
        self._report_number += 1
        self._report_waiting.append((self._report_number, done))
        if self._client is not None and not self._client.closed:
            self._send_report(self._client)
        else:
            self._hurry.set()

    def verify(self, params: Mapping[str, Any], done: Callable[[Verdict], None]) -> None:
        """Ask for one proof. `done` gets the verdict exactly once; the request is never sent twice."""
        client = self._client
        if client is not None and not client.closed:
            self._ask(client, params, done, self._verify_timeout_ms)
            return
        seconds = self._verify_timeout_ms / 1000
        waiting = _Waiting(
            params, done, self._loop.time() + seconds, self._loop.call_later(seconds, self._expire_waiting)
        )
        self._waiting.append(waiting)
        self._hurry.set()

    def _ask(
        self, client: RpcClient, params: Mapping[str, Any], done: Callable[[Verdict], None], timeout_ms: int
    ) -> None:
        self._last_use = self._loop.time()

        def answered(answer: Any) -> None:
            done(self._read(answer))

        client.send("callProof/verify", params, answered, timeout_ms=timeout_ms)

    def _read(self, answer: Any) -> Verdict:
        if type(answer) is dict:
            checkpoint = answer.get("checkpoint")
            if checkpoint is not None and self._on_checkpoint is not None and type(checkpoint) is dict:
                self._on_checkpoint(checkpoint)
            if answer.get("valid") is True:
                return Verdict(None, answer.get("approved") is True)
            reason = answer.get("reason")
            if answer.get("valid") is False and type(reason) is str:
                folded = reason.lower().replace("-", "_").replace(" ", "_")
                if folded in CALL_PROOF_REASONS:
                    return Verdict(folded)
        code = answer.code if isinstance(answer, OnrecordError) else "answer-unreadable"
        self._log.event("verify.unanswered", code=code)
        return _UNREACHABLE_VERDICT

    async def _stay_connected(self) -> None:
        delay = 0.0
        failures = 0
        while not self._is_closing:
            if delay:
                # A call that waits shortens the pause, but never below the first one: nobody is hammered.
                self._hurry.clear()
                await asyncio.sleep(FIRST_RETRY_SECONDS)
                if delay > FIRST_RETRY_SECONDS and not self._waiting:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(delay - FIRST_RETRY_SECONDS):
                            await self._hurry.wait()
            try:
                client = await self._open()
            except OnrecordError as error:
                self._reachable(error)
                failures += 1
                if failures > 1 or error.code == "peer-uid":
                    self._fail_waiting()
                delay = min(max(delay * 2, FIRST_RETRY_SECONDS), LAST_RETRY_SECONDS)
                continue
            self._reachable(None)
            delay, failures = FIRST_RETRY_SECONDS, 0
            await self._use(client)

    async def _open(self) -> RpcClient:
        client = await self._connect()
        try:
            await client.call(
                "callProof/hello", {"versions": [PROTOCOL_VERSION]}, timeout_ms=self._hello_timeout_ms
            )
            if self._report is not None:
                number = self._report_number
                await client.call(
                    "callProof/tools", self._report_params(), timeout_ms=self._verify_timeout_ms
                )
                self._reported(number)
        except OnrecordError:
            client.close()
            raise
        return client

    async def _use(self, client: RpcClient) -> None:
        self._lost.clear()
        if self._is_closing:
            self._lost.set()
        client.on_close = self._lost.set
        self._client = client
        if client.closed:
            self._lost.set()
        if self._report is not None and self._acknowledged < self._report_number:
            self._send_report(client)
        self._last_use = self._loop.time()
        while self._waiting:
            waiting = self._waiting.popleft()
            waiting.timer.cancel()
            left_ms = int((waiting.deadline - self._loop.time()) * 1000)
            self._ask(client, waiting.params, waiting.done, max(left_ms, 1))
        try:
            while not self._lost.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HELLO_SECONDS):
                        await self._lost.wait()
                if not self._lost.is_set() and self._loop.time() - self._last_use >= HELLO_SECONDS:
                    await client.call(
                        "callProof/hello", {"versions": [PROTOCOL_VERSION]}, timeout_ms=self._hello_timeout_ms
                    )
                    self._last_use = self._loop.time()
        except OnrecordError as error:
            self._log.event("authority.lost", code=error.code)
        finally:
            self._client = None
            client.close()

    def _send_report(self, client: RpcClient) -> None:
        number = self._report_number

        def answered(answer: Any) -> None:
            if isinstance(answer, OnrecordError):
                self._log.alert("tools.not-reported", code=answer.code)
            else:
                self._reported(number)

        client.send("callProof/tools", self._report_params(), answered, timeout_ms=self._verify_timeout_ms)

    def _report_params(self) -> dict[str, Any]:
        tools = [{"name": tool.name, "inputSchemaSha256": tool.schema_hash} for tool in self._report or ()]
        return {"server": self._server, "tools": tools}

    def _reported(self, number: int) -> None:
        self._acknowledged = max(self._acknowledged, number)
        done = [call for wanted, call in self._report_waiting if wanted <= number]
        self._report_waiting = [pair for pair in self._report_waiting if pair[0] > number]
        for call in done:
            call()

    def _expire_waiting(self) -> None:
        now = self._loop.time()
        while self._waiting and self._waiting[0].deadline <= now + 0.001:
            self._waiting.popleft().done(_UNREACHABLE_VERDICT)

    def _fail_waiting(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.timer.cancel()
            one.done(_UNREACHABLE_VERDICT)

    def _reachable(self, error: OnrecordError | None) -> None:
        if error is None:
            if not self._was_reachable:
                self._log.event("authority.reachable")
            self._was_reachable = True
        elif self._was_reachable:
            self._was_reachable = False
            self._log.alert("authority.unreachable", code=error.code)


__all__ = ["UNREACHABLE", "AuthorityLink", "Tool", "Verdict"]
