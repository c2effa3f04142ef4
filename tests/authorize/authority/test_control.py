"""The controls: what an operator sees, and what is refused by name."""

from __future__ import annotations

import pytest

from authorize.authority.house import OTHER_PIN, issue_params
from onrecord.authorize.authority.control import LATER
from onrecord.authorize.authority.metrics import Latency, Metrics


class TestMetrics:
    def test_counters_and_latency(self, house):
        """Every outcome is counted by its reason; latencies have percentiles."""
        with house.agent_wire() as agent, house.server_wire() as server, house.control_wire() as operator:
            issued = house.proof(agent)
            agent.error("callProof/issue", issue_params("~/x"))
            agent.error("callProof/issue", issue_params(server="nowhere"))
            server.result("callProof/verify", house.verify_params(issued))
            server.result("callProof/verify", house.verify_params(issued))
            agent.send_bytes(b"no json")
            agent.line()
            result = operator.result("control/metrics")
        assert result["counters"] == {
            "issue.denied": 1,
            "issue.granted": 1,
            "issue.unknown_server": 1,
            "parse_error": 1,
            "verify.replayed": 1,
            "verify.valid": 1,
        }
        assert result["latency"]["issue"]["count"] == 3
        assert result["latency"]["verify"]["p99"] >= result["latency"]["verify"]["p50"] > 0
        assert (result["status"], result["mode"]) == ("degraded", house.mode)
        assert result["isolation"] == ("degraded" if house.mode == "user" else "not-checked")

    def test_percentiles(self):
        """Percentiles are nearest ranks; without samples they are unknown."""
        latency = Latency()
        assert latency.summary().to_json() == {"count": 0, "p50": None, "p99": None}
        for n in range(1, 101):
            latency.add(n * 1_000_000)
        assert latency.summary().to_json() == {"count": 100, "p50": 50.0, "p99": 99.0}
        assert Metrics().to_json()["counters"] == {}


class TestTools:
    def test_bound_changed_unbound(self, user_house):
        """Reports are compared with the pins of the bundle."""
        user_house.report("filesystem", names=("read_file", "other"))
        user_house.report("archive", pin=OTHER_PIN)
        with user_house.control_wire() as operator:
            servers = {entry["server"]: entry for entry in operator.result("control/tools")["servers"]}
            one = operator.result("control/tools", {"server": "archive"})["servers"]
            error = operator.error("control/tools", {"server": "nowhere"})
        counts = {
            name: (entry["bound"], entry["changed"], entry["unbound"]) for name, entry in servers.items()
        }
        assert counts == {"filesystem": (1, 0, 1), "archive": (0, 3, 0)}
        assert [entry["server"] for entry in one] == ["archive"]
        assert one[0]["tools"][0]["inputSchemaSha256"] == OTHER_PIN
        assert error["data"]["reason"] == "unknown_server"

    def test_not_reported(self, new_house):
        """A configured server that was never reported is listed as such."""
        house = new_house().start()
        with house.control_wire() as operator:
            servers = operator.result("control/tools")["servers"]
        seen = [(entry["server"], entry["reported"]) for entry in servers]
        assert seen == [("archive", False), ("filesystem", False)]


class TestDecisionLog:
    def test_filters(self, house):
        """Entries are found by caller, tool, session, verdict, reason and digest; the head is signed."""
        with house.agent_wire() as agent, house.control_wire() as operator:
            issued = house.proof(agent, recordSession="s1")
            agent.error("callProof/issue", issue_params("~/x", recordSession="s2"))
            log = lambda **wanted: [
                entry["type"] for entry in operator.result("control/decision-logging", wanted)["entries"]
            ]
            assert log(session="s1") == ["issue.granted"]
            assert log(verdict="deny") == ["issue.denied"]
            assert log(verdict="allow", tool="read_file", agent="code-review") == ["issue.granted"]
            assert log(reason="denied") == ["issue.denied"]
            assert log(actionDigest=issued["actionDigest"]) == ["issue.granted"]
            assert log(agent="nobody") == []
            assert log(**{"from": "2000-01-01T00:00:00Z", "until": "2000-01-02T00:00:00Z"}) == []
            head = operator.result("control/decision-logging")["head"]
        assert head["note"].split("\n")[1] == str(head["seq"] + 1)
        assert head["note"].split("\n")[2] == head["digest"]

    def test_pages(self, user_house):
        """Pages follow each other by cursor without overlap, to the end."""
        with user_house.agent_wire() as agent, user_house.control_wire() as operator:
            for n in range(25):
                user_house.proof(agent, f"repo/{n}")
            user_house.records()
            seen, cursor = [], 0
            while cursor is not None:
                page = operator.result("control/decision-logging", {"cursor": cursor, "limit": 7})
                assert len(page["entries"]) <= 7
                seen += [entry["seq"] for entry in page["entries"]]
                cursor = page["next"]
        assert seen == list(range(len(seen)))
        assert len(seen) >= 28

    @pytest.mark.parametrize(
        "wanted",
        [
            {"limit": 0},
            {"limit": 1001},
            {"limit": True},
            {"cursor": -1},
            {"verdict": "maybe"},
            {"from": "yesterday"},
            {"agent": 5},
            {"commitment": "x"},
        ],
    )
    def test_bad_filters(self, user_house, wanted):
        """A filter of the wrong form is refused by its name."""
        with user_house.control_wire() as operator:
            error = operator.error("control/decision-logging", wanted)
        assert error["data"] == {"reason": "invalid_params", "detail": next(iter(wanted))}


class TestLater:
    @pytest.mark.parametrize("method", sorted(LATER))
    def test_not_supported(self, user_house, method):
        """A control that is specified and not built answers not_supported, never silence or success."""
        with user_house.control_wire() as operator:
            assert operator.reason(method, {"agent": "*"}) == (-33105, "not_supported")

    def test_unknown(self, user_house):
        """A control that does not exist is an unknown method."""
        with user_house.control_wire() as operator:
            assert operator.reason("control/self-destruct") == (-32601, "unknown_method")
