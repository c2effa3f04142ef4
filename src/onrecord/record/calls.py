"""Tool calls of a vCon, each counted once: as the model saw it (ai_agent), as the host did (tool-invocation), or both.

    >>> calls = read_calls([{"type": "tool-call", "time": "2026-11-02T12:00:01Z", "session": 0, "party": 1,
    ...     "tool_name": "now", "input": {}, "call_id": "c1"}])
    >>> calls[0].outcome
    'unfinished'

Source: record.md 5.1 to 5.3, D-41, D-67 to D-69.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.operations import OperationSummary
from onrecord.record.vcon.event_types import MERGED, kind_of
from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.views import text_of


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. `call` and `result` are the ai_agent events, `operation` is what the host recorded of it."""

    call_id: str | None
    call: int | None
    result: int | None
    ok: bool | None
    operation: OperationSummary | None = None

    @property
    def outcome(self) -> str:
        """Return the outcome of the operation where there is one, else what the model's result says."""
        if self.operation is not None:
            return self.operation.outcome
        if self.ok is None:
            return "unfinished"
        return "completed" if self.ok else "failed"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of `show --json`."""
        document: dict[str, Any] = {
            "call_id": self.call_id,
            "call": self.call,
            "result": self.result,
            "ok": self.ok,
        }
        if self.operation is not None:
            document["operation_id"] = self.operation.operation_id
        return document


def read_calls(
    events: Sequence[Any],
    operations: Sequence[OperationSummary] = (),
    *,
    extensions: Collection[str] = (),
    instants: Instants | None = None,
) -> tuple[Call, ...]:
    """Return every tool call once: those the model made by time, then the operations that it knows nothing of.

    A result belongs to the call of its call_id; where an id occurs more than once, the first result to the first
    call and so on. A call and an operation are one if call_id equals operation_id, or if one result names both.
    """
    instants = instants or Instants()
    listed = frozenset(extensions)
    made: list[tuple[int, int, str | None]] = []
    results: dict[str, list[tuple[int, int]]] = defaultdict(list)
    links: dict[str, str] = {}
    lone: list[int] = []
    last = 0
    for index, event in enumerate(events):
        if type(event) is not dict:
            continue
        ns = instants.ns(event.get("time"))
        last = last if ns is None else ns
        name = event.get("type")
        if name == "tool-call":
            made.append((last, index, text_of(event.get("call_id"))))
        elif name == "tool-result":
            kind = kind_of(event, listed)
            if kind in (AI_AGENT_EXTENSION, MERGED):
                call_id = text_of(event.get("call_id"))
                if kind == MERGED:
                    operation_id = text_of(event.get("operation_id"))
                    if call_id is None:
                        call_id = operation_id
                    elif operation_id is not None:
                        links.setdefault(call_id, operation_id)
                if call_id is None:
                    lone.append(index)
                else:
                    results[call_id].append((last, index))
    known = {operation.operation_id: operation for operation in operations}
    linked = {call_id: name for call_id, name in links.items() if call_id not in known}
    return _join(events, sorted(made, key=lambda entry: entry[:2]), results, lone, known, linked)


def _join(
    events: Sequence[Any],
    made: Sequence[tuple[int, int, str | None]],
    results: Mapping[str, list[tuple[int, int]]],
    lone: Sequence[int],
    known: dict[str, OperationSummary],
    linked: Mapping[str, str],
) -> tuple[Call, ...]:
    """Return the calls; operations are taken out of `known`. `linked` names those of another id than their call's."""
    waiting = {call_id: sorted(found, reverse=True) for call_id, found in results.items()}
    calls: list[Call] = []
    for _, index, call_id in made:
        found = waiting.get(call_id) if call_id is not None else None
        result = found.pop()[1] if found else None
        operation = known.pop(linked.get(call_id, call_id), None) if call_id is not None else None
        calls.append(Call(call_id, index, result, _ok(events, result), operation))
    for call_id, found in waiting.items():
        for _, result in reversed(found):
            operation = known.pop(linked.get(call_id, call_id), None)
            calls.append(Call(call_id, None, result, _ok(events, result), operation))
    calls += [Call(None, None, result, _ok(events, result)) for result in lone]
    calls += [Call(None, None, None, None, operation) for operation in known.values()]
    return tuple(calls)


def _ok(events: Sequence[Any], result: int | None) -> bool | None:
    if result is None:
        return None
    event = events[result]
    return event.get("is_error") is not True and event.get("status") != "error"
