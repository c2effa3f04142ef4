"""Usage of model responses: each counts once, however many lines repeat it and in whatever order they come.

Up to six lines share one response and repeat its usage with growing numbers; the maximum of each member holds.

Source: native-logs.md D-LOG-02, D-LOG-03, 4.1, B-3, B-4.
"""

from __future__ import annotations

from typing import Any

import orjson

from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import Entry, NativeSession
from onrecord.record.logs.spool import DIALOG
from onrecord.record.logs.trace import Trace
from onrecord.record.logs.usage import claude, merge_max


class _Response:
    """A response whose lines may go on."""

    __slots__ = ("cost", "entry", "id", "is_kept", "key", "native", "request", "text")

    def __init__(
        self, key: int | None, entry: Entry, native: dict[str, Any], cost: Any, id: Any, request: Any
    ) -> None:
        self.key = key
        self.entry = entry
        self.native = native
        self.cost = cost
        self.id = id
        self.request = request if type(request) is str else None
        self.text: int | None = None
        self.is_kept = False


class Responses:
    """The responses of one source. Of each session the current one is held, of the others only where their usage is."""

    def __init__(self, trace: Trace, format: str) -> None:
        self._trace = trace
        self._current: dict[int, _Response] = {}
        self._closed: dict[int, int] = {}
        self._reopened: dict[int, _Response] = {}
        self._elsewhere: dict[int, int] = trace.run.seen(f"{format}/responses")

    def line(
        self,
        entry: Entry,
        *,
        id: Any,
        request: Any,
        native: dict[str, Any],
        cost: Any = None,
        text: int | None = None,
    ) -> None:
        """Note a line with usage: `text` is its first Dialog, `id` and `request` name the response."""
        index = entry.session.index
        key = _key(entry.session, id, request)
        current = self._current.get(index)
        if current is None or key is None or current.key != key:
            if current is not None:
                self._close(current)
            current = self._reopened.get(key) if key is not None else None
            if current is None:
                current = self._begin(key, _Response(key, entry, native, cost, id, request))
            else:
                self._merge(current, native, cost)
            if current.is_kept:
                self._current.pop(index, None)
            else:
                self._current[index] = current
        else:
            self._merge(current, native, cost)
        if current.text is None:
            current.text = text
        current.entry = entry
        # The record's content is not needed any more, and may be large.
        whole = entry.record
        entry.record = Record(whole.number, {}, whole.line, whole.offset, whole.size)

    def belongs(self, session: NativeSession, id: Any, request: Any, text: int) -> None:
        """Note a line without usage: its first Dialog may carry that of its response."""
        current = self._current.get(session.index)
        if current is not None and current.text is None and current.key == _key(session, id, request):
            current.text = text

    def finish(self) -> None:
        """Write what is still open."""
        for response in [*self._current.values(), *self._reopened.values()]:
            self._close(response, is_end=True)
        self._current.clear()
        self._reopened.clear()

    def _begin(self, key: int | None, response: _Response) -> _Response:
        if key is not None and key in self._closed:
            response.is_kept = True
            self._reopened[key] = response
            self._undo(response, self._closed.pop(key))
        return response

    def _merge(self, response: _Response, native: dict[str, Any], cost: Any) -> None:
        if native != response.native:
            response.native = merge_max([response.native, native])
        if type(cost) in (int, float) and (type(response.cost) not in (int, float) or cost > response.cost):
            response.cost = cost

    def _close(self, response: _Response, *, is_end: bool = False) -> None:
        if response.is_kept and not is_end:
            return
        entry = response.entry
        session = entry.session
        usage = claude(response.native, cost=response.cost)
        is_counted = not usage.is_empty
        if is_counted and self._is_told_elsewhere(response):
            is_counted = False
            self._trace.findings.add(
                "usage-repeated", record=entry.record.number, action="kept, counted where it came first"
            )
        if not is_counted:
            number = entry.token_count(
                "response", usage, response.native, response_id=response.id, counted=False
            )
        elif response.text is not None:
            session.attach_usage(response.text, usage, response.native)
            number = response.text
        else:
            number = entry.token_count("response", usage, response.native, response_id=response.id)
        if response.key is not None:
            self._closed[response.key] = number

    def _is_told_elsewhere(self, response: _Response) -> bool:
        """Say whether the same answer stands in another session or file of this import, where it is counted."""
        if response.key is None:
            return False
        key, mark = self._mark(response)
        return self._elsewhere.setdefault(key, mark) != mark

    def _mark(self, response: _Response) -> tuple[int, int]:
        """Return what a response is remembered by over the run, and the source and session that count it."""
        return hash((response.id, response.request)), (
            self._trace.file_number + 1
        ) << 32 | response.entry.session.index

    def _undo(self, response: _Response, number: int) -> None:
        """Take back the usage of a response that goes on after others, to count it at the end."""
        spool, session = self._trace.run.spool, response.entry.session
        members = orjson.loads(b"{" + spool.read(number).head + b"}")
        if spool.kinds[number] == DIALOG:
            response.text = number
            told = members.get("token_usage") or {}
            before = told.get("native")
        else:
            session.drop_event(number)
            told = members["data"].get("usage") or {}
            before = members["data"].get("native")
        usage = claude(before)
        if isinstance(before, dict):
            self._merge(response, before, told.get("cost"))
        sums = session.usage.get("response")
        key, mark = self._mark(response)
        if sums is not None and not usage.is_empty and self._elsewhere.get(key) == mark:
            sums.count -= 1
            sums.input -= usage.input or 0
            sums.output -= usage.output or 0
            sums.cached -= usage.cached or 0
            sums.reasoning -= usage.reasoning or 0
            sums.total -= usage.total or 0


def _key(session: NativeSession, id: Any, request: Any) -> int | None:
    """Return what tells a response from others; one without an id stands alone."""
    if type(id) is not str or not id:
        return None
    return hash((session.index, id, request if type(request) is str else None))
