"""What the last import into a folder has read, so that unchanged files are not read again.

The notes lie in the folder of the vCons. They are a convenience: whoever may write there can change them, and whatever
is odd in them means that everything is read anew.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onrecord import __version__
from onrecord.base.files import read_regular, replace_whole
from onrecord.record.logs.folders import Stamp
from onrecord.record.logs.interface import formats
from onrecord.record.logs.own_files import FILE_NAME, UUID

MAX_BYTES: Final = 1 << 30
"""Largest notes that are read."""

MAX_NUMBER: Final = 1 << 31
"""Number that no file reaches."""

_VERSION: Final = 1


@dataclass(slots=True, kw_only=True)
class Known:
    """One source as it was when it was last read: its stamp and hash, the group it is read with, what it told.

    `told` are marks of the sessions, `report` the part of the report. The stamp alone proves nothing when the file was
    written right before it was read (`is_settled`).
    """

    stamp: Stamp
    sha256: str
    is_settled: bool
    group: str
    told: list[str] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class KnownGroup:
    """Sources that were read together: the hash of their side files, and the uuids of their vCons."""

    side: str
    vcons: list[str]


class State:
    """The notes about a folder of vCons. `rules` stands for all options that the vCons depend on.

    `vcons` are the sizes of the vCons' files by uuid. `numbers` are those of all files that were ever met, so that
    `src` in the vCons of earlier imports means the same file in every report. `fault` says why notes that are there are
    not used.
    """

    def __init__(self, rules: str) -> None:
        self.rules = rules
        self.sources: dict[str, Known] = {}
        self.groups: dict[str, KnownGroup] = {}
        self.vcons: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.fault: str | None = None

    @classmethod
    def read(cls, folder: Path, *, rules: str) -> State:
        """Return the notes that lie in a folder; empty ones where there are none, or none that can be used."""
        state = cls(rules)
        try:
            data = read_regular(folder / FILE_NAME, limit_bytes=MAX_BYTES)
        except FileNotFoundError:
            return state
        except OSError as fault:
            state.fault = fault.strerror or "cannot be read"
            return state
        try:
            document = json.loads(data)
            if document["version"] != _VERSION:
                state.fault = "written by another version"
                return state
            state.numbers = _numbers(document["numbers"])
            if document["onrecord"] == __version__ and document["rules"] == rules:
                sources = {name: _known(value) for name, value in document["sources"].items()}
                groups = {name: _known_group(value) for name, value in document["groups"].items()}
                vcons = _sizes(document["vcons"])
                state.sources, state.groups, state.vcons = sources, groups, vcons
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            state.fault = "damaged"
        return state

    def write(self, folder: Path) -> None:
        """Put the notes into a folder, whole or not at all. Raises `OSError`."""
        document = {
            "version": _VERSION,
            "onrecord": __version__,
            "rules": self.rules,
            "sources": {name: _members(known) for name, known in self.sources.items()},
            "groups": {
                name: {"side": group.side, "vcons": group.vcons} for name, group in self.groups.items()
            },
            "vcons": self.vcons,
            "numbers": self.numbers,
        }
        text = json.dumps(document, separators=(",", ":"))
        replace_whole(folder / FILE_NAME, text.encode("ascii"), mode=0o600)

    def has_vcons(self, group: str, folder: Path) -> bool:
        """Say whether the vCons of a group lie in the folder with the sizes that they were written with."""
        known = self.groups.get(group)
        if known is None:
            return False
        with contextlib.suppress(OSError):
            return all(
                os.stat(folder / f"{name}.vcon").st_size == self.vcons.get(name) for name in known.vcons
            )
        return False


def _members(known: Known) -> dict[str, Any]:
    stamp = known.stamp
    return {
        "stamp": {
            "size": stamp.size,
            "mtime_ns": stamp.mtime_ns,
            "ctime_ns": stamp.ctime_ns,
            "inode": stamp.inode,
        },
        "sha256": known.sha256,
        "is_settled": known.is_settled,
        "group": known.group,
        "told": known.told,
        "report": known.report,
    }


def _known(value: Mapping[str, Any]) -> Known:
    stamp = Stamp(**value["stamp"])
    numbers = (stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode)
    known = Known(**{**value, "stamp": stamp})
    texts = (known.sha256, known.group, *known.told)
    _require(all(type(number) is int for number in numbers))
    _require(all(type(text) is str for text in texts) and type(known.is_settled) is bool)
    _require_report(known.report)
    return known


def _require_report(report: Mapping[str, Any]) -> None:
    """Refuse a part of a report that the code that prints reports could not print."""
    _require(type(report["file"]) is str and report["format"] in formats())
    _require(type(report["bytes"]) is int and type(report["sha256"]) is str)
    account = report["accounting"]
    records, *fates = (account[name] for name in ("records", "mapped", "duplicates", "reported"))
    _require(all(type(count) is int and count >= 0 for count in (records, *fates)) and records == sum(fates))
    _require(all(type(count) is int for count in account["of_duplicates"].values()))
    for session in report["sessions"]:
        _require(type(session["agent_session_id"]) is str)
        _require(all(type(count) is int for count in session["counts"].values()))
        _require(all(type(count) is int for count in session["usage"].values()))
        _require(session["start"] is None or type(session["start"]) is str)
        _require(all(session[name] is None or type(session[name]) is str for name in ("vcon", "parent")))
    for finding in report["findings"]:
        _require(all(type(finding[name]) is str for name in ("code", "file", "message", "action")))
        _require(finding["severity"] in ("error", "warning", "info") and type(finding["count"]) is int)


def _known_group(value: Mapping[str, Any]) -> KnownGroup:
    group = KnownGroup(**value)
    _require(type(group.side) is str and type(group.vcons) is list)
    _require(all(type(name) is str and UUID.fullmatch(name) for name in group.vcons))
    return group


def _sizes(value: Mapping[str, Any]) -> dict[str, int]:
    _require(all(UUID.fullmatch(name) and type(size) is int for name, size in value.items()))
    return dict(value)


def _numbers(value: Mapping[str, Any]) -> dict[str, int]:
    _require(all(type(number) is int and 0 <= number < MAX_NUMBER for number in value.values()))
    _require(len(set(value.values())) == len(value))
    return dict(value)


def _require(is_so: object) -> None:
    if not is_so:
        raise ValueError
