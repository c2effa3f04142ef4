"""What the head of a story says: who takes part, what came before, what it amounts to, what was added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from onrecord.record.calls import Call
from onrecord.record.story.entries import milliseconds
from onrecord.record.story.timeline import Timeline, objects
from onrecord.record.story.words import party_name, party_of
from onrecord.record.vcon.bodies import mediatype_of
from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.references import amended_from, redacted_from
from onrecord.record.vcon.views import index_of, text_of

_ARRAYS: Final = ("parties", "sessions", "dialog", "events", "attachments", "analysis")
_REDACTABLE: Final = ("dialog", "events", "attachments", "analysis")
_TOKENS: Final = ("input", "output", "cached", "reasoning", "total")
_LARGEST_COUNT: Final = 2**53


def party_lines(members: Mapping[str, Any]) -> Iterator[str]:
    """Yield each party with its type, and with its model if it is an agent."""
    for index, party in enumerate(objects(members, "parties")):
        own = party_name(party, index)
        if type(party) is not dict:
            yield own
            continue
        kind, meta = text_of(party.get("type")), party.get("agent_meta")
        words = f"{own} ({kind})" if kind else own
        if type(meta) is dict:
            model, provider = text_of(meta.get("model_id")), text_of(meta.get("model_provider"))
            words += f" · {model or 'unknown model'}" + (f" by {provider}" if provider else "")
        yield words


def prior(members: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the reference to the version before this one, under whichever name it stands."""
    for kind, found in (("redacted", redacted_from(members)), ("amended", amended_from(members))):
        if found is not None:
            return {"kind": kind, "uuid": found.uuid, "type": found.type}
    return None


def agent_name(agent: Any) -> str | None:
    """Return name and version of the recording agent."""
    if type(agent) is not dict or type(agent.get("name")) is not str:
        return None
    version = agent.get("version")
    return f"{agent['name']} {version}" if type(version) is str else str(agent["name"])


def attachments(members: Mapping[str, Any], parties: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what each attachment says of itself."""
    for index, attachment in enumerate(objects(members, "attachments")):
        if type(attachment) is dict and attachment:
            party = index_of(attachment.get("party"))
            yield {
                "attachment": index,
                "start": text_of(attachment.get("start")),
                "purpose": text_of(attachment.get("purpose")) or text_of(attachment.get("type")),
                "filename": text_of(attachment.get("filename")),
                "mediatype": mediatype_of(attachment),
                "who": None if party is None else party_of(parties, party),
            }


def analyses(members: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what each analysis says of itself."""
    for index, analysis in enumerate(objects(members, "analysis")):
        if type(analysis) is dict and analysis:
            own = ("type", "vendor", "product", "schema")
            yield {"analysis": index, **{member: text_of(analysis.get(member)) for member in own}}


def totals(
    dialogs: Sequence[Any],
    calls: Sequence[Call],
    timeline: Timeline,
    instants: Instants,
    *,
    events: Sequence[Any] = (),
) -> dict[str, Any]:
    """Count messages, calls by outcome (each call once, whichever extensions recorded it), and tokens.

    Tokens are those of responses, on their texts or in `token-count` events (native-logs.md D-LOG-02, D-LOG-03). Only
    where none are told those of turns count, and only without these those of sessions.
    """
    messages = sum(type(dialog) is dict and dialog.get("type") == "text" for dialog in dialogs)
    used = [dialog.get("token_usage") for dialog in dialogs if type(dialog) is dict]
    counted = _token_counts(events)
    used = [own for own in (*used, *counted["response"]) if type(own) is dict]
    usage, cost = _tokens(used or counted["turn"] or counted["session"])
    return {
        "messages": messages,
        "tool_calls": len(calls),
        "outcomes": dict(Counter(call.outcome for call in calls)),
        "token_usage": {**usage, **({"cost": cost} if cost else {})},
        "span_ms": _span_ms(dialogs, timeline, instants),
    }


def _token_counts(events: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the usages in `token-count` events by what they are about."""
    found: dict[str, list[Any]] = {"response": [], "turn": [], "session": []}
    for event in events:
        data = event.get("data") if type(event) is dict and event.get("event_type") == "token-count" else None
        if type(data) is dict and type(data.get("usage")) is dict:
            scope = data.get("scope")
            if type(scope) is str and scope in found:
                found[scope].append(data["usage"])
    return found


def _tokens(used: Sequence[Any]) -> tuple[Counter[str], float]:
    usage: Counter[str] = Counter()
    cost = 0.0
    for own in used:
        for member in _TOKENS:
            value = own.get(member)
            if type(value) is int and 0 <= value <= _LARGEST_COUNT:
                usage[member] += value
        if type(own.get("cost")) in (int, float) and 0 <= own["cost"] <= _LARGEST_COUNT:
            cost += own["cost"]
    return usage, cost


def _span_ms(dialogs: Sequence[Any], timeline: Timeline, instants: Instants) -> int | None:
    """Return the time from the first dated entry to the last, for people who want to know how long it was."""
    dated = [ns for ns in timeline.dated if ns is not None]
    for dialog in dialogs:
        ns = instants.ns(dialog.get("start")) if type(dialog) is dict else None
        if ns is not None:
            dated += [ns, ns + (milliseconds(dialog.get("duration")) or 0) * 1_000_000]
    return (max(dated) - min(dated)) // 1_000_000 if dated else None


def removed(members: Mapping[str, Any]) -> dict[str, int]:
    """Return how many placeholders redaction left in each array."""
    return _counted(members, _REDACTABLE, lambda element: element == {})


def unreadable(members: Mapping[str, Any]) -> dict[str, int]:
    """Return how many elements of each array are no objects."""
    return _counted(members, _ARRAYS, lambda element: type(element) is not dict)


def _counted(
    members: Mapping[str, Any], arrays: Sequence[str], is_meant: Callable[[Any], bool]
) -> dict[str, int]:
    counts = {array: sum(map(is_meant, objects(members, array))) for array in arrays}
    return {array: number for array, number in counts.items() if number}
