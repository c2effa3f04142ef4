"""Strongly connected components, without recursion: a hostile file may hold a chain as long as itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def components(edges: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """Return the number of the strongly connected component of each node that can be reached.

    Two nodes are on a common cycle if and only if their numbers are equal. `edges` maps a node to its successors.

    Source: R. Tarjan, Depth-first search and linear graph algorithms, 1972.
    """
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    component: dict[Node, int] = {}
    stack: list[Node] = []
    for root in edges:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        work = [(root, iter(edges.get(root, ())))]
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in order:
                    order[successor] = low[successor] = len(order)
                    stack.append(successor)
                    work.append((successor, iter(edges.get(successor, ()))))
                    break
                if successor not in component:
                    low[node] = min(low[node], order[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    number = order[node]
                    member = stack.pop()
                    component[member] = number
                    while member != node:
                        member = stack.pop()
                        component[member] = number
    return component
