"""issue and verify over real sockets: the examples, every reason, the order of checks, single use."""

from __future__ import annotations

import threading

import pytest

import onrecord.authorize.digest
from authorize.authority.house import OTHER_PIN, Wire, issue_params
from onrecord.authorize.authority import issue as issue_module
from onrecord.authorize.authority.decisions import Operations
from onrecord.base.dates import ManualClock
from onrecord.base.errors import KeyAccessError
from onrecord.base.hashes import ActionDigest, ProofRef

README = "kYDQcUpVz7E57-sIPwtHHXdp-lOn9_jaIxYRTVnR4CM"
CREDENTIALS = "Cj0gcJjzMZ8AlETWAqmXluFlju35YQe8n4oNQesdg0Y"
OTHER_DIGEST = str(ActionDigest.of(b"another call"))


class TestExamples:
    @pytest.mark.req("CP-038", "CP-111")
    def test_issue(self, house):
        """The draft's issue request gives a digest, the server, evidence of type and value, and an expiry."""
        with house.agent_wire() as agent:
            agent.send_bytes(
                b'{"jsonrpc":"2.0","id":1,"method":"callProof/issue","params":{"method":"tools/call",'
                b'"name":"read_file","arguments":{"path":"repo/src/main.ts"},"server":"filesystem"}}'
            )
            result = agent.line()["result"]
        assert result["actionDigest"] == "S-sEkYFCUR01UPHSGshDxsqQ3cBhLpO12jehKE-IEUs"
        assert result["server"] == "filesystem"
        assert set(result["evidence"]) == {"type", "value"}
        assert len(result["evidence"]["value"]) == 27
        assert result["expiresAt"].endswith("Z")
        assert len(result["operationId"]) == 36

    @pytest.mark.req("CP-039", "CP-114")
    def test_verify(self, house):
        """The draft's verify request answers valid once; at level durable with the journal's checkpoint."""
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            params = {name: issued[name] for name in ("actionDigest", "server", "evidence")}
            result = server.result("callProof/verify", params)
        checkpoint = result.pop("checkpoint")
        assert result == {"valid": True}
        assert checkpoint["size"] > checkpoint["seq"] >= 0
        assert checkpoint["note"].split("\n")[1] == str(checkpoint["size"])

    def test_relaxed_has_no_checkpoint(self, new_house):
        """At level relaxed nobody waits for a commit, so there is no checkpoint to give."""
        house = new_house(durability="relaxed").start()
        house.report()
        with house.agent_wire() as agent, house.server_wire() as server:
            result = server.result("callProof/verify", house.verify_params(house.proof(agent)))
            assert result == {"valid": True}
        assert [record.type for record in house.records("issue.granted", "verify.valid")] == [
            "issue.granted",
            "verify.valid",
        ]

    def test_appendix_a(self, house):
        """The steps of CP appendix A: denied and journaled as that caller, missing, mismatch also when used."""
        with house.agent_wire() as agent, house.server_wire() as server:
            error = agent.error("callProof/issue", issue_params("~/.aws/credentials"))
            assert error["data"]["reason"] == "denied"
            asked = {
                "actionDigest": CREDENTIALS,
                "server": "filesystem",
                "name": "read_file",
                "method": "tools/call",
            }
            if house.mode == "system":
                asked["peerUid"] = house.agent
            missing = server.result("callProof/verify", asked | {"evidence": None})
            assert (missing["valid"], missing["reason"]) == (False, "missing")
            issued = house.proof(agent)
            for _ in range(2):
                wrong = server.result("callProof/verify", asked | {"evidence": issued["evidence"]})
                assert wrong["reason"] == "mismatch"
            used = server.result("callProof/verify", house.verify_params(issued))
            assert used["valid"] is True
            assert (
                server.result("callProof/verify", asked | {"evidence": issued["evidence"]})["reason"]
                == "mismatch"
            )
        denied = house.records("issue.denied")[0].data
        assert (denied["caller"], denied["actionDigest"], denied["ref"]) == (
            "code-review",
            CREDENTIALS,
            error["data"]["ref"],
        )
        reported = house.records("verify.invalid")[0].data
        assert (reported["reason"], reported["name"]) == ("missing", "read_file")
        if house.mode == "system":
            assert reported["caller"] == "code-review"


class TestIssueReasons:
    """One test for each reason of call-proof.md 5.3 that issue can give."""

    @pytest.mark.req("CP-112", "CP-113")
    def test_denied(self, house):
        """A denial shows reason, ref and operation, and nothing of policy or facts."""
        with house.agent_wire() as agent:
            error = agent.error("callProof/issue", issue_params("../../etc/passwd"))
        assert error["code"] == -33001
        assert set(error["data"]) == {"reason", "ref", "operationId"}
        assert error["data"]["reason"] == "denied"
        assert len(error["data"]["ref"]) == 12
        record = house.records("issue.denied")[0].data
        assert record["ref"] == error["data"]["ref"]
        assert record["rules"] == ["outside-never"]
        assert "outside" not in str(error)

    @pytest.mark.req("CP-110", "CP-112")
    @pytest.mark.parametrize(
        ("change", "code", "reason", "detail"),
        [
            ({"method": None}, -32602, "invalid_params", "method"),
            ({"method": "resources/read"}, -32602, "unsupported_method", None),
            ({"name": ""}, -32602, "invalid_params", "name"),
            ({"name": 7}, -32602, "invalid_params", "name"),
            ({"name": "x" * 257}, -32602, "invalid_params", "name"),
            ({"name": "é" * 129}, -32602, "invalid_params", "name"),
            ({"arguments": None}, -32602, "invalid_arguments", "not_object"),
            ({"arguments": []}, -32602, "invalid_arguments", "not_object"),
            ({"arguments": "{}"}, -32602, "invalid_arguments", "not_object"),
            ({"arguments": False}, -32602, "invalid_arguments", "not_object"),
            ({"server": "File System"}, -32602, "invalid_params", "server"),
            ({"server": "x" * 65}, -32602, "invalid_params", "server"),
            ({"server": "nowhere"}, -32602, "unknown_server", None),
            ({"evidenceTypes": "dev.onrecord/handle"}, -32602, "invalid_params", "evidenceTypes"),
            ({"evidenceTypes": []}, -32602, "invalid_params", "evidenceTypes"),
            ({"evidenceTypes": ["com.example/token"]}, -33006, "unsupported_type", None),
            ({"waitMs": -1}, -32602, "invalid_params", "waitMs"),
            ({"waitMs": 60001}, -32602, "invalid_params", "waitMs"),
            ({"waitMs": True}, -32602, "invalid_params", "waitMs"),
            ({"waitMs": 1.5}, -32602, "invalid_params", "waitMs"),
            ({"inputResponses": []}, -32602, "invalid_params", "inputResponses"),
            ({"requestState": None}, -32602, "invalid_params", "requestState"),
            ({"operationId": "x" * 65}, -32602, "invalid_params", "operationId"),
            ({"recordSession": "a b"}, -32602, "invalid_params", "recordSession"),
            ({"recordSession": "x\n"}, -32602, "invalid_params", "recordSession"),
            ({"recordSession": ""}, -32602, "invalid_params", "recordSession"),
        ],
    )
    def test_parameters(self, user_house, change, code, reason, detail):
        """A parameter of the wrong form is refused by its name, journaled, and gives no proof."""
        with user_house.agent_wire() as agent:
            error = agent.error("callProof/issue", issue_params() | change)
        assert (error["code"], error["data"]["reason"], error["data"].get("detail")) == (code, reason, detail)
        record = user_house.records("issue.refused")[-1].data
        assert (record["reason"], record.get("detail"), record["caller"]) == (reason, detail, "code-review")
        assert not user_house.records("issue.granted")

    @pytest.mark.req("CP-112")
    def test_missing_parameters(self, user_house):
        """method, name and server are required."""
        with user_house.agent_wire() as agent:
            for member in ("method", "name", "server"):
                params = issue_params()
                del params[member]
                error = agent.error("callProof/issue", params)
                assert (error["data"]["reason"], error["data"]["detail"]) == ("invalid_params", member)

    @pytest.mark.req("CP-110", "CP-023")
    def test_limits_of_good_parameters(self, user_house):
        """The largest good values pass, absent arguments are {}, unknown members change nothing."""
        with user_house.agent_wire() as agent:
            params = issue_params(name="get_pull_request")
            del params["arguments"]
            absent = agent.result("callProof/issue", params)
            empty = agent.result("callProof/issue", params | {"arguments": {}})
            assert absent["actionDigest"] == empty["actionDigest"]
            more = {
                "waitMs": 60000,
                "operationId": "x" * 64,
                "recordSession": "A" * 64,
                "evidenceTypes": ["com.example/token", "dev.onrecord/handle"],
                "unknownMember": {"x": [1]},
                "caller": "second",
            }
            assert agent.result("callProof/issue", params | more)["actionDigest"] == absent["actionDigest"]

    @pytest.mark.req("CP-029", "CP-112")
    def test_invalid_arguments(self, house):
        """Arguments that break strict JSON are answered with their class, and the refusal is journaled."""
        with house.agent_wire() as agent:
            agent.send_bytes(
                b'{"jsonrpc":"2.0","id":"a","method":"callProof/issue","params":{"method":"tools/call",'
                b'"name":"read_file","arguments":{"path":"a","path":"a"},"server":"filesystem"}}'
            )
            answer = agent.line()
        assert answer["id"] == "a"
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"] == {"reason": "invalid_arguments", "detail": "duplicate"}
        record = house.records("issue.refused")[0].data
        assert (record["reason"], record["detail"]) == ("invalid_arguments", "duplicate")

    @pytest.mark.req("CP-112")
    def test_key_unavailable(self, user_house, monkeypatch):
        """A profile whose key cannot be used gives key_unavailable and no proof."""

        def mint(*args, **options):
            raise KeyAccessError("gone", code="key-missing")

        profile = user_house.authority.state.profiles[0]
        monkeypatch.setattr(profile, "mint", mint)
        with user_house.agent_wire() as agent:
            assert agent.reason("callProof/issue", issue_params()) == (-33007, "key_unavailable")

    @pytest.mark.req("CP-112")
    def test_policy_error(self, user_house, monkeypatch):
        """Whatever the policy engine raises, the call is denied and the journal says policy_error."""

        def decide(call):
            raise RuntimeError("secret text")

        in_force = user_house.authority.state.in_force
        monkeypatch.setattr(in_force.policy, "decide", decide)
        with user_house.agent_wire() as agent:
            assert agent.reason("callProof/issue", issue_params()) == (-33001, "denied")
        record = user_house.records("issue.denied")[0].data
        assert record["detail"] == "policy_error"
        assert "secret text" not in str(record)

    def test_slow_policy_is_counted(self, user_house, monkeypatch):
        """A policy decision that takes over 100 ms is counted for the operator."""
        state = user_house.authority.state
        ticks = iter(range(0, 10**12, 60_000_000))
        monkeypatch.setattr(state, "ticks_ns", lambda: next(ticks))
        with user_house.agent_wire() as agent:
            user_house.proof(agent)
        assert "policy_slow" not in state.metrics.counters
        ticks = iter(range(0, 10**12, 120_000_000))
        with user_house.agent_wire() as agent:
            user_house.proof(agent, "repo/other")
        assert state.metrics.counters["policy_slow"] == 1

    @pytest.mark.req("CP-112")
    def test_policy_unavailable(self, new_house):
        """Without a policy hello says not_ready and issue answers policy_unavailable."""
        house = new_house()
        house.bundle_file.unlink()
        house.start()
        with house.agent_wire() as agent:
            assert agent.result("callProof/hello")["status"] == "not_ready"
            assert agent.reason("callProof/issue", issue_params()) == (-33007, "policy_unavailable")
        with house.server_wire() as server:
            params = {"actionDigest": README, "server": "filesystem", "evidence": None}
            assert server.reason("callProof/verify", params) == (-33007, "policy_unavailable")
        assert house.records("policy.refused")[0].data["detail"] in {"policy-missing", "path-missing"}

    def test_one_digest_function(self, user_house, monkeypatch):
        """The authority uses the shared digest function: patching it changes what it issues."""
        monkeypatch.setattr(
            onrecord.authorize.digest, "action_digest", lambda *_: ActionDigest.of(b"patched")
        )
        assert issue_module.digest is onrecord.authorize.digest
        with user_house.agent_wire() as agent:
            assert user_house.proof(agent)["actionDigest"] == ActionDigest.of(b"patched")


class TestVerifyReasons:
    """One test for each reason of call-proof.md 5.4."""

    def verify(self, house, wire, issued, **more) -> str | None:
        result = wire.result("callProof/verify", house.verify_params(issued, **more))
        return result.get("reason")

    @pytest.mark.req("CP-114", "CP-125")
    @pytest.mark.parametrize(
        ("evidence", "reason"),
        [
            (None, "missing"),
            ("text", "malformed"),
            ([], "malformed"),
            ({}, "malformed"),
            ({"type": "", "value": "AAAA"}, "malformed"),
            ({"type": 7, "value": "AAAA"}, "malformed"),
            ({"type": "com.example/token", "value": "x"}, "unknown_type"),
            ({"type": "com.example/token", "value": 7}, "unknown_type"),
            ({"type": "dev.onrecord/HANDLE", "value": "AAAA"}, "unknown_type"),
            ({"type": "dev.onrecord/jws", "value": "AAAA"}, "unknown_type"),
            ({"type": "dev.onrecord/handle"}, "malformed"),
            ({"type": "dev.onrecord/handle", "value": ""}, "malformed"),
            ({"type": "dev.onrecord/handle", "value": None}, "malformed"),
            ({"type": "dev.onrecord/handle", "value": "A" * 26}, "malformed"),
            ({"type": "dev.onrecord/handle", "value": "A" * 5000}, "malformed"),
            ({"type": "dev.onrecord/handle", "value": "A" * 26 + "\u00e9"}, "malformed"),
            ({"type": "dev.onrecord/handle", "value": "A" * 26 + "\n"}, "malformed"),
        ],
    )
    def test_evidence_forms(self, user_house, evidence, reason):
        """Evidence that is no proof at all is named for what it is; extra members are ignored."""
        if isinstance(evidence, dict) and evidence:
            evidence = evidence | {"more": 1}
        params = {"actionDigest": README, "server": "filesystem", "evidence": evidence}
        with user_house.server_wire() as server:
            result = server.result("callProof/verify", params)
        assert (result["valid"], result["reason"]) == (False, reason)
        assert user_house.records("verify.invalid")[-1].data["reason"] == reason

    @pytest.mark.req("CP-114")
    @pytest.mark.parametrize(
        ("change", "detail"),
        [
            ({"actionDigest": README + "="}, "actionDigest"),
            ({"actionDigest": README[:-1]}, "actionDigest"),
            ({"actionDigest": README[:-1] + "N"}, "actionDigest"),
            ({"actionDigest": None}, "actionDigest"),
            ({"inputDigest": "short"}, "inputDigest"),
            ({"inputDigest": None}, "inputDigest"),
            ({"peerUid": "1"}, "peerUid"),
            ({"peerUid": -1}, "peerUid"),
            ({"peerUid": True}, "peerUid"),
            ({"name": 7}, "name"),
        ],
    )
    def test_parameters(self, user_house, change, detail):
        """Parameters of the wrong form are protocol faults, and the proof stays unspent."""
        with user_house.agent_wire() as agent, user_house.server_wire() as server:
            issued = user_house.proof(agent)
            error = server.error("callProof/verify", user_house.verify_params(issued) | change)
            assert (error["code"], error["data"]) == (-32602, {"reason": "invalid_params", "detail": detail})
            assert self.verify(user_house, server, issued) is None

    def test_evidence_is_required(self, user_house):
        """Leaving evidence out is a fault; only null reports a call without proof."""
        with user_house.server_wire() as server:
            error = server.error("callProof/verify", {"actionDigest": README, "server": "filesystem"})
        assert error["data"] == {"reason": "invalid_params", "detail": "evidence"}

    @pytest.mark.req("CP-017", "CP-114")
    def test_mismatch(self, house):
        """Another digest, and a proof for another server, do not fit; nothing is consumed by that."""
        with (
            house.agent_wire() as agent,
            house.server_wire() as server,
            house.server_wire("archive") as archive,
        ):
            issued = house.proof(agent)
            assert self.verify(house, server, issued, actionDigest=OTHER_DIGEST) == "mismatch"
            assert self.verify(house, archive, issued, server="archive") == "mismatch"
            assert self.verify(house, server, issued) is None

    @pytest.mark.req("CP-126", "CP-115")
    def test_input_digest(self, house):
        """A proof of one round does not fit another: the inputs are equal on both sides or it is a mismatch."""
        inputs = {"inputResponses": {"sure": {"action": "accept"}}, "requestState": "st"}
        digest = str(onrecord.authorize.digest.input_digest(inputs))
        with house.agent_wire() as agent, house.server_wire() as server:
            plain, bound = house.proof(agent), house.proof(agent, **inputs)
            assert plain["actionDigest"] == bound["actionDigest"]
            assert self.verify(house, server, plain, inputDigest=digest) == "mismatch"
            assert self.verify(house, server, bound) == "mismatch"
            assert self.verify(house, server, bound, inputDigest=OTHER_DIGEST) == "mismatch"
            assert self.verify(house, server, bound, inputDigest=digest) is None
            assert self.verify(house, server, bound, inputDigest=digest) == "replayed"
        granted = house.records("issue.granted")
        assert "inputs" not in granted[0].data
        assert granted[1].data["inputs"] is True

    def test_disclose_caller(self, new_house):
        """The caller's id is told to a server only if the bundle allows it."""
        house = new_house()

        def disclose(bundle):
            bundle["servers"][0]["discloseCaller"] = True

        house.change = disclose
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.server_wire() as server:
            result = server.result("callProof/verify", house.verify_params(house.proof(agent)))
        assert result["caller"] == "code-review"

    def test_call_without_id(self, user_house):
        """The relay's report of a call that came as a notification has its own record type."""
        params = {"actionDigest": README, "server": "filesystem", "evidence": None, "withoutId": True}
        with user_house.server_wire() as server:
            assert server.result("callProof/verify", params)["reason"] == "missing"
        assert user_house.records("call.without_id")[0].data["actionDigest"] == README

    def test_long_name_is_cut(self, user_house):
        """A name that an agent made too long does not keep the report from arriving."""
        params = {"actionDigest": README, "server": "filesystem", "evidence": None, "name": "x" * 5000}
        with user_house.server_wire() as server:
            assert server.result("callProof/verify", params)["reason"] == "missing"
        assert len(user_house.records("verify.invalid")[0].data["name"]) == 256

    @pytest.mark.req("CP-127", "CP-121")
    def test_proof_reference(self, user_house):
        """Records name a proof by the hash of its value, never by the value."""
        with user_house.agent_wire() as agent, user_house.server_wire() as server:
            issued = user_house.proof(agent)
            self.verify(user_house, server, issued)
        value = issued["evidence"]["value"]
        for record in user_house.records("issue.granted", "verify.valid"):
            assert record.data["proofRef"] == ProofRef.of(value.encode())
            assert value not in str(record)


class TestSingleUse:
    @pytest.mark.req("CP-060", "CP-115")
    def test_hundred_at_once(self, house):
        """Of 100 concurrent presentations of one proof over ten connections exactly one is valid."""
        with house.agent_wire() as agent:
            issued = house.proof(agent)
        wires = [house.server_wire() for _ in range(10)]
        reasons: list[str | None] = []

        def present(wire: Wire) -> None:
            for _ in range(10):
                wire.send("callProof/verify", house.verify_params(issued))
            reasons.extend(wire.line()["result"].get("reason") for _ in range(10))

        threads = [threading.Thread(target=present, args=(wire,)) for wire in wires]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for wire in wires:
            wire.close()
        assert reasons.count(None) == 1
        assert reasons.count("replayed") == 99
        assert len(house.records("verify.valid")) == 1

    def test_nothing_but_valid_consumes(self, house):
        """A proof that was presented wrongly any number of times is still good for its own call."""
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            for _ in range(5):
                server.result("callProof/verify", house.verify_params(issued, actionDigest=OTHER_DIGEST))
            result = server.result("callProof/verify", house.verify_params(issued))
            assert result["valid"] is True


class TestTools:
    def issue_reason(self, house) -> str | None:
        with house.agent_wire() as agent:
            answer = agent.call("callProof/issue", issue_params())
        return None if "result" in answer else answer["error"]["data"]["reason"]

    def test_pin(self, user_house):
        """Another hash voids the binding and revokes outstanding proofs; the pinned hash makes it count again."""
        house = user_house
        with house.agent_wire() as agent, house.server_wire() as server:
            before = house.proof(agent)
            house.report(pin=OTHER_PIN)
            assert server.result("callProof/verify", house.verify_params(before))["reason"] == "revoked"
            assert self.issue_reason(house) == "denied"
            assert house.records("issue.denied")[0].data["detail"] == "unknown_tool"
            house.report()
            assert self.issue_reason(house) is None
            assert server.result("callProof/verify", house.verify_params(before))["reason"] == "revoked"
        assert house.records("tools.changed")[2].data["changed"] == [
            "get_pull_request",
            "post_comment",
            "read_file",
        ]

    def test_same_report_revokes_nothing(self, user_house):
        """A guard that reconnects and reports the same list again changes nothing."""
        with user_house.agent_wire() as agent, user_house.server_wire() as server:
            issued = user_house.proof(agent)
            user_house.report()
            assert server.result("callProof/verify", user_house.verify_params(issued))["valid"] is True
        assert len(user_house.records("tools.changed")) == 2

    def test_waits_for_the_first_report(self, new_house):
        """An issue for a server that was never reported waits; the report releases it."""
        house = new_house().start()
        with house.agent_wire() as agent, house.server_wire() as server:
            agent.send("callProof/issue", issue_params())
            agent.send("callProof/hello", id_="after")
            assert agent.line()["id"] == "after"
            tools = [{"name": "read_file", "inputSchemaSha256": house_pin()}]
            server.result("callProof/tools", {"server": "filesystem", "tools": tools})
            assert agent.line()["result"]["actionDigest"] == README

    def test_without_report_unknown(self, new_house, monkeypatch):
        """Without any report the tool is unknown once the wait is over."""
        monkeypatch.setattr(issue_module, "TOOLS_WAIT_MS", 10)
        house = new_house().start()
        with house.agent_wire() as agent:
            assert agent.reason("callProof/issue", issue_params()) == (-33001, "denied")
        assert house.records("issue.denied")[0].data["detail"] == "unknown_tool"

    @pytest.mark.parametrize(
        "tools",
        [
            None,
            {},
            [{"name": "a"}],
            [{"inputSchemaSha256": "sha-256:oseZJio848Ge9c3Zg789ErQ6s8QmInCRuQnctwVHOMA"}],
            [{"name": "a", "inputSchemaSha256": "oseZJio848Ge9c3Zg789ErQ6s8QmInCRuQnctwVHOMA"}],
            [{"name": "a", "inputSchemaSha256": "sha-256:oseZJio848Ge9c3Zg789ErQ6s8QmInCRuQnctwVHOMA"}] * 2,
            ["a"],
            [{"name": f"t{n}", "inputSchemaSha256": "sha-256:" + "A" * 43} for n in range(4097)],
        ],
    )
    def test_bad_reports(self, user_house, tools):
        """A name twice, a missing member or too long a list is refused, and the list before stays."""
        with user_house.server_wire() as server:
            params = {"server": "filesystem", "tools": tools}
            assert server.reason("callProof/tools", params) == (-32602, "invalid_params")
        assert self.issue_reason(user_house) is None


def house_pin() -> str:
    from authorize.authority.house import PIN

    return PIN


class TestOperations:
    def test_continues(self, user_house):
        """The authority's own operationId continues the operation for the same call of the same session."""
        with user_house.agent_wire() as agent:
            first = user_house.proof(agent, recordSession="s1")
            again = user_house.proof(agent, recordSession="s1", operationId=first["operationId"])
            assert again["operationId"] == first["operationId"]
            for other in (
                {"recordSession": "s2"},
                {"recordSession": "s1", "arguments": {"path": "repo/other"}},
                {"recordSession": "s1", "server": "archive"},
            ):
                made = user_house.proof(agent, operationId=first["operationId"], **other)
                assert made["operationId"] != first["operationId"]
            mine = user_house.proof(agent, operationId="my-own")
            assert mine["operationId"] != "my-own"
        assert user_house.records("issue.granted")[-1].data["operationLabel"] == "my-own"

    def test_the_oldest_operation_is_forgotten_first(self):
        """A full memory of operations drops the one that was named first; the others still continue."""
        call = {"uid": 1, "label": "s", "server": "filesystem", "name": "read_file", "action_digest": README}
        operations = Operations(clock=ManualClock(), capacity=3)
        made = [operations.enter(None, **call)[0] for _ in range(5)]
        assert all(operations.enter(one.id, **call) == (one, True) for one in made[2:])
        assert operations.enter(made[1].id, **call)[1] is False

    def test_denied_operation_continues(self, user_house):
        """A denial carries an operationId that a later request of the same call continues."""
        with user_house.agent_wire() as agent:
            denied = agent.error("callProof/issue", issue_params("~/x", recordSession="s"))["data"]
            again = agent.error(
                "callProof/issue", issue_params("~/x", recordSession="s", operationId=denied["operationId"])
            )["data"]
        assert again["operationId"] == denied["operationId"]
        assert again["ref"] != denied["ref"]
