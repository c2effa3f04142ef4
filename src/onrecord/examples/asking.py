"""What the lean server can do beyond answering at once: ask the client's user something, and work as a task.

Revision 2026-07-28 asks by the result `input_required`, to which the client answers with the same call once more;
revision 2025-11-25 by a request of the server's own. Tasks are those of the extension `io.modelcontextprotocol/tasks`.

>>> Question("reviewer", "Who should review it?").request()["params"]["message"]
'Who should review it?'

Source: mcp.md 6 and 7.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

MAX_ANSWER_CHARS: Final = 200
"""Longest answer of a person that is taken."""

MAX_TASKS: Final = 100
"""Tasks that are remembered; the oldest goes first, since a client that was told of it has had time to ask."""

POLL_INTERVAL_MS: Final = 50
"""How often a client is asked to look after its task. The work here is short."""


class ToolError(Exception):
    """The tool ran and could not do it: an `isError` result with this text."""


@dataclass(frozen=True, slots=True)
class Question:
    """One text that a person is asked for before a tool runs. `name` is both its key and the name of the answer."""

    name: str
    message: str

    def request(self) -> dict[str, Any]:
        """Return the elicitation, as request of a server or as one of the inputRequests of a result."""
        member = {"type": "string", "minLength": 1, "maxLength": MAX_ANSWER_CHARS}
        schema = {"type": "object", "properties": {self.name: member}, "required": [self.name]}
        params = {"mode": "form", "message": self.message, "requestedSchema": schema}
        return {"method": "elicitation/create", "params": params}

    def answer(self, response: Any) -> str:
        """Return the text that a person gave, without blanks around it. Raises `ToolError` if there is none."""
        if not isinstance(response, Mapping) or response.get("action") != "accept":
            raise ToolError("The question was not answered, so nothing was done")
        content = response.get("content")
        text = content.get(self.name) if isinstance(content, Mapping) else None
        if not isinstance(text, str) or not 0 < len(text.strip()) <= MAX_ANSWER_CHARS:
            raise ToolError(f"The answer has to be a text of 1 to {MAX_ANSWER_CHARS} characters")
        return text.strip()


class CallSeal:
    """Makes and checks the requestState of a call that waits for input.

    The client carries it, so it is taken for hostile: it is a MAC over tool and arguments with a key of this process.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def seal(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the state for one call."""
        call = json.dumps([name, arguments], sort_keys=True).encode()
        return hmac.new(self._key, call, hashlib.sha256).hexdigest()

    def fits(self, state: Any, name: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether a state was made here for this call."""
        return isinstance(state, str) and hmac.compare_digest(
            state.encode(errors="replace"), self.seal(name, arguments).encode()
        )


@dataclass(frozen=True, slots=True)
class _Task:
    created: str
    work: Future[dict[str, Any]]


class Tasks:
    """The tasks of one connection: work that goes on after its call was answered. One runs at a time."""

    def __init__(self, executor: Callable[[], Executor] = lambda: ThreadPoolExecutor(1, "task")) -> None:
        """Take a function that makes the executor; it is called for the first task."""
        self._make_executor = executor
        self._executor: Executor | None = None
        self._tasks: dict[str, _Task] = {}

    def start(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Begin some work, whose result is that of the call, and return the task object."""
        if self._executor is None:
            self._executor = self._make_executor()
        identifier = secrets.token_urlsafe(16)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._tasks[identifier] = _Task(now, self._executor.submit(work))
        if len(self._tasks) > MAX_TASKS:
            del self._tasks[next(iter(self._tasks))]
        return self._object(identifier, "working")

    def get(self, identifier: Any) -> dict[str, Any] | None:
        """Return the task object, with the result of the call when there is one; None for an unknown task."""
        task = self._tasks.get(identifier) if isinstance(identifier, str) else None
        if task is None:
            return None
        if not task.work.done():
            return self._object(identifier, "working")
        try:
            result = task.work.result()
        except CancelledError:
            return self._object(identifier, "cancelled")
        except Exception as fault:
            # The server lives on; what the fault says may hold anything.
            error = {"code": -32603, "message": f"Internal error ({type(fault).__name__})"}
            return self._object(identifier, "failed") | {"error": error}
        return self._object(identifier, "completed") | {"result": result}

    def cancel(self, identifier: Any) -> bool:
        """Cancel a task that has not begun; say whether there is such a task. One that runs goes on."""
        task = self._tasks.get(identifier) if isinstance(identifier, str) else None
        if task is not None:
            task.work.cancel()
        return task is not None

    def close(self) -> None:
        """Wait until what was begun is done."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)

    def _object(self, identifier: str, status: str) -> dict[str, Any]:
        created = self._tasks[identifier].created
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {
            "taskId": identifier,
            "status": status,
            "createdAt": created,
            "lastUpdatedAt": now,
            "ttlMs": None,
            "pollIntervalMs": POLL_INTERVAL_MS,
        }
