"""`logs.json` of Gemini CLI: the prompts of a person in all sessions of a project, without the answers."""

from __future__ import annotations

from typing import Any, Final

from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import NO_TIME, USER
from onrecord.record.logs.trace import Trace

_MEMBERS: Final = frozenset(["sessionId", "messageId", "type", "message", "timestamp"])


def is_prompt(value: Any) -> bool:
    """Say whether a value is an element of the list."""
    return isinstance(value, dict) and {"sessionId", "messageId", "type", "message"} <= value.keys()


class Prompts:
    """Writes the prompts of sessions that no chat tells of; the others are told already."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def write(self, whole: Record, items: list[Any], pointers: dict[int, list[str]]) -> None:
        """Write the elements, each of which is a record; an empty list is one record itself."""
        trace = self._trace
        told: dict[str, bool] = {}
        if not items:
            trace.session(trace.path.stem or "log").entry(whole).event("message", {"value": []})
        for index, item in enumerate(items):
            record = whole if not index else trace.new_record(item, numbers=pointers.get(index))
            if not index:
                record.numbers = pointers.get(0, [])
            native = item.get("sessionId") if isinstance(item, dict) else None
            if isinstance(native, str) and native not in told:
                told[native] = trace.run.known_session(trace.importer.format, native) is not None
            if isinstance(native, str) and told[native]:
                trace.duplicate(record, "twin", of="a message of the session")
                continue
            self._prompt(record, item, native)

    def _prompt(self, record: Record, item: Any, native: Any) -> None:
        trace = self._trace
        session = trace.session(native if isinstance(native, str) and native else trace.path.stem or "log")
        if not isinstance(item, dict):
            trace.findings.add("odd-shape", record=record.number, action="kept as message")
            session.entry(record).event("message", item)
            return
        entry = session.entry(record, time=item.get("timestamp", NO_TIME))
        if not session.has_begun:
            session.begin(entry, {"sessionId": native})
        rest = {name: member for name, member in item.items() if name not in _MEMBERS}
        rest |= {name: item[name] for name in ("messageId",) if name in item}
        text = item.get("message")
        if item.get("type") == "user" and isinstance(text, str):
            entry.text(text, by=USER, block=1, rest=rest)
        else:
            entry.event("message", item, block=1)
