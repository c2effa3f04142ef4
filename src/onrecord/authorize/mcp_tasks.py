"""Tasks for the official MCP client: a call that the server goes on with after it has answered it.

    async with mcp.Client(command, extensions=[CallTasks()]) as client:
        result = await client.call_tool("request_review", {"number": 17})

The client then declares the extension `io.modelcontextprotocol/tasks`, follows each task to its end, and answers what
it asks on the way with the client's own callbacks, or with `answer`. Following a task needs no call proof: the proof
covers its start. A task that a person has approved takes no input; the guard refuses it (reason `missing`).

Needs the package mcp (`pip install onrecord[mcp]`).

Source: mcp.md 7; call-proof.md 6.6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client import ClientExtension, ClientRequestContext, ClientSession, ResultClaim
from mcp.client.extension import ClaimContext
from pydantic import TypeAdapter, ValidationError

from onrecord.base.errors import NetworkError

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

DEFAULT_POLL_MS: Final = 500
"""Time between two looks at a task whose server names none."""

MIN_POLL_MS: Final = 20
MAX_POLL_MS: Final = 60_000
"""A server names the interval; these bounds keep it from making us spin, or sleep for ever."""

MAX_TASK_ROUNDS: Final = 8
"""Rounds of input in one task before it is given up, as for calls (mcp.md 6)."""

_T = TypeVar("_T")

Answer = Callable[[str, types.InputRequest], Awaitable[types.InputResponse]]
"""Gets the key of a question and the question; returns what the user's side says to it."""

_REQUESTS: Final = TypeAdapter[types.InputRequests](types.InputRequests)
_RESULT: Final = TypeAdapter[types.CallToolResult](types.CallToolResult)


class CallTask(types.Result):
    """A task as the answer to a call names it. The id may be a secret: do not log it."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str | None = None
    poll_interval_ms: int | None = None


class _State(types.Result):
    """The answer to tasks/get or tasks/update; what stands in it is looked at where it is used."""

    status: Any = None
    input_requests: Any = None
    result: Any = None
    error: Any = None
    poll_interval_ms: Any = None


class CallTasks(ClientExtension):
    """The tasks extension: give one to each `mcp.Client` that calls tools which may become tasks.

    Without `answer` the client's own callbacks answer what a task asks.
    """

    identifier = TASKS_EXTENSION

    def __init__(self, *, answer: Answer | None = None) -> None:
        self._answer = answer

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Claim the result type `task`."""

        async def resolve(task: CallTask, context: ClaimContext) -> types.CallToolResult:
            return await follow_task(context.session, task, answer=self._answer)

        return (ResultClaim(result_type="task", model=CallTask, resolve=resolve),)


async def follow_task(
    session: ClientSession,
    task: CallTask,
    *,
    answer: Answer | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> types.CallToolResult:
    """Poll a task until it ends and return the result of its call.

    `answer` says what to answer when the task asks for input; without it the client's own callbacks do. `sleep` takes
    seconds. A task that was cancelled, or had an error of the protocol, raises `mcp.MCPError`; one whose tool failed
    gives a result with `is_error`, like any call.

    Raises `NetworkError` with code "task-unreadable" for an answer that is no task, and "input-rounds" when the task
    keeps asking.
    """
    answer = answer or callbacks_of(session)
    interval: Any = task.poll_interval_ms
    answered: set[str] = set()
    rounds = 0
    while True:
        await sleep(_seconds(interval))
        state = await _ask(session, "tasks/get", {"taskId": task.task_id})
        interval = state.poll_interval_ms or interval
        match state.status:
            case "completed":
                return _read(_RESULT, state.result)
            case "failed":
                raise _error_of(state.error)
            case "cancelled":
                raise MCPError(code=types.INTERNAL_ERROR, message="The task was cancelled")
            case "input_required":
                asked = _read(_REQUESTS, state.input_requests or {})
                # A server may show a question for a while after it was answered; keys are unique within a task.
                fresh = {key: request for key, request in asked.items() if key not in answered}
                if not fresh:
                    continue
                rounds += 1
                if rounds > MAX_TASK_ROUNDS:
                    raise NetworkError("the task keeps asking for input", code="input-rounds")
                answers = {key: dump(await answer(key, request)) for key, request in fresh.items()}
                await _ask(session, "tasks/update", {"taskId": task.task_id, "inputResponses": answers})
                answered.update(fresh)
            case "working":
                continue
            case _:
                raise NetworkError("the answer is no state of a task", code="task-unreadable")


def callbacks_of(session: ClientSession) -> Answer:
    """Return an `Answer` that asks the callbacks with which the client was made."""

    async def answer(key: str, request: types.InputRequest) -> types.InputResponse:
        context = ClientRequestContext(session=session, request_id=key)
        said = await session.dispatch_input_request(context, request)
        if isinstance(said, types.ErrorData):
            raise MCPError(code=said.code, message=said.message, data=said.data)
        return said

    return answer


def dump(value: types.InputResponse) -> dict[str, Any]:
    """Return an answer as it goes over the wire."""
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


async def _ask(session: ClientSession, method: str, params: dict[str, Any]) -> _State:
    request = types.Request[dict[str, Any], str](method=method, params=params)
    return await session.send_request(request, _State)


def _seconds(interval: Any) -> float:
    milliseconds = interval if type(interval) is int else DEFAULT_POLL_MS
    return min(max(milliseconds, MIN_POLL_MS), MAX_POLL_MS) / 1000


def _read(adapter: TypeAdapter[_T], value: Any) -> _T:
    try:
        return adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise NetworkError("the task's content cannot be read", code="task-unreadable") from None


def _error_of(error: Any) -> MCPError:
    try:
        read = types.ErrorData.model_validate(error)
    except ValidationError:
        raise NetworkError(
            "the task failed with something that is no error", code="task-unreadable"
        ) from None
    return MCPError(code=read.code, message=read.message, data=read.data)
