"""Which lines of which files the agent wrote, as far as the calls that succeeded tell (native-logs.md section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.sessions import NativeSession

_PATHS: Final = ("file_path", "absolute_path", "path")


class Edits:
    """The applied edits of one session, in their order."""

    def __init__(self, session: NativeSession) -> None:
        self._session = session
        self._attribution: Attribution | None = None

    def applied(self, native: Mapping[str, Any], *, model: Any, record: int) -> None:
        """Take a call that succeeded; calls that change no file are passed over."""
        display = native.get("resultDisplay")
        if not isinstance(display, Mapping):
            display = {}
        args = native.get("args")
        if not isinstance(args, Mapping):
            args = {}
        path = _path(display, args)
        if path is None:
            return
        edit: dict[str, Any] = {}
        diff, before, after = (display.get(name) for name in ("fileDiff", "originalContent", "newContent"))
        if isinstance(after, str) or isinstance(diff, str):
            known = {"unified_diff": diff, "before": before, "after": after}
            edit = {name: text for name, text in known.items() if isinstance(text, str)}
            if (
                "after" in edit
                and "before" not in edit
                and ("originalContent" in display or "unified_diff" not in edit)
            ):
                # A file without an earlier text is new.
                edit = {"text": edit["after"]}
        elif native.get("name") == "write_file" and isinstance(args.get("content"), str):
            edit = {"text": args["content"]}
        elif native.get("name") == "replace":
            old, new = args.get("old_string"), args.get("new_string")
            if isinstance(old, str) and isinstance(new, str):
                edit = {"old": old, "new": new} if old else {"text": new}
                many = args.get("expected_replacements")
                if old and type(many) is int and many > 1:
                    edit["replace_all"] = True
        if not edit:
            return
        if self._attribution is None:
            root = self._session.root_dir or self._session.working_dir
            self._attribution = Attribution(root, self._session.trace.findings)
        self._attribution.edit(
            path,
            contributor="mixed" if _was_changed_by_user(display) else "ai",
            model_id=model if isinstance(model, str) and model else None,
            record=record,
            **edit,
        )

    def finish(self) -> None:
        """Give the result to the session."""
        if self._attribution is not None:
            self._session.file_attribution += self._attribution.result()


def _path(display: Mapping[str, Any], args: Mapping[str, Any]) -> str | None:
    places = (display.get("filePath"), *(args.get(name) for name in _PATHS), display.get("fileName"))
    return next((place for place in places if isinstance(place, str) and place), None)


def _was_changed_by_user(display: Mapping[str, Any]) -> bool:
    stat = display.get("diffStat")
    if not isinstance(stat, Mapping):
        return False
    counts = (stat.get("user_added_lines"), stat.get("user_removed_lines"))
    return any(type(count) is int and count > 0 for count in counts)
