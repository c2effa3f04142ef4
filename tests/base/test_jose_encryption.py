"""Content encryption and key management: against fixed numbers, an independent construction, and damage."""

import hashlib
import hmac
import struct

import pytest
from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import KeyAccessError
from onrecord.base.hashes import b64url, b64url_decode_strict
from onrecord.base.jose_encryption import (
    ENCS,
    KEY_ALGS,
    DecryptionError,
    Sealed,
    decrypt_content,
    encrypt_content,
    is_content_key,
    key_alg,
    new_content_key,
    unwrap_key,
    wrap_key,
)

RSA = rsa.generate_private_key(65537, 2048)
CURVES = {
    "P-256": ec.generate_private_key(ec.SECP256R1()),
    "P-384": ec.generate_private_key(ec.SECP384R1()),
    "P-521": ec.generate_private_key(ec.SECP521R1()),
    "X25519": x25519.X25519PrivateKey.generate(),
}


class TestContent:
    @given(st.sampled_from(ENCS), st.binary(max_size=200), st.binary(max_size=40))
    def test_round_trip(self, enc, text, aad):
        """What is encrypted comes back, and the parts have the lengths that the algorithm fixes."""
        key = new_content_key(enc)
        sealed = encrypt_content(enc, key, text, aad=aad)
        assert decrypt_content(enc, key, sealed, aad=aad) == text
        assert (len(sealed.iv), len(sealed.tag)) == ((16, 32) if enc == "A256CBC-HS512" else (12, 16))
        assert text not in sealed.ciphertext or len(text) < 4

    def test_published_tag(self):
        """The tag of A256CBC-HS512 is the one of RFC 7518, appendix B.3."""
        key = bytes(range(64))
        iv = bytes.fromhex("1af38c2dc2b96ffdd86694092341bc04")
        aad = b"The second principle of Auguste Kerckhoffs"
        text = (
            b"A cipher system must not be required to be secret, and it must be able to fall into the "
            b"hands of the enemy without inconvenience"
        )
        left = 16 - len(text) % 16
        encryptor = Cipher(algorithms.AES(key[32:]), modes.CBC(iv)).encryptor()
        ciphertext = encryptor.update(text + bytes([left]) * left) + encryptor.finalize()
        tag = bytes.fromhex("4dd3b4c088a7f45c216839645b2012bf2e6269a8c56a816dbc1b267761955bc5")
        assert decrypt_content("A256CBC-HS512", key, Sealed(iv, ciphertext, tag), aad=aad) == text
        assert (
            hmac.new(key[:32], aad + iv + ciphertext + struct.pack(">Q", 8 * len(aad)), "sha512").digest()[
                :32
            ]
            == tag
        )

    @pytest.mark.parametrize("enc", ENCS)
    @pytest.mark.parametrize("part", ["iv", "ciphertext", "tag", "aad", "key"])
    def test_one_bit(self, enc, part):
        """A flipped bit anywhere is noticed, with the same error everywhere."""
        key = new_content_key(enc)
        sealed = encrypt_content(enc, key, b"text" * 9, aad=b"aad")
        parts = {
            "iv": sealed.iv,
            "ciphertext": sealed.ciphertext,
            "tag": sealed.tag,
            "aad": b"aad",
            "key": key,
        }
        parts[part] = bytes([parts[part][0] ^ 1]) + parts[part][1:]
        with pytest.raises(DecryptionError) as caught:
            decrypt_content(
                enc,
                parts["key"],
                Sealed(parts["iv"], parts["ciphertext"], parts["tag"]),
                aad=parts["aad"],
            )
        assert caught.value.code == "jwe-decrypt-failed"
        assert str(caught.value) == "the content cannot be decrypted with this key"

    @pytest.mark.parametrize("enc", ENCS)
    def test_short_tag(self, enc):
        """A tag, an initialization vector or a key of another length is refused, also one that would match so far."""
        key = new_content_key(enc)
        sealed = encrypt_content(enc, key, b"text", aad=b"")
        for wrong in (
            Sealed(sealed.iv, sealed.ciphertext, sealed.tag[:8]),
            Sealed(sealed.iv, sealed.ciphertext, b""),
            Sealed(sealed.iv[:8], sealed.ciphertext, sealed.tag),
            Sealed(b"", b"", b""),
        ):
            with pytest.raises(DecryptionError):
                decrypt_content(enc, key, wrong, aad=b"")
        with pytest.raises(DecryptionError):
            decrypt_content(enc, key[:-1], sealed, aad=b"")
        assert not is_content_key(enc, key[:-1])

    def test_bad_padding_is_the_same_error(self):
        """A ciphertext with a good tag and bad padding, or of odd length, is the one error too."""
        key = new_content_key("A256CBC-HS512")
        iv = bytes(16)
        for ciphertext in (bytes(16), bytes(17), b""):
            tag = hmac.new(key[:32], iv + ciphertext + bytes(8), hashlib.sha512).digest()[:32]
            with pytest.raises(DecryptionError) as caught:
                decrypt_content("A256CBC-HS512", key, Sealed(iv, ciphertext, tag), aad=b"")
            assert caught.value.code == "jwe-decrypt-failed"


def other_side(private_key, epk):
    """Derive the wrapping key as a second reading of RFC 7518, section 4.6.2."""
    if isinstance(private_key, x25519.X25519PrivateKey):
        shared = private_key.exchange(
            x25519.X25519PublicKey.from_public_bytes(b64url_decode_strict(epk["x"]))
        )
    else:
        x, y = (int.from_bytes(b64url_decode_strict(epk[name]), "big") for name in "xy")
        shared = private_key.exchange(
            ec.ECDH(), ec.EllipticCurvePublicNumbers(x, y, private_key.curve).public_key()
        )
    name = b"ECDH-ES+A256KW"
    info = struct.pack(">I", len(name)) + name + bytes(8) + struct.pack(">I", 256)
    return hashlib.sha256(struct.pack(">I", 1) + shared + info).digest()


class TestKeys:
    @pytest.mark.parametrize("alg", ["RSA-OAEP", "RSA-OAEP-256"])
    def test_rsa(self, alg):
        """RSA-OAEP uses SHA-1 as core names it, RSA-OAEP-256 SHA-256, and neither opens the other."""
        wrapped = wrap_key(alg, RSA.public_key(), b"k" * 64)
        digest = hashes.SHA1() if alg == "RSA-OAEP" else hashes.SHA256()
        scheme = padding.OAEP(padding.MGF1(digest), digest, None)
        assert RSA.decrypt(wrapped.encrypted_key, scheme) == b"k" * 64
        assert wrapped.header == {}
        assert unwrap_key(alg, RSA, wrapped.encrypted_key, {}) == b"k" * 64
        other = "RSA-OAEP-256" if alg == "RSA-OAEP" else "RSA-OAEP"
        assert unwrap_key(other, RSA, wrapped.encrypted_key, {}) is None

    @pytest.mark.parametrize("curve", CURVES)
    def test_ecdh(self, curve):
        """ECDH-ES+A256KW agrees with an independent derivation, for each curve."""
        key = CURVES[curve]
        wrapped = wrap_key("ECDH-ES+A256KW", key.public_key(), b"k" * 64)
        assert wrapped.header["epk"]["crv"] == curve
        wrapping = other_side(key, wrapped.header["epk"])
        assert keywrap.aes_key_unwrap(wrapping, wrapped.encrypted_key) == b"k" * 64
        assert unwrap_key("ECDH-ES+A256KW", key, wrapped.encrypted_key, wrapped.header) == b"k" * 64

    def test_ephemeral_keys_are_new(self):
        """Each wrapping has its own ephemeral key."""
        key = CURVES["P-256"].public_key()
        one, two = (wrap_key("ECDH-ES+A256KW", key, bytes(32)).header["epk"]["x"] for _ in range(2))
        assert one != two

    def test_party_info(self):
        """Names of the parties that others give (apu, apv) go into the derivation."""
        key = CURVES["P-256"]
        own = ec.generate_private_key(ec.SECP256R1())
        numbers = own.public_key().public_numbers()
        epk = {
            "kty": "EC",
            "crv": "P-256",
            "x": b64url(numbers.x.to_bytes(32, "big")),
            "y": b64url(numbers.y.to_bytes(32, "big")),
        }
        shared = own.exchange(ec.ECDH(), key.public_key())
        name = b"ECDH-ES+A256KW"
        info = b"".join(struct.pack(">I", len(part)) + part for part in (name, b"Alice", b"Bob"))
        wrapping = hashlib.sha256(struct.pack(">I", 1) + shared + info + struct.pack(">I", 256)).digest()
        header = {"epk": epk, "apu": b64url(b"Alice"), "apv": b64url(b"Bob")}
        encrypted = keywrap.aes_key_wrap(wrapping, b"k" * 32)
        assert unwrap_key(name.decode(), key, encrypted, header) == b"k" * 32
        assert unwrap_key(name.decode(), key, encrypted, {"epk": epk}) is None

    @pytest.mark.parametrize(
        "epk",
        [
            None,
            [],
            {},
            {"kty": "EC", "crv": "P-256"},
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
            {"kty": "EC", "crv": "P-256", "x": 1, "y": 2},
            {"kty": "EC", "crv": ["P-256"], "x": "AA", "y": "AA"},
            {"kty": "EC", "crv": "P-256", "x": "A" * 100_000, "y": "AA"},
            {"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"},
            {"kty": "OKP", "crv": "X25519", "x": b64url(bytes(32))},
        ],
    )
    @pytest.mark.parametrize("curve", ["P-256", "X25519"])
    def test_odd_ephemeral_keys(self, epk, curve):
        """An ephemeral key that is none, or a point that is not on the curve, unwraps nothing."""
        assert unwrap_key("ECDH-ES+A256KW", CURVES[curve], bytes(40), {"epk": epk}) is None

    def test_large_curve_name(self):
        """The name of a curve is compared, not written out: it may be the rest of the file, for each recipient."""

        class Large(list):
            def __str__(self):
                raise AssertionError

        epk = {"kty": "EC", "crv": Large(), "x": "AQ", "y": "AQ"}
        assert unwrap_key("ECDH-ES+A256KW", CURVES["P-256"], bytes(40), {"epk": epk}) is None

    def test_wrong_kind(self):
        """A key is never used with an algorithm of another kind."""
        assert unwrap_key("ECDH-ES+A256KW", RSA, bytes(256), {}) is None
        assert unwrap_key("RSA-OAEP", CURVES["P-256"], bytes(256), {}) is None
        assert unwrap_key("RSA1_5", RSA, bytes(256), {}) is None
        for alg, key in (("RSA-OAEP", CURVES["P-256"]), ("ECDH-ES+A256KW", RSA), ("RSA1_5", RSA)):
            with pytest.raises(KeyAccessError) as caught:
                wrap_key(alg, key.public_key(), bytes(32))
            assert caught.value.code == "key-alg"
        assert "RSA1_5" not in KEY_ALGS
        assert "dir" not in KEY_ALGS

    def test_default_algorithms(self):
        """RSA keys take RSA-OAEP, curves ECDH-ES+A256KW; short keys and keys that only sign take none."""
        assert key_alg(RSA.public_key()) == "RSA-OAEP"
        assert {key_alg(key.public_key()) for key in CURVES.values()} == {"ECDH-ES+A256KW"}
        short = rsa.generate_private_key(65537, 1024)
        others = (short, ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256K1()))
        assert [key_alg(key.public_key()) for key in others] == [None, None, None]

    @given(st.binary(max_size=300), st.sampled_from(sorted(KEY_ALGS)))
    def test_any_bytes(self, data, alg):
        """Any bytes as encrypted key are a key or None."""
        for key in (RSA, CURVES["X25519"]):
            assert (
                unwrap_key(alg, key, data, {"epk": {"kty": "OKP", "crv": "X25519", "x": b64url(data)}})
                is None
            )
