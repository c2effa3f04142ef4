"""Calls of a Claude log on their way to a result: where the tool lives, and which files the call changes.

Source: native-logs.md D-LOG-16, D-LOG-17, section 6 (Claude) and 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.claude.subagents import SPAWNING_TOOLS, Links
from onrecord.record.logs.sessions import Entry, NativeSession
from onrecord.record.logs.trace import Trace

HOST: Final[Mapping[str, Any]] = {"kind": "host"}
"""Origin of tools that Claude Code itself runs."""

PROVIDER: Final[Mapping[str, Any]] = {"kind": "provider"}
"""Origin of tools that the model's provider runs."""

EDIT_TOOLS: Final = frozenset(["Edit", "Write", "MultiEdit", "NotebookEdit"])
"""Tools that change the file that their input names."""

_PATHS: Final = ("file_path", "notebook_path")
_HUMAN_ANSWERS: Final = (frozenset(["questions", "answers"]), frozenset(["plan"]))


def origin_of(name: Any) -> Mapping[str, Any]:
    """Return where a tool lives, by its name: `mcp__<server>__<tool>` is a tool of an MCP server."""
    if type(name) is str and name.startswith("mcp__"):
        _, _, rest = name.partition("__")
        server, found, tool = rest.partition("__")
        if found and server and tool:
            return {"kind": "mcp", "server": server, "tool": tool}
    return HOST


def status_of(is_error: Any, details: Any, *, is_denied: bool) -> str | None:
    """Return the status of a result by what the log says about it (D-LOG-17)."""
    if is_error is True or is_denied:
        return "error"
    if type(details) is dict:
        code = details.get("exitCode")
        if details.get("interrupted") is True or (type(code) is int and code != 0):
            return "error"
        if is_error is None and details.get("status") == "completed":
            return "completed"
    return "success" if is_error is False else None


def has_human_input(details: Any) -> bool:
    """Say whether a result holds what a person answered (D-LOG-15)."""
    return type(details) is dict and any(names <= details.keys() for names in _HUMAN_ANSWERS)


class _Edit(NamedTuple):
    name: str
    path: str
    model: str | None
    call: int


class Calls:
    """The calls of one source: origins for their results, sub-agents they started, edits that were applied.

    `roots` gives the native id of the whole session for each session, by index.
    """

    def __init__(self, trace: Trace, links: Links | None = None) -> None:
        self._trace = trace
        self._links = links
        self.roots: dict[int, str] = {}
        self._owners: dict[int, NativeSession] = {}
        self._spawning: set[tuple[int, str]] = set()
        self._origins: dict[int, Mapping[str, Any]] = {}
        self._servers: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._open: dict[tuple[int, str], _Edit] = {}
        self._attributions: dict[int, tuple[NativeSession, Attribution]] = {}

    def called(
        self,
        session: NativeSession,
        block: Mapping[str, Any],
        origin: Mapping[str, Any],
        model: Any,
        number: int,
    ) -> None:
        """Note a call: its origin, and its file if it is an edit."""
        call_id, name = block.get("id"), block.get("name")
        if type(call_id) is not str:
            return
        if self._links is None:
            self._owners[hash(call_id)] = session
        if origin is not HOST:
            same = self._servers.setdefault(tuple(origin.values()), origin)
            self._origins[hash(call_id)] = same
        elif type(name) is not str:
            return
        elif name in EDIT_TOOLS:
            path = _path_in(block.get("input"))
            if path is not None:
                self._open[session.index, call_id] = _Edit(
                    name, path, model if type(model) is str else None, number
                )
        elif name in SPAWNING_TOOLS and self._links is not None:
            self._spawning.add((session.index, call_id))
            self._links.called(session, self.roots[session.index], call_id, block.get("input"))

    def owner(self, call_id: str) -> NativeSession | None:
        """Return the session of a call in a stream, where sub-agents name the call that started them."""
        return self._owners.get(hash(call_id))

    def origin(self, call_id: Any) -> Mapping[str, Any]:
        """Return where the tool of a call lives."""
        return self._origins.get(hash(call_id), HOST) if type(call_id) is str else HOST

    def answered(self, entry: Entry, block: Mapping[str, Any], status: str | None, details: Any) -> None:
        """Note a result: apply the edit of its call, unless it failed (F-01), and link the agent that it started."""
        session, record, call_id = entry.session, entry.record, block.get("tool_use_id")
        if type(call_id) is not str:
            return
        key = session.index, call_id
        if self._links is not None and key in self._spawning:
            self._spawning.discard(key)
            self._links.answered(session, self.roots[session.index], call_id, details, block.get("content"))
            return
        edit = self._open.pop(key, None)
        if edit is None:
            if type(details) is not dict or "structuredPatch" not in details or status == "error":
                return
            if session.has_call(call_id):
                return  # A tool that is no editor: what its server says about files is no edit of the agent.
            edit = _Edit("", "", None, -1)
        attribution = self._attribution(session)
        path = details.get("filePath") if type(details) is dict else None
        if type(path) is not str or not path:
            path = edit.path
        if not path:
            return
        if status == "error":
            attribution.mention(path, record=record.number)
        elif type(details) is dict and (details.get("structuredPatch") is not None or "content" in details):
            _apply(attribution, path, details, edit.model, record.number)
        elif edit.name == "NotebookEdit" or self._trace.run.options.redact:
            # The text of the call is not the text of the file.
            attribution.touched(path, contributor="ai", model_id=edit.model, record=record.number)
        else:
            self._apply_input(attribution, path, edit, record.number)

    def finish(self) -> None:
        """Give each session the File Objects of its edits."""
        for session, attribution in self._attributions.values():
            session.file_attribution += attribution.result()
        self._attributions.clear()

    def _attribution(self, session: NativeSession) -> Attribution:
        known = self._attributions.get(session.index)
        if known is None:
            root = session.root_dir or session.working_dir
            known = self._attributions[session.index] = session, Attribution(root, self._trace.findings)
        return known[1]

    def _apply_input(self, attribution: Attribution, path: str, edit: _Edit, record: int) -> None:
        """Apply a call by its input, which is all that the log has."""
        members = orjson.loads(b"{" + self._trace.run.spool.read(edit.call).head + b"}")
        given = members.get("input")
        if type(given) is not dict:
            return
        if edit.name == "Write":
            text = given.get("content")
            if type(text) is str:
                attribution.edit(path, text=text, model_id=edit.model, record=record)
            return
        steps = given.get("edits") if edit.name == "MultiEdit" else [given]
        for step in steps if type(steps) is list else ():
            if type(step) is dict:
                old, new = step.get("old_string"), step.get("new_string")
                if type(old) is str and type(new) is str:
                    attribution.edit(
                        path,
                        old=old,
                        new=new,
                        replace_all=step.get("replace_all") is True,
                        model_id=edit.model,
                        record=record,
                    )


def _path_in(given: Any) -> str | None:
    """Return the file that the input of an edit names."""
    if type(given) is not dict:
        return None
    return next((given[name] for name in _PATHS if type(given.get(name)) is str and given[name]), None)


def _apply(
    attribution: Attribution, path: str, details: Mapping[str, Any], model: str | None, record: int
) -> None:
    """Apply an edit by what Claude Code noted about it."""
    before = details.get("originalFile", details.get("originalFileContents"))
    text = details.get("content")
    old, new = details.get("oldString"), details.get("newString")
    patch = details.get("structuredPatch")
    attribution.edit(
        path,
        structured_patch=patch if type(patch) is list else None,
        before=before if type(before) is str else None,
        text=text if type(text) is str else None,
        old=old if type(old) is str else None,
        new=new if type(new) is str else None,
        replace_all=details.get("replaceAll") is True,
        contributor="mixed" if details.get("userModified") is True else "ai",
        model_id=model,
        record=record,
    )
