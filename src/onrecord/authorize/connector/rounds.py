"""Which operation the next round of a call continues: a server asked for input, and the client calls again.

Source: running.md R-07; call-proof.md 5.5, 12; mcp.md 6.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import orjson

from onrecord.authorize import digest as digests
from onrecord.authorize.guard.reading import TOOLS_CALL, Call, Message

MAX_ASKING: Final = 256
"""Calls whose next round is expected. One that was forgotten is a new operation to the authority, and still checked."""

INPUT_REQUIRED: Final = b'"input_required"'


class _Asking(NamedTuple):
    digest: str
    state: str | None
    operation: str


class Rounds:
    """Operations that wait for input, by their call: tool and Action Digest are the same in each round.

    The requestState tells equal calls apart; without a match the newest one goes on, as in the guard.
    """

    def __init__(self) -> None:
        self._asking: deque[_Asking] = deque(maxlen=MAX_ASKING)

    def answered(self, message: Message, call: Call, operation: str | None, line: bytes) -> None:
        """Take note of an answer that may ask for input."""
        if operation is not None and INPUT_REQUIRED in line:
            self._asking.append(_Asking(_digest(message, call), _state_of(line), operation))

    def operation(self, message: Message, call: Call) -> str | None:
        """Return the operation that a call continues, or None if it begins one."""
        if not call.continues:
            return None
        digest = _digest(message, call)
        asking = [one for one in reversed(self._asking) if one.digest == digest]
        found = next(
            (one for one in asking if one.state == call.request_state), asking[0] if asking else None
        )
        if found is None:
            return None
        self._asking.remove(found)
        return found.operation


def _digest(message: Message, call: Call) -> str:
    return digests.action_digest(TOOLS_CALL, call.name, call.arguments, facts=message.facts)


def _state_of(line: bytes) -> str | None:
    try:
        state = orjson.loads(line)["result"]["requestState"]
    except (ValueError, KeyError, TypeError):
        return None
    return state if type(state) is str else None
