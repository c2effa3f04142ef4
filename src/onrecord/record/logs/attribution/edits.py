"""Who wrote which lines, from the edits of a log in their order.

    >>> from onrecord.record.logs.findings import FileFindings
    >>> attribution = Attribution("/home/user/project", FileFindings("a.jsonl"))
    >>> attribution.edit("/home/user/project/a.py", text="a = 1\\n", model_id="example-model")
    >>> attribution.result()[0]["conversations"][0]["contributor"]
    {'type': 'ai', 'model_id': 'example-model'}

Source: native-logs.md section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onrecord.record.logs.attribution.files import ChangedFile, Contributor
from onrecord.record.logs.attribution.imports import ImportedFile, from_flat, sorted_ranges
from onrecord.record.logs.attribution.patches import parse_apply_patch, parse_structured, parse_unified
from onrecord.record.logs.attribution.paths import Root, safe
from onrecord.record.logs.attribution.texts import Texts
from onrecord.record.logs.findings import FileFindings


class Attribution:
    """The files that a session changed. Give only what was applied: a failed, rejected or open call changes nothing.

    `root` is the git root of the log if named, else the working directory; `base` is where relative paths count from,
    the root if not given. `findings` takes what is outside of the root.
    """

    def __init__(self, root: str | None, findings: FileFindings, *, base: str | None = None) -> None:
        self._findings = findings
        self._texts = Texts()
        self._changed: dict[str, ChangedFile] = {}
        self._imported: dict[str, ImportedFile] = {}
        self._outside: set[int] = set()
        self._searched: ChangedFile | None = None
        self._root = Root(root)
        self._base = self._root if base is None else Root(base)

    def move_to(self, base: str | None) -> None:
        """Let relative paths count from another directory; the first one becomes the root if none is known."""
        self._base = Root(base)
        if not self._root.is_known:
            self._root = self._base

    def edit(
        self,
        path: str,
        *,
        structured_patch: Any = None,
        unified_diff: str | None = None,
        before: str | None = None,
        after: str | None = None,
        text: str | None = None,
        old: str | None = None,
        new: str | None = None,
        replace_all: bool = False,
        contributor: str = "ai",
        model_id: str | None = None,
        record: int | None = None,
    ) -> None:
        """Apply one edit, described by what the log has; the first of these that is given counts.

        `structured_patch` or `unified_diff`, with `before` when the log has the whole text before the edit; `before`
        and `after`, both whole; `text`, the whole new text alone; `old` and `new`, a text that is replaced where it
        occurs once. An edit whose place is not found leaves no ranges in the file, since nobody knows how the lines
        moved.
        """
        name = self._path(path, record)
        if name is None:
            return
        file, by = self._file(name), Contributor(contributor, model_id or None)
        file.last = by
        hunks = parse_structured(structured_patch) if structured_patch else None
        if hunks is None and unified_diff:
            patches = parse_unified(unified_diff)
            hunks = patches[0].hunks if patches else None
        if before is not None:
            file.adopt(before)
        if structured_patch == [] and after is None and text is None and old is None:
            return
        if hunks:
            file.apply(hunks, by)
        elif after is not None or text is not None:
            if not file.write(after if after is not None else text or "", by):
                self._lose(file, by)
        elif old is None or new is None or not file.substitute(old, new, by, every=replace_all):
            self._lose(file, by)

    def patch(
        self, patch: str, *, contributor: str = "ai", model_id: str | None = None, record: int | None = None
    ) -> None:
        """Apply an `apply_patch` text, whose result succeeded."""
        by = Contributor(contributor, model_id or None)
        for part in parse_apply_patch(patch):
            if part.kind == "delete":
                self.delete(part.path, record=record)
                continue
            name = self._path(part.path, record)
            if name is not None:
                file = self._file(name)
                file.last = by
                if part.kind == "add":
                    if not file.write("".join(f"{line}\n" for line in part.content), by):
                        self._lose(file, by)
                elif part.chunks and not file.patch(part.chunks, by):
                    self._lose(file, by)
            if part.move_path:
                self.rename(part.path, part.move_path, record=record)

    def delete(self, path: str, *, record: int | None = None) -> None:
        """Forget a file that was deleted."""
        name = self._path(path, record)
        if name is not None:
            self._changed.pop(name, None)

    def rename(self, old: str, new: str, *, record: int | None = None) -> None:
        """Let the lines of a file go on under another path."""
        name, target = self._path(old, record), self._path(new, record)
        file = None if name is None else self._changed.pop(name, None)
        if target is not None:
            self._changed.pop(target, None)
            if file is not None:
                self._changed[target] = file

    def touched(
        self,
        path: str,
        *,
        contributor: str = "unknown",
        model_id: str | None = None,
        record: int | None = None,
    ) -> None:
        """Note that a file was changed, and that the log does not say where; ranges that were known stay.

        For shell commands that name a file, and for lists of files without lines.
        """
        name = self._path(path, record)
        if name is not None:
            by = Contributor(contributor, model_id or None)
            file = self._changed.setdefault(name, ChangedFile(self._texts))
            file.last = by
            if by not in file.elsewhere:
                file.elsewhere.append(by)

    def mention(self, path: str, *, record: int | None = None) -> None:
        """Report a path outside of the root although nothing was changed there, as of a call that failed."""
        self._path(path, record)

    def imported(
        self,
        file: Mapping[str, Any],
        *,
        timestamp: int | None = None,
        revision: str | None = None,
        record: int | None = None,
    ) -> None:
        """Take a File Object of the log, or a flat agent-trace record; `timestamp` is in nanoseconds since 1970."""
        if "file_path" in file and "conversations" not in file:
            file = from_flat(file)
        path = file.get("path")
        if type(path) is not str:
            self._findings.add("odd-shape", record=record, message="a File Object without a path")
            return
        name = safe(path) or self._path(path, record)
        if name is not None:
            target = self._imported.setdefault(name, ImportedFile())
            target.add(file, timestamp=timestamp, revision=revision, findings=self._findings, record=record)

    def result(self) -> list[dict[str, Any]]:
        """Return the File Objects, sorted by path."""
        files = []
        for path in sorted(self._changed.keys() | self._imported.keys()):
            conversations: list[dict[str, Any]] = []
            rest: dict[str, Any] = {}
            changed, imported = self._changed.get(path), self._imported.get(path)
            if changed is not None:
                conversations = _conversations(changed)
                if conversations[:1] and conversations[0]["ranges"] and not changed.is_whole:
                    rest["basis"] = "hunks"
            if imported is not None:
                conversations += imported.conversations()
                rest |= imported.rest
            sorted_ranges(conversations)
            file: dict[str, Any] = {"path": path, "conversations": conversations}
            if rest:
                file["onrecord"] = {"rest": rest}
            files.append(file)
        return files

    def _file(self, name: str) -> ChangedFile:
        file = self._changed.setdefault(name, ChangedFile(self._texts))
        if self._searched is not None and self._searched is not file:
            self._searched.release()
        self._searched = file
        return file

    def _lose(self, file: ChangedFile, by: Contributor) -> None:
        file.forget()
        if by not in file.elsewhere:
            file.elsewhere.append(by)

    def _path(self, path: Any, record: int | None) -> str | None:
        """Return a path relative to the root; one that is outside is reported once."""
        if type(path) is str:
            name = self._root.relative(self._base.join(path))
            if name is not None:
                return name
        key = hash(path) if type(path) is str else 0
        if key not in self._outside:
            self._outside.add(key)
            self._findings.add("attribution-path-outside-root", record=record, action="no File Object")
        return None


def _conversations(file: ChangedFile) -> list[dict[str, Any]]:
    """Return the File_Conversations of a file: one with the known lines, and one per contributor of unknown lines."""
    found = list(file.ranges())
    made: list[dict[str, Any]] = []
    if found:
        owners = {owner for _, owner in found}
        if len(owners) == 1:
            made.append({"contributor": found[0][1].to_json(), "ranges": [span for span, _ in found]})
        else:
            made.append({"ranges": [span | {"contributor": owner.to_json()} for span, owner in found]})
    made.extend({"contributor": owner.to_json(), "ranges": []} for owner in file.elsewhere)
    if not made and file.last is not None:
        made.append({"contributor": file.last.to_json(), "ranges": []})
    return made
