"""Shows a story on a terminal: first what it is and who takes part, then each session from beginning to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

from onrecord.record.plain_text import LINE_CHARACTERS, visible
from onrecord.record.story.choosing import LeftOut, Repeated, choose, choose_lines
from onrecord.record.story.model import Entry, OperationStory, Placed, SessionStory, StandingStory, Story
from onrecord.record.story.phrases import (
    analysis_words,
    attachment_words,
    many,
    one,
    operation_facts,
    prior_words,
    session_facts,
    session_title,
    totals_words,
)
from onrecord.record.story.rows import STATE_STYLES, Flow, Margin, Part, Row, padded
from onrecord.record.story.telling import tell
from onrecord.record.story.words import clock, count, day, length, moment, name, names
from onrecord.record.vcon.model import Vcon

MAX_LISTED: Final = 40
"""Parties, standing decisions, attachments and analyses listed at the head; those of most records fit."""

_MAX_DEPTH: Final = 6
_ALIGNED_CELLS: Final = 34
"""What happened is aligned up to this width: enough for every tool event, and for a line of 80."""

_REMARKED: Final = 4
_SAID: Final = frozenset(["not-performed", "undecided", "attempt-unfinished"])
"""Findings that the head of the operation says in its own words."""


def render(vcon: Vcon, *, everything: bool = False) -> RenderableType:
    """Return the story of a vCon for a rich console.

    Each event has one line, and its content one line of its own below, cut at the edge of the terminal. A long
    record is shown in part; with `everything` all of it is.
    """
    return Rendering(tell(vcon), everything=everything)


class Rendering:
    """A story as lines. `rows` yields them one by one, so that a long one need not be held."""

    def __init__(self, story: Story, *, everything: bool = False) -> None:
        self._story = story
        self._everything = everything

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.rows()

    def rows(self) -> Iterator[Row | Flow]:
        """Yield the lines of the story."""
        yield from self._head()
        yield from self._parties()
        yield from self._standing()
        sessions = [self._story.sessions[position] for position in self._story.order]
        if self._story.elsewhere is not None:
            sessions.append(self._story.elsewhere)
        hidden = 0
        for number, (session, items) in enumerate(choose(sessions, everything=self._everything)):
            if (
                not self._everything
                and number >= MAX_LISTED
                and not any(isinstance(item, Placed) for item in items)
            ):
                hidden += 1
                continue
            yield from self._session(session, items)
        if hidden:
            yield Row([("", "")])
            yield Row([(f"{count(hidden, 'more session')}; --all shows them", "yellow")])
        yield from self._additions()

    def _head(self) -> Iterator[Row | Flow]:
        story = self._story
        yield Flow(
            [("vCon ", "bold")],
            [
                (name(story.uuid or "without uuid"), ""),
                *([(name(story.subject), "bold")] if story.subject else []),
            ],
        )
        made = [f"created {moment(story.created_at) if story.created_at else 'at an unknown time'}"]
        if story.updated_at and story.updated_at != story.created_at:
            made.append(f"updated {moment(story.updated_at)}")
        if story.recorded_by:
            made.append(f"recorded by {name(story.recorded_by)}")
        yield _facts(made)
        yield _facts([f"core {name(story.version)}", *map(name, story.extensions[:MAX_LISTED])])
        if story.prior is not None:
            yield _facts(prior_words(story.prior), style="yellow")
        lost = [
            f"{count(number, one(array))} {what}"
            for what, counts in (("removed", story.removed), ("not readable", story.unreadable))
            for array, number in counts.items()
        ]
        if lost:
            yield _facts(lost, style="yellow")
        yield _facts(totals_words(story.totals), style="")

    def _parties(self) -> Iterator[Row | Flow]:
        parties = self._story.parties
        if not parties:
            return
        yield from _title("Parties")
        for index, party in enumerate(parties[: None if self._everything else MAX_LISTED]):
            yield Row([(f"  {index}  ", "dim"), (visible(party, limit=2 * LINE_CHARACTERS), "")])
        yield from self._more(len(parties), "party")

    def _standing(self) -> Iterator[Row | Flow]:
        standing = self._story.standing
        if not standing:
            return
        yield from _title("Standing decisions")
        for decision in standing[: None if self._everything else MAX_LISTED]:
            yield from _standing_rows(decision)
        yield from self._more(len(standing), "standing decision")

    def _more(self, total: int, word: str) -> Iterator[Row]:
        if total > MAX_LISTED and not self._everything:
            words = f"{total - MAX_LISTED:,} more {word if total == MAX_LISTED + 1 else many(word)}"
            yield Row([(f"  and {words}; --all shows them", "yellow")])

    def _session(self, session: SessionStory, items: Sequence[Placed | LeftOut]) -> Iterator[Row | Flow]:
        margin = "  " * min(session.depth, _MAX_DEPTH)
        yield Row([("", "")])
        yield Flow(
            [(margin, ""), (f"{session_title(session)}  ", "bold")],
            session_facts(session),
            margin=Margin(len(margin)),
        )
        if session.working_dir:
            yield Row([(f"{margin}  in {name(session.working_dir)}", "dim")])
        cells = max(
            (cell_len(clock(item.item.time)) for item in items if isinstance(item, Placed)),
            default=0,
        )
        today = day(session.start)
        for item in items:
            if isinstance(item, LeftOut):
                outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in item.outcomes)
                words = f"… {item.count:,} left out{f' ({outcomes})' if outcomes else ''}; --all shows them"
                yield Row([(f"{margin}  {words}", "yellow")])
                continue
            own = day(item.item.time)
            if own is not None and own != today:
                yield Row([(f"{margin}  {own}", "dim")])
                today = own
            yield from self._item(item, margin, cells)

    def _item(self, placed: Placed, margin: str, cells: int) -> Iterator[Row | Flow]:
        item = placed.item
        depth = min(placed.depth, _MAX_DEPTH)
        branch = "│ " * (depth - 1) + "├ " if depth else ""
        head: list[Part] = [
            (f"{margin}  {padded(clock(item.time), cells)}  ", "dim"),
            (branch, "dim"),
        ]
        below = Margin(len(margin) + cells + 4, "│ " * depth, 2)
        if isinstance(item, OperationStory):
            yield Flow([*head, (f"{name(item.who)}: ", "")], operation_facts(item), margin=below)
            yield from self._operation_rows(item, below)
            return
        parts: list[Part] = [(f"{name(item.who)}: {visible(item.what, limit=2 * LINE_CHARACTERS)}", "")]
        parts += [(detail, "dim") for detail in item.details]
        if item.operation is not None:
            parts += operation_facts(item.operation)
        elif item.state is not None:
            parts.append((name(item.state), STATE_STYLES.get(item.state, "")))
        if item.took_ms is not None:
            parts.append((length(item.took_ms), ""))
        yield Flow(head, parts, margin=below)
        yield from _entry_content(item, below)
        if item.operation is not None:
            yield from self._operation_rows(item.operation, below)

    def _operation_rows(self, operation: OperationStory, below: Margin) -> Iterator[Row | Flow]:
        known = [f"operation {name(operation.summary.operation_id)}"]
        if len(operation.sessions) > 1:
            known.append(f"sessions {names([str(index) for index in operation.sessions])}")
        yield Row([(" · ".join(known), "dim")], below)
        lines = list(choose_lines(operation, everything=self._everything))
        shown = [line.line for line in lines if isinstance(line, Repeated)]
        clocks = max((cell_len(clock(line.time)) for line in shown), default=0)
        whats = min(max((cell_len(visible(line.what)) for line in shown), default=0), _ALIGNED_CELLS)
        for line in lines:
            if isinstance(line, int):
                words = f"… {count(line, 'event')} left out; --all shows them"
                yield Row([(words, "yellow")], replace(below, inner=4))
            else:
                yield from _line_rows(line, below, clocks, whats)

    def _additions(self) -> Iterator[Row | Flow]:
        for title, entries, words in (
            ("Attachments", self._story.attachments, attachment_words),
            ("Analysis", self._story.analyses, analysis_words),
        ):
            if not entries:
                continue
            yield from _title(title)
            for index, entry in enumerate(entries[: None if self._everything else MAX_LISTED]):
                yield Row([(f"  {index}  ", "dim"), (words(entry), "")])
            yield from self._more(len(entries), "attachment" if title == "Attachments" else "analysis")


def _title(text: str) -> Iterator[Row]:
    yield Row([("", "")])
    yield Row([(text, "bold")])


def _facts(texts: Sequence[str], *, style: str = "dim") -> Flow:
    parts = [(text if number == 0 else f"· {text}", style) for number, text in enumerate(texts)]
    return Flow([], parts, gap=" ")


def _standing_rows(decision: StandingStory) -> Iterator[Row | Flow]:
    line, summary = decision.line, decision.summary
    target = f"{name(summary.server)} › {'every tool' if summary.tool is None else name(summary.tool)}"
    parts: list[Part] = [
        (summary.decision, STATE_STYLES.get(summary.decision, "")),
        (f"for {target}", ""),
        (f"by {name(decision.party)}", "dim"),
        (f"{count(decision.governed, 'attempt')} under it", "dim"),
    ]
    if summary.replaced_by is not None:
        parts.append((f"until event {summary.replaced_by}", "dim"))
    parts += [(remark, "yellow") for remark in line.remarks]
    head = f"  {line.index}  {moment(line.time) if line.time else ''}  "
    yield Flow([(head, "dim")], parts, margin=Margin(2))
    if line.note:
        yield Row([(f"      {visible(line.note, limit=LINE_CHARACTERS)}", "dim")])


def _entry_content(entry: Entry, below: Margin) -> Iterator[Row]:
    content = entry.content
    if entry.call is not None and content is None and entry.members.get("input") is None:
        content = "no arguments in the record"
    if content:
        yield Row([(content, "" if entry.kind == "text" else "dim")], below)
    answer = entry.answer
    if answer:
        yield Row([(f"→ {answer}", "dim")], below)


def _line_rows(repeated: Repeated, below: Margin, clocks: int, whats: int) -> Iterator[Row | Flow]:
    line = repeated.line
    state = "" if line.what.endswith(f": {line.state}") else name(line.state or "")
    what = visible(line.what, limit=LINE_CHARACTERS)
    if repeated.more:
        what += f" × {repeated.more + 1:,}"
    parts = [(padded(what, whats), ""), (state, STATE_STYLES.get(state, ""))]
    if line.took_ms is not None:
        parts.append((length(line.took_ms), ""))
    remarks = [remark for remark in line.remarks if remark not in _SAID]
    parts += [(remark, "yellow") for remark in remarks[:_REMARKED]]
    head = [(f"{padded(clock(line.time), clocks)}  ", "dim")]
    yield Flow(head, parts, first=replace(below, inner=4), margin=replace(below, inner=clocks + 2))
    remark = " — ".join(
        part for part in (line.note and visible(line.note, limit=LINE_CHARACTERS), line.content) if part
    )
    if remark:
        yield Row([(remark, "dim")], replace(below, inner=clocks + 6))
