"""Signing and verifying: what verifies, what must fail, and on which axis."""

import base64
import gzip
import json
import re
import warnings
from datetime import timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed448, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import (
    BindingError,
    CertificateError,
    ConfigurationError,
    MalformedError,
    OnrecordError,
    UsageError,
)
from onrecord.base.hashes import ContentHash, b64url
from onrecord.base.keys import PrivateKeySigner
from onrecord.record.checks.checker import check
from onrecord.record.forms import certificates, sign, signer_domains, verify
from onrecord.record.forms.certificates import find_chain, fingerprint, load_certificates, read_x5c
from onrecord.record.forms.opening import MAX_NESTING
from onrecord.record.vcon.canonical_text import canonical_text
from support.data import shared_data
from support.vcons import NOW, UUID, answer, answered, certify, invocation, pki, vcon

DOCUMENT = answered()
PAYLOAD = canonical_text(DOCUMENT)


def signed(kind="p256", payload=PAYLOAD, chain=None, **options):
    return sign(payload, signer=pki().signer(kind), chain=chain or pki().chain(kind), uuid=UUID, **options)


@cache
def one_signed():
    return signed()


def result(data, *, anchors=None, at=NOW, **options):
    anchors = [pki().root] if anchors is None else anchors
    return verify(
        data if isinstance(data, bytes) else json.dumps(data).encode(), anchors=anchors, at=at, **options
    )


def codes(report, *severities):
    return [one.code for one in report.findings if one.severity in (severities or ("error", "warning"))]


def failed(report):
    return {name for name, axis in report.axes.items() if axis.result == "failed"}


def x5c(*certificates):
    return [base64.b64encode(one.public_bytes(Encoding.DER)).decode() for one in certificates]


def entry(payload=PAYLOAD, *, kind="p256", alg="ES256", protected=None, header=None, chain=None):
    """One signature with headers as given; the algorithm is in the protected one unless it says otherwise."""
    protected = {"alg": alg, "cty": "application/vcon"} if protected is None else protected
    header = {"x5c": x5c(*(chain or pki().chain(kind))), "uuid": UUID} if header is None else header
    text = b64url(json.dumps(protected).encode())
    value = pki().signer(kind).sign(f"{text}.{b64url(payload)}".encode(), alg=alg)
    return {"protected": text, "header": header, "signature": b64url(value)}


def envelope(*entries, payload=PAYLOAD, **members):
    return {"payload": b64url(payload), "signatures": list(entries), **members}


class TestSign:
    @pytest.mark.parametrize(
        ("kind", "alg"), [("p256", "ES256"), ("p384", "ES384"), ("ed25519", "EdDSA"), ("rsa", "RS256")]
    )
    @pytest.mark.req("AA-175", "AA-202")
    def test_round_trip(self, kind, alg):
        """Each kind of key signs with its algorithm, in style C, and the payload comes back byte for byte."""
        data = signed(kind)
        message = json.loads(data)
        assert set(message) == {"payload", "signatures"}
        (one,) = message["signatures"]
        protected = json.loads(base64.urlsafe_b64decode(one["protected"] + "=="))
        assert protected == {"alg": alg, "cty": "application/vcon"}
        assert set(one["header"]) == {"x5c", "uuid"}
        assert len(one["header"]["x5c"]) == 2
        report = result(data)
        assert (report.verdict, report.exit_code, codes(report)) == ("verified", 0, [])
        assert report.payload == PAYLOAD
        assert check(data).form == "signed"

    def test_ed25519_by_its_own_name(self):
        """The algorithm may be named as RFC 9864 does."""
        assert result(signed("ed25519", alg="Ed25519")).verdict == "verified"

    def test_wrong_chain(self):
        """A chain whose leaf is for another key is refused before anything is signed."""
        for chain in ((), pki().chain("p384"), tuple(reversed(pki().chain("p256")))):
            with pytest.raises(CertificateError) as caught:
                sign(PAYLOAD, signer=pki().signer(), chain=chain, uuid=UUID)
            assert caught.value.code == "chain-key-mismatch"

    def test_wrong_uuid(self):
        """The uuid that is signed for is the vCon's."""
        with pytest.raises(BindingError) as caught:
            sign(PAYLOAD, signer=pki().signer(), chain=pki().chain(), uuid=UUID.replace("0", "1"))
        assert caught.value.code == "uuid-mismatch"
        with pytest.raises(MalformedError):
            sign(b"{", signer=pki().signer(), chain=pki().chain(), uuid=UUID)

    def test_large_payload(self):
        """A payload beyond the caps of other libraries verifies."""
        big = canonical_text({**DOCUMENT, "subject": "x" * 2_000_000})
        assert result(signed(payload=big)).payload == big


class TestStyles:
    def styles(self):
        own = x5c(*pki().chain())
        alg, chain, uuid = {"alg": "ES256"}, {"x5c": own}, {"uuid": UUID}
        return {
            "A": ({}, {**alg, **chain, **uuid}, ["jws-alg-unprotected"]),
            "B": (
                {**alg, "typ": "JWT", **chain},
                {**alg, **chain, **uuid},
                ["jws-typ-foreign", "jws-header-duplicate", "jws-header-duplicate"],
            ),
            "C": ({**alg, "cty": "application/vcon"}, {**chain, **uuid}, []),
            "D": ({**alg, "cty": "application/vcon", **chain, **uuid}, {}, ["jws-x5c-protected"]),
            "E": (alg, {**alg, **chain, **uuid}, ["jws-header-duplicate"]),
        }

    @pytest.mark.parametrize("style", "ABCDE")
    def test_read(self, style):
        """All five header styles in the wild verify, each with the warnings that fit it."""
        protected, header, warnings = self.styles()[style]
        report = result(envelope(entry(protected=protected, header=header)))
        assert report.verdict == "verified"
        assert codes(report) == warnings

    def test_without_header(self):
        """With everything protected the header may be missing, with a warning."""
        one = entry(protected=self.styles()["D"][0])
        del one["header"]
        assert codes(result(envelope(one))) == ["jws-member-missing", "jws-x5c-protected"]
        assert result(envelope(one)).verdict == "verified"

    def test_flattened(self):
        """The flattened form is read with a warning, which --strict leaves one."""
        report = result({"payload": b64url(PAYLOAD), **entry()})
        assert (report.verdict, codes(report)) == ("verified", ["form-flattened"])

    def test_strict(self):
        """--strict turns an unprotected algorithm into an error, and so into a failure."""
        protected, header, _ = self.styles()["A"]
        assert result(envelope(entry(protected=protected, header=header)), strict=True).verdict == "failed"

    def test_gzip(self):
        """A gzip payload verifies; the vCon inside is handed out."""
        packed = gzip.compress(PAYLOAD, mtime=0)
        report = result(envelope(entry(packed), payload=packed))
        assert (report.verdict, report.payload) == ("verified", PAYLOAD)

    def test_padding(self):
        """Padded base64url is read with a warning; the signature is over what was received."""
        data = json.loads(signed(payload=canonical_text({**DOCUMENT, "subject": "xx"})))
        if len(data["payload"]) % 4 == 0:
            data = json.loads(signed(payload=canonical_text({**DOCUMENT, "subject": "xxx"})))
        data["signatures"][0]["signature"] += "=="
        report = result(data)
        assert (report.verdict, codes(report)) == ("verified", ["jws-padding"])

    def test_not_canonical(self):
        """A payload in another spelling verifies all the same; that it is not canonical is a note."""
        loose = json.dumps(DOCUMENT, indent=1).encode()
        report = result(envelope(entry(loose), payload=loose))
        assert (report.verdict, report.payload) == ("verified", loose)
        assert "payload-not-canonical" in codes(report, "info")


class TestMustFail:
    """Every way to cheat fails, on the axis that it attacks."""

    def check(self, data, code, axis, **options):
        report = result(data, **options)
        assert report.verdict == "failed"
        assert report.exit_code == 1
        assert code in codes(report, "error")
        assert failed(report) == {axis}
        assert report.payload is None

    @pytest.mark.req("AA-175")
    def test_tampered_payload(self):
        """A changed payload does not fit the signature."""
        message = json.loads(signed())
        message["payload"] = b64url(PAYLOAD.replace(b"clock", b"clack"))
        self.check(message, "jws-signature-invalid", "signature")

    def test_tampered_signature(self):
        """A changed signature does not verify."""
        message = json.loads(signed())
        value = bytearray(base64.urlsafe_b64decode(message["signatures"][0]["signature"] + "=="))
        value[7] ^= 1
        message["signatures"][0]["signature"] = b64url(bytes(value))
        self.check(message, "jws-signature-invalid", "signature")

    def test_tampered_protected_header(self):
        """A changed protected header does not verify, even if it means the same."""
        message = json.loads(signed())
        message["signatures"][0]["protected"] = b64url(b'{"cty":"application/vcon","alg":"ES256"}')
        self.check(message, "jws-signature-invalid", "signature")

    @pytest.mark.parametrize("value", ["", "AA", b64url(bytes(64)), b64url(b"\x01" * 63)])
    def test_empty_or_zero_signature(self, value):
        """Empty, short and all-zero signatures do not verify."""
        self.check(envelope({**entry(), "signature": value}), "jws-signature-invalid", "signature")

    @pytest.mark.parametrize("alg", ["none", "None", "HS256", "RS1", "ES256K", "", None, 5, ["ES256"]])
    def test_refused_algorithms(self, alg):
        """none, HMAC, SHA-1 and whatever is unknown is refused without looking at the signature."""
        protected = {"alg": alg, "cty": "application/vcon"}
        self.check(envelope(entry(protected=protected)), "jws-alg-refused", "signature")

    def test_hmac_with_the_public_key(self):
        """A signature made with the public certificate as HMAC secret is refused by its name."""
        import hmac

        text = b64url(b'{"alg":"HS256"}')
        secret = pki().leaf().public_bytes(Encoding.PEM)
        value = hmac.new(secret, f"{text}.{b64url(PAYLOAD)}".encode(), "sha256").digest()
        one = {**entry(), "protected": text, "signature": b64url(value)}
        self.check(envelope(one), "jws-alg-refused", "signature")

    def test_algorithm_of_another_key(self):
        """An algorithm that does not fit the leaf's key is refused."""
        one = entry(protected={"alg": "RS256"})
        self.check(envelope(one), "jws-alg-refused", "signature")

    def test_key_of_another_leaf(self):
        """A signature by one key under the certificate of another does not verify."""
        other = certify("Other", pki().root_key, issuer=pki().middle, issuer_key=pki().middle_key)
        one = entry(header={"x5c": x5c(other, pki().middle), "uuid": UUID})
        self.check(envelope(one), "jws-signature-invalid", "signature")

    @pytest.mark.parametrize("extra", [{"crit": ["exp"]}, {"crit": []}, {"b64": False}, {"b64": 0}])
    def test_crit(self, extra):
        """The header crit, whatever it lists, and b64 false are refused."""
        one = entry(protected={"alg": "ES256", **extra})
        self.check(envelope(one), "jws-crit-unsupported", "signature")

    def test_crit_unprotected(self):
        """The header crit in the unprotected header is refused just the same."""
        one = entry()
        one["header"]["crit"] = ["x"]
        self.check(envelope(one), "jws-crit-unsupported", "signature")

    @pytest.mark.parametrize("value", [None, [], "x", [5], ["!!"], ["AAAA"], [None] * 20])
    def test_no_certificate(self, value):
        """Without readable certificates there is nothing to verify with."""
        header = {"uuid": UUID} if value is None else {"uuid": UUID, "x5c": value}
        report = result(envelope(entry(header=header)))
        assert report.verdict == "failed"
        assert "jws-certificate-missing" in codes(report, "error")

    def test_conflicting_headers(self):
        """A name with different values in both headers is an error."""
        one = entry(protected={"alg": "ES256", "uuid": UUID})
        one["header"]["uuid"] = UUID.upper()
        report = result(envelope(one))
        assert report.verdict == "failed"
        assert "jws-header-conflict" in codes(report, "error")

    def test_algorithm_conflict(self):
        """The algorithm cannot be swapped from outside of the signature."""
        one = entry()
        one["header"]["alg"] = "EdDSA"
        self.check(envelope(one), "jws-header-conflict", "form")

    @pytest.mark.parametrize("entries", [[], None, {}, "x", 5])
    def test_no_signatures(self, entries):
        """A signed form without signatures is none."""
        self.check({"payload": b64url(PAYLOAD), "signatures": entries}, "jws-no-signature", "form")

    @pytest.mark.parametrize(
        "one", [None, 5, {}, {"protected": "e30"}, {"protected": 5, "header": {}, "signature": ""}]
    )
    def test_broken_entries(self, one):
        """An entry that is no signature fails the whole, also beside a good one."""
        report = result(envelope(entry(), one))
        assert report.verdict == "failed"
        assert "jws-member-missing" in codes(report, "error")

    def test_one_bad_of_two(self):
        """All signatures must verify, not any."""
        bad = {**entry(), "signature": b64url(b"\x01" * 64)}
        report = result(envelope(entry(), bad))
        assert report.verdict == "failed"
        assert report.axes["signature"].count == 1

    def test_two_good(self):
        """Two good signatures are both counted."""
        report = result(envelope(entry(), entry(kind="p384", alg="ES384")))
        assert (report.verdict, report.axes["signature"].count) == ("verified", 2)

    def test_too_many(self):
        """More signatures than the limit are refused unread."""
        self.check(envelope(*[entry()] * 65), "jws-no-signature", "form")

    def test_uuid_mismatch(self):
        """The uuid of the header is the payload's."""
        one = entry()
        one["header"]["uuid"] = "x"
        self.check(envelope(one), "jws-uuid-mismatch", "uuid")

    @pytest.mark.parametrize("member", ["uuid", "parties", "events", "created_at"])
    def test_hybrid(self, member):
        """Clear members beside the signed form are never taken for signed."""
        self.check(envelope(entry(), **{member: DOCUMENT[member]}), "form-hybrid", "form")

    @pytest.mark.parametrize(
        ("payload", "code"),
        [
            (b"no json", "jws-payload-invalid"),
            (b"[]", "form-unknown"),
            (b'{"a":1}', "form-unknown"),
            (b'{"uuid":"x","uuid":"x"}', "json-duplicate-member"),
            (gzip.compress(PAYLOAD, mtime=0)[:-3], "gzip-invalid"),
        ],
    )
    def test_payload_is_no_vcon(self, payload, code):
        """A good signature over something else than a vCon is no verified vCon."""
        report = result(envelope(entry(payload), payload=payload))
        assert report.verdict == "failed"
        assert code in codes(report, "error")
        assert "form" in failed(report)

    @pytest.mark.parametrize("payload", ["!!", 5, None, "A"])
    def test_payload_is_no_base64url(self, payload):
        """A payload that cannot be decoded is an error of form."""
        report = result({**envelope(entry()), "payload": payload})
        assert "jws-payload-invalid" in codes(report, "error")

    @pytest.mark.parametrize("extra", ["!", "+", "\n", "A", "="])
    def test_one_character_too_many(self, extra):
        """A text whose length no bytes have is no base64url, also where its signature holds."""
        payload = canonical_text({**DOCUMENT, "subject": "x" * (-len(PAYLOAD) % 3)})
        payload += b" " * (-len(payload) % 3)
        text = b64url(payload) + extra
        one = entry(payload)
        value = pki().signer().sign(f"{one['protected']}.{text}".encode(), alg="ES256")
        report = result({"payload": text, "signatures": [{**one, "signature": b64url(value)}]})
        if extra == "=":
            assert (report.verdict, codes(report)) == ("verified", ["jws-padding"])
        else:
            assert (report.verdict, codes(report, "error")) == ("failed", ["jws-payload-invalid"])

    def test_critical_extension(self):
        """A signed vCon that asks for an unsupported extension fails on its own axis."""
        payload = canonical_text({**DOCUMENT, "critical": ["x"]})
        self.check(signed(payload=payload), "critical-unsupported", "extensions")

    @pytest.mark.parametrize(
        "members", [{"critical": "x"}, {"critical": [1]}, {"critical": [], "must_support": ["x"]}]
    )
    def test_critical_in_any_disguise(self, members):
        """A list that is none, a name that is none, and the older name beside an empty new one hide nothing."""
        self.check(
            signed(payload=canonical_text({**DOCUMENT, **members})), "critical-unsupported", "extensions"
        )

    def test_content_hash(self):
        """A content hash beside the bytes it is over must match them."""
        event = answer("tool-result", content_hash="sha512-" + "A" * 86)
        payload = canonical_text(vcon(invocation(), event))
        self.check(signed(payload=payload), "content-hash-mismatch", "digest")

    @pytest.mark.parametrize("is_right", [True, False])
    def test_hash_in_two_members(self, is_right):
        """The hash of version 0.0.1, `alg` and `signature`, must match the bytes beside it too."""
        digest = str(ContentHash.of(b"hello" if is_right else b"other")).removeprefix("sha512-")
        dialog = {"type": "text", "body": "hello", "encoding": "none", "alg": "SHA-512", "signature": digest}
        old = {**DOCUMENT, "vcon": "0.0.1", "dialog": [dialog]}
        report = result(signed(payload=canonical_text(old)))
        assert report.axes["digest"].result == ("verified" if is_right else "failed")
        found = [one.pointer for one in report.findings if one.code == "content-hash-mismatch"]
        assert found == [] if is_right else ["/dialog/0/signature"]

    @pytest.mark.parametrize("token", ["sha512-", ["sha512-" + "A" * 86, "sha256-x"]])
    def test_hash_without_value(self, token):
        """A hash with nothing in it is not passed over, nor is a wrong one beside an unknown algorithm."""
        event = answer("tool-result", body="x", encoding="none", content_hash=token)
        self.check(
            signed(payload=canonical_text(vcon(invocation(), event))), "content-hash-mismatch", "digest"
        )


class TestChain:
    """The path to an anchor, and what is wrong with it."""

    def check(self, chain, code, axis, **options):
        report = result(signed(chain=chain), **options)
        assert report.verdict == "failed"
        assert code in codes(report, "error")
        assert axis in failed(report)

    def test_no_anchor(self):
        """Without an anchor chain and verdict are not evaluated, whatever the signature."""
        for anchors in ((), []):
            report = result(signed(), anchors=anchors)
            assert (report.verdict, report.exit_code) == ("not-evaluated", 3)
            assert report.axes["signature"].result == "verified"
            assert report.axes["chain"].result == "not-evaluated"
            assert "--anchor" in report.axes["chain"].grounds
            assert report.payload is None

    def test_other_anchor(self):
        """Another root, even of the same name, is no anchor."""
        other = certify("Test Root", pki().keys["p384"], ca=True)
        self.check(pki().chain(), "chain-untrusted", "chain", anchors=[other])

    def test_no_intermediate(self):
        """Without the intermediate there is no path."""
        self.check((pki().leaf(),), "chain-untrusted", "chain")

    def test_root_in_x5c_is_no_anchor(self):
        """A root that comes with the file is not trusted for that; beside a configured one it does no harm."""
        chain = (*pki().chain(), pki().root)
        other = certify("Elsewhere", pki().keys["p384"], ca=True)
        self.check(chain, "chain-untrusted", "chain", anchors=[other])
        assert result(signed(chain=chain)).verdict == "verified"

    def test_order_is_not_trusted(self):
        """After the leaf the certificates may come in any order."""
        chain = (pki().leaf(), pki().root, pki().middle)
        assert result(signed(chain=chain)).verdict == "verified"

    def test_grounds(self):
        """The chain axis names the anchor by its hash."""
        assert fingerprint(pki().root) in result(signed()).axes["chain"].grounds

    def test_intermediate_as_anchor(self):
        """An anchor need not be a root."""
        assert result(signed(chain=(pki().leaf(),)), anchors=[pki().middle]).verdict == "verified"

    def test_leaf_as_anchor(self):
        """A leaf that is itself an anchor needs no issuer."""
        leaf = pki().leaf()
        assert result(signed(chain=(leaf,)), anchors=[leaf]).verdict == "verified"

    @pytest.mark.parametrize(
        ("start", "end"),
        [(NOW - timedelta(days=9), NOW - timedelta(days=1)), (NOW + timedelta(days=1), None)],
    )
    def test_validity(self, start, end):
        """A leaf outside of its validity fails at the check time, and passes at a time inside."""
        end = end or NOW + timedelta(days=9)
        chain = pki().chain(start=start, end=end)
        self.check(chain, "chain-expired", "key-validity")
        assert result(signed(chain=chain), at=start + timedelta(hours=1)).verdict == "verified"

    def test_expired_anchor(self):
        """The anchor's own validity counts."""
        root = certify("Old Root", pki().root_key, ca=True, end=NOW - timedelta(days=1))
        leaf = certify("L", pki().keys["p256"], issuer=root, issuer_key=pki().root_key)
        self.check((leaf,), "chain-expired", "key-validity", anchors=[root])

    def issuer(self, **options):
        options.setdefault("ca", True)
        middle = certify(
            "Odd Intermediate", pki().middle_key, issuer=pki().root, issuer_key=pki().root_key, **options
        )
        leaf = certify("L", pki().keys["p256"], issuer=middle, issuer_key=pki().middle_key)
        return leaf, middle

    def test_issuer_without_ca(self):
        """An issuer that is no CA fails in strict, and is a warning in compat."""
        for options in ({"ca": False}, {"ca": False, "usage": False}):
            chain = self.issuer(**options)
            self.check(chain, "chain-not-ca", "chain")
            report = result(signed(chain=chain), chain="compat")
            assert (report.verdict, codes(report)) == ("verified", ["chain-not-ca"])

    def test_path_length(self):
        """An intermediate below one that admits none is no CA there."""
        upper_key, lower_key = pki().keys["p384"], pki().middle_key
        upper = certify("U", upper_key, issuer=pki().root, issuer_key=pki().root_key, ca=True, path_length=0)
        lower = certify("W", lower_key, issuer=upper, issuer_key=upper_key, ca=True)
        leaf = certify("L", pki().keys["p256"], issuer=lower, issuer_key=lower_key)
        self.check((leaf, lower, upper), "chain-not-ca", "chain")

    def test_unknown_critical_extension(self):
        """A critical extension that is not processed breaks the path."""
        constraint = x509.NameConstraints(
            permitted_subtrees=[x509.DNSName("example.com")], excluded_subtrees=None
        )
        self.check(self.issuer(extensions=[constraint]), "chain-untrusted", "chain")

    def test_name_constraints_that_are_not_critical(self):
        """Name constraints are not passed over where a CA forgot to call them critical."""
        constraint = x509.NameConstraints(
            permitted_subtrees=[x509.DNSName("example.com")], excluded_subtrees=None
        )
        middle = x509.CertificateBuilder(
            issuer_name=pki().root.subject,
            subject_name=pki().middle.subject,
            public_key=pki().middle_key.public_key(),
            serial_number=7,
            not_valid_before=NOW - timedelta(days=1),
            not_valid_after=NOW + timedelta(days=1),
        )
        middle = middle.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        plain = middle.sign(pki().root_key, hashes.SHA256())
        constrained = middle.add_extension(constraint, critical=False).sign(pki().root_key, hashes.SHA256())
        assert result(signed(chain=(pki().leaf(), plain))).verdict == "verified"
        self.check((pki().leaf(), constrained), "chain-untrusted", "chain")

    def test_key_that_signs_nothing(self):
        """A leaf with a key of another kind fails under compat too, where its key usage is only a warning."""
        key = ed448.Ed448PrivateKey.generate()
        leaf = certify("X", key, issuer=pki().middle, issuer_key=pki().middle_key, ca=True)
        one = {**entry(), "header": {"x5c": x5c(leaf, pki().middle), "uuid": UUID}}
        for require in ("all", "any"):
            report = result(envelope(one), chain="compat", require=require)
            assert (report.verdict, codes(report, "error")) == ("failed", ["jws-alg-refused"])

    def test_leaf_that_may_not_sign(self):
        """A CA certificate as leaf has no key usage for signatures."""
        self.check(pki().chain(ca=True), "jws-alg-refused", "signature")

    def test_weak_key(self):
        """An RSA key below 2048 bits is refused, with the certificate's code only."""
        key = rsa.generate_private_key(65537, 1024)
        leaf = certify("Weak", key, issuer=pki().middle, issuer_key=pki().middle_key)
        data = sign(PAYLOAD, signer=PrivateKeySigner(key), chain=(leaf, pki().middle), uuid=UUID)
        report = result(data)
        assert codes(report) == ["chain-weak"]
        assert failed(report) == {"signature", "chain"}

    @pytest.mark.parametrize("digest", [hashes.SHA1])
    def test_weak_certificate_signature(self, digest):
        """A certificate that is signed over SHA-1 is weak; an anchor's own signature does not matter."""
        try:
            chain = pki().chain(digest=digest())
            root = certify("Test Root", pki().root_key, ca=True, digest=digest())
        except (ValueError, UnsupportedAlgorithm):
            pytest.skip("this OpenSSL signs nothing over SHA-1")
        self.check(chain, "chain-weak", "chain")
        assert result(signed(), anchors=[root]).verdict == "verified"

    def test_reject_after(self):
        """A vCon that says it was signed after the loss of the key fails; one from before does not."""
        moment = NOW.replace(month=11, day=2)
        assert failed(result(signed(), reject_after=moment - timedelta(days=1))) == {"key-validity"}
        assert result(signed(), reject_after=moment + timedelta(days=1)).verdict == "verified"
        without = canonical_text({name: value for name, value in DOCUMENT.items() if name != "updated_at"})
        assert result(signed(payload=without), reject_after=moment).verdict == "failed"

    def test_signer_domain(self):
        """The domain part of a version 8 uuid is compared with the leaf's names, and those above them."""
        assert "signer-domain" not in codes(
            result(signed(chain=pki().chain(dns=["rec.example.com"]))), "info"
        )
        assert "signer-domain" in codes(result(signed(chain=pki().chain(dns=["example.org"]))), "info")

    def test_many_look_alikes(self):
        """Certificates of one name that do not sign each other cost a bounded number of checks."""
        leaf = pki().leaf()
        odd = [certify("Test Intermediate", pki().keys["p384"], ca=True) for _ in range(15)]
        chain = find_chain((leaf, *odd), [pki().root], at=NOW)
        assert [fault.code for fault in chain.faults] == ["chain-untrusted"]

    def test_look_alikes_that_vouch_for_each_other(self, monkeypatch):
        """Certificates that all sign each other cost one check each, for whatever they say no anchor signed them."""
        asked = []
        real = certificates._is_issued_by
        monkeypatch.setattr(
            certificates, "_is_issued_by", lambda one, issuer: asked.append(one) or real(one, issuer)
        )
        key = pki().keys["p384"]
        clique = [certify("Test Root", key, ca=True) for _ in range(15)]
        leaf = certify("L", pki().keys["p256"], issuer=clique[0], issuer_key=key)
        report = result(envelope(*[entry(chain=(leaf, *clique))] * 20))
        assert report.verdict == "failed"
        assert len(asked) <= 16

    def test_order_of_paths(self):
        """Of several paths one without faults is found, wherever it stands among others."""
        expired = [
            certify("Test Intermediate", pki().middle_key, issuer=pki().root, issuer_key=pki().root_key,
                    ca=True, end=NOW - timedelta(days=day))
            for day in (1, 2, 3)
        ]  # fmt: skip
        leaf = pki().leaf()
        for place in range(4):
            between = [*expired[:place], pki().middle, *expired[place:]]
            assert find_chain((leaf, *between), [pki().root], at=NOW).path == (leaf, pki().middle, pki().root)
            assert find_chain((leaf, *between), [pki().root], at=NOW).faults == ()

    def test_long_names(self, monkeypatch):
        """A DNS name of thousands of labels names no domain, and not each of its ends is hashed."""
        asked = []
        real = signer_domains._domain_tails
        monkeypatch.setattr(signer_domains, "_domain_tails", lambda name: asked.append(name) or real(name))
        leaf = pki().leaf(dns=["a." * 2_000 + "example.org", "rec.example.org"])
        assert signer_domains.is_of_other_domain(UUID, leaf)
        assert asked == ["rec.example.org", "example.org"]

    def test_unknown_profile(self):
        """An unknown chain profile is a usage error."""
        with pytest.raises(UsageError):
            verify(signed(), chain="loose")


class TestNested:
    """Envelopes within envelopes: renewed archives."""

    def nest(self, data, **options):
        return json.dumps(envelope(entry(data, **options), payload=data)).encode()

    def test_two(self):
        """A signed form inside of a signed form verifies both, and hands out the vCon inside."""
        report = result(self.nest(signed()))
        assert (report.verdict, report.axes["signature"].count, report.payload) == ("verified", 2, PAYLOAD)
        assert "signed-nested" in codes(report, "info")

    def test_expired_inside(self):
        """An inner certificate that expired since is a note: the outer signature vouches."""
        inner = signed(chain=pki().chain(start=NOW - timedelta(days=9), end=NOW - timedelta(days=1)))
        report = result(self.nest(inner))
        assert report.verdict == "verified"
        assert "nested-inner-expired" in codes(report, "info")

    def test_not_valid_yet_inside(self):
        """An inner certificate of the future has not expired since: nothing vouches for its signature."""
        inner = signed(chain=pki().chain(start=NOW + timedelta(days=1), end=NOW + timedelta(days=9)))
        report = result(self.nest(inner))
        assert (report.verdict, codes(report, "error")) == ("failed", ["chain-expired"])

    def test_broken_inside(self):
        """A broken inner signature is an error."""
        inner = json.loads(signed())
        inner["signatures"][0]["signature"] = b64url(b"\x01" * 64)
        report = result(self.nest(json.dumps(inner).encode()))
        assert report.verdict == "failed"
        assert [one.data for one in report.findings if one.code == "jws-signature-invalid"] == [
            {"envelope": 2}
        ]

    def test_depth(self):
        """Eight envelopes are opened, a ninth is not."""
        data = signed()
        for _ in range(MAX_NESTING - 1):
            data = self.nest(data)
        assert result(data).verdict == "verified"
        assert "jws-payload-invalid" in codes(result(self.nest(data)), "error")


class TestOtherForms:
    def test_unsigned(self):
        """An unsigned vCon is not evaluated, which is no failure and no success."""
        report = result(PAYLOAD)
        assert (report.verdict, report.outcome, report.exit_code) == ("not-evaluated", "unsigned", 3)

    def test_encrypted(self):
        """An encrypted vCon is not evaluated."""
        report = result({"ciphertext": "x", "recipients": []})
        assert (report.verdict, report.outcome) == ("not-evaluated", "encrypted")

    def test_compact(self):
        """A compact JWS is refused."""
        report = result(b"eyJh.eyJi.c2ln")
        assert (report.verdict, codes(report)) == ("failed", ["form-compact"])

    @given(st.data())
    def test_mutated(self, data):
        """A signed vCon with any byte changed is never verified with another payload, and never a crash."""
        damaged = bytearray(one_signed())
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        try:
            report = result(bytes(damaged))
        except OnrecordError:
            return
        assert report.payload in (None, PAYLOAD)

    @given(st.binary(max_size=200))
    def test_bytes(self, data):
        """Arbitrary bytes never verify."""
        try:
            assert result(data).verdict != "verified"
        except OnrecordError:
            pass


class TestCertificates:
    @given(
        st.one_of(
            st.none(), st.text(), st.lists(st.text(max_size=20)), st.binary().map(lambda b: [b64url(b)])
        )
    )
    def test_any_x5c(self, value):
        """Any header value is certificates or a CertificateError."""
        try:
            read_x5c(value)
        except CertificateError:
            pass

    @given(st.data())
    def test_damaged(self, data):
        """A certificate with any byte changed is read or a CertificateError, and a search with it never a crash."""
        damaged = bytearray(pki().middle.public_bytes(Encoding.DER))
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cryptography warns of what it will refuse one day
            try:
                (one,) = read_x5c([base64.b64encode(damaged).decode()])
            except CertificateError:
                return
            find_chain((one,), [one], at=NOW)

    def test_version_that_does_not_exist(self, tmp_path):
        """A certificate of a version yet to come is unreadable, in a header and in a file."""
        version = b"\xa0\x03\x02\x01"
        data = pki().leaf().public_bytes(Encoding.DER).replace(version + b"\x02", version + b"\x07", 1)
        header = {"x5c": [base64.b64encode(data).decode()], "uuid": UUID}
        report = result(envelope(entry(header=header)))
        assert (report.verdict, codes(report, "error")) == ("failed", ["jws-certificate-missing"])
        (tmp_path / "a.der").write_bytes(data)
        with pytest.raises(ConfigurationError) as caught:
            load_certificates(tmp_path / "a.der")
        assert caught.value.code == "certificate-malformed"

    def test_file_with_impossible_dates(self, tmp_path):
        """A certificate file is read whole when it is loaded: what is damaged in it shows there."""
        data = pki().root.public_bytes(Encoding.DER)
        place = data.index(b"\x17\x0d") + 2
        (tmp_path / "a.der").write_bytes(data[:place] + b"999999999999Z" + data[place + 13 :])
        with pytest.raises(ConfigurationError) as caught:
            load_certificates(tmp_path / "a.der")
        assert caught.value.code == "certificate-malformed"

    def test_folder_in_itself(self, tmp_path):
        """Folders in a folder of anchors are passed over, so that links in a circle end nowhere."""
        for name in ("a.pem", "b.pem"):
            (tmp_path / name).symlink_to(".")
        (tmp_path / "c.pem").write_bytes(pki().root.public_bytes(Encoding.PEM))
        assert load_certificates(tmp_path) == (pki().root,)

    def test_files(self, tmp_path):
        """Anchors are read from PEM and DER files, of several certificates, and from folders of them."""
        (tmp_path / "a.pem").write_bytes(
            pki().root.public_bytes(Encoding.PEM) + pki().middle.public_bytes(Encoding.PEM)
        )
        (tmp_path / "b.der").write_bytes(pki().root.public_bytes(Encoding.DER))
        (tmp_path / "notes.txt").write_text("no certificate")
        assert len(load_certificates(tmp_path / "a.pem")) == 2
        assert load_certificates(tmp_path / "b.der") == (pki().root,)
        assert len(load_certificates(tmp_path)) == 3

    @pytest.mark.parametrize(
        ("name", "code"), [("missing.pem", "certificate-missing"), ("bad.pem", "certificate-malformed")]
    )
    def test_bad_files(self, tmp_path, name, code):
        """A missing or damaged file is an error that names it."""
        (tmp_path / "bad.pem").write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        with pytest.raises(OnrecordError) as caught:
            load_certificates(tmp_path / name)
        assert (caught.value.code, caught.value.where.file) == (code, str(tmp_path / name))


class TestPublished:
    """The working group's file, and the vectors of the specification."""

    def manifest(self):
        rows = (shared_data("vcon", "MANIFEST.tsv")).read_text(encoding="utf-8").splitlines()[1:]
        return {row.split("\t")[0]: row.split("\t")[-1] for row in rows}

    def test_jose_vectors(self):
        """Every signed vector has the verdict, the errors and warnings, and the notes that the list says."""
        folder = shared_data("vcon", "jose")
        anchors = load_certificates(shared_data("vcon", "own-pki", "root.crt"))
        expected = self.manifest()
        paths = [path for path in sorted(folder.glob("*.vcon")) if not path.name.startswith("jwe")]
        assert len(paths) >= 25
        for path in paths:
            text = expected[f"jose/{path.name}"]
            report = result(path.read_bytes(), anchors=anchors, at=NOW.replace(hour=0))
            listed = re.findall(r"([a-z0-9-]+)\[(error|warning|info)\]", text)
            assert (report.verdict == "verified") == ("verified true" in text), path.name
            assert sorted(codes(report)) == sorted(code for code, level in listed if level != "info"), (
                path.name
            )
            assert {code for code, level in listed if level == "info"} <= set(codes(report, "info")), (
                path.name
            )

    @pytest.mark.parametrize("folder", ["wg-core", "vcon-info"])
    def test_working_group_file(self, folder):
        """The published signed example verifies in compat, not in strict, and not under another root."""
        data = shared_data("vcon", folder, "ab_call_ext_rec_signed.vcon").read_bytes()
        certificates = shared_data("vcon", "py-vcon", "certs")
        root = load_certificates(certificates / "fake_ca_root.crt")
        other = load_certificates(certificates / "fake_ca2_root.crt")
        assert result(data, anchors=root).outcome == "chain-not-ca"
        assert result(data, anchors=root, chain="compat").verdict == "verified"
        assert result(data, anchors=other, chain="compat").outcome == "chain-untrusted"
