"""The trees of a story: sessions and entries stand once, wherever references lead."""

from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.story.model import Entry
from onrecord.record.story.tree import entry_tree, session_tree


def entry(index, entry_id, parent_id=None, ns=None):
    return Entry(
        place="events",
        index=index,
        kind="reasoning",
        time=None,
        ns=index if ns is None else ns,
        who="agent",
        what="reasoning",
        entry_id=entry_id,
        parent_id=parent_id,
        members={},
    )


def drawn(*entries, answers=None):
    placed, roots = entry_tree(entries, answers or {})
    return [(one.item.entry_id, one.depth) for one in placed], roots


class TestEntries:
    def test_chain_stays_flat(self):
        """A conversation is a chain, and a chain does not indent."""
        assert drawn(*(entry(number, str(number), str(number - 1)) for number in range(3))) == (
            [("0", 0), ("1", 0), ("2", 0)],
            ("0",),
        )

    def test_branches_indent(self):
        """Where an entry has several children they stand below it by time, each with what follows it."""
        found, roots = drawn(
            entry(0, "a"), entry(3, "c", "a"), entry(1, "b", "a"), entry(2, "b1", "b"), entry(4, "z")
        )
        assert found == [("a", 0), ("b", 1), ("b1", 1), ("c", 1), ("z", 0)]
        assert roots == ("a", "z")

    def test_after_a_result(self):
        """What answers the result of a call stands below the call, in which the result is told."""
        found, _ = drawn(entry(0, "call"), entry(1, "next", "result"), answers={"result": "call"})
        assert found == [("call", 0), ("next", 0)]

    def test_cycle(self):
        """Entries whose parents form a cycle are told all the same, once each."""
        found, roots = drawn(entry(0, "a", "b"), entry(1, "b", "a"), entry(2, "c", "c"))
        assert sorted(one for one, _ in found) == ["a", "b", "c"]
        assert roots == ("c",)

    @settings(max_examples=80, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("abcde") | st.none(), st.sampled_from("abcdefg") | st.none())))
    def test_each_once(self, made):
        """Whatever ids and parents are, every entry has one place, and siblings stand by time."""
        entries = [entry(number, own, parent) for number, (own, parent) in enumerate(made)]
        placed, _ = entry_tree(entries, {})
        assert sorted(one.item.index for one in placed) == list(range(len(made)))

    def test_deep(self):
        """A chain of a hundred thousand entries is no recursion."""
        count = 100_000
        placed, _ = entry_tree([entry(n, str(n), str(n - 1)) for n in range(count)], {})
        assert len(placed) == count


class TestSessions:
    def test_children_follow_their_parent(self):
        """A contained session stands after the one that contains it, peers and precursors do not move."""
        tree = session_tree([[(1, "peer")], [], [(1, "child"), (3, "child")], [(0, "precursor")]])
        assert tree.order == (0, 2, 1, 3)
        assert (tree.parent, tree.depth) == ({1: 2, 3: 2}, {0: 0, 2: 0, 1: 1, 3: 1})

    def test_two_parents(self):
        """Of several parents the first counts."""
        assert session_tree([[(2, "child")], [(2, "child")], []]).parent == {2: 0}

    @settings(max_examples=80, deadline=None)
    @given(st.lists(st.lists(st.tuples(st.integers(-1, 7), st.sampled_from(["child", "peer", None])), max_size=3),
                    max_size=7))  # fmt: skip
    def test_each_once(self, references):
        """Whatever the references, cycles and missing sessions among them, each session has one place."""
        tree = session_tree(references)
        assert sorted(tree.order) == list(range(len(references)))
        for index, parent in tree.parent.items():
            assert tree.depth[index] == tree.depth[parent] + 1
