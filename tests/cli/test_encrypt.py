"""`onrecord encrypt` and `onrecord decrypt`: round trips, what is verified, and what is never written."""

import json
import stat
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.base.keys import write_private_key
from onrecord.cli.main import main
from onrecord.record.forms import sign
from onrecord.record.vcon.canonical_text import canonical_text
from support.jwe import b64, jwe
from support.vcons import NOW, UUID, answered, certify, text

DOCUMENT = answered()
PAYLOAD = canonical_text(DOCUMENT)
FAR = NOW.replace(year=2050)
AT = ["--at", "2026-11-30T12:00:00Z"]


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def place(tmp_path, pki, rsa_key):
    """A signed vCon, and two readers with keys and certificates."""
    chain = pki.chain(start=NOW.replace(year=2020), end=FAR)
    data = sign(PAYLOAD, signer=pki.signer(), chain=chain, uuid=UUID)
    (tmp_path / "s.vcon").write_bytes(data)
    for name, key in (("ec", pki.keys["p256"]), ("rsa", rsa_key)):
        write_private_key(tmp_path / f"{name}.key", key)
        certificate = certify(name, key, usage=False, start=NOW.replace(year=2020), end=FAR)
        (tmp_path / f"{name}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    (tmp_path / "root.pem").write_bytes(pki.root.public_bytes(Encoding.PEM))
    return tmp_path


@pytest.fixture
def encrypted(place, capsysbinary):
    """The vCon encrypted for both."""
    code, *_ = run(
        capsysbinary, "encrypt", place / "s.vcon", "--recipient", place / "rsa.crt",
        "--recipient", place / "ec.crt", "--out", place / "e.vcon",
    )  # fmt: skip
    assert code == 0
    return place


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out, captured.err.decode()


class TestEncrypt:
    def test_report(self, capsysbinary, place):
        """The report says for how many and with which algorithms; the file has mode 0600."""
        out = place / "e.vcon"
        code, printed, err = run(
            capsysbinary, "encrypt", place / "s.vcon", "--recipient", place / "rsa.crt",
            "--enc", "A256GCM", "--alg", "RSA-OAEP-256", "--gzip", "--out", out, "--json",
        )  # fmt: skip
        assert (code, err) == (0, "")
        assert json.loads(printed) == {
            "file": str(place / "s.vcon"),
            "out": str(out),
            "form": "encrypted",
            "uuid": UUID,
            "alg": "RSA-OAEP-256",
            "enc": "A256GCM",
            "recipients": 1,
            "findings": [],
        }
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
        assert b"clock" not in out.read_bytes()

    def test_standard_output(self, capsysbinary, place):
        """Without --out the encrypted form alone goes to standard output."""
        code, out, err = run(capsysbinary, "encrypt", place / "s.vcon", "--recipient", place / "ec.crt")
        assert (code, set(json.loads(out)) >= {"ciphertext", "recipients"}) == (0, True)
        assert "ECDH-ES+A256KW" in err

    @pytest.mark.parametrize(
        ("arguments", "status", "code"),
        [
            (["s.vcon"], 2, "usage"),
            (["s.vcon", "--recipient", "none.crt"], 2, "certificate-missing"),
            (["s.vcon", "--recipient", "s.vcon"], 2, "certificate-malformed"),
            (["s.vcon", "--recipient", "."], 2, "recipient-folder"),
            (["s.vcon", "--recipient", "rsa.crt", "--alg", "RSA1_5"], 2, "usage"),
            (["s.vcon", "--recipient", "rsa.crt", "--alg", "ECDH-ES+A256KW"], 1, "recipient-key"),
            (["s.vcon", "--recipient", "rsa.crt", "--json"], 2, "out-missing"),
            (["none.vcon", "--recipient", "rsa.crt"], 2, "file-missing"),
            (["u.vcon", "--recipient", "rsa.crt"], 2, "form-not-signed"),
        ],
    )
    def test_refused(self, capsysbinary, place, monkeypatch, arguments, status, code):
        """What cannot be encrypted, or not for this reader, has its code."""
        monkeypatch.chdir(place)
        (place / "u.vcon").write_bytes(text(DOCUMENT))
        ended, out, err = run(capsysbinary, "encrypt", *arguments)
        assert ended == status
        assert code in (err or out.decode())

    @pytest.mark.parametrize("last", ["rsa.crt", "rsa.key", "none.crt"])
    def test_wrong_recipient_is_named(self, capsysbinary, place, last):
        """Of several recipients the refused one is named by its file, and nothing is written."""
        code, out, err = run(
            capsysbinary, "encrypt", place / "s.vcon", "--recipient", place / "ec.crt", "--recipient", place / last,
            "--alg", "ECDH-ES+A256KW",
        )  # fmt: skip
        assert (code, out) == (1 if last == "rsa.crt" else 2, b"")
        assert f"({place / last})" in err
        assert ("[recipient-key]" in err) is (last == "rsa.crt")
        assert ("a private key and no certificate" in err) is (last == "rsa.key")

    @pytest.mark.parametrize(
        ("names", "line"),
        [
            (["rsa", "rsa"], "encrypted with A256CBC-HS512 for 1 recipient (RSA-OAEP)\n"),
            (["rsa", "ec"], "encrypted with A256CBC-HS512 for 2 recipients (ECDH-ES+A256KW, RSA-OAEP)\n"),
        ],
    )
    def test_line(self, capsysbinary, place, names, line):
        """The line for people counts recipients, and one that is named twice once."""
        recipients = [part for name in names for part in ("--recipient", place / f"{name}.crt")]
        code, out, err = run(capsysbinary, "encrypt", place / "s.vcon", *recipients)
        assert (code, err) == (0, line)
        assert len(json.loads(out)["recipients"]) == len(set(names))


class TestDecrypt:
    @pytest.mark.parametrize("key", ["rsa", "ec"])
    def test_each_reader(self, capsysbinary, encrypted, home, key):
        """Each reader gets the signed form as it was; without an anchor it says that nothing was verified."""
        code, out, err = run(capsysbinary, "decrypt", encrypted / "e.vcon", "--key", encrypted / f"{key}.key")
        assert code == 0
        assert out == (encrypted / "s.vcon").read_bytes()
        assert "not verified" in err
        assert "--anchor" in err

    def test_verified(self, capsysbinary, encrypted):
        """With an anchor it is verified first, and the report says so."""
        out = encrypted / "d.vcon"
        code, printed, _ = run(
            capsysbinary, "decrypt", encrypted / "e.vcon", "--key", encrypted / "rsa.key", "--anchor",
            encrypted / "root.pem", *AT, "--out", out, "--json",
        )  # fmt: skip
        document = json.loads(printed)
        assert code == 0
        assert document["verification"]["verdict"] == "verified"
        assert (document["form"], document["uuid"], document["alg"]) == ("signed", UUID, "RSA-OAEP")
        assert out.read_bytes() == (encrypted / "s.vcon").read_bytes()
        assert stat.S_IMODE(out.stat().st_mode) == 0o600

    def test_anchors_of_the_configuration(self, capsysbinary, encrypted, monkeypatch):
        """The anchors of the configuration verify without being named."""
        from onrecord.cli import trust

        found = SimpleNamespace(trust=SimpleNamespace(vcon=encrypted / "root.pem"))
        monkeypatch.setattr(trust, "Configuration", SimpleNamespace(load=lambda path: found))
        code, _, err = run(capsysbinary, "decrypt", encrypted / "e.vcon", "--key", encrypted / "rsa.key", *AT)
        assert code == 0
        assert "verified" in err

    def test_other_anchor(self, capsysbinary, encrypted):
        """What does not verify is not written, unless that is asked for."""
        arguments = ("decrypt", encrypted / "e.vcon", "--key", encrypted / "rsa.key", *AT)
        code, out, err = run(capsysbinary, *arguments, "--anchor", encrypted / "rsa.crt")
        assert (code, out) == (1, b"")
        assert "chain-untrusted" in err
        assert "nothing was written" in err
        code, out, _ = run(capsysbinary, *arguments, "--unverified")
        assert (code, out) == (0, (encrypted / "s.vcon").read_bytes())

    def test_wrong_key(self, capsysbinary, encrypted, pki):
        """A wrong key gives the code of the one error, in text and as JSON."""
        write_private_key(encrypted / "other.key", pki.keys["p384"])
        arguments = ("decrypt", encrypted / "e.vcon", "--key", encrypted / "other.key")
        code, out, err = run(capsysbinary, *arguments)
        assert (code, out) == (1, b"")
        assert "jwe-decrypt-failed" in err
        code, out, _ = run(capsysbinary, *arguments, "--out", encrypted / "d.vcon", "--json")
        document = json.loads(out)
        assert (code, document["outcome"], document["out"]) == (1, "jwe-decrypt-failed", None)
        assert not (encrypted / "d.vcon").exists()

    def test_another_vcon(self, capsysbinary, place, rsa_key, home):
        """An envelope with the uuid of another vCon is an error, and what is inside is not written."""
        message = jwe((place / "s.vcon").read_bytes(), rsa_key, unprotected={"uuid": "other"})
        (place / "e.vcon").write_text(json.dumps(message))
        arguments = ("decrypt", place / "e.vcon", "--key", place / "rsa.key")
        code, out, err = run(capsysbinary, *arguments)
        assert (code, out) == (1, b"")
        assert "jwe-uuid-mismatch" in err
        code, out, _ = run(capsysbinary, *arguments, "--unverified")
        assert (code, out) == (1, (place / "s.vcon").read_bytes())

    def test_not_signed_inside(self, capsysbinary, place, rsa_key, home):
        """What was never signed is not written at all."""
        (place / "e.vcon").write_text(json.dumps(jwe(PAYLOAD, rsa_key)))
        code, out, err = run(
            capsysbinary, "decrypt", place / "e.vcon", "--key", place / "rsa.key", "--unverified"
        )
        assert (code, out) == (1, b"")
        assert "encrypted-not-signed" in err
        assert "Agent" not in err

    @pytest.mark.parametrize("kind", ["unsigned beside", "none", "no signature", "other payload"])
    def test_forged_inside(self, capsysbinary, place, rsa_key, home, kind):
        """Without an anchor too, what is plainly not what somebody signed is not written."""
        message = json.loads((place / "s.vcon").read_bytes())
        if kind == "unsigned beside":
            message.update(DOCUMENT)
        elif kind == "none":
            message["signatures"] = [{"protected": b64(b'{"alg":"none"}'), "header": {}, "signature": ""}]
        elif kind == "no signature":
            message["signatures"] = []
        else:
            message["payload"] = b64(canonical_text({**DOCUMENT, "subject": "other"}))
        (place / "e.vcon").write_text(json.dumps(jwe(json.dumps(message).encode(), rsa_key)))
        out = place / "d.vcon"
        code, _, err = run(
            capsysbinary, "decrypt", place / "e.vcon", "--key", place / "rsa.key", "--out", out
        )
        assert code == 1
        assert "error" in err
        assert not out.exists()

    def test_empty_folder_of_anchors(self, capsysbinary, encrypted):
        """Whoever names a folder of anchors wants a verification: without any in it nothing is written."""
        (encrypted / "anchors").mkdir()
        arguments = ("decrypt", encrypted / "e.vcon", "--key", encrypted / "rsa.key")
        code, out, err = run(capsysbinary, *arguments, "--anchor", encrypted / "anchors")
        assert (code, out) == (2, b"")
        assert "certificate-missing" in err

    def test_configuration_that_cannot_be_used(self, capsysbinary, encrypted, monkeypatch):
        """A configuration that is there and broken does not turn the verification off."""
        (encrypted / "onrecord.toml").write_text("no toml")
        monkeypatch.setenv("ONRECORD_CONFIG", str(encrypted / "onrecord.toml"))
        arguments = ("decrypt", encrypted / "e.vcon", "--key", encrypted / "rsa.key")
        code, out, err = run(capsysbinary, *arguments)
        assert (code, out) == (2, b"")
        assert "configuration-" in err
        assert run(capsysbinary, *arguments, "--unverified")[0] == 0

    def test_bad_signature_inside(self, capsysbinary, place, rsa_key):
        """A bad signature inside fails."""
        message = json.loads((place / "s.vcon").read_bytes())
        message["signatures"][0]["signature"] = b64(b"\x01" * 64)
        (place / "e.vcon").write_text(json.dumps(jwe(json.dumps(message).encode(), rsa_key)))
        code, out, err = run(
            capsysbinary, "decrypt", place / "e.vcon", "--key", place / "rsa.key",
            "--anchor", place / "root.pem", *AT,
        )  # fmt: skip
        assert (code, out) == (1, b"")
        assert "jws-signature-invalid" in err

    @pytest.mark.parametrize(
        ("arguments", "status", "code"),
        [
            (["e.vcon"], 2, "usage"),
            (["e.vcon", "--key", "none.key"], 3, "key-missing"),
            (["e.vcon", "--key", "rsa.crt"], 3, "key-malformed"),
            (["s.vcon", "--key", "rsa.key"], 2, "form-not-encrypted"),
            (["s.vcon", "--key", "rsa.key", "--anchor", "root.pem", "--unverified"], 2, "usage"),
            (["e.vcon", "--key", "rsa.key", "--json"], 2, "out-missing"),
            (["e.vcon", "--key", "rsa.key", *AT], 2, "usage"),
            (["e.vcon", "--key", "-----BEGIN PRIVATE KEY-----\nSECRET"], 2, "key-not-named"),
        ],
    )
    def test_refused(self, capsysbinary, encrypted, home, monkeypatch, arguments, status, code):
        """What is wrong with key and options has its code."""
        monkeypatch.chdir(encrypted)
        (encrypted / "rsa.crt").chmod(0o644)
        ended, out, err = run(capsysbinary, "decrypt", *arguments)
        assert ended == status
        assert code in (err or out.decode())
        assert "SECRET" not in err

    def test_verify_says_so(self, capsysbinary, encrypted, home):
        """`onrecord verify` of an encrypted file is not evaluated, and names the next step."""
        code, _, err = run(capsysbinary, "verify", encrypted / "e.vcon")
        assert code == 3
        assert "onrecord decrypt" in err
