"""Forks, sub-agents and copies: where the part of a rollout begins that no other file has told.

A fork's file begins with a copy of its parent's history. Counted again, tokens would be counted up to 91 times.

Source: native-logs.md 4.3, B-5.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

from onrecord.record.logs.codex.survey import Survey
from onrecord.record.logs.runs import Run


class Origin(NamedTuple):
    """What a session meta says about where the session comes from."""

    forked_from: str | None
    parent: str | None
    call_id: str | None
    agent: Mapping[str, Any]
    is_child: bool

    @property
    def other(self) -> str | None:
        """The session whose history may be copied."""
        return self.forked_from or self.parent


class Own(NamedTuple):
    """Where the session's own part begins: records before it are duplicates, for this reason."""

    first: int
    reason: str
    is_suspected: bool = False


class Memory:
    """What was seen of the Codex sessions of a run."""

    def __init__(self) -> None:
        self.keys: dict[str, array[int]] = {}
        """Hashes of the records of each session, by id."""
        self.siblings: dict[str, str] = {}
        """The first session read of those with one parent, by the parent's id."""
        self.spawned: dict[str, tuple[str, str | None, str | None]] = {}
        """Parent, call and name of sub-agents that a parent told of, by the sub-agent's id."""


def memory_of(run: Run) -> Memory:
    """Return what was seen in a run."""
    memory: Memory = run.memory("codex-jsonl").setdefault("threads", Memory())
    return memory


def origin_of(meta: Mapping[str, Any]) -> Origin:
    """Read where a session comes from. Older logs tell it in `source`, newer ones in members of their own."""
    source = meta.get("source")
    subagent = source.get("subagent", source.get("subAgent")) if type(source) is dict else None
    spawn = subagent.get("thread_spawn") if type(subagent) is dict else None
    spawn = spawn if type(spawn) is dict else {}
    parent = _text(meta.get("parent_thread_id")) or _text(spawn.get("parent_thread_id"))
    agent = {
        name: value
        for name in ("agent_nickname", "agent_role", "agent_path")
        for value in [_text(meta.get(name)) or _text(spawn.get(name))]
        if value
    }
    return Origin(
        forked_from=_text(meta.get("forked_from_id")),
        parent=parent,
        call_id=_text(spawn.get("spawn_call_id")),
        agent=agent,
        is_child=parent is not None or bool(subagent),
    )


def own_part(found: Survey, agent_session_id: str, origin: Origin, memory: Memory) -> Own:
    """Say where the session's own part begins, and remember the session for those that come later."""
    own = _own_part(found, agent_session_id, origin, memory)
    known = memory.keys.get(agent_session_id)
    if known is None or len(found.keys) > len(known):
        memory.keys[agent_session_id] = found.keys
    if origin.other is not None:
        memory.siblings.setdefault(origin.other, agent_session_id)
    return own


def _own_part(found: Survey, agent_session_id: str, origin: Origin, memory: Memory) -> Own:
    known = memory.keys.get(agent_session_id)
    first = 0 if known is None else _behind_prefix(found, known)
    own = _behind_history(found, origin, memory)
    return Own(first, "duplicate-entry") if first and first >= own.first else own


def _behind_history(found: Survey, origin: Origin, memory: Memory) -> Own:
    """Cut what a fork copied of its parent, by the first rule that applies."""
    is_fork = origin.other is not None or origin.is_child
    if not is_fork:
        return Own(0, "fork-replay", is_suspected=bool(found.copied))
    if found.own_by_ordinal is not None:
        return Own(found.own_by_ordinal, "fork-replay")
    parent = memory.keys.get(origin.other or "")
    if parent is not None:
        first = _behind_prefix(found, parent)
        if first or not found.copied:
            return Own(first, "fork-replay")
    if found.copied:
        turn = found.own_by_task if found.own_by_task is not None else found.own_by_context
        if turn is not None:
            return Own(turn, "fork-replay")
    sibling = memory.siblings.get(origin.other or "")
    if sibling is not None:
        return Own(_behind_prefix(found, memory.keys[sibling]), "fork-replay")
    return Own(0, "fork-replay", is_suspected=True)


def _behind_prefix(found: Survey, other: array[int]) -> int:
    """Return the record behind those with which both begin, 0 if there are none."""
    length = 0
    for own, known in zip(found.keys, other, strict=False):
        if own != known:
            break
        length += 1
    return found.numbers[length - 1] + 1 if length else 0


def _text(value: Any) -> str | None:
    return value if type(value) is str and value else None
