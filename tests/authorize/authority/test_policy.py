"""Which policy is in force: signatures, steps back, reload, revocation."""

from __future__ import annotations

import hashlib
import json

import pytest

from authorize.authority.house import issue_params
from onrecord.base.keys import generate_key_file


def reload_params(data: bytes, *, key: str = "k1", **more) -> dict:
    return {
        "version": json.loads(data)["version"],
        "digest": hashlib.sha256(data).hexdigest(),
        "idempotencyKey": key,
        "reason": "test",
    } | more


class TestStart:
    @pytest.mark.req("CP-119")
    @pytest.mark.parametrize(
        "fault", ["missing", "unsigned", "tampered", "foreign-key", "lint", "no-user-mode"]
    )
    def test_not_usable(self, new_house, fault):
        """A bundle that is missing, unsigned, tampered with, signed by another or unsound is never in force."""
        house = new_house()
        if fault == "missing":
            house.bundle_file.unlink()
        elif fault == "unsigned":
            house.signature_file.unlink()
        elif fault == "tampered":
            house.bundle_file.write_bytes(house.bundle_file.read_bytes() + b" ")
        elif fault == "foreign-key":
            house.sign_bundle(key=generate_key_file(house.root / "other.pem"))
        elif fault == "lint":
            house.change = lambda bundle: bundle.update(proofSeconds=31)
            house.sign_bundle()
        else:
            house.change = lambda bundle: bundle.pop("userMode")
            house.sign_bundle()
        house.start()
        with house.agent_wire() as agent:
            assert agent.reason("callProof/issue", issue_params()) == (-33007, "policy_unavailable")
        assert len(house.records("policy.refused")) == 1

    @pytest.mark.req("CP-058", "CP-131")
    def test_window_above_30(self, new_house):
        """A window above 30 seconds is refused; 30 is not."""
        house = new_house()
        house.change = lambda bundle: bundle.update(proofSeconds=30)
        house.sign_bundle()
        house.start()
        with house.agent_wire() as agent:
            assert agent.result("callProof/hello")["maxProofSeconds"] == 30

    @pytest.mark.req("CP-119")
    @pytest.mark.parametrize("version", [4, 5])
    def test_step_back(self, new_house, version):
        """After a restart an older bundle, and another one of the same version, are refused; the same one is not."""
        house = new_house()
        house.version = 5
        good = house.sign_bundle()
        house.start()
        assert house.authority.state.in_force is not None
        house.stop()
        house.version = version
        house.change = lambda bundle: bundle.update(created="2026-11-30T09:00:01Z")
        house.sign_bundle()
        house.start()
        assert house.authority.state.in_force is None
        assert house.records("policy.refused")[0].data["detail"] == "policy-rollback"
        house.stop()
        house.sign_bundle(data=good)
        house.start()
        assert house.authority.state.in_force.bundle.version == 5


class TestReload:
    @pytest.mark.req("CP-119")
    def test_new_version(self, house):
        """A reload puts the new bundle in force, journaled before, and revokes outstanding proofs."""
        with house.agent_wire() as agent, house.server_wire() as server, house.control_wire() as operator:
            before = house.proof(agent)
            house.version = 2
            data = house.sign_bundle()
            result = operator.result("control/policy-reload", reload_params(data))
            assert result["state"] == "effective"
            assert result["loaded"] == {"version": 2, "digest": hashlib.sha256(data).hexdigest()}
            assert server.result("callProof/verify", house.verify_params(before))["reason"] == "revoked"
            assert server.result("callProof/verify", house.verify_params(house.proof(agent)))["valid"] is True
            assert operator.result("control/metrics")["policyVersion"] == 2
        loaded = house.records("policy.loaded")[-1].data
        assert (loaded["previous"], loaded["policyVersion"], loaded["reason"]) == (1, 2, "test")
        assert loaded["platform"]["uid"] == house.operator

    @pytest.mark.req("CP-119")
    @pytest.mark.parametrize("fault", ["unsigned", "tampered", "older", "equal-but-different", "lint"])
    def test_bad_bundle(self, house, fault):
        """A bad update leaves the old policy in force: proofs live on, and the refusal is journaled."""
        if fault == "older":
            with house.control_wire() as operator:
                house.version = 3
                operator.result("control/policy-reload", reload_params(house.sign_bundle(), key="up"))
        with house.agent_wire() as agent, house.server_wire() as server, house.control_wire() as operator:
            issued = house.proof(agent)
            old = house.authority.state.in_force
            house.version = {"older": 2, "equal-but-different": 1}.get(fault, 9)
            if fault == "equal-but-different":
                house.change = lambda bundle: bundle.update(created="2026-11-30T09:00:01Z")
            if fault == "lint":
                house.change = lambda bundle: bundle.update(proofSeconds=31)
            data = house.sign_bundle()
            if fault == "unsigned":
                house.signature_file.unlink()
            if fault == "tampered":
                data = data.replace(b"review", b"revieW", 1)
                house.bundle_file.write_bytes(data)
            result = operator.result("control/policy-reload", reload_params(data))
            assert (result["state"], result["effectiveAt"]) == ("failed", None)
            assert house.authority.state.in_force is old
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True
        assert house.records("policy.refused")[0].data["detail"] == result["detail"]

    def test_other_file_than_named(self, user_house):
        """The file must be the one that the operator named by version and digest."""
        user_house.version = 2
        data = user_house.sign_bundle()
        with user_house.control_wire() as operator:
            for change in ({"version": 3}, {"digest": "0" * 64}):
                error = operator.error("control/policy-reload", reload_params(data) | change)
                assert (error["code"], error["data"]["reason"]) == (-33103, "conflict")
            error = operator.error("control/policy-reload", reload_params(data, expectedVersion=7))
            assert error["data"] == {"reason": "conflict", "detail": "expectedVersion"}
        assert user_house.authority.state.in_force.bundle.version == 1

    def test_idempotency(self, user_house):
        """A repeated key gets the first answer and acts once; the same key for another request is a conflict."""
        user_house.version = 2
        data = user_house.sign_bundle()
        with user_house.control_wire() as operator:
            first = operator.result("control/policy-reload", reload_params(data))
            again = operator.result("control/policy-reload", reload_params(data))
            assert again == first
            error = operator.error("control/policy-reload", reload_params(data, reason="other"))
            assert error["data"]["reason"] == "conflict"
        assert len(user_house.records("policy.loaded")) == 2

    @pytest.mark.parametrize("member", ["version", "digest", "idempotencyKey", "reason"])
    def test_parameters(self, user_house, member):
        """Each required parameter is asked for by name."""
        with user_house.control_wire() as operator:
            for wrong in (None, "", [], {}):
                error = operator.error(
                    "control/policy-reload", reload_params(b'{"version":2}') | {member: wrong}
                )
                assert error["data"] == {"reason": "invalid_params", "detail": member}

    def test_role(self, new_house):
        """Only policy-admin may reload; an auditor is refused and journaled."""
        house = new_house()
        house.change = lambda bundle: bundle["userMode"].update(controlRoles=["auditor"])
        house.sign_bundle()
        house.start()
        with house.control_wire() as operator:
            assert (
                operator.reason("control/policy-reload", reload_params(b'{"version":2}'))[1]
                == "not_authorized"
            )
            operator.result("control/metrics")
        assert house.records("role.refused")[0].data["asked"] == "control/policy-reload"

    def test_first_policy(self, idle_house):
        """An authority without a policy gets its first by reload, judged by the roles in that signed bundle."""
        house = idle_house
        signature = house.signature_file.read_bytes()
        house.signature_file.unlink()
        house.start()
        with house.control_wire() as operator, house.control_wire(house.stranger) as other:
            assert operator.reason("control/metrics") == (-33107, "unavailable")
            house.signature_file.write_bytes(signature)
            house.sign_bundle()
            data = house.bundle_file.read_bytes()
            if house.mode == "system":
                reason = other.reason("control/policy-reload", reload_params(data, key="x"))
                assert reason == (-33101, "not_authorized")
            assert operator.result("control/policy-reload", reload_params(data))["state"] == "effective"
        house.report()
        with house.agent_wire() as agent:
            house.proof(agent)

    def test_callers_follow_the_policy(self, system_house):
        """An open connection is judged by the bundle in force at each request."""
        house = system_house
        with house.agent_wire(house.other_agent) as second, house.control_wire() as operator:
            second.result("callProof/issue", issue_params())
            house.version = 2
            house.change = lambda bundle: bundle["callers"].pop()
            operator.result("control/policy-reload", reload_params(house.sign_bundle()))
            assert second.reason("callProof/issue", issue_params()) == (-33004, "unknown_caller")
