"""Follows the MCP messages of one connection and says what each one means for the record.

Pure bookkeeping: messages in, observations out; no clock, no files. Content is already in the form of record.md 4.9.

Source: record.md 4.9, mcp.md 6 to 8, running.md 8.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from onrecord.authorize.guard import mcp_content as content_of
from onrecord.authorize.guard.reading import Id, as_number

MAX_FORGOTTEN: Final = 4096
"""Attempts of one connection that are followed. With more, one that was cancelled and never answered is forgotten, or
a task; what comes late for it passes, and is not recorded."""

_TASK_REQUESTS: Final = frozenset(("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"))
_TASK_NOTICES: Final = frozenset(("notifications/tasks", "notifications/tasks/status"))


class Absent(NamedTuple):
    """No content at all, which is another thing than empty content."""


ABSENT: Final = Absent()


class Observation(NamedTuple):
    """One thing that happened to an attempt: an entry kind of record/append, its call, its content."""

    kind: str
    call: str
    content: Any = ABSENT


class Attempt:
    """One tools/call of this connection, while answers to it are possible."""

    __slots__ = (
        "approved", "asked", "asks", "call", "cancelled", "digest", "ended", "left_out", "request_id", "started_ns",
        "state", "status", "status_message", "task", "token",
    )  # fmt: skip

    def __init__(self, call: str, *, digest: str, started_ns: int, approved: bool) -> None:
        self.call = call
        self.digest = digest
        self.started_ns = started_ns
        self.approved = approved
        self.request_id: Id | None = None
        self.token: Id | None = None
        self.task: str | None = None
        self.ended = False
        self.cancelled = False
        self.asks = False
        self.state: Any = None
        """The requestState that the next round has to bring: it tells equal calls apart, and is never recorded."""
        self.asked: set[str] = set()
        """Keys of the questions of its task."""
        self.left_out: frozenset[str] = frozenset()
        self.status: Any = None
        self.status_message: Any = None


class Attempts:
    """All open attempts of one connection. `connection` is its number, as entries carry it.

    `approved_task` is told the id of each task that begins with an approved call.
    """

    def __init__(self, connection: str, *, approved_task: Callable[[str], None] = lambda _: None) -> None:
        self._approved_task = approved_task
        self._connection = connection
        self._count = 0
        self._open: OrderedDict[str, Attempt] = OrderedDict()
        self._by_request: dict[Id, Attempt] = {}
        self._by_token: dict[Id, Attempt] = {}
        self._by_task: dict[str, Attempt] = {}
        self._task_requests: dict[Id, tuple[str, Attempt]] = {}
        self._questions: dict[Id, Attempt] = {}
        self.unattributed = 0
        """Questions that could only be given to the latest attempt (D-65)."""

    def next_call(self) -> str:
        """Return the name of the next call of this connection."""
        self._count += 1
        return f"{self._connection}.{self._count}"

    def is_waiting(self, request_id: Id) -> bool:
        """Say whether a request that this bookkeeping follows is unanswered under this id.

        A cancelled one counts too: a late answer to it would be taken for that of the next request of this id.
        """
        return request_id in self._by_request or request_id in self._task_requests

    @property
    def running(self) -> int:
        """Number of requests that wait for an answer and were not cancelled."""
        return sum(not attempt.cancelled for attempt in self._by_request.values())

    def continued(self, digest: str, state: str | None) -> Attempt | None:
        """Return the open attempt with this digest that has asked for input with this state, else the newest one.

        Source: running.md 8 (R-09).
        """
        asking = [one for one in reversed(self._open.values()) if one.asks and one.digest == digest]
        return next((one for one in asking if one.state == state), asking[0] if asking else None)

    def start(
        self, request_id: Id, *, call: str, digest: str, token: Any, started_ns: int, approved: bool = False
    ) -> Attempt:
        """Take note of a call that goes to the server."""
        attempt = Attempt(call, digest=digest, started_ns=started_ns, approved=approved)
        self._open[call] = attempt
        self._follow(attempt, request_id, token)
        if len(self._open) > MAX_FORGOTTEN:
            self._forget_one()
        return attempt

    def resume(
        self, attempt: Attempt, request_id: Id, *, token: Any, responses: Any, approved: bool
    ) -> Observation:
        """Take note of a further round of an open attempt."""
        attempt.asks = attempt.cancelled = False
        attempt.approved = attempt.approved or approved
        self._follow(attempt, request_id, token)
        kept = content_of.input_responses(responses, attempt.left_out)
        return Observation("input-response", attempt.call, ABSENT if kept is None else kept)

    def withdraw(self, request_id: Id) -> None:
        """Forget a request that did not go to the server after all."""
        attempt = self._by_request.pop(request_id, None)
        if attempt is not None:
            attempt.request_id = None

    def asks_for_approved(self, params: Any) -> bool:
        """Say whether a question of the server may be one for a call that a person has approved.

        A question that names its task belongs to the call of that; of any other nobody knows to which call it belongs.
        """
        attempt = self._related(params)
        if attempt is not None:
            return attempt.approved
        return self.has_approved

    @property
    def has_approved(self) -> bool:
        """Say whether a call that a person has approved is open."""
        return any(attempt.approved for attempt in self._open.values())

    def may_get_approved(self, task: str) -> bool:
        """Say whether an unknown task may be one of an approved call without an answer yet: ids can be guessed."""
        return task not in self._by_task and any(
            attempt.approved and attempt.request_id is not None for attempt in self._open.values()
        )

    def refused_question(self, params: Any, response: Any) -> list[Observation]:
        """Return what it means that a question was answered here instead of by the client."""
        attempt = self._asked_for(params)
        if attempt is None:
            return []
        content = ABSENT if params is None else content_of.question_content(params)
        return [
            Observation("input", attempt.call, content),
            Observation("input-response", attempt.call, response),
        ]

    def from_client(self, method: str | None, message: dict[str, Any], *, now_ns: int) -> list[Observation]:
        """Return what a message of the client, other than a tools/call, means."""
        message_id = message.get("id")
        if method is None:
            asked = self._questions.pop(message_id, None) if type(message_id) in (int, str) else None  # type: ignore[arg-type]
            return [] if asked is None or asked.ended else [_answer_to_question(asked, message)]
        params = message.get("params")
        if type(params) is not dict:
            return []
        if method == "notifications/cancelled":
            return self._cancelled(params, now_ns)
        if method not in _TASK_REQUESTS or type(message_id) not in (int, str):
            return []
        task = params.get("taskId")
        attempt = self._by_task.get(task) if type(task) is str else None
        if attempt is None:
            return []
        self._task_requests[message_id] = (method, attempt)  # type: ignore[index]
        if attempt.ended:
            return []
        if method == "tasks/cancel":
            return [Observation("cancel", attempt.call, {"signal": "tasks/cancel"})]
        if method == "tasks/update" and "inputResponses" in params:
            kept = content_of.input_responses(params["inputResponses"], attempt.left_out)
            return [Observation("input-response", attempt.call, ABSENT if kept is None else kept)]
        return []

    def from_server(self, message: dict[str, Any]) -> list[Observation]:
        """Return what a message of the server means."""
        method = message.get("method")
        message_id = message.get("id")
        if method is None:
            if type(message_id) is not int and type(message_id) is not str:
                return []
            attempt = self._by_request.pop(message_id, None)
            if attempt is not None:
                return self._answered(attempt, message)
            asked = self._task_requests.pop(message_id, None)
            return [] if asked is None else self._task_answer(asked[0], asked[1], message)
        params = message.get("params")
        if type(method) is not str:
            return []
        if method == "notifications/progress" and type(params) is dict:
            token = params.get("progressToken")
            attempt = self._by_token.get(token) if type(token) in (int, str) else None  # type: ignore[arg-type]
            if attempt is not None and not attempt.ended:
                return [Observation("progress", attempt.call, content_of.progress_content(params))]
        elif method in _TASK_NOTICES and type(params) is dict:
            task = params.get("taskId")
            attempt = self._by_task.get(task) if type(task) is str else None
            if attempt is not None:
                return self._task_status(attempt, params)
        elif method in content_of.ASKING_METHODS and type(message_id) in (int, str):
            return self._question(message_id, params)  # type: ignore[arg-type]
        return []

    def transport_ended(self) -> list[Observation]:
        """Return the end of each open attempt when the server has gone (D-62)."""
        ends = [
            Observation("error", one.call, {"transport": "eof"})
            for one in self._open.values()
            if not one.ended
        ]
        for attempt in list(self._open.values()):
            self._end(attempt)
        return ends

    def _follow(self, attempt: Attempt, request_id: Id, token: Any) -> None:
        attempt.request_id = request_id
        self._by_request[request_id] = attempt
        if type(token) is int or type(token) is str:
            if attempt.token is not None:
                self._by_token.pop(attempt.token, None)
            attempt.token = token
            self._by_token[token] = attempt

    def _answered(self, attempt: Attempt, message: dict[str, Any]) -> list[Observation]:
        attempt.request_id = None
        if "error" in message:
            error = message["error"]
            return self._ended(attempt, content_of.error_kind(error), content_of.error_content(error))
        result = message.get("result")
        if type(result) is not dict:
            return self._ended(attempt, "error", {"transport": "malformed"})
        kind = result.get("resultType")
        if kind == "input_required":
            return self._input_required(attempt, result)
        task = result if kind == "task" else result.get("task")
        if (
            type(task) is dict
            and type(task.get("taskId")) is str
            and (kind == "task" or "content" not in result)
        ):
            attempt.task = task["taskId"]
            self._by_task[task["taskId"]] = attempt
            if attempt.approved:
                self._approved_task(task["taskId"])
            attempt.status, attempt.status_message = task.get("status"), task.get("statusMessage")
            return [Observation("pending", attempt.call, content_of.task_content(task))]
        return self._ended(attempt, content_of.result_kind(result), content_of.result_content(result))

    def _input_required(self, attempt: Attempt, result: dict[str, Any]) -> list[Observation]:
        kept, attempt.left_out = content_of.input_requests(result.get("inputRequests"))
        attempt.asks, attempt.state = True, result.get("requestState")
        return [Observation("input", attempt.call, ABSENT if kept is None else kept)]

    def _task_answer(self, method: str, attempt: Attempt, message: dict[str, Any]) -> list[Observation]:
        result = message.get("result")
        if method == "tasks/result":
            if "error" in message:
                error = message["error"]
                return self._ended(attempt, content_of.error_kind(error), content_of.error_content(error))
            if type(result) is dict:
                return self._ended(attempt, content_of.result_kind(result), content_of.result_content(result))
        elif type(result) is dict and "status" in result:
            return self._task_status(attempt, result)
        return []

    def _task_status(self, attempt: Attempt, task: dict[str, Any]) -> list[Observation]:
        if attempt.ended:
            return []
        status, text = task.get("status"), task.get("statusMessage")
        before = attempt.status, attempt.status_message
        attempt.status, attempt.status_message = status, text
        if type(task.get("result")) is dict:
            result = task["result"]
            return self._ended(attempt, content_of.result_kind(result), content_of.result_content(result))
        if type(task.get("error")) is dict:
            return self._ended(
                attempt, content_of.error_kind(task["error"]), content_of.error_content(task["error"])
            )
        told = {"status": status} if text is None else {"status": status, "statusMessage": text}
        if status == "cancelled":
            return self._ended(attempt, "failure", told)
        if status == "input_required":
            return self._task_asks(attempt, task.get("inputRequests"))
        if status != "working" or before == (status, text) or (text is None and before[0] == status):
            return []
        return [Observation("progress", attempt.call, told)]

    def _task_asks(self, attempt: Attempt, requests: Any) -> list[Observation]:
        """Take questions of a task, which are shown until they are answered; a key names one question (mcp.md 7)."""
        fresh = {}
        if type(requests) is dict:
            fresh = {key: request for key, request in requests.items() if key not in attempt.asked}
        if not fresh:
            return []
        attempt.asked.update(fresh)
        kept, left_out = content_of.input_requests(fresh)
        attempt.left_out |= left_out
        return [Observation("input", attempt.call, ABSENT if kept is None else kept)]

    def _question(self, message_id: Id, params: Any) -> list[Observation]:
        attempt = self._asked_for(params)
        if attempt is None:
            return []
        self._questions[message_id] = attempt
        return [
            Observation(
                "input", attempt.call, ABSENT if params is None else content_of.question_content(params)
            )
        ]

    def _related(self, params: Any) -> Attempt | None:
        task = content_of.related_task(params)
        return None if task is None else self._by_task.get(task)

    def _asked_for(self, params: Any) -> Attempt | None:
        """Return the attempt that a question belongs to (D-65)."""
        related = self._related(params)
        if related is not None:
            return related
        if len(self._open) > 1:
            self.unattributed += 1
        return next(reversed(self._open.values()), None)

    def _cancelled(self, params: dict[str, Any], now_ns: int) -> list[Observation]:
        request_id = params.get("requestId")
        attempt = self._by_request.get(request_id) if type(request_id) in (int, str) else None  # type: ignore[arg-type]
        if attempt is None and type(request_id) is str:
            # The SDKs take "7" for 7 here, and end the call.
            attempt = self._by_request.get(as_number(request_id))
        if attempt is None or attempt.cancelled:
            return []
        attempt.cancelled = True
        reason = params.get("reason")
        if type(reason) is not str:
            return [Observation("cancel", attempt.call, {"signal": "notifications/cancelled"})]
        observed = [Observation("cancel", attempt.call, {"reason": reason})]
        if "timed out" in reason.lower() or "timeout" in reason.lower():
            waited = {"waited_ms": max(0, (now_ns - attempt.started_ns) // 1_000_000)}
            observed.insert(0, Observation("timeout", attempt.call, waited))
        return observed

    def _ended(self, attempt: Attempt, kind: str, content: Any) -> list[Observation]:
        if attempt.ended:
            return []
        self._end(attempt)
        return [Observation(kind, attempt.call, content)]

    def _end(self, attempt: Attempt) -> None:
        attempt.ended = True
        self._open.pop(attempt.call, None)
        if attempt.token is not None and self._by_token.get(attempt.token) is attempt:
            del self._by_token[attempt.token]
        if attempt.task is not None:
            self._by_task.pop(attempt.task, None)
        if attempt.request_id is not None and self._by_request.get(attempt.request_id) is attempt:
            del self._by_request[attempt.request_id]

    def _forget_one(self) -> None:
        """Forget the oldest cancelled call, else the oldest task; of an approved one the input must be known."""
        idle = [
            one for one in self._open.values() if not one.approved and (one.cancelled or one.task is not None)
        ]
        if idle:
            self._end(next((one for one in idle if one.cancelled), idle[0]))


def _answer_to_question(attempt: Attempt, message: dict[str, Any]) -> Observation:
    result = message.get("result")
    if type(result) is dict:
        return Observation("input-response", attempt.call, content_of.result_content(result))
    return Observation("input-response", attempt.call, content_of.error_content(message.get("error")))
