"""Who signed: names of signatures that fit, and an anchor only where it vouches."""

from datetime import timedelta

import pytest

from onrecord.record.forms import resign, sign, verify
from onrecord.record.vcon.canonical_text import canonical_text
from support.vcons import NOW, UUID, answer, certify, invocation, pki, vcon

PAYLOAD = canonical_text(vcon(invocation(), answer("tool-result"), updated_at="2026-11-02T12:00:03Z"))


def signed(chain, kind="p256"):
    return sign(PAYLOAD, signer=pki().signer(kind), chain=chain, uuid=UUID)


def anchors_of(data, **options):
    """The subjects of the anchors that vouch, None for a name that nobody vouches for."""
    report = verify(data, anchors=[pki().root], at=NOW, **options)
    return [signer.anchor and signer.anchor.subject for signer in report.signers]


class TestAnchor:
    def test_vouches(self):
        """The anchor at the end of the path is named."""
        assert anchors_of(signed(pki().chain())) == ["CN=Test Root"]

    @pytest.mark.parametrize(
        "chain",
        [
            pytest.param({"end": NOW - timedelta(days=1)}, id="expired"),
            pytest.param({"start": NOW + timedelta(days=1)}, id="early"),
        ],
    )
    def test_fault_of_the_certificate(self, chain):
        """A path that leads to an anchor and has a fault vouches for nothing."""
        assert anchors_of(signed(pki().chain(**chain))) == [None]

    def test_rejected(self):
        """Signed after the key was lost is signed by whoever found it."""
        data = signed(pki().chain())
        assert anchors_of(data, reject_after=NOW - timedelta(days=3650)) == [None]
        assert anchors_of(data, reject_after=NOW) == ["CN=Test Root"]

    def test_another_uuid(self):
        """A signature whose header names another vCon vouches for nothing here."""
        data = signed(pki().chain()).replace(UUID.encode(), b"01a19b83-0f20-8b33-832a-bc92ac6830ce")
        assert anchors_of(data) == [None]

    def test_self_made_name(self):
        """Anybody can write any name into a certificate: it is told, and no anchor is."""
        leaf = certify("Test Leaf", pki().keys["p256"], dns=["bank.example.com"])
        report = verify(signed((leaf,)), anchors=[pki().root], at=NOW)
        (signer,) = report.signers
        assert (signer.names, signer.anchor, report.verdict) == (("bank.example.com",), None, "failed")


class TestWhichSignatures:
    def test_nested(self):
        """Each envelope names its signer, from the outside in."""
        inner = signed(pki().chain())
        outer = resign(
            inner, signer=pki().signer("rsa"), chain=pki().chain("rsa"), anchors=[pki().root], at=NOW
        )
        report = verify(outer, anchors=[pki().root], at=NOW)
        assert [(signer.envelope, signer.alg) for signer in report.signers] == [(1, "RS256"), (2, "ES256")]
        assert (report.uuid, report.updated_at) == (UUID, "2026-11-02T12:00:03Z")

    def test_unsigned(self):
        """What is not signed has no signer, and its members are nobody's word."""
        report = verify(PAYLOAD, anchors=[pki().root], at=NOW)
        assert (report.signers, report.uuid, report.updated_at) == ((), None, None)
