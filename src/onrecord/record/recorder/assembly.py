"""From the correlated entries of one session to the bytes of a vCon.

Source: running.md 9; record.md 2 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from onrecord import __version__
from onrecord.base.dates import format_date
from onrecord.base.namespaces import AI_AGENT_EXTENSION, TOOL_INVOCATION_EXTENSION
from onrecord.record.recorder.correlation import Correlation, EventDraft
from onrecord.record.recorder.directory import Directory
from onrecord.record.recorder.naming import server_name
from onrecord.record.recorder.session import RecordedGap

RECORDING_AGENT: Final = "onrecord"
CREDENTIALS_REPLACED: Final = "credentials-replaced"
RECORDING_GAP: Final = "recording-gap"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

LoadContent = Callable[[EventDraft], bytes | None]
"""Returns the JSON text of an event's arguments or content, or None when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What a vCon says of its session. Times in ms since 1970."""

    id: str
    uid: int
    caller: str | None
    uuid: str
    opened_ms: int
    signed_ms: int
    gaps: tuple[RecordedGap, ...] = ()
    credentials_replaced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The document of a vCon, and the servers whose own name had to be marked."""

    document: dict[str, Any]
    marked_servers: tuple[str, ...]


def assemble(
    facts: SessionFacts, correlation: Correlation, *, directory: Directory, load_content: LoadContent
) -> Assembled:
    """Return the vCon of a session."""
    names = _Names(directory, correlation.server_names)
    events = [_with_content(_event(draft, names), draft, load_content) for draft in correlation.events]
    system = [*_gap_events(facts, correlation), *_credential_events(facts, correlation)]
    times = [event.time_ms for event in correlation.events] + [moment for moment, _ in system]
    start = min([facts.opened_ms, *times])
    end = max([correlation.last_ms if correlation.last_ms is not None else start, start, *times])
    moments = [event.time_ms for event in correlation.events]
    party: dict[str, Any] = {"type": "bot", "name": facts.caller or f"uid-{facts.uid}"}
    model = directory.agent(facts.caller) if facts.caller is not None else None
    if model is not None:
        party["agent_meta"] = {"model_id": model.model_id, "model_provider": model.model_provider}
    document: dict[str, Any] = {
        "uuid": facts.uuid,
        "created_at": date_of(facts.opened_ms),
        "updated_at": date_of(facts.signed_ms),
        "extensions": [AI_AGENT_EXTENSION, TOOL_INVOCATION_EXTENSION],
        "recording_agent": {"name": RECORDING_AGENT, "version": __version__},
        "parties": [party],
        "sessions": [
            {
                "start": date_of(start),
                "duration": _seconds(end - start),
                "parties": [0],
                "agent_session_id": facts.id,
            }
        ],
        "events": _merged(events, moments, system),
    }
    return Assembled(document=document, marked_servers=names.marked)


class _Names:
    """One value per server and vCon."""

    def __init__(self, directory: Directory, own_names: Mapping[str, str]) -> None:
        self._directory = directory
        self._own_names = own_names
        self._known: dict[str, str] = {}
        self._marked: list[str] = []

    def of(self, server_id: str) -> str:
        name = self._known.get(server_id)
        if name is None:
            found = server_name(
                server_id,
                ti_server=self._directory.ti_server(server_id),
                own_name=self._own_names.get(server_id),
            )
            name = self._known[server_id] = found.text
            if found.is_prefixed:
                self._marked.append(server_id)
        return name

    @property
    def marked(self) -> tuple[str, ...]:
        return tuple(self._marked)


def _event(draft: EventDraft, names: _Names) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": draft.type,
        "time": date_of(draft.time_ms),
        "sessions": [0],
        "party": 0,
        "operation_id": draft.operation_id,
        "attempt": draft.attempt,
    }
    if draft.server is not None:
        event["server"] = names.of(draft.server)
        event["tool"] = draft.tool
    if draft.decision is not None:
        event["decision"] = draft.decision
        event["policy_life"] = "once"
        event["operation"] = "tool-invocation"
        if draft.reason is not None:
            event["reason"] = draft.reason
    return event


def _with_content(event: dict[str, Any], draft: EventDraft, load_content: LoadContent) -> dict[str, Any]:
    if draft.decision is None and draft.may_hold_arguments:
        raw = load_content(draft)
        if raw is not None:
            event |= {"body": orjson.loads(raw), "encoding": "json", "mediatype": "application/json"}
    return event


def _gap_events(facts: SessionFacts, correlation: Correlation) -> list[tuple[int, dict[str, Any]]]:
    found: list[tuple[int, dict[str, Any]]] = []
    for gap in facts.gaps:
        data: dict[str, Any] = {"from": gap.start, "to": gap.end, "cause": gap.cause}
        if gap.is_filled:
            data["filled"] = True
        found.append((max(facts.opened_ms, ms_of(gap.start)), _system_event(RECORDING_GAP, data)))
    for entry, time_ms in correlation.gaps:
        moment = date_of(time_ms)
        data = {"from": entry.start or moment, "to": entry.end or moment, "cause": entry.cause}
        if entry.entries:
            data["entries"] = entry.entries
        found.append((time_ms, _system_event(RECORDING_GAP, data)))
    return [(moment, event | {"time": date_of(moment)}) for moment, event in found]


def _credential_events(facts: SessionFacts, correlation: Correlation) -> list[tuple[int, dict[str, Any]]]:
    if not facts.credentials_replaced:
        return []
    moment = max((event.time_ms for event in correlation.events), default=facts.opened_ms)
    event = _system_event(CREDENTIALS_REPLACED, {"count": facts.credentials_replaced})
    return [(moment, event | {"time": date_of(moment)})]


def _system_event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": "system-event", "session": 0, "party": 0, "event_type": kind, "data": data}


def _merged(
    events: Sequence[dict[str, Any]], moments: Sequence[int], system: list[tuple[int, dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return all events in time order; at the same time the system events come last."""
    merged = [*zip(moments, [0] * len(events), events, strict=True), *((m, 1, e) for m, e in system)]
    merged.sort(key=lambda one: one[:2])
    return [event for _, _, event in merged]


def date_of(ms: int) -> str:
    """Return ms since 1970 as a vCon date."""
    return format_date(_EPOCH + timedelta(milliseconds=ms))


def ms_of(text: str) -> int:
    """Return a date as ms since 1970."""
    from onrecord.base.dates import epoch_ns, parse_date

    return epoch_ns(parse_date(text)) // 1_000_000


def _seconds(ms: int) -> int | float:
    return ms // 1000 if ms % 1000 == 0 else ms / 1000
