"""A native log format of the tests, whose lines say themselves what they become.

{"session": "s1", "id": "a", "parent": null, "time": "2026-07-01T10:00:00Z", "do": [["text", "hello", "user"]]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onrecord.record.checks.checker import check
from onrecord.record.logs.assembly import assemble
from onrecord.record.logs.findings import LogFinding
from onrecord.record.logs.interface import Importer
from onrecord.record.logs.linking import families, report_unlinked
from onrecord.record.logs.media import attach, medium
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.runs import Options, Run
from onrecord.record.logs.sessions import AGENT, NO_TIME, PARENT, USER
from onrecord.record.logs.trace import Trace
from onrecord.record.logs.usage import codex

SPEAKERS = {"user": USER, "agent": AGENT, "parent": PARENT}


class Scripted(Importer):
    """Does what each line says."""

    format = "scripted"
    title = "Log of the tests"
    agent_kind = "scripted"

    @classmethod
    def recognises(cls, value):
        return "do" in value

    def record(self, record):
        line = record.value
        if "duplicate" in line:
            self.trace.duplicate(record, line["duplicate"], of="another", report=True)
            return
        session = self.trace.session(line.get("session", "s1"))
        if "child_of" in line:
            session.child_of(line["child_of"], call_id=line.get("call"))
        if "model" in line:
            session.agent.saw_model(line["model"])
        time = line.get("time") if "time" in line else NO_TIME
        entry = session.entry(record, id=line.get("id"), parent=line.get("parent"), time=time)
        for block, (what, *rest) in enumerate(line.get("do", [["event", "meta", line]])):
            getattr(self, what)(entry, block, *rest)

    def text(self, entry, block, body, speaker="agent", **options):
        by = SPEAKERS[speaker] if speaker in SPEAKERS else entry.session.other(speaker)
        number = entry.text(body, by=by, block=block, rest=options)
        if number is not None and options.get("usage"):
            entry.session.attach_usage(number, codex(options["usage"]), options["usage"])

    def used(self, entry, block, body, usage):
        number = entry.text(body, block=block)
        entry.session.attach_usage(number, codex(usage), usage)

    def call(self, entry, block, name, value, call_id=None):
        entry.call(name, value, call_id=call_id, block=block)

    def result(self, entry, block, value, call_id=None, status=None):
        entry.result(value, call_id=call_id, status=status, block=block)

    def reasoning(self, entry, block, content, encrypted=None):
        entry.reasoning(content, encrypted=encrypted, block=block)

    def event(self, entry, block, kind, data=None):
        entry.event(kind, data, block=block)

    def begin(self, entry, block, data=None):
        entry.session.begin(entry, data, block=block)

    def prompt(self, entry, block, text):
        entry.system_prompt(text, "system", block=block)

    def tools(self, entry, block, names):
        entry.tool_definitions([{"name": name} for name in names], names, block=block)

    def tokens(self, entry, block, scope, usage):
        entry.token_count(scope, codex(usage), usage, block=block)

    def picture(self, entry, block, mediatype, data):
        attach(entry, medium(mediatype, data), block=block, native={"type": "image", "data": data})

    def kept(self, entry, block, body, rest):
        entry.text(body, block=block, rest=rest)

    def flag(self, entry, block, id, flag):
        node = entry.session.node_of(id)
        assert entry.session.flag_entry(node, flag)
        entry.event("meta", block=block)


@dataclass(frozen=True)
class Imported:
    """What came of a log."""

    vcons: list[dict[str, Any]]
    findings: list[LogFinding]
    accounts: list[dict[str, Any]]

    @property
    def vcon(self):
        assert len(self.vcons) == 1
        return self.vcons[0]

    def codes(self):
        counts = {}
        for finding in self.findings:
            counts[finding.code] = counts.get(finding.code, 0) + finding.count
        return counts


def lines(*values):
    """Return the bytes of a log with these lines."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def import_scripted(folder: Path, *logs: bytes, options: Options | None = None, names=None) -> Imported:
    """Import logs of the tests' format in one run, and check each vCon strictly."""
    with Run(options, folder=folder) as run:
        traces = []
        for number, log in enumerate(logs):
            path = folder / (names[number] if names else f"log-{number}.jsonl")
            path.write_bytes(log)
            trace = Trace(run, Scripted, NativeFile(path), name=path.name, file_number=number)
            Scripted(trace).read()
            trace.finish()
            traces.append(trace)
        for session in run.sessions:
            session.finish()
        made = families(run)
        report_unlinked(run.sessions)
        vcons = []
        for number, family in enumerate(made):
            path = folder / f"{number}.vcon"
            assemble(run, family, path, created_at="2026-12-01T00:00:00Z")
            text = path.read_bytes()
            path.unlink()
            errors = [finding for finding in check(text, strict=True).findings if finding.severity == "error"]
            assert errors == [], errors
            vcons.append(json.loads(text))
        findings = [finding for trace in traces for finding in trace.findings.listed()]
        return Imported(vcons, findings, [trace.accounting() for trace in traces])
