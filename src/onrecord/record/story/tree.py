"""The trees of a story: sessions below those that contain them, entries below the ones they answer.

Both are linear in the number of elements, whatever references a file holds: a cycle is cut where it closes.

Source: record.md 2.5, D-37.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from onrecord.record.story.model import Entry, Item, OperationStory, Placed


@dataclass(frozen=True, slots=True)
class SessionTree:
    """Sessions in the order of the story, each after the one that contains it."""

    order: tuple[int, ...]
    parent: Mapping[int, int]
    depth: Mapping[int, int]


def session_tree(references: Sequence[Sequence[tuple[int, str | None]]]) -> SessionTree:
    """Return the tree of the `child` references of each session. Of several parents the first counts."""
    size = len(references)
    parent: dict[int, int] = {}
    children: list[list[int]] = [[] for _ in range(size)]
    for index, own in enumerate(references):
        for target, kind in own:
            if kind == "child" and 0 <= target < size and target != index and target not in parent:
                parent[target] = index
                children[index].append(target)
    order: list[int] = []
    depth: dict[int, int] = {}
    for start in [*(index for index in range(size) if index not in parent), *range(size)]:
        stack = [] if start in depth else [(start, 0)]
        while stack:
            index, level = stack.pop()
            if index in depth:
                continue
            depth[index] = level
            order.append(index)
            stack += [(child, level + 1) for child in reversed(children[index])]
    for index in order:  # the session at which a cycle was entered has no parent in the story
        if depth[index] == 0:
            parent.pop(index, None)
    return SessionTree(tuple(order), parent, depth)


class _Branches:
    """Which item stands below which: the first child of each and the next sibling, so that few objects are made."""

    def __init__(self, size: int) -> None:
        self._first = array("q", [-1]) * size
        self._next = array("q", [-1]) * size
        self._has_parent = bytearray(size)

    def put_below(self, above: int, position: int) -> None:
        """Make an item the first child of another one."""
        self._next[position] = self._first[above]
        self._first[above] = position
        self._has_parent[position] = 1

    def children(self, position: int) -> list[int]:
        """Return the children of an item."""
        found: list[int] = []
        child = self._first[position]
        while child >= 0:
            found.append(child)
            child = self._next[child]
        return found

    def roots(self) -> list[int]:
        """Return the items that stand below no other."""
        return [position for position, has_parent in enumerate(self._has_parent) if not has_parent]


def entry_tree(
    items: Sequence[Item], answers: Mapping[str, str]
) -> tuple[tuple[Placed, ...], tuple[str, ...]]:
    """Return the items of one session in a tree, siblings by time, and the entry ids of its roots.

    `answers` are ids of results with the entry id of their call, so that what follows a result stands below its call.
    An only child stays at the depth of its parent: a conversation is a chain, and indents only where it branches.
    """
    ordered = sorted(items, key=_moment)
    branches = _Branches(len(ordered))
    ids: dict[str, int] = {}
    for position, item in enumerate(ordered):
        if isinstance(item, Entry) and item.entry_id is not None:
            ids.setdefault(item.entry_id, position)
    for position in range(len(ordered) - 1, -1, -1):  # from the end: the one put last is the first child
        item = ordered[position]
        if isinstance(item, OperationStory) or item.parent_id is None:
            continue
        above = ids.get(answers.get(item.parent_id, item.parent_id))
        if above is None:
            above = ids.get(item.parent_id)
        if above is not None and above != position:
            branches.put_below(above, position)
    roots = branches.roots()
    return tuple(_walk(ordered, branches, roots)), tuple(
        item.entry_id
        for root in roots
        if isinstance(item := ordered[root], Entry) and item.entry_id is not None
    )


def _walk(items: Sequence[Item], branches: _Branches, roots: Sequence[int]) -> Iterator[Placed]:
    seen = bytearray(len(items))
    for start in chain(roots, range(len(items))):  # what is left after the roots hangs in a cycle
        stack = [(start, 0)]
        while stack:
            position, depth = stack.pop()
            if seen[position]:
                continue
            seen[position] = 1
            yield Placed(items[position], depth)
            children = branches.children(position)
            below = depth + (len(children) > 1)
            stack += [(child, below) for child in reversed(children)]


def _moment(item: Item) -> int:
    return item.ns
