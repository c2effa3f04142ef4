"""`onrecord verify`: anchors, check time, what is required, verdicts, exit codes, and the vCon that was signed."""

import base64
import json
import stat
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.base.keys import write_private_key
from onrecord.cli.main import main
from onrecord.record.forms import sign
from onrecord.record.vcon.canonical_text import canonical_text
from support.vcons import NOW, UUID, answered, certify, text

DOCUMENT = answered()
AT = ["--at", "2026-11-30T12:00:00Z"]


@pytest.fixture
def signed(tmp_path, pki):
    """A signed vCon and its anchor as files."""
    data = sign(canonical_text(DOCUMENT), signer=pki.signer(), chain=pki.chain(), uuid=UUID)
    (tmp_path / "a.vcon").write_bytes(data)
    (tmp_path / "anchors").mkdir()
    (tmp_path / "anchors" / "root.pem").write_bytes(pki.root.public_bytes(Encoding.PEM))
    return tmp_path


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["verify", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out.decode(), captured.err.decode()


class TestVerify:
    @pytest.mark.parametrize("anchor", ["anchors", "anchors/root.pem"])
    def test_verified(self, capsysbinary, signed, anchor):
        """With the right anchor, a file or a folder, it is verified: 0, and the axes say on what grounds."""
        code, out, _ = run(capsysbinary, signed / "a.vcon", "--anchor", signed / anchor, *AT, "--json")
        report = json.loads(out)
        assert (code, report["verdict"], report["outcome"]) == (0, "verified", "verified")
        assert set(report) == {
            "verdict", "outcome", "axes", "notChecked", "findings", "uuid", "updated_at", "signers",
        }  # fmt: skip
        assert set(report["axes"]) == {
            "form", "signature", "chain", "key-validity", "uuid", "digest", "extensions",
        }  # fmt: skip
        assert report["axes"]["signature"]["count"] == 1
        assert "revocation" in report["notChecked"]

    def test_lines_for_programs(self, capsysbinary, signed):
        """In a pipe each axis is one line, so that a fingerprint stays in one piece, and nothing is padded."""
        code, out, _ = run(capsysbinary, signed / "a.vcon", "--anchor", signed / "anchors", *AT)
        lines = out.splitlines()
        assert code == 0
        assert [line.split()[0] for line in lines[:3]] == ["form", "signature", "chain"]
        assert len(lines[2].split()[-1]) == 64
        assert lines == [line.rstrip() for line in lines]

    def test_anchor_is_the_leaf(self, capsysbinary, signed, pki):
        """Without a list of revoked certificates nothing says that the signer is on none, not even a trusted leaf."""
        (signed / "leaf.pem").write_bytes(pki.chain()[0].public_bytes(Encoding.PEM))
        _, out, _ = run(capsysbinary, signed / "a.vcon", "--anchor", signed / "leaf.pem", *AT)
        assert "no list" not in out

    def test_no_anchor(self, capsysbinary, signed, home):
        """Without anchor and configuration it is not evaluated: 3, with what to do."""
        code, out, err = run(capsysbinary, signed / "a.vcon")
        assert code == 3
        assert "not-evaluated" in out
        assert "--anchor" in err

    def test_tampered(self, capsysbinary, signed):
        """A changed file fails: 1, with the reason as the last line."""
        message = json.loads((signed / "a.vcon").read_bytes())
        message["signatures"][0]["signature"] = "AA" + message["signatures"][0]["signature"][2:]
        (signed / "a.vcon").write_bytes(json.dumps(message).encode())
        code, out, _ = run(capsysbinary, signed / "a.vcon", "--anchor", signed / "anchors", *AT)
        assert code == 1
        assert out.strip().endswith("failed: jws-signature-invalid")

    def test_time(self, capsysbinary, signed):
        """The check time decides about validity; a time without offset is a usage error."""
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors")
        assert run(capsysbinary, *arguments, "--at", "2036-01-01T00:00:00Z")[0] == 1
        assert run(capsysbinary, *arguments, "--at", "2036-01-01")[0] == 2

    def test_compat(self, capsysbinary, tmp_path, pki):
        """--chain compat accepts an issuer that is no CA, strict does not."""
        middle = certify("M", pki.middle_key, issuer=pki.root, issuer_key=pki.root_key, usage=False)
        leaf = certify("L", pki.keys["p256"], issuer=middle, issuer_key=pki.middle_key)
        data = sign(canonical_text(DOCUMENT), signer=pki.signer(), chain=(leaf, middle), uuid=UUID)
        (tmp_path / "a.vcon").write_bytes(data)
        (tmp_path / "root.pem").write_bytes(pki.root.public_bytes(Encoding.PEM))
        arguments = (tmp_path / "a.vcon", "--anchor", tmp_path / "root.pem", *AT)
        assert run(capsysbinary, *arguments)[0] == 1
        assert run(capsysbinary, *arguments, "--chain", "compat")[0] == 0
        assert run(capsysbinary, *arguments, "--chain", "loose")[0] == 2

    @pytest.mark.parametrize(
        ("data", "code"),
        [(text(DOCUMENT), 3), (b'{"ciphertext":"x","recipients":[]}', 3), (b"{", 2), (b'{"a":1}', 2)],
    )
    def test_other_input(self, capsysbinary, tmp_path, home, data, code):
        """Unsigned and encrypted files are not evaluated, what is no vCon is an input error."""
        (tmp_path / "a.vcon").write_bytes(data)
        assert run(capsysbinary, tmp_path / "a.vcon")[0] == code

    @pytest.mark.parametrize("name", ["none.pem", "a.vcon"])
    def test_bad_anchor(self, capsysbinary, signed, name):
        """An anchor that is missing or no certificate is a usage error, never a verdict."""
        assert run(capsysbinary, signed / "a.vcon", "--anchor", signed / name)[0] == 2

    def test_anchors_of_the_configuration(self, capsysbinary, signed, monkeypatch):
        """Without --anchor those of trust.vcon are used."""
        from types import SimpleNamespace

        from onrecord.cli import trust

        found = SimpleNamespace(trust=SimpleNamespace(vcon=signed / "anchors"))
        monkeypatch.setattr(trust, "Configuration", SimpleNamespace(load=lambda path: found))
        assert run(capsysbinary, signed / "a.vcon", *AT)[0] == 0

    def test_expired_now(self, capsysbinary, tmp_path, pki):
        """Without --at the present counts."""
        chain = pki.chain(start=NOW - timedelta(days=8000), end=NOW - timedelta(days=7000))
        data = sign(canonical_text(DOCUMENT), signer=pki.signer(), chain=chain, uuid=UUID)
        (tmp_path / "a.vcon").write_bytes(data)
        (tmp_path / "root.pem").write_bytes(pki.root.public_bytes(Encoding.PEM))
        assert run(capsysbinary, tmp_path / "a.vcon", "--anchor", tmp_path / "root.pem")[0] == 1

    def test_warnings_of_libraries(self, capsysbinary, signed, pki, recwarn):
        """What cryptography thinks of a certificate stays out of the output, with the paths it names."""
        data = pki.leaf().public_bytes(Encoding.DER)
        place = data.index(b"\xa0\x03\x02\x01\x02") + 7  # the first byte of the serial number
        negative = data[:place] + b"\x80" + data[place + 1 :]
        message = json.loads((signed / "a.vcon").read_bytes())
        message["signatures"][0]["header"]["x5c"] = [base64.b64encode(negative).decode()]
        (signed / "odd.vcon").write_text(json.dumps(message))
        code, _, _ = run(capsysbinary, signed / "odd.vcon", "--anchor", signed / "anchors", *AT)
        assert code == 1
        assert not recwarn.list


class TestRequired:
    @pytest.fixture
    def both(self, signed, pki):
        """Beside the signed vCon one with a second, broken signature, and another root."""
        message = json.loads((signed / "a.vcon").read_bytes())
        broken = {**message["signatures"][0], "signature": "AA"}
        message["signatures"].append(broken)
        (signed / "two.vcon").write_bytes(json.dumps(message).encode())
        other = certify("Other Root", pki.keys["p384"], ca=True)
        (signed / "other.pem").write_bytes(other.public_bytes(Encoding.PEM))
        return signed

    def test_any(self, capsysbinary, both):
        """--require any is content with one good signature, all is not."""
        arguments = (both / "two.vcon", "--anchor", both / "anchors", *AT)
        assert run(capsysbinary, *arguments)[0] == 1
        assert run(capsysbinary, *arguments, "--require", "any")[0] == 0
        assert run(capsysbinary, *arguments, "--require", "most")[0] == 2

    def test_anchors(self, capsysbinary, both):
        """--require-anchor trusts a certificate and asks for a signature below it."""
        root, other = both / "anchors" / "root.pem", both / "other.pem"
        arguments = (both / "a.vcon", *AT)
        assert run(capsysbinary, *arguments, "--require-anchor", root)[0] == 0
        code, out, _ = run(capsysbinary, *arguments, "--require-anchor", root, "--require-anchor", other)
        assert code == 1
        assert out.strip().endswith("failed: chain-untrusted")

    @pytest.mark.parametrize("option", ["--anchor", "--require-anchor"])
    def test_folder_without_certificates(self, capsysbinary, both, option):
        """A folder without certificates asks for nothing, which nobody means who names it."""
        (both / "empty").mkdir()
        arguments = (both / "a.vcon", *AT, "--anchor", both / "anchors", option, both / "empty")
        code, _, err = run(capsysbinary, *arguments)
        assert code == 2
        assert "certificate-missing" in err

    def test_reject_after(self, capsysbinary, signed):
        """--reject-after refuses what says it was signed after the key was lost."""
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors", *AT, "--reject-after")
        assert run(capsysbinary, *arguments, "2026-11-02T12:00:03Z")[0] == 0
        assert run(capsysbinary, *arguments, "2026-11-02T12:00:02Z")[0] == 1
        assert run(capsysbinary, *arguments, "yesterday")[0] == 2


class TestRevoked:
    def crl(self, pki, path, *certificates):
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(pki.middle.subject)
            .last_update(NOW - timedelta(days=1))
            .next_update(NOW + timedelta(days=9))
        )
        for certificate in certificates:
            entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(NOW - timedelta(days=2)).build())
        path.write_bytes(builder.sign(pki.middle_key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path

    def test_lists(self, capsysbinary, signed, pki):
        """--crl looks up: a revoked certificate fails, a list that does not cover all leaves a warning."""
        message = json.loads((signed / "a.vcon").read_bytes())
        leaf = x509.load_der_x509_certificate(base64.b64decode(message["signatures"][0]["header"]["x5c"][0]))
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors", *AT)
        code, out, _ = run(capsysbinary, *arguments, "--crl", self.crl(pki, signed / "r.crl", leaf))
        assert code == 1
        assert out.strip().endswith("failed: chain-revoked")
        code, out, _ = run(capsysbinary, *arguments, "--crl", self.crl(pki, signed / "g.crl"))
        assert code == 0
        assert "revocation-unchecked" in out

    @pytest.mark.parametrize("name", ["none.crl", "a.vcon"])
    def test_bad_list(self, capsysbinary, signed, name):
        """A list that is missing or none is a usage error, never an empty list."""
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors", *AT)
        assert run(capsysbinary, *arguments, "--crl", signed / name)[0] == 2


class TestOut:
    def test_only_what_was_signed(self, capsysbinary, signed):
        """--out writes the vCon byte for byte as it was signed, into a new file of mode 0600."""
        out = signed / "v.vcon"
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors", *AT)
        code, printed, _ = run(capsysbinary, *arguments, "--out", out, "--json")
        assert (code, json.loads(printed)["out"]) == (0, str(out))
        assert out.read_bytes() == canonical_text(DOCUMENT)
        assert stat.S_IMODE(out.stat().st_mode) == 0o600

    def test_standard_output(self, capsysbinary, signed):
        """With - the vCon alone goes to standard output, the report to standard error."""
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors", *AT, "--out", "-")
        code, out, err = run(capsysbinary, *arguments)
        assert (code, out.encode()) == (0, canonical_text(DOCUMENT))
        assert err.strip().endswith("verified")
        assert run(capsysbinary, *arguments, "--json")[0] == 2

    def test_nothing_unverified(self, capsysbinary, signed, home):
        """What fails or is not evaluated is not written."""
        out = signed / "v.vcon"
        for more in ((), ("--anchor", signed / "anchors", "--at", "2036-01-01T00:00:00Z")):
            code, _, err = run(capsysbinary, signed / "a.vcon", *more, "--out", out)
            assert code in (1, 3)
            assert "nothing was written" in err
            assert not out.exists()


class TestSigner:
    def test_named(self, capsysbinary, tmp_path, pki):
        """Of a good signature the names in the certificate are printed, who vouches for them, uuid and time."""
        chain = pki.chain(dns=["recorder.example.com", "backup.example.com"])
        data = sign(canonical_text(DOCUMENT), signer=pki.signer(), chain=chain, uuid=UUID)
        (tmp_path / "a.vcon").write_bytes(data)
        (tmp_path / "root.pem").write_bytes(pki.root.public_bytes(Encoding.PEM))
        arguments = (tmp_path / "a.vcon", "--anchor", tmp_path / "root.pem", *AT)
        code, out, _ = run(capsysbinary, *arguments)
        assert code == 0
        assert (
            "signer        CN=Test Leaf (recorder.example.com, backup.example.com), vouched for by CN=Test Root\n"
            f"vcon          uuid {UUID}, updated_at 2026-11-02T12:00:03Z\n"
        ) in out
        report = json.loads(run(capsysbinary, *arguments, "--json")[1])
        assert (report["uuid"], report["updated_at"]) == (UUID, "2026-11-02T12:00:03Z")
        (signer,) = report["signers"]
        assert signer == {
            "subject": "CN=Test Leaf",
            "names": ["recorder.example.com", "backup.example.com"],
            "sha256": chain[0].fingerprint(hashes.SHA256()).hex(),
            "alg": "ES256",
            "envelope": 1,
            "anchor": {
                "subject": "CN=Test Root", "sha256": pki.root.fingerprint(hashes.SHA256()).hex(),
            },
        }  # fmt: skip

    @pytest.mark.parametrize("anchor", [False, True])
    def test_own_word(self, capsysbinary, signed, home, pki, anchor):
        """Without an anchor that vouches the names are marked as the signer's own word."""
        other = certify("Other Root", pki.keys["p384"], ca=True)
        (signed / "other.pem").write_bytes(other.public_bytes(Encoding.PEM))
        arguments = (signed / "a.vcon", *(("--anchor", signed / "other.pem") if anchor else ()))
        code, out, _ = run(capsysbinary, *arguments, *AT)
        assert code == (1 if anchor else 3)
        assert "signer        CN=Test Leaf, by its own word: nobody vouches for this name\n" in out
        assert "vouched for by" not in out
        (signer,) = json.loads(run(capsysbinary, *arguments, *AT, "--json")[1])["signers"]
        assert (signer["subject"], signer["anchor"]) == ("CN=Test Leaf", None)

    def test_tampered(self, capsysbinary, signed):
        """A signature that does not fit has no signer, and nothing of the vCon is told as signed."""
        message = json.loads((signed / "a.vcon").read_bytes())
        message["signatures"][0]["signature"] = "AA" + message["signatures"][0]["signature"][2:]
        (signed / "a.vcon").write_bytes(json.dumps(message).encode())
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors", *AT)
        code, out, _ = run(capsysbinary, *arguments)
        assert code == 1
        assert "signer" not in out
        assert UUID not in out
        report = json.loads(run(capsysbinary, *arguments, "--json")[1])
        assert (report["signers"], report["uuid"], report["updated_at"]) == ([], None, None)

    def test_hostile_names(self, capsysbinary, tmp_path, pki):
        """Names that steer a terminal are escaped, long ones are cut, and --json stays printable."""
        leaf = certify("\x1b[2J\u202everified", pki.keys["p256"], dns=["a" * 60 + ".example.com"] * 40)
        document = {**DOCUMENT, "updated_at": "\x1b[31m" + "9" * 5000}
        data = sign(canonical_text(document), signer=pki.signer(), chain=(leaf,), uuid=UUID)
        (tmp_path / "a.vcon").write_bytes(data)
        (tmp_path / "leaf.pem").write_bytes(leaf.public_bytes(Encoding.PEM))
        arguments = (tmp_path / "a.vcon", "--anchor", tmp_path / "leaf.pem", *AT)
        for more in ((), ("--json",)):
            _, out, _ = run(capsysbinary, *arguments, *more)
            assert not {"\x1b", "\u202e"} & set(out)
            assert "verified" in out
            assert more or max(map(len, out.splitlines())) < 700

    def test_many(self, capsysbinary, signed):
        """Ten signers are printed and the others counted; --json has them all."""
        message = json.loads((signed / "a.vcon").read_bytes())
        message["signatures"] *= 12
        (signed / "a.vcon").write_bytes(json.dumps(message).encode())
        arguments = (signed / "a.vcon", "--anchor", signed / "anchors", *AT)
        code, out, _ = run(capsysbinary, *arguments)
        assert code == 0
        assert out.count("signer        CN=") == 10
        assert "and 2 more signatures" in out
        assert len(json.loads(run(capsysbinary, *arguments, "--json")[1])["signers"]) == 12


class TestOtherCommands:
    crl = TestRevoked.crl

    @pytest.mark.parametrize("verb", ["sign", "redact", "upgrade"])
    def test_lists(self, capsysbinary, signed, pki, verb):
        """The commands that verify first look certificates up, too, and write nothing of a revoked signer."""
        write_private_key(signed / "key.pem", pki.keys["p256"])
        now = pki.leaf(start=NOW - timedelta(days=9000), end=NOW + timedelta(days=9000))
        (signed / "chain.pem").write_bytes(now.public_bytes(Encoding.PEM))
        own = {
            "sign": ["--wrap", "--key", signed / "key.pem", "--certificate", signed / "chain.pem"],
            "redact": ["--rules", "pii"],
            "upgrade": [],
        }
        message = json.loads((signed / "a.vcon").read_bytes())
        leaf = x509.load_der_x509_certificate(base64.b64decode(message["signatures"][0]["header"]["x5c"][0]))
        lists = {0: self.crl(pki, signed / "g.crl"), 1: self.crl(pki, signed / "r.crl", leaf)}
        for status, path in lists.items():
            arguments = [
                verb,
                signed / "a.vcon",
                *own[verb],
                "--anchor",
                signed / "anchors",
                *AT,
                "--crl",
                path,
            ]
            with pytest.raises(SystemExit) as ended:
                main([*map(str, arguments)])
            captured = capsysbinary.readouterr()
            assert ended.value.code == status, captured.err
            assert (b"chain-revoked" in captured.err) is bool(status)
            assert (captured.out == b"") is bool(status)
