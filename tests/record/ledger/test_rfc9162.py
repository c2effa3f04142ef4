"""Merkle trees: published probes, a naive recursion, and proofs with every kind of damage."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import LogError
from onrecord.record.ledger import _rfc9162
from support.data import shared_data


def leaf(number):
    return _rfc9162.leaf_hash(number.to_bytes(4, "big"))


def naive_root(leaves):
    """MTH of RFC 9162 section 2.1.1, written as it stands there."""
    if not leaves:
        return _rfc9162.EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return _rfc9162.node_hash(naive_root(leaves[:split]), naive_root(leaves[split:]))


class Tree:
    def __init__(self, size):
        self.leaves = [leaf(number) for number in range(size)]
        self.nodes = {}
        self.frontier = []
        self.roots = [_rfc9162.EMPTY_ROOT]
        for number, digest in enumerate(self.leaves):
            for level, index, value in _rfc9162.append(self.frontier, size=number, leaf=digest):
                assert (level, index) not in self.nodes
                self.nodes[level, index] = value
            self.roots.append(_rfc9162.root(self.frontier))

    def node(self, level, index):
        return self.nodes[level, index]


TREE = Tree(1026)


def probes(name):
    with shared_data("cose", "merkle", name).open() as file:
        return [json.loads(line) for line in file]


def decoded(values):
    return [b64decode(value) if value else b"" for value in values or []]


def test_inclusion_probes():
    """Each published inclusion probe is accepted or refused as it says."""
    for probe in probes("inclusion.jsonl"):
        (root,), (digest,) = decoded([probe["root"]]), decoded([probe["leafHash"]])
        path = decoded(probe["proof"])
        arguments = {"index": probe["leafIdx"], "size": probe["treeSize"], "path": path, "root": root}
        if probe["wantErr"]:
            with pytest.raises(LogError):
                _rfc9162.check_inclusion(digest, **arguments)
        else:
            assert _rfc9162.check_inclusion(digest, **arguments) == root


def test_consistency_probes():
    """Each published consistency probe is accepted or refused as it says; size 0 is refused by our own rule."""
    for probe in probes("consistency.jsonl"):
        root1, root2 = decoded([probe["root1"], probe["root2"]])
        arguments = {
            "size1": probe["size1"],
            "root1": root1,
            "size2": probe["size2"],
            "root2": root2,
            "path": decoded(probe["proof"]),
        }
        if probe["wantErr"] or probe["size1"] == 0:
            with pytest.raises(LogError):
                _rfc9162.check_consistency(**arguments)
        else:
            assert _rfc9162.check_consistency(**arguments) == root2


def test_roots_equal_a_naive_recursion():
    """The root of every tree up to 300 leaves, and around 1024, is that of the recursion in the RFC."""
    for size in [*range(301), 511, 512, 513, 1023, 1024, 1025]:
        expected = naive_root(TREE.leaves[:size])
        assert TREE.roots[size] == expected
        assert _rfc9162.tree_root(TREE.node, size=size) == expected


def test_append_is_amortised_two_rows():
    """An append stores at most log2(n) + 1 rows, and n appends less than 2n."""
    assert len(TREE.nodes) < 2 * len(TREE.leaves)


def test_every_inclusion_proof_up_to_130():
    """Every inclusion proof verifies, and fails for another leaf, index, or any changed path element."""
    for size in range(1, 131):
        root = TREE.roots[size]
        for index in range(size):
            path = _rfc9162.inclusion_path(TREE.node, index=index, size=size)
            assert (
                _rfc9162.check_inclusion(TREE.leaves[index], index=index, size=size, path=path, root=root)
                == root
            )
            damaged = [(*path, TREE.leaves[0])] + [
                (*path[:at], flipped(path[at], index + at), *path[at + 1 :]) for at in range(len(path))
            ]
            if path:
                damaged.append(path[:-1])
            for wrong in damaged:
                with pytest.raises(LogError):
                    _rfc9162.check_inclusion(
                        TREE.leaves[index], index=index, size=size, path=wrong, root=root
                    )


def test_every_consistency_proof_up_to_130():
    """Every consistency proof verifies and leads to the new root; any change is refused."""
    for size2 in range(1, 131):
        for size1 in range(1, size2 + 1):
            path = _rfc9162.consistency_path(TREE.node, size1=size1, size2=size2)
            sizes = {"size1": size1, "size2": size2, "root1": TREE.roots[size1]}
            assert _rfc9162.root_from_consistency(**sizes, path=path) == TREE.roots[size2]
            at = (size1 + size2) % len(path) if path else 0
            damaged = [(*path, TREE.leaves[0])]
            if path:
                damaged += [path[:-1], (*path[:at], flipped(path[at], size1), *path[at + 1 :])]
            for wrong in damaged:
                with pytest.raises(LogError):
                    _rfc9162.check_consistency(**sizes, root2=TREE.roots[size2], path=wrong)


def flipped(digest, bit):
    number = int.from_bytes(digest, "big") ^ (1 << (bit % 256))
    return number.to_bytes(32, "big")


@given(st.lists(st.binary(max_size=40), max_size=60))
def test_roots_of_any_leaves(entries):
    """The root does not depend on what the entries are."""
    frontier = []
    for size, entry in enumerate(entries):
        _rfc9162.append(frontier, size=size, leaf=_rfc9162.leaf_hash(entry))
    assert _rfc9162.root(frontier) == naive_root([_rfc9162.leaf_hash(entry) for entry in entries])


@given(
    index=st.integers(-2, 70),
    size=st.integers(-2, 70),
    path=st.lists(st.binary(min_size=31, max_size=33), max_size=70),
)
def test_garbage_proofs_raise_our_errors_only(index, size, path):
    """No index, size or path makes the verifier raise anything but LogError."""
    for check in (
        lambda: _rfc9162.root_from_inclusion(TREE.leaves[0], index=index, size=size, path=path),
        lambda: _rfc9162.root_from_consistency(size1=index, root1=TREE.roots[1], size2=size, path=path),
    ):
        try:
            check()
        except LogError:
            pass


class TestRefusals:
    def test_index_not_below_size(self):
        """The index is below the size."""
        assert refusal(lambda: _rfc9162.inclusion_path(TREE.node, index=4, size=4)) == "proof-index"

    def test_size_zero(self):
        """Everything is consistent with the empty tree, so that proves nothing."""
        assert (
            refusal(lambda: _rfc9162.consistency_path(TREE.node, size1=0, size2=4)) == "consistency-size-zero"
        )

    def test_shrinking(self):
        """A larger tree is no prefix of a smaller one."""
        assert refusal(lambda: _rfc9162.consistency_path(TREE.node, size1=5, size2=4)) == "proof-size"

    def test_short_node(self):
        """A node has 32 bytes."""
        path = (TREE.leaves[1][:31],)
        check = lambda: _rfc9162.root_from_inclusion(TREE.leaves[0], index=0, size=2, path=path)
        assert refusal(check) == "proof-node"

    def test_path_beyond_the_limit(self):
        """A path longer than any tree needs is refused before any hashing; one at the limit is looked at."""
        largest = _rfc9162.MAX_SIZE
        for count, code in ((64, "proof-too-long"), (63, None)):
            path = (TREE.leaves[0],) * count
            check = lambda path=path: _rfc9162.root_from_inclusion(
                TREE.leaves[0], index=0, size=largest, path=path
            )
            assert refusal(check) == code

    def test_equal_sizes_with_other_roots(self):
        """Equal sizes need no path, and a comparison of roots decides."""
        check = lambda: _rfc9162.check_consistency(
            size1=4, root1=TREE.roots[4], size2=4, root2=TREE.roots[5], path=()
        )
        assert refusal(check) == "consistency-not-proven"

    def test_swapped_roots(self):
        """A proof does not verify with the roots swapped."""
        path = _rfc9162.consistency_path(TREE.node, size1=3, size2=7)
        check = lambda: _rfc9162.check_consistency(
            size1=3, root1=TREE.roots[7], size2=7, root2=TREE.roots[3], path=path
        )
        assert refusal(check) == "consistency-not-proven"


def refusal(check):
    try:
        check()
    except LogError as error:
        return error.code
    return None
