"""The relay: no covered call reaches a server without a valid proof, and every line gets its answer."""

import asyncio
import io
import json
from pathlib import Path

import orjson
import pytest

from authorize.guard.relays import LABEL_META, MODERN, PROOF, PROOF_META, VALID, Bench
from onrecord.authorize import digest as digests
from onrecord.authorize.guard.authority_link import UNREACHABLE, Verdict
from onrecord.base.hashes import ProofRef
from onrecord.base.namespaces import CALL_PROOF_REASONS

CANARY = "PROOF-CANARY"


@pytest.fixture
def bench(tmp_path):
    """Make benches inside of a running loop; close them afterwards."""
    made = []

    def make(**more):
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(Bench(directory, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def error(message):
    return message["error"]["code"], message["error"]["message"], message["error"]["data"]


class TestEnforcement:
    @pytest.mark.req("CP-041")
    def test_a_valid_proof_lets_a_call_through(self, bench):
        """The call reaches the server, the digest asked for is that of what it gets."""
        it = bench()
        it.call(arguments={"text": "x"})
        (sent,) = it.server
        assert sent["params"] == {"name": "echo", "arguments": {"text": "x"}}
        (asked,) = it.verifier.asked
        assert asked["actionDigest"] == digests.action_digest("tools/call", "echo", {"text": "x"})
        assert (asked["server"], asked["peerUid"], asked["evidence"]) == ("files", 2001, PROOF)

    @pytest.mark.req("CP-128", "CP-066", "CP-043", "CP-019")
    @pytest.mark.parametrize("reason", [one for one in CALL_PROOF_REASONS if one != "missing"])
    def test_each_reason_rejects(self, bench, reason):
        """Acceptance 25: whatever is wrong with a proof, nothing runs, and the reason is on the wire."""
        it = bench(verdict=Verdict(reason))
        it.call()
        assert it.server == []
        assert error(it.client[0]) == (-32021, "Call proof rejected", {"reason": reason})
        assert it.client[0]["id"] == 7

    @pytest.mark.req("CP-042", "CP-066")
    @pytest.mark.parametrize("verdict", [Verdict("missing"), Verdict(None), Verdict(UNREACHABLE)])
    def test_no_proof_is_missing_whatever_the_authority_says(self, bench, verdict):
        """Mode matrix 6.4: absent and enforced is missing, and it was reported with evidence null."""
        it = bench(verdict=verdict)
        it.call(proof=None)
        assert it.server == []
        assert error(it.client[0]) == (-32021, "Call proof rejected", {"reason": "missing"})
        assert it.verifier.asked[0]["evidence"] is None

    @pytest.mark.req("CP-125")
    @pytest.mark.parametrize(
        "proof",
        [[], "x", {}, {"type": "t", "value": ""}, {"type": "t", "value": "ü"}, {"type": 1, "value": "v"}],
    )
    def test_a_malformed_proof_is_never_valid(self, bench, proof):
        """Even if the authority said so."""
        it = bench(verdict=Verdict(None))
        it.call(proof=proof)
        assert it.server == []
        assert it.client[0]["error"]["data"]["reason"] == "malformed"

    @pytest.mark.req("CP-125")
    @pytest.mark.parametrize(
        "key", ["io.modelcontextprotocol/callproof", "callProof", "io.modelcontextprotocol/call-proof"]
    )
    def test_a_proof_under_another_key_is_missing(self, bench, key):
        """Only the exact key counts."""
        it = bench()
        it.call(proof=None, meta={key: PROOF})
        assert it.client[0]["error"]["data"]["reason"] == "missing"

    def test_modern_rejections_name_the_capability(self, bench):
        """Trap 2: under 2026-07-28 -32021 always carries requiredCapabilities, and our reason beside it."""
        it = bench(settle=False)
        it.call(proof=None, meta=MODERN)
        assert it.client[0]["error"]["data"] == {
            "reason": "missing",
            "requiredCapabilities": {"extensions": {"io.modelcontextprotocol/call-proof": {}}},
        }

    @pytest.mark.req("CP-127")
    def test_the_server_sees_neither_proof_nor_label(self, bench):
        """Acceptance 31, trap 5: both members of ours are gone, the others stay; an empty _meta is gone too."""
        it = bench()
        it.call(meta={LABEL_META: "p1", "progressToken": 3, "x/y": 1})
        it.call(8, meta={LABEL_META: "p1"})
        assert it.server[0]["params"]["_meta"] == {"progressToken": 3, "x/y": 1}
        assert "_meta" not in it.server[1]["params"]
        assert CANARY.encode() not in b"".join(it.server_bytes)

    @pytest.mark.req("CP-025")
    def test_the_server_gets_the_value_that_was_digested(self, bench):
        """Re-serialized: escapes, blanks and number spellings are those of one parse."""
        it = bench()
        text = '{ "jsonrpc":"2.0","id":7,"method":"tools\\/call","params":{"name":"ech\\u006f","arguments":{"n":1.50,"e":1E2},"_meta":{"%s":%s}}}'  # noqa: E501
        it.send((text % (PROOF_META, json.dumps(PROOF))).encode())
        assert it.server_bytes == [
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"n":1.5,"e":100.0}}}\n'
        ]
        assert it.verifier.asked[0]["actionDigest"] == digests.action_digest(
            "tools/call", "echo", {"n": 1.5, "e": 100.0}
        )

    def test_one_digest_function(self, bench, monkeypatch):
        """Acceptance 4: the relay has no digest of its own."""
        monkeypatch.setattr(digests, "action_digest", lambda *_, **__: "D" * 43)
        it = bench()
        it.call()
        assert it.verifier.asked[0]["actionDigest"] == "D" * 43

    @pytest.mark.req("CP-126")
    def test_inputs_of_a_round_are_bound(self, bench):
        """InputDigest covers inputResponses and requestState; a first round has none."""
        it = bench()
        it.call()
        it.call(8, requestState="st")
        assert "inputDigest" not in it.verifier.asked[0]
        assert it.verifier.asked[1]["inputDigest"] == "2AUmMWo96TSZlwksjy3ZJk-_0bMmLTD_P-KOY3drNdg"

    def test_user_mode_sends_no_peer_uid(self, bench):
        """Where all share one uid it says nothing (running.md 2.2)."""
        it = bench(uid=None)
        it.call()
        assert "peerUid" not in it.verifier.asked[0]

    def test_two_calls_with_one_proof_are_both_asked_for(self, bench):
        """Trap 7: the relay remembers no proof; the authority says replayed to the second."""
        it = bench(verdict=None)
        it.call(1)
        it.call(2)
        it.verifier.waiting[0](Verdict(None))
        it.verifier.waiting[1](Verdict("replayed"))
        assert [one["id"] for one in it.server] == [1]
        assert it.client[0]["error"]["data"]["reason"] == "replayed"


class TestAuditMode:
    """Acceptance 32: the mode matrix of 6.4."""

    @pytest.mark.req("CP-045")
    @pytest.mark.parametrize("verdict", [Verdict("missing"), Verdict(UNREACHABLE)])
    def test_a_call_without_proof_is_executed(self, bench, verdict):
        """Reported when the authority is up, counted when it is not."""
        it = bench(enforces=False, verdict=verdict)
        it.call(proof=None)
        assert len(it.server) == 1
        assert it.verifier.asked[0]["evidence"] is None
        assert it.relay.unproven == (verdict.reason == UNREACHABLE)

    @pytest.mark.parametrize(
        ("verdict", "runs"), [(Verdict(None), 1), (Verdict("mismatch"), 0), (Verdict(UNREACHABLE), 0)]
    )
    def test_a_proof_that_is_there_must_be_good(self, bench, verdict, runs):
        """Audit mode forgives absence only."""
        it = bench(enforces=False, verdict=verdict)
        it.call()
        assert len(it.server) == runs

    @pytest.mark.req("CP-122")
    def test_it_is_said_on_the_wire(self, bench):
        """`required` is false."""
        it = bench(enforces=False, settle=False)
        it.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        it.answer(1, {"capabilities": {}})
        assert (
            it.client[0]["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/call-proof"][
                "required"
            ]
            is False
        )


class TestLines:
    @pytest.mark.parametrize(
        "line",
        [
            b"garbage",
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":1}}}',
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","name":"rm"}}',
            b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":{"a":1,"\\u0061":2}}}',
            b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"echo"}}',
            b'{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"echo"}}',
            b'[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}]',
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":null}}',
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}',
        ],
    )
    def test_broken_lines_are_answered_and_go_nowhere(self, bench, line):
        """Acceptance 9 and 30, trap 3: one answer each, whatever the method."""
        it = bench()
        it.send(line)
        assert it.server == []
        assert len(it.client) == 1
        assert it.client[0]["error"]["code"] in (-32700, -32600, -32602)

    def test_a_call_over_a_mebibyte_is_refused_and_other_lines_are_not(self, bench):
        """6.5 rule 3."""
        it = bench()
        it.call(arguments={"text": "x" * (1 << 20)})
        assert it.client[0]["error"]["data"] == {"reason": "too_large"}
        it.send({"jsonrpc": "2.0", "id": 8, "method": "resources/read", "params": {"uri": "x" * (1 << 20)}})
        assert len(it.server) == 1

    @pytest.mark.req("CP-104")
    def test_a_call_as_notification_is_dropped_and_reported(self, bench):
        """Acceptance 29: servers may run such calls; nothing is answered, the authority learns of it."""
        it = bench()
        it.send(
            {
                "jsonrpc": "2.0",
                "method": "tools/call",
                "params": {"name": "echo", "_meta": {PROOF_META: PROOF}},
            }
        )
        assert it.server == []
        assert it.client == []
        (asked,) = it.verifier.asked
        assert (asked["evidence"], asked["withoutId"]) == (None, True)
        assert "call.without-id" in it.log_text()

    def test_a_flood_of_notifications_is_held_up(self, bench):
        """Each is reported to the authority, which others need too: those under way count as held."""
        it = bench(verdict=None)
        for _ in range(3):
            it.send({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}})
        assert (it.relay.held, it.settled) == (3, 0)
        for done in it.verifier.waiting:
            done(Verdict("missing"))
        assert (it.relay.held, it.settled) == (0, 1)

    def test_other_lines_pass_byte_for_byte(self, bench):
        """6.5 rule 4: only covered calls are re-serialized. One CR before LF is ignored (4.2)."""
        it = bench()
        line = b'{ "id" : "a",  "jsonrpc":"2.0",\t"method":"resources/list" }'
        it.send(line + b"\r")
        assert it.server_bytes == [line + b"\n"]

    @pytest.mark.req("CP-066")
    @pytest.mark.parametrize("held", [False, True])
    def test_no_call_hides_between_carriage_returns(self, bench, held):
        """A server that reads text with universal newlines gets one message from one line of ours."""
        it = bench(verdict=None if held else VALID)
        if held:
            it.call(request_id="first")
        inner = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{}}}'
        it.send(b'{"jsonrpc":"2.0","id":2,"method":"ping","params":\r' + inner + b"\r}\r\r")
        if held:
            it.verifier.waiting[0](Verdict(None))
            del it.server_bytes[0]
        (line,) = it.server_bytes
        assert io.TextIOWrapper(io.BytesIO(line)).readlines() == [line.decode()]
        assert orjson.loads(line)["params"] == orjson.loads(inner)

    def test_refused_methods_are_answered(self, bench):
        """resources/read can reach protected data."""
        it = bench(refuse=("resources/read",))
        it.send(
            {"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}}
        )
        it.send({"jsonrpc": "2.0", "method": "resources/read"})
        assert it.server == []
        assert [error(one) for one in it.client] == [(-32601, "Refused here", {"reason": "method_refused"})]

    def test_an_id_in_use_is_refused(self, bench):
        """Two requests under one id could swap their answers in the record."""
        it = bench()
        it.call(7)
        it.call(7)
        it.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        assert len(it.server) == 1
        assert [one["error"]["data"]["detail"] for one in it.client] == ["id_in_use"] * 2
        it.answer(7, {"content": []})
        it.call(7)
        assert len(it.server) == 2

    def test_an_answer_cannot_be_passed_off_as_that_of_a_call(self, bench):
        """A ping before a call of the same id: its empty answer would stand in the record as what the tool said."""
        it = bench()
        it.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        it.call(7)
        assert [one["method"] for one in it.server] == ["ping"]
        assert it.client[0]["error"]["data"]["detail"] == "id_in_use"
        it.answer(7, {})
        it.call(7)
        assert [one["method"] for one in it.server] == ["ping", "tools/call"]

    def test_the_late_answer_to_a_cancelled_call_is_nobody_elses(self, bench):
        """Its id is taken as long as its answer may come."""
        it = bench()
        it.call(7)
        it.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        it.call(7, name="other")
        assert it.client[0]["error"]["data"]["detail"] == "id_in_use"
        it.answer(7, {"content": []})
        it.call(7, name="other")
        assert it.server[-1]["params"]["name"] == "other"

    def test_unanswered_requests_are_bounded(self, bench, monkeypatch):
        """A server that never answers does not make the guard grow without end."""
        monkeypatch.setattr("onrecord.authorize.guard.relay.MAX_UNANSWERED", 2)
        it = bench()
        for number in range(3):
            it.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
        assert len(it.server) == 2
        assert it.client[0]["id"] == 2

    @pytest.mark.parametrize("odd", [b'"\\ud800"', b"1234567890123456789012345", b"1e999"])
    def test_an_odd_answer_to_initialize_is_advertised_in_too(self, bench, odd):
        """What our writer refuses does not end the connection."""
        it = bench(settle=False)
        it.send({"jsonrpc": "2.0", "id": 1, "method": "initialize"})
        it.say(b'{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"s","version":' + odd + b"}}}")
        told = json.loads(it.client_bytes[0])["result"]
        assert "io.modelcontextprotocol/call-proof" in told["capabilities"]["extensions"]

    def test_ids_of_the_guard_cannot_be_taken(self, bench):
        """A client that guesses our ids gets an answer, not our answers."""
        it = bench()
        it.send({"jsonrpc": "2.0", "id": "onrecord-tools-2", "method": "tools/list"})
        assert it.server == []
        assert it.client[0]["error"]["data"]["detail"] == "id_in_use"

    def test_server_noise_is_dropped(self, bench):
        """Trap 11: a banner on stdout does not reach the client."""
        it = bench()
        for noise in (b"Welcome!", b"42", b'"text"', b"{half", b"\xff\xfe"):
            it.say(noise)
        it.say(b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}')
        assert it.client_bytes == [b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}\n']
        assert it.log_text().count("stdout.noise") == 5

    def test_server_lines_pass_byte_for_byte(self, bench):
        """Numbers and escapes of a server are not ours to touch; NaN of a careless server passes too."""
        it = bench()
        it.call()
        line = b'{"jsonrpc": "2.0", "id": 7, "result": {"content": [], "n": 12345678901234567890123, "x": NaN, "s": "\\ud800"}}'  # noqa: E501
        it.say(line)
        assert it.client_bytes == [line + b"\n"]
        content = it.entries[-1]["content"]
        assert content["x"] == "nan"
        assert content["s"] == "\ufffd"


class TestOrder:
    def test_a_call_in_verification_holds_back_what_follows(self, bench):
        """6.5 rule 1: lines go to the server in the order they came."""
        it = bench(verdict=None)
        it.call(1)
        it.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        it.call(3)
        it.send({"jsonrpc": "2.0", "method": "notifications/x"})
        assert it.server == []
        it.verifier.waiting[1](Verdict(None))
        assert it.server == []
        it.verifier.waiting[0](Verdict(None))
        assert [one.get("id") for one in it.server] == [1, 2, 3, None]

    def test_a_rejected_call_releases_what_follows(self, bench):
        """A rejection is an answer; the rest goes on."""
        it = bench(verdict=None)
        it.call(1)
        it.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        it.verifier.waiting[0](Verdict("invalid"))
        assert [one["id"] for one in it.server] == [2]

    @pytest.mark.parametrize("verdict", [Verdict(None), Verdict("mismatch")])
    def test_a_cancelled_call_is_dropped_unanswered(self, bench, verdict):
        """Trap 10: nothing runs, nothing is answered, what follows goes on."""
        it = bench(verdict=None)
        it.call(1)
        it.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        it.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        it.verifier.waiting[0](verdict)
        assert [one["id"] for one in it.server] == [2]
        assert it.client == []
        assert it.entries == []

    def test_a_cancellation_of_a_running_call_passes(self, bench):
        """The server gets it, and the record has it."""
        it = bench()
        it.call(1)
        it.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 1, "reason": "user"},
            }
        )
        assert it.server[1]["method"] == "notifications/cancelled"
        assert it.entries[-1]["content"] == {"reason": "user"}

    def test_true_is_not_one(self, bench):
        """A cancellation with requestId true does not drop the call with id 1."""
        it = bench(verdict=None)
        it.call(1)
        it.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": True}})
        it.verifier.waiting[0](Verdict(None))
        assert it.server[0]["id"] == 1

    def test_nothing_is_forwarded_after_the_end(self, bench):
        """A verdict that comes when the client has gone starts nothing."""
        it = bench(verdict=None)
        it.call(1)
        it.relay.close("client-eof")
        it.verifier.waiting[0](Verdict(None))
        assert it.server == []


class TestTools:
    def test_calls_wait_for_the_report(self, tmp_path):
        """running.md 5.2: no verify before the authority knows the tools."""

        async def run():
            it = Bench(tmp_path, settle=False)
            it.verifier.acknowledges = False
            it.send({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {}})
            it.answer("open", {"capabilities": {}})
            it.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            it.call()
            assert it.verifier.asked == []
            it.answer("onrecord-tools-1", {"tools": [{"name": "echo", "inputSchema": {}}]})
            assert it.verifier.asked == []
            it.verifier.unacknowledged[0]()
            assert len(it.verifier.asked) == 1
            assert [one["id"] for one in it.server if "id" in one] == ["open", "onrecord-tools-1", 7]
            assert all(not str(one.get("id")).startswith("onrecord-") for one in it.client)
            it.close()

        asyncio.run(run())

    def test_a_change_makes_calls_wait_again(self, tmp_path):
        """After list_changed the old report counts no more."""

        async def run():
            it = Bench(tmp_path)
            it.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            it.call()
            assert it.verifier.asked == []
            it.answer("onrecord-tools-2", {"tools": []})
            assert len(it.verifier.asked) == 1
            assert it.client[0]["method"] == "notifications/tools/list_changed"
            it.close()

        asyncio.run(run())

    def test_a_modern_server_lists_before_the_first_request(self, tmp_path):
        """A request with the modern version as the first line: tools/list goes ahead of it."""

        async def run():
            it = Bench(tmp_path, settle=False)
            it.send({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": MODERN}})
            assert [one["method"] for one in it.server] == ["tools/list", "resources/list"]
            assert it.server[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
            it.close()

        asyncio.run(run())

    @pytest.mark.parametrize("succeeds", [True, False])
    def test_a_probe_of_the_client_passes(self, tmp_path, succeeds):
        """server/discover: tools are listed when it succeeds; a legacy server is left alone until initialize."""

        async def run():
            it = Bench(tmp_path, settle=False)
            it.send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": MODERN}})
            if succeeds:
                it.answer(1, {"capabilities": {"tools": {}}})
                extensions = it.client[0]["result"]["capabilities"]["extensions"]
                assert extensions["io.modelcontextprotocol/call-proof"]["server"] == "files"
                assert it.server[1]["method"] == "tools/list"
            else:
                it.say({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "x"}})
                assert len(it.server) == 1
            it.close()

        asyncio.run(run())

    @pytest.mark.parametrize("is_modern", [True, False])
    def test_the_connectors_probe_is_answered_after_the_report(self, tmp_path, is_modern):
        """running.md 6: so the guard has reported before the first issue, whatever the server's era."""

        async def run():
            it = Bench(tmp_path, settle=False)
            it.send(
                {
                    "jsonrpc": "2.0",
                    "id": "onrecord-discover-1",
                    "method": "server/discover",
                    "params": {"_meta": MODERN},
                }
            )
            if is_modern:
                it.answer("onrecord-discover-1", {"capabilities": {}})
            else:
                it.say(
                    {"jsonrpc": "2.0", "id": "onrecord-discover-1", "error": {"code": -32601, "message": "x"}}
                )
            assert it.client == []
            it.answer("onrecord-tools-1", {"tools": []})
            assert it.client[0]["id"] == "onrecord-discover-1"
            it.close()

        asyncio.run(run())

    def test_a_server_that_never_lists_makes_calls_unreachable(self, tmp_path):
        """After the time limit the call is refused: its tools are not known."""

        async def run():
            it = Bench(tmp_path, settle=False)
            it.relay._gate._rules = type(it.relay._rules)(
                **{
                    name: getattr(it.relay._gate._rules, name)
                    for name in it.relay._gate._rules.__slots__
                    if name != "report_timeout_ms"
                },
                report_timeout_ms=10,
            )
            it.call()
            async with asyncio.timeout(20):
                while not it.client:
                    await asyncio.sleep(0.005)
            assert it.client[0]["error"]["data"]["reason"] == UNREACHABLE
            assert it.verifier.asked == []
            it.close()

        asyncio.run(run())


class TestApprovedCalls:
    """call-proof.md 6.6: nobody may feed other input into what a person has approved."""

    def test_elicitation_is_answered_with_cancel(self, bench):
        """The question does not reach the client."""
        it = bench(verdict=Verdict(None, approved=True))
        it.call()
        it.say(
            {"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": {"message": "Target?"}}
        )
        assert it.client == []
        assert it.server[1] == {"jsonrpc": "2.0", "id": "ask", "result": {"action": "cancel"}}

    def test_task_input_is_refused(self, bench):
        """Acceptance 37."""
        it = bench(verdict=Verdict(None, approved=True))
        it.call()
        it.answer(7, {"resultType": "task", "taskId": "t", "status": "working"})
        it.client_bytes.clear()
        it.send(
            {
                "jsonrpc": "2.0",
                "id": 9,
                "method": "tasks/update",
                "params": {"taskId": "t", "inputResponses": {}},
            }
        )
        assert error(it.client[0]) == (-32021, "Call proof rejected", {"reason": "missing"})
        assert len(it.server) == 1

    def test_polling_is_free(self, bench):
        """Trap 9: the start is gated, tasks/get and tasks/cancel are not."""
        it = bench(verdict=Verdict(None, approved=True))
        it.call()
        it.answer(7, {"resultType": "task", "taskId": "t", "status": "working"})
        for number, method in enumerate(("tasks/get", "tasks/cancel"), start=20):
            it.send({"jsonrpc": "2.0", "id": number, "method": method, "params": {"taskId": "t"}})
        assert len(it.server) == 3
        assert len(it.verifier.asked) == 1


class TestRecord:
    def test_an_allowed_call(self, bench):
        """Connection, invocation with arguments, result; the invocation was on disk before the server saw the call."""
        it = bench()
        seen = []
        it.relay._gate._to_server = lambda line: seen.append(it.spool.pending)
        it.call(arguments={"text": "x"}, meta={LABEL_META: "p99-1-abc"})
        assert seen == [2]
        it.answer(7, {"content": [], "_meta": {"x": 1}})
        opened, invocation, result = it.entries
        assert opened["session"] == invocation["session"] == {"uid": 2001, "label": "p99-1-abc"}
        assert (opened["state"], opened["protocol"], opened["serverInfo"]) == (
            "open",
            "2025-11-25",
            {"name": "s", "version": "1"},
        )
        assert invocation["admitted"] is True
        assert invocation["arguments"] == {"text": "x"}
        assert (invocation["server"], invocation["tool"], invocation["call"]) == ("files", "echo", "1.1")
        assert invocation["proofRef"] == ProofRef.of(PROOF["value"].encode())
        assert result["content"] == {"content": []}

    @pytest.mark.parametrize(("given", "has"), [({}, False), ({"arguments": {}}, True)])
    def test_absent_arguments_stay_absent(self, bench, given, has):
        """TI-113: no member, no content; an empty object is content."""
        it = bench()
        it.call(**given)
        assert ("arguments" in it.entries[1]) is has

    @pytest.mark.req("CP-127", "CP-121")
    def test_a_denied_call_leaves_no_argument_and_no_proof(self, bench):
        """R-08, acceptance 66: invocation without arguments, then the denial; no canary in spool or log."""
        it = bench(verdict=Verdict("mismatch"))
        it.call(arguments={"text": "ARGUMENT-CANARY"})
        spool = Path(it.spool.path).read_bytes()
        assert b"CANARY" not in spool
        assert "CANARY" not in it.log_text()
        _, invocation, denied = it.entries
        assert invocation["admitted"] is False
        assert "arguments" not in invocation
        assert denied["content"] == {
            "code": -32021,
            "message": "Call proof rejected",
            "data": {"reason": "mismatch"},
        }

    @pytest.mark.req("CP-127")
    def test_no_proof_of_an_allowed_call_is_anywhere(self, bench):
        """Acceptance 66: the proof is in no spool and no log, its hash is."""
        it = bench()
        it.call(arguments={"text": "ARGUMENT-CANARY"})
        it.answer(7, {"content": []})
        assert CANARY.encode() not in Path(it.spool.path).read_bytes()
        assert "CANARY" not in it.log_text()

    def test_a_further_round_is_the_same_attempt(self, bench):
        """MRTR: input, input-response, result under one call; the second round is no second invocation."""
        it = bench()
        it.call(1, arguments={"a": 1})
        it.answer(
            1,
            {
                "resultType": "input_required",
                "inputRequests": {"sure": {"method": "elicitation/create", "params": {}}},
                "requestState": "STATE",
            },
        )
        it.call(2, arguments={"a": 1}, inputResponses={"sure": {"action": "accept"}}, requestState="STATE")
        it.answer(2, {"resultType": "complete", "content": []})
        entries = it.entries
        assert [one["kind"] for one in entries] == [
            "connection",
            "invocation",
            "input",
            "input-response",
            "result",
        ]
        assert {one["call"] for one in entries[1:]} == {"1.1"}
        assert "STATE" not in json.dumps(entries)
        assert it.server[1]["params"]["requestState"] == "STATE"

    def test_changed_arguments_are_a_new_attempt(self, bench):
        """D-56."""
        it = bench()
        it.call(1, arguments={"a": 1})
        it.answer(1, {"resultType": "input_required", "requestState": "s"})
        it.call(2, arguments={"a": 2}, requestState="s")
        assert [one["kind"] for one in it.entries] == ["connection", "invocation", "input", "invocation"]

    def test_a_server_that_dies_ends_what_is_open(self, bench):
        """Kill -9 of the real server: tool-error with the transport, then the connection is closed."""
        it = bench()
        it.call()
        it.relay.close("server-eof")
        *_, ended, closed = it.entries
        assert (ended["kind"], ended["content"]) == ("error", {"transport": "eof"})
        assert (closed["kind"], closed["state"], closed["cause"]) == ("connection", "close", "server-eof")

    def test_a_client_that_goes_ends_nothing(self, bench):
        """Kill -9 of the connector: no cancel was sent, so none is recorded."""
        it = bench()
        it.call()
        it.relay.close("client-eof")
        assert [one["kind"] for one in it.entries] == ["connection", "invocation", "connection"]

    def test_a_connection_without_calls_is_not_recorded(self, bench):
        """A session is opened by a call, never by a handshake."""
        it = bench()
        it.relay.close("client-eof")
        assert it.entries == []

    def test_a_wide_result_is_stored(self, bench):
        """A 64-bit number and a deep result do not cost the entry."""
        it = bench()
        it.call()
        it.answer(7, {"content": [], "structuredContent": {"id": 2**60, "huge": 2**80}})
        assert it.entries[-1]["content"]["structuredContent"] == {"id": 2**60, "huge": str(2**80)}


class TestSpoolFull:
    def test_required_refuses_before_the_proof_is_spent(self, bench):
        """Acceptance 70: -32603 record_unavailable, no verify, nothing runs."""
        it = bench(spool_bytes=2048)
        it.call(1)
        number = 1
        while it.server and len(it.server) == number:
            number += 1
            it.call(number)
        asked = len(it.verifier.asked)
        it.call(99)
        assert error(it.client[-1]) == (
            -32603,
            "The call cannot be recorded",
            {"reason": "record_unavailable"},
        )
        assert len(it.verifier.asked) == asked
        assert 99 not in [one["id"] for one in it.server]
        assert Path(it.spool.path).stat().st_size <= 2048
        it.entries  # noqa: B018 - what is acknowledged makes room
        it.call(100)
        assert it.server[-1]["id"] == 100
        gap, *rest = it.entries
        assert gap["kind"] == "gap"
        assert gap["entries"] >= 2
        assert [one["kind"] for one in rest] == ["invocation"]

    def test_not_required_runs_and_counts(self, bench):
        """recorder.required false: calls run, the oldest events stay, the others are counted."""
        it = bench(spool_bytes=2048, required=False)
        for number in range(1, 21):
            it.call(number)
            it.answer(number, {"content": []})
        assert len(it.server) == 20
        assert Path(it.spool.path).stat().st_size <= 2048
        first = it.entries
        assert first[0]["kind"] == "connection"
        it.call(50)
        gap = it.entries[0]
        assert gap["kind"] == "gap"
        assert gap["entries"] + len(first) == 41


class TestStopping:
    def test_no_new_calls(self, bench):
        """A guard that stops answers new calls and lets running ones end."""
        it = bench()
        it.call(1)
        it.relay.stop_calls()
        it.call(2)
        assert it.client[0]["error"]["data"] == {"reason": "stopping"}
        assert it.relay.running == 1
        it.answer(1, {"content": []})
        assert it.relay.running == 0


def test_advertised_in_initialize(bench):
    """Trap 1, acceptance 34: extensions, and for legacy clients experimental."""
    it = bench(settle=False)
    it.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
    it.answer(
        0,
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "s"},
        },
    )
    capabilities = it.client[0]["result"]["capabilities"]
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["extensions"] == capabilities["experimental"]
    assert it.client[0]["result"]["serverInfo"] == {"name": "s"}


def test_log_lines_cannot_be_forged(bench):
    """A tool name with a line feed or an escape sequence stays inside of its line."""
    it = bench(verdict=Verdict("invalid"))
    it.call(name="x\n2026 guard call.allowed\x1b[2J")
    assert "\x1b" not in it.log_text()
    assert len([line for line in it.log_text().splitlines() if "call.rejected" in line]) == 1
    assert orjson.loads(it.client_bytes[0])["error"]["code"] == -32021


@pytest.mark.parametrize("reason", [None, "replayed"])
def test_preparing_a_call_lets_nothing_out(tmp_path, reason):
    """What is made ready while a proof is verified reaches neither disk nor server before the verdict."""
    outcomes = []
    for is_prepared in (True, False):
        directory = tmp_path / str(is_prepared)
        directory.mkdir()
        bench = Bench(directory, verdict=None)
        bench.call(arguments={"text": "hello"})
        assert len(bench.later) == 1
        if is_prepared:
            bench.later.pop()()
        assert bench.server == []
        assert bench.entries == []
        bench.verifier.waiting.pop()(Verdict(reason))
        if not is_prepared:
            bench.later.pop()()
        written = [{**one, "operationId": None} for one in bench.entries]
        outcomes.append((written, bench.server, bench.client))
        bench.close()
    assert outcomes[0] == outcomes[1]
    invocation = next(one for one in outcomes[0][0] if one["kind"] == "invocation")
    assert ("arguments" in invocation) == (reason is None)
    assert bool(outcomes[0][1]) == (reason is None)
