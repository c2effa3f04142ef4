"""Who is who for the recorder: the signed bundle, read again when it changes, never a bad one (running.md 1)."""

from __future__ import annotations

import json
import os

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from onrecord.authorize.policy.signing import sign_source
from onrecord.authorize.policy.starter import write_source
from onrecord.authorize.recorder_directory import BundleDirectory
from onrecord.base.keys import PrivateKeySigner, ed25519_public_bytes, format_trusted_key
from onrecord.record.recorder.directory import AgentModel, Directory

UID = os.getuid() or 2000


class Policy:
    """A bundle source and what is signed from it."""

    def __init__(self, root):
        self.source, self.bundle, self.trust = (
            root / "policy",
            root / "policy.bundle.json",
            root / "policy.keys",
        )
        self.signer = PrivateKeySigner(ed25519.Ed25519PrivateKey.generate())
        self.trust.write_text(format_trusted_key(ed25519_public_bytes(self.signer), "test") + "\n")
        write_source(self.source, mode="user", uid=UID, approver="ada", caller="agent")
        self.now = 0.0

    def edit(self, change):
        path = self.source / "bundle.json"
        document = json.loads(path.read_text())
        change(document)
        document["version"] += 1
        path.write_text(json.dumps(document))

    def sign(self):
        sign_source(self.source, bundle=self.bundle, signer=self.signer)

    def directory(self, *, mode="user", server_uids=(), ti_servers=()):
        return BundleDirectory(
            self.bundle,
            trust=self.trust,
            mode=mode,
            authority_uid=UID,
            server_uids=dict(server_uids),
            ti_servers=dict(ti_servers),
            monotonic=lambda: self.now,
        )


@pytest.fixture
def policy(short_dir):
    return Policy(short_dir)


def test_is_a_directory(policy):
    """It has every method of the recorder's Directory."""
    assert isinstance(policy.directory(), Directory)


def test_user_mode(policy):
    """In user mode every uid is the one caller, with the control roles of userMode."""
    policy.sign()
    directory = policy.directory()
    assert directory.caller_id(UID) == "agent"
    assert "operator" in directory.control_roles(UID)
    assert directory.agent("agent") is None
    assert directory.authority_uid == UID


def test_without_a_bundle(policy):
    """Without a bundle nobody has a name, but the servers of the configuration may still send their entries."""
    directory = policy.directory(server_uids={"files": 3001}, ti_servers={"files": "files.example.com"})
    assert directory.caller_id(UID) is None
    assert directory.control_roles(UID) == frozenset()
    assert directory.server_ids_of_uid(3001) == {"files"}
    assert directory.ti_server("files") == "files.example.com"
    assert directory.problem is not None


def test_agent_model(policy):
    """Model and provider of the bundle's caller are known when both are there."""
    model = {"modelId": "m-1", "modelProvider": "example"}
    policy.edit(lambda document: document["callers"][0].update(agent=model))
    policy.sign()
    assert policy.directory().agent("agent") == AgentModel("m-1", "example")


def test_new_bundle_is_read_and_a_bad_one_is_not(policy):
    """A new version counts after a second; one that is unsigned, broken or older leaves the old one in use."""
    policy.sign()
    directory = policy.directory()
    assert directory.version == 1
    policy.edit(lambda document: document["userMode"].update(caller="other"))
    policy.edit(lambda document: document["callers"][0].update(id="other"))
    first = policy.bundle.read_bytes(), policy.bundle.with_name("policy.bundle.json.sig").read_bytes()
    policy.sign()
    assert directory.caller_id(UID) == "agent"
    policy.now += 2
    assert directory.caller_id(UID) == "other"
    for bundle, signature in [(b"{}", first[1]), (first[0], b"nonsense"), first]:
        policy.bundle.write_bytes(bundle)
        policy.bundle.with_name("policy.bundle.json.sig").write_bytes(signature)
        policy.now += 2
        assert directory.caller_id(UID) == "other"
        assert directory.problem is not None
    policy.bundle.unlink()
    policy.now += 2
    assert directory.caller_id(UID) == "other"


def test_file_that_others_can_write_is_not_used(policy):
    """A bundle that anybody could have written is no bundle."""
    policy.sign()
    policy.bundle.chmod(0o666)
    directory = policy.directory()
    assert directory.caller_id(UID) is None
    assert directory.problem == "path-mode"
