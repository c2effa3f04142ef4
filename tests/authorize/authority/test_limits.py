"""Limits: rates, outstanding proofs, connections, pipelining; and clocks that jump."""

from __future__ import annotations

import pytest

from authorize.authority.house import issue_params
from onrecord.authorize.authority.limits import ConnectionCount, IssueRates
from onrecord.base.dates import ManualClock

SECOND = 1_000_000_000


class TestRates:
    def test_bucket(self):
        """A burst passes at once, then one request per interval; each caller has its own bucket."""
        rates = IssueRates()
        now = 5 * SECOND
        take = lambda caller: rates.take(caller, rate_per_second=20, burst=40, now_ns=now)
        assert [take("a") for _ in range(40)] == [0] * 40
        assert take("a") == 50
        assert take("b") == 0
        now += SECOND // 20
        assert take("a") == 0
        assert take("a") > 0
        now += 3600 * SECOND
        assert [take("a") for _ in range(41)].count(0) == 40

    @pytest.mark.req("CP-112")
    def test_rate_limited(self, new_house):
        """Above the rate: rate_limited with the time to wait; later requests pass again."""
        house = new_house()
        house.limits = {"issuePerSecond": 1, "issueBurst": 2}
        house.sign_bundle()
        clock = ManualClock()
        house.start(clock=clock)
        house.report()
        with house.agent_wire() as agent:
            house.proof(agent)
            house.proof(agent)
            error = agent.error("callProof/issue", issue_params())
            assert (error["code"], error["data"]["reason"], error["data"]["retryAfterMs"]) == (
                -33008,
                "rate_limited",
                1000,
            )
            clock.advance(1)
            house.proof(agent)
        assert house.records("issue.refused")[0].data["reason"] == "rate_limited"

    @pytest.mark.req("CP-112")
    def test_outstanding(self, new_house):
        """A caller with too many unused proofs waits until one is used or expired."""
        house = new_house()
        house.limits = house.limits | {"outstandingProofsPerCaller": 3}
        house.sign_bundle()
        clock = ManualClock()
        house.start(clock=clock)
        house.report()
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = [house.proof(agent) for _ in range(3)]
            error = agent.error("callProof/issue", issue_params())
            assert error["data"] == {
                "reason": "rate_limited",
                "detail": "outstanding_proofs",
                "retryAfterMs": 1000,
            }
            assert server.result("callProof/verify", house.verify_params(issued[0]))["valid"] is True
            house.proof(agent)
            clock.advance(15)
            house.proof(agent)


class TestConnections:
    def test_counting(self):
        """Limits hold per uid and in all, and released connections make room."""
        count = ConnectionCount()
        assert [count.admit(1, per_uid=2, total=3) for _ in range(3)] == [True, True, False]
        assert [count.admit(2, per_uid=2, total=3) for _ in range(2)] == [True, False]
        count.release(1)
        assert count.admit(2, per_uid=2, total=3)
        assert count.total == 3

    def test_per_uid(self, new_house):
        """The connection above the limit of a uid is closed at accept; the others go on."""
        house = new_house()
        house.limits = house.limits | {"connectionsPerUid": 2}
        house.sign_bundle()
        house.start()
        with house.agent_wire() as first, house.agent_wire() as second:
            assert first.result("callProof/hello")["version"] == "1"
            assert second.result("callProof/hello")["version"] == "1"
            with house.agent_wire() as third:
                assert third.line() is None
            assert second.result("callProof/hello")["version"] == "1"

    def test_unanswered(self, new_house):
        """More requests than may be unanswered are read later, and all are answered."""
        house = new_house()
        house.limits = house.limits | {"unansweredPerConnection": 2}
        house.sign_bundle()
        house.start()
        house.report()
        with house.agent_wire() as agent:
            for _ in range(40):
                agent.send("callProof/issue", issue_params("~/denied"))
            reasons = [agent.line()["error"]["data"]["reason"] for _ in range(40)]
        assert reasons == ["denied"] * 40


class TestClocks:
    @pytest.mark.req("CP-118")
    def test_wall_clock_jumps(self, new_house):
        """A day forward or back on the wall clock changes no proof."""
        house = new_house()
        clock = ManualClock()
        house.start(clock=clock)
        house.report()
        with house.agent_wire() as agent, house.server_wire() as server:
            for step in (86_400, -2 * 86_400):
                issued = house.proof(agent)
                clock.step_wall(step)
                assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True

    @pytest.mark.req("CP-058", "CP-131")
    def test_expiry(self, new_house):
        """A proof expires by CLOCK_BOOTTIME at the end of the window, counted from issue."""
        house = new_house()
        clock = ManualClock()
        house.start(clock=clock)
        house.report()
        with house.agent_wire() as agent, house.server_wire() as server:
            first, second = house.proof(agent), house.proof(agent)
            assert first["expiresAt"] == "2026-11-30T10:00:15Z"
            clock.advance(14.9)
            assert server.result("callProof/verify", house.verify_params(first))["valid"] is True
            clock.advance(0.1)
            assert server.result("callProof/verify", house.verify_params(second))["reason"] == "expired"

    @pytest.mark.req("CP-117")
    def test_restart(self, user_house):
        """A proof of an earlier start is expired, and the start id is another one."""
        with user_house.agent_wire() as agent:
            issued = user_house.proof(agent)
        first = user_house.records("start")[0].data["startId"]
        user_house.stop()
        user_house.start()
        user_house.report()
        with user_house.server_wire() as server:
            result = server.result("callProof/verify", user_house.verify_params(issued))
        assert result["reason"] == "expired"
        start_ids = [record.data["startId"] for record in user_house.records("start")]
        assert start_ids[0] == first
        assert len(set(start_ids)) == 2
