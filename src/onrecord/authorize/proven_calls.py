"""Calls a tool with a fresh proof for each round, for agent programs behind `onrecord connect ID --pipe`.

    result = await proven_call(client, proofs, "filesystem", "read_file", {"path": "repo/README.md"})

A server may answer a call with questions and wants the call again with the answers. The official client does that by
itself, but with the same proof in each round, which the authority refuses: it is bound to other inputs, and used. This
function drives the rounds, follows tasks, waits for approvals and gets a new proof, once, where a retry makes sense.

Needs the package mcp (`pip install onrecord[mcp]`).

Source: mcp.md 4, 6 and 10.2; call-proof.md 5.5, 6.3, 6.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
import mcp
import mcp_types as types

from onrecord.authorize.client import (
    APPROVAL_WAIT_MS,
    Advice,
    CallProofClient,
    Proof,
    advice,
    rejection_reason,
)
from onrecord.authorize.mcp_tasks import Answer, CallTask, callbacks_of, dump, follow_task
from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import NetworkError, OnrecordError
from onrecord.base.wire import RpcError

MAX_ROUNDS: Final = 8
"""Rounds of one call; a server that asks more often is asking for ever (mcp.md 6)."""

APPROVAL_SECONDS: Final = 280.0
"""How long a call waits for a person: a bit less than an approval lives."""

MAX_RETRY_MS: Final = 1000
"""Longest pause between two questions about an approval, whatever the authority asks for."""

STATE_ONLY_SECONDS: Final = 0.1
"""Pause before a round that only gives a state back: the server wanted time, not an answer."""


@dataclass(slots=True)
class _Rounds:
    """One call over its rounds, as they go over the wire."""

    server: str
    name: str
    arguments: dict[str, Any] | None
    responses: types.InputResponses | None = None
    state: str | None = None
    proof: Proof | None = None
    needed_approval: bool = False
    has_retried: bool = False


async def proven_call(
    client: mcp.Client,
    proofs: CallProofClient,
    server: str,
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    answer: Answer | None = None,
    answer_approved: Answer | None = None,
    approval_seconds: float = APPROVAL_SECONDS,
    clock: Clock = SYSTEM_CLOCK,
) -> types.CallToolResult:
    """Call a tool of a protected server and return its result.

    `server` is the deployment id. `answer` answers what the server asks; without it the client's own callbacks do.
    After a call has waited for an approval only `answer_approved` may answer, which has to ask a person: a model must
    not add input to what a person has approved.

    Raises `RpcError` when the proof is refused (also "approval_pending" after `approval_seconds`), `mcp.MCPError` when
    the call is, `strict_json.Refused` for arguments that no proof can be bound to, `NetworkError` with code
    "input-rounds" when the server keeps asking, and `OnrecordError` with code "input-needs-person" when an approved
    call asks and there is no `answer_approved`.
    """
    call = _Rounds(server, name, None if arguments is None else dict(arguments))
    deadline_ns = clock.boottime_ns() + int(approval_seconds * 1e9)
    for _ in range(MAX_ROUNDS):
        result = await _round(client, proofs, call, deadline_ns=deadline_ns, clock=clock)
        if isinstance(result, types.CallToolResult):
            return result
        if call.needed_approval:
            if answer_approved is None:
                raise OnrecordError(
                    "an approved call asks for input, which only a person may give",
                    code="input-needs-person",
                    hint="pass answer_approved, a function that asks a person",
                )
            answers = answer_approved
        else:
            answers = answer or callbacks_of(client.session)
        if isinstance(result, CallTask):
            return await follow_task(client.session, result, answer=answers)
        requests = result.input_requests or {}
        responses: types.InputResponses = {key: await answers(key, asked) for key, asked in requests.items()}
        call.responses = responses or None
        call.state = result.request_state
        if call.responses is None:
            await anyio.sleep(STATE_ONLY_SECONDS)
    raise NetworkError(f"the server asked for input more than {MAX_ROUNDS} times", code="input-rounds")


async def _round(
    client: mcp.Client, proofs: CallProofClient, call: _Rounds, *, deadline_ns: int, clock: Clock
) -> types.CallToolResult | types.InputRequiredResult | CallTask:
    while True:
        call.proof = await _prove(proofs, call, deadline_ns=deadline_ns, clock=clock)
        call.needed_approval |= call.proof.approval_id is not None
        try:
            return await _send(client, proofs, call)
        except mcp.MCPError as error:
            reason = rejection_reason({"code": error.code, "data": error.data})
            if reason is None or call.has_retried or advice(reason) is not Advice.RETRY_ONCE:
                raise
            call.has_retried = True


async def _prove(proofs: CallProofClient, call: _Rounds, *, deadline_ns: int, clock: Clock) -> Proof:
    wait_ms = 0
    # The digest is over what goes over the wire, so it is written here as the client will write it.
    sent = (
        None if call.responses is None else {key: dump(response) for key, response in call.responses.items()}
    )
    while True:
        try:
            return await proofs.issue(
                call.server,
                call.name,
                call.arguments,
                input_responses=sent,
                request_state=call.state,
                continues=call.proof,
                wait_ms=wait_ms,
            )
        except RpcError as refusal:
            left_ms = (deadline_ns - clock.boottime_ns()) // 1_000_000
            if refusal.reason != "approval_pending" or left_ms <= 0:
                raise
            call.needed_approval = True
            wait_ms = min(APPROVAL_WAIT_MS, left_ms)
            retry_ms = refusal.data.get("retryAfterMs")
            if type(retry_ms) is int and retry_ms > 0:
                await anyio.sleep(min(retry_ms, MAX_RETRY_MS, left_ms) / 1000)


async def _send(
    client: mcp.Client, proofs: CallProofClient, call: _Rounds
) -> types.CallToolResult | types.InputRequiredResult | CallTask:
    assert call.proof is not None
    meta: types.RequestParamsMeta = proofs.proof_meta(call.proof)  # type: ignore[assignment]
    result = await client.session.call_tool(
        call.name,
        call.arguments,
        meta=meta,
        input_responses=call.responses,
        request_state=call.state,
        allow_input_required=True,
        allow_claimed=True,
    )
    if not isinstance(result, types.CallToolResult | types.InputRequiredResult | CallTask):
        raise NetworkError("the server answered with a result of another extension", code="result-unknown")
    return result
