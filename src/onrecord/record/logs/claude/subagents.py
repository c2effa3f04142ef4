"""Sub-agents of Claude Code: whose call started them, by the ways that the versions leave.

A link is an offer (a call that started something) and a want (a session that was started) under the same key; the two
come in either order and from different files.

Source: native-logs.md 4.1 (Sub-agent link), D-LOG-11, R-21.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

import orjson

from onrecord.base.files import regular_file
from onrecord.record.logs.reading.records import NotJson
from onrecord.record.logs.reading.values import clean
from onrecord.record.logs.sessions import NativeSession
from onrecord.record.logs.trace import Trace

SPAWNING_TOOLS: Final = frozenset(["Task", "Agent", "Workflow"])
"""Tools that start other agents."""

MAX_SIDE_FILE: Final = 16 << 20
"""Largest side file that is read."""

_AGENT_ID: Final = re.compile(r"agentId: ([A-Za-z0-9_-]{1,128})\b", re.ASCII)
_TASK_ID: Final = re.compile(r"Task ID: ([A-Za-z0-9_-]{1,128})\b", re.ASCII)
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_AMBIGUOUS: Final = -1
_SEARCHED: Final = 4096

_BY_META, _BY_DETAILS, _BY_TEXT, _BY_PROMPT, _BY_WORKFLOW = range(1, 6)


class Links:
    """Links between calls and the sub-agents that they started, over the whole run."""

    def __init__(self, trace: Trace, format: str) -> None:
        self._trace = trace
        self._offers: dict[int, int] = trace.run.seen(f"{format}/offers")
        self._wants: dict[int, int] = trace.run.seen(f"{format}/wants")
        self._ranks: dict[int, int] = trace.run.seen(f"{format}/ranks")

    # -- offers

    def called(self, session: NativeSession, root_id: str, call_id: str, given: Any) -> None:
        """Note a call that starts an agent; `root_id` is the native id of the whole session."""
        number = session.call_object(call_id)
        if number is None:
            return
        self._offer(hash(("call", root_id, call_id)), number, _BY_META)
        prompt = given.get("prompt") if type(given) is dict else None
        if type(prompt) is str and prompt.strip():
            self._offer(hash(("prompt", root_id, prompt)), number, _BY_PROMPT)

    def answered(self, session: NativeSession, root_id: str, call_id: str, details: Any, output: Any) -> None:
        """Note a result that names the agent or the task that its call started."""
        number = session.call_object(call_id)
        if number is None:
            return
        agent_id = details.get("agentId") if type(details) is dict else None
        if type(agent_id) is str and agent_id:
            self._offer(hash(("agent", root_id, agent_id)), number, _BY_DETAILS)
        for text in _texts(output):
            found = _AGENT_ID.search(text)
            if found and found[1] != agent_id:
                self._offer(hash(("agent", root_id, found[1])), number, _BY_TEXT)
            found = _TASK_ID.search(text)
            if found:
                self._offer(hash(("task", root_id, found[1])), number, _BY_WORKFLOW)

    def _offer(self, key: int, number: int, rank: int) -> None:
        known = self._offers.setdefault(key, number)
        if known != number and rank == _BY_PROMPT:
            self._offers[key] = _AMBIGUOUS
            return
        wanted = self._wants.get(key)
        if wanted is not None:
            self._link(self._trace.run.sessions[wanted], number, rank)

    # -- wants

    def started(self, child: NativeSession, root_id: str, agent_id: str | None) -> None:
        """Note a sub-agent's session, with what stands beside its file."""
        if agent_id is not None:
            self._want(hash(("agent", root_id, agent_id)), child, _BY_DETAILS)
        path = self._trace.path
        if agent_id is None or path.stem.partition(".")[0] != f"agent-{agent_id}":
            return
        about = self._read(path.with_name(f"agent-{agent_id}.meta.json"))
        if about is not None:
            child.start_data["meta"] = about
            kind, note, call_id = about.get("agentType"), about.get("description"), about.get("toolUseId")
            if type(kind) is str and kind and child.agent.name is None:
                child.agent.name = kind
            if type(note) is str and note:
                child.child_note = child.child_note or note
            if type(call_id) is str and call_id:
                self._want(hash(("call", root_id, call_id)), child, _BY_META)
        run_id, folder = path.parent.name, path.parent.parent
        if folder.name == "workflows" and folder.parent.name == "subagents":
            child.start_data["workflow_run"] = run_id
            about = self._read(folder.parent.parent / "workflows" / f"{run_id}.json")
            task_id = about.get("taskId") if about is not None else None
            if type(task_id) is str and task_id:
                self._want(hash(("task", root_id, task_id)), child, _BY_WORKFLOW)

    def prompted(self, child: NativeSession, root_id: str, text: str) -> None:
        """Note the first text that a sub-agent was given."""
        self._want(hash(("prompt", root_id, text)), child, _BY_PROMPT)

    def _want(self, key: int, child: NativeSession, rank: int) -> None:
        self._wants.setdefault(key, child.index)
        number = self._offers.get(key)
        if number is not None and number != _AMBIGUOUS:
            self._link(child, number, rank)

    def _link(self, child: NativeSession, number: int, rank: int) -> None:
        run = self._trace.run
        parent = run.sessions[run.spool.sessions[number]]
        if parent is child or self._ranks.get(child.index, _BY_WORKFLOW + 1) <= rank:
            return
        self._ranks[child.index] = rank
        call = orjson.loads(b"{" + run.spool.read(number).head + b"}")
        given = call.get("input")
        note = given.get("description") if type(given) is dict else None
        child.child_of(
            parent, call_id=call.get("call_id"), description=note if type(note) is str and note else None
        )

    # -- side files

    def overflow(self, session_id: str, call_id: Any) -> dict[str, Any] | None:
        """Return the text that did not fit into a result: `<session>/tool-results/<call>.txt` beside the log."""
        if (
            type(call_id) is not str
            or not _SAFE_NAME.fullmatch(call_id)
            or not _SAFE_NAME.fullmatch(session_id)
        ):
            return None
        path = self._trace.path
        base = path.parent / session_id
        for above in path.parents:
            if above.name == session_id:
                base = above
                break
        name = f"tool-results/{call_id}.txt"
        data = _side_bytes(base / name)
        return None if data is None else {"file": name, "text": data.decode("utf-8", "replace")}

    def _read(self, path: Path) -> dict[str, Any] | None:
        data = _side_bytes(path)
        if data is None:
            return None
        try:
            value, _ = clean(data, self._trace.findings, record=0)
        except NotJson:
            self._trace.findings.add("malformed-line", message="a side file of a sub-agent is no JSON")
            return None
        return value if type(value) is dict else None


def _side_bytes(path: Path) -> bytes | None:
    """Return the bytes of a side file: a regular file, not reached by a link, and not too large."""
    if path.parent.is_symlink():
        return None
    try:
        with regular_file(path, follow=False) as (descriptor, status):
            if status.st_size > MAX_SIDE_FILE:
                return None
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return file.read(MAX_SIDE_FILE)
    except (OSError, ValueError):
        return None


def _texts(output: Any) -> list[str]:
    """Return the beginnings and ends of a result's texts, where agents and tasks are named."""
    blocks = output if type(output) is list else [output]
    texts = []
    for block in blocks[:64]:
        text = block.get("text") if type(block) is dict else block
        if type(text) is str:
            texts.append(text if len(text) <= 2 * _SEARCHED else text[:_SEARCHED] + "\n" + text[-_SEARCHED:])
    return texts
