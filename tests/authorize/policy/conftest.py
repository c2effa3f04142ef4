"""A small valid policy, and ways to change it."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from onrecord.authorize.policy import CallRequest, Policy, check_bundle, read_bundle
from onrecord.authorize.policy.source import compose
from onrecord.base.keys import PrivateKeySigner
from support.policies import example_document


@pytest.fixture
def document():
    """A fresh document of a valid bundle, to be changed."""
    return example_document()


@pytest.fixture
def codes():
    """Return a function from a document to the codes of its findings."""

    def find(document, *, mode=None):
        bundle, findings = read_bundle(compose(document))
        if bundle is not None:
            findings = check_bundle(bundle, mode=mode)
        return [item.code for item in findings]

    return find


@pytest.fixture
def compile_policy():
    """Return a function from a document to a compiled policy; the lint must be clean of errors."""

    def build(document):
        bundle, findings = read_bundle(compose(document))
        assert bundle is not None, findings
        assert [f for f in check_bundle(bundle) if f.severity == "error"] == []
        return Policy(bundle)

    return build


@pytest.fixture
def decide():
    """Return a function that decides a call of code-review, with the pins advertised."""

    def run(policy, server, name, arguments, **more):
        more.setdefault("advertised", policy.pins(server))
        return policy.decide(
            CallRequest(caller="code-review", server=server, name=name, arguments=arguments, **more)
        )

    return run


@pytest.fixture
def signer():
    """A policy key."""
    return PrivateKeySigner(Ed25519PrivateKey.from_private_bytes(b"\x07" * 32))


@pytest.fixture
def trusted(signer):
    """The trust anchor with that key."""
    return {signer.kid: signer.public_key}
