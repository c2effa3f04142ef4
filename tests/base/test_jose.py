"""JWS bytes: signing, and what verification refuses."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from onrecord.base.errors import SignatureError
from onrecord.base.hashes import b64url_decode_strict
from onrecord.base.jose import ALLOWED_ALGS, sign_general, verify_signature
from onrecord.base.keys import PrivateKeySigner

ED = PrivateKeySigner(ed25519.Ed25519PrivateKey.generate())
EC = PrivateKeySigner(ec.generate_private_key(ec.SECP256R1()))
RSA = PrivateKeySigner(rsa.generate_private_key(65537, 2048))


def code_of(*args) -> str:
    with pytest.raises(SignatureError) as caught:
        verify_signature(*args)
    return caught.value.code


class TestVerify:
    @pytest.mark.parametrize(
        ("signer", "alg"), [(ED, "EdDSA"), (ED, "Ed25519"), (EC, "ES256"), (RSA, "RS256"), (RSA, "PS256")]
    )
    def test_each_algorithm(self, signer, alg):
        """A signature verifies under its own algorithm and fails after one changed bit or byte of data."""
        signature = signer.sign(b"data", alg=alg)
        verify_signature(alg, signer.public_key, b"data", signature)
        broken = bytes([signature[0] ^ 1]) + signature[1:]
        assert code_of(alg, signer.public_key, b"data", broken) == "jws-signature-invalid"
        assert code_of(alg, signer.public_key, b"datA", signature) == "jws-signature-invalid"
        assert code_of(alg, signer.public_key, b"data", signature + b"\0") == "jws-signature-invalid"

    @pytest.mark.parametrize("alg", ["none", "HS256", "RS1", "ES256K", "", "eddsa", "RSA-OAEP"])
    def test_refused_algorithms(self, alg):
        """Algorithms that are not on the list are refused before any key is touched."""
        assert alg not in ALLOWED_ALGS
        assert code_of(alg, ED.public_key, b"", b"") == "jws-alg-refused"

    @pytest.mark.parametrize(
        ("signer", "alg"), [(ED, "ES256"), (EC, "EdDSA"), (EC, "ES384"), (RSA, "ES256"), (EC, "RS256")]
    )
    def test_key_does_not_fit(self, signer, alg):
        """A key of another kind or curve is refused."""
        assert code_of(alg, signer.public_key, b"data", b"\0" * 64) == "jws-alg-refused"

    @pytest.mark.parametrize(
        "signature", [b"", b"\0" * 64, b"\1" * 63, b"\0" * 32 + b"\1" * 32, b"\xff" * 64]
    )
    def test_odd_ecdsa_values(self, signature):
        """Empty, zero, short and out-of-range ECDSA values do not verify."""
        assert code_of("ES256", EC.public_key, b"data", signature) == "jws-signature-invalid"

    def test_weak_rsa(self):
        """An RSA key below 2048 bits is refused."""
        weak = rsa.generate_private_key(65537, 1024)
        assert code_of("RS256", weak.public_key(), b"", b"\0" * 128) == "jws-alg-refused"


class TestSign:
    def test_general_form(self):
        """The output has payload and signatures only, alg is protected, and the signature covers both parts."""
        document = json.loads(
            sign_general(b"{}", signer=EC, alg="ES256", protected={"cty": "x"}, header={"uuid": "u"})
        )
        assert sorted(document) == ["payload", "signatures"]
        (entry,) = document["signatures"]
        assert json.loads(b64url_decode_strict(entry["protected"])) == {"alg": "ES256", "cty": "x"}
        assert entry["header"] == {"uuid": "u"}
        signing_input = f"{entry['protected']}.{document['payload']}".encode()
        verify_signature("ES256", EC.public_key, signing_input, b64url_decode_strict(entry["signature"]))

    def test_no_name_twice(self):
        """A header name in both headers is refused (RFC 7515 section 7.2.1)."""
        for protected, header in (({"a": 1}, {"a": 1}), ({}, {"alg": "ES256"})):
            with pytest.raises(SignatureError) as caught:
                sign_general(b"", signer=EC, alg="ES256", protected=protected, header=header)
            assert caught.value.code == "jws-header-duplicate"
