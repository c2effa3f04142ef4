"""Evidence types at a running authority: which one is used, what a missing key does, what a new key does."""

from __future__ import annotations

import json

import pytest

from authorize.authority.conftest import make_house
from authorize.authority.house import issue_params
from onrecord.base.hashes import b64url_decode_strict
from onrecord.base.keys import PrivateKeySigner, generate_private_key, write_private_key

HANDLE, JWS = "dev.onrecord/handle", "dev.onrecord/jws"


@pytest.fixture
def house_with():
    """A function that starts an authority with these evidence types; `before` changes the files first."""
    made = []

    def make(*evidence, mode="user", before=None):
        house = make_house(mode, evidence=evidence)
        made.append(house)
        if before is not None:
            before(house)
        house.start()
        house.report("filesystem")
        return house

    yield make
    for house in made:
        house.remove()


def claims_of(issued):
    return json.loads(b64url_decode_strict(issued["evidence"]["value"].split(".")[1]))


def without_key(house):
    (house.root / "keys/proof.pem").unlink()


class TestNegotiation:
    @pytest.mark.req("CP-112")
    @pytest.mark.parametrize(
        ("enabled", "asked", "used"),
        [
            (("handle",), None, HANDLE),
            (("jws",), None, JWS),
            (("handle", "jws"), None, HANDLE),
            (("jws", "handle"), None, JWS),
            (("jws", "handle"), [HANDLE, JWS], JWS),
            (("jws", "handle"), [HANDLE], HANDLE),
            (("handle", "jws"), ["com.example/token", JWS], JWS),
        ],
    )
    def test_first_admitted(self, house_with, enabled, asked, used):
        """The first type of the configuration that the request admits is used, and hello lists all of them."""
        house = house_with(*enabled)
        more = {} if asked is None else {"evidenceTypes": asked}
        with house.agent_wire() as agent, house.server_wire() as server:
            types = agent.result("callProof/hello")["evidenceTypes"]
            assert [type_.rpartition("/")[2] for type_ in types] == list(enabled)
            issued = house.proof(agent, **more)
            assert issued["evidence"]["type"] == used
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True
        assert house.records("issue.granted")[-1].data["evidenceType"] == used

    @pytest.mark.req("CP-112")
    def test_unsupported(self, house_with):
        """A type that is not enabled is refused with those that are, in issue and as unknown_type in verify."""
        house = house_with("jws")
        with house.agent_wire() as agent, house.server_wire() as server:
            error = agent.error("callProof/issue", issue_params(evidenceTypes=[HANDLE]))
            assert (error["code"], error["data"]["reason"], error["data"]["supported"]) == (
                -33006,
                "unsupported_type",
                [JWS],
            )
            issued = house.proof(agent)
            other = house.verify_params(issued) | {
                "evidence": {"type": HANDLE, "value": issued["evidence"]["value"]}
            }
            assert server.result("callProof/verify", other)["reason"] == "unknown_type"
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True
        assert house.records("issue.refused")[-1].data["reason"] == "unsupported_type"

    @pytest.mark.req("CP-115")
    def test_type_of_another_profile(self, house_with):
        """A handle that calls itself a JWS, and the jti of a JWS as a handle, are no proofs, and consume nothing."""
        house = house_with("jws", "handle")
        with house.agent_wire() as agent, house.server_wire() as server:
            signed, handle = house.proof(agent), house.proof(agent, evidenceTypes=[HANDLE])
            jti = {"type": HANDLE, "value": claims_of(signed)["jti"]}
            renamed = {"type": JWS, "value": handle["evidence"]["value"]}
            for evidence, reason in ((jti, "invalid"), (renamed, "malformed")):
                params = house.verify_params(signed) | {"evidence": evidence}
                assert server.result("callProof/verify", params)["reason"] == reason
            for issued in (signed, handle):
                assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True


class TestSigned:
    @pytest.mark.req("CP-056", "CP-114", "CP-115")
    @pytest.mark.parametrize("mode", ["user", pytest.param("system", marks=pytest.mark.root)])
    def test_claims_and_single_use(self, house_with, mode):
        """The claims name the call; the proof works once, for these arguments and this server only."""
        house = house_with("jws", mode=mode)
        house.report("archive")
        with house.agent_wire() as agent, house.server_wire() as server:
            issued, other = house.proof(agent), house.proof(agent, "repo/other")
            claims = claims_of(issued)
            assert (claims["ad"], claims["srv"], claims["sub"]) == (
                issued["actionDigest"],
                "filesystem",
                "code-review",
            )
            assert claims["exp"] - claims["iat"] == 15
            swapped = house.verify_params(issued) | {"evidence": other["evidence"]}
            assert server.result("callProof/verify", swapped)["reason"] == "mismatch"
            params = house.verify_params(issued)
            assert server.result("callProof/verify", params)["valid"] is True
            assert server.result("callProof/verify", params)["reason"] == "replayed"
            assert server.result("callProof/verify", swapped)["reason"] == "mismatch"
            with house.server_wire("archive") as archive:
                elsewhere = house.verify_params(other) | {"server": "archive"}
                assert archive.result("callProof/verify", elsewhere)["reason"] == "mismatch"

    @pytest.mark.req("CP-115")
    def test_respelled_after_use(self, house_with):
        """A used value in another spelling is malformed, not fresh."""
        house = house_with("jws")
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True
            for value in (issued["evidence"]["value"] + "=", " " + issued["evidence"]["value"]):
                again = house.verify_params(issued) | {"evidence": {"type": JWS, "value": value}}
                assert server.result("callProof/verify", again)["reason"] == "malformed"

    @pytest.mark.req("CP-059", "CP-058")
    def test_restart_and_new_key(self, house_with):
        """After a restart an old proof is expired, after a change of the key invalid; the journal has both keys."""
        house = house_with("jws")
        with house.agent_wire() as agent:
            first, second = house.proof(agent), house.proof(agent)
        house.stop()
        house.start()
        house.report("filesystem")
        with house.server_wire() as server:
            assert server.result("callProof/verify", house.verify_params(first))["reason"] == "expired"
        house.stop()
        key = house.root / "keys/proof.pem"
        key.unlink()
        write_private_key(key, private := generate_private_key("ed25519"))
        house.own()
        house.start()
        house.report("filesystem")
        with house.agent_wire() as agent, house.server_wire() as server:
            assert server.result("callProof/verify", house.verify_params(second))["reason"] == "invalid"
            assert server.result("callProof/verify", house.verify_params(house.proof(agent)))["valid"] is True
        kids = [one.data["evidenceKeys"][JWS]["kid"] for one in house.records("start")]
        assert kids == [house.proof_key.kid, house.proof_key.kid, PrivateKeySigner(private).kid]

    @pytest.mark.req("CP-059")
    def test_published_key_verifies(self, house_with):
        """The public key in the start record verifies a proof by itself: an auditor needs nothing else."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        house = house_with("jws")
        with house.agent_wire() as agent:
            signed, _, signature = house.proof(agent)["evidence"]["value"].rpartition(".")
        published = house.records("start")[0].data["evidenceKeys"][JWS]["publicKey"]
        key = Ed25519PublicKey.from_public_bytes(b64url_decode_strict(published))
        key.verify(b64url_decode_strict(signature), signed.encode())

    @pytest.mark.req("CP-121")
    def test_journal_has_no_value(self, house_with):
        """Neither a value nor a private key is in the journal."""
        house = house_with("jws")
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            server.result("callProof/verify", house.verify_params(issued))
        told = json.dumps([one.data for one in house.records()])
        assert issued["evidence"]["value"] not in told
        assert issued["evidence"]["value"].rpartition(".")[2] not in told
        assert (house.root / "keys/proof.pem").read_text().splitlines()[1] not in told


class TestKeyGone:
    @pytest.mark.req("CP-112", "CP-059")
    def test_only_type(self, house_with):
        """With the only type disabled the authority is not ready and says key_unavailable; nothing takes its place."""
        house = house_with("jws", before=without_key)
        with house.agent_wire() as agent:
            hello = agent.result("callProof/hello")
            assert (hello["evidenceTypes"], hello["status"]) == ([], "not_ready")
            assert agent.reason("callProof/issue", issue_params()) == (-33007, "key_unavailable")
            denied = issue_params("../../etc/passwd")
            assert agent.reason("callProof/issue", denied) == (-33001, "denied")
        start = house.records("start")[0].data
        assert (start["evidence"], start["evidenceDisabled"]) == ([], {JWS: "key-missing"})
        assert house.records("issue.refused")[-1].data["reason"] == "key_unavailable"
        assert not house.records("issue.granted")

    @pytest.mark.req("CP-112", "CP-059")
    def test_other_type_stays(self, house_with):
        """With a second type left, a caller that insists on the disabled one gets unsupported_type."""
        house = house_with("jws", "handle", before=without_key)
        with house.agent_wire() as agent:
            assert agent.result("callProof/hello")["evidenceTypes"] == [HANDLE]
            assert house.proof(agent)["evidence"]["type"] == HANDLE
            error = agent.error("callProof/issue", issue_params(evidenceTypes=[JWS]))
            assert (error["data"]["reason"], error["data"]["supported"]) == ("unsupported_type", [HANDLE])

    def test_one_key_for_two_purposes(self, house_with):
        """A proof key that is the journal's key too: no start."""
        from onrecord.base.errors import KeyAccessError

        def share(house):
            (house.root / "keys/proof.pem").write_bytes((house.root / "keys/journal.pem").read_bytes())

        with pytest.raises(KeyAccessError) as error:
            house_with("jws", before=share)
        assert error.value.code == "key-shared"
