"""What ai_agent says beyond its tables: entry trees, pairs of call and result, who acts, files and their ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.checks.context import Context, dialog_parties, event_sessions, indices
from onrecord.record.checks.graphs import components
from onrecord.record.checks.values import is_uint
from onrecord.record.vcon.event_types import MERGED, kind_of

Entry = tuple[int, str]

MAX_ABOVE: Final = 64
"""Sessions above a session that a parent is looked for in. A sub-agent has one; where a file names more, an entry that
is in none of the first ones is not called missing."""

_HEX: Final = re.compile(r"[0-9a-f]+", re.ASCII)
_HASH_DIGITS: Final = {"sha-256": 64, "sha-384": 96, "sha-512": 128}
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_HOME: Final = re.compile(r"(?:/home/|/Users/|[A-Za-z]:[\\/](?i:Users)[\\/])[^/\\]+")


def check_ai_agent(context: Context) -> None:
    """Check the relations of ai_agent. A vCon that does not use it costs nothing here."""
    if AI_AGENT_EXTENSION not in context.used:
        return
    events = _own_events(context)
    _check_actors(context, events)
    _check_pairs(context, events)
    EntryTree(context, events).check()
    _check_files(context)
    _check_paths(context)


def _own_events(context: Context) -> list[tuple[int, dict[str, Any]]]:
    extensions = frozenset(context.extensions)
    return [
        (index, event)
        for index, event in context.elements("events")
        if kind_of(event, extensions) in (AI_AGENT_EXTENSION, MERGED)
    ]


def _check_actors(context: Context, events: list[tuple[int, dict[str, Any]]]) -> None:
    for index, dialog in context.elements("dialog"):
        if dialog.get("type") != "text":
            continue
        parties = dialog_parties(dialog)
        actor = context.element("parties", parties[0]) if parties else None
        if not actor and not context.redacted:
            context.add("actor-unresolved", f"/dialog/{index}")
        if actor and dialog.get("model_id") is not None and not _is_agent(actor):
            context.add("model-id-on-user", f"/dialog/{index}/model_id")
    for index, event in events:
        party = indices(event.get("party"))
        actor = context.element("parties", party[0]) if party else None
        if not actor:
            if not context.redacted:
                context.add("actor-unresolved", f"/events/{index}")
        elif actor.get("type") == "person" and event.get("type") in ("tool-call", "reasoning"):
            context.add("event-party-human", f"/events/{index}/party")


def _is_agent(party: Mapping[str, Any]) -> bool:
    return party.get("type") == "bot" or party.get("agent_meta") is not None


def _check_pairs(context: Context, events: list[tuple[int, dict[str, Any]]]) -> None:
    calls: dict[str, int] = {}
    results: set[str] = set()
    for index, event in events:
        call_id = event.get("call_id")
        if type(call_id) is not str:
            continue
        if event["type"] == "tool-call":
            if call_id in calls:
                context.add("call-id-duplicate", f"/events/{index}/call_id")
            calls.setdefault(call_id, index)
        elif event["type"] == "tool-result":
            if call_id in results:
                context.add("call-id-duplicate", f"/events/{index}/call_id")
            results.add(call_id)
    for index, event in events:
        call_id = event.get("call_id")
        if event["type"] == "tool-result" and type(call_id) is str and call_id not in calls:
            context.add("call-id-dangling", f"/events/{index}/call_id")
    for call_id, index in calls.items():
        if call_id not in results:
            context.add("tool-call-open", f"/events/{index}")


class EntryTree:
    """The entries of each session and the parents they name (record.md D-37)."""

    def __init__(self, context: Context, events: list[tuple[int, dict[str, Any]]]) -> None:
        self._context = context
        self._entries: list[tuple[str, Mapping[str, Any], tuple[int, ...]]] = []
        self._known: dict[Entry, str] = {}
        self._above: dict[int, list[int]] = {}
        sessions_of: dict[int, list[int]] = {}
        for index, session in context.elements("sessions"):
            for member in set(indices(session.get("dialog"))):
                sessions_of.setdefault(member, []).append(index)
            references = session.get("sessions")
            for reference in references if isinstance(references, list) else ():
                if isinstance(reference, dict) and reference.get("type") == "child":
                    for child in indices(reference.get("session")):
                        self._above.setdefault(child, []).append(index)
        for index, dialog in context.elements("dialog"):
            if "entry_id" in dialog or "parent_id" in dialog:
                self._entries.append((f"/dialog/{index}", dialog, tuple(sessions_of.get(index, ()))))
        for index, event in events:
            if "entry_id" in event or "parent_id" in event:
                self._entries.append((f"/events/{index}", event, event_sessions(event)))

    def check(self) -> None:
        """Report entries of one id, parents that do not exist, and cycles."""
        for pointer, entry, sessions in self._entries:
            entry_id = entry.get("entry_id")
            if type(entry_id) is str:
                for session in sessions:
                    first = self._known.setdefault((session, entry_id), pointer)
                    if first != pointer:
                        self._context.add("entry-id-duplicate", f"{pointer}/entry_id")
        edges: dict[Entry, list[Entry]] = {}
        named: list[tuple[str, Entry, Entry]] = []
        for pointer, entry, sessions in self._entries:
            parent_id = entry.get("parent_id")
            if type(parent_id) is not str or not sessions:
                continue
            parents = [(session, self._parent(session, parent_id)) for session in sessions]
            if all(parent is None for _, parent in parents):
                unsure = any(len(self._above.get(session, ())) > MAX_ABOVE for session in sessions)
                if not self._context.redacted and not unsure:
                    self._context.add("parent-id-dangling", f"{pointer}/parent_id")
                continue
            entry_id = entry.get("entry_id")
            if type(entry_id) is str:
                for session, parent in parents:
                    if parent is not None:
                        edges.setdefault((session, entry_id), []).append(parent)
                        named.append((pointer, (session, entry_id), parent))
        component = components(edges)
        for pointer, own, parent in named:
            if own == parent or component[own] == component[parent]:
                self._context.add("parent-id-cycle", f"{pointer}/parent_id")

    def _parent(self, session: int, parent_id: str) -> Entry | None:
        """Return the entry that is meant: one of the same session, else one of the session above."""
        for place in (session, *self._above.get(session, ())[:MAX_ABOVE]):
            if (place, parent_id) in self._known:
                return place, parent_id
        return None


def _check_files(context: Context) -> None:
    attribution = context.vcon.get("file_attribution")
    for file_index, file in _objects(attribution, "files"):
        pointer = f"/file_attribution/files/{file_index}"
        path = file.get("path")
        if type(path) is str and _is_unsafe(path):
            context.add("path-unsafe", f"{pointer}/path")
        for index, conversation in _objects(file, "conversations"):
            for number, span in _objects(conversation, "ranges"):
                _check_range(context, span, f"{pointer}/conversations/{index}/ranges/{number}")


def _check_range(context: Context, span: Mapping[str, Any], pointer: str) -> None:
    start: Any = span.get("start_line")
    end: Any = span.get("end_line")
    if is_uint(start) and is_uint(end) and (start < 1 or end < start):
        context.add("range-invalid", pointer)
    digest = span.get("content_hash")
    if type(digest) is str:
        algorithm = span.get("content_hash_alg")
        length = _HASH_DIGITS.get(algorithm if type(algorithm) is str else "sha-256")
        if not _HEX.fullmatch(digest) or (length is not None and len(digest) != length):
            context.add("range-hash-form", f"{pointer}/content_hash")


def _objects(owner: Any, name: str) -> list[tuple[int, dict[str, Any]]]:
    items = owner.get(name) if isinstance(owner, dict) else None
    if not isinstance(items, list):
        return []
    return [(index, item) for index, item in enumerate(items) if isinstance(item, dict)]


def _is_unsafe(path: str) -> bool:
    return (
        path.startswith("/")
        or "\\" in path
        or "\x00" in path
        or _DRIVE.match(path) is not None
        or ".." in path.split("/")
    )


def _check_paths(context: Context) -> None:
    for index, session in context.elements("sessions"):
        environment = session.get("environment")
        if isinstance(environment, dict):
            pointer = f"/sessions/{index}/environment"
            _check_home(context, environment.get("working_dir"), f"{pointer}/working_dir")
            sandboxes = environment.get("sandboxes")
            for number, path in enumerate(sandboxes if isinstance(sandboxes, list) else ()):
                _check_home(context, path, f"{pointer}/sandboxes/{number}")


def _check_home(context: Context, path: Any, pointer: str) -> None:
    if type(path) is str and _HOME.match(path):
        context.add("home-path", pointer)
