"""The frame of a Codex session: its meta data and the settings of its turns (native-logs.md 4.3, first table)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.codex.forks import memory_of
from onrecord.record.logs.codex.items import names_of
from onrecord.record.logs.codex.survey import id_of
from onrecord.record.logs.codex.thread import Line, Thread

_USERINFO: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31}://)[^/?#]*@", re.ASCII)
_ACCOUNTS: Final = ("account_id", "chatgpt_account_id", "chatgpt_user_id", "owner_id", "creator_account_id")
_AUTONOMOUS: Final = ("exec", "mcp")
_INTERACTIVE: Final = ("cli", "vscode", "ide")
_PERMISSIONS: Final = ("approval_policy", "sandbox_policy", "permission_profile", "approvals_reviewer")


def session_meta(thread: Thread, line: Line) -> None:
    """Map a session meta: the first is the session, a later one a resume or, with another id, a copy of another's."""
    session, payload = thread.session, line.payload
    entry = thread.entry(line)
    data = _hidden(payload)
    prompt = data.get("base_instructions")
    text = prompt.get("text") if type(prompt) is dict else prompt
    has_prompt = type(text) is str and text.strip() != ""
    if has_prompt:
        del data["base_instructions"]
    tools = data.get("dynamic_tools")
    if type(tools) is list and tools:
        del data["dynamic_tools"]
    if session.has_begun:
        own = id_of(payload) in (None, session.agent_session_id)
        if own:
            thread.trace.findings.add(
                "resumed-session", record=line.record.number, action="kept in the session"
            )
        session.begin(entry, data, rest=line.more, flags=() if own else ("replayed",))
    else:
        origin = thread.origin
        if origin.forked_from is not None:
            data["forked_from"] = {"agent_session_id": origin.forked_from}
        session.begin(entry, data, rest=line.more)
        _facts(thread, payload)
        session.saw_working_dir(entry, payload.get("cwd"))
    if has_prompt and type(text) is str:
        kept = (
            {name: value for name, value in prompt.items() if name != "text"} if type(prompt) is dict else {}
        )
        entry.system_prompt(text, "system", rest={"base_instructions": kept} if kept else None)
    if type(tools) is list and tools:
        entry.tool_definitions(tools, names_of(tools))


def _facts(thread: Thread, payload: Mapping[str, Any]) -> None:
    session, agent, origin = thread.session, thread.session.agent, thread.origin
    version = payload.get("cli_version")
    if type(version) is str and version:
        agent.cli_version = thread.trace.generation = version
    agent.saw_model(None, payload.get("model_provider"))
    nickname = origin.agent.get("agent_nickname")
    if nickname is not None:
        agent.name = nickname
    spawned = memory_of(thread.trace.run).spawned.get(session.agent_session_id)
    is_child = origin.is_child or spawned is not None
    session.format = format_of(payload, is_child=is_child)
    roots = payload.get("runtime_workspace_roots")
    if type(roots) is list:
        session.sandboxes = [root for root in roots if type(root) is str and root]
    git = payload.get("git")
    if type(git) is dict:
        session.vcs = _vcs(git)
    session.is_child = is_child
    parent = origin.parent or (spawned[0] if spawned else None) or origin.forked_from
    if is_child and parent is not None and parent != session.agent_session_id:
        call_id, name = (spawned[1], spawned[2]) if spawned is not None else (None, None)
        session.child_of(parent, call_id=origin.call_id or call_id, description=nickname or name)


def format_of(payload: Mapping[str, Any], *, is_child: bool) -> Any:
    """Say whether a human sat at the session, where the log tells (D-LOG-21)."""
    source, originator = payload.get("source"), payload.get("originator")
    if is_child or source in _AUTONOMOUS:
        return "autonomous"
    if source in _INTERACTIVE:
        return "interactive"
    if source is None and type(originator) is str:
        if originator.startswith("codex_exec"):
            return "autonomous"
        if originator.startswith("codex_vscode"):
            return "interactive"
    return None


def _vcs(git: Mapping[str, Any]) -> dict[str, Any]:
    vcs = {}
    for name, native in (("revision", "commit_hash"), ("branch", "branch"), ("repository", "repository_url")):
        value = git.get(native)
        if type(value) is str and value:
            vcs[name] = _USERINFO.sub(r"\1", value, count=1) if name == "repository" else value
    return {"type": "git", **vcs} if vcs else {}


def _hidden(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the meta data with the ids of accounts replaced by their SHA-256 (D-LOG-13)."""
    data = dict(payload)
    for name in _ACCOUNTS:
        value = data.get(name)
        if type(value) is str and value:
            data[name] = f"sha256:{hashlib.sha256(value.encode('utf-8')).hexdigest()}"
    return data


def turn_context(thread: Thread, line: Line) -> None:
    """Map the settings of a turn: of the first one the session starts, later ones tell what changed."""
    session, payload = thread.session, line.payload
    before = thread.settings
    thread.settings = dict(payload)
    model = payload.get("model")
    old = thread.model
    if type(model) is str and model:
        thread.model = model
        session.agent.saw_model(model, payload.get("model_provider"))
    entry = thread.entry(line)
    if before is None:
        session.begin(entry, payload, rest=line.more)
    else:
        changes: list[tuple[str, dict[str, Any]]] = []
        if type(model) is str and model and old is not None and model != old:
            changes.append((event_types.MODEL_CHANGE, {"from": old, "to": model}))
        changed = [name for name in _PERMISSIONS if payload.get(name) != before.get(name)]
        if changed:
            changes.append((event_types.PERMISSION_CHANGE, {"changed": changed}))
        if not changes:
            changes.append((event_types.SETTINGS_CHANGE, {}))
        for number, (name, data) in enumerate(changes):
            entry.event(name, data if number else {**payload, **data}, rest=None if number else line.more)
    session.saw_working_dir(entry, payload.get("cwd"))
