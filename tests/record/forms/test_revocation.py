"""Lists of revoked certificates: what they refuse, what they vouch for, and which of them say nothing."""

from datetime import timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import ConfigurationError
from onrecord.record.forms import sign, verify
from onrecord.record.forms.certificates import UNREADABLE
from onrecord.record.forms.revocation import Revocations, Standing, load_crls
from onrecord.record.vcon.canonical_text import canonical_text
from support.vcons import NOW, UUID, answered, certify, pki

PAYLOAD = canonical_text(answered())


@cache
def chain():
    return pki().chain()


@cache
def signed():
    return sign(PAYLOAD, signer=pki().signer(), chain=chain(), uuid=UUID)


def crl(*entries, issuer=None, key=None, age=timedelta(days=1), life=timedelta(days=9), extensions=()):
    """A list with entries (certificate, time, extensions of the entry), by the intermediate unless said otherwise."""
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name((issuer or pki().middle).subject)
        .last_update(NOW - age)
        .next_update(NOW - age + life)
    )
    for certificate, since, *more in entries:
        entry = (
            x509.RevokedCertificateBuilder().serial_number(certificate.serial_number).revocation_date(since)
        )
        for extension in more:
            entry = entry.add_extension(extension, critical=False)
        builder = builder.add_revoked_certificate(entry.build())
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key or pki().middle_key, hashes.SHA256())


def signing_root(**options):
    """The root as a certificate whose key usage admits lists."""
    return crl(issuer=pki().root, key=pki().root_key, **options)


def result(*crls, at=NOW, data=None, **options):
    return verify(data or signed(), anchors=[pki().root], at=at, crls=crls, **options)


def standing(*crls, at=NOW, path=None):
    return Revocations(crls).standing(path or (*chain(), pki().root), at=at)


def codes(report, *severities):
    return [one.code for one in report.findings if one.severity in severities]


class TestVerdict:
    def test_none_given(self):
        """Without lists, that nothing was looked up is a note, and stands among what was not checked."""
        report = result()
        assert codes(report, "info", "warning") == ["revocation-unchecked"]
        assert (report.verdict, report.not_checked[-1]) == ("verified", "revocation")

    def test_all_good(self):
        """With current lists of both issuers revocation is checked, and the grounds say so."""
        report = result(crl(), signing_root())
        assert (report.verdict, codes(report, "error", "warning", "info")) == ("verified", [])
        assert "revocation" not in report.not_checked
        assert "revoked" in report.axes["key-validity"].grounds

    @pytest.mark.parametrize("with_root", [False, True])
    def test_revoked_leaf(self, with_root):
        """A revoked leaf fails the axis of its validity, whatever the other lists say."""
        lists = [crl((chain()[0], NOW - timedelta(days=2)))]
        report = result(*lists, *([signing_root()] if with_root else []))
        assert (report.verdict, report.outcome, report.payload) == ("failed", "chain-revoked", None)
        assert [name for name, axis in report.axes.items() if axis.result == "failed"] == ["key-validity"]

    def test_revoked_intermediate(self):
        """A revoked intermediate fails too."""
        revoked = crl((pki().middle, NOW - timedelta(days=2)), issuer=pki().root, key=pki().root_key)
        assert result(crl(), revoked).outcome == "chain-revoked"

    def test_given_and_not_enough(self):
        """A list was given and does not cover the path: what would be a note is a warning."""
        report = result(crl())
        assert (report.verdict, codes(report, "warning")) == ("verified", ["revocation-unchecked"])
        assert "revocation" in report.not_checked

    def test_anchor_is_not_looked_up(self):
        """An anchor is trusted by configuration; no list speaks about it."""
        leaf = chain()[0]
        report = verify(signed(), anchors=[leaf], at=NOW, crls=[crl((leaf, NOW - timedelta(days=2)))])
        assert report.verdict == "verified"

    def test_anchor_alone(self):
        """A leaf that is the anchor was looked up nowhere, so nothing says that it is on no list."""
        report = verify(signed(), anchors=[chain()[0]], at=NOW)
        assert (report.verdict, codes(report, "info")) == ("verified", ["revocation-unchecked"])
        assert "revocation" in report.not_checked
        assert "list" not in report.axes["key-validity"].grounds


class TestTime:
    def test_revoked_later(self):
        """At a check time before the revocation the certificate was good; from then on it is not."""
        lists = (crl((chain()[0], NOW + timedelta(days=1)), age=timedelta(days=3)), signing_root())
        assert standing(*lists) is Standing.GOOD
        assert standing(*lists, at=NOW + timedelta(days=1)) is Standing.REVOKED

    def test_lost_before_it_was_known(self):
        """The date from which the key is known to be lost counts, not the later one of the entry."""
        entry = (
            chain()[0],
            NOW + timedelta(days=5),
            x509.InvalidityDate((NOW - timedelta(days=5)).replace(tzinfo=None)),
        )
        assert standing(crl(entry)) is Standing.REVOKED
        assert standing(crl(entry), at=NOW - timedelta(days=6)) is Standing.UNKNOWN

    @pytest.mark.parametrize("age", [timedelta(days=30), timedelta(days=-1)])
    def test_not_current(self, age):
        """A list that is out of date, or of the future, vouches for nothing, and still refuses."""
        assert standing(crl(age=age), signing_root()) is Standing.UNKNOWN
        assert standing(crl((chain()[0], NOW - timedelta(days=40)), age=age)) is Standing.REVOKED


class TestWhichListsCount:
    def test_other_key(self):
        """A list by another key under the issuer's name says nothing, neither good nor bad."""
        forged = crl((chain()[0], NOW - timedelta(days=2)), key=ec.generate_private_key(ec.SECP256R1()))
        assert standing(forged) is Standing.UNKNOWN

    def test_other_issuer(self):
        """A list of another issuer with the same serial number says nothing."""
        other = crl((chain()[0], NOW - timedelta(days=2)), issuer=pki().root, key=pki().root_key)
        assert standing(other) is Standing.UNKNOWN

    def test_issuer_that_may_not(self):
        """An issuer whose key usage does not admit lists signs none that count."""
        plain = certify(
            "Plain CA", pki().middle_key, issuer=pki().root, issuer_key=pki().root_key, usage=False, ca=True,
            extensions=[x509.KeyUsage(
                digital_signature=False, content_commitment=False, key_encipherment=False,
                data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=False,
                encipher_only=False, decipher_only=False,
            )],
        )  # fmt: skip
        leaf = certify("L", pki().keys["p256"], issuer=plain, issuer_key=pki().middle_key)
        revoked = crl((leaf, NOW - timedelta(days=2)), issuer=plain)
        assert standing(revoked, path=(leaf, plain)) is Standing.UNKNOWN

    def test_delta(self):
        """A delta list is not used."""
        delta = crl((chain()[0], NOW - timedelta(days=2)), extensions=[(x509.DeltaCRLIndicator(1), True)])
        assert standing(delta) is Standing.UNKNOWN

    def test_unreadable_entry(self):
        """An entry that says unreadably why and when still says that the certificate is revoked."""
        odd = x509.UnrecognizedExtension(x509.CRLEntryExtensionOID.CRL_REASON, b"\xff\xff")
        assert standing(crl((chain()[0], NOW - timedelta(days=2), odd))) is Standing.REVOKED

    def test_unknown_critical_extension(self):
        """A list with a critical extension that is not processed is not used."""
        odd = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.55555.1"), b"\x05\x00")
        assert standing(crl(extensions=[(odd, True)]), signing_root()) is Standing.UNKNOWN
        assert standing(crl(extensions=[(odd, False)]), signing_root()) is Standing.GOOD

    def point(self, **options):
        values = {
            "full_name": None,
            "relative_name": None,
            "only_contains_user_certs": False,
            "only_contains_ca_certs": False,
            "only_some_reasons": None,
            "indirect_crl": False,
            "only_contains_attribute_certs": False,
        }
        return [(x509.IssuingDistributionPoint(**{**values, **options}), True)]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"only_contains_user_certs": True}, Standing.GOOD),
            ({"only_contains_ca_certs": True}, Standing.UNKNOWN),
            ({"only_contains_attribute_certs": True}, Standing.UNKNOWN),
            ({"indirect_crl": True}, Standing.UNKNOWN),
            ({"only_some_reasons": frozenset([x509.ReasonFlags.key_compromise])}, Standing.UNKNOWN),
            ({"full_name": [x509.UniformResourceIdentifier("http://example.com/1.crl")]}, Standing.UNKNOWN),
        ],
    )
    def test_scope(self, options, expected):
        """A list vouches only for what it is about."""
        assert standing(crl(extensions=self.point(**options)), signing_root()) is expected

    def test_own_point(self):
        """A list of one distribution point vouches for the certificates that name this point."""
        name = [x509.UniformResourceIdentifier("http://example.com/1.crl")]
        points = x509.CRLDistributionPoints([x509.DistributionPoint(name, None, None, None)])
        leaf = certify(
            "L", pki().keys["p256"], issuer=pki().middle, issuer_key=pki().middle_key, extensions=[points]
        )
        lists = (crl(extensions=self.point(full_name=name)), signing_root())
        assert standing(*lists, path=(leaf, pki().middle, pki().root)) is Standing.GOOD

    def test_taken_back(self):
        """An entry that takes a revocation back is none."""
        entry = (chain()[0], NOW - timedelta(days=2), x509.CRLReason(x509.ReasonFlags.remove_from_crl))
        assert standing(crl(entry), signing_root()) is Standing.GOOD


@cache
def one_list():
    return crl().public_bytes(Encoding.DER)


class TestFiles:
    def test_forms(self, tmp_path):
        """Lists are read from DER, and from PEM with several of them."""
        one, two = crl(), signing_root()
        (tmp_path / "a.crl").write_bytes(one.public_bytes(Encoding.DER))
        (tmp_path / "b.pem").write_bytes(
            b"a remark\n" + one.public_bytes(Encoding.PEM) + two.public_bytes(Encoding.PEM)
        )
        assert load_crls(tmp_path / "a.crl") == (one,)
        assert load_crls(tmp_path / "b.pem") == (one, two)

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (None, "crl-missing"),
            (b"", "crl-malformed"),
            (b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "crl-malformed"),
        ],
    )
    def test_bad(self, tmp_path, data, code):
        """A missing or damaged file is an error that names it, never a list without entries."""
        path = tmp_path / "x.crl"
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(ConfigurationError) as caught:
            load_crls(path)
        assert (caught.value.code, caught.value.where.file) == (code, str(path))

    def test_version_that_does_not_exist(self, tmp_path):
        """A list of a version yet to come is malformed."""
        data = bytearray(one_list())
        place = data.index(b"\x02\x01\x01")  # the version is the first integer
        data[place + 2] = 7
        (tmp_path / "x.crl").write_bytes(data)
        with pytest.raises(ConfigurationError) as caught:
            load_crls(tmp_path / "x.crl")
        assert caught.value.code == "crl-malformed"

    def test_folder(self, tmp_path):
        """A folder is no list."""
        with pytest.raises(ConfigurationError):
            load_crls(tmp_path)

    @given(st.data())
    def test_damaged(self, data):
        """A list with any byte changed is refused, or still says nothing wrong."""
        damaged = bytearray(one_list())
        damaged[data.draw(st.integers(0, 9_999)) % len(damaged)] ^= data.draw(st.integers(1, 255))
        try:
            one = x509.load_der_x509_crl(bytes(damaged))
        except UNREADABLE:
            return
        assert standing(one, signing_root()) in (Standing.UNKNOWN, Standing.GOOD)
