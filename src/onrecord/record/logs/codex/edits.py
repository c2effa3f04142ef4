"""Which files a Codex session changed: as end events tell, else by the text of a patch that succeeded.

Source: native-logs.md 6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.attribution.paths import Root
from onrecord.record.logs.sessions import NativeSession
from onrecord.record.logs.trace import Trace

_BEGIN: Final = "*** Begin Patch"
_TOOLS: Final = ("apply_patch", "applypatch")
_SHELLS: Final = frozenset(["bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash"])
_HERE_DOCUMENT: Final = re.compile(
    r"\s*(?:cd ([^\s'\"&;|<>$`]+|'[^'\n]*'|\"[^\"\n$`]*\") && )?"
    r"(?:apply_patch|applypatch)[ \t]*<<-?[ \t]*(['\"]?)([A-Za-z_][A-Za-z_0-9]*)\2[ \t]*\n"
)
_KINDS: Final = ("add", "update", "delete")


class Edits:
    """The edits of a session, in their order."""

    def __init__(self, trace: Trace, session: NativeSession) -> None:
        self._trace = trace
        self._session = session
        self._attribution: Attribution | None = None
        self._applied: set[int] = set()
        self._patches: dict[int, tuple[str, str | None, str | None]] = {}

    def proposed(self, mark: int | None, name: Any, input: Any, model: str | None, cwd: Any = None) -> None:
        """Note the patch that a call carries, until its result says whether it was applied.

        `cwd` is the working directory of the turn; the call may name another one.
        """
        found = patch_of(name, input)
        if found is not None and mark is not None:
            text, directories = found
            base = cwd if type(cwd) is str and cwd else self._session.working_dir
            for directory in directories:
                base = Root(base).join(directory)
            self._patches[mark] = (text, model, base)

    def ended(self, mark: int | None, *, is_success: bool, record: int) -> None:
        """Apply a noted patch when its result succeeded and no end event tells its changes."""
        noted = None if mark is None else self._patches.pop(mark, None)
        if noted is not None and is_success and mark not in self._applied:
            files = self._files()
            if self._root() is not None:
                files.move_to(noted[2])
            files.patch(noted[0], model_id=noted[1], record=record)

    def changed(self, mark: int | None, changes: Any, *, model: str | None, record: int) -> bool:
        """Apply the changes that an end event tells, once for each call; say whether there are any."""
        told = list(_changes(changes))
        if not told:
            return False
        if mark is not None:
            if mark in self._applied:
                return True
            self._applied.add(mark)
            self._patches.pop(mark, None)
        if self._root() is not None:
            self._files().move_to(self._session.working_dir)
        for path, change in told:
            self._apply(path, change, model, record)
        return True

    def _apply(self, path: str, change: Mapping[str, Any], model: str | None, record: int) -> None:
        files = self._files()
        kind = change.get("type", change.get("kind"))
        if type(kind) is dict:
            kind = kind.get("type")
        elif kind is None and len(change) == 1:
            (name,) = change
            if name in _KINDS and type(change[name]) is dict:
                kind, change = name, change[name]
        if kind == "delete":
            files.delete(path, record=record)
            return
        content = _text(change, "content")
        difference = _text(change, "unified_diff", "diff")
        if content is not None and kind == "add":
            files.edit(path, text=content, model_id=model, record=record)
        elif difference is not None:
            files.edit(
                path,
                unified_diff=difference,
                before="" if kind == "add" else None,
                model_id=model,
                record=record,
            )
        else:
            files.touched(path, contributor="ai", model_id=model, record=record)
        target = change.get("move_path")
        if type(target) is str and target and target != path:
            files.rename(path, target, record=record)

    def _files(self) -> Attribution:
        if self._attribution is None:
            self._attribution = Attribution(self._root(), self._trace.findings)
        return self._attribution

    def _root(self) -> str | None:
        return self._session.root_dir or self._session.working_dir

    def finish(self) -> None:
        """Give the session its File Objects."""
        if self._attribution is not None:
            self._session.file_attribution += self._attribution.result()


def patch_of(name: Any, input: Any) -> tuple[str, tuple[str, ...]] | None:
    """Return the patch that a call carries, and the directories that it names for it, each relative to the one before.

    It is the input of the tool `apply_patch`, the argument of a shell command of that name, or its here-document.
    """
    if type(input) is str:
        return (input, ()) if name == "apply_patch" and _BEGIN in input else None
    if type(input) is not dict:
        return None
    if name == "apply_patch":
        text = _text(input, "input", "patch")
        return (text, ()) if text is not None and _BEGIN in text else None
    workdir = _text(input, "workdir", "cwd")
    directories = (workdir,) if workdir else ()
    command = input.get("command", input.get("cmd"))
    if type(command) is list and len(command) == 2 and command[0] in _TOOLS:
        text = command[1]
        return (text, directories) if type(text) is str and _BEGIN in text else None
    if type(command) is list and len(command) == 3 and command[0] in _SHELLS and command[1] in ("-lc", "-c"):
        command = command[2]
    return _here_document(command, directories) if type(command) is str and _BEGIN in command else None


def _here_document(script: str, directories: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Return the patch of a script that does nothing but apply it."""
    match = _HERE_DOCUMENT.match(script)
    if match is None:
        return None
    text, end, behind = script[match.end() :].partition(f"\n{match[3]}")
    if not end or behind.strip():
        return None
    directory = (match[1] or "").strip("'\"")
    return f"{text}\n", (*directories, directory) if directory else directories


def _changes(changes: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Return path and change, from an object by path or from a list of changes with a path."""
    if type(changes) is dict:
        return [(path, change) for path, change in changes.items() if type(change) is dict]
    if type(changes) is list:
        return [
            (change["path"], change)
            for change in changes
            if type(change) is dict and type(change.get("path")) is str
        ]
    return []


def _text(holder: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        value = holder.get(name)
        if type(value) is str:
            return value
    return None
