"""An invented format of logs for tests of the import: one line per entry, sessions by `run`, no usage, no tools.

{"kind": "diary-line", "run": "r1", "at": "2026-07-01T10:00:00Z", "who": "user", "said": "hello"}
"""

from __future__ import annotations

import json
from pathlib import Path

from onrecord.record.logs import interface
from onrecord.record.logs.interface import Importer
from onrecord.record.logs.sessions import AGENT, USER


class Diary(Importer):
    """Reads the diary of an agent that does not exist."""

    format = "diary"
    title = "Diary of an invented agent"
    agent_kind = "diary"
    provider = "example"
    is_grouped_by_folder = True

    @classmethod
    def recognises(cls, value):
        return value.get("kind") == "diary-line"

    @classmethod
    def is_side_file(cls, path):
        return path.suffix == ".margin"

    def record(self, record):
        value = record.value
        if value.get("kind") != "diary-line":
            self.trace.reported(record, "foreign-record")
            return
        if value.get("said") == "fail":
            raise RuntimeError("the importer has a fault")
        session = self.trace.session(str(value.get("run", "")))
        if isinstance(value.get("below"), str):
            session.child_of(value["below"])
        margin = self.trace.path.with_suffix(".margin")
        entry = session.entry(record, id=value.get("id"), time=value.get("at"))
        seen = self.trace.run.seen(self.format)
        mark, content = hash(value.get("id")), hash(str(value.get("said")))
        if (
            value.get("id") is not None
            and seen.setdefault(mark, content) == content
            and session.has_entry(value["id"])
        ):
            self.trace.duplicate(record, "duplicate-entry", of="an entry before", report=True)
            return
        session.agent.saw_model("example-1")
        if "said" not in value:
            entry.event("session-start", {})
            return
        entry.text(str(value["said"]), by=USER if value.get("who") == "user" else AGENT)
        if margin.is_file():
            entry.event("meta", {"margin": margin.read_text()})


class Registered:
    """The format is known inside the `with` statement, and no other."""

    def __enter__(self):
        self._before = interface.FORMATS, dict(interface._registry)
        interface.FORMATS = {}
        interface._registry.clear()
        interface.register(Diary)

    def __exit__(self, *_):
        interface.FORMATS, registry = self._before
        interface._registry.clear()
        interface._registry.update(registry)


def line(run="r1", said="hello", who="user", at="2026-07-01T10:00:00Z", **more):
    """Return one line."""
    return json.dumps({"kind": "diary-line", "run": run, "at": at, "who": who, "said": said, **more}) + "\n"


def write(path: Path, *lines: str) -> Path:
    """Write a diary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    return path
