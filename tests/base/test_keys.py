"""Signing keys, key files, trust files."""

from __future__ import annotations

import os

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from onrecord.base import keys
from onrecord.base.errors import ConfigurationError, KeyAccessError
from onrecord.base.jose import verify_signature
from support.vcons import certify


def code_of(call, *args, **kwargs) -> str:
    with pytest.raises(KeyAccessError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def certificate(key):
    return certify("Test", key, usage=False)


class TestFileScheme:
    @pytest.mark.parametrize("kind", ["ed25519", "p256"])
    def test_made_key_opens_and_signs(self, tmp_path, kind):
        """A generated key file has mode 0600, opens by its URI, and signs what its public key verifies."""
        path = tmp_path / "k.pem"
        made = keys.generate_key_file(path, kind)
        signer = keys.signer_from_uri(f"file:{path}", purpose="test")
        assert path.stat().st_mode & 0o777 == 0o600
        assert signer.kid == made.kid
        for alg in signer.algs:
            verify_signature(alg, signer.public_key, b"data", signer.sign(b"data", alg=alg))

    def test_never_overwrites(self, tmp_path):
        """A key file that exists stays."""
        keys.generate_key_file(tmp_path / "k.pem")
        assert code_of(keys.generate_key_file, tmp_path / "k.pem") == "key-exists"

    @pytest.mark.parametrize(
        ("make", "what"),
        [
            pytest.param(lambda key: certificate(key).public_bytes(Encoding.PEM), "a certificate", id="pem"),
            pytest.param(lambda key: certificate(key).public_bytes(Encoding.DER), "a certificate", id="der"),
            pytest.param(
                lambda key: key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
                "a public key",
                id="public",
            ),
        ],
    )
    @pytest.mark.parametrize("mode", [0o644, 0o600])
    def test_other_half(self, tmp_path, make, what, mode):
        """A certificate or a public key in place of the key is called that, and nobody is told to close it."""
        path = tmp_path / "k.pem"
        path.write_bytes(make(ec.generate_private_key(ec.SECP256R1())))
        path.chmod(mode)
        with pytest.raises(KeyAccessError) as caught:
            keys.signer_from_uri(f"file:{path}", purpose="signing")
        assert caught.value.code == "key-malformed"
        assert f"the file holds {what} and no private key" in str(caught.value)
        assert "chmod" not in caught.value.hint

    @pytest.mark.parametrize("content", [b"", b"0", b"0\x82\x01\x00junk", b"-----BEGIN JUNK-----\n"])
    def test_other_content(self, tmp_path, content):
        """What is neither is judged by its mode first: it may be a key in a form that is not known here."""
        path = tmp_path / "k.pem"
        path.write_bytes(content)
        path.chmod(0o644)
        assert code_of(keys.signer_from_uri, f"file:{path}", purpose="p") == "key-mode"
        path.chmod(0o600)
        assert code_of(keys.signer_from_uri, f"file:{path}", purpose="p") == "key-malformed"

    def test_key_beside_its_certificate(self, tmp_path):
        """A file with both holds a private key, so it must be closed to others."""
        key = ec.generate_private_key(ec.SECP256R1())
        keys.write_private_key(tmp_path / "k.pem", key)
        with (tmp_path / "k.pem").open("ab") as file:
            file.write(certificate(key).public_bytes(Encoding.PEM))
        (tmp_path / "k.pem").chmod(0o644)
        assert code_of(keys.signer_from_uri, f"file:{tmp_path}/k.pem", purpose="p") == "key-mode"
        (tmp_path / "k.pem").chmod(0o600)
        assert keys.signer_from_uri(f"file:{tmp_path}/k.pem", purpose="p").algs == ("ES256",)

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
    def test_too_open(self, tmp_path, mode):
        """A key that group or others can reach is refused."""
        keys.generate_key_file(tmp_path / "k.pem")
        (tmp_path / "k.pem").chmod(mode)
        assert code_of(keys.signer_from_uri, f"file:{tmp_path}/k.pem", purpose="p") == "key-mode"

    def test_missing_link_directory(self, tmp_path):
        """A missing file, a symbolic link and a directory are refused, each with its reason."""
        keys.generate_key_file(tmp_path / "k.pem")
        (tmp_path / "link").symlink_to(tmp_path / "k.pem")
        os.mkfifo(tmp_path / "fifo", 0o600)
        assert code_of(keys.signer_from_uri, f"file:{tmp_path}/none", purpose="p") == "key-missing"
        assert code_of(keys.signer_from_uri, f"file:{tmp_path}/link", purpose="p") == "key-missing"
        assert code_of(keys.signer_from_uri, f"file:{tmp_path}", purpose="p") == "key-malformed"
        assert code_of(keys.signer_from_uri, f"file:{tmp_path}/fifo", purpose="p") == "key-malformed"

    @pytest.mark.root
    def test_foreign_owner(self, tmp_path):
        """A key of another uid is refused although root could read it."""
        keys.generate_key_file(tmp_path / "k.pem")
        os.chown(tmp_path / "k.pem", 59_999, 59_999)
        assert code_of(keys.signer_from_uri, f"file:{tmp_path}/k.pem", purpose="p") == "key-owner"

    def test_not_a_key(self, tmp_path):
        """Junk, a weak RSA key and a foreign curve are refused, and the content is not quoted."""
        weak = [
            rsa.generate_private_key(65537, 1024),
            ec.generate_private_key(ec.SECP256K1()),
        ]
        pems = [b"canary-secret"] + [
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            for key in weak
        ]
        for number, pem in enumerate(pems):
            path = tmp_path / f"{number}.pem"
            path.write_bytes(pem)
            path.chmod(0o600)
            with pytest.raises(KeyAccessError) as caught:
                keys.signer_from_uri(f"file:{path}", purpose="p")
            assert caught.value.code == "key-malformed"
            assert "canary" not in str(caught.value.to_json())

    @pytest.mark.parametrize("uri", ["", "nothing", "pkcs11:token", "/a/path", "FILE:/x"])
    def test_unknown_scheme(self, uri):
        """A URI of another scheme, or none, names the known ones."""
        with pytest.raises(KeyAccessError, match="file") as caught:
            keys.signer_from_uri(uri, purpose="proof")
        assert caught.value.code == "key-scheme-unknown"

    def test_repr_hides_the_key(self, tmp_path):
        """The printed form of a signer names algorithm and key id only."""
        signer = keys.generate_key_file(tmp_path / "k.pem")
        assert repr(signer) == f"<PrivateKeySigner Ed25519 {signer.kid}>"

    def test_wrong_alg(self, tmp_path):
        """A key does not sign with an algorithm of another kind."""
        signer = keys.generate_key_file(tmp_path / "k.pem", "p256")
        assert code_of(signer.sign, b"", alg="Ed25519") == "key-alg"
        assert code_of(keys.ed25519_public_bytes, signer) == "key-alg"


def test_one_key_for_two_purposes():
    """Two purposes with one public key are refused."""
    signer = keys.PrivateKeySigner(ed25519.Ed25519PrivateKey.generate())
    other = keys.PrivateKeySigner(ed25519.Ed25519PrivateKey.generate())
    keys.require_distinct({"proof": signer, "journal": other})
    assert (
        code_of(keys.require_distinct, {"proof": signer, "journal": other, "record": signer}) == "key-shared"
    )


class TestTrustFile:
    def test_round_trip(self, tmp_path):
        """Lines written are read back under their key id; comments and blank lines do not count."""
        key = ed25519.Ed25519PrivateKey.generate().public_key()
        line = keys.format_trusted_key(key.public_bytes_raw(), "policy of Ada Example")
        (tmp_path / "t").write_text("# trust\n\n" + line)
        (kid, read), *rest = keys.read_trusted_keys(tmp_path / "t").items()
        assert (kid, read.public_bytes_raw(), rest) == (keys.key_id(key), key.public_bytes_raw(), [])

    @pytest.mark.parametrize(
        "bad", ["x", "0011223344556677 AAAA c", "0011223344556677 " + "A" * 43, "\u00e9 \u00e9"]
    )
    def test_malformed(self, tmp_path, bad):
        """A line that is no key, or whose id is not that of its key, is refused with its number."""
        (tmp_path / "t").write_text("# first\n" + bad + "\n")
        with pytest.raises(ConfigurationError) as caught:
            keys.read_trusted_keys(tmp_path / "t")
        assert caught.value.code == "trust-malformed"
        assert caught.value.where.line == 2

    def test_unreadable(self, tmp_path):
        """A missing file and one that is not text are refused."""
        (tmp_path / "t").write_bytes(b"\xff\xfe")
        for name in ("t", "none"):
            with pytest.raises(ConfigurationError) as caught:
                keys.read_trusted_keys(tmp_path / name)
            assert caught.value.code == "trust-unreadable"

    def test_no_regular_file(self, tmp_path):
        """A device or a pipe in its place is refused, and nobody waits for a writer."""
        (tmp_path / "device").symlink_to("/dev/null")
        os.mkfifo(tmp_path / "pipe")
        for name in ("device", "pipe"):
            with pytest.raises(ConfigurationError) as caught:
                keys.read_trusted_keys(tmp_path / name)
            assert caught.value.code == "trust-unreadable"
