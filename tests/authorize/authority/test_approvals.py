"""Approvals over real sockets: asked once, decided by those whom policy names, one proof for exactly one call."""

from __future__ import annotations

import dataclasses
import json
import threading

import pytest

from authorize.authority.house import OTHER_PIN, issue_params
from authorize.authority.test_policy import reload_params
from onrecord.authorize.authority import approval_desk, approval_gate, approval_waiting
from onrecord.authorize.authority.approval_gate import designated_approvers
from onrecord.authorize.authority.recorder_feed import entry_of
from onrecord.authorize.authority.summaries import MAX_VALUE_CHARACTERS
from onrecord.authorize.policy import NeededApproval, read_bundle
from onrecord.base.dates import ManualClock
from onrecord.base.errors import StorageError

BODY = "Please add a test for the empty file."

TWO_RULES = """
@id("second-look") @approval("1") @approvers("security")
forbid(principal, action == Action::"tools/call", resource == Tool::"filesystem/post_comment")
unless { context.approvals.contains("second-look") };
"""


def comment(body: str = BODY, **more) -> dict:
    return issue_params(name="post_comment", arguments={"number": 17, "body": body}) | more


def pending(agent, **more) -> str:
    """Ask for a comment and return the id of the approval that is pending for it."""
    code, data = (error := agent.error("callProof/issue", comment(**more)))["code"], error["data"]
    assert (code, data["reason"]) == (-33002, "approval_pending"), error
    return data["approvalId"]


def decide(approver, approval_id: str, decision: str = "approve") -> dict:
    return approver.result("approval/decide", {"approvalId": approval_id, "decision": decision})


def verify(house, server, issued: dict) -> dict:
    return server.result("callProof/verify", house.verify_params(issued, name="post_comment"))


def reload(house, operator, *, key: str = "k") -> None:
    house.version += 1
    data = house.sign_bundle()
    assert operator.result("control/policy-reload", reload_params(data, key=key))["state"] == "effective"


def change_rules(text: str):
    return lambda bundle: bundle.update(policies=bundle["policies"].replace(*text))


class TestWholeWay:
    @pytest.mark.req("CP-049", "CP-052", "CP-112")
    def test_pending_approved_proof(self, house):
        """Pending, listed, approved, released by the same call, verified as approved, each step in the journal."""
        with house.agent_wire() as agent, house.approver_wire() as approver, house.server_wire() as server:
            error = agent.error("callProof/issue", comment())
            assert (error["code"], error["data"]["reason"]) == (-33002, "approval_pending")
            assert set(error["data"]) == {"reason", "approvalId", "retryAfterMs", "expiresAt", "operationId"}
            (listed,) = approver.result("approval/list")["approvals"]
            approval_id = error["data"]["approvalId"]
            assert listed["approvalId"] == approval_id
            assert listed["expiresAt"] == error["data"]["expiresAt"]
            assert decide(approver, approval_id) == {"state": "granted", "needed": 1, "granted": 1}
            assert approver.result("approval/list")["approvals"] == []
            issued = agent.result("callProof/issue", comment())
            assert issued["operationId"] == error["data"]["operationId"]
            verdict = verify(house, server, issued)
        assert (verdict["valid"], verdict["approved"]) == (True, True)
        records = house.records()[-4:]
        assert [record.type for record in records] == [
            "approval.pending",
            "approval.granted",
            "issue.granted",
            "verify.valid",
        ]
        assert {record.data["approvalId"] for record in records} == {approval_id}
        assert {record.data["actionDigest"] for record in records} == {issued["actionDigest"]}
        granted = records[1].data
        assert (granted["approver"], granted["platform"]["uid"]) == ("ada", house.approver)
        assert (granted["caller"], granted["rules"]) == ("code-review", ["comment-needs-approval"])
        assert granted.get("isolation") == ("degraded" if house.mode == "user" else None)

    @pytest.mark.req("CP-051")
    def test_what_the_approver_sees(self, house):
        """Server, tool, caller, arguments, facts, rule and the digest's start, made by the authority."""
        with house.agent_wire() as agent, house.approver_wire() as approver:
            pending(agent, summary="harmless", description="harmless")
            (listed,) = approver.result("approval/list")["approvals"]
        assert listed["summary"] == [
            "server: filesystem",
            "tool: post_comment",
            "caller: code-review",
            "number: 17",
            f'body: "{BODY}"',
            "op: send",
            "impact: 2",
            "rule: comment-needs-approval",
            f"digest: {listed['digestStart']}",
        ]
        assert (listed["needed"], listed["granted"], listed["approvedByYou"]) == (1, 0, False)
        assert listed["ageMs"] >= 0

    def test_hidden_characters(self, user_house):
        """What an agent writes to move or hide text arrives escaped, in list and in full."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            approval_id = pending(agent, body="ok\x1b[2J\u202e\u200b\nrule: none\x7f")
            (listed,) = approver.result("approval/list")["approvals"]
            full = approver.result("approval/show", {"approvalId": approval_id})["call"]
        shown = r'body: "ok\u001b[2J\u{202e}\u{200b}\nrule: none\u{7f}"'
        assert shown in listed["summary"]
        assert full.split("\n") == ["number: 17", shown]

    def test_a_long_call_in_full(self, user_house, monkeypatch):
        """The summary cuts a long value and says so; show gives all of it, page by page."""
        monkeypatch.setattr(approval_desk, "SHOWN_CHARACTERS", 1000)
        body = "x" * 2500 + "\u202eend"
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            approval_id = pending(agent, body=body)
            (listed,) = approver.result("approval/list")["approvals"]
            text, offset = "", 0
            while offset is not None:
                page = approver.result("approval/show", {"approvalId": approval_id, "offset": offset})
                text, offset = text + page["call"], page.get("next")
        cut = next(line for line in listed["summary"] if line.startswith("body: "))
        assert "sha-256" in cut
        assert len(cut) < MAX_VALUE_CHARACTERS + 80
        assert text == 'number: 17\nbody: "' + "x" * 2500 + '\\u{202e}end"'

    def test_many_pending_come_in_pages(self, new_house, monkeypatch):
        """A list that would not fit into a line comes in pages, nothing twice and nothing left out."""
        monkeypatch.setattr(approval_desk, "LIST_BYTES", 1500)
        house = new_house()
        house.limits |= {"pendingApprovalsPerCaller": 100, "approvalRequestsPerApproverMinute": 100}
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire() as approver:
            asked = [pending(agent, body=f"text {number}") for number in range(12)]
            found, after, pages = [], 0, 0
            while after is not None:
                page = approver.result("approval/list", {"after": after})
                found += [one["approvalId"] for one in page["approvals"]]
                after, pages = page.get("next"), pages + 1
        assert found == asked
        assert pages > 2

    def test_no_argument_in_the_journal(self, user_house):
        """Arguments of a pending call are in memory until the decision, and never in the journal."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            approval_id = pending(agent, body="ARGUMENT-CANARY")
            book = user_house.authority.state.approvals
            assert b"ARGUMENT-CANARY" in book.get(approval_id).call
            assert book.held_bytes > 0
            assert "ARGUMENT-CANARY" not in repr(book.get(approval_id))
            decide(approver, approval_id)
            assert (book.get(approval_id).call, book.get(approval_id).summary) == (b"", ())
            assert book.held_bytes == 0
            agent.result("callProof/issue", comment("ARGUMENT-CANARY"))
        assert "ARGUMENT-CANARY" not in str([record.data for record in user_house.records()])
        for file in (user_house.root / "state").rglob("*"):
            if file.is_file():
                assert b"ARGUMENT-CANARY" not in file.read_bytes()


class TestOneCall:
    @pytest.mark.req("CP-049", "CP-052")
    def test_another_call_needs_its_own(self, user_house):
        """Approval of digest A never releases digest B, nor the same arguments at another server or tool."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            first = pending(agent)
            decide(approver, first)
            second = pending(agent, body=BODY + "!")
            assert second != first
            assert agent.reason("callProof/issue", comment(server="archive")) == (-33001, "denied")
            assert "evidence" in agent.result("callProof/issue", comment())
            assert pending(agent, body=BODY + "!") == second

    def test_other_inputs_need_their_own(self, user_house):
        """The inputs of a later round are part of what is approved, and the approver sees them."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            first = pending(agent)
            decide(approver, first)
            inputs = {"inputResponses": {"sure": {"action": "accept"}}, "requestState": "st"}
            operation = agent.error("callProof/issue", comment(**inputs))["data"]
            second = operation["approvalId"]
            assert second != first
            assert pending(agent, **(inputs | {"requestState": "other"})) not in (first, second)
            listed = next(
                one for one in approver.result("approval/list")["approvals"] if one["approvalId"] == second
            )
            assert 'input sure: {"action":"accept"}' in listed["summary"]
            assert 'input request state: "st"' in listed["summary"]
            assert "round: 2" in listed["summary"]
            full = approver.result("approval/show", {"approvalId": second})["call"].split("\n")
            assert full[2:] == ['input request state: "st"', 'input sure: {"action":"accept"}']

    def test_the_same_call_finds_it_again(self, house):
        """Repeated, re-spelled or asked from another session, the same call has one approval and one record of it."""
        with house.agent_wire() as agent, house.agent_wire() as again:
            first = pending(agent)
            again.send_bytes(
                b'{"jsonrpc":"2.0","id":9,"method":"callProof/issue","params":{"server":"filesystem","arguments":'
                b'{"body":"Please add a test for the \\u0065mpty file.","number":17},"name":"post_comment",'
                b'"method":"tools/call","recordSession":"another"}}'
            )
            assert again.line()["error"]["data"]["approvalId"] == first
            assert pending(agent) == first
        assert len(house.records("approval.pending")) == 1
        assert [record.data["reason"] for record in house.records("issue.refused")] == [
            "approval_pending"
        ] * 2

    def test_other_caller(self, system_house):
        """The approval of one caller is not found by another one with the same call."""
        house = system_house
        with house.agent_wire() as agent, house.agent_wire(house.other_agent) as other:
            with house.approver_wire() as approver:
                decide(approver, pending(agent))
                assert pending(other)
            assert "evidence" in agent.result("callProof/issue", comment())

    @pytest.mark.req("CP-049")
    def test_one_proof(self, house):
        """An approval releases one proof; the next same call asks anew."""
        with house.agent_wire() as agent, house.approver_wire() as approver, house.server_wire() as server:
            first = pending(agent)
            decide(approver, first)
            issued = agent.result("callProof/issue", comment())
            second = pending(agent)
            assert second != first
            assert verify(house, server, issued)["valid"] is True
            assert verify(house, server, issued)["reason"] == "replayed"
            assert pending(agent) == second

    def test_a_hundred_at_once(self, user_house):
        """A hundred concurrent issues of one call: one approval, and after the grant exactly one proof."""
        wires = [user_house.agent_wire() for _ in range(4)]

        def all_at_once() -> list[dict]:
            answers: list[dict] = []

            def ask(wire) -> None:
                for _ in range(25):
                    wire.send("callProof/issue", comment())
                answers.extend(wire.line() for _ in range(25))

            threads = [threading.Thread(target=ask, args=(wire,)) for wire in wires]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return answers

        with user_house.approver_wire() as approver:
            (approval_id,) = {one["error"]["data"]["approvalId"] for one in all_at_once()}
            decide(approver, approval_id)
            answers = all_at_once()
        assert len([one for one in answers if "result" in one]) == 1
        (second,) = {one["error"]["data"]["approvalId"] for one in answers if "error" in one}
        assert second != approval_id
        assert len(user_house.records("issue.granted")) == 1
        for wire in wires:
            wire.close()


class TestWaiting:
    def held(self, house, count: int) -> None:
        """Wait until so many requests are held open."""
        gate = house.authority._issuer.gate
        for _ in range(2000):
            if house.inside(lambda _: gate.waiting.count) == count:
                return
        raise AssertionError("the requests are not held open")

    @pytest.mark.req("CP-131")
    def test_held_until_approved(self, house):
        """With waitMs the issue call is held open, and the grant answers it."""
        with house.agent_wire() as agent, house.approver_wire() as approver:
            number = agent.send("callProof/issue", comment(waitMs=60_000))
            self.held(house, 1)
            (listed,) = approver.result("approval/list")["approvals"]
            decide(approver, listed["approvalId"])
            answer = agent.line()
        assert answer["id"] == number
        assert "evidence" in answer["result"]
        metrics = house.authority.state.metrics
        assert metrics.counters["issue.approval_pending"] == 0
        assert metrics.issue.summary().count == 1

    def test_other_requests_pass(self, user_house):
        """A held request does not hold up others of the same connection."""
        with user_house.agent_wire() as agent:
            agent.send("callProof/issue", comment(waitMs=60_000), id_="held")
            agent.send("callProof/issue", issue_params(), id_="other")
            assert agent.line()["id"] == "other"

    def test_time_is_up(self, user_house):
        """A wait that ends answers approval_pending; the approval stays."""
        with user_house.agent_wire() as agent:
            first = pending(agent, waitMs=1)
            assert pending(agent, waitMs=1) == first
        assert len(user_house.records("approval.pending")) == 1
        assert user_house.authority.state.metrics.counters["issue.approval_pending"] == 2

    def test_rejected_while_waiting(self, house):
        """A rejection answers every request that waits."""
        with house.agent_wire() as agent, house.agent_wire() as other, house.approver_wire() as approver:
            agent.send("callProof/issue", comment(waitMs=60_000))
            other.send("callProof/issue", comment(waitMs=60_000))
            self.held(house, 2)
            (listed,) = approver.result("approval/list")["approvals"]
            assert decide(approver, listed["approvalId"], "reject")["state"] == "rejected"
            for wire in (agent, other):
                error = wire.line()["error"]
                assert (error["code"], error["data"]["reason"]) == (-33003, "approval_rejected")
                assert error["data"]["approvalId"] == listed["approvalId"]

    def test_one_of_several_gets_the_proof(self, user_house):
        """Of several waiting requests exactly one gets the proof, the newest; nobody is asked again for the others."""
        wires = [user_house.agent_wire() for _ in range(5)]
        for count, wire in enumerate(wires, 1):
            wire.send("callProof/issue", comment(waitMs=60_000))
            self.held(user_house, count)
        with user_house.approver_wire() as approver:
            (listed,) = approver.result("approval/list")["approvals"]
            decide(approver, listed["approvalId"])
            answers = [wire.line() for wire in wires]
            assert ["result" in answer for answer in answers] == [False] * 4 + [True]
            for answer in answers[:4]:
                assert answer["error"]["data"]["reason"] == "approval_pending"
                assert answer["error"]["data"]["approvalId"] == listed["approvalId"]
            assert approver.result("approval/list")["approvals"] == []
            assert pending(wires[0]) != listed["approvalId"]
        for wire in wires:
            wire.close()

    def test_closing_does_not_cancel(self, house):
        """A connection that ends takes its request out; the approval stays and its proof goes to who asks again."""
        with house.approver_wire() as approver:
            with house.agent_wire() as agent:
                agent.send("callProof/issue", comment(waitMs=60_000))
                self.held(house, 1)
            self.held(house, 0)
            (listed,) = approver.result("approval/list")["approvals"]
            decide(approver, listed["approvalId"])
        assert house.records("issue.granted") == []
        with house.agent_wire() as agent:
            assert "evidence" in agent.result("callProof/issue", comment())

    def test_no_room(self, user_house, monkeypatch):
        """When enough requests are held open, more are answered at once; likewise when they would hold too much."""
        with user_house.agent_wire() as agent, user_house.agent_wire() as other:
            agent.send("callProof/issue", comment(waitMs=60_000))
            self.held(user_house, 1)
            monkeypatch.setattr(approval_waiting, "MAX_WAITING", 1)
            pending(other, waitMs=60_000)
            monkeypatch.setattr(approval_waiting, "MAX_WAITING", 10)
            monkeypatch.setattr(approval_waiting, "MAX_WAITING_BYTES", 10)
            pending(other, waitMs=60_000)

    def test_room_is_shared(self, system_house, monkeypatch):
        """One caller fills no more than its share of the room, in requests and in bytes; the others still wait."""
        house = system_house
        monkeypatch.setattr(approval_waiting, "MAX_WAITING", 2 * approval_waiting.CALLER_SHARE)
        with house.agent_wire() as agent, house.agent_wire(uid=house.other_agent) as other:
            for count in (1, 2):
                agent.send("callProof/issue", comment(waitMs=60_000))
                self.held(house, count)
            with house.agent_wire() as third:
                pending(third, waitMs=60_000)
            other.send("callProof/issue", comment(waitMs=60_000))
            self.held(house, 3)
            monkeypatch.setattr(approval_waiting, "MAX_WAITING", 1024)
            monkeypatch.setattr(approval_waiting, "MAX_WAITING_BYTES", 10_000)
            with house.agent_wire() as third:
                pending(third, body="x" * 2000, waitMs=60_000)

    def test_stop_while_waiting(self, user_house):
        """An authority that stops lets go of what waits."""
        with user_house.agent_wire() as agent:
            agent.send("callProof/issue", comment(waitMs=60_000))
            self.held(user_house, 1)
            user_house.stop()
            assert agent.line() is None


class TestWhoMayDecide:
    @pytest.mark.req("CP-049")
    def test_not_designated(self, new_house):
        """An approver of another group sees nothing, decides nothing, and the attempt is journaled."""
        house = new_house("system")

        def two_groups(bundle):
            bundle["groups"]["approvers"].append("others")
            bundle["approvers"][1]["groups"] = ["others"]

        house.change = two_groups
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire(house.other_approver) as ben:
            approval_id = pending(agent)
            assert ben.result("approval/list")["approvals"] == []
            for method, more in (("approval/decide", {"decision": "approve"}), ("approval/show", {}),
                                 ("approval/decide", {"decision": "reject"})):  # fmt: skip
                params = {"approvalId": approval_id, **more}
                assert ben.reason(method, params) == (-33005, "not_authorized")
            assert pending(agent) == approval_id
        refused = house.records("role.refused")[0].data
        assert (refused["approver"], refused["approvalId"]) == ("ben", approval_id)
        assert refused["platform"]["uid"] == house.other_approver

    @pytest.mark.req("CP-049")
    @pytest.mark.parametrize("who", ["agent", "server", "operator", "stranger"])
    def test_other_roles(self, system_house, who):
        """No other role, and no stranger, decides at the approval socket."""
        house = system_house
        expected = (-33004, "unknown_caller") if who == "stranger" else (-33005, "not_authorized")
        with house.agent_wire() as agent, house.approver_wire(getattr(house, who)) as wire:
            approval_id = pending(agent)
            for method in ("approval/list", "approval/show", "approval/decide"):
                params = {"approvalId": approval_id, "decision": "approve"}
                assert wire.reason(method, params) == expected
            assert pending(agent) == approval_id

    def test_other_sockets(self, house):
        """Approval methods exist on the approval socket alone, and no other method is served there."""
        with house.agent_wire() as agent, house.server_wire() as server, house.control_wire() as control:
            for wire in (agent, server, control):
                assert wire.reason("approval/list", {}) == (-33005, "not_authorized")
        with house.approver_wire() as approver:
            assert approver.reason("callProof/issue", comment()) == (-33005, "not_authorized")
            assert approver.reason("control/metrics", {}) == (-33005, "not_authorized")
            assert approver.reason("approval/challenge", {}) == (-32601, "unknown_method")
            assert approver.result("callProof/hello")["version"] == "1"

    def test_caller_as_approver(self, system_house):
        """In system mode nobody approves what he asked for: not by his uid, not by his id."""
        house = system_house
        need = NeededApproval("comment-needs-approval", 1, "reviewers")

        def who(change) -> frozenset[str]:
            document = house.bundle()
            change(document["approvers"][0])
            bundle, findings = read_bundle(json.dumps(document).encode())
            assert not findings
            return designated_approvers(bundle, need, caller="code-review", is_user_mode=False)

        assert who(lambda ada: None) == {"ada", "ben"}
        assert who(lambda ada: ada.update(uid=house.agent)) == {"ben"}
        assert who(lambda ada: ada.update(id="code-review")) == {"ben"}
        assert who(lambda ada: ada.update(uid=house.server)) == {"ben"}
        assert who(lambda ada: ada.update(uid=house.other_approver)) == set()

    def test_nobody_left_to_approve(self, new_house):
        """A rule that nobody could satisfy denies at once: nobody waits for an approval that cannot come."""
        house = new_house("system")

        def caller_approves(bundle):
            bundle["approvers"] = [bundle["approvers"][0] | {"id": "code-review"}]
            bundle["userMode"]["approver"] = "code-review"

        house.change = caller_approves
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent:
            assert agent.reason("callProof/issue", comment()) == (-33001, "denied")
        assert house.records("issue.denied")[0].data["detail"] == "approvers_too_few"

    @pytest.mark.req("CP-049")
    def test_two_needed(self, new_house):
        """@approval("2") needs two different people; one who approves twice counts once."""
        house = new_house("system")
        house.change = change_rules(('@approval("1")', '@approval("2")'))
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire() as ada:
            approval_id = pending(agent)
            for _ in range(2):
                assert decide(ada, approval_id) == {"state": "pending", "needed": 2, "granted": 1}
                assert pending(agent) == approval_id
            with house.approver_wire() as ada_again:
                assert decide(ada_again, approval_id)["state"] == "pending"
                assert ada_again.result("approval/list")["approvals"][0]["approvedByYou"] is True
            with house.approver_wire(house.other_approver) as ben:
                assert decide(ben, approval_id) == {"state": "granted", "needed": 2, "granted": 2}
            assert "evidence" in agent.result("callProof/issue", comment())
        granted = house.records("approval.granted")
        assert [(one.data["approver"], one.data["count"]) for one in granted] == [("ada", 1), ("ben", 2)]

    def test_two_needed_and_one_rejects(self, new_house):
        """One rejection of any of them ends it, also after an approval."""
        house = new_house("system")
        house.change = change_rules(('@approval("1")', '@approval("2")'))
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire() as ada:
            approval_id = pending(agent)
            decide(ada, approval_id)
            with house.approver_wire(house.other_approver) as ben:
                assert decide(ben, approval_id, "reject")["state"] == "rejected"
            error = ada.error("approval/decide", {"approvalId": approval_id, "decision": "approve"})
            assert error["data"]["reason"] == "approval_rejected"
            assert agent.reason("callProof/issue", comment()) == (-33003, "approval_rejected")

    def test_two_needed_in_user_mode(self, new_house):
        """In user mode there is one approver, so a rule that wants two denies."""
        house = new_house()
        house.change = change_rules(('@approval("1")', '@approval("2")'))
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent:
            assert agent.reason("callProof/issue", comment()) == (-33001, "denied")
        assert house.records("issue.denied")[0].data["detail"] == "approvers_too_few"

    @pytest.mark.req("CP-049")
    def test_two_rules(self, new_house):
        """Two rules need both of their groups, and a hard forbid beside them is never lifted."""
        house = new_house("system")

        def two_rules(bundle):
            bundle["policies"] += TWO_RULES
            bundle["groups"]["approvers"].append("security")
            bundle["approvers"][1]["groups"] = ["security"]

        house.change = two_rules
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire() as ada, house.control_wire() as operator:
            approval_id = pending(agent)
            (listed,) = ada.result("approval/list")["approvals"]
            assert (listed["needed"], set(listed["rules"])) == (2, {"comment-needs-approval", "second-look"})
            assert decide(ada, approval_id)["state"] == "pending"
            with house.approver_wire(house.other_approver) as ben:
                assert decide(ben, approval_id)["state"] == "granted"
            assert "evidence" in agent.result("callProof/issue", comment())

            def hard_forbid(bundle):
                two_rules(bundle)
                bundle["policies"] += (
                    '@id("never") forbid(principal, action, resource) when { context.op == "send" };'
                )

            house.change = hard_forbid
            reload(house, operator)
            assert agent.reason("callProof/issue", comment()) == (-33001, "denied")

    def test_unknown_tools_behind_approval(self, new_house):
        """The bundle may put calls with unknown facts behind an approval; a permit is needed all the same."""
        house = new_house()
        house.change = lambda bundle: bundle.update(
            unknown={"effect": "approval", "approval": 1, "approvers": "reviewers"},
            policies=bundle["policies"]
            .replace("comment-needs-approval", "other-needs-approval")
            .replace(
                'resource == Tool::"filesystem/post_comment")\nunless',
                'resource == Tool::"archive/x")\nunless',
            ),
        )
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire() as approver:
            strange = comment(arguments={"number": "17", "body": "x", "more": 1})
            error = agent.error("callProof/issue", strange)
            assert error["data"]["reason"] == "approval_pending", error
            (listed,) = approver.result("approval/list")["approvals"]
            assert listed["rules"] == ["onrecord.unknown"]
            assert [line for line in listed["summary"] if line.startswith("unknown: ")] == [
                "unknown: argument.number",
                "unknown: unlisted",
            ]
            decide(approver, listed["approvalId"])
            assert "evidence" in agent.result("callProof/issue", strange)
            nowhere = issue_params(name="never_heard_of")
            assert agent.reason("callProof/issue", nowhere) == (-33001, "denied")


class TestEnds:
    @pytest.fixture
    def clocked(self, new_house, request):
        """A house with a clock of its own, which stands still."""
        house = new_house()
        house.clock = ManualClock()
        house.start(clock=house.clock)
        house.report()
        return house

    @pytest.mark.req("CP-131")
    def test_expiry(self, clocked):
        """After 300 s nobody approves any more; approval_expired is answered once, then the call starts again."""
        with clocked.agent_wire() as agent, clocked.approver_wire() as approver:
            first = pending(agent)
            clocked.clock.advance(299.999)
            assert pending(agent) == first
            clocked.clock.advance(0.001)
            error = approver.error("approval/decide", {"approvalId": first, "decision": "approve"})
            assert (error["code"], error["data"]["reason"]) == (-33003, "approval_expired")
            assert approver.result("approval/list")["approvals"] == []
            error = agent.error("callProof/issue", comment())
            assert (error["code"], error["data"]["reason"]) == (-33003, "approval_expired")
            assert error["data"]["approvalId"] == first
            assert pending(agent) != first
        (expired,) = clocked.records("approval.expired")
        assert (expired.data["approvalId"], expired.data["caller"]) == (first, "code-review")
        assert clocked.records("issue.granted") == []

    def test_granted_and_not_fetched(self, clocked):
        """The 300 s hold for the whole approval: a grant that nobody fetched in time gives no proof."""
        with clocked.agent_wire() as agent, clocked.approver_wire() as approver:
            first = pending(agent)
            clocked.clock.advance(200)
            decide(approver, first)
            clocked.clock.advance(100)
            assert agent.reason("callProof/issue", comment()) == (-33003, "approval_expired")
            assert pending(agent) != first

    def test_wall_clock(self, clocked):
        """A step of the wall clock changes nothing."""
        with clocked.agent_wire() as agent, clocked.approver_wire() as approver:
            first = pending(agent)
            clocked.clock.step_wall(86_400)
            decide(approver, first)
            assert "evidence" in agent.result("callProof/issue", comment())

    @pytest.mark.req("CP-118")
    def test_window_starts_at_issue(self, clocked):
        """The proof's window starts when it is issued, after the approval."""
        with clocked.agent_wire() as agent, clocked.approver_wire() as approver:
            decide(approver, pending(agent))
            clocked.clock.advance(250)
            issued = agent.result("callProof/issue", comment())
            clocked.clock.advance(14)
        with clocked.server_wire() as server:
            assert verify(clocked, server, issued)["valid"] is True

    def test_all_waiters_learn_of_the_expiry(self, clocked):
        """Requests that wait when it expires are all told so, and start no new approval."""
        wires = [clocked.agent_wire() for _ in range(3)]
        for count, wire in enumerate(wires, 1):
            wire.send("callProof/issue", comment(waitMs=60_000))
            TestWaiting().held(clocked, count)
        clocked.clock.advance(300)
        clocked.inside(lambda authority: authority._issuer.gate.ends.sweep())
        assert {wire.line()["error"]["data"]["reason"] for wire in wires} == {"approval_expired"}
        assert len(clocked.records("approval.pending")) == 1
        for wire in wires:
            wire.close()

    def test_the_timer_ends_it(self, new_house):
        """Without any further request an approval ends when its time has come."""
        house = new_house()
        house.limits["approvalSeconds"] = 1
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent:
            agent.send("callProof/issue", comment(waitMs=60_000))
            assert agent.line()["error"]["data"]["reason"] == "approval_expired"

    def test_rejection_holds(self, clocked):
        """A rejection answers the same call for 300 s; then it may be asked again."""
        with clocked.agent_wire() as agent, clocked.approver_wire() as approver:
            first = pending(agent)
            clocked.clock.advance(100)
            decide(approver, first, "reject")
            for seconds in (0, 299):
                clocked.clock.advance(seconds)
                error = agent.error("callProof/issue", comment())
                assert (error["code"], error["data"]["reason"]) == (-33003, "approval_rejected")
                assert error["data"]["approvalId"] == first
            clocked.clock.advance(1)
            assert pending(agent) != first
        (rejected,) = clocked.records("approval.rejected")
        assert (rejected.data["approver"], rejected.data["approvalId"]) == ("ada", first)

    @pytest.mark.req("CP-119")
    def test_reload_voids(self, house):
        """A new policy version voids what is pending and what is granted; both start again."""
        with house.agent_wire() as agent, house.approver_wire() as approver, house.control_wire() as operator:
            first, second = pending(agent), pending(agent, body="other")
            decide(approver, second)
            reload(house, operator)
            for approval_id in (first, second):
                params = {"approvalId": approval_id, "decision": "approve"}
                error = approver.error("approval/decide", params)
                assert (error["data"]["reason"], error["data"]["detail"]) == (
                    "approval_expired",
                    "policy_changed",
                )
            assert {pending(agent), pending(agent, body="other")}.isdisjoint({first, second})
        ended = house.records("approval.expired")
        assert [(one.data["approvalId"], one.data["detail"]) for one in ended] == [
            (first, "policy_changed"),
            (second, "policy_changed"),
        ]

    def test_reload_revokes_a_released_proof(self, house):
        """A proof that an approval released is revoked by a new policy version."""
        with house.agent_wire() as agent, house.approver_wire() as approver, house.control_wire() as operator:
            decide(approver, pending(agent))
            issued = agent.result("callProof/issue", comment())
            reload(house, operator)
            with house.server_wire() as server:
                assert verify(house, server, issued)["reason"] == "revoked"

    @pytest.mark.parametrize("new", ["permits", "forbids", "asks"])
    def test_reload_while_waiting(self, user_house, new):
        """A request that waits is decided by the new policy: allowed, denied, or asked anew."""
        change = {
            "permits": ('@approval("1")\n@approvers("reviewers")\nforbid', "permit"),
            "forbids": ('@id("comment-possible")\npermit', '@id("comment-possible")\nforbid'),
            "asks": ("never", "never"),
        }[new]
        strip = (
            ('unless { context.approvals.contains("comment-needs-approval") }', "")
            if new == "permits"
            else None
        )

        def edit(bundle):
            bundle["policies"] = bundle["policies"].replace(*change)
            if strip:
                bundle["policies"] = bundle["policies"].replace(*strip)

        with user_house.agent_wire() as agent, user_house.control_wire() as operator:
            agent.send("callProof/issue", comment(waitMs=60_000))
            TestWaiting().held(user_house, 1)
            user_house.change = edit
            reload(user_house, operator)
            if new == "asks":
                with user_house.approver_wire() as approver:
                    TestWaiting().held(user_house, 1)
                    (listed,) = approver.result("approval/list")["approvals"]
                    decide(approver, listed["approvalId"])
                assert "result" in agent.line()
            elif new == "permits":
                assert "result" in agent.line()
            else:
                assert agent.line()["error"]["data"]["reason"] == "denied"

    def test_changed_tool_voids(self, user_house):
        """A tool with another schema is another tool: what was asked of it is void, and nobody can approve it."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            first, second = pending(agent), pending(agent, body="other")
            decide(approver, second)
            user_house.report(pin=OTHER_PIN)
            user_house.report()
            assert approver.result("approval/list")["approvals"] == []
            error = approver.error("approval/decide", {"approvalId": first, "decision": "approve"})
            assert error["data"]["detail"] == "tool_changed"
            assert pending(agent, body="other") not in (first, second)

    def test_another_tool_changes_nothing(self, user_house):
        """A change of another tool of the same server leaves an approval as it is."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            first = pending(agent)
            user_house.report(names=("get_pull_request", "post_comment"))
            decide(approver, first)
            assert "evidence" in agent.result("callProof/issue", comment())

    def test_restart_voids(self, user_house):
        """A restart forgets every approval: nothing that was asked or granted before counts."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            first, second = pending(agent), pending(agent, body="other")
            decide(approver, second)
        user_house.stop()
        user_house.start()
        user_house.report()
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            assert pending(agent, body="other") != second
            error = approver.error("approval/decide", {"approvalId": first, "decision": "approve"})
            assert (error["code"], error["data"]["detail"]) == (-32602, "unknown_approval")

    def test_taken_back_before_the_call(self, house):
        """A grant may be taken back until the call has run: the proof is revoked, and the same call is rejected."""
        with house.agent_wire() as agent, house.approver_wire() as approver, house.server_wire() as server:
            first = pending(agent)
            decide(approver, first)
            issued = agent.result("callProof/issue", comment())
            assert decide(approver, first, "reject")["state"] == "rejected"
            assert verify(house, server, issued)["reason"] == "revoked"
            assert agent.reason("callProof/issue", comment()) == (-33003, "approval_rejected")
        assert house.records("approval.rejected")[0].data["detail"] == "withdrawn"

    def test_taken_back_before_the_proof(self, user_house):
        """A grant that was taken back before anybody fetched it gives no proof."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            first = pending(agent)
            decide(approver, first)
            decide(approver, first, "reject")
            assert agent.reason("callProof/issue", comment()) == (-33003, "approval_rejected")

    def test_too_late_to_take_back(self, house):
        """After the call has run nothing can be taken back, and the approver is told so."""
        with house.agent_wire() as agent, house.approver_wire() as approver, house.server_wire() as server:
            first = pending(agent)
            decide(approver, first)
            assert verify(house, server, agent.result("callProof/issue", comment()))["valid"] is True
            error = approver.error("approval/decide", {"approvalId": first, "decision": "reject"})
            assert (error["code"], error["data"]["detail"]) == (-32602, "already_executed")
            assert decide(approver, first)["state"] == "granted"
            assert pending(agent) != first


class TestLimits:
    @pytest.mark.req("CP-112")
    def test_pending_per_caller(self, new_house):
        """A caller has at most five pending approvals; a decision makes room."""
        house = new_house()
        house.limits["approvalRequestsPerApproverMinute"] = 100
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire() as approver:
            asked = [pending(agent, body=f"{number}") for number in range(5)]
            error = agent.error("callProof/issue", comment("one more"))
            assert (error["code"], error["data"]["reason"]) == (-33008, "rate_limited")
            assert error["data"]["detail"] == "pending_approvals"
            assert error["data"]["retryAfterMs"] > 0
            assert pending(agent, body="4") == asked[4]
            decide(approver, asked[0], "reject")
            pending(agent, body="one more")

    @pytest.mark.req("CP-112")
    def test_requests_per_approver(self, new_house):
        """An approver gets at most six new requests in a minute, whoever asks."""
        house = new_house()
        house.limits["pendingApprovalsPerCaller"] = 100
        house.sign_bundle()
        clock = ManualClock()
        house.start(clock=clock)
        house.report()
        with house.agent_wire() as agent:
            for number in range(6):
                pending(agent, body=f"{number}")
                clock.advance(1)
            error = agent.error("callProof/issue", comment("one more"))
            assert (error["data"]["reason"], error["data"]["detail"]) == ("rate_limited", "approval_requests")
            assert error["data"]["retryAfterMs"] == 54_000
            clock.advance(54)
            pending(agent, body="one more")
            assert agent.error("callProof/issue", comment("and more"))["data"]["retryAfterMs"] == 1000

    def test_no_agent_takes_all_requests(self, new_house):
        """An agent whose requests are decided at once, and that asks again each time, leaves one for another agent."""
        house = new_house("system")
        house.start(clock=ManualClock())
        house.report()
        with (
            house.agent_wire() as agent,
            house.agent_wire(uid=house.other_agent) as other,
            house.approver_wire() as approver,
        ):
            for number in range(5):
                decide(approver, pending(agent, body=f"{number}"), "reject")
            error = agent.error("callProof/issue", comment("one more"))
            assert (error["data"]["reason"], error["data"]["detail"]) == ("rate_limited", "approval_requests")
            pending(other)

    def test_memory(self, user_house, monkeypatch):
        """Pending approvals together hold no more than so many bytes of arguments."""
        monkeypatch.setattr(approval_gate, "MAX_HELD_BYTES", 1000)
        with user_house.agent_wire() as agent:
            pending(agent, body="x" * 600)
            error = agent.error("callProof/issue", comment("y" * 600))
            assert error["data"]["detail"] == "approvals_full"
            pending(agent, body="short")

    def test_no_person_is_asked_in_vain(self, user_house):
        """A request that accepts no evidence type of ours bothers nobody, before and after a grant."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            other = comment(evidenceTypes=["example.com/other"])
            assert agent.reason("callProof/issue", other) == (-33006, "unsupported_type")
            assert approver.result("approval/list")["approvals"] == []
            decide(approver, pending(agent))
            assert agent.reason("callProof/issue", other) == (-33006, "unsupported_type")
            assert "evidence" in agent.result("callProof/issue", comment())

    def test_refused_grant_keeps_the_approval(self, new_house):
        """A proof that cannot be issued now leaves the approval granted."""
        house = new_house()
        house.limits["outstandingProofsPerCaller"] = 1
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent, house.approver_wire() as approver, house.server_wire() as server:
            decide(approver, pending(agent))
            held = house.proof(agent)
            assert agent.reason("callProof/issue", comment()) == (-33008, "rate_limited")
            server.result("callProof/verify", house.verify_params(held))
            assert "evidence" in agent.result("callProof/issue", comment())

    @pytest.mark.req("CP-052")
    @pytest.mark.parametrize("found", ["deny", "approval", "error"])
    def test_asked_again_at_release(self, house, monkeypatch, found):
        """Policy is asked again with what people have granted, and nothing but Allow gives a proof."""
        with house.agent_wire() as agent, house.approver_wire() as approver:
            decide(approver, pending(agent))
            policy = house.authority.state.in_force.policy
            really, granted = policy.decide, []

            def changed(call):
                if not call.approvals:
                    return really(call)
                granted.append(call.approvals)
                if found == "error":
                    raise RuntimeError("secret text")
                return dataclasses.replace(really(call), effect=found)

            with monkeypatch.context() as patch:
                patch.setattr(policy, "decide", changed)
                assert agent.reason("callProof/issue", comment()) == (-33001, "denied")
            assert granted == [frozenset({"comment-needs-approval"})]
            assert house.records("issue.granted") == []
            assert "evidence" in agent.result("callProof/issue", comment())

    def test_full_journal(self, house, monkeypatch):
        """What cannot be journaled does not happen: no approval is opened, none is granted, no proof is released."""
        with house.agent_wire() as agent, house.approver_wire() as approver:
            journal = house.authority.state.audit.journal

            def fail(*args, **options):
                raise StorageError("disk full", code="audit-unavailable")

            def without_journal(call) -> None:
                with monkeypatch.context() as patch:
                    patch.setattr(journal, "append", fail)
                    assert call() == (-33007, "audit_unavailable")

            without_journal(lambda: agent.reason("callProof/issue", comment(waitMs=60_000)))
            assert approver.result("approval/list")["approvals"] == []
            params = {"approvalId": pending(agent), "decision": "approve"}
            without_journal(lambda: approver.reason("approval/decide", params))
            assert approver.result("approval/list")["approvals"][0]["granted"] == 0
            without_journal(lambda: approver.reason("approval/decide", params | {"decision": "reject"}))
            decide(approver, params["approvalId"])
            without_journal(lambda: agent.reason("callProof/issue", comment()))
            assert "evidence" in agent.result("callProof/issue", comment())

    def test_an_end_is_journaled_later(self, new_house, monkeypatch):
        """An approval expires also while the journal is full, and its record is written when that works again."""
        house = new_house()
        clock = ManualClock()
        house.start(clock=clock)
        house.report()
        with house.agent_wire() as agent:
            first = pending(agent)
            clock.advance(300)
            ends = house.authority._issuer.gate.ends
            with monkeypatch.context() as patch:
                patch.setattr(
                    house.authority.state.audit.journal,
                    "append",
                    lambda *args, **more: (_ for _ in ()).throw(
                        StorageError("full", code="audit-unavailable")
                    ),
                )
                house.inside(lambda _: ends.sweep())
                assert agent.reason("callProof/issue", comment()) == (-33007, "audit_unavailable")
            house.inside(lambda _: ends.sweep())
        assert [one.data["approvalId"] for one in house.records("approval.expired")] == [first]

    @pytest.mark.parametrize(
        ("method", "params", "detail"),
        [
            ("approval/decide", {}, "approvalId"),
            ("approval/decide", {"approvalId": 7, "decision": "approve"}, "approvalId"),
            ("approval/decide", {"approvalId": "../x", "decision": "approve"}, "approvalId"),
            ("approval/decide", {"approvalId": "nobody", "decision": "approve"}, "unknown_approval"),
            ("approval/decide", {"approvalId": "ID"}, "decision"),
            ("approval/decide", {"approvalId": "ID", "decision": "APPROVE"}, "decision"),
            ("approval/decide", {"approvalId": "ID", "decision": True}, "decision"),
            ("approval/show", {}, "approvalId"),
            ("approval/show", {"approvalId": "ID", "offset": -1}, "offset"),
            ("approval/show", {"approvalId": "ID", "offset": "0"}, "offset"),
            ("approval/list", {"after": -1}, "after"),
            ("approval/list", {"after": True}, "after"),
        ],
    )
    def test_bad_parameters(self, user_house, method, params, detail):
        """Each bad parameter is named, and decides nothing."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            approval_id = pending(agent)
            asked = {name: approval_id if value == "ID" else value for name, value in params.items()}
            error = approver.error(method, asked)
            assert (error["code"], error["data"]["detail"]) == (-32602, detail)
            assert pending(agent) == approval_id


class TestForOthers:
    def test_recorder_entries(self, house):
        """permission-required once per approval; the proof of the same session adds no decision."""
        with house.agent_wire() as agent, house.approver_wire() as approver:
            for _ in range(2):
                approval_id = pending(agent, recordSession="one")
            decide(approver, approval_id)
            issued = agent.result("callProof/issue", comment(recordSession="one"))
        records = [one for one in house.records() if "entry" in one.data]
        entries = [
            entry_of(one.data["entry"], one.type, one.data, time=one.time, mono_ns=1) for one in records
        ]
        asked, proof = entries
        assert (asked["kind"], asked["decision"], asked["approvalId"]) == (
            "decision",
            "permission-required",
            approval_id,
        )
        assert "proofRef" not in asked
        assert (proof["kind"], proof["approvalId"], proof["operationId"]) == (
            "proof",
            approval_id,
            asked["operationId"],
        )
        assert proof["operationId"] == issued["operationId"]
        assert "decision" not in proof

    def test_recorder_entries_of_another_session(self, house):
        """Another session that fetches the proof has no decision yet, so it gets one: allowed, by this approval."""
        with house.agent_wire() as agent, house.approver_wire() as approver:
            decide(approver, pending(agent, recordSession="one"))
            issued = agent.result("callProof/issue", comment(recordSession="two"))
        record = house.records("issue.granted")[0]
        entry = entry_of(1, record.type, record.data, time=record.time, mono_ns=1)
        assert (entry["kind"], entry["decision"], entry["session"]["label"]) == ("decision", "allowed", "two")
        assert entry["operationId"] == issued["operationId"]
        assert entry["operationId"] != house.records("approval.pending")[0].data["operationId"]

    def test_a_float_is_another_reading(self, user_house):
        """17 and 17.0 have one digest, but policy reads them apart: an approval for one does not release the other."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            decide(approver, pending(agent))
            agent.send_bytes(
                b'{"jsonrpc":"2.0","id":9,"method":"callProof/issue","params":{"method":"tools/call","name":'
                b'"post_comment","arguments":{"number":17.0,"body":"'
                + BODY.encode()
                + b'"},"server":"filesystem"}}'
            )
            assert agent.line()["error"]["data"]["reason"] == "denied"
            assert "evidence" in agent.result("callProof/issue", comment())

    def test_counters(self, user_house):
        """control/metrics counts approvals, and says how many wait; decision-logging finds them."""
        with user_house.agent_wire() as agent, user_house.approver_wire() as approver:
            decide(approver, pending(agent, body="1"))
            decide(approver, pending(agent, body="2"), "reject")
            pending(agent, body="3")
            with user_house.control_wire() as operator:
                metrics = operator.result("control/metrics")
                page = operator.result("control/decision-logging", {"verdict": "escalate"})
        counted = {name: n for name, n in metrics["counters"].items() if name.startswith("approval.")}
        assert counted == {"approval.pending": 3, "approval.granted": 1, "approval.rejected": 1}
        assert metrics["pendingApprovals"] == 1
        assert [entry["type"] for entry in page["entries"]] == [
            "approval.pending",
            "approval.granted",
            "approval.pending",
            "approval.pending",
        ]
