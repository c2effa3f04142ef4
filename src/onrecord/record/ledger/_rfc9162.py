"""Merkle trees of RFC 9162, section 2.1: pure functions over hashes, without storage.

A tree is kept as its perfect subtrees: `(level, index)` names the subtree over the leaves `index * 2**level` up to
the next multiple. Leaves are level 0 and count from 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from onrecord.base.errors import LogError

NodeReader = Callable[[int, int], bytes]
"""Returns the 32-byte hash of the perfect subtree at (level, index)."""

Node = tuple[int, int, bytes]
"""Level, index, hash of a perfect subtree."""

HASH_BYTES: Final = 32
MAX_SIZE: Final = (1 << 63) - 1
"""Largest tree: sizes are stored as signed 64-bit integers."""

MAX_INCLUSION_NODES: Final = 63
"""Hashes read of an inclusion path: a tree below 2**63 leaves never needs more."""

MAX_CONSISTENCY_NODES: Final = 64
"""Hashes read of a consistency path: one more than for inclusion."""

EMPTY_ROOT: Final = hashlib.sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """Return SHA-256(0x00 || entry). Source: RFC 9162, section 2.1.1."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(0x01 || left || right). Source: RFC 9162, section 2.1.1."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def append(frontier: list[bytes], *, size: int, leaf: bytes) -> list[Node]:
    """Add one leaf hash to a tree of `size` leaves and return the perfect subtrees that it completes.

    `frontier` holds the roots of the perfect subtrees that make up the tree, largest first, and is changed in
    place. The first node returned is the leaf itself.
    """
    return extend(frontier, size=size, leaves=(leaf,))


def extend(frontier: list[bytes], *, size: int, leaves: Iterable[bytes]) -> list[Node]:
    """Add leaf hashes in order, as `append` does one: for groups, where each call would cost as much as its hash."""
    sha256 = hashlib.sha256
    rows: list[Node] = []
    for digest in leaves:
        rows.append((0, size, digest))
        level, index = 0, size
        while index & 1:
            digest = sha256(b"\x01" + frontier.pop() + digest).digest()  # noqa: PLW2901 - climbs to its subtree
            level, index = level + 1, index >> 1
            rows.append((level, index, digest))
        frontier.append(digest)
        size += 1
    return rows


def root(frontier: Sequence[bytes]) -> bytes:
    """Return the root of the tree whose frontier this is; an empty frontier is the empty tree."""
    if not frontier:
        return EMPTY_ROOT
    digest = frontier[-1]
    for left in frontier[-2::-1]:
        digest = node_hash(left, digest)
    return digest


def perfect_subtrees(begin: int, end: int) -> list[tuple[int, int]]:
    """Return (level, index) of the perfect subtrees that cover the leaves `begin` to `end`, largest first.

    `begin` is a multiple of the largest power of two that fits into the range, as in every range that RFC 9162
    splits off; 0 always is.
    """
    pairs = []
    for level in range((end - begin).bit_length() - 1, -1, -1):
        if (end - begin) & (1 << level):
            pairs.append((level, begin >> level))
            begin += 1 << level
    return pairs


def read_frontier(nodes: NodeReader, *, size: int) -> list[bytes]:
    """Return the frontier of the tree over the first `size` leaves from its stored nodes."""
    return [nodes(level, index) for level, index in perfect_subtrees(0, size)]


def tree_root(nodes: NodeReader, *, size: int) -> bytes:
    """Return the root over the first `size` leaves. Reads O(log size) nodes."""
    return root(read_frontier(nodes, size=size))


def inclusion_path(nodes: NodeReader, *, index: int, size: int) -> tuple[bytes, ...]:
    """Return the audit path of one leaf.

    `index` counts from 0 and is below `size`, the tree size that the proof is for. The result has at most 63
    hashes of 32 bytes, leaf side first, without the leaf itself.

    Raises `LogError` with code "proof-index" if `index` is not below `size`.

    Source: RFC 9162, section 2.1.3.1.
    """
    _check_index(index, size)
    path: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            path.append(_range_root(nodes, middle, end))
            end = middle
        else:
            path.append(_range_root(nodes, begin, middle))
            begin = middle
    return tuple(reversed(path))


def consistency_path(nodes: NodeReader, *, size1: int, size2: int) -> tuple[bytes, ...]:
    """Return the proof that the tree of `size1` leaves is a prefix of the tree of `size2` leaves.

    Empty when the sizes are equal. Raises `LogError` with code "consistency-size-zero" or "proof-size".

    Source: RFC 9162, section 2.1.4.1.
    """
    _check_sizes(size1, size2)
    path: list[bytes] = []
    begin, end = 0, size2
    while size1 != end:
        middle = begin + _split(end - begin)
        if size1 <= middle:
            path.append(_range_root(nodes, middle, end))
            end = middle
        else:
            path.append(_range_root(nodes, begin, middle))
            begin = middle
    if begin:
        path.append(_range_root(nodes, begin, end))
    return tuple(reversed(path))


def root_from_inclusion(leaf: bytes, *, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the root that an audit path leads to from a leaf hash.

    Raises `LogError` with code "proof-index", "proof-node" (not 32 bytes), "proof-too-long" or "proof-length".

    Source: RFC 9162, section 2.1.3.2.
    """
    _check_index(index, size)
    _check_nodes((leaf, *path), limit=MAX_INCLUSION_NODES + 1)
    fn, sn, digest = index, size - 1, leaf
    for node in path:
        if sn == 0:
            raise LogError("the path has more hashes than the tree has levels", code="proof-length")
        if fn & 1 or fn == sn:
            digest = node_hash(node, digest)
            fn, sn = _to_right_child(fn, sn)
        else:
            digest = node_hash(digest, node)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise LogError("the path ends below the root", code="proof-length")
    return digest


def check_inclusion(leaf: bytes, *, index: int, size: int, path: Sequence[bytes], root: bytes) -> bytes:
    """Return `root` if the audit path leads to it from the leaf hash.

    Raises `LogError` with the codes of `root_from_inclusion`, or "proof-root" if another root comes out.
    """
    if root_from_inclusion(leaf, index=index, size=size, path=path) != root:
        raise LogError("the path leads to another root", code="proof-root")
    return root


def root_from_consistency(*, size1: int, root1: bytes, size2: int, path: Sequence[bytes]) -> bytes:
    """Return the root of the newer tree, after the path has led to `root1` for the older one.

    Raises `LogError` with code "consistency-size-zero", "proof-size", "proof-node", "proof-too-long",
    "proof-length", or "consistency-not-proven" if the path does not lead to `root1`.

    Source: RFC 9162, section 2.1.4.2.
    """
    _check_sizes(size1, size2)
    if size1 == size2:
        if path:
            raise LogError("equal sizes need no path", code="proof-length")
        return root1
    _check_nodes((root1, *path), limit=MAX_CONSISTENCY_NODES + 1)
    if not path:
        raise LogError("the path is empty", code="proof-length")
    nodes = (root1, *path) if size1 & (size1 - 1) == 0 else tuple(path)
    fn, sn = size1 - 1, size2 - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    old = new = nodes[0]
    for node in nodes[1:]:
        if sn == 0:
            raise LogError("the path has more hashes than the tree has levels", code="proof-length")
        if fn & 1 or fn == sn:
            old, new = node_hash(node, old), node_hash(node, new)
            fn, sn = _to_right_child(fn, sn)
        else:
            new = node_hash(new, node)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise LogError("the path ends below the root", code="proof-length")
    if old != root1:
        raise LogError("the path leads to another old root", code="consistency-not-proven")
    return new


def check_consistency(*, size1: int, root1: bytes, size2: int, root2: bytes, path: Sequence[bytes]) -> bytes:
    """Return `root2` if the tree of `size1` with `root1` is a prefix of that of `size2` with `root2`.

    Raises `LogError` with the codes of `root_from_consistency`.
    """
    if root_from_consistency(size1=size1, root1=root1, size2=size2, path=path) != root2:
        raise LogError("the path leads to another new root", code="consistency-not-proven")
    return root2


def _split(count: int) -> int:
    """Return the largest power of two smaller than `count`."""
    return 1 << ((count - 1).bit_length() - 1)


def _range_root(nodes: NodeReader, begin: int, end: int) -> bytes:
    count = end - begin
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return nodes(level, begin >> level)
    return root([nodes(level, index) for level, index in perfect_subtrees(begin, end)])


def _to_right_child(fn: int, sn: int) -> tuple[int, int]:
    """Climb until the node is a right child or the leftmost one."""
    while fn and not fn & 1:
        fn, sn = fn >> 1, sn >> 1
    return fn, sn


def _check_index(index: int, size: int) -> None:
    if not 0 <= index < size <= MAX_SIZE:
        raise LogError(f"leaf {index} is not in a tree of {size}", code="proof-index")


def _check_sizes(size1: int, size2: int) -> None:
    if size1 == 0:
        raise LogError("everything is consistent with the empty tree", code="consistency-size-zero")
    if not 0 < size1 <= size2 <= MAX_SIZE:
        raise LogError(f"a tree of {size1} is not a prefix of one of {size2}", code="proof-size")


def _check_nodes(nodes: Sequence[bytes], *, limit: int) -> None:
    if len(nodes) > limit:
        raise LogError("the path has more hashes than any tree needs", code="proof-too-long")
    for node in nodes:
        if len(node) != HASH_BYTES:
            raise LogError(f"a hash in the path has {len(node)} bytes, not 32", code="proof-node")
