"""Families of sessions and the vCons that are made of them."""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.linking import Families, families
from onrecord.record.logs.spool import DIALOG, EVENT, FLAGS, Spool
from support.scripted_logs import import_scripted, lines

T = "2026-07-01T10:00:{:02d}Z"


def line(number, *do, **members):
    return {"id": f"e{number}", "time": T.format(number), "do": list(do), **members}


class TestFamilies:
    def test_child(self, tmp_path):
        """A sub-agent is a child session with its own agent, below the call that started it (D-LOG-11)."""
        log = lines(
            line(1, ["text", "do it", "user"], model="claude-a"),
            line(2, ["call", "Task", {"prompt": "look"}, "c1"]),
            line(3, ["text", "look", "parent"], session="kid", child_of="s1", call="c1", model="claude-b"),
            line(4, ["text", "found"], session="kid", parent="e3"),
            line(5, ["result", "found", "c1"]),
        )
        vcon = import_scripted(tmp_path, log).vcon
        root, child = vcon["sessions"]
        assert root["sessions"] == [{"session": 1, "type": "child"}]
        assert (root["parties"], child["parties"]) == ([0, 1], [1, 2])
        assert [party.get("agent_meta", {}).get("model_id") for party in vcon["parties"]] == [
            None,
            "claude-a",
            "claude-b",
        ]
        assert [dialog["parties"] for dialog in vcon["dialog"]] == [[0, 1], [1, 2], [2, 1]]
        assert vcon["dialog"][1]["parent_id"] == "e2"
        assert (root["dialog"], child["dialog"]) == ([0], [1, 2])

    def test_parent_in_a_later_file(self, tmp_path):
        """The parent may be told by a source that is read later."""
        imported = import_scripted(
            tmp_path,
            lines(line(1, ["text", "x", "parent"], session="kid", child_of="s1")),
            lines(line(2, ["text", "y", "user"])),
        )
        assert len(imported.vcon["sessions"]) == 2
        assert imported.vcon["sessions"][0]["agent_session_id"] == "s1"
        assert "child-unlinked" not in imported.codes()

    def test_unlinked(self, tmp_path):
        """A sub-agent whose parent is nowhere has a vCon of its own, called by a program."""
        imported = import_scripted(tmp_path, lines(line(1, ["text", "x", "parent"], child_of="gone")))
        assert imported.codes()["child-unlinked"] == 1
        assert imported.vcon["parties"][0] == {"type": "bot", "name": "caller"}

    @pytest.mark.parametrize("parents", [["a"], ["b", "a"], ["b", "c", "a"], ["b", "c", "b"]])
    def test_circle(self, tmp_path, parents):
        """Sessions that name each other as parents are cut apart at one place, and none is lost."""
        log = lines(
            *(line(n, ["text", "x"], session="abc"[n], child_of=parent) for n, parent in enumerate(parents))
        )
        imported = import_scripted(tmp_path, log)
        assert sum(len(vcon["sessions"]) for vcon in imported.vcons) == len(parents)
        assert imported.codes()["child-unlinked"] == 1

    def test_roots_apart(self, tmp_path):
        """Each root session has a vCon, also when one file tells of two."""
        log = lines(line(1, ["text", "a"], session="s1"), line(2, ["text", "b"], session="s2"))
        assert [len(vcon["sessions"]) for vcon in import_scripted(tmp_path, log).vcons] == [1, 1]

    def test_one_session_in_two_files(self, tmp_path):
        """A session that two files tell is one, and each object names its file."""
        imported = import_scripted(
            tmp_path, lines(line(1, ["text", "a"])), lines(line(2, ["text", "b"], parent="e1"))
        )
        assert [dialog["onrecord"]["src"] for dialog in imported.vcon["dialog"]] == [[0, 1, 0], [1, 1, 0]]
        assert imported.vcon["dialog"][1]["parent_id"] == "e1"

    def test_many_sessions(self, tmp_path):
        """Interleaved sessions come apart in the order of the file."""
        rng = random.Random(5)
        told = [(rng.randrange(20), n) for n in range(300)]
        log = lines(
            *(
                {"id": f"e{n}", "session": f"s{s}", "time": T.format(1), "do": [["text", str(n)]]}
                for s, n in told
            )
        )
        for vcon in import_scripted(tmp_path, log).vcons:
            name = vcon["sessions"][0]["agent_session_id"]
            assert [d["body"] for d in vcon["dialog"]] == [str(n) for s, n in told if f"s{s}" == name]


class TestVcon:
    def test_members(self, tmp_path):
        """The vCon names us as its recorder, both extensions, and what is unknown as unknown (1.1, D-LOG-19)."""
        vcon = import_scripted(tmp_path, lines(line(1, ["text", "a", "user"]))).vcon
        assert vcon["extensions"] == ["ai_agent", "dev.onrecord"]
        assert vcon["recording_agent"]["name"] == "onrecord"
        assert vcon["parties"] == [
            {"type": "person", "name": "user"},
            {
                "type": "bot",
                "name": "scripted",
                "agent_meta": {"model_id": "unknown", "model_provider": "unknown", "cli_name": "scripted"},
            },
        ]

    def test_identity(self, tmp_path):
        """The same session gives the same version 8 UUID and the same bytes, another one another (D-LOG-22)."""
        log = lines(line(1, ["text", "a"]), line(2, ["text", "b"], session="s2"))
        first, second = import_scripted(tmp_path, log).vcons
        assert import_scripted(tmp_path, log).vcons == [first, second]
        assert first["uuid"] != second["uuid"]
        assert first["uuid"][14] == "8"

    def test_other_agents(self, tmp_path):
        """An agent that talks in between is a party without agent_meta (D-LOG-12)."""
        vcon = import_scripted(
            tmp_path, lines(line(1, ["text", "a", "user"]), line(2, ["text", "b", "scout"]))
        ).vcon
        assert vcon["parties"][2] == {"type": "bot", "name": "scout"}
        assert vcon["dialog"][1]["parties"] == [2, 1]
        assert vcon["sessions"][0]["parties"] == [0, 1, 2]


class TestSpool:
    def test_round_trip(self, tmp_path):
        """What is put in, late members and flags come out, in whatever order they are asked for."""
        spool = Spool(tmp_path)
        try:
            rng = random.Random(3)
            for n in range(3000):
                spool.put(
                    EVENT if n % 3 else DIALOG,
                    session=n % 7,
                    entry=n,
                    speaker=0,
                    members={"n": n, "text": "x" * rng.randrange(3000)},
                    ext={"src": [0, n, 0]},
                )
            for n in range(0, 3000, 10):
                number = [m for m in range(len(spool)) if spool.is_object(m)][n] if n < 10 else n
                spool.late(number, {"usage": n}, {"parent": str(n)})
                spool.flag(number, "superseded")
            for n in rng.sample(range(3000), 200):
                head, ext = spool.read(n)
                assert head.startswith(b'"n":%d,' % n)
                assert ext.startswith(b'"src":[0,%d,0]' % n)
                assert (b'"usage":%d' % n in head) == (n % 10 == 0)
                assert (b'"flags":["superseded"]' in ext) == (n % 10 == 0)
        finally:
            spool.close()

    def test_last_late_value_holds(self, tmp_path):
        """Of two values given late for one member the last one is written, once."""
        spool = Spool(tmp_path)
        number = spool.put(DIALOG, session=0, entry=1, speaker=0, members={"a": 1}, ext={"src": []})
        spool.late(number, {"b": 1})
        spool.late(number, {"b": 2}, {"c": 3})
        for flag in FLAGS:
            spool.flag(number, flag)
        head, ext = spool.read(number)
        assert head == b'"a":1,"b":2'
        assert (
            ext == b'"src":[],"c":3,"flags":' + str(list(FLAGS)).replace("'", '"').replace(" ", "").encode()
        )
        spool.close()


class TestFamiliesInSteps:
    @given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12), st.data())
    @settings(max_examples=60)
    def test_like_at_once(self, pairs, data):
        """Families found step by step, as folders are read, are those that are found at once."""
        parents = dict(pairs)
        steps = data.draw(st.permutations(sorted(parents)))
        whole, stepped = _run(parents), _run({})
        seen = Families(stepped)
        last = {}
        for step in steps:
            _tell(stepped, step, parents[step])
            for family in seen.changed([len(stepped.sessions) - 1]):
                for member in family:
                    last[member.agent_session_id] = {other.agent_session_id for other in family}
        if not _has_circle(parents):
            for family in families(whole):
                names = {member.agent_session_id for member in family}
                assert all(last[name] == names for name in names)
        assert sorted(last) == sorted(map(str, parents))
        assert all(name in family for name, family in last.items())


def test_deep_chain():
    """Fifty thousand sub-agents below each other are one family, found in one pass."""
    run = _run({n: n - 1 for n in range(50_000)})
    (family,) = families(run)
    assert [member.agent_session_id for member in family[:3]] == ["0", "1", "2"]
    assert len(family) == 50_000


class _Sessions:
    """As much of a run as families are found in."""

    def __init__(self):
        self.sessions = []

    def known_session(self, format, name):
        return next((session for session in self.sessions if session.agent_session_id == name), None)


class _FastSessions(_Sessions):
    def known_session(self, format, name):
        return self.sessions[int(name)] if name.isdecimal() and int(name) < len(self.sessions) else None


def _tell(run, name, parent):
    run.sessions.append(
        SimpleNamespace(
            index=len(run.sessions),
            agent_session_id=str(name),
            format_id="x",
            parent=None,
            parent_id=str(parent),
            is_child=True,
            first_object=0,
        )
    )


def _run(parents):
    run = _FastSessions() if len(parents) > 100 else _Sessions()
    for name, parent in parents.items():
        _tell(run, name, parent)
    return run


def _has_circle(parents):
    for name in parents:
        here, steps = name, 0
        while here in parents and steps <= len(parents):
            here, steps = parents[here], steps + 1
        if steps > len(parents):
            return True
    return False
