"""How many signatures must hold, and whose: all, any, and anchors that must vouch."""

import json
from functools import cache

import pytest

from onrecord.base.errors import UsageError
from onrecord.record.forms import sign, verify
from onrecord.record.forms.certificates import fingerprint
from onrecord.record.vcon.canonical_text import canonical_text
from support.jwe import b64
from support.vcons import NOW, UUID, answered, certify, pki

PAYLOAD = canonical_text(answered())


@cache
def elsewhere():
    """Another root with a leaf of its own."""
    root = certify("Other Root", pki().keys["rsa"], ca=True)
    leaf = certify("Other Leaf", pki().keys["p384"], issuer=root, issuer_key=pki().keys["rsa"])
    return root, leaf


@cache
def entry(kind):
    """A signature: "own" by the usual chain, "other" below the other root, or one that is broken."""
    if kind == "other":
        data = sign(PAYLOAD, signer=pki().signer("p384"), chain=(elsewhere()[1],), uuid=UUID)
    else:
        data = sign(PAYLOAD, signer=pki().signer(), chain=pki().chain(), uuid=UUID)
    (one,) = json.loads(data)["signatures"]
    if kind == "invalid":
        one["signature"] = b64(b"\x01" * 64)
    elif kind == "swapped":
        one["header"]["uuid"] = "another"
    elif kind == "none":
        one["protected"] = b64(b'{"alg":"none"}')
    elif kind == "bare":
        del one["header"]["x5c"]
    elif kind == "unfetched":
        del one["header"]["x5c"]
        one["header"]["x5u"] = "https://example.com/chain.pem"
    return one


def message(*kinds, payload=PAYLOAD):
    return json.dumps({"payload": b64(payload), "signatures": [entry(kind) for kind in kinds]}).encode()


def result(data, *, anchors=None, required=(), **options):
    return verify(
        data,
        anchors=[pki().root] if anchors is None else anchors,
        required_anchors=required,
        at=NOW,
        **options,
    )


def codes(report, *severities):
    return [one.code for one in report.findings if one.severity in severities]


class TestAny:
    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            ("invalid", "jws-signature-invalid"),
            ("other", "chain-untrusted"),
            ("none", "jws-alg-refused"),
            ("bare", "jws-certificate-missing"),
        ],
    )
    @pytest.mark.parametrize("first", [True, False])
    def test_one_good_of_two(self, kind, code, first):
        """One good signature is enough, wherever it stands; what is wrong with the other is a warning."""
        data = message(*(("own", kind) if first else (kind, "own")))
        assert result(data).verdict == "failed"
        report = result(data, require="any")
        assert (report.verdict, report.payload, codes(report, "error")) == ("verified", PAYLOAD, [])
        assert code in codes(report, "warning")

    @pytest.mark.parametrize(
        "kinds", [("invalid", "other"), ("invalid",), ("other", "none"), ("none", "bare")]
    )
    def test_none_good(self, kinds):
        """Two halves make no whole: one whose chain holds and one whose signature holds are not one good one."""
        report = result(message(*kinds), require="any")
        assert (report.verdict, report.payload) == ("failed", None)

    def test_unfetched(self):
        """A signature whose certificates were not fetched holds nothing up, and holds nothing."""
        assert result(message("own", "unfetched")).verdict == "not-evaluated"
        assert result(message("own", "unfetched"), require="any").verdict == "verified"
        assert result(message("unfetched"), require="any").verdict == "not-evaluated"

    def test_swapped(self):
        """A header that names another vCon is an error beside any number of good signatures."""
        report = result(message("own", "swapped"), require="any")
        assert (report.verdict, report.outcome) == ("failed", "jws-uuid-mismatch")

    def test_payload_errors_stay(self):
        """What is wrong with the file itself is outweighed by nothing."""
        data = json.loads(message("own"))
        report = result(json.dumps({**data, "parties": []}).encode(), require="any")
        assert (report.verdict, report.outcome) == ("failed", "form-hybrid")

    def test_each_envelope(self):
        """Of nested envelopes each needs a good signature."""

        def nested(inner, *kinds):
            outer = sign_over(inner)
            signatures = [outer["signatures"][0], *[entry(kind) for kind in kinds]]
            return json.dumps({**outer, "signatures": signatures}).encode()

        assert result(nested(message("own", "invalid"), "invalid"), require="any").verdict == "verified"
        broken = result(nested(message("invalid"), "invalid"), require="any")
        assert (broken.verdict, broken.payload) == ("failed", None)
        assert [one.data for one in broken.findings if one.severity == "error"] == [{"envelope": 2}]

    def test_without_anchor(self):
        """Without an anchor nothing is verified, any or all."""
        assert result(message("own"), anchors=(), require="any").verdict == "not-evaluated"

    def test_unknown(self):
        """Another word is a usage error."""
        with pytest.raises(UsageError) as caught:
            result(message("own"), require="most")
        assert caught.value.code == "require-unknown"


def sign_over(inner):
    """Sign bytes that are a signed form themselves, by hand."""
    head = b64(json.dumps({"alg": "ES256", "cty": "application/vcon"}).encode())
    value = pki().signer().sign(f"{head}.{b64(inner)}".encode(), alg="ES256")
    header = entry("own")["header"]
    return {
        "payload": b64(inner),
        "signatures": [{"protected": head, "header": header, "signature": b64(value)}],
    }


class TestRequiredAnchors:
    def test_met(self):
        """Each required anchor vouches for a signature; it is trusted for that."""
        data = message("own", "other")
        report = result(data, anchors=(), required=[pki().root, elsewhere()[0]])
        assert (report.verdict, report.payload) == ("verified", PAYLOAD)

    @pytest.mark.parametrize("require", ["all", "any"])
    def test_missing(self, require):
        """An anchor that vouches for none fails the chain, and is named by its hash."""
        report = result(message("own"), required=[elsewhere()[0]], require=require)
        assert (report.verdict, report.outcome, report.payload) == ("failed", "chain-untrusted", None)
        assert report.axes["chain"].result == "failed"
        (finding,) = [one for one in report.findings if one.severity == "error"]
        assert (finding.pointer, finding.data) == ("/signatures", {"anchor": fingerprint(elsewhere()[0])})

    def test_bad_signature_does_not_count(self):
        """The certificates alone prove nothing: the signature below the anchor must hold."""
        forged = {**entry("other"), "signature": b64(b"\x01" * 96)}
        data = json.dumps({"payload": b64(PAYLOAD), "signatures": [entry("own"), forged]}).encode()
        report = result(data, required=[elsewhere()[0]], require="any")
        assert (report.verdict, report.payload) == ("failed", None)

    def test_any_beside_required(self):
        """With any, others may fail as long as the required ones hold."""
        data = message("own", "other", "invalid")
        required = [pki().root, elsewhere()[0]]
        assert result(data, required=required).verdict == "failed"
        assert result(data, required=required, require="any").verdict == "verified"

    def test_intermediate_and_root(self):
        """An anchor on the way does not hide the required one above it."""
        report = result(message("own"), anchors=[pki().middle], required=[pki().root])
        assert report.verdict == "verified"

    def test_no_certificate_at_all(self):
        """A file without any readable certificate meets no requirement."""
        assert result(message("bare"), required=[pki().root], require="any").verdict == "failed"
