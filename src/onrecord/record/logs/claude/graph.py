"""Which records of a Claude log are repetitions, and which branches of a session were left by a rewind.

Source: native-logs.md 4.1 (Graph), R-16, R-17, D-LOG-08, D-LOG-09, B-9, B-16.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

import orjson

from onrecord.record.logs.sessions import NativeSession

OTHER: Final = 0
"""Kind of an entry that is no message."""

ASSISTANT: Final = 1
"""Kind of an entry that is a message of the agent."""

PROMPT: Final = 2
"""Kind of an entry that is a text of whoever talks to the agent."""

RESULT: Final = 3
"""Kind of an entry that is another user message: a tool's result, a notice."""

NEW: Final = 0
"""An entry whose id was not seen before."""

SAME: Final = 1
"""An entry whose id was seen with the same type, time and content."""

DIFFERENT: Final = 2
"""An entry whose id was seen with another type, time or content."""


def mark_of(value: Mapping[str, Any]) -> int:
    """Return a number that is equal for records with the same type, time and content."""
    message = value.get("message")
    content = message.get("content") if type(message) is dict else [value.get(name) for name in _CONTENT]
    time = value.get("timestamp")
    return hash(
        (
            value["type"],
            time if type(time) is str else repr(time)[:64],
            content if type(content) is str else orjson.dumps(content),
        )
    )


_CONTENT: Final = ("message", "subtype", "content", "attachment", "data")
"""Members that hold the content of records without a message."""


class Identities:
    """What the run has seen of a format: ids of entries with their contents, and records without ids by file."""

    def __init__(self, seen: dict[int, int], file_number: int) -> None:
        self._seen = seen
        self._file = file_number

    def compare(self, uuid: str, mark: int) -> int:
        """Note an entry; return `NEW`, or that its id is known with the same or with different content."""
        key = hash(uuid)
        known = self._seen.get(key)
        if known is None:
            self._seen[key] = mark
            return NEW
        return SAME if known == mark else DIFFERENT

    def is_known(self, uuid: str) -> bool:
        """Say whether an entry of this id was seen in the run."""
        return hash(uuid) in self._seen

    def is_from_before(self, session_id: Any, value: Mapping[str, Any]) -> bool:
        """Note a record without id; say whether an earlier file of the run has the same one of this session."""
        key = hash((repr(session_id), orjson.dumps(value)))
        return self._seen.setdefault(key, self._file) != self._file


class Replays:
    """Finds messages that compaction wrote once more, under new ids with their old times."""

    def __init__(self) -> None:
        self._marks = array("q")
        self._objects = array("q")
        self._before: dict[int, int] | None = None

    def compacted(self) -> None:
        """Note a compaction: from here on, messages are compared with those before."""
        if self._before is None:
            self._before = {}
            for mark, number in zip(self._marks, self._objects, strict=True):
                self._before.setdefault(mark, number)
            del self._marks[:], self._objects[:]

    def replayed(self, mark: int) -> int | None:
        """Return the first object of the message that this one repeats, None for a new one."""
        return None if self._before is None else self._before.get(mark)

    def add(self, mark: int, number: int) -> None:
        """Note a message that was written, with its first object."""
        if self._before is None:
            self._marks.append(mark)
            self._objects.append(number)
        else:
            self._before.setdefault(mark, number)


class Branches:
    """The kinds of a session's entries, to find the branches that a rewind has left."""

    def __init__(self, session: NativeSession) -> None:
        self._session = session
        self._kinds = array("b")
        self._joined: dict[int, int] = {}
        self._last = -1

    def add(self, node: int, kind: int) -> None:
        """Note the message that was just written, by the number of its entry."""
        kinds = self._kinds
        if len(kinds) <= node:
            kinds.extend([OTHER] * (node + 1 - len(kinds)))
        kinds[node] = kind
        self._last = node

    def joined(self, node: int) -> None:
        """Note an entry that hangs below a message which compaction wrote again: going on there is no rewind."""
        self._joined[node] = self._session.parent_node(node)

    def supersede(self) -> int:
        """Flag the entries of branches that were left; return how many entries that are.

        Only a second prompt at the place of a first one, and a second answer to the same user message, are rewinds:
        parallel calls and their results make siblings too.
        """
        session, kinds = self._session, self._kinds
        total = session.nodes
        if self._last < 0 or not self._has_fork():
            return 0
        kinds.extend([OTHER] * (total - len(kinds)))
        above = array("i", (session.parent_node(node) for node in range(total)))
        for node in self._joined:
            above[node] = -1
        kind, latest, order = _summaries(above, kinds)
        live = bytearray(total)
        node = self._last
        while node >= 0 and not live[node]:
            live[node] = 1
            node = above[node]
        chosen: dict[int, int] = {}
        for node in range(total):
            place = self._place(above, node)
            if place >= 0 and kind[node]:
                best = chosen.get(place, -1)
                if best < 0 or (live[node], latest[node]) > (live[best], latest[best]):
                    chosen[place] = node
        left = bytearray(total)
        count = 0
        for node in reversed(order):
            place = self._place(above, node)
            if place < 0:
                continue
            parent = place % total
            is_below = above[node] >= 0 and left[parent]
            if is_below or self._is_left(kind, kinds[parent], node, chosen.get(place, -1)):
                left[node] = 1
                count += session.flag_entry(node, "superseded")
        return count

    def _place(self, above: array[int], node: int) -> int:
        """Return where an entry hangs, -1 for nowhere; below a message written again is another place."""
        original = self._joined.get(node, -1)
        return above[node] if original < 0 else original + len(above)

    @staticmethod
    def _is_left(kind: array[int], parent: int, node: int, live: int) -> bool:
        if live in (-1, node) or not kind[node]:
            return False
        one, other = kind[node], kind[live]
        if parent in (PROMPT, RESULT):
            return RESULT not in (one, other)
        return one == other == PROMPT

    def _has_fork(self) -> bool:
        session = self._session
        seen = bytearray(session.nodes)
        for node in range(session.nodes):
            parent = session.parent_node(node)
            if parent >= 0:
                if seen[parent]:
                    return True
                seen[parent] = 1
        return False


def _summaries(above: array[int], kinds: array[int]) -> tuple[array[int], array[int], array[int]]:
    """Return for each entry the kind of the first message in its branch, the last entry in it, and an order.

    In the order every entry stands before the one above it; a circle, which the core has cut, cannot be in it.
    """
    total = len(above)
    children = array("i", bytes(4 * total))
    for parent in above:
        if parent >= 0:
            children[parent] += 1
    kind = array("b", kinds)
    latest = array("i", range(total))
    order = array("i", (node for node in range(total) if not children[node]))
    for node in order:
        parent = above[node]
        if parent < 0:
            continue
        if not kind[parent] and kind[node]:
            kind[parent] = kind[node]
        latest[parent] = max(latest[parent], latest[node])
        children[parent] -= 1
        if not children[parent]:
            order.append(parent)
    return kind, latest, order
