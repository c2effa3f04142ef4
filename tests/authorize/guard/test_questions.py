"""A client answers what a server has asked it, once, and nothing else (call-proof.md 6.6)."""

import pytest

from authorize.guard.relays import VALID, Bench
from onrecord.authorize.guard import questions
from onrecord.authorize.guard.authority_link import Verdict

APPROVED = Verdict(None, approved=True)
ACCEPTED = {"action": "accept", "content": {"target": "INPUT-CANARY"}}


@pytest.fixture
def bench(tmp_path):
    made = []

    def build(**more):
        made.append(Bench(tmp_path, **more))
        return made[-1]

    yield build
    for it in made:
        it.close()


def ask(it, request_id=0, method="elicitation/create"):
    it.say({"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"message": "Target?"}})


def reply(it, request_id=0, **members):
    it.send({"jsonrpc": "2.0", "id": request_id, **(members or {"result": ACCEPTED})})


def test_no_answer_runs_ahead_of_its_question(bench):
    """Ids of servers are 0, 1, 2: an answer sent early would reach an approved call before the guard's "cancel"."""
    it = bench(verdict=APPROVED)
    it.call()
    reply(it)
    ask(it)
    reply(it)
    assert [one.get("result") for one in it.server[1:]] == [{"action": "cancel"}]
    assert "answer.unasked" in it.log_text()
    assert "CANARY" not in it.log_text()


def test_a_question_is_answered_once(bench):
    """A second answer would be one for whatever the server asks next under this id."""
    it = bench()
    it.call()
    ask(it)
    reply(it)
    reply(it)
    assert [one["result"] for one in it.server[1:]] == [ACCEPTED]


def test_an_answer_waits_its_turn_behind_a_call(bench):
    """It was asked for, so it is not lost."""
    it = bench(verdict=None)
    ask(it, "q")
    it.call()
    reply(it, "q", error={"code": -1, "message": "no"})
    assert it.server == []
    it.verifier.waiting[0](VALID)
    assert [one["id"] for one in it.server] == [7, "q"]


@pytest.mark.parametrize("other", ["0", 1, "x"])
def test_another_id_answers_nothing(bench, other):
    """Text is no number, whatever the server makes of it."""
    it = bench()
    it.call()
    ask(it)
    reply(it, other)
    assert len(it.server) == 1


def test_an_error_without_an_id_passes(bench):
    """It tells the server that a line of its could not be read, and answers no request."""
    it = bench()
    reply(it, None, error={"code": -32700, "message": "Parse error"})
    assert it.server[0]["error"]["code"] == -32700


def test_questions_that_nobody_answers_are_bounded(bench, monkeypatch):
    """The oldest is forgotten."""
    monkeypatch.setattr(questions, "MAX_QUESTIONS", 2)
    it = bench()
    for request_id in (0, 1, 2):
        ask(it, request_id, "roots/list")
    for request_id in (0, 1, 2):
        reply(it, request_id, result={"roots": []})
    assert [one["id"] for one in it.server] == [1, 2]


def test_a_batch_asks_an_approved_call_nothing(bench):
    """What would end here alone ends here in a batch too; the rest of the batch goes on."""
    it = bench(verdict=APPROVED)
    it.call()
    question = {"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {"message": "Target?"}}
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "\ud800", "n": 2**70}}
    it.say([question])
    assert it.client_bytes == []
    it.say([question, notice, "x"])
    assert it.client_bytes == [
        b'[{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\ud800","n":1180591620717411303424}},"x"]\n'
    ]
    assert [one.get("result") for one in it.server[1:]] == [{"action": "cancel"}] * 2


def test_a_batch_with_nothing_to_hide_passes_byte_for_byte(bench):
    """And what it asks may be answered."""
    it = bench()
    it.call()
    line = b'[ {"jsonrpc":"2.0", "id":5,"method":"roots/list"},{"jsonrpc":"2.0","id":7,"result":{"content":[]}} ]'
    it.say(line)
    assert it.client_bytes == [line + b"\n"]
    reply(it, 5, result={"roots": []})
    assert it.server[-1]["id"] == 5
    assert it.entries[-1]["kind"] == "result"


def test_the_guards_own_answers_stay_here_in_a_batch(tmp_path):
    """A server that collects answers shows neither the guard's listing nor an unadvertised opening to its client."""
    it = Bench(tmp_path, settle=False)
    it.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    it.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    it.say(
        [
            {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-03-26", "capabilities": {}}},
            {"jsonrpc": "2.0", "id": "onrecord-tools-1", "result": {"tools": []}},
        ]
    )
    (opened,) = it.client
    assert "io.modelcontextprotocol/call-proof" in opened["result"]["capabilities"]["extensions"]
    assert it.verifier.reports == [[]]
    it.close()
