"""Private keys for decryption: files by URI, schemes of others, what is refused."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from onrecord.base import decryption_keys
from onrecord.base.decryption_keys import Decrypter, decrypter_from_uri
from onrecord.base.errors import KeyAccessError
from onrecord.base.jose_encryption import wrap_key


def write(path, key, *, mode=0o600, encryption=None, form=PrivateFormat.PKCS8):
    path.write_bytes(key.private_bytes(Encoding.PEM, form, encryption or NoEncryption()))
    path.chmod(mode)
    return f"file:{path}"


class TestFiles:
    @pytest.mark.parametrize(
        ("make", "alg"),
        [
            (lambda: rsa.generate_private_key(65537, 2048), "RSA-OAEP-256"),
            (lambda: ec.generate_private_key(ec.SECP521R1()), "ECDH-ES+A256KW"),
            (x25519.X25519PrivateKey.generate, "ECDH-ES+A256KW"),
        ],
        ids=["rsa", "p521", "x25519"],
    )
    def test_kinds(self, tmp_path, make, alg):
        """Each kind of key opens what was wrapped for it."""
        key = make()
        wrapped = wrap_key(alg, key.public_key(), bytes(64))
        opened = decrypter_from_uri(write(tmp_path / "k.pem", key), purpose="test")
        assert opened.unwrap(alg, wrapped.encrypted_key, wrapped.header) == bytes(64)

    def test_older_form(self, tmp_path):
        """The older PEM form of RSA keys is read too."""
        uri = write(
            tmp_path / "k.pem",
            rsa.generate_private_key(65537, 2048),
            form=PrivateFormat.TraditionalOpenSSL,
        )
        assert isinstance(decrypter_from_uri(uri, purpose="test"), Decrypter)

    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
    def test_open_to_others(self, tmp_path, mode):
        """A key that others can reach is not used."""
        uri = write(tmp_path / "k.pem", x25519.X25519PrivateKey.generate(), mode=mode)
        with pytest.raises(KeyAccessError) as caught:
            decrypter_from_uri(uri, purpose="test")
        assert caught.value.code == "key-mode"

    @pytest.mark.parametrize(
        "key",
        [
            ed25519.Ed25519PrivateKey.generate(),
            rsa.generate_private_key(65537, 1024),
            ec.generate_private_key(ec.SECP256K1()),
        ],
        ids=["ed25519", "rsa-1024", "secp256k1"],
    )
    def test_keys_that_decrypt_nothing(self, tmp_path, key):
        """Keys that only sign, short ones, and curves of nobody are refused."""
        with pytest.raises(KeyAccessError) as caught:
            decrypter_from_uri(write(tmp_path / "k.pem", key), purpose="test")
        assert caught.value.code == "key-malformed"

    def test_passphrase(self, tmp_path):
        """A key under a passphrase is refused, and its text is not told."""
        uri = write(
            tmp_path / "k.pem",
            x25519.X25519PrivateKey.generate(),
            encryption=BestAvailableEncryption(b"secret-words"),
        )
        with pytest.raises(KeyAccessError) as caught:
            decrypter_from_uri(uri, purpose="test")
        assert caught.value.code == "key-malformed"
        assert (tmp_path / "k.pem").read_text().splitlines()[1] not in str(caught.value)

    @pytest.mark.parametrize(
        ("uri", "code"),
        [
            ("file:/nowhere/k.pem", "key-missing"),
            ("k.pem", "key-scheme-unknown"),
            ("x:y", "key-scheme-unknown"),
        ],
    )
    def test_bad_uris(self, uri, code):
        """A missing file and an unknown scheme are errors of the key."""
        with pytest.raises(KeyAccessError) as caught:
            decrypter_from_uri(uri, purpose="test")
        assert caught.value.code == code

    def test_damaged(self, tmp_path):
        """Any other content is refused."""
        path = tmp_path / "k.pem"
        for data in (b"", os.urandom(40), b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"):
            path.write_bytes(data)
            path.chmod(0o600)
            with pytest.raises(KeyAccessError) as caught:
                decrypter_from_uri(f"file:{path}", purpose="test")
            assert caught.value.code == "key-malformed"

    def test_nothing_told(self, tmp_path):
        """The text form of a decrypter names no part of the key."""
        key = x25519.X25519PrivateKey.generate()
        opened = decrypter_from_uri(write(tmp_path / "k.pem", key), purpose="test")
        assert repr(opened) == "<PrivateKeyDecrypter X25519PrivateKey>"


class TestSchemes:
    def test_own_scheme(self, monkeypatch):
        """A user's scheme opens keys that this package never sees."""

        class Vault(Decrypter):
            def __init__(self, name):
                self.name = name

            def unwrap(self, alg, encrypted_key, header):
                return encrypted_key[::-1]

        monkeypatch.setitem(decryption_keys.SCHEMES, "vault", Vault)
        opened = decrypter_from_uri("vault:mine", purpose="test")
        assert (opened.name, opened.unwrap("RSA-OAEP", b"ab", {})) == ("mine", b"ba")
