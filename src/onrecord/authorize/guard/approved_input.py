"""Keeps input away from calls that a person has approved: what was approved is the call as it was shown.

A further round of a call has a proof of its own, for which the person sees the answers. Input that comes without a
proof, to a task or as the answer to a question of a legacy server, is refused here.

Source: call-proof.md 6.6.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from onrecord.authorize.guard import mcp_content
from onrecord.authorize.guard.extension import rejection
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.mcp_events import Attempts
from onrecord.authorize.guard.reading import Message
from onrecord.authorize.guard.recording import Recording
from onrecord.base.wire import error_line, result_line

TASKS_UPDATE: Final = "tasks/update"
ELICITATION: Final = "elicitation/create"

SAMPLING_REJECTED: Final = -1
"""The code with which a client says that its user refused a sampling request (MCP 2025-11-25)."""

CANCELLED: Final = {"action": "cancel"}
"""The answer to an elicitation of a call that a person has approved."""

MAX_APPROVED_TASKS: Final = 10_000
"""Tasks of approved calls that one guard remembers. A person has approved each of them."""


class ApprovedTasks:
    """Ids of the tasks of approved calls, for all connections of one server: a task may outlive its connection."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, task: object) -> bool:
        return task in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, task: str) -> None:
        """Remember a task."""
        self._ids[task] = None
        if len(self._ids) > MAX_APPROVED_TASKS:
            self._ids.popitem(last=False)


class ApprovedInput:
    """The rule for one connection."""

    def __init__(
        self,
        number: str,
        *,
        attempts: Attempts,
        tasks: ApprovedTasks,
        recording: Recording,
        log: GuardLog,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
    ) -> None:
        self._number = number
        self._attempts = attempts
        self._tasks = tasks
        self._recording = recording
        self._log = log
        self._to_client = to_client
        self._to_server = to_server

    def refuse_update(self, message: Message, *, is_modern: bool) -> bool:
        """Refuse a tasks/update that may bring input for an approved call; say whether it was one.

        One without an id is dropped: a server may take it all the same.
        """
        params = message.value.get("params")
        if type(params) is not dict or not any(_is_spelt(name, "inputResponses") for name in params):
            return False
        if not self._may_be_approved(params):
            return False
        self._log.event("input.refused", method=TASKS_UPDATE)
        if message.id is not None:
            self._to_client(rejection(message.id, "missing", is_modern=is_modern))
        return True

    def _may_be_approved(self, params: dict[str, Any]) -> bool:
        """Say whether a task may be one of an approved call; one that is named oddly may be any of them."""
        task = params.get("taskId")
        if type(task) is not str or any(name != "taskId" and _is_spelt(name, "taskId") for name in params):
            return len(self._tasks) > 0 or self._attempts.has_approved
        return task in self._tasks or self._attempts.may_get_approved(task)

    def refuse_question(self, message: dict[str, Any]) -> bool:
        """Answer a question of the server that may be one for an approved call; say whether it was one."""
        method, params = message["method"], message.get("params")
        if method not in (ELICITATION, mcp_content.SAMPLING):
            return False
        if mcp_content.related_task(params) not in self._tasks and not self._attempts.asks_for_approved(
            params
        ):
            return False
        self._log.event("input.refused", method=method)
        message_id = message.get("id")
        if type(message_id) is not int and type(message_id) is not str:
            return True
        if method == mcp_content.SAMPLING:
            self._to_server(error_line(message_id, SAMPLING_REJECTED, "Refused here", {"reason": "approved"}))
            return True
        observed = self._attempts.refused_question(mcp_content.storable(params), CANCELLED)
        if observed:
            self._recording.observed(self._number, observed)
        self._to_server(result_line(message_id, CANCELLED))
        return True


def _is_spelt(name: str, wanted: str) -> bool:
    """Say whether a lenient server might read a member as the one that is wanted."""
    return name.replace("_", "").casefold() == wanted.casefold()
