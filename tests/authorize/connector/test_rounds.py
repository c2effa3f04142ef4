"""A further round of a call continues the operation of its first round (running.md R-07)."""

import json

from authorize.connector.test_calls import Bench
from onrecord.authorize.connector import rounds

ASKS = {"resultType": "input_required", "requestState": "st-1", "inputRequests": {}}


def start(it, request_id, operation, state="st-1", **params):
    """Send a call that is granted and then asks for input."""
    it.call(request_id, **params)
    it.issues.grant(operationId=operation)
    it.say({"jsonrpc": "2.0", "id": request_id, "result": ASKS | {"requestState": state}})


def asked(it):
    return it.issues.asked[-1].get("operationId")


def test_the_next_round_names_the_operation():
    """Same tool and arguments, with the answers: no new operation, so no second decision in the record."""
    it = Bench()
    start(it, 1, "op-1", arguments={"a": 1})
    it.call(2, arguments={"a": 1}, requestState="st-1", inputResponses={"x": {}})
    assert asked(it) == "op-1"
    assert it.issues.asked[-1]["inputResponses"] == {"x": {}}
    it.issues.grant(operationId="op-1")
    it.say({"jsonrpc": "2.0", "id": 2, "result": ASKS | {"requestState": "st-2"}})
    it.call(3, arguments={"a": 1}, requestState="st-2")
    assert asked(it) == "op-1"


def test_the_state_tells_equal_calls_apart():
    """Two calls with equal arguments ask at the same time; each answer goes on with its own operation."""
    it = Bench()
    start(it, 1, "op-1", state="one")
    start(it, 2, "op-2", state="two")
    it.call(3, requestState="one")
    assert asked(it) == "op-1"
    it.call(4, requestState="two")
    assert asked(it) == "op-2"


def test_a_call_that_answers_nothing_begins_anew():
    """The same call without inputs is another operation, and so is one with other arguments or an old answer."""
    it = Bench()
    start(it, 1, "op-1", arguments={"a": 1})
    it.call(2, arguments={"a": 1})
    assert asked(it) is None
    it.call(3, arguments={"a": 2}, requestState="st-1")
    assert asked(it) is None
    it.call(4, arguments={"a": 1}, requestState="st-1")
    assert asked(it) == "op-1"
    it.call(5, arguments={"a": 1}, requestState="st-1")
    assert asked(it) is None


def test_only_answers_that_ask_are_remembered():
    """A result that ends the call leaves nothing to continue."""
    it = Bench()
    it.call(1)
    it.issues.grant()
    it.say({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": []}})
    it.call(2, requestState="st-1")
    assert asked(it) is None


def test_the_memory_is_bounded(monkeypatch):
    """A server that asks for ever fills nothing; the newest are kept."""
    monkeypatch.setattr(rounds, "MAX_ASKING", 2)
    it = Bench()
    for number in range(3):
        start(it, number, f"op-{number}", state=f"st-{number}", arguments={"n": number})
    for number, operation in ((0, None), (1, "op-1"), (2, "op-2")):
        it.call(10 + number, arguments={"n": number}, requestState=f"st-{number}")
        assert asked(it) == operation


def test_hostile_answers_are_no_rounds():
    """A line that only looks like a question, or whose state is no text, breaks nothing."""
    it = Bench()
    for number, line in enumerate(
        (
            b'{"jsonrpc":"2.0","id":0,"result":"input_required"}',
            b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":7}}',
            b'{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required" broken',
        )
    ):
        it.call(number, arguments={"n": number})
        it.issues.grant(operationId=f"op-{number}")
        it.say(line)
    assert [json.loads(line) for line in it.client_bytes[:2]]
    it.call(9, arguments={"n": 1}, inputResponses={})
    assert asked(it) == "op-1"
