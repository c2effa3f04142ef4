"""One Codex session while its rollout is read: what the records before say about the next one."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.codex.edits import Edits
from onrecord.record.logs.codex.forks import Origin
from onrecord.record.logs.codex.seen import size_of, unseen
from onrecord.record.logs.codex.survey import Survey
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import AGENT, NO_TIME, PARENT, USER, Entry, NativeSession
from onrecord.record.logs.trace import Trace

MAX_HELD: Final = 8 << 20
"""Bytes of outputs of end events that wait for their results; further ends are events of their own (R-20)."""

_ENVELOPE = ("timestamp", "type", "payload")


class Line:
    """One record: its payload, its time, and the members of the envelope that have no home."""

    __slots__ = ("more", "payload", "record", "time")

    def __init__(self, record: Record, payload: Mapping[str, Any], *, is_bare: bool) -> None:
        self.record = record
        self.payload = payload
        value = record.value
        if is_bare:
            self.time: Any = value.get("timestamp", NO_TIME)
            self.more: dict[str, Any] = {}
        else:
            self.time = value.get("timestamp")
            self.more = (
                {name: member for name, member in value.items() if name not in _ENVELOPE}
                if len(value) > len(_ENVELOPE)
                else {}
            )

    def rest(self, known: frozenset[str]) -> dict[str, Any]:
        """Return the members without a home, those of the envelope included."""
        rest = {name: value for name, value in self.payload.items() if name not in known}
        for name, value in self.more.items():
            if name in rest:
                rest.setdefault("envelope", {})[name] = value
            else:
                rest[name] = value
        return rest


class Thread:
    """A session and where it stands."""

    def __init__(self, trace: Trace, session: NativeSession, found: Survey, origin: Origin) -> None:
        self.trace = trace
        self.session = session
        self.found = found
        self.origin = origin
        self.edits = Edits(trace, session)
        self.model: str | None = None
        self.first_text: int | None = None
        """First text of the response that goes on; it gets the usage."""
        self.last_text: str | None = None
        """What the agent said last."""
        self.total: Mapping[str, Any] | None = None
        """Usage of the whole session as told last."""
        self.responses: set[int] = set()
        """Hashes of the ids of responses whose usage was told."""
        self.limits: int | None = None
        """Hash of the rate limits as told last."""
        self.settings: dict[str, Any] | None = None
        """The turn context before."""
        self._supplements: dict[int, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {}
        self._held = 0
        self._shown: dict[int, frozenset[int]] = {}
        self.results: dict[int, int] = {}
        """Objects of results that an end event may still supplement."""
        self.origins: dict[int, dict[str, str]] = {}
        """Where calls went that were not the host's."""
        self.ended: dict[int, tuple[str, int]] = {}
        """Type and hash of the output of the first end of calls that have no output of their own."""
        self._turns = array("q")
        self._discarded: list[tuple[int, int]] = []
        self._is_opened = False

    # -- writing

    def entry(self, line: Line, id: Any = None) -> Entry:
        """Begin what a record becomes."""
        return self.session.entry(line.record, id=id, time=line.time)

    def told(self, line: Line, event_type: str, data: Any = None, **options: Any) -> int:
        """Write a system-event with the record's payload."""
        return self.entry(line, line.payload.get("id")).event(
            event_type, line.payload if data is None else data, rest=line.more, **options
        )

    def unknown(self, line: Line, event_type: str) -> None:
        """Keep a record of a type that nobody knows."""
        self.trace.findings.add(
            "unknown-record-type",
            name=event_type[:64],
            record=line.record.number,
            action="kept as system-event",
        )
        self.entry(line).event(event_type, line.record.value)

    def odd(self, line: Line, event_type: str) -> None:
        """Keep a record that has a member of the wrong kind."""
        self.trace.findings.add("odd-shape", record=line.record.number, action="kept as system-event")
        self.entry(line).event(event_type, line.record.value)

    def twin(self, line: Line, of: str) -> None:
        """Account a record as the twin of another one."""
        self.trace.duplicate(line.record, "twin", of=of)

    # -- what was said

    def said_by_user(self, entry: Entry, text: str, block: int, **options: Any) -> None:
        """Write a text that the program did not make; the first one of a sub-agent is its parent's."""
        by = PARENT if self.session.is_child and not self._is_opened else USER
        number = entry.text(text, by=by, block=block, **options)
        if number is None:
            return
        self._is_opened = True
        if not self._turns or self._record_of(self._turns[-1]) != entry.record.number:
            self._turns.append(number)

    def said_by_agent(self, entry: Entry, text: str, block: int, **options: Any) -> None:
        """Write a text of the session's own agent."""
        number = entry.text(text, by=AGENT, block=block, model=self.model, **options)
        if number is not None:
            self.last_text = text
            if self.first_text is None:
                self.first_text = number

    def _record_of(self, number: int) -> int:
        return self.trace.run.spool.entries[number]

    def discard(self, turns: int) -> int:
        """Flag everything from the n-th last turn of the user on as superseded; return how many turns were missing."""
        taken = min(turns, len(self._turns))
        if taken > 0:
            start = self._turns[-taken]
            del self._turns[-taken:]
            self._flag(start)
        return turns - taken

    def _flag(self, start: int) -> None:
        """Flag the session's objects from a number on; what was flagged before is not looked at again."""
        spool, index = self.trace.run.spool, self.session.index
        end = stop = len(spool)
        while True:
            before = self._discarded.pop() if self._discarded else (-1, -1)
            for number in range(max(start, before[1]), stop):
                if spool.is_object(number) and spool.sessions[number] == index:
                    spool.flag(number, "superseded")
            if before[0] < 0:
                break
            if before[0] <= start:
                self._discarded.append(before)
                break
            stop = before[0]
        if self._discarded and self._discarded[-1][1] >= start:
            start = self._discarded.pop()[0]
        self._discarded.append((start, end))

    # -- results

    def show(self, mark: int, shown: frozenset[int]) -> None:
        """Note by its hashes the output that stands in a result; ends of the call may repeat it."""
        self._shown.setdefault(mark, shown)

    def supplement(self, mark: int, name: str, details: dict[str, Any], outputs: Mapping[str, Any]) -> bool:
        """Put what an end event says into the rest of the result, which may come later.

        Of its outputs those are kept that the model did not see. False: there is too much to be held until then.
        """
        number = self.results.get(mark)
        if number is None:
            size = size_of(outputs)
            if self._held + size > MAX_HELD:
                return False
            if name not in self._supplements.setdefault(mark, {}):
                self._supplements[mark][name] = details, dict(outputs)
                self._held += size
            return True
        details = details | unseen(outputs, self._shown.get(mark, frozenset()))
        if details and self.trace.run.options.with_rest:
            self.trace.run.spool.late(number, None, {"rest": {name: self.trace.shown(details)}})
        return True

    def supplements_of(self, mark: int) -> dict[str, Any]:
        """Return what end events said about a result before it came."""
        found: dict[str, Any] = {}
        for name, (details, outputs) in self._supplements.pop(mark, {}).items():
            self._held -= size_of(outputs)
            news = unseen(outputs, self._shown.get(mark, frozenset()))
            if details or news:
                found[name] = details | news
        return found

    def finish(self) -> None:
        """Tell what is only known at the end."""
        self.edits.finish()
