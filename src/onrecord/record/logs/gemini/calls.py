"""The tool calls of a session: for each the richest version of call and result that the log has shown."""

from __future__ import annotations

from typing import Any

import orjson

from onrecord.record.logs.gemini.parts import is_masked
from onrecord.record.logs.gemini.shelf import Place, Shelf


class Call:
    """One call. `is_recorded` says that a `toolCalls` element told of it, not only a part of a message.

    `is_id_reused` says that another call of the session has the same id: parts cannot tell which of them they mean.
    """

    __slots__ = (
        "_input_size",
        "_last",
        "_rank",
        "_said",
        "call_id",
        "call_record",
        "is_call_written",
        "is_id_reused",
        "is_recorded",
        "is_result_written",
        "result",
        "result_record",
        "versions",
    )

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.versions: list[Place] = []
        self.call_record = 0
        self.result: Place | None = None
        self.result_record = 0
        self.is_recorded = False
        self.is_id_reused = False
        self.is_call_written = False
        self.is_result_written = False
        self._last = 0
        self._said = 0
        self._input_size = -1
        self._rank = (False, -1)

    def saw_call(self, shelf: Shelf, native: dict[str, Any], *, record: int, is_recorded: bool) -> None:
        """Take a version of the call, without its result: newer members win, but for shorter arguments."""
        size = len(orjson.dumps(native.get("args")))
        if is_recorded:
            self._said = _said(native)
        if self.is_recorded and not is_recorded:
            # A part says no more than the element, unless its arguments are longer.
            if size <= self._input_size:
                return
            native = {"args": native.get("args")}
        self.is_recorded = self.is_recorded or is_recorded
        if size < self._input_size:
            native = {name: value for name, value in native.items() if name != "args"}
        text = orjson.dumps(native)
        if self.versions and hash(text) == self._last:
            return
        self.versions.append(shelf.put_text(text))
        self._last = hash(text)
        self.call_record = record
        self._input_size = max(size, self._input_size)

    def is_another(self, native: dict[str, Any]) -> bool:
        """Say whether an element of `toolCalls` with the same id tells of another tool or other arguments."""
        return self.is_recorded and _said(native) != self._said

    def saw_result(self, shelf: Shelf, output: Any, *, record: int) -> bool:
        """Take a version of the result if it is richer: unmasked before masked, longer before shorter.

        Says whether an earlier version was richer.
        """
        text = orjson.dumps(output)
        rank = (not is_masked(output), len(text))
        if rank > self._rank:
            self.result = shelf.put_text(text)
            self.result_record = record
            self._rank = rank
            return False
        return rank < self._rank


def _said(native: dict[str, Any]) -> int:
    return hash((orjson.dumps(native.get("name")), orjson.dumps(native.get("args"))))
