"""The tree of a session's entries: unique ids, parents that may come later, circles that are cut.

Ids are kept as hashes, about 100 bytes an entry whatever their length (native-logs.md D-LOG-05, R-19, R-20).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from onrecord.record.logs.spool import Spool

_COMING: Final = 2**62
"""First object of an entry that is being written."""


class Link(NamedTuple):
    """What became of an entry's native parent: its `parent_id`, or that it closes a circle, or what it waits for."""

    parent_id: str | None = None
    closes_circle: bool = False
    waits_for: int = -1


class EntryTree:
    """The entries of one session, numbered in the order in which they are written or waited for."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._nodes: dict[int, int] = {}
        self._copies: dict[int, int] = {}
        self._top = array("i")
        self._above = array("i")
        self._firsts = array("q")
        self._waiting: dict[int, list[tuple[int, str, int]]] = {}
        self._further = array("B")

    def __len__(self) -> int:
        return len(self._firsts)

    def find(self, id: str) -> int | None:
        """Return the number of an entry by its native id, None if it has no objects."""
        node = self._nodes.get(hash(id))
        return node if node is not None and self._firsts[node] >= 0 and not self._further[node] else None

    def above(self, node: int) -> int:
        """Return the number of the entry above, -1 for a root."""
        return self._above[node]

    def first_object(self, node: int) -> int | None:
        """Return the spool number of an entry's first object."""
        number = self._firsts[node]
        return None if number < 0 else number

    def register(self, id: str, *, is_further: bool = False) -> tuple[str, int]:
        """Enter an entry that is being written; return its unique id and its number.

        `is_further` is for ids that we make for further objects of a record: they are unique, and nobody's parent.
        """
        text = id
        while True:
            key = hash(text)
            node = self._nodes.get(key)
            if node is None:
                node = self._new_node(key)
                break
            if self._firsts[node] < 0:
                break
            taken = self._copies[hash(id)] = self._copies.get(hash(id), 1) + 1
            text = f"{id}~{taken}"
        self._firsts[node] = _COMING
        self._further[node] = is_further
        return text, node

    def link(self, own: int, parent: str) -> Link:
        """Hang an entry below another one by its native id. One that closes a circle is left a root (R-19)."""
        above = self._nodes.get(hash(parent))
        if above is None:
            above = self._new_node(hash(parent))
        elif self._further[above]:
            return Link(waits_for=above)
        elif self._topmost(above) == own:
            return Link(closes_circle=True)
        self._top[own] = above
        self._above[own] = above
        return Link(parent_id=parent) if self._firsts[above] >= 0 else Link(waits_for=above)

    def settle(self, node: int, number: int, text: str) -> None:
        """Note the first object of an entry, and tell those that wait for it as their parent."""
        self._firsts[node] = number
        if self._further[node]:
            return
        for child, _, _ in self._waiting.pop(node, ()):
            self._spool.late(child, {"parent_id": text})

    def wait(self, node: int, *, number: int, parent: str, record: int) -> None:
        """Note that an object waits for an entry of this native id as its parent."""
        self._waiting.setdefault(node, []).append((number, parent, record))

    def left_waiting(self) -> list[tuple[int, str, int]]:
        """Return object, native parent and record of all that wait in vain, and forget them."""
        left = [item for waiting in self._waiting.values() for item in waiting]
        self._waiting.clear()
        return left

    def flag(self, node: int, flag: str) -> bool:
        """Add a flag to all objects of an entry; say whether there are any."""
        number = self._firsts[node]
        if number < 0:
            return False
        spool = self._spool
        entry, session = spool.entries[number], spool.sessions[number]
        while number < len(spool):
            if spool.is_object(number):
                if spool.entries[number] != entry or spool.sessions[number] != session:
                    break
                spool.flag(number, flag)
            number += 1
        return True

    def _new_node(self, key: int) -> int:
        node = len(self._firsts)
        self._nodes[key] = node
        self._top.append(node)
        self._above.append(-1)
        self._firsts.append(-1)
        self._further.append(False)
        return node

    def _topmost(self, node: int) -> int:
        """Return the root above a node, and shorten the way for the next time."""
        top = self._top
        while top[node] != node:
            top[node] = top[top[node]]
            node = top[node]
        return node
