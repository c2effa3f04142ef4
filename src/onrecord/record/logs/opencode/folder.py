"""OpenCode's folder of JSON files, as until version 1.1: one file per session, message and part (layout 1)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from onrecord.base.errors import UsageError
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.folders import files_of
from onrecord.record.logs.opencode import recognition
from onrecord.record.logs.opencode.items import Store
from onrecord.record.logs.opencode.recognition import Shape
from onrecord.record.logs.opencode.units import Units
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.reading.parsing import parse
from onrecord.record.logs.reading.pieces import ACTIONS
from onrecord.record.logs.reading.records import NotJson

MAX_FILE: Final = 256 << 20
"""Largest file that is read, as for lines."""

_SHAPES: Final[dict[str, Shape]] = {
    "session": "session",
    "info": "session",
    "message": "message",
    "part": "part",
    "share": "share",
    "session_share": "share",
}
"""What lies in a folder of this name."""

_OTHERS: Final = frozenset({"todo", "session_diff"})
"""Folders of files about a session that become system-events of that name."""


_NO_LOGS: Final = frozenset({"bin", "log", "repos", "snapshot", "tool-output", "worktree"})
"""Folders beside the store: programs, diagnostics, copies of the user's files."""

_CREDENTIALS: Final = frozenset({"auth.json", "mcp-auth.json", "account.json"})


def is_store(folder: Path, names: frozenset[str]) -> bool:
    """Say whether a folder with entries of these names is one store."""
    if "message" in names and names & {"session", "part", "info"}:
        return (folder / "message").is_dir()
    # What version 1.2 leaves behind when it has moved the rest into its database.
    return "session_diff" in names and folder.name == "storage" and folder.parent.name == "opencode"


def is_no_log(path: Path) -> bool:
    """Say whether a file of the program's own folder is none of a store: credentials above all are never opened."""
    parts = path.parts
    for place, name in enumerate(parts[:-1]):
        if name == "opencode" and (parts[place + 1] in _NO_LOGS or path.name in _CREDENTIALS):
            return True
    return False


def read_folder(store: Store) -> None:
    """Enter the sessions, messages and parts of a folder, each file a record."""
    root = store.trace.path
    units = Units(store)
    for path, _ in files_of(root):
        below = path.relative_to(root).parts
        if len(below) > 2 and below[0] == "session" and below[1] in ("info", "message", "part"):
            # Before version 0.2 the three folders lay in a folder of this name.
            below = below[1:]
        if path.suffix == ".json" and len(below) > 1 and (below[0] in _SHAPES or below[0] in _OTHERS):
            _enter_file(store, units, path, below)


def _cleaned(data: bytes, findings: FileFindings) -> bytes:
    """Return a text without NUL bytes and without a byte order mark, which are reported (R-02, R-03)."""
    nuls = data.count(b"\0")
    if nuls:
        findings.add("nul-bytes", message=f"{nuls} NUL bytes in a file", action="removed")
        data = data.replace(b"\0", b"")
    if data.startswith(b"\xef\xbb\xbf"):
        findings.count("bom", action="skipped")
        data = data[3:]
    return data


def _enter_file(store: Store, units: Units, path: Path, below: tuple[str, ...]) -> None:
    trace = store.trace
    place = "/".join(below)[:256].encode("utf-8", "replace").decode("utf-8")
    try:
        with NativeFile(path).open(trace.findings) as stream:
            data = stream.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise NotJson("too-long", f"a file of more than {MAX_FILE} bytes")
        parsed = parse(_cleaned(data, trace.findings))
    except (UsageError, OSError):
        units.rejected(b"", "malformed-line", "a file of the store cannot be read", about={"path": place})
        return
    except NotJson as fault:
        if data.strip(b" \t\r\n\0"):
            code = "truncated-tail" if fault.ends_inside else fault.code
            units.rejected(data, code, str(fault), about={"path": place})
        return
    value = parsed.value
    if type(value) is not dict and below[0] not in _OTHERS:
        units.not_an_object(value)
        return
    record = trace.new_record(value if type(value) is dict else {"value": value}, numbers=parsed.numbers)
    for code, count in parsed.faults.items():
        trace.findings.add(code, record=record.number, action=ACTIONS[code], count=count)
    if below[0] in _OTHERS:
        units.other(record, below[0], session=path.stem)
        return
    shape = _SHAPES[below[0]]
    if shape != "share" and recognition.shape_of(record.value) == "share":
        shape = "share"
    inside = below[-2] if len(below) > 2 else None
    units.enter(
        record,
        shape,
        session=inside if shape == "message" else None,
        message=inside if shape == "part" else None,
    )
