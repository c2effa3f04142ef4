"""What the lines of a story say about sessions, calls and what stands at its head: texts with their styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.story.model import OperationStory, SessionStory
from onrecord.record.story.rows import STATE_STYLES, Part
from onrecord.record.story.words import SHOWN_NAMES, count, length, moment, name, names, tokens

_PLURALS: Final = {"party": "parties", "analysis": "analyses"}
_SINGULARS: Final = {"parties": "party", "analysis": "analysis", "dialog": "dialog"}


def many(word: str) -> str:
    """Return the plural of what is listed."""
    return _PLURALS.get(word, f"{word}s")


def one(array: str) -> str:
    """Return what an element of an array is called."""
    return _SINGULARS.get(array, array.removesuffix("s"))


def prior_words(prior: Mapping[str, Any]) -> list[str]:
    """Return which vCon this one is a copy of, and of which kind."""
    kind = f" ({name(prior['type'])})" if prior["type"] else ""
    source = f" of {name(prior['uuid'])}" if prior["uuid"] else ""
    return [f"{prior['kind']}{kind} copy{source}"]


def totals_words(totals: Mapping[str, Any]) -> list[str]:
    """Return what a vCon amounts to."""
    parts = []
    if totals["messages"]:
        parts.append(count(totals["messages"], "message"))
    if totals["tool_calls"]:
        outcomes = ", ".join(
            f"{number:,} {outcome}"
            for outcome, number in sorted(totals["outcomes"].items(), key=lambda entry: (-entry[1], entry[0]))
        )
        parts.append(f"{count(totals['tool_calls'], 'tool call')}: {outcomes}")
    if totals["span_ms"]:
        parts.append(f"over {length(totals['span_ms'])}")
    usage = tokens(totals["token_usage"])
    if usage:
        parts.append(usage)
    return parts or ["no message and no tool call"]


def session_title(session: SessionStory) -> str:
    """Return what a session is called."""
    if session.index is not None:
        return f"Session {session.index}"
    return "Conversation" if session.is_virtual else "In no session"


def session_facts(session: SessionStory) -> list[Part]:
    """Return when a session was, with whom, and how it belongs to others."""
    if session.index is None and not session.is_virtual:
        return [
            (
                count(len(session.items), "entry")
                if len(session.items) == 1
                else f"{len(session.items):,} entries",
                "",
            )
        ]
    facts: list[Part] = [(moment(session.start) if session.start else "without start", "")]
    if session.is_virtual:
        facts.append(("the file has no sessions", "dim"))
    if session.duration is not None:
        facts.append((length(session.duration * 1000), ""))
    facts += [(name(text), "dim") for text in (session.format, session.agent_session_id) if text]
    for index, kind in session.references[:SHOWN_NAMES]:
        words = {"child": f"contains session {index}", "precursor": f"after session {index}"}
        facts.append((words.get(kind or "", f"{name(kind or 'to')} session {index}"), "dim"))
    if session.parent is not None:
        below = f", below {name(session.spawned_by)}" if session.spawned_by else ""
        facts.append((f"within session {session.parent}{below}", "dim"))
    if session.names and not session.is_virtual:
        facts.append((names(session.names), "dim"))
    return facts


def operation_facts(operation: OperationStory) -> list[Part]:
    """Return what was called, how it ended, what policy said and how long it took."""
    summary = operation.summary
    parts: list[Part] = [
        (f"{name(summary.server or 'unknown')} › {name(summary.tool or 'unknown')}", "bold"),
        (summary.outcome, STATE_STYLES.get(summary.outcome, "")),
    ]
    if summary.decision is None:
        parts.append(("no decision observed", "dim"))
    else:
        decision = summary.decision
        parts.append((f"{decision} ({summary.decision_source})", STATE_STYLES.get(decision, "")))
    if len(summary.attempts) > 1:
        parts.append((count(len(summary.attempts), "attempt"), ""))
    if operation.took_ms is not None:
        parts.append((length(operation.took_ms), ""))
    return parts


def attachment_words(entry: Mapping[str, Any]) -> str:
    """Return what an attachment is."""
    parts = [entry["filename"] or "without name", entry["purpose"], entry["mediatype"]]
    who = f" from {name(entry['who'])}" if entry["who"] else ""
    return " · ".join(name(part) for part in parts if part) + who


def analysis_words(entry: Mapping[str, Any]) -> str:
    """Return what an analysis is."""
    made = " ".join(name(entry[member]) for member in ("vendor", "product") if entry[member])
    return name(entry["type"] or "without type") + (f" by {made}" if made else "")
