"""The decision journal: it verifies, holds no secrets, fails closed, and survives what it must."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess

import orjson
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from authorize.authority.house import House, issue_params, on_thread
from onrecord.base.errors import StorageError
from onrecord.base.hashes import ProofRef
from onrecord.base.keys import ed25519_public_bytes
from onrecord.base.processes import Principal
from onrecord.record.ledger.journal import Journal
from support.runtime import onrecord, start_ready, stop, wait_for


def key_material(pem: bytes) -> list[bytes]:
    """Return the forms in which a private key could turn up: the seed, its hex and base64 forms, and the PEM text."""
    seed = load_pem_private_key(pem, None).private_bytes_raw()
    body = pem.splitlines()[1]
    return [seed, seed.hex().encode(), base64.b64encode(seed)[:42], base64.urlsafe_b64encode(seed)[:42], body]


def everything_below(root) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


class TestContent:
    @pytest.mark.req("CP-121", "CP-127")
    def test_no_secrets(self, new_house, caplog):
        """No argument value, proof value or key is in the state, the log or an error, whatever was sent."""
        house = new_house()
        house.start()
        house.report()
        canary = "canary-4af1c9"
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent, f"repo/{canary}")
            denied = agent.call("callProof/issue", issue_params(f"~/{canary}"))
            broken = agent.call("callProof/issue", issue_params(arguments=[canary]))
            agent.send_bytes(
                b'{"jsonrpc":"2.0","id":9,"method":"callProof/issue","params":{"arguments":{"a":"%s","a":1}}}'
                % canary.encode()
            )
            refused = agent.line()
            round_ = {"inputResponses": {"x": canary}, "requestState": canary}
            second = house.proof(agent, **round_)
            server.result("callProof/verify", house.verify_params(issued))
            server.result("callProof/verify", house.verify_params(second))
        house.stop()
        secrets = [
            canary.encode(),
            issued["evidence"]["value"].encode(),
            second["evidence"]["value"].encode(),
        ]
        for name in ("journal.pem", "proof.pem"):
            secrets += key_material((house.root / "keys" / name).read_bytes())
        state = everything_below(house.root / "state")
        for secret in secrets:
            assert secret not in state
            assert secret not in orjson.dumps([denied, broken, refused])
            assert secret not in caplog.text.encode()

    @pytest.mark.req("CP-120")
    def test_every_outcome(self, user_house):
        """Each issue and verify outcome has its record, in the order of the answers."""
        with user_house.agent_wire() as agent, user_house.server_wire() as server:
            issued = user_house.proof(agent)
            agent.error("callProof/issue", issue_params("~/x"))
            agent.error("callProof/issue", issue_params(server="nowhere"))
            server.result("callProof/verify", user_house.verify_params(issued))
            server.result("callProof/verify", user_house.verify_params(issued))
        types = [record.type for record in user_house.records()]
        assert types[types.index("issue.granted") :] == [
            "issue.granted",
            "issue.denied",
            "issue.refused",
            "verify.valid",
            "verify.invalid",
        ]

    def test_verifies(self, user_house):
        """The journal verifies against the checkpoint that an answer carried."""
        from onrecord.record.ledger.journal import verify_journal

        with user_house.agent_wire() as agent, user_house.server_wire() as server:
            issued = user_house.proof(agent)
            result = server.result("callProof/verify", user_house.verify_params(issued))
        user_house.stop()
        key = user_house.journal_key
        trusted = {key.kid: key.public_key}
        assert len(ed25519_public_bytes(key)) == 32
        report = verify_journal(
            [user_house.root / "state/authority/journal-1.db"],
            checkpoints=[result["checkpoint"]["note"]],
            trusted=trusted,
        )
        assert report.verdict == "verified", report.to_json()


class TestFailClosed:
    @pytest.mark.req("CP-120", "CP-112")
    def test_audit_unavailable(self, house, monkeypatch):
        """A record that cannot be stored: issue and verify answer audit_unavailable and the proof is unspent."""
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            journal = house.authority.state.audit.journal

            def fail(*args, **options):
                raise StorageError("disk full", code="audit-unavailable")

            with monkeypatch.context() as patch:
                patch.setattr(journal, "append", fail)
                for call in (
                    lambda: agent.reason("callProof/issue", issue_params()),
                    lambda: agent.reason("callProof/issue", issue_params("~/x")),
                    lambda: agent.reason("callProof/issue", issue_params(server="nowhere")),
                    lambda: server.reason("callProof/verify", house.verify_params(issued)),
                    lambda: server.reason(
                        "callProof/verify", house.verify_params(issued) | {"evidence": None}
                    ),
                ):
                    assert call() == (-33007, "audit_unavailable")
            assert server.result("callProof/verify", house.verify_params(issued))["valid"] is True

    def test_commit_fails(self, user_house, monkeypatch):
        """A commit that fails after the record was taken gives audit_unavailable to everybody who waited."""
        with user_house.agent_wire() as agent:
            journal = user_house.authority.state.audit.journal
            append = journal.append

            def later(type_, data, *, done=None, lazy=False, **more):
                if done is not None:
                    done(StorageError("disk full", code="audit-unavailable"))
                return append(type_, data, lazy=lazy, **more)

            with monkeypatch.context() as patch:
                patch.setattr(journal, "append", later)
                assert agent.reason("callProof/issue", issue_params("~/x")) == (-33007, "audit_unavailable")
            assert agent.reason("callProof/issue", issue_params("~/x")) == (-33001, "denied")

    @pytest.mark.req("CP-120")
    @pytest.mark.root
    def test_full_disk(self, new_house):
        """A full disk: audit_unavailable, not one answer without its record; then recovery without a gap in seq."""
        house = new_house("system")
        state = house.root / "state"
        options = [
            "-t",
            "tmpfs",
            "-o",
            f"size=1m,mode=700,uid={house.authority_uid},gid={house.authority_uid}",
        ]
        if subprocess.run(["mount", *options, "tmpfs", state], capture_output=True).returncode != 0:
            pytest.skip("cannot mount a small tmpfs here")
        try:
            (state / "marks").mkdir(mode=0o700)
            os.chown(state / "marks", house.authority_uid, house.authority_uid)
            house.start()
            house.report()
            self.fill_and_recover(house, state)
        finally:
            house.stop()
            subprocess.run(["umount", "-l", state], check=True)

    def fill_and_recover(self, house: House, state) -> None:
        ballast = state / "ballast"
        denied = 0
        with house.agent_wire() as agent:
            ballast.write_bytes(b"x" * 100_000)
            reasons = set()
            for _ in range(5000):
                reason = agent.reason("callProof/issue", issue_params("~/x"))[1]
                reasons.add(reason)
                if reason != "denied":
                    break
                denied += 1
            assert reasons == {"denied", "audit_unavailable"}
            assert agent.result("callProof/hello")["status"] == "not_ready"
            ballast.unlink()
            wait_for(lambda: house.authority.state.audit.is_available, what="the journal works again")
            assert agent.reason("callProof/issue", issue_params("~/x"))[1] == "denied"
        records = house.records()
        assert [record.seq for record in records] == list(range(len(records)))
        kept = [record for record in records if record.type == "issue.denied"]
        assert len(kept) >= denied + 1
        assert "gap" in kept[-1].data


def read_state(house: House) -> list:
    """Open the journal after the death of its writer and return its records, as a restart would."""
    return on_thread(lambda: _read_state(house), uid=house.authority_uid)


def _read_state(house: House) -> list:
    journal = Journal.open(
        house.root / "state/authority",
        signer=house.journal_key,
        name="test/authority",
        marks=house.root / "state/marks/authority",
    )
    records, seq = [], 0
    while page := journal.read(seq, 10_000):
        records += page
        seq = page[-1].seq + 1
    journal.close()
    return records


class TestKill:
    @pytest.mark.req("CP-117", "CP-120")
    @pytest.mark.parametrize("durability", ["durable", "relaxed"])
    def test_kill_nine(self, new_house, durability):
        """A kill -9 at random points: every valid answer and every denial received has its entry; old proofs expire."""
        house = new_house(durability=durability)
        config = house.config
        owner = Principal(house.authority_uid, house.authority_uid) if os.getuid() == 0 else None
        command = onrecord("authority", "serve", "--config", str(config.file))
        valid: set[str] = set()
        refs: set[str] = set()
        unused: list[dict] = []
        for _ in range(5):
            process = start_ready(command, principal=owner, stderr=subprocess.DEVNULL)
            try:
                house.report()
                if unused:
                    with house.server_wire() as server:
                        for issued in unused[-3:]:
                            result = server.result("callProof/verify", house.verify_params(issued))
                            assert result["reason"] == "expired"
                self.work(house, process.pid, valid, refs, unused)
            finally:
                stop(process, signal_number=signal.SIGKILL)
        process = start_ready(command, principal=owner, stderr=subprocess.DEVNULL)
        stop(process)
        records = read_state(house)
        assert valid <= {record.data["proofRef"] for record in records if record.type == "verify.valid"}
        assert refs <= {record.data["ref"] for record in records if record.type == "issue.denied"}
        assert [record.seq for record in records] == list(range(len(records)))
        assert len({record.data["startId"] for record in records if record.type == "start"}) == 6
        numbers = [record.data["entry"] for record in records if "entry" in record.data]
        assert numbers == sorted(set(numbers))

    def work(self, house: House, pid: int, valid: set, refs: set, unused: list) -> None:
        """Call as fast as answers come and kill in the middle of it; note what was answered."""
        with house.agent_wire() as agent, house.server_wire() as server:
            issued = house.proof(agent)
            fresh = issued
            unused.append(house.proof(agent))
            try:
                for n in range(30):
                    agent.send("callProof/issue", issue_params(f"~/{n}"))
                    agent.send("callProof/issue", issue_params())
                    server.send("callProof/verify", house.verify_params(issued))
                    if n == 20:
                        os.kill(pid, signal.SIGKILL)
                    for wire in (agent, agent, server):
                        answer = wire.line()
                        if answer is None:
                            continue
                        if "error" in answer:
                            refs.add(answer["error"]["data"]["ref"])
                        elif "evidence" in answer["result"]:
                            fresh = answer["result"]
                        elif answer["result"]["valid"]:
                            valid.add(str(ProofRef.of(issued["evidence"]["value"].encode())))
                    issued = fresh
            except OSError:
                return


class TestProcess:
    def test_refuses_root(self, new_house):
        """The daemon does not run as uid 0."""
        if os.getuid() != 0:
            pytest.skip("not root, so there is nothing to refuse")
        house = new_house()
        done = subprocess.run(
            onrecord("authority", "serve", "--config", str(house.config.file)), capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "runs-as-root" in done.stderr or "configuration-owner" in done.stderr

    def test_started_with_a_journal_key_missing(self, new_house):
        """Without its journal key the authority does not start; the error names the key's purpose."""
        house = new_house()
        (house.root / "keys/journal.pem").unlink()
        with pytest.raises(Exception, match="authority_journal") as error:
            house.start()
        assert error.value.code == "key-missing"

    def test_shared_key(self, new_house):
        """Two purposes with one key: no start."""
        house = new_house()
        proof = house.root / "keys/proof.pem"
        proof.write_bytes((house.root / "keys/journal.pem").read_bytes())
        with pytest.raises(Exception, match="one key") as error:
            house.start()
        assert error.value.code == "key-shared"

    def test_proof_key_missing(self, new_house):
        """Handles need no proof key: without it the authority starts and its start record says so."""
        house = new_house()
        (house.root / "keys/proof.pem").unlink()
        house.start()
        house.report()
        with house.agent_wire() as agent:
            house.proof(agent)
        assert house.records("start")[0].data["proofKey"] == "key-missing"

    def test_start_and_stop_are_journaled(self, user_house):
        """Start and stop stand in the journal; nothing follows the stop but the journal's own close."""
        user_house.stop()
        records = read_state(user_house)
        types = [record.type for record in records]
        assert types[:2] == ["journal.open", "start"]
        assert types[types.index("stop") :][:2] == ["stop", "journal.close"]
        assert socket.gethostname() in records[0].recorder
