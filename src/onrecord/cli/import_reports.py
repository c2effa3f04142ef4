"""What `onrecord import` tells people: sessions, what was found, the account of all records, where the vCons are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onrecord.base.findings import SEVERITIES
from onrecord.cli.findings import SEVERITY_STYLES
from onrecord.cli.lines import Lines, Segment
from onrecord.cli.output import visible
from onrecord.cli.progress import size_text
from onrecord.record.logs.catalogue import CATALOGUE
from onrecord.record.logs.report import ImportReport

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_SESSIONS: Final = 30
"""Sessions printed; the others are counted, and --json has them all."""

SHOWN_PLACES: Final = 3
"""Places printed for each code of findings."""

SHOWN_FILES: Final = 5
"""Files printed that were not imported, for each reason."""

MAX_NAME: Final = 120
"""Characters of a file's name that are printed, from its end."""

_COLUMNS: Final = ("agent", "session", "started", "turns", "calls", "tokens in", "out", "vCon")
_NUMBERS: Final = frozenset(["calls", "tokens in", "out"])
_FIRST_TO_GO: Final = ("turns", "out", "tokens in", "calls")
"""Columns that are left out, one after the other, until the table fits a terminal."""

_SHORT_ID: Final = 8
_PREFIXES: Final = ("agent-", "session-", "sha256-", "ses_")


def print_report(out: Console, report: ImportReport) -> None:
    """Print the report of an import."""
    lines = Lines(out)
    totals = report.totals()
    names = _Names(report.files)
    _add_sessions(lines, report.files, width=out.width if out.is_terminal else None)
    if names.folder and any(report.findings()):
        lines.add([("files below ", "dim")], [(f"{visible(names.folder)}:", "dim")])
    _add_findings(lines, report.files, names)
    _add_left_out(lines, report.files, totals, names)
    for text in report.notes:
        lines.add([("note: ", "yellow")], [(visible(text), "")])
    _add_account(lines, report, totals)
    lines.flush()


class _Names:
    """Names of files as they are printed: below the folder that they share, where there is one, and not too long."""

    def __init__(self, files: Sequence[Mapping[str, Any]]) -> None:
        self.folder = ""
        if len(files) > 1:
            with suppress(ValueError):
                shared = os.path.commonpath([os.path.dirname(file["file"]) for file in files])
                self.folder = f"{shared.rstrip('/')}/" if shared else ""

    def shown(self, file: str) -> str:
        """Return a file's name."""
        name = file.removeprefix(self.folder) or file
        return visible(name if len(name) <= MAX_NAME else f"…{name[-MAX_NAME:]}")


# -- sessions


def _add_sessions(lines: Lines, files: Sequence[Mapping[str, Any]], *, width: int | None) -> None:
    sessions = [session for file in files for session in file["sessions"]]
    if not sessions:
        return
    shown = _in_families(sessions)[:SHOWN_SESSIONS]
    rows = [_COLUMNS, *(_row(session, depth) for session, depth in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    columns = list(range(len(_COLUMNS)))
    for name in _FIRST_TO_GO:
        if width is not None and sum(widths[column] + 2 for column in columns) - 2 > width:
            columns.remove(_COLUMNS.index(name))
    for number, row in enumerate(rows):
        cells: list[Segment] = []
        for column in columns:
            is_number = _COLUMNS[column] in _NUMBERS
            text = row[column].rjust(widths[column]) if is_number else row[column].ljust(widths[column])
            is_last = column == columns[-1]
            style = "dim" if not number else "cyan" if is_last else ""
            cells.append((row[column] if is_last else f"{text}  ", style))
        lines.add(cells)
    if len(sessions) > len(shown):
        lines.add([(f"and {len(sessions) - len(shown)} more sessions; --json has them all", "dim")])
    lines.add([])


def _in_families(sessions: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], int]]:
    """Return the sessions with their depth, each sub-agent's behind the one that started it."""
    known = list(sessions)
    ids = {(session["vcon"], session["agent_session_id"]) for session in known}
    below: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
    roots = []
    for session in known:
        above = (session["vcon"], session.get("parent"))
        if session.get("parent") is not None and above in ids and above[1] != session["agent_session_id"]:
            below.setdefault(above, []).append(session)
        else:
            roots.append(session)
    ordered: list[tuple[Mapping[str, Any], int]] = []
    pending = [(session, 0) for session in reversed(roots)]
    while pending:
        session, depth = pending.pop()
        ordered.append((session, depth))
        children = below.pop((session["vcon"], session["agent_session_id"]), [])
        pending += [(child, depth + 1) for child in reversed(children)]
    return ordered


def _row(session: Mapping[str, Any], depth: int) -> tuple[str, ...]:
    counts, usage = session["counts"], session["usage"]
    agent = visible(str(session.get("agent") or "-")[:20])
    has_usage = session.get("usage_source") is not None
    return (
        ("  " * min(depth, 4) + ("└ " if depth else "")) + agent,
        _shown_id(session, depth),
        visible(str(session["start"] or "-")[:16].replace("T", " ")),
        f"{counts.get('user_turns', 0)} + {counts.get('agent_turns', 0)}",
        f"{counts.get('tool_calls', 0):,}",
        f"{usage.get('input', 0):,}" if has_usage else "-",
        f"{usage.get('output', 0):,}" if has_usage else "-",
        _short(Path(session["vcon"]).stem) if session["vcon"] else "-",
    )


def _shown_id(session: Mapping[str, Any], depth: int) -> str:
    """Return a session's id as it is printed: a sub-agent's without that of its parent, with which it begins."""
    first, slash, rest = session["agent_session_id"].partition("/")
    if not slash or not rest:
        return _short(first)
    return f"/{_short(rest)}" if depth and session.get("parent") == first else f"…/{_short(rest)}"


def _short(identity: str) -> str:
    """Return what is enough of an id to find it: its beginning, behind words that all ids of a kind begin with."""
    text = visible(identity)
    if len(text) <= 2 * _SHORT_ID:
        return text
    prefix = next((prefix for prefix in _PREFIXES if text.startswith(prefix)), "")
    return f"{text[: len(prefix) + _SHORT_ID]}…"


# -- findings


def _add_findings(lines: Lines, files: Sequence[Mapping[str, Any]], names: _Names) -> None:
    counts: Counter[str] = Counter()
    in_files: dict[str, set[str]] = {}
    worst: dict[str, str] = {}
    places: dict[str, list[Mapping[str, Any]]] = {}
    for file in files:
        if file["format"] is None and file.get("twin_of") is None:
            continue
        for finding in file["findings"]:
            code = finding["code"]
            counts[code] += finding["count"]
            in_files.setdefault(code, set()).add(finding["file"])
            if code not in worst or SEVERITIES.index(finding["severity"]) > SEVERITIES.index(worst[code]):
                worst[code] = finding["severity"]
            places.setdefault(code, []).append(finding)
    if not counts:
        return
    order = {severity: -rank for rank, severity in enumerate(SEVERITIES)}
    for code in sorted(counts, key=lambda one: (order[worst[one]], -counts[one], one)):  # type: ignore[index]
        severity = worst[code]
        head: list[Segment] = [(f"{severity:8}", SEVERITY_STYLES[severity])]  # type: ignore[index]
        entry = CATALOGUE.get(code)
        lines.add(
            head,
            [
                (code, "bold"),
                (f" {counts[code]:,}×" if counts[code] > 1 else "", ""),
                (f" in {len(in_files[code])} files" if len(in_files[code]) > 1 else "", ""),
                (f"  {entry.meaning}" if entry is not None else "", ""),
            ],
        )
        if severity != "info":
            if entry is not None and entry.change:
                lines.add([(" " * 8, "")], [(entry.change, "dim")])
            for finding in places[code][:SHOWN_PLACES]:
                lines.add([(" " * 8, "")], [(_place(finding, names), "cyan")])
            more = counts[code] - sum(finding["count"] for finding in places[code][:SHOWN_PLACES])
            if len(places[code]) > SHOWN_PLACES:
                lines.add([(" " * 8, "")], [(f"and {more:,} more; --json says where", "dim")])
    lines.add([])


def _place(finding: Mapping[str, Any], names: _Names) -> str:
    record = finding.get("record")
    words = [names.shown(finding["file"])]
    if type(record) is int:
        words.append(f"record {record}")
    data = finding.get("data")
    if isinstance(data, Mapping) and isinstance(data.get("pattern"), str):
        words.append(visible(data["pattern"][:64]))
    return ", ".join(words)


# -- what was not imported


def _add_left_out(
    lines: Lines, files: Sequence[Mapping[str, Any]], totals: Mapping[str, Any], names: _Names
) -> None:
    reasons: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for file in files:
        if file["format"] is None and file.get("twin_of") is None and file["findings"]:
            finding = max(file["findings"], key=lambda one: SEVERITIES.index(one["severity"]))
            reasons.setdefault((finding["severity"], finding["code"]), []).append(finding)
    for (severity, code), found in sorted(
        reasons.items(),
        key=lambda item: -SEVERITIES.index(item[0][0]),
    ):
        count = "1 file" if len(found) == 1 else f"{len(found):,} files"
        lines.add(
            [(f"{severity:8}", SEVERITY_STYLES[severity])],  # type: ignore[index]
            [(code, "bold"), (f" {count} not imported", "")],
        )
        if severity != "info":
            if code in CATALOGUE and CATALOGUE[code].change:
                lines.add([(" " * 8, "")], [(CATALOGUE[code].change, "dim")])
            for finding in found[:SHOWN_FILES]:
                body = [(names.shown(finding["file"]), "cyan"), (f"  {visible(finding['message'])}", "")]
                lines.add([(" " * 8, "")], body)
            if len(found) > SHOWN_FILES:
                lines.add([(" " * 8, "")], [(f"and {len(found) - SHOWN_FILES} more; --json has them", "dim")])
    passed = totals["not_looked_at"]
    named = [
        f"{passed[name]:,} {name if passed[name] != 1 else name[:-1]}" for name in passed if passed[name]
    ]
    if named:
        lines.add(
            [("not looked at", "dim")],
            [(f" on the way, by their names and kinds: {', '.join(named)}", "dim")],
        )
    if reasons or named:
        lines.add([])


# -- the account


def _add_account(lines: Lines, report: ImportReport, totals: Mapping[str, Any]) -> None:
    duplicates: Counter[str] = Counter()
    for file in report.files:
        if file["accounting"] is not None:
            duplicates.update(file["accounting"]["of_duplicates"])
    reasons = ", ".join(f"{count:,} {visible(reason)}" for reason, count in duplicates.most_common())
    account = (
        f"{totals['records']:,} records read = {totals['mapped']:,} mapped + {totals['duplicates']:,} duplicates"
        f"{f' ({reasons})' if reasons else ''} + {totals['reported']:,} reported"
    )
    lines.add([], [(account, "bold")])
    speed = totals["bytes"] / totals["seconds"] if totals["seconds"] > 0 else 0
    unchanged = f", {totals['unchanged']:,} unchanged since the last import" if totals["unchanged"] else ""
    read = f"{totals['files']:,} files" if totals["files"] != 1 else "1 file"
    pace = f" ({size_text(round(speed))}/s)" if speed and not totals["unchanged"] else ""
    lines.add(
        [], [(f"{read}, {size_text(totals['bytes'])} in {totals['seconds']:.1f} s{pace}{unchanged}", "")]
    )
    words = {
        "new": "new",
        "changed": "changed",
        "same": "the same as before",
        "refused": "not replaced",
        "fuller": "left, since they tell more",
    }
    made = [f"{report.changes[name]:,} {word}" for name, word in words.items() if report.changes[name]]
    if made and report.target is not None:
        count = sum(report.changes.values())
        vcons = "1 vCon" if count == 1 else f"{count:,} vCons"
        lines.add([], [(f"{vcons} in {visible(report.target)}: {', '.join(made)}", "")])
    elif report.target is not None and totals["sessions"]:
        lines.add([], [(f"no vCon in {visible(report.target)} had to change", "")])
