"""onrecord control, against a real authority."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from authorize.authority.house import House, issue_params
from onrecord.base.processes import Principal, spawn
from onrecord.cli.control import decision_lines
from support.runtime import child_environment, make_short_dir
from support.uids import uid_block_or_skip


@pytest.fixture
def house():
    made = House(make_short_dir(), mode="user", uids=uid_block_or_skip() if os.getuid() == 0 else None)
    yield made
    made.remove()


def control(house: House, *args: str):
    """Run the command as the house's user; returns status, standard output and standard error."""
    principal = Principal(house.authority_uid, house.authority_uid) if os.getuid() == 0 else None
    process = spawn(
        [sys.executable, "-m", "onrecord", "control", *args, "--config", str(house.config.file)],
        principal=principal,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


class TestStatus:
    def test_shape(self, house):
        """`control status --json` has the members that scripts read."""
        house.start()
        house.report()
        with house.agent_wire() as agent:
            house.proof(agent)
            agent.error("callProof/issue", issue_params("~/x"))
        code, out, _ = control(house, "status", "--json")
        document = json.loads(out)
        assert code == 0
        assert {
            "status",
            "mode",
            "isolation",
            "policy_version",
            "since",
            "counters",
            "latency",
            "servers",
        } <= set(document)
        assert (document["status"], document["mode"], document["isolation"]) == (
            "degraded",
            "user",
            "degraded",
        )
        assert document["policy_version"] == 1
        assert document["counters"] == {"issue.denied": 1, "issue.granted": 1}
        assert {"p50", "p99"} <= set(document["latency"]["issue"])
        by_server = {entry["server"]: entry for entry in document["servers"]}
        assert (by_server["filesystem"]["tools"], by_server["filesystem"]["bound"]) == (3, 3)
        assert by_server["archive"]["reported"] is False

    def test_health(self, house):
        """Counters per outcome and both latencies are complete; without a sample a percentile is null."""
        house.start()
        house.report()
        before = json.loads(control(house, "status", "--json")[1])
        empty = {"count": 0, "p50": None, "p99": None}
        assert before["latency"] == {"issue": empty, "verify": empty}
        with house.agent_wire() as agent, house.server_wire() as server:
            params = house.verify_params(house.proof(agent))
            for _ in range(2):
                server.result("callProof/verify", params)
            server.result("callProof/verify", params | {"evidence": None})
        document = json.loads(control(house, "status", "--json")[1])
        assert document["counters"] == {
            "issue.granted": 1,
            "verify.missing": 1,
            "verify.replayed": 1,
            "verify.valid": 1,
        }
        for method, count in (("issue", 1), ("verify", 3)):
            latency = document["latency"][method]
            assert latency["count"] == count
            assert 0 < latency["p50"] <= latency["p99"]
        assert document["recorder"]["connected"] is False
        assert document["since"].endswith("Z")

    def test_audit_mode_shows(self, house):
        """A server that the policy does not enforce is named as such, in both forms."""
        house.change = lambda bundle: bundle["servers"][0].update(enforce="audit")
        house.sign_bundle()
        house.start()
        house.report()
        servers = json.loads(control(house, "status", "--json")[1])["servers"]
        assert {one["server"]: one["enforce"] for one in servers} == {
            "archive": "required",
            "filesystem": "audit",
        }
        out = " ".join(control(house, "status")[1].split())
        assert "audit mode, calls without a proof are executed: filesystem" in out

    def test_text(self, house):
        """The text form names state, policy and counters."""
        house.start()
        house.report()
        code, out, _ = control(house, "status")
        assert code == 0
        lines = [line.split() for line in out.splitlines()]
        assert ["status", "degraded"] in lines
        assert "filesystem" in out

    def test_down(self, house):
        """Without an authority: exit 3 and an error that says what to do."""
        code, out, _ = control(house, "status", "--json")
        error = json.loads(out)["error"]
        assert (code, error["code"]) == (3, "authority-unreachable")
        assert "onrecord up" in error["hint"]

    def test_not_ready(self, house):
        """Without a policy the status says not_ready, in the same shape."""
        house.signature_file.unlink()
        house.start()
        code, out, _ = control(house, "status", "--json")
        document = json.loads(out)
        assert (code, document["status"], document["policy_version"]) == (0, "not_ready", None)
        assert document["servers"] == []


class TestReload:
    def test_good_and_bad(self, house):
        """A new bundle comes into force, exit 0; an older one is refused, exit 1, and the old stays."""
        house.start()
        house.version = 2
        house.sign_bundle()
        code, out, _ = control(house, "reload", "--json", "--reason", "weekly")
        assert (code, json.loads(out)["state"]) == (0, "effective")
        house.version = 1
        house.sign_bundle()
        code, out, _ = control(house, "reload")
        assert code == 1
        assert "policy-rollback" in out
        assert house.authority.state.in_force.bundle.version == 2
        assert house.records("policy.loaded")[-1].data["reason"] == "weekly"

    def test_no_bundle(self, house):
        """Without a bundle file the command says so before it asks anybody."""
        house.start()
        house.bundle_file.unlink()
        code, out, _ = control(house, "reload", "--json")
        assert (code, json.loads(out)["error"]["code"]) == (2, "policy-missing")


class TestDecisions:
    def test_page(self, house):
        """Decisions are listed, as JSON and as a table."""
        house.start()
        house.report()
        with house.agent_wire() as agent:
            house.proof(agent)
            agent.error("callProof/issue", issue_params("~/x"))
        code, out, _ = control(house, "decisions", "--verdict", "deny", "--json")
        assert code == 0
        assert [entry["type"] for entry in json.loads(out)["entries"]] == ["issue.denied"]
        code, out, _ = control(house, "decisions", "--tool", "read_file")
        assert code == 0
        assert "issue.granted" in out

    def test_bad_filter(self, house):
        """A filter that the authority refuses is an error with its reason."""
        house.start()
        code, out, _ = control(house, "decisions", "--verdict", "maybe", "--json")
        assert (code, json.loads(out)["error"]["code"]) == (2, "invalid-params")


class TestDecisionLines:
    ENTRIES = tuple(
        {
            "seq": seq,
            "time": f"2026-11-30T10:00:0{seq}.000Z",
            "type": type_,
            "caller": "code-review",
            "server": "filesystem",
            "name": name,
            **more,
        }
        for seq, type_, name, more in (
            (1, "issue.refused", "post_comment", {"reason": "approval_rejected"}),
            (2, "approval.granted", "read_file", {"approver": "ada"}),
            (3, "issue.granted", "read_file", {}),
            (4, "issue.denied", "n" * 64, {"reason": "denied"}),
        )
    )

    @pytest.mark.parametrize("columns", [None, 200, 80, 40])
    def test_call_stays_whole(self, columns):
        """No call and no reason is broken, and a line is too long only if its call is."""
        lines = list(decision_lines(self.ENTRIES, columns=columns))
        for entry in self.ENTRIES:
            call = f"code-review -> filesystem/{entry['name']}"
            assert sum(call in line for line in lines) == (2 if entry["name"] == "read_file" else 1)
        assert any("approval_rejected" in line for line in lines)
        if columns in (80, 200):
            assert all(len(line) <= columns for line in lines if "nnn" not in line)

    def test_pipe(self):
        """Without a terminal each entry is one line."""
        header, day, *lines = decision_lines(self.ENTRIES, columns=None)
        assert header.split() == ["seq", "time", "type", "call", "reason"]
        assert day.strip() == "2026-11-30"
        assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
        assert lines[1].endswith("by ada")

    def test_hidden_characters(self):
        """What steers a terminal is escaped."""
        lines = decision_lines([{"seq": 1, "caller": "a\x1b[2J"}], columns=80)
        assert "\x1b" not in "".join(lines)


class TestLater:
    @pytest.mark.parametrize("verb", ["pause", "resume", "halt", "restrict"])
    def test_refused_by_name(self, house, verb):
        """What is not built yet is refused by its name."""
        code, out, _ = control(house, verb, "code-review", "--json")
        error = json.loads(out)["error"]
        assert (code, error["code"]) == (2, "not-built-yet")
        assert verb in error["message"]
