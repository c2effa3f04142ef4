"""Tool parts: the call, its result as far as the log has one, and the lines of files that it changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.attribution import Attribution
from onrecord.record.logs.attribution.patches import parse_unified
from onrecord.record.logs.media import from_data_url
from onrecord.record.logs.reading.values import arguments_of
from onrecord.record.logs.sessions import NO_TIME, Entry
from onrecord.record.logs.times import Times

INVALID: Final = "invalid"
"""Name of the tool that stands for a call whose arguments the program refused."""

_ENDED: Final = {"completed": "completed", "success": "success", "error": "error"}
"""States in which there is a result, and its status."""

_OPEN: Final = frozenset({"pending", "running"})
_PROVIDER: Final = {"kind": "provider"}
_times: Final = Times()


class Outcome:
    """What became of a call: its `status`, None while it is open."""

    __slots__ = ("metadata", "status")

    def __init__(self, status: str | None, metadata: Mapping[str, Any]) -> None:
        self.status = status
        self.metadata = metadata


def write_tool(entry: Entry, part: Mapping[str, Any], rest: dict[str, Any]) -> Outcome:
    """Write the call of a tool part, and its result.

    `rest` are the members of the part without a home and of what it belongs to; they stay with the call.
    """
    state = part.get("state")
    if type(state) is not dict:
        if state is not None:
            rest["state"] = state
        state = {}
    native = state.get("status")
    status = _ENDED.get(native) if type(native) is str else None
    told = state.get("metadata")
    metadata: dict[str, Any] = told if type(told) is dict else {}
    if status is not None and (part.get("tool") == INVALID or _failed(metadata)):
        status = "error"
    is_open = type(native) is str and native in _OPEN
    is_told = state.get("output") is not None or state.get("error") is not None
    has_result = status is not None or (is_told and not is_open)
    name, call_id = part.get("tool"), part.get("callID")
    if call_id is not None and type(call_id) is not str:
        rest["callID"] = call_id
    given, raw = arguments_of(state.get("input"))
    if raw is not None:
        rest["arguments"] = raw
        if given is raw:
            entry.trace.findings.add("arguments-unparsed", record=entry.record.number, action="kept as text")
    kept = _without_home(state, native=native, status=status, has_result=has_result)
    if kept and not has_result:
        rest["state"] = kept
    origin = _PROVIDER if _is_by_provider(part) else None
    entry.call(name, given, call_id=call_id, origin=origin, rest=rest)
    if has_result and type(name) is str and name:
        _write_result(entry, state, call_id=call_id, status=status, kept=kept, origin=origin)
    elif has_result:
        entry.event("block/tool_result", {"state": state})
    return Outcome(status, metadata)


def _write_result(
    entry: Entry,
    state: Mapping[str, Any],
    *,
    call_id: Any,
    status: str | None,
    kept: dict[str, Any],
    origin: Mapping[str, Any] | None,
) -> None:
    output = state.get("output")
    if status == "error" and state.get("error") is not None:
        if output is not None:
            kept["output"] = output
        output = state["error"]
    elif state.get("error") is not None:
        kept["error"] = state["error"]
    attachments = state.get("attachments")
    media: list[dict[str, Any]] = []
    if type(attachments) is list and attachments:
        shown, media = _attachments(entry, attachments)
        output = {"output": output, "attachments": shown}
    time = state.get("time")
    end = time.get("end") if type(time) is dict else None
    if end is not None and not is_time(end):
        entry.trace.findings.add("time-missing", record=entry.record.number, action="derived")
        end = None
    entry.result(
        output,
        call_id=call_id,
        status=status,
        time=NO_TIME if end is None else end,
        origin=origin,
        rest={"state": kept} if kept else None,
        media=media,
    )


def _attachments(entry: Entry, attachments: list[Any]) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the files in a tool's output and what the pictures among them are (D-LOG-14)."""
    shown, media = [], []
    choice = entry.trace.run.options.media
    for index, file in enumerate(attachments):
        shown.append(file)
        found = from_data_url(file.get("url")) if type(file) is dict else None
        if found is not None:
            media.append(found.told(f"/output/attachments/{index}/url"))
            if choice in ("hash", "attach"):
                shown[-1] = {name: member for name, member in file.items() if name != "url"}
                if choice == "attach":
                    entry.attachment(found.mediatype, found.body, block=index)
                else:
                    entry.trace.findings.add(
                        "media-omitted", record=entry.record.number, action="size and SHA-256 kept"
                    )
    return shown, media


def _failed(metadata: Mapping[str, Any]) -> bool:
    """Say whether a command ended with an exit code other than 0, although its part says completed."""
    code = metadata.get("exit")
    return type(code) is int and code != 0


def _is_by_provider(part: Mapping[str, Any]) -> bool:
    metadata = part.get("metadata")
    return type(metadata) is dict and metadata.get("providerExecuted") is True


def _without_home(
    state: Mapping[str, Any], *, native: Any, status: str | None, has_result: bool
) -> dict[str, Any]:
    """Return the members of a state that call and result have no member for."""
    kept: dict[str, Any] = {}
    for name, member in state.items():
        if name == "input" or (has_result and name in ("output", "error")):
            continue
        if name == "attachments" and type(member) is list and has_result:
            continue
        if name == "status" and (native == status or member is None):
            continue
        kept[name] = member
        if name == "time" and type(member) is dict:
            homes = ("start", "end") if has_result else ("start",)
            kept[name] = {key: time for key, time in member.items() if key not in homes or not is_time(time)}
        elif (
            name == "metadata" and type(member) is dict and member.get("output", name) == state.get("output")
        ):
            # Written twice by the program: once for its screen, once for the model.
            kept[name] = {key: value for key, value in member.items() if key != "output"}
        if kept[name] == {} != member:
            del kept[name]
    return kept


def is_time(value: Any) -> bool:
    """Say whether a native time can be mapped."""
    return type(value) in (int, float, str) and _times.read(value, is_text_format=False) is not None


class Changes:
    """What the tools of a session changed in files (native-logs.md F-01 to F-10)."""

    def __init__(self, attribution: Attribution) -> None:
        self.attribution = attribution
        self._edited: set[str] = set()

    def edited(self, part: Mapping[str, Any], outcome: Outcome, *, model: Any, record: int) -> None:
        """Take over what a call changed, if it succeeded and says what."""
        if outcome.status not in ("completed", "success"):
            return
        state = part.get("state")
        told = state.get("input") if type(state) is dict else None
        given: Mapping[str, Any] = told if type(told) is dict else {}
        model_id = model if type(model) is str else None
        metadata = outcome.metadata
        results = metadata.get("results")
        if type(metadata.get("files")) is list:
            for file in metadata["files"]:
                self._file(file, model_id, record)
        elif type(metadata.get("filediff")) is dict:
            self._file(metadata["filediff"], model_id, record)
        elif type(results) is list:
            for result in results:
                if type(result) is dict and type(result.get("filediff")) is dict:
                    self._file(result["filediff"], model_id, record)
        elif type(metadata.get("diff")) is str:
            self._diff(metadata["diff"], given.get("filePath"), model_id, record)
        elif part.get("tool") == "write" and type(given.get("content")) is str:
            path = metadata.get("filepath", given.get("filePath"))
            if type(path) is str:
                self._edited.add(path)
                self.attribution.edit(path, text=given["content"], model_id=model_id, record=record)

    def patched(self, files: Any, *, record: int) -> None:
        """Take over the files that a patch part names; who changed them, it does not say (F-10)."""
        for path in files if type(files) is list else ():
            if type(path) is str and path not in self._edited:
                self.attribution.touched(path, record=record)

    def _file(self, file: Any, model_id: str | None, record: int) -> None:
        """Take over `{file, before, after}` or `{filePath, type, patch | diff}`."""
        if type(file) is not dict:
            return
        path = file.get("file", file.get("filePath"))
        if type(path) is not str:
            return
        self._edited.add(path)
        kind, target = file.get("type"), file.get("movePath")
        if kind == "delete":
            self.attribution.delete(path, record=record)
            return
        before, after = file.get("before"), file.get("after")
        patch = file.get("patch", file.get("diff"))
        if type(before) is str and type(after) is str:
            self.attribution.edit(path, before=before, after=after, model_id=model_id, record=record)
        elif type(patch) is str:
            self.attribution.edit(path, unified_diff=patch, model_id=model_id, record=record)
        if type(target) is str:
            self._edited.add(target)
            self.attribution.rename(path, target, record=record)

    def _diff(self, diff: str, path: Any, model_id: str | None, record: int) -> None:
        """Take over a unified diff, of the file that the call names or of those that it names itself."""
        if type(path) is str:
            self._edited.add(path)
            self.attribution.edit(path, unified_diff=diff, model_id=model_id, record=record)
            return
        for patch in parse_unified(diff):
            if patch.path is not None:
                self._edited.add(patch.path)
                structured = [{"newStart": hunk.start + 1, "lines": list(hunk.lines)} for hunk in patch.hunks]
                self.attribution.edit(
                    patch.path, structured_patch=structured, model_id=model_id, record=record
                )
