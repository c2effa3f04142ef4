"""What a source of OpenCode holds: sessions, messages and parts in any order, each native id once (R-16).

OpenCode rewrites its entries, so the newest of two versions is kept. Values wait on disk until all is read: parts may
come before their message, and rows of a table come in no order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import orjson

from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.times import Times
from onrecord.record.logs.trace import Trace

MEMORY_BYTES: Final = 16 << 20
"""Bytes of values that wait in memory; what is more waits on disk."""

_FIRST_MS: Final = 10**11
_LAST_MS: Final = 10**14
"""Numbers that are milliseconds by their magnitude, as all times of the program itself are."""

_NOT_CONTENT: Final = frozenset({"id", "sessionID", "messageID", "time_created", "time_updated"})
"""Members that stand in one layout and not in another; two versions that differ in them alone are equal."""

Kind = Literal["session", "message", "part"]


class Item:
    """One session, message, part or other record, whose value waits."""

    __slots__ = (
        "block",
        "created",
        "digest",
        "event",
        "event_type",
        "has_entry",
        "id",
        "message",
        "number",
        "numbers",
        "order",
        "place",
        "session",
        "time",
    )

    def __init__(self, number: int, place: int) -> None:
        self.number = number
        self.place = place
        self.numbers: list[str] = []
        self.id: str | None = None
        self.session: str | None = None
        self.message: str | None = None
        self.created: int | None = None
        self.order = 0
        self.block = 0
        self.time: Any = None
        """Time of the record itself: of the row, or of the event that told it."""
        self.digest = 0
        self.event: dict[str, Any] | None = None
        """What the event that told it says beside it."""

        self.event_type = ""
        self.has_entry = True
        """Whether it becomes an object with an entry id, as attachments do not."""

    @property
    def entry_id(self) -> str:
        """The entry id that its first object gets."""
        return self.id or f"L{self.number}"


@dataclass(slots=True)
class Told:
    """One session in the order in which it is written."""

    id: str
    key: str
    session: Item | None = None
    messages: list[tuple[Item, list[Item]]] = field(default_factory=list)
    orphans: list[Item] = field(default_factory=list)
    others: dict[str | None, list[Item]] = field(default_factory=dict)
    """Other records, by the message that was told of before."""
    created: int | None = None


class Store:
    """Everything that one source tells. Use it in a `with` statement: it may hold a file."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.times = Times()
        self.seen_events: set[str] = set()
        """Types of the events that became system-events."""
        self.removed: set[str] = set()
        """Ids of messages and parts that the server said were removed."""
        self.deltas: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        """What was added to a part since it was told whole: record, and what the event says with its `delta`."""
        self._file = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 - closed by __exit__
        self._end = 0
        self._sizes: list[int] = []
        self._starts: list[int] = []
        self._items: dict[tuple[Kind, str], Item] = {}
        self._others: list[Item] = []
        self._last_message: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    # -- filling

    def enter(
        self,
        kind: Kind,
        record: Record,
        *,
        session: Any = None,
        message: Any = None,
        time: Any = None,
        event: dict[str, Any] | None = None,
        block: int = 0,
    ) -> Item:
        """Enter a session, message or part; ids of what it belongs to stand in it or are given.

        Of an event about something that was told before, what was told before is an older version. `event` is what
        the event says beside it.
        """
        value = record.value
        item = Item(record.number, self._put(value))
        item.numbers = record.numbers
        item.block = block
        item.id = _id(value.get("id"))
        item.session = item.id if kind == "session" else _id(value.get("sessionID")) or _id(session)
        if kind == "part":
            item.message = _id(value.get("messageID")) or _id(message)
            url = value.get("url")
            item.has_entry = not (
                value.get("type") == "file" and type(url) is str and url.startswith("data:")
            )
        item.time = time
        item.event = event
        if kind != "part":
            item.created = self._created(value, time)
        own = {name: member for name, member in value.items() if name not in _NOT_CONTENT}
        item.digest = hash(orjson.dumps(own, option=orjson.OPT_SORT_KEYS))
        key = item.id if item.id is not None else f"\0{item.number}.{block}"
        known = self._items.get((kind, key))
        if known is None:
            item.order = len(self._items)
            self._items[kind, key] = item
        else:
            item = self._newer(known, item, is_event=event is not None)
        if kind == "session":
            item.session = key
        elif kind == "message":
            item.message = key
            self._last_message = key
        elif item.message is not None:
            self._last_message = item.message
        return item

    def enter_other(self, record: Record, event_type: str, *, session: Any = None, time: Any = None) -> None:
        """Enter a record that is no session, message or part."""
        item = Item(record.number, self._put(record.value))
        item.numbers = record.numbers
        item.event_type = event_type
        item.session = _id(session)
        item.time = time
        item.message = self._last_message
        self._others.append(item)

    def add_delta(self, record: Record, part: str, told: dict[str, Any]) -> None:
        """Note what an event adds to a part: its text as `delta`, beside what else it says."""
        self.deltas.setdefault(part, []).append((record.number, told))

    def has_part(self, part: str) -> bool:
        """Say whether a part of this id was told."""
        return ("part", part) in self._items

    def _newer(self, known: Item, item: Item, *, is_event: bool) -> Item:
        """Let a later version take the place of an earlier one."""
        trace = self.trace
        if known.number == item.number:
            return known
        if is_event:
            trace.duplicate(known.number, "older-version", of=f"record {item.number}")
        elif known.digest == item.digest:
            trace.duplicate(item.number, "duplicate-entry", of=f"record {known.number}", report=True)
            return known
        else:
            trace.findings.add(
                "duplicate-entry-differs", record=item.number, action="the later version is kept"
            )
            trace.duplicate(known.number, "older-version", of=f"record {item.number}")
        item.order = known.order
        item.session = item.session or known.session
        item.message = item.message or known.message
        for name in (
            "number",
            "place",
            "numbers",
            "session",
            "message",
            "created",
            "time",
            "event",
            "digest",
            "has_entry",
        ):
            setattr(known, name, getattr(item, name))
        return known

    def ns(self, native: Any) -> int | None:
        """Return a native time in nanoseconds since 1970, None for what is none."""
        if type(native) is int and _FIRST_MS <= native < _LAST_MS:
            return native * 1_000_000
        read = self.times.read(native, is_text_format=False)
        return None if read is None else read.ns

    def _created(self, value: dict[str, Any], time: Any) -> int | None:
        told = value.get("time")
        created = self.ns(told.get("created")) if type(told) is dict else None
        return self.ns(time) if created is None else created

    def _put(self, value: Any) -> int:
        data = orjson.dumps(value)
        self._file.write(data)
        self._starts.append(self._end)
        self._sizes.append(len(data))
        self._end += len(data)
        return len(self._sizes) - 1

    # -- reading again

    def record(self, item: Item) -> Record:
        """Return an item as the record that it was."""
        self._file.seek(self._starts[item.place])
        value = orjson.loads(self._file.read(self._sizes[item.place]))
        if item.event:
            value.setdefault("event", item.event)
        return Record(item.number, value, 0, 0, 0, item.numbers)

    def told(self) -> Iterator[Told]:
        """Yield the sessions, parents before their children as their times say, each in its order.

        Source: native-logs.md 4.5, "Order".
        """
        sessions: dict[str, Told] = {}
        messages: dict[str, tuple[Item, list[Item]]] = {}
        unnamed: list[tuple[str, Item]] = []
        parts: list[Item] = []
        for (kind, key), item in self._items.items():
            if kind == "session":
                _told(sessions, key).session = item
                _told(sessions, key).created = item.created
            elif kind == "message":
                messages[key] = (item, [])
                unnamed.append((key, item))
            else:
                parts.append(item)
        for part in parts:
            if part.message in messages:
                above, below = messages[part.message]
                below.append(part)
                above.session = above.session or part.session
            elif part.session is not None:
                _told(sessions, part.session)
        for _, item in unnamed:
            if item.session is not None:
                _told(sessions, item.session)
        for item in self._others:
            if item.session is not None:
                _told(sessions, item.session)
        default = next(iter(sessions), None) or self.trace.path.stem or "log"
        for key, item in unnamed:
            _told(sessions, item.session or default).messages.append(messages[key])
        for part in parts:
            if part.message not in messages:
                _told(sessions, part.session or default).orphans.append(part)
        for item in self._others:
            told = _told(sessions, item.session or default)
            told.others.setdefault(item.message, []).append(item)
        for told in sessions.values():
            _order(told)
        last = 0
        keys = {}
        for name, told in sessions.items():
            last = keys[name] = told.created if told.created is not None else last
        yield from sorted(sessions.values(), key=lambda told: keys[told.key])


def _told(sessions: dict[str, Told], id: str) -> Told:
    told = sessions.get(id)
    if told is None:
        told = sessions[id] = Told(_without_mark(id), id)
    return told


def _without_mark(key: str) -> str:
    return f"record{key[1:].partition('.')[0]}" if key.startswith("\0") else key


def _order(told: Told) -> None:
    """Sort messages by time and id, parts by id, where the ids are of the kind that sorts."""
    last = 0
    keys: dict[int, tuple[int, str]] = {}
    for item, parts in told.messages:
        last = last if item.created is None else item.created
        keys[id(item)] = (last, item.id if item.id is not None and item.id.startswith("msg_") else "")
        _order_parts(parts)
    told.messages.sort(key=lambda pair: keys[id(pair[0])])
    _order_parts(told.orphans)
    if told.created is None and told.messages:
        told.created = told.messages[0][0].created


def _order_parts(parts: list[Item]) -> None:
    if all(part.id is not None and part.id.startswith("prt_") for part in parts):
        parts.sort(key=lambda part: (str(part.id), part.block))
    else:
        parts.sort(key=lambda part: (part.order, part.block))


def _id(value: Any) -> str | None:
    return value if type(value) is str and value else None
