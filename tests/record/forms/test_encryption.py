"""Encrypting and decrypting: every style is read, each fault is one error, and what comes out is what was signed."""

import base64
import copy
import gzip
import json
import re
from datetime import timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.decryption_keys import Decrypter, PrivateKeyDecrypter
from onrecord.base.errors import CertificateError, MalformedError, OnrecordError, UsageError
from onrecord.record.forms import (
    ENCRYPTED,
    UndecryptedError,
    decrypt,
    decrypt_and_verify,
    encrypt,
    open_form,
    sign,
    verify,
)
from onrecord.record.forms._rfc7516 import MAX_RECIPIENTS
from onrecord.record.forms.certificates import load_certificates
from onrecord.record.vcon.canonical_text import canonical_text
from support.data import shared_data
from support.jwe import b64, jwe
from support.vcons import NOW, UUID, answered, certify, pki

DOCUMENT = answered()
PAYLOAD = canonical_text(DOCUMENT)
UNPROTECTED = {"cty": "application/vcon", "uuid": UUID}


@cache
def keys():
    return {
        "rsa": rsa.generate_private_key(65537, 2048),
        "rsa2": rsa.generate_private_key(65537, 2048),
        "p256": ec.generate_private_key(ec.SECP256R1()),
        "p521": ec.generate_private_key(ec.SECP521R1()),
        "x25519": x25519.X25519PrivateKey.generate(),
    }


@cache
def signed():
    return sign(PAYLOAD, signer=pki().signer(), chain=pki().chain(), uuid=UUID)


def usage(**flags):
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{**dict.fromkeys(names, False), **flags})


@cache
def reader(kind):
    return certificate(kind)


def certificate(kind, *extensions, **options):
    options = {"issuer": pki().root, "issuer_key": pki().root_key, "usage": False, **options}
    return certify("Reader", keys()[kind], extensions=extensions, **options)


def encrypted(*kinds, **options):
    return encrypt(signed(), recipients=[reader(kind) for kind in kinds or ("rsa",)], at=NOW, **options)


def foreign(plaintext=None, *names, **options):
    """A message that our code had no part in."""
    options.setdefault("unprotected", UNPROTECTED)
    message = jwe(plaintext or signed(), *(keys()[name] for name in names or ("rsa",)), **options)
    return json.dumps(message).encode()


def opened(data, kind="rsa", **options):
    return decrypt(data, key=keys()[kind], **options)


def codes(findings, *severities):
    return [one.code for one in findings if one.severity in (severities or ("error", "warning"))]


def refused(data, code, kind="rsa"):
    with pytest.raises(UndecryptedError) as caught:
        opened(data if isinstance(data, bytes) else json.dumps(data).encode(), kind)
    assert caught.value.code == code
    assert code in codes(caught.value.findings, "error")
    assert caught.value.exit_code == 1
    return caught.value


class TestRoundTrip:
    @pytest.mark.parametrize("enc", ["A256CBC-HS512", "A256GCM"])
    @pytest.mark.parametrize(
        ("kind", "alg"),
        [
            ("rsa", "RSA-OAEP"),
            ("rsa", "RSA-OAEP-256"),
            ("p256", "ECDH-ES+A256KW"),
            ("p521", "ECDH-ES+A256KW"),
            ("x25519", "ECDH-ES+A256KW"),
        ],
    )
    def test_style_p(self, kind, alg, enc):
        """Each algorithm writes style P, with alg and enc authenticated, and the signed form comes back as it was."""
        data = encrypted(kind, alg=alg, enc=enc)
        message = json.loads(data)
        assert set(message) == {"protected", "unprotected", "recipients", "iv", "ciphertext", "tag"}
        decoded = json.loads(base64.urlsafe_b64decode(message["protected"] + "=="))
        assert decoded == {"alg": alg, "enc": enc}
        assert message["unprotected"] == UNPROTECTED
        (recipient,) = message["recipients"]
        assert set(recipient) - {"header"} == {"encrypted_key"}
        assert set(recipient.get("header", {})) == ({"epk"} if alg.startswith("ECDH") else set())
        result = opened(data, kind)
        assert (result.signed, result.uuid, result.alg, result.enc) == (signed(), UUID, alg, enc)
        assert result.findings == ()
        assert not result.has_errors

    def test_default_algorithms(self):
        """Without a choice RSA keys take RSA-OAEP, and the content A256CBC-HS512, as core names them."""
        result = opened(encrypted())
        assert (result.alg, result.enc) == ("RSA-OAEP", "A256CBC-HS512")

    def test_several_recipients(self):
        """Each of several recipients opens it alone; keys of different kinds give style R."""
        data = encrypted("rsa", "rsa2", "p256", "x25519")
        message = json.loads(data)
        assert [one["header"]["alg"] for one in message["recipients"]] == [
            "RSA-OAEP", "RSA-OAEP", "ECDH-ES+A256KW", "ECDH-ES+A256KW",
        ]  # fmt: skip
        for kind in ("rsa", "rsa2", "p256", "x25519"):
            assert opened(data, kind).signed == signed()
        refused(data, "jwe-decrypt-failed", "p521")

    def test_one_algorithm_for_several(self):
        """Recipients of one algorithm share it in the protected header."""
        message = json.loads(encrypted("rsa", "rsa2"))
        assert all("header" not in one for one in message["recipients"])

    def test_gzip(self):
        """With gzip the signed form is compressed inside, and comes out plain."""
        data = encrypted(gzip=True)
        assert json.loads(data)["unprotected"]["cty"] == "application/vcon+gzip"
        assert len(data) < len(encrypted())
        assert opened(data).signed == signed()

    def test_whole_file_compressed(self):
        """An encrypted file that is compressed as a whole is opened; a compressed signed file is encrypted plain."""
        assert opened(gzip.compress(encrypted())).signed == signed()
        data = encrypt(gzip.compress(signed()), recipients=[reader("rsa")], at=NOW)
        assert opened(data).signed == signed()

    def test_large(self):
        """Sizes beyond the caps of other libraries are no obstacle."""
        big = canonical_text({**DOCUMENT, "subject": "x" * 1_500_000})
        text = sign(big, signer=pki().signer(), chain=pki().chain(), uuid=UUID)
        data = encrypt(text, recipients=[reader("rsa")], at=NOW)
        report = decrypt_and_verify(data, key=keys()["rsa"], anchors=[pki().root], at=NOW)
        assert (report.verdict, report.payload) == ("verified", big)

    def test_fresh(self):
        """Content key, initialization vector and ciphertext differ each time."""
        one, two = json.loads(encrypted()), json.loads(encrypted())
        for name in ("iv", "ciphertext", "tag"):
            assert one[name] != two[name]
        assert one["recipients"] != two["recipients"]

    def test_no_clear_text(self):
        """Nothing of the vCon but its uuid stands in the file."""
        data = encrypted()
        for text in (b"clock", b"Agent", b"parties", b"x5c"):
            assert text not in data

    def test_own_key_store(self):
        """A key that never leaves its store decrypts as well."""

        class Store(Decrypter):
            asked = 0

            def unwrap(self, alg, encrypted_key, header):
                self.asked += 1
                return PrivateKeyDecrypter(keys()["rsa"]).unwrap(alg, encrypted_key, header)

        store = Store()
        assert decrypt(encrypted("rsa2", "rsa"), key=store).signed == signed()
        assert store.asked == 2


class TestStyles:
    """What others write, made by a second construction."""

    def test_p(self):
        """Style P is read without a finding."""
        result = opened(foreign())
        assert (result.signed, result.findings) == (signed(), ())

    def test_q(self):
        """Style Q, core to the letter: nothing is protected."""
        data = foreign(
            protected={},
            unprotected={**UNPROTECTED, "enc": "A256CBC-HS512"},
            headers=[{"alg": "RSA-OAEP"}],
        )
        result = opened(data)
        assert (result.signed, result.findings) == (signed(), ())

    def test_r(self):
        """Style R: only enc is protected."""
        data = foreign(protected={"enc": "A256GCM"}, headers=[{"alg": "RSA-OAEP"}], enc="A256GCM")
        assert (opened(data).signed, opened(data).findings) == (signed(), ())

    def test_working_group(self):
        """The style of the working group's example: enc in three headers, a foreign cty."""
        data = foreign(
            unprotected={**UNPROTECTED, "cty": "application/vcon+json", "enc": "A256CBC-HS512"},
            headers=[{"enc": "A256CBC-HS512"}],
        )
        result = opened(data)
        assert result.signed == signed()
        assert codes(result.findings) == ["jwe-header-duplicate", "jwe-header-duplicate", "jwe-cty-unknown"]
        headers = [finding.message for finding in result.findings if finding.code == "jwe-header-duplicate"]
        assert headers == [
            f"enc stands in several headers with equal values (header: {place})"
            for place in ("/unprotected", "/recipients/0/header")
        ]

    def test_flattened(self):
        """The flattened form is read with a warning."""
        message = jwe(signed(), keys()["rsa"], unprotected=UNPROTECTED)
        message["encrypted_key"] = message.pop("recipients")[0]["encrypted_key"]
        result = opened(json.dumps(message).encode())
        assert (result.signed, codes(result.findings)) == (signed(), ["form-flattened"])

    def test_aad(self):
        """Additional authenticated data counts, and a changed one is noticed."""
        data = foreign(aad=b64(b"more"))
        assert opened(data).signed == signed()
        refused({**json.loads(data), "aad": b64(b"mores")}, "jwe-decrypt-failed")

    def test_padding(self):
        """Padded base64url is read with a warning."""
        message = json.loads(foreign())
        message["iv"] += "=="
        assert codes(opened(json.dumps(message).encode()).findings) == ["jws-padding"]

    def test_cty_in_the_protected_header(self):
        """The content type may be protected; a foreign one is reported where it stands."""
        protected = {"alg": "RSA-OAEP", "enc": "A256CBC-HS512", "cty": "text/plain"}
        result = opened(foreign(protected=protected, unprotected={"uuid": UUID}))
        assert [(one.code, one.pointer) for one in result.findings] == [("jwe-cty-unknown", "/protected/cty")]


class TestRefusedUnopened:
    """What is refused before the key is used."""

    class Untouched(Decrypter):
        def unwrap(self, alg, encrypted_key, header):
            raise AssertionError("the key was used")

    def check(self, message, code):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        with pytest.raises(UndecryptedError) as caught:
            decrypt(data, key=self.Untouched())
        assert caught.value.code == code
        form = open_form(data)
        assert code in codes(form.envelope.in_order(form.envelope_document), "error")

    @pytest.mark.parametrize(
        "alg", ["RSA1_5", "dir", "A256KW", "PBES2-HS512+A256KW", "ECDH-ES", "none", "", None, 5, ["RSA-OAEP"]]
    )
    def test_key_management(self, alg):
        """RSA1_5, direct keys, passwords and whatever is unknown is refused by its name."""
        self.check(foreign(protected={"alg": alg, "enc": "A256CBC-HS512"}), "jwe-alg-refused")

    @pytest.mark.parametrize("enc", ["A128CBC-HS256", "A128GCM", "none", "", None, 5, ["A256GCM"]])
    def test_content_encryption(self, enc):
        """Weaker and unknown content encryption is refused."""
        self.check(foreign(protected={"alg": "RSA-OAEP", "enc": enc}), "jwe-enc-refused")

    @pytest.mark.parametrize("place", ["protected", "unprotected", "header"])
    def test_zip(self, place):
        """A zip header is refused wherever it stands."""
        extra = {"zip": "DEF"}
        protected = {"alg": "RSA-OAEP", "enc": "A256CBC-HS512", **(extra if place == "protected" else {})}
        unprotected = {**UNPROTECTED, **(extra if place == "unprotected" else {})}
        headers = [extra] if place == "header" else None
        self.check(foreign(protected=protected, unprotected=unprotected, headers=headers), "jwe-zip-refused")

    def test_crit(self):
        """The header crit is refused."""
        protected = {"alg": "RSA-OAEP", "enc": "A256CBC-HS512", "crit": ["exp"]}
        self.check(foreign(protected=protected), "jws-crit-unsupported")

    @pytest.mark.parametrize("name", ["alg", "enc", "uuid"])
    def test_conflict(self, name):
        """A name with different values in two headers is refused."""
        protected = {"alg": "RSA-OAEP", "enc": "A256CBC-HS512", "uuid": UUID}
        self.check(
            foreign(protected=protected, unprotected={}, headers=[{name: "other"}]), "jwe-header-conflict"
        )

    def test_recipients_disagree(self):
        """Two recipients with different content encryption are refused."""
        data = foreign(
            None,
            "rsa",
            "rsa2",
            protected={"alg": "RSA-OAEP"},
            headers=[{"enc": "A256CBC-HS512"}, {"enc": "A256GCM"}],
        )
        self.check(data, "jwe-header-conflict")

    @pytest.mark.parametrize("name", ["iv", "ciphertext", "tag", "protected", "unprotected", "recipients"])
    @pytest.mark.parametrize("value", [5, "!!", {"a": 1}])
    def test_broken_members(self, name, value):
        """A member that is unreadable is named, and nothing is decrypted."""
        message = {**json.loads(foreign()), name: value}
        if name == "unprotected" and isinstance(value, dict):
            return
        with pytest.raises(UndecryptedError) as caught:
            decrypt(json.dumps(message).encode(), key=self.Untouched())
        assert {"member": name} in [one.data for one in caught.value.findings]

    @pytest.mark.parametrize("name", ["iv", "tag"])
    def test_missing_members(self, name):
        """A member that is missing is named."""
        message = json.loads(foreign())
        del message[name]
        self.check(message, "jwe-decrypt-failed")

    @pytest.mark.parametrize(
        "entry", [None, 5, {}, {"encrypted_key": 5}, {"encrypted_key": "x", "header": []}]
    )
    def test_broken_recipients(self, entry):
        """A recipient that is none fails the whole, also beside a good one."""
        message = json.loads(foreign())
        message["recipients"].append(entry)
        self.check(message, "jwe-decrypt-failed")

    def test_too_many_recipients(self):
        """More recipients than the limit are refused unread; that many are tried."""
        message = json.loads(foreign())
        message["recipients"] *= MAX_RECIPIENTS + 1
        self.check(message, "jwe-decrypt-failed")

    def test_compact(self):
        """The compact form is refused by its name."""
        self.check(b"eyJh.a.b.c.d", "form-compact")

    def test_hybrid(self):
        """Clear members beside the encrypted form are reported; what comes out is what was encrypted."""
        result = opened(json.dumps({**json.loads(foreign()), "parties": [], "uuid": "x"}).encode())
        assert codes(result.findings) == ["form-hybrid", "form-hybrid"]
        assert result.has_errors
        assert result.uuid == UUID

    @pytest.mark.parametrize(("data", "kind"), [(PAYLOAD, "unsigned"), (None, "signed")])
    def test_other_forms(self, data, kind):
        """Unsigned and signed vCons have nothing to decrypt."""
        with pytest.raises(MalformedError) as caught:
            opened(data or signed())
        assert caught.value.code == "form-not-encrypted"
        assert kind in str(caught.value)


class TestRefusedOpened:
    """What the key could tell apart is one error, with one message."""

    def test_one_error(self):
        """A wrong key, a damaged key, tag, text or header give the same error, code, message and findings."""
        good = json.loads(foreign())

        def changed(name):
            message = copy.deepcopy(good)
            holder = message["recipients"][0] if name == "encrypted_key" else message
            holder[name] = ("A" if holder[name][0] != "A" else "B") + holder[name][1:]
            return message

        protected = {"enc": "A256CBC-HS512", "alg": "RSA-OAEP"}
        errors = [
            refused(good, "jwe-decrypt-failed", "rsa2"),
            refused(good, "jwe-decrypt-failed", "p256"),
            *(
                refused(changed(name), "jwe-decrypt-failed")
                for name in ("encrypted_key", "tag", "iv", "ciphertext")
            ),
            refused({**good, "protected": b64(json.dumps(protected).encode())}, "jwe-decrypt-failed"),
            refused({**good, "tag": "AA"}, "jwe-decrypt-failed"),
        ]
        assert len({(str(one), one.hint, str([f.to_json() for f in one.findings])) for one in errors}) == 1

    def test_key_of_the_wrong_length(self):
        """A content key that does not fit the content encryption is that error too."""
        message = jwe(
            signed(), keys()["rsa"], enc="A256GCM", protected={"alg": "RSA-OAEP", "enc": "A256CBC-HS512"}
        )
        refused(message, "jwe-decrypt-failed")

    def test_refused_recipient_beside_a_good_one(self):
        """A recipient with a refused algorithm is reported and passed over; the other one opens it."""
        message = json.loads(
            foreign(
                None,
                "rsa",
                "rsa2",
                protected={"enc": "A256CBC-HS512"},
                headers=[{"alg": "RSA1_5"}, {"alg": "RSA-OAEP"}],
            )
        )
        result = opened(json.dumps(message).encode(), "rsa2")
        assert (result.signed, codes(result.findings)) == (signed(), ["jwe-alg-refused"])
        refused(message, "jwe-decrypt-failed", "rsa")

    @pytest.mark.parametrize(
        "plaintext",
        [
            PAYLOAD,
            b"text",
            b"[]",
            b"{}",
            b"a.b.c",
            b"\x1f\x8bno gzip",
            b'{"payload":"e30","signatures":[]}',
            b'{"payload":"e30","signatures":null}',
            PAYLOAD[:-1] + b',"payload":"e30","signatures":[]}',
        ],
    )
    def test_not_signed(self, plaintext):
        """Whatever is inside that is no signed vCon is not handed out."""
        error = refused(foreign(plaintext), "encrypted-not-signed")
        assert PAYLOAD.decode() not in str(error)

    def test_encrypted_twice(self):
        """An encrypted vCon inside of an encrypted vCon is no signed one."""
        refused(foreign(foreign()), "encrypted-not-signed")

    def test_bomb(self):
        """A compressed text that grows without measure is stopped, under its own name."""
        with pytest.raises(MalformedError) as caught:
            opened(foreign(gzip.compress(bytes(3_200_000), mtime=0)))
        assert caught.value.code == "gzip-limit"

    def test_uuid_mismatch(self):
        """An envelope that names another vCon is an error, in whichever header it does."""
        other = UUID.replace("0", "1")
        for options in (
            {"unprotected": {"uuid": other}},
            {"unprotected": {}, "headers": [{"uuid": other}]},
            {"unprotected": {}, "headers": [{"uuid": 5}]},
        ):
            result = opened(foreign(**options))
            assert codes(result.findings) == ["jwe-uuid-mismatch"]
            assert result.has_errors


class TestEncryptRefuses:
    @pytest.mark.parametrize("data", [PAYLOAD, b"a.b.c"])
    def test_unsigned(self, data):
        """Only signed vCons are encrypted."""
        with pytest.raises(MalformedError) as caught:
            encrypt(data, recipients=[reader("rsa")], at=NOW)
        assert caught.value.code in ("form-not-signed", "form-compact")

    def test_encrypted(self):
        """An encrypted vCon is not encrypted again."""
        with pytest.raises(MalformedError) as caught:
            encrypt(encrypted(), recipients=[reader("rsa")], at=NOW)
        assert caught.value.code == "form-not-signed"
        assert "onrecord decrypt" in caught.value.hint

    def test_signed_form_with_errors(self):
        """A signed form that no reader accepts is not encrypted."""
        message = json.loads(signed())
        for broken, code in (
            ({**message, "uuid": "x"}, "form-hybrid"),
            ({**message, "signatures": []}, "jws-no-signature"),
            ({**message, "payload": b64(b"{}")}, "form-unknown"),
        ):
            with pytest.raises(MalformedError) as caught:
                encrypt(json.dumps(broken).encode(), recipients=[reader("rsa")], at=NOW)
            assert caught.value.code == code

    def test_recipients(self):
        """Nobody, and more than readers try, is refused."""
        for recipients, code in (
            ((), "recipients-missing"),
            ((reader("rsa"),) * 257, "recipients-many"),
        ):
            with pytest.raises(UsageError) as caught:
                encrypt(signed(), recipients=recipients, at=NOW)
            assert caught.value.code == code

    def test_names(self):
        """Unknown algorithms are usage errors."""
        for options, code in (
            ({"alg": "RSA1_5"}, "jwe-alg-unknown"),
            ({"enc": "A128GCM"}, "jwe-enc-unknown"),
        ):
            with pytest.raises(UsageError) as caught:
                encrypted(**options)
            assert caught.value.code == code

    @pytest.mark.parametrize(
        ("kind", "alg"), [("p256", "RSA-OAEP"), ("rsa", "ECDH-ES+A256KW"), ("x25519", "RSA-OAEP-256")]
    )
    def test_key_of_another_kind(self, kind, alg):
        """An algorithm that does not fit a recipient's key is refused."""
        with pytest.raises(CertificateError) as caught:
            encrypted(kind, alg=alg)
        assert caught.value.code == "recipient-key"

    def test_key_that_signs(self):
        """A certificate whose key only signs is refused."""
        with pytest.raises(CertificateError) as caught:
            encrypt(signed(), recipients=[pki().leaf("ed25519")], at=NOW)
        assert caught.value.code == "recipient-key"

    def test_usage(self):
        """The key usage of a recipient must admit encryption where there is one."""
        for kind, flag in (("rsa", "key_encipherment"), ("p256", "key_agreement")):
            with pytest.raises(CertificateError) as caught:
                encrypt(signed(), recipients=[certificate(kind, usage(digital_signature=True))], at=NOW)
            assert caught.value.code == "recipient-usage"
            good = certificate(kind, usage(**{flag: True}))
            assert opened(encrypt(signed(), recipients=[good], at=NOW), kind).signed == signed()

    def test_expired(self):
        """Nothing is encrypted for a certificate out of its time."""
        old = certificate("rsa", start=NOW - timedelta(days=9), end=NOW - timedelta(days=1))
        with pytest.raises(CertificateError) as caught:
            encrypt(signed(), recipients=[old], at=NOW)
        assert caught.value.code == "recipient-expired"
        encrypt(signed(), recipients=[old], at=NOW - timedelta(days=2))


class TestDecryptAndVerify:
    def report(self, data, **options):
        options = {"key": keys()["rsa"], "anchors": [pki().root], "at": NOW, **options}
        return decrypt_and_verify(data, **options)

    def test_verified(self):
        """What was signed and encrypted is verified, and the vCon inside handed out."""
        report = self.report(encrypted())
        assert (report.verdict, report.payload, next(iter(report.axes))) == (
            "verified",
            PAYLOAD,
            "decryption",
        )
        assert "RSA-OAEP" in report.axes["decryption"].grounds

    def test_wrong_key(self):
        """A wrong key is a failed verification, not an exception."""
        report = self.report(encrypted(), key=keys()["rsa2"])
        assert (report.verdict, report.outcome, report.payload) == ("failed", "jwe-decrypt-failed", None)

    def test_uuid(self):
        """An envelope of another vCon fails on the axis uuid, though the signature holds."""
        report = self.report(foreign(unprotected={"uuid": "x"}))
        assert (report.verdict, report.outcome, report.payload) == ("failed", "jwe-uuid-mismatch", None)
        assert report.axes["uuid"].result == "failed"
        assert report.axes["signature"].result == "verified"

    def test_bad_signature_inside(self):
        """A signature inside that does not verify fails."""
        message = json.loads(signed())
        message["signatures"][0]["signature"] = b64(b"\x01" * 64)
        report = self.report(foreign(json.dumps(message).encode()))
        assert (report.verdict, report.outcome) == ("failed", "jws-signature-invalid")

    def test_hybrid(self):
        """Clear members around the envelope fail it."""
        report = self.report(json.dumps({**json.loads(foreign()), "parties": []}).encode())
        assert (report.verdict, report.outcome, report.payload) == ("failed", "form-hybrid", None)

    def test_no_anchor(self):
        """Without an anchor it is decrypted and not evaluated."""
        report = self.report(encrypted(), anchors=())
        assert (report.verdict, report.axes["decryption"].result) == ("not-evaluated", "verified")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["alg", "enc", "zip", "epk", "header", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


class TestHostile:
    @settings(max_examples=60)
    @given(st.data())
    def test_mutated(self, data):
        """An encrypted vCon with any byte changed is never opened as anything else, and never a crash."""
        damaged = bytearray(mutable())
        damaged[data.draw(st.integers(0, 99_999)) % len(damaged)] = data.draw(st.integers(0, 255))
        try:
            result = decrypt(bytes(damaged), key=keys()["p256"])
        except OnrecordError:
            return
        assert result.signed == signed()

    @given(
        st.fixed_dictionaries(
            {"ciphertext": st.text(max_size=20), "recipients": VALUES},
            optional=dict.fromkeys(
                ("protected", "unprotected", "iv", "tag", "aad", "encrypted_key", "header"), VALUES
            ),
        )
    )
    def test_any_members(self, members):
        """Members of any type are findings, never an exception of another kind."""
        data = json.dumps(members).encode()
        assert open_form(data).kind == ENCRYPTED
        with pytest.raises(UndecryptedError):
            decrypt(data, key=keys()["p256"])

    @given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4))
    def test_any_protected_header(self, header):
        """Any protected header is read or refused."""
        message = {**json.loads(mutable()), "protected": b64(json.dumps(header).encode())}
        with pytest.raises(UndecryptedError):
            decrypt(json.dumps(message).encode(), key=keys()["p256"])

    def test_wide_headers(self):
        """Recipients share one header instead of copying it: the memory does not grow with their product."""
        import tracemalloc

        wide = {f"n{number}": number for number in range(20_000)}
        message = json.loads(foreign())
        message["unprotected"] |= wide
        message["recipients"] *= 200
        data = json.dumps(message).encode()
        tracemalloc.start()
        try:
            open_form(data)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 60 * len(data)


@cache
def mutable():
    return encrypted("p256", enc="A256GCM")


class TestPublished:
    """The working group's file, and the vectors of the specification."""

    def key(self, *parts):
        return load_pem_private_key(shared_data("vcon", *parts).read_bytes(), None)

    def test_vectors(self):
        """Every encrypted vector is opened and verified, or not, as the list says."""
        rows = shared_data("vcon", "MANIFEST.tsv").read_text(encoding="utf-8").splitlines()[1:]
        expected = {row.split("\t")[0]: row.split("\t")[-1] for row in rows}
        key = self.key("own-pki", "leaf-rsa.key")
        anchors = load_certificates(shared_data("vcon", "own-pki", "root.crt"))
        paths = sorted(shared_data("vcon", "jose").glob("jwe-*.vcon"))
        assert len(paths) >= 5
        for path in paths:
            text = expected[f"jose/{path.name}"]
            data = path.read_bytes()
            report = decrypt_and_verify(data, key=key, anchors=anchors, at=NOW.replace(hour=0))
            listed = re.findall(r"([a-z0-9-]+)\[(?:error|warning)\]", text)
            assert (report.verdict == "verified") == ("verified true" in text), path.name
            assert (report.axes["decryption"].result == "verified") == ("decrypted true" in text), path.name
            assert codes(report.findings) == listed, path.name

    def test_working_group_file(self):
        """The published encrypted example opens with its key, verifies in compat, and the uuids are equal."""
        data = shared_data("vcon", "wg-core", "ab_call_ext_rec_encrypted.vcon").read_bytes()
        root = load_certificates(shared_data("vcon", "py-vcon", "certs", "fake_ca_root.crt"))
        key = self.key("py-vcon", "certs", "fake_grp.key")
        result = decrypt(data, key=key)
        assert codes(result.findings) == ["jwe-header-duplicate", "jwe-header-duplicate", "jwe-cty-unknown"]
        report = decrypt_and_verify(data, key=key, anchors=root, at=NOW, chain="compat")
        assert (report.verdict, report.axes["uuid"].result) == ("verified", "verified")
        plain = verify(
            shared_data("vcon", "wg-core", "ab_call_ext_rec_signed.vcon").read_bytes(),
            anchors=root,
            at=NOW,
            chain="compat",
        )
        assert json.loads(report.payload)["parties"] == json.loads(plain.payload)["parties"]
