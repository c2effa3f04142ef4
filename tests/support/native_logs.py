"""Imports small native logs in tests, and breaks them in the ways in which real ones are broken.

imported = import_lines([{"type": "user", …}], "claude-jsonl")
assert imported.codes["malformed-line"] == 1
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from onrecord.record.checks.checker import check
from onrecord.record.logs.assembly import assemble
from onrecord.record.logs.interface import importer_for
from onrecord.record.logs.linking import families, report_unlinked
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.runs import Options, Run
from onrecord.record.logs.trace import Trace

CREATED_AT = "2026-12-01T00:00:00Z"

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    7,
    -1.5,
    "",
    "odd",
    [],
    [None, 3, ["x"]],
    {},
    {"odd": {"shape": 1}},
)
"""What stands in the place of a member when its kind is changed."""

UNREADABLE = frozenset(["malformed-line", "truncated-tail", "too-deep", "too-long"])
"""Findings about records that do not parse."""


@dataclass
class Imported:
    """What an import gave: vCons as dicts, the account of each file, and all findings."""

    vcons: list[dict[str, Any]] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    accounting: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)
    sessions: list[Any] = field(default_factory=list)

    @property
    def vcon(self) -> dict[str, Any]:
        """The only vCon."""
        assert len(self.vcons) == 1, [vcon["uuid"] for vcon in self.vcons]
        return self.vcons[0]

    @property
    def codes(self) -> Counter[str]:
        """How often each code was reported."""
        codes: Counter[str] = Counter()
        for finding in self.findings:
            codes[finding.code] += finding.count
        return codes

    @property
    def dialogs(self) -> list[dict[str, Any]]:
        """The Dialogs of all vCons."""
        return [dialog for vcon in self.vcons for dialog in vcon.get("dialog", ())]

    @property
    def bodies(self) -> list[str]:
        """The texts of the Dialogs."""
        return [dialog["body"] for dialog in self.dialogs]

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The Events of all vCons of one type, or system-events of one event type."""
        return [
            event
            for vcon in self.vcons
            for event in vcon.get("events", ())
            if kind is None or kind in (event["type"], event.get("event_type"))
        ]

    @property
    def unreadable(self) -> int:
        """How many records did not parse."""
        return sum(count for code, count in self.codes.items() if code in UNREADABLE)

    def counts(self) -> dict[str, int]:
        """The counts of MANIFEST.tsv over all sessions."""
        total: Counter[str] = Counter({"sessions": len(self.sessions)})
        for session in self.sessions:
            for name in ("user_turns", "agent_turns", "tool_calls", "tool_results", "reasoning"):
                total[name] += session.counts[name]
            usage = session.usage_totals()[0]
            total["reasoning_tokens"] += usage["reasoning"]
            for name in ("responses", "input", "cached", "output", "total"):
                total[name] += usage[name]
        total["records"] = sum(account["records"] for account in self.accounting)
        total["unreadable"] = self.unreadable
        return dict(total)

    def assert_sound(self) -> None:
        """Assert what holds for every import: the account adds up, and no vCon has an error."""
        for account in self.accounting:
            assert account["records"] == account["mapped"] + account["duplicates"] + account["reported"]
        for text in self.texts:
            errors = [
                (finding.code, finding.pointer)
                for finding in check(text, strict=True).findings
                if finding.severity == "error"
            ]
            assert not errors, errors[:5]


def import_files(paths: Sequence[Path], format: str, *, options: Options | None = None) -> Imported:
    """Import files in this order as one run, without the rules for folders."""
    imported = Imported()
    with tempfile.TemporaryDirectory() as folder, Run(options or Options()) as run:
        importer = importer_for(format)
        traces = []
        for number, path in enumerate(paths):
            trace = Trace(run, importer, NativeFile(path), name=path.name, file_number=number)
            importer(trace).read()
            trace.finish()
            traces.append(trace)
        for session in run.sessions:
            session.finish()
        groups = families(run)
        report_unlinked(run.sessions)
        for number, family in enumerate(groups):
            place = Path(folder) / f"{number}.vcon"
            assemble(run, family, place, created_at=CREATED_AT)
            imported.texts.append(place.read_bytes())
            imported.vcons.append(json.loads(imported.texts[-1]))
            imported.sessions += family
        for trace in traces:
            imported.accounting.append(trace.accounting())
            imported.findings += trace.findings.listed()
    return imported


def import_lines(
    data: bytes | str | Sequence[Any], format: str, *, name: str = "log.jsonl", options: Options | None = None
) -> Imported:
    """Import a log given as bytes, text, or values that become one line each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(to_bytes(data))
        return import_files([path], format, options=options)


def to_bytes(data: bytes | str | Sequence[Any]) -> bytes:
    """Return a log as bytes."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode("utf-8", "surrogatepass")
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in data)


def odd_shapes(value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a record with each of its members, at any depth, replaced by each odd value, or left out."""
    for path in list(_paths(value)):
        for number in range(len(ODD_VALUES) + 1):
            changed = copy.deepcopy(value)
            holder: Any = changed
            for step in path[:-1]:
                holder = holder[step]
            if number < len(ODD_VALUES):
                holder[path[-1]] = copy.deepcopy(ODD_VALUES[number])
            else:
                del holder[path[-1]]
            yield f"{'/'.join(map(str, path))} variant {number}", changed


def _paths(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, member in members:
        yield (*prefix, name)
        yield from _paths(member, (*prefix, name))


@st.composite
def mutations(draw: st.DrawFn, lines: Sequence[dict[str, Any]]) -> bytes:
    """Break a valid log of JSON lines: its records, the kinds of their members, its bytes."""
    values: list[Any] = copy.deepcopy(list(lines))
    for _ in range(draw(st.integers(0, 4))):
        if not values:
            break
        place = draw(st.integers(0, len(values) - 1))
        step = draw(st.sampled_from(["delete", "again", "swap", "odd", "odd", "odd", "junk"]))
        if step == "delete":
            del values[place]
        elif step == "again":
            values.insert(draw(st.integers(0, len(values))), copy.deepcopy(values[place]))
        elif step == "swap":
            other = draw(st.integers(0, len(values) - 1))
            values[place], values[other] = values[other], values[place]
        elif step == "junk":
            junk = draw(st.sampled_from([*ODD_VALUES, {"type": "news"}, {"type": []}]))
            values.insert(place, copy.deepcopy(junk))
        else:
            paths = list(_paths(values[place]))
            if paths:
                path = draw(st.sampled_from(paths))
                holder = values[place]
                for part in path[:-1]:
                    holder = holder[part]
                holder[path[-1]] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
    data = bytearray(to_bytes(values))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        step = draw(st.sampled_from(["cut", "tail", "insert"]))
        if step == "cut":
            del data[at : at + draw(st.integers(1, 40))]
        elif step == "tail":
            del data[at:]
        else:
            junk = [
                b"\0\0",
                b"\n",
                b"\r\n",
                b"\xff",
                b"\xef\xbb\xbf",
                b"NaN",
                b'"',
                b"{",
                b"}",
                b"\xe2\x80\xa8",
            ]
            data[at:at] = draw(st.sampled_from([*junk, b"\\ud800", b"12345678901234567890", b"[" * 150]))
    return bytes(data)
