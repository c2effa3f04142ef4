"""What of a long record is shown: its beginning, its end, and in between what went otherwise than usual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from onrecord.record.story.model import Entry, Line, OperationStory, Placed, SessionStory

MAX_ITEMS: Final = 200
"""Entries and operations shown of a record: some screens. `show --all` and the JSON story have all of them."""

MAX_LINES: Final = 16
"""Events shown of one operation, repeated progress not counted: enough for several attempts with input."""

_ENDS: Final = 60
_TOLD_KINDS: Final = 3


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run of items that is not shown, and what became of the calls among them."""

    count: int
    outcomes: tuple[tuple[str, int], ...]


def choose(
    sessions: Sequence[SessionStory], *, everything: bool
) -> Iterator[tuple[SessionStory, list[Placed | LeftOut]]]:
    """Yield each session with the items to show and the runs left out between them."""
    total = sum(len(session.items) for session in sessions)
    if everything or total <= MAX_ITEMS:
        for session in sessions:
            yield session, [*session.items]
        return
    attention = MAX_ITEMS - 2 * _ENDS
    position = 0
    for session in sessions:
        shown: list[Placed | LeftOut] = []
        run: list[Placed] = []
        for placed in session.items:
            wanted = position < _ENDS or position >= total - _ENDS
            if not wanted and attention and placed.item.needs_attention:
                attention -= 1
                wanted = True
            position += 1
            if not wanted:
                run.append(placed)
                continue
            if run:
                shown.append(_left_out(run))
                run = []
            shown.append(placed)
        if run:
            shown.append(_left_out(run))
        yield session, shown


def _left_out(run: Sequence[Placed]) -> LeftOut:
    outcomes: Counter[str] = Counter()
    for placed in run:
        item = placed.item
        operation = item.operation if isinstance(item, Entry) else item
        if operation is not None:
            outcomes[operation.summary.outcome] += 1
        elif isinstance(item, Entry) and item.call is not None:
            outcomes[item.call.outcome] += 1
    return LeftOut(len(run), tuple(outcomes.most_common(_TOLD_KINDS)))


@dataclass(frozen=True, slots=True)
class Repeated:
    """Lines of one operation that say the same, for instance progress: the first one, and how many follow it."""

    line: Line
    more: int


def choose_lines(operation: OperationStory, *, everything: bool) -> Iterator[Repeated | int]:
    """Yield the lines of an operation to show, and how many are left out where the middle of it is."""
    if everything:
        for line in operation.lines:
            yield Repeated(line, 0)
        return
    grouped: list[Repeated] = []
    for line in operation.lines:
        last = grouped[-1] if grouped else None
        if last is not None and last.line.what == line.what and last.line.state == line.state:
            grouped[-1] = Repeated(last.line, last.more + 1)
        else:
            grouped.append(Repeated(line, 0))
    if len(grouped) <= MAX_LINES:
        yield from grouped
        return
    half = MAX_LINES // 2
    yield from grouped[:half]
    yield sum(1 + repeated.more for repeated in grouped[half:-half])
    yield from grouped[-half:]
