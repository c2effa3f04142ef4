"""The spans of one source on disk, in the order in which they began.

Exporters write spans when they end, and every answer repeats the conversation so far: what is kept in memory of a span
is where it lies, what it hangs below and which session it tells of.

Source: native-logs.md 4.9, R-20.
"""

from __future__ import annotations

import tempfile
from array import array
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import orjson

from onrecord.record.logs.otel.span import AGENT, RESPONSE, Span

_NONE: Final = -1

_CONVERSATIONS: Final = ("gen_ai.conversation.id", "session.id")
_MESSAGES: Final = (
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt",
    "gen_ai.completion",
    "llm.input_messages.",
    "llm.output_messages.",
    "ai.prompt.messages",
    "ai.response.text",
    "input.value",
    "output.value",
)
_USAGE: Final = ("gen_ai.usage.", "llm.token_count.", "ai.usage.")
_MESSAGE_EVENTS: Final = ("gen_ai.user.", "gen_ai.choice", "gen_ai.client.inference", "gen_ai.content.")


class SpanIndex:
    """Spans by number, from 0 in file order. Use it in a `with` statement: it holds a file on disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed at the end of the with statement
        self._at = array("Q", [0])
        self._start = array("q")
        self._end = array("q")
        self.records = array("I")
        self.roles = array("B")
        self._traits = array("B")
        self._trace = array("i")
        self._conversation = array("i")
        self._own = array("i")
        self._parent_key: list[int] = []
        self._by_key: dict[int, int] = {}
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._parent = array("i")
        self._agent = array("i")
        self._session = array("i")
        self._covered = bytearray()

    def __len__(self) -> int:
        return len(self.records)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, span: Span, text: bytes, record: int) -> None:
        """Take a span, the JSON text of its row, and its record number."""
        number = len(self.records)
        self._file.write(text)
        self._at.append(self._at[-1] + len(text))
        before = self._start[-1] if number else 0
        self._start.append(before if span.start is None else _in_order(span.start))
        self._end.append(self._start[-1] if span.end is None else _in_order(span.end))
        self.records.append(record)
        self.roles.append(span.role)
        self._traits.append(_traits(span))
        self._trace.append(self._number(span.trace))
        conversation = _conversation(span)
        self._conversation.append(self._number(conversation) if conversation else _NONE)
        self._own.append(self._number(span.id) if span.id and self.roles[-1] == AGENT else _NONE)
        self._parent_key.append(hash((span.trace, span.parent)) if span.parent else 0)
        if span.id:
            self._by_key.setdefault(hash((span.trace, span.id)), number)

    def read(self, number: int) -> Span:
        """Return a span."""
        self._file.seek(self._at[number])
        return Span.from_row(orjson.loads(self._file.read(self._at[number + 1] - self._at[number])))

    def settle(self, otherwise: str) -> list[int]:
        """Work out parents and sessions, and return the numbers in the order in which the spans began.

        Runs of agents go before what begins at the same moment. `otherwise` is the session of spans that name none.
        """
        self._parent = array(
            "i", (self._by_key.get(key, _NONE) if key else _NONE for key in self._parent_key)
        )
        self._parent_key = []
        self._break_cycles()
        self._cover()
        first: dict[int, int] = {}
        for trace, conversation in zip(self._trace, self._conversation, strict=True):
            if conversation != _NONE:
                first.setdefault(trace, conversation)
        fallback = self._number(otherwise)
        self._agent = array("i", [_NONE]) * len(self)
        self._session = array("i", [_NONE]) * len(self)
        inherited = array("i", [_NONE]) * len(self)
        for number in self._from_the_top():
            above, trace, own = self._parent[number], self._trace[number], self._conversation[number]
            if own == _NONE and above != _NONE:
                own = inherited[above]
            if own == _NONE:
                own = first.get(trace, trace if self._names[trace] else fallback)
            inherited[number] = own
            agent = self._agent_above(number)
            self._agent[number] = agent
            if agent == _NONE:
                self._session[number] = own
            elif self.roles[number] == AGENT:
                is_told = own != inherited[agent]
                self._session[number] = own if is_told or self._own[number] == _NONE else self._own[number]
            else:
                self._session[number] = self._session[agent] if own == inherited[agent] else own
        return sorted(range(len(self)), key=self._place)

    def session(self, number: int) -> str:
        """Return the native id of the session that a span tells of."""
        return self._names[self._session[number]]

    def parent(self, number: int) -> int | None:
        """Return the number of the span above, if it is in this source."""
        above = self._parent[number]
        return None if above == _NONE else above

    def agent_above(self, number: int) -> int | None:
        """Return the number of the run of an agent that a span is part of."""
        agent = self._agent[number]
        return None if agent == _NONE else agent

    def has_answers_below(self, number: int) -> bool:
        """Say whether answers with messages are told by spans below this one."""
        return bool(self._covered[number] & _HAS_MESSAGES)

    def has_usage_below(self, number: int) -> bool:
        """Say whether answers with usage are told by spans below this one."""
        return bool(self._covered[number] & _HAS_USAGE)

    def has_messages(self, number: int) -> bool:
        """Say whether a span itself tells messages."""
        return bool(self._traits[number] & _HAS_MESSAGES)

    def _place(self, number: int) -> tuple[int, int, int, int]:
        return self._start[number], self.roles[number] != AGENT, self._end[number], number

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number

    def _break_cycles(self) -> None:
        """Let no span be above itself: the span that closes a cycle stands at the top."""
        state = bytearray(len(self))
        for number in range(len(self)):
            way = []
            at = number
            while at != _NONE and not state[at]:
                state[at] = 1
                way.append(at)
                at = self._parent[at]
            if at != _NONE and state[at] == 1:
                self._parent[way[-1]] = _NONE
            for passed in way:
                state[passed] = 2

    def _cover(self) -> None:
        """Note for each span what the answers below it tell."""
        self._covered = bytearray(len(self))
        for number in range(len(self)):
            traits = self._traits[number]
            if self.roles[number] != RESPONSE or not traits:
                continue
            above = self._parent[number]
            while above != _NONE and self._covered[above] & traits != traits:
                self._covered[above] |= traits
                above = self._parent[above]

    def _from_the_top(self) -> list[int]:
        """Return the spans so that each comes after the one above it."""
        order: list[int] = []
        done = bytearray(len(self))
        for number in range(len(self)):
            way = []
            at = number
            while at != _NONE and not done[at]:
                done[at] = 1
                way.append(at)
                at = self._parent[at]
            order += reversed(way)
        return order

    def _agent_above(self, number: int) -> int:
        above = self._parent[number]
        if above == _NONE:
            return _NONE
        return above if self.roles[above] == AGENT else self._agent[above]


_HAS_MESSAGES: Final = 1
_HAS_USAGE: Final = 2


_LAST_NS: Final = 2**63 - 1


def _in_order(ns: int) -> int:
    """Return a time as 64 bits hold it: those before 1678 and after 2262 stand first and last."""
    return max(-_LAST_NS, min(ns, _LAST_NS))


def _conversation(span: Span) -> str:
    for name in _CONVERSATIONS:
        value = span.attributes.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _traits(span: Span) -> int:
    traits = 0
    for name in span.attributes:
        if name.startswith(_MESSAGES):
            traits |= _HAS_MESSAGES
        elif name.startswith(_USAGE):
            traits |= _HAS_USAGE
    for event in span.events:
        called: Any = event.get("name") if isinstance(event, dict) else None
        if isinstance(called, str) and called.startswith(_MESSAGE_EVENTS):
            traits |= _HAS_MESSAGES
    return traits
