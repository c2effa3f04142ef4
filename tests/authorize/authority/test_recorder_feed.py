"""Decisions on their way to the recorder: order, resending, restarts, and a recorder that is not there."""

from __future__ import annotations

import os
import socket
import threading

import orjson
import pytest

from authorize.authority.house import House, become, issue_params
from onrecord.authorize.authority import recorder_feed
from onrecord.authorize.authority.recorder_feed import entry_of
from onrecord.base.errors import StorageError
from support.runtime import wait_for


class FakeRecorder:
    """record.sock with the rules of running.md 8: entries in order, a hole refused, repeats ignored."""

    def __init__(self, house: House) -> None:
        self.path = house.config.record_socket()
        self.sources: dict[str, list[dict]] = {}
        self.hellos: list[dict] = []
        self.fail_next: dict | None = None
        self._uid = house.config.recorder_uid if house.mode == "system" else house.authority_uid
        self._gid = house.control_gid
        self._running = True
        self._clients: list[socket.socket] = []
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,))
        self._thread.start()
        assert ready.wait(20)

    def _run(self, ready: threading.Event) -> None:
        if os.getuid() == 0:
            become(self._uid, gid=self._uid)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen()
        ready.set()
        while self._running:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._clients.append(client)
            with client, client.makefile("rb") as lines:
                try:
                    for line in lines:
                        client.sendall(
                            orjson.dumps({"jsonrpc": "2.0"} | self._answer(orjson.loads(line))) + b"\n"
                        )
                except OSError:
                    continue

    def _answer(self, request: dict) -> dict:
        id_, params = request["id"], request["params"]
        if request["method"] == "record/hello":
            self.hellos.append(params)
            self._source = params["source"]
            kept = self.sources.setdefault(self._source, [])
            return {"id": id_, "result": {"version": "1", "through": len(kept), "status": "ok"}}
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            return {"id": id_, "error": error}
        kept = self.sources[self._source]
        for entry in params["entries"]:
            if entry["n"] <= len(kept):
                continue
            if entry["n"] != len(kept) + 1:
                return {
                    "id": id_,
                    "error": {"code": -33201, "message": "hole", "data": {"reason": "record_gap"}},
                }
            kept.append(entry)
        return {"id": id_, "result": {"through": len(kept), "seq": 0, "size": 1, "note": "n"}}

    @property
    def entries(self) -> list[dict]:
        return [entry for source in self.sources.values() for entry in source]

    def stop(self) -> None:
        self._running = False
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self._clients:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._thread.join(20)
        self.path.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(recorder_feed, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(recorder_feed, "LONGEST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(recorder_feed, "CURSOR_NS", 0)


@pytest.fixture
def recorder():
    made = []

    def make(house: House) -> FakeRecorder:
        made.append(FakeRecorder(house))
        return made[-1]

    yield make
    for one in made:
        if one._running:
            one.stop()


class TestShipping:
    def test_decisions(self, user_house, recorder):
        """Granted and denied calls arrive in order with the members of running.md 8, and nothing of arguments."""
        there = recorder(user_house)
        with user_house.agent_wire() as agent:
            granted = user_house.proof(agent, recordSession="s1")
            denied = agent.error("callProof/issue", issue_params("~/secret", recordSession="s1"))["data"]
            agent.error("callProof/issue", issue_params(server="nowhere"))
        wait_for(lambda: len(there.entries) == 2, what="both decisions")
        first, second = there.entries
        record = user_house.records("issue.granted")[0].data
        assert set(first) == {
            "n", "kind", "time", "mono_ns", "session", "server", "tool", "actionDigest", "decision", "operationId",
            "proofRef",
        }  # fmt: skip
        assert first["session"] == {"uid": user_house.agent, "caller": "code-review", "label": "s1"}
        assert (first["decision"], first["proofRef"]) == ("allowed", record["proofRef"])
        assert first["operationId"] == granted["operationId"]
        assert (second["decision"], second["ref"]) == ("disallowed", denied["ref"])
        assert second["reason"] == "call-proof: denied"
        assert "secret" not in str(there.entries)
        assert [entry["n"] for entry in there.entries] == [1, 2]

    def test_later_rounds(self, user_house, recorder):
        """An issue for a later round of the same operation is a proof without a decision of its own."""
        there = recorder(user_house)
        with user_house.agent_wire() as agent:
            first = user_house.proof(agent, recordSession="s")
            more = {"recordSession": "s", "operationId": first["operationId"]}
            user_house.proof(agent, requestState="a", **more)
            user_house.proof(agent, requestState="b", **more)
            user_house.proof(agent, requestState="b", **more)
            user_house.proof(agent, **more)
        wait_for(lambda: len(there.entries) == 5, what="five entries")
        assert [(entry["kind"], entry.get("round")) for entry in there.entries] == [
            ("decision", None),
            ("proof", 2),
            ("proof", 3),
            ("proof", 3),
            ("decision", None),
        ]
        assert "session" not in there.entries[1]

    def test_recorder_comes_later(self, user_house, recorder):
        """Nothing waits for a recorder that is not there; it gets everything once it is."""
        with user_house.agent_wire() as agent:
            for n in range(200):
                user_house.proof(agent, f"repo/{n}")
            assert agent.result("callProof/hello")["status"] == "degraded"
        assert user_house.authority.state.feed.backlog == 200
        there = recorder(user_house)
        wait_for(lambda: len(there.entries) == 200, what="all decisions")
        assert [entry["n"] for entry in there.entries] == list(range(1, 201))
        wait_for(lambda: user_house.authority.state.feed.backlog == 0, what="all acknowledged")

    def test_more_than_memory(self, user_house, recorder, monkeypatch):
        """What does not fit into memory is read from the journal again."""
        monkeypatch.setattr(recorder_feed, "QUEUED_ENTRIES", 10)
        monkeypatch.setattr(recorder_feed, "READ_RECORDS", 7)
        with user_house.agent_wire() as agent:
            for n in range(100):
                user_house.proof(agent, f"repo/{n}")
        there = recorder(user_house)
        wait_for(lambda: len(there.entries) == 100, what="all decisions")
        digests = [record.data["actionDigest"] for record in user_house.records("issue.granted")]
        assert [entry["actionDigest"] for entry in there.entries] == digests

    def test_journal_that_cannot_be_read_for_a_while(self, user_house, recorder, monkeypatch):
        """A reading of our own journal that fails does not end the feed: it is tried again."""
        monkeypatch.setattr(recorder_feed, "QUEUED_ENTRIES", 2)
        with user_house.agent_wire() as agent:
            for n in range(10):
                user_house.proof(agent, f"repo/{n}")
        journal = user_house.authority.state.feed._journal
        read, failures = journal.read, [1, 2]

        def failing(*args):
            if failures:
                failures.pop()
                raise StorageError("test", code="journal-unreadable")
            return read(*args)

        monkeypatch.setattr(journal, "read", failing)
        there = recorder(user_house)
        wait_for(lambda: len(there.entries) == 10, what="all decisions")
        assert failures == []

    def test_errors_of_the_recorder(self, user_house, recorder):
        """A refused append is sent again after a new hello; nothing is lost or doubled."""
        there = recorder(user_house)
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
            wait_for(lambda: len(there.entries) == 1, what="the first decision")
            for code, reason in (
                (-33202, "record_unavailable"),
                (-33201, "record_gap"),
                (-32603, "internal_error"),
            ):
                before = len(there.entries)
                there.fail_next = {"code": code, "message": "no", "data": {"reason": reason}}
                user_house.proof(agent)
                wait_for(lambda size=before: len(there.entries) == size + 1, what="the decision, sent again")
        assert [entry["n"] for entry in there.entries] == [1, 2, 3, 4]


class TestRestart:
    def test_authority_restarts(self, user_house, recorder):
        """Numbers go on after a restart, with the same source, and only what is missing is sent."""
        there = recorder(user_house)
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
        wait_for(lambda: len(there.entries) == 1, what="the first decision")
        there.stop()
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
        user_house.stop()
        kept = there.sources
        there = recorder(user_house)
        there.sources = kept
        user_house.start()
        user_house.report()
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
        wait_for(lambda: len(there.entries) == 3, what="the two missing decisions")
        assert len(there.sources) == 1
        assert [entry["n"] for entry in there.entries] == [1, 2, 3]

    @pytest.mark.parametrize("damage", ["lost", "torn", "foreign"])
    def test_cursor_file(self, user_house, recorder, damage):
        """A cursor file that is lost or damaged costs work only."""
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
            user_house.proof(agent)
        user_house.stop()
        file = user_house.root / "state/authority" / "recorder.cursor"
        assert file.stat().st_mode & 0o777 == 0o600
        if damage == "lost":
            file.unlink()
        else:
            file.write_bytes(
                b'{"source"' if damage == "torn" else b'{"source":5,"base":-1,"through":0,"seq":0}'
            )
        there = recorder(user_house)
        user_house.start()
        wait_for(lambda: len(there.entries) == 2, what="both decisions")

    def test_recorder_lost_everything(self, user_house, recorder):
        """A recorder with an empty journal is offered everything from the first decision on."""
        there = recorder(user_house)
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
            user_house.proof(agent)
            wait_for(lambda: len(there.entries) == 2, what="both decisions")
            there.stop()
            there = recorder(user_house)
            wait_for(lambda: len(there.entries) == 2, what="both decisions again")
            user_house.proof(agent)
            wait_for(lambda: len(there.entries) == 3, what="the third")
        assert [entry["n"] for entry in there.entries] == [1, 2, 3]

    def test_recorder_is_ahead(self, user_house, recorder):
        """Numbers that the recorder has and the journal has not are never given to other decisions."""
        there = recorder(user_house)
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
            wait_for(lambda: len(there.entries) == 1, what="the first decision")
            there.stop()
            (source,) = there.sources
            kept = {source: [{"n": n, "kind": "decision"} for n in range(1, 8)]}
            there = recorder(user_house)
            there.sources = kept
            user_house.proof(agent)
            wait_for(lambda: len(there.sources) == 2 and len(there.entries) == 8, what="a new source")
        (fresh,) = (entries for name, entries in there.sources.items() if name != source)
        assert fresh[0]["n"] == 1
        assert fresh[0]["proofRef"] == user_house.records("issue.granted")[-1].data["proofRef"]


def test_large_monotonic_time():
    """A boot-time clock beyond 2^53-1 is written as text, since strict JSON has no such integer."""
    data = {
        "server": "s", "actionDigest": "d", "operationId": "o", "proofRef": "p", "name": "t", "caller": "c",
        "session": "l", "platform": {"uid": 1},
    }  # fmt: skip
    entry = entry_of(1, "issue.granted", data, time="t", mono_ns=2**53)
    assert entry["mono_ns"] == str(2**53)
