"""The trees of a story: sessions below those that contain them, entries below the ones they answer.

Both are linear in the number of elements, whatever references a file holds: a cycle is cut where it closes.

Source: record.md 2.5, D-37.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class _Node:
    item: Item
    children: list[int] = field(default_factory=list)
    has_parent: bool = False


def entry_tree(
    items: Sequence[Item], answers: Mapping[str, str]
) -> tuple[tuple[Placed, ...], tuple[str, ...]]:
    """Return the items of one session in a tree, siblings by time, and the entry ids of its roots.

    `answers` are ids of results with the entry id of their call, so that what follows a result stands below its call.
    An only child stays at the depth of its parent: a conversation is a chain, and indents only where it branches.
    """
    ordered = sorted(items, key=_moment)
    nodes = [_Node(item) for item in ordered]
    ids: dict[str, int] = {}
    for position, item in enumerate(ordered):
        if isinstance(item, Entry) and item.entry_id is not None:
            ids.setdefault(item.entry_id, position)
    for position, item in enumerate(ordered):
        if isinstance(item, OperationStory) or item.parent_id is None:
            continue
        above = ids.get(answers.get(item.parent_id, item.parent_id))
        if above is None:
            above = ids.get(item.parent_id)
        if above is not None and above != position:
            nodes[above].children.append(position)
            nodes[position].has_parent = True
    return tuple(_walk(nodes)), tuple(
        item.entry_id
        for node in nodes
        if not node.has_parent and isinstance(item := node.item, Entry) and item.entry_id is not None
    )


def _walk(nodes: Sequence[_Node]) -> list[Placed]:
    placed: list[Placed] = []
    seen = bytearray(len(nodes))
    roots = [position for position, node in enumerate(nodes) if not node.has_parent]
    for start in [*roots, *range(len(nodes))]:  # what is left after the roots hangs in a cycle
        stack = [(start, 0)]
        while stack:
            position, depth = stack.pop()
            if seen[position]:
                continue
            seen[position] = 1
            node = nodes[position]
            placed.append(Placed(node.item, depth))
            below = depth + (len(node.children) > 1)
            stack += [(child, below) for child in reversed(node.children)]
    return placed


def _moment(item: Item) -> int:
    return item.ns
