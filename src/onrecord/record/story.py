"""The story of a vCon for people: who, when, which operations, what policy said, how each attempt went.

`tell` makes the story as data, `render` shows it with rich. Content is shown in short excerpts, written out so that
nothing in it reaches the terminal or is taken for markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from onrecord.base.namespaces import POLICY_DECISION
from onrecord.record.operations import AttemptSummary, OperationSummary, read_operations
from onrecord.record.plain_text import LINE_CHARACTERS, excerpt, visible
from onrecord.record.states import Attempt
from onrecord.record.vcon.bodies import has_body
from onrecord.record.vcon.event_types import TI_EVENTS, kind_of
from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.model import Vcon

MAX_OPERATIONS: Final = 200
"""Operations rendered. Further ones are counted; the JSON story has them all."""

MAX_ENTRIES: Final = 200
"""Messages and other entries rendered, for the same reason."""

_STYLES: Final[Mapping[str, str]] = {
    "allowed": "green",
    "completed": "green",
    "permission-required": "yellow",
    "pending": "yellow",
    "input-required": "yellow",
    "timed-out": "yellow",
    "cancel-requested": "yellow",
    "unfinished": "yellow",
    "disallowed": "red",
    "failed": "red",
    "errored": "red",
    "denied": "red",
    "not-performed": "dim",
}
_NAME_CHARACTERS: Final = 80
_ALIGNED_CELLS: Final = 32
"""What happened is aligned up to this width: enough for every tool event, and for a line of 80."""

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt](?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One event of an operation: its time as written, what happened, the state after it, a short excerpt."""

    index: int
    time: str | None
    what: str
    state: str | None
    took_ms: int | None
    note: str | None
    content: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the members that are known."""
        members = {
            "event": self.index,
            "time": self.time,
            "what": self.what,
            "state": self.state,
            "took": self.took_ms,
            "note": self.note,
            "content": self.content,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class OperationStory:
    """An operation and its events in order of time."""

    summary: OperationSummary
    lines: tuple[Line, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the summary with the events."""
        return {**self.summary.to_json(), "events": [line.to_json() for line in self.lines]}


@dataclass(frozen=True, slots=True)
class Story:
    """What a vCon tells."""

    uuid: str | None
    version: str
    created_at: str | None
    extensions: tuple[str, ...]
    recorded_by: str | None
    parties: tuple[str, ...]
    sessions: tuple[Mapping[str, Any], ...]
    standing: tuple[Line, ...]
    operations: tuple[OperationStory, ...]
    entries: tuple[Line, ...]
    counts: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of `show --json`. Times are as written, `took` is in milliseconds."""
        return {
            "uuid": self.uuid,
            "version": self.version,
            "created_at": self.created_at,
            "extensions": list(self.extensions),
            "recorded_by": self.recorded_by,
            "parties": list(self.parties),
            "sessions": [dict(session) for session in self.sessions],
            "standing_decisions": [line.to_json() for line in self.standing],
            "operations": [operation.to_json() for operation in self.operations],
            "entries": [line.to_json() for line in self.entries],
            "counts": dict(self.counts),
        }


def tell(vcon: Vcon) -> Story:
    """Return the story of a vCon, whatever state it is in: what is missing or wrong is left out, not refused."""
    teller = _Teller(vcon)
    events = vcon.members.get("events")
    history = read_operations(
        events if isinstance(events, list) else (), extensions=vcon.extensions, instants=teller.instants
    )
    agent = vcon.members.get("recording_agent")
    return Story(
        uuid=vcon.uuid,
        version=vcon.version,
        created_at=vcon.created_at,
        extensions=vcon.extensions,
        recorded_by=_agent_name(agent),
        parties=tuple(_party_name(party.name, party.type) for party in vcon.parties),
        sessions=tuple(teller.sessions()),
        standing=tuple(teller.decision_line(index) for index in history.standing),
        operations=tuple(
            OperationStory(summary, tuple(teller.operation_lines(summary))) for summary in history.operations
        ),
        entries=tuple(teller.entries()),
        counts=Counter(
            event["type"] for event in teller.events.values() if isinstance(event.get("type"), str)
        ),
    )


def _agent_name(agent: Any) -> str | None:
    if not isinstance(agent, dict) or not isinstance(agent.get("name"), str):
        return None
    version = agent.get("version")
    return f"{agent['name']} {version}" if isinstance(version, str) else str(agent["name"])


def _party_name(name: str | None, kind: str | None) -> str:
    return f"{name or 'unknown'} ({kind})" if kind else name or "unknown"


class _Teller:
    def __init__(self, vcon: Vcon) -> None:
        self.instants = Instants()
        self.vcon = vcon
        events = vcon.members.get("events")
        self.events: dict[int, dict[str, Any]] = {
            index: event
            for index, event in enumerate(events if isinstance(events, list) else ())
            if isinstance(event, dict)
        }

    def sessions(self) -> Iterator[dict[str, Any]]:
        for session in self.vcon.sessions:
            yield {
                "start": session.start,
                "duration": session.duration,
                "parties": list(session.parties),
                "agent_session_id": session.agent_session_id,
                "dialogs": len(session.dialogs),
                "references": [{"session": index, "type": kind} for index, kind in session.references],
            }

    def decision_line(self, index: int) -> Line:
        event = self.events[index]
        server, tool = event.get("server"), event.get("tool")
        target = f"{server} › {tool if isinstance(tool, str) else 'every tool'}"
        return Line(
            index=index,
            time=_text(event.get("time")),
            what=f"standing: {event.get('decision')} for {target}",
            state=_text(event.get("decision")),
            took_ms=None,
            note=_text(event.get("reason")),
            content=None,
        )

    def operation_lines(self, summary: OperationSummary) -> Iterator[Line]:
        """Yield the events of an operation by time; the model runs again to tell the state after each."""
        machines = {attempt.attempt: Attempt(attempt.attempt) for attempt in summary.attempts}
        starts = {attempt.attempt: self._ns(attempt.start) for attempt in summary.attempts}
        for index, attempt in sorted(self._of(summary), key=self._order):
            event = self.events[index]
            kind = str(event["type"])
            state: str | None = None
            took: int | None = None
            what = kind
            if kind == POLICY_DECISION:
                state = _text(event.get("decision"))
                what = f"decided once: {state}"
            elif attempt is not None:
                machine = machines[attempt.attempt]
                if kind == "tool-invocation":
                    machine.start(index)
                else:
                    machine.apply(kind)
                    start, now = starts[attempt.attempt], self._ns(index)
                    if start is not None and now is not None:
                        took = (now - start) // 1_000_000
                state = machine.state.value
                what = f"attempt {attempt.attempt}: {kind}"
            yield Line(
                index=index,
                time=_text(event.get("time")),
                what=what,
                state=state,
                took_ms=took,
                note=_text(event.get("reason")),
                content=_content(event),
            )

    def _of(self, summary: OperationSummary) -> Iterator[tuple[int, AttemptSummary | None]]:
        for index in summary.decisions:
            yield index, None
        for attempt in summary.attempts:
            for index in attempt.events:
                yield index, attempt

    def _order(self, entry: tuple[int, Any]) -> tuple[int, int]:
        ns = self._ns(entry[0])
        return (0 if ns is None else ns, entry[0])

    def _ns(self, index: int | None) -> int | None:
        return None if index is None else self.instants.ns(self.events[index].get("time"))

    def entries(self) -> Iterator[Line]:
        """Yield messages and the events of other drafts by time."""
        found: list[tuple[int, Line]] = []
        for dialog in self.vcon.dialogs:
            if dialog.members:
                who = self._name(dialog.parties[0]) if dialog.parties else "unknown"
                line = Line(
                    index=dialog.index,
                    time=dialog.start,
                    what=f"{who}: {dialog.type or 'dialog'}",
                    state=None,
                    took_ms=None,
                    note=None,
                    content=_content(dialog.members),
                )
                found.append((self.instants.ns(dialog.start) or 0, line))
        for event in self.vcon.events:
            kind = event.type
            if kind is None or (
                kind in TI_EVENTS and kind_of(event.members, self.vcon.extensions) != "ai_agent"
            ):
                continue
            who = self._name(event.party) if event.party is not None else "unknown"
            detail = event.text("tool_name") or event.text("event_type")
            line = Line(
                index=event.index,
                time=event.time,
                what=f"{who}: {kind}" + (f" {detail}" if detail else ""),
                state=event.text("status"),
                took_ms=None,
                note=None,
                content=_content(event.members),
            )
            found.append((self.instants.ns(event.time) or 0, line))
        found.sort(key=lambda entry: entry[0])
        for _, line in found:
            yield line

    def _name(self, index: int) -> str:
        parties = self.vcon.members.get("parties")
        if isinstance(parties, list) and 0 <= index < len(parties) and isinstance(parties[index], dict):
            name = parties[index].get("name")
            if isinstance(name, str):
                return name
        return f"party {index}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _content(members: Mapping[str, Any]) -> str | None:
    if has_body(members):
        if members.get("encoding") == "base64url":
            return f"{len(str(members['body']))} characters of base64url"
        return excerpt(members["body"])
    for name in ("input", "output", "content", "data"):
        if members.get(name) not in (None, ""):
            return excerpt(members[name])
    url = members.get("url")
    return excerpt(url) if isinstance(url, str) else None


def render(vcon: Vcon) -> RenderableType:
    """Return the story of a vCon for a rich console. Every text in it is a `Text`, so no markup is read.

    Each event has one line, and its content one line of its own below, cut at the edge of the terminal.
    """
    story = tell(vcon)
    parts: list[RenderableType] = [*_head(story)]
    if story.standing:
        parts += [Text("\nStanding decisions", style="bold"), *_lines(story.standing)]
    if story.operations:
        parts.append(Text("\nOperations", style="bold"))
        for operation in story.operations[:MAX_OPERATIONS]:
            parts += [*_operation_head(operation.summary), *_lines(operation.lines)]
        if len(story.operations) > MAX_OPERATIONS:
            parts.append(Text(f"  and {len(story.operations) - MAX_OPERATIONS} more; --json has them all"))
    if story.entries:
        parts += [Text("\nConversation and other events", style="bold"), *_lines(story.entries[:MAX_ENTRIES])]
        if len(story.entries) > MAX_ENTRIES:
            parts.append(Text(f"  and {len(story.entries) - MAX_ENTRIES} more; --json has them all"))
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a terminal, whatever it holds: never wrapped, cut with an ellipsis where the terminal ends."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        row = self.text.copy()
        row.rstrip()
        if not options.no_wrap:  # output into a file or a pipe is not cut
            row.truncate(options.max_width, overflow="ellipsis")
        yield row


def _head(story: Story) -> Iterator[RenderableType]:
    yield Text("vCon ", style="bold").append(_name(story.uuid or "without uuid"))
    made = f"created {_name(story.created_at or 'unknown')}"
    if story.recorded_by:
        made += f" · recorded by {_name(story.recorded_by)}"
    yield Text(made, style="dim")
    yield Text(" · ".join([f"core {_name(story.version)}", *map(_name, story.extensions)]), style="dim")
    yield Text("\nParties", style="bold")
    for index, party in enumerate(story.parties):
        yield Text(f"  {index}  {_name(party)}")
    for index, session in enumerate(story.sessions):
        line = Text(f"\nSession {index}", style="bold")
        start, duration, own = session["start"], session["duration"], session["agent_session_id"]
        line.append(f"  {_name(start or 'without start')}", style="default")
        if duration is not None:
            line.append(f" · {_length(duration * 1000)}", style="default")
        for reference in session["references"]:
            line.append(f" · {_name(reference['type'] or 'to')} session {reference['session']}", style="dim")
        yield line
        if own:
            yield Text(f"  {_name(own)}", style="dim")


def _operation_head(summary: OperationSummary) -> Iterator[RenderableType]:
    line = Text("\n  ")
    line.append(f"{_name(summary.server or 'unknown')} › {_name(summary.tool or 'unknown')}", style="bold")
    line.append("  ")
    line.append(summary.outcome, style=_STYLES.get(summary.outcome, ""))
    decision = summary.decision or "no decision observed"
    line.append(f"  {decision}", style=_STYLES.get(decision, "dim"))
    if summary.decision is not None:
        line.append(f" ({summary.decision_source})", style="dim")
    yield line
    yield _Row(Text(f"    operation {_name(summary.operation_id)}", style="dim"))


def _lines(lines: tuple[Line, ...]) -> Iterator[RenderableType]:
    clocks = [_clock(line.time) for line in lines]
    whats = [_name(line.what) for line in lines]
    states = [_state(line) for line in lines]
    clock_cells = max(map(cell_len, clocks), default=0)
    what_cells = min(max(map(cell_len, whats), default=0), _ALIGNED_CELLS)
    state_cells = max(map(cell_len, states), default=0)
    for line, clock, what, state in zip(lines, clocks, whats, states, strict=True):
        row = Text("    ").append(_padded(clock, clock_cells), style="dim")
        row.append("  ").append(_padded(what, what_cells))
        row.append("  ").append(_padded(state, state_cells), style=_STYLES.get(state, ""))
        if line.took_ms is not None:
            row.append(f"  {_length(line.took_ms):>7}")
        yield _Row(row)
        remark = " — ".join(
            part for part in (line.note and visible(line.note, limit=LINE_CHARACTERS), line.content) if part
        )
        if remark:
            yield _Row(Text(" " * (clock_cells + 6) + remark, style="dim"))


def _state(line: Line) -> str:
    """Return the state, unless the line has said it already."""
    state = visible(line.state or "", limit=_NAME_CHARACTERS)
    return "" if line.what.endswith(f": {line.state}") else state


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - cell_len(text))


def _name(text: str) -> str:
    return visible(text, limit=_NAME_CHARACTERS)


def _clock(time: str | None) -> str:
    """Return the time of day with milliseconds, so that a column of them can be read; else the text itself."""
    if time is None:
        return ""
    parts = _TIME.fullmatch(time)
    if parts is None:
        return visible(time, limit=24)
    return f"{parts['clock']}.{(parts['fraction'] or '')[:3]:0<3}{parts['zone']}"


def _length(milliseconds: float) -> str:
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 120_000:
        return f"{milliseconds / 1_000:.1f} s"
    return f"{milliseconds / 60_000:.0f} min"
