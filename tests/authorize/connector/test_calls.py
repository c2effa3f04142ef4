"""The connector: a proof for each call, everything else as it came."""

import asyncio
import json

import orjson
import pytest

from onrecord.authorize.connector import calls
from onrecord.authorize.connector.calls import MAX_HELD_CALLS, Calls
from onrecord.base.errors import NetworkError
from onrecord.base.wire import RpcError

PROOF_META = "io.modelcontextprotocol/callProof"
LABEL_META = "dev.onrecord/recordSession"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class HeldIssues:
    """Answers when the test says so."""

    def __init__(self):
        self.asked = []
        self.waiting = []
        self.waits = []

    def issue(self, params, done, *, wait_ms=0):
        self.asked.append(params)
        self.waits.append(wait_ms)
        self.waiting.append(done)

    def grant(self, index=-1, **more):
        number = len(self.asked)
        evidence = {"type": "dev.onrecord/handle", "value": f"proof-{number}"}
        self.waiting[index]({"evidence": evidence, "operationId": "op-1", "actionDigest": "x" * 43, **more})


class Bench:
    def __init__(self, *, open_first=True, **more):
        self.issues = HeldIssues()
        self.guard_bytes = []
        self.client_bytes = []
        self.calls = Calls(
            server="files",
            label="p1-2-abc",
            issues=self.issues,
            to_guard=self.guard_bytes.append,
            to_client=self.client_bytes.append,
            call_line_bytes=1 << 20,
            **more,
        )
        if open_first:
            self.send({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {}})
            self.guard_bytes.clear()

    def send(self, message):
        self.calls.client_line(message if isinstance(message, bytes) else json.dumps(message).encode())

    def say(self, message):
        self.calls.guard_line(message if isinstance(message, bytes) else json.dumps(message).encode())

    def call(self, request_id=7, *, meta=None, **params):
        members = {"name": "echo", **({} if meta is None else {"_meta": meta}), **params}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": members})

    def reject(self, request_id=7, reason="expired"):
        self.say(
            {
                "jsonrpc": "2.0",
                "id": request_id,
                "error": {"code": -32021, "message": "Call proof rejected", "data": {"reason": reason}},
            }
        )

    @property
    def guard(self):
        return [orjson.loads(line) for line in self.guard_bytes]

    @property
    def client(self):
        return [orjson.loads(line) for line in self.client_bytes]


def test_a_call_gets_a_proof():
    """Acceptance 24: issue with what the call holds, then the call with proof and label."""
    it = Bench()
    it.call(arguments={"text": "x"}, meta={"progressToken": 1})
    assert it.guard == []
    assert it.issues.asked == [
        {
            "method": "tools/call",
            "name": "echo",
            "server": "files",
            "arguments": {"text": "x"},
            "recordSession": "p1-2-abc",
        }
    ]
    it.issues.grant()
    assert it.guard[0]["params"] == {
        "name": "echo",
        "arguments": {"text": "x"},
        "_meta": {
            "progressToken": 1,
            PROOF_META: {"type": "dev.onrecord/handle", "value": "proof-1"},
            LABEL_META: "p1-2-abc",
        },
    }


@pytest.mark.parametrize("given", [{}, {"arguments": {}}])
def test_absent_arguments_stay_absent(given):
    """A call without arguments is a call; issue gets what the call has."""
    it = Bench()
    it.call(**given)
    it.issues.grant()
    assert ("arguments" in it.issues.asked[0]) is ("arguments" in given)
    assert ("arguments" in it.guard[0]["params"]) is ("arguments" in given)


@pytest.mark.req("CP-124")
def test_the_extension_is_declared_in_modern_requests():
    """Behind the connector a client needs to know nothing (6.1)."""
    it = Bench()
    it.call(meta=MODERN)
    it.issues.grant()
    declared = it.guard[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"]
    assert declared == {"io.modelcontextprotocol/call-proof": {}}


@pytest.mark.parametrize("proof", [{"type": "a", "value": "b"}, "junk", None])
def test_a_proof_of_the_client_is_left_alone(proof):
    """Acceptance 24: byte for byte, no issue."""
    it = Bench()
    line = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "x", "_meta": {PROOF_META: proof}},
        }
    ).encode()
    it.send(line)
    assert it.guard_bytes == [line + b"\n"]
    assert it.issues.asked == []


@pytest.mark.parametrize(
    "line",
    [
        b"garbage \\ tools/call",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","name":"y"}}',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"x"}}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":[]}}',
        b'{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"tools/call"}}',
        b'{"jsonrpc":"2.0","id":7,"method":"ping"}\r',
        b"",
    ],
)
def test_everything_else_passes_as_it_came(line):
    """Lines that break a rule are the guard's to answer."""
    it = Bench()
    it.send(line)
    assert it.guard_bytes == [line + b"\n"]


def test_escaped_method_names_are_seen():
    """Encoders that write a slash as an escape get proofs too."""
    it = Bench()
    it.send(rb'{"jsonrpc":"2.0","id":7,"method":"tools\/call","params":{"name":"x"}}')
    assert len(it.issues.asked) == 1


def test_other_lines_are_not_held_back():
    """Only the call itself waits (running.md 6)."""
    it = Bench()
    it.call()
    it.send({"jsonrpc": "2.0", "id": 8, "method": "ping"})
    assert [one["id"] for one in it.guard] == [8]


class TestRefusals:
    def refused(self, error):
        it = Bench()
        it.call()
        it.issues.waiting[0](error)
        assert it.guard == []
        assert it.calls.waiting == 0
        (answer,) = it.client
        assert answer["id"] == 7
        return answer["error"]

    @pytest.mark.req("CP-112", "CP-113")
    def test_a_denial(self):
        """The exact text, code, reason and ref; nothing else that the authority might have sent."""
        data = {"reason": "denied", "ref": "q7Zt0cXn4LmA", "operationId": "op", "rule": "SECRET-RULE"}
        error = self.refused(RpcError(-33001, "Denied by policy", data))
        assert error["code"] == -33001
        assert (
            error["message"]
            == "Denied by policy (ref q7Zt0cXn4LmA). Nothing was executed. Do not retry; tell the user."
        )
        assert error["data"] == {"reason": "denied", "ref": "q7Zt0cXn4LmA", "operationId": "op"}

    def test_a_rejection_by_a_person(self):
        """The exact text of running.md 6."""
        error = self.refused(RpcError(-33003, "x", {"reason": "approval_rejected", "approvalId": "a"}))
        assert (error["code"], error["message"]) == (-33003, "A person rejected this call.")

    @pytest.mark.parametrize(
        "cause",
        [
            NetworkError("x", code=code)
            for code in ("unreachable", "timeout", "closed", "peer-uid", "answer-unreadable")
        ],
    )
    def test_an_authority_that_cannot_be_asked(self, cause):
        """A local error with -33007."""
        error = self.refused(cause)
        assert (error["code"], error["data"]["reason"]) == (-33007, "authority_unreachable")

    @pytest.mark.parametrize("answer", [{}, [], None, {"evidence": {"type": "t"}}, {"evidence": "x"}])
    def test_an_answer_that_is_none(self, answer):
        """No proof and no refusal: as unreachable; nothing is sent without a proof."""
        assert self.refused(answer)["code"] == -33007


class TestRetry:
    @pytest.mark.req("CP-130")
    @pytest.mark.parametrize("reason", ["expired", "replayed", "missing", "Expired"])
    def test_one_new_proof(self, reason):
        """One more issue with the same operation, sent once; the client sees the second answer only."""
        it = Bench()
        it.call()
        it.issues.grant()
        it.reject(reason=reason)
        assert it.client == []
        assert it.issues.asked[1]["operationId"] == "op-1"
        it.issues.grant()
        assert it.guard[1]["params"]["_meta"][PROOF_META]["value"] == "proof-2"
        it.reject(reason=reason)
        assert it.client[0]["error"]["data"]["reason"] == reason
        assert len(it.issues.asked) == 2

    @pytest.mark.req("CP-130")
    @pytest.mark.parametrize(
        "reason", ["mismatch", "invalid", "malformed", "unknown_type", "revoked", "authority_unreachable"]
    )
    def test_no_new_proof_for_other_reasons(self, reason):
        """What is no accident is passed on."""
        it = Bench()
        it.call()
        it.issues.grant()
        it.reject(reason=reason)
        assert len(it.issues.asked) == 1
        assert len(it.client) == 1

    def test_not_for_proofs_of_the_client(self):
        """Its own proof, its own retry."""
        it = Bench()
        it.call(meta={PROOF_META: {"type": "a", "value": "b"}})
        it.reject()
        assert it.issues.asked == []
        assert len(it.client) == 1

    def test_not_for_other_errors(self):
        """-32021 of a server for a missing capability, or an error of a tool."""
        it = Bench()
        it.call()
        it.issues.grant()
        it.say(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "error": {"code": -32602, "message": "x", "data": {"reason": "expired"}},
            }
        )
        assert len(it.client) == 1
        assert len(it.issues.asked) == 1


class TestCancelling:
    def test_a_waiting_call_is_dropped_unanswered(self):
        """Neither call nor cancellation reaches the guard, and a proof that comes late is not used."""
        it = Bench()
        it.call()
        it.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        it.issues.grant()
        assert it.guard == []
        assert it.client == []

    def test_a_call_that_was_sent_is_the_guards(self):
        """The notification passes, and no retry follows."""
        it = Bench()
        it.call()
        it.issues.grant()
        it.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        assert it.guard[1]["method"] == "notifications/cancelled"
        it.reject()
        assert len(it.issues.asked) == 1


def test_too_many_waiting_calls():
    """The sixty-fifth is refused, the others wait on."""
    it = Bench()
    for number in range(MAX_HELD_CALLS):
        it.call(number)
    assert it.client == []
    it.call(999)
    assert it.client[0]["error"]["code"] == -33008
    assert it.client[0]["error"]["data"]["reason"] == "rate_limited"
    it.issues.grant(0)
    it.call(1000)
    assert len(it.client) == 1


def test_rounds_of_one_call_have_a_proof_each():
    """MRTR: inputResponses and requestState go into the issue, and each round has its own."""
    it = Bench()
    it.call(1)
    it.issues.grant()
    it.say({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "requestState": "st"}})
    it.call(2, inputResponses={"a": {"action": "accept"}}, requestState="st")
    assert it.issues.asked[1]["inputResponses"] == {"a": {"action": "accept"}}
    assert it.issues.asked[1]["requestState"] == "st"


class TestFirstLine:
    def test_a_call_as_first_line_asks_the_server_first(self):
        """running.md 6: server/discover of the connector's own, its answer kept, then the issue."""

        async def run():
            it = Bench(open_first=False)
            it.call(meta=MODERN)
            (probe,) = it.guard
            assert (probe["id"], probe["method"]) == ("onrecord-discover-1", "server/discover")
            assert probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
            assert it.issues.asked == []
            it.call(8)
            it.say({"jsonrpc": "2.0", "id": "onrecord-discover-1", "error": {"code": -32601, "message": "x"}})
            assert it.client == []
            assert [one["name"] for one in it.issues.asked] == ["echo", "echo"]
            it.calls.close()

        asyncio.run(run())

    def test_a_guard_that_does_not_answer_is_not_waited_for(self):
        """After the time limit the call goes on; a late answer is still kept from the client."""

        async def run():
            it = Bench(open_first=False, probe_timeout_seconds=0.01)
            it.call()
            async with asyncio.timeout(20):
                while not it.issues.asked:
                    await asyncio.sleep(0.005)
            it.issues.grant()
            assert [one["method"] for one in it.guard] == ["server/discover", "tools/call"]
            it.say({"jsonrpc": "2.0", "id": "onrecord-discover-1", "result": {}})
            assert it.client == []

        asyncio.run(run())


PENDING = {
    "reason": "approval_pending",
    "approvalId": "w1Jb",
    "expiresAt": "2026-11-30T10:05:03Z",
    "retryAfterMs": 1,
    "operationId": "op-9",
}


class TestApproval:
    def test_it_asks_again_and_sends_when_granted(self):
        """The same call is asked for again, held open, under the operation that the authority named."""

        async def run():
            it = Bench()
            it.call()
            it.issues.waiting[0](RpcError(-33002, "x", PENDING))
            async with asyncio.timeout(20):
                while len(it.issues.asked) < 2:
                    await asyncio.sleep(0.002)
            assert it.issues.asked[1]["operationId"] == "op-9"
            assert it.issues.asked[1]["waitMs"] == it.issues.waits[1] == 25_000
            it.issues.grant()
            assert len(it.guard) == 1

        asyncio.run(run())

    def test_at_the_limit_it_says_what_to_do(self):
        """The exact text of running.md 6; the approval stays."""

        async def run():
            it = Bench(approval_wait_seconds=0)
            it.call()
            it.issues.waiting[0](RpcError(-33002, "x", PENDING))
            error = it.client[0]["error"]
            assert error["code"] == -33002
            assert error["message"] == (
                "Waiting for approval w1Jb: nothing was executed. Ask the user to run `onrecord approvals`, "
                "then repeat exactly this call."
            )
            assert error["data"]["approvalId"] == "w1Jb"

        asyncio.run(run())

    def test_progress_while_waiting(self):
        """With a token the client hears at once that a person is asked; the value is below any of the server's."""

        async def run():
            it = Bench()
            it.call(meta={"progressToken": "t"})
            it.issues.waiting[0](RpcError(-33002, "x", PENDING))
            (notice,) = it.client
            assert notice["params"]["message"] == "waiting for approval by reviewers"
            # With a token the limit is 280 seconds, not the 50 that a client without one is kept waiting.
            assert -280 / 1e6 <= notice["params"]["progress"] < -50 / 1e6
            it.calls.close()

        asyncio.run(run())

    def test_progress_goes_on_until_the_proof_is_there(self, monkeypatch):
        """Each notice is above the one before it and below zero; after the grant there is none."""
        monkeypatch.setattr(calls, "PROGRESS_SECONDS", 0)

        async def run():
            it = Bench()
            it.call(meta={"progressToken": 5})
            it.issues.waiting[0](RpcError(-33002, "x", PENDING))
            async with asyncio.timeout(20):
                while len(it.client) < 3 or len(it.issues.asked) < 2:
                    await asyncio.sleep(0.002)
            it.issues.grant()
            sent = len(it.client)
            values = [notice["params"]["progress"] for notice in it.client]
            assert values == sorted(values)
            assert values[0] < values[-1] < 0
            assert {notice["params"]["progressToken"] for notice in it.client} == {5}
            assert it.calls.waiting == 0
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(it.client) == sent

        asyncio.run(run())

    def test_no_progress_without_a_token(self):
        """A client that gave no token gets no notice."""

        async def run():
            it = Bench()
            it.call()
            it.issues.waiting[0](RpcError(-33002, "x", PENDING))
            assert it.calls.waiting == 1
            assert it.client == []
            it.calls.close()

        asyncio.run(run())


def test_an_id_in_use_is_refused():
    """Two calls under one id could get each other's answer."""
    it = Bench()
    it.call()
    it.call()
    assert it.client[0]["error"]["data"]["detail"] == "id_in_use"
    assert len(it.issues.asked) == 1


def test_an_answer_with_an_unreadable_id_passes():
    """A server that sends bad UTF-8 or control characters as an id does not end the connection."""
    it = Bench()
    it.call()
    it.issues.grant()
    for line in (b'{"jsonrpc":"2.0","id":"\xff","result":{}}', b'{"jsonrpc":"2.0","id":"\x01","result":{}}'):
        it.say(line)
        assert it.client_bytes[-1] == line + b"\n"
