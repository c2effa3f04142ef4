"""Faults of call-proof.md 11 that no other module shows."""

from __future__ import annotations

import pytest

FLOOD = 300


class TestFlood:
    @pytest.mark.req("CP-042", "CP-114", "CP-120")
    def test_unproven_calls(self, house):
        """Calls without a proof for ever: each is answered `missing` and journaled, and proofs of others still work."""
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            unproven = house.verify_params(issued) | {"evidence": None}
            for begin in range(0, FLOOD, 50):
                for _ in range(50):
                    server.send("callProof/verify", unproven)
                answers = [server.line()["result"] for _ in range(50)]
                assert [one["reason"] for one in answers] == ["missing"] * 50, begin
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True
        missing = [one.data for one in house.records("verify.invalid")]
        assert len(missing) == FLOOD
        assert {(one["reason"], one["name"], one["server"]) for one in missing} == {
            ("missing", "read_file", "filesystem")
        }
        assert house.authority.state.metrics.counters["verify.missing"] == FLOOD
