"""Which lines of which files the agent wrote, from the calls of a stream that succeeded (native-logs.md section 6)."""

from __future__ import annotations

from typing import Any

from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.sessions import NativeSession


class Edits:
    """The applied edits of one session, in their order."""

    def __init__(self, session: NativeSession) -> None:
        self._session = session
        self._attribution: Attribution | None = None

    def applied(self, name: str, args: Any, success: Any, *, record: int) -> None:
        """Take a call that succeeded; calls that change no file are passed over."""
        if not isinstance(args, dict) or not isinstance(args.get("path"), str) or not args["path"]:
            return
        told = success if isinstance(success, dict) else {}
        path = args["path"]
        if name == "delete":
            self._files().delete(path, record=record)
            return
        edit: dict[str, Any] = {}
        if name == "write":
            edit = _texts(args, text=("fileText", "contents"))
        elif name in ("edit", "strReplace"):
            edit = _texts(
                told,
                unified_diff=("diffString",),
                before=("beforeFullFileContent",),
                after=("afterFullFileContent",),
            )
            if "unified_diff" not in edit and "after" not in edit:
                edit = _texts(args, old=("oldText", "old_string"), new=("newText", "new_string"))
                if len(edit) != 2:
                    edit = {}
        if edit:
            self._files().edit(
                path, model_id=next(reversed(self._session.agent.models), None), record=record, **edit
            )

    def _files(self) -> Attribution:
        if self._attribution is None:
            root = self._session.root_dir or self._session.working_dir
            self._attribution = Attribution(root, self._session.trace.findings)
        return self._attribution

    def finish(self) -> None:
        """Give the result to the session."""
        if self._attribution is not None:
            self._session.file_attribution += self._attribution.result()


def _texts(members: dict[str, Any], **names: tuple[str, ...]) -> dict[str, str]:
    """Return the first text under each of these names."""
    found = {}
    for key, others in names.items():
        text = next((members[name] for name in others if isinstance(members.get(name), str)), None)
        if text is not None:
            found[key] = text
    return found
