"""Signed proofs: the vector, and everything that is not exactly a value of this key."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.evidence import ForeignEvidence, JwsProfile, ProofClaims
from onrecord.authorize.evidence.jws import RECENT_VALUES
from onrecord.base.errors import KeyAccessError, MalformedError
from onrecord.base.hashes import b64url, b64url_decode_strict
from onrecord.base.jose import verify_signature
from onrecord.base.keys import PrivateKeySigner, generate_private_key

START = bytes.fromhex("00000001")
CLAIMS = ProofClaims(
    action_digest="S-sEkYFCUR01UPHSGshDxsqQ3cBhLpO12jehKE-IEUs",
    input_digest=None,
    server="filesystem",
    caller="code-review",
    issued_seconds=1_796_032_800,
    window_seconds=15,
)
PRIVATE = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
VECTOR = (
    "eyJhbGciOiJFZDI1NTE5Iiwia2lkIjoiY2EtMSIsInR5cCI6ImNhbGxwcm9vZitqd3MifQ."
    "eyJhZCI6IlMtc0VrWUZDVVIwMVVQSFNHc2hEeHNxUTNjQmhMcE8xMmplaEtFLUlFVXMiLCJleHAiOjE3OTYwMzI4MTUsImlhdCI6MTc5NjAzMjgw"
    "MCwianRpIjoiQUFBQUFRQUJBZ01FQlFZSENBa0tDd3dORGc4Iiwic3J2IjoiZmlsZXN5c3RlbSIsInN1YiI6ImNvZGUtcmV2aWV3In0."
    "S8coRwdlDtMWzna8d9sKpw0Hf8Ru3DgD9n1E3SaSe80Rplq1GBDUzCqWHRnMfjeXjAPIBrwtqENRy0OHzgY0Cg"
)
"""The vector of call-proof.md 7.2."""


def profile(**more):
    """A profile with the key of the vector and no memory of its own values: each one goes through the signature."""
    return JwsProfile(PrivateKeySigner(PRIVATE), **{"kid": "ca-1"} | more)


def forge(header=None, claims=None, *, key=PRIVATE, header_text=None, claims_text=None):
    """A value in the form of ours with parts of another choice, signed with `key`."""
    good_header, good_claims, _ = VECTOR.split(".")
    if header is not None:
        header_text = b64url(json.dumps(header, separators=(",", ":")).encode())
    if claims is not None:
        claims_text = b64url(json.dumps(claims, separators=(",", ":")).encode())
    signed = f"{header_text or good_header}.{claims_text or good_claims}"
    return f"{signed}.{b64url(key.sign(signed.encode()))}"


class TestVector:
    @pytest.mark.req("CP-055", "CP-056")
    def test_mint(self):
        """Private key 00..1f, kid ca-1 and bytes 00..0f give the value of call-proof.md 7.2, byte for byte."""
        made = profile(randomness=lambda size: bytes(range(16)) * (size // 16))
        value, key = made.mint(CLAIMS, start_id=START)
        assert value == VECTOR
        assert key == (START, START + bytes(range(16)))
        assert made.published() == {
            "kid": "ca-1",
            "publicKey": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg",
        }

    @pytest.mark.req("CP-055")
    def test_read(self):
        """A profile that did not make it reads the vector by its signature."""
        assert profile().read(VECTOR) == (START, START + bytes(range(16)))

    @pytest.mark.req("CP-056", "CP-057")
    def test_claims(self):
        """The digest, server, caller, inputs and window stand under the signature; other inputs are other claims."""
        value, _ = profile().mint(
            CLAIMS._replace(input_digest="i" * 43, window_seconds=30, caller='a"b\\c'), start_id=START
        )
        header, payload, signature = value.split(".")
        claims = json.loads(b64url_decode_strict(payload))
        assert list(claims) == sorted(claims)
        jti = claims.pop("jti")
        assert len(jti) == 27
        assert claims == {
            "ad": CLAIMS.action_digest,
            "exp": CLAIMS.issued_seconds + 30,
            "iat": CLAIMS.issued_seconds,
            "ind": "i" * 43,
            "srv": "filesystem",
            "sub": 'a"b\\c',
        }
        verify_signature(
            "Ed25519", PRIVATE.public_key(), f"{header}.{payload}".encode(), b64url_decode_strict(signature)
        )

    @pytest.mark.req("CP-059")
    def test_kid_of_a_key(self):
        """Without a name of its own, the kid is the key id of trust files; another key is another kid."""
        kids = [
            JwsProfile(PrivateKeySigner(key)).published()["kid"]
            for key in (PRIVATE, generate_private_key("ed25519"))
        ]
        assert kids[0] == PrivateKeySigner(PRIVATE).kid
        assert kids[0] != kids[1]

    def test_only_ed25519(self):
        """A key of another kind is refused before anything is signed."""
        with pytest.raises(KeyAccessError) as error:
            JwsProfile(PrivateKeySigner(generate_private_key("p256")))
        assert error.value.code == "key-alg"


class TestForeign:
    @pytest.mark.req("CP-115")
    @pytest.mark.parametrize(
        "header",
        [
            {"alg": "none", "kid": "ca-1", "typ": "callproof+jws"},
            {"alg": "EdDSA", "kid": "ca-1", "typ": "callproof+jws"},
            {"alg": "HS256", "kid": "ca-1", "typ": "callproof+jws"},
            {"alg": "Ed25519", "kid": "ca-2", "typ": "callproof+jws"},
            {"alg": "Ed25519", "kid": "ca-1", "typ": "JWT"},
            {"alg": "Ed25519", "kid": "ca-1", "typ": "callproof+jws", "jwk": {"kty": "OKP"}},
            {"alg": "Ed25519", "kid": "ca-1", "typ": "callproof+jws", "b64": False, "crit": ["b64"]},
            {"alg": "Ed25519", "crit": [], "kid": "ca-1", "typ": "callproof+jws"},
            {"alg": "Ed25519", "kid": "ca-1", "typ": "callproof+jws", "alg ": "none"},
            {"kid": "ca-1", "alg": "Ed25519", "typ": "callproof+jws"},
            {"alg": "Ed25519", "kid": "ca-1"},
            {},
        ],
    )
    def test_other_header(self, header):
        """Acceptance 39: a header that is not our constant is invalid although this very key signed it."""
        with pytest.raises(ForeignEvidence):
            profile().read(forge(header))

    @pytest.mark.req("CP-115")
    def test_other_key(self):
        """Our header over a signature of another key is invalid."""
        with pytest.raises(ForeignEvidence):
            profile().read(forge(key=generate_private_key("ed25519")))

    @pytest.mark.req("CP-115")
    @pytest.mark.parametrize("part", [1, 2])
    def test_one_changed_bit(self, part):
        """A changed claim or signature is invalid."""
        parts = VECTOR.split(".")
        data = bytearray(b64url_decode_strict(parts[part]))
        data[10] ^= 1
        parts[part] = b64url(bytes(data))
        with pytest.raises(ForeignEvidence):
            profile().read(".".join(parts))

    @pytest.mark.parametrize(
        "claims", [[], {}, {"jti": 7}, {"jti": "AAAA"}, {"jti": "AAAAAQABAgMEBQYHCAkKCwwNDg9"}, None, "x"]
    )
    def test_signed_by_us_and_no_proof(self, claims):
        """What this key signed for something else is no proof, whatever it holds."""
        with pytest.raises(ForeignEvidence):
            profile().read(forge(claims_text=b64url(json.dumps(claims).encode())))

    @pytest.mark.parametrize("text", [b"\xff", b'{"jti":"a","jti":"a"}', b"{", b"[" * 200])
    def test_signed_by_us_and_no_json(self, text):
        """Neither is a payload that strict JSON refuses."""
        with pytest.raises(ForeignEvidence):
            profile().read(forge(claims_text=b64url(text)))


class TestMalformed:
    HEADER, CLAIMS_TEXT, SIGNATURE = VECTOR.split(".")

    @pytest.mark.req("CP-115", "CP-055")
    @pytest.mark.parametrize(
        "value",
        [
            "",
            ".",
            "..",
            "a.b.c",
            f"{HEADER}.{CLAIMS_TEXT}",
            f"{HEADER}.{CLAIMS_TEXT}.",
            f"{VECTOR}.",
            f"{VECTOR}.{SIGNATURE}",
            f"{VECTOR}=",
            f" {VECTOR}",
            f"{VECTOR}\n",
            f"{HEADER}=.{CLAIMS_TEXT}.{SIGNATURE}",
            f"{HEADER}.{CLAIMS_TEXT}.{SIGNATURE[:-1]}",
            f"{HEADER}.{CLAIMS_TEXT}.{SIGNATURE}AA",
            f"{VECTOR[:-5]}+{VECTOR[-4:]}",
            f"{VECTOR[:-5]}/{VECTOR[-4:]}",
            f"{HEADER}.{CLAIMS_TEXT}.{SIGNATURE[:-1]}h",  # the same bytes, with a low bit set
            f"{HEADER[:-1]}R.{CLAIMS_TEXT}.{SIGNATURE}",
            f"{HEADER}..{SIGNATURE}",
            f"{HEADER}.{'A' * 2049}.{SIGNATURE}",
            f"{'A' * 257}.{CLAIMS_TEXT}.{SIGNATURE}",
        ],
    )
    def test_form(self, value):
        """Acceptance 40: only three parts in canonical base64url are a compact JWS of ours."""
        with pytest.raises(MalformedError):
            profile().read(value)

    @given(st.text(alphabet="AZaz09-_.=+/ \n", max_size=120))
    def test_any_text(self, text):
        """Reading any text refuses it as malformed or foreign and raises nothing else."""
        with pytest.raises((MalformedError, ForeignEvidence)):
            profile().read(text)

    @given(st.data())
    def test_mutations(self, data):
        """No one-character change of a good value is read."""
        at = data.draw(st.integers(0, len(VECTOR) - 1))
        other = data.draw(st.sampled_from("ABQgw_-.09"))
        if VECTOR[at] == other:
            return
        with pytest.raises((MalformedError, ForeignEvidence)):
            profile().read(VECTOR[:at] + other + VECTOR[at + 1 :])


class TestMemory:
    @pytest.mark.req("CP-114")
    def test_reading_twice(self):
        """A value of this process reads the same before and after its text was forgotten: by its signature then."""
        made = profile()
        value, key = made.mint(CLAIMS, start_id=START)
        assert [made.read(value) for _ in range(3)] == [key] * 3

    def test_bounded(self, monkeypatch):
        """Values that nobody presents do not pile up, and forgotten ones still read."""
        monkeypatch.setattr(PrivateKeySigner, "sign", lambda self, data, *, alg: b"\0" * 64)
        made = profile()
        for _ in range(RECENT_VALUES + 10):
            made.mint(CLAIMS, start_id=START)
        assert len(made._recent) == RECENT_VALUES

    def test_values_are_different(self):
        """No value is handed out twice within one second."""
        made = profile()
        assert len({made.mint(CLAIMS, start_id=START)[0] for _ in range(100)}) == 100
