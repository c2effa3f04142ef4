"""Which requests of a server a client may answer: those that have reached it, each once.

An answer that nobody asked for is input too. Ids of servers are easy to guess, so a client could send answers ahead of
a question that the guard answers itself, and win the race for an approved call.

Source: call-proof.md 6.6.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from onrecord.authorize.guard.reading import Id, Message

MAX_QUESTIONS: Final = 4096
"""Requests of one server that wait for their client. Beyond it the oldest is forgotten, and its answer dropped."""


class Questions:
    """The open requests of the server at the other end of one connection."""

    def __init__(self) -> None:
        self._open: OrderedDict[Id, None] = OrderedDict()

    def asked(self, message: dict[str, Any]) -> None:
        """Take note of a request, or notification, that goes to the client."""
        request_id = message.get("id")
        if type(request_id) is not int and type(request_id) is not str:
            return
        self._open[request_id] = None
        if len(self._open) > MAX_QUESTIONS:
            self._open.popitem(last=False)

    def answered(self, message: Message) -> bool:
        """Take an answer of the client; say whether it may go on. One without an id says nothing about a request."""
        if message.id is None:
            return True
        if message.id not in self._open:
            return False
        del self._open[message.id]
        return True
