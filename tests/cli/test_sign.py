"""`onrecord sign`: key, certificates, what is refused, what is written, and a signature around a signature."""

import base64
import gzip
import json
import os
import stat
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.base.dates import parse_date, utc_now
from onrecord.base.keys import write_private_key
from onrecord.cli.main import main
from onrecord.record.forms import sign, verify
from onrecord.record.vcon.canonical_text import canonical_text
from support.vcons import NOW, UUID, answer, certify, invocation, text, vcon

DOCUMENT = vcon(invocation(), answer("tool-result"))
FAR = NOW.replace(year=2050)


@pytest.fixture
def place(tmp_path, pki):
    """A vCon, keys and certificates as files."""
    (tmp_path / "a.vcon").write_bytes(text(DOCUMENT))
    write_private_key(tmp_path / "key.pem", pki.keys["p256"])
    write_private_key(tmp_path / "ed.pem", pki.keys["ed25519"])
    for name, kind in (("chain.pem", "p256"), ("ed-chain.pem", "ed25519")):
        chain = (*pki.chain(kind, start=NOW.replace(year=2020), end=FAR), pki.root)
        (tmp_path / name).write_bytes(b"".join(one.public_bytes(Encoding.PEM) for one in chain))
    (tmp_path / "root.pem").write_bytes(pki.root.public_bytes(Encoding.PEM))
    return tmp_path


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["sign", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out, captured.err.decode()


def with_key(place, name="key"):
    chain = "chain.pem" if name == "key" else f"{name}-chain.pem"
    return ("--key", place / f"{name}.pem", "--certificate", place / chain)


class TestSign:
    def test_signed(self, capsysbinary, place, pki):
        """The result is a new file of mode 0600 that verifies; the report is one document."""
        out = place / "s.vcon"
        code, printed, err = run(capsysbinary, place / "a.vcon", *with_key(place), "--out", out, "--json")
        document = json.loads(printed)
        assert (code, err) == (0, "")
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
        assert {name: document[name] for name in ("file", "out", "form", "uuid", "alg", "envelopes")} == {
            "file": str(place / "a.vcon"),
            "out": str(out),
            "form": "signed",
            "uuid": UUID,
            "alg": "ES256",
            "envelopes": 1,
        }
        assert [one["severity"] for one in document["findings"]] == ["info"] * len(document["findings"])
        report = verify(out.read_bytes(), anchors=[pki.root], at=NOW)
        assert report.verdict == "verified"
        assert "payload-not-canonical" not in [one.code for one in report.findings]

    def test_updated_at(self, capsysbinary, place, pki):
        """The time of signing is set before the one signature is made, and nothing else is changed."""
        before = utc_now().replace(microsecond=0)
        run(capsysbinary, place / "a.vcon", *with_key(place), "--out", place / "s.vcon")
        report = verify((place / "s.vcon").read_bytes(), anchors=[pki.root], at=NOW)
        vcon = json.loads(report.payload)
        assert before <= parse_date(vcon.pop("updated_at")) <= utc_now()
        assert vcon == DOCUMENT

    def test_keep_updated_at(self, capsysbinary, place, pki):
        """On request the text is signed byte for byte, canonical or not."""
        loose = json.dumps(DOCUMENT, indent=3).encode()
        (place / "a.vcon").write_bytes(loose)
        code, out, _ = run(capsysbinary, place / "a.vcon", *with_key(place), "--keep-updated-at")
        assert code == 0
        assert verify(out, anchors=[pki.root], at=NOW).payload == loose

    def test_standard_output(self, capsysbinary, place, pki):
        """Without --out the signed form alone goes to standard output, also of a compressed file."""
        (place / "a.vcon").write_bytes(gzip.compress(text(DOCUMENT)))
        code, out, err = run(capsysbinary, place / "a.vcon", *with_key(place), "--gzip")
        assert code == 0
        assert verify(out, anchors=[pki.root], at=NOW).verdict == "verified"
        assert "signed with ES256" in err

    def test_root_is_left_out(self, capsysbinary, place):
        """The certificates go into the file without the root."""
        _, out, _ = run(capsysbinary, place / "a.vcon", *with_key(place))
        assert len(json.loads(out)["signatures"][0]["header"]["x5c"]) == 2

    @pytest.mark.parametrize("alg", ["EdDSA", "Ed25519"])
    def test_algorithm(self, capsysbinary, place, pki, alg):
        """The algorithm may be chosen among those of the key."""
        code, out, _ = run(capsysbinary, place / "a.vcon", *with_key(place, "ed"), "--alg", alg)
        assert code == 0
        protected = json.loads(out)["signatures"][0]["protected"]
        assert json.loads(base64.urlsafe_b64decode(protected + "=="))["alg"] == alg
        assert verify(out, anchors=[pki.root], at=NOW).verdict == "verified"

    def test_key_uri(self, capsysbinary, place):
        """The key may be named by URI."""
        arguments = ("--key", f"file:{place / 'key.pem'}", "--certificate", place / "chain.pem")
        assert run(capsysbinary, place / "a.vcon", *arguments)[0] == 0

    def test_key_of_the_configuration(self, capsysbinary, place, monkeypatch):
        """Without a key that of the configuration is used, with its certificates."""
        from onrecord.cli import sign as module

        keys = SimpleNamespace(record=f"file:{place / 'key.pem'}", record_chain=place / "chain.pem")
        found = SimpleNamespace(keys=keys)
        monkeypatch.setattr(module, "Configuration", SimpleNamespace(load=lambda path: found))
        assert run(capsysbinary, place / "a.vcon")[0] == 0

    def test_never_overwritten(self, capsysbinary, place):
        """A file that exists stays."""
        (place / "s.vcon").write_text("mine")
        code, _, err = run(capsysbinary, place / "a.vcon", *with_key(place), "--out", place / "s.vcon")
        assert (code, (place / "s.vcon").read_text()) == (2, "mine")
        assert "file-exists" in err


class TestRefused:
    def test_errors(self, capsysbinary, place):
        """A vCon with errors is not signed without --force, and they are shown."""
        (place / "a.vcon").write_bytes(text({**DOCUMENT, "created_at": "yesterday"}))
        code, out, err = run(capsysbinary, place / "a.vcon", *with_key(place))
        assert (code, out) == (1, b"")
        assert "date-invalid" in err
        assert "--force" in err
        code, out, err = run(capsysbinary, place / "a.vcon", *with_key(place), "--force")
        assert code == 0
        assert "date-invalid" in err
        code, out, _ = run(
            capsysbinary, place / "a.vcon", *with_key(place), "--out", place / "x.vcon", "--json"
        )
        assert (code, json.loads(out)["out"]) == (1, None)
        assert not (place / "x.vcon").exists()

    def test_fatal(self, capsysbinary, place):
        """What a reader refuses to process cannot be forced."""
        (place / "a.vcon").write_bytes(text({**DOCUMENT, "critical": ["x"]}))
        assert run(capsysbinary, place / "a.vcon", *with_key(place), "--force")[:2] == (1, b"")

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (b"{", "json-invalid"),
            (b'{"a":1}', "form-unknown"),
            (b'{"ciphertext":"x","recipients":[]}', "form-encrypted"),
            (json.dumps({**DOCUMENT, "subject": "\ud800"}).encode(), "json-lone-surrogate"),
            (text(DOCUMENT)[:-1] + b',"z":0.1000000000000000055}', "json-number-range"),
        ],
    )
    def test_input(self, capsysbinary, place, data, code):
        """Other input is an input error that names the file."""
        (place / "a.vcon").write_bytes(data)
        status, out, err = run(capsysbinary, place / "a.vcon", *with_key(place))
        assert (status, out) == (2, b"")
        assert f"[{code}]" in err
        assert "a.vcon" in err

    @pytest.mark.parametrize(
        ("arguments", "status", "code"),
        [
            (["--key", "key.pem"], 2, "key-certificates"),
            (["--certificate", "chain.pem"], 2, "key-certificates"),
            (["--key", "key.pem", "--certificate", "ed-chain.pem"], 1, "chain-key-mismatch"),
            (["--key", "none.pem", "--certificate", "chain.pem"], 3, "key-missing"),
            (["--key", "chain.pem", "--certificate", "chain.pem"], 3, "key-malformed"),
            (["--key", "key.pem", "--certificate", "none.pem"], 2, "certificate-missing"),
            (["--key", "key.pem", "--certificate", "key.pem"], 2, "certificate-malformed"),
            (["--key", "key.pem", "--certificate", "chain.pem", "--alg", "RS256"], 3, "key-alg"),
            (["--key", "key.pem", "--certificate", "chain.pem", "--alg", "none"], 2, "usage"),
            (["--key", "key.pem", "--certificate", "chain.pem", "--json"], 2, "out-missing"),
            (["--key", "key.pem", "--certificate", "chain.pem", "--anchor", "root.pem"], 2, "usage"),
            (["--key", "key.pem", "--certificate", "chain.pem", "--crl", "none.crl"], 2, "usage"),
        ],
    )
    def test_usage(self, capsysbinary, place, monkeypatch, arguments, status, code):
        """What is wrong with key, certificates and options has its code, and nothing is written."""
        monkeypatch.chdir(place)
        (place / "chain.pem").chmod(0o644)
        ended, out, err = run(capsysbinary, place / "a.vcon", *arguments)
        assert ended == status
        assert code in (err or out.decode())

    def test_expired_certificate(self, capsysbinary, place, pki):
        """An expired certificate signs nothing new."""
        leaf = certify("Old", pki.keys["p256"], start=NOW.replace(year=2020), end=NOW.replace(year=2021))
        (place / "chain.pem").write_bytes(leaf.public_bytes(Encoding.PEM))
        status, out, err = run(capsysbinary, place / "a.vcon", *with_key(place))
        assert (status, out) == (1, b"")
        assert "certificate-expired" in err

    def test_key_itself(self, capsysbinary, place):
        """A key in the place of its name is refused, and is in no message."""
        key = (place / "key.pem").read_text()
        for value in (key, f"file:{key}"):
            code, out, err = run(
                capsysbinary, place / "a.vcon", "--key", value, "--certificate", place / "chain.pem"
            )
            assert (code, out) == (2, b"")
            assert "key-not-named" in err
            assert key.splitlines()[1][:8] not in err

    def test_no_configuration(self, capsysbinary, place, home):
        """Without key and configuration it says what is missing."""
        status, _, err = run(capsysbinary, place / "a.vcon")
        assert status == 2
        assert "configuration-missing" in err


class TestWrap:
    @pytest.fixture
    def signed(self, place, pki):
        document = {**DOCUMENT, "updated_at": "2026-11-02T12:00:03Z"}
        chain = pki.chain(start=NOW.replace(year=2020), end=FAR)
        data = sign(canonical_text(document), signer=pki.signer(), chain=chain, uuid=UUID)
        (place / "s.vcon").write_bytes(data)
        return place

    def arguments(self, place):
        return (place / "s.vcon", *with_key(place, "ed"))

    def test_only_on_request(self, capsysbinary, signed):
        """A signed vCon is not signed again by mistake."""
        status, out, err = run(capsysbinary, *self.arguments(signed))
        assert (status, out) == (2, b"")
        assert "--wrap" in err

    def test_wrapped(self, capsysbinary, signed, pki):
        """On request it is verified and signed around, the inner bytes as they were."""
        out = signed / "w.vcon"
        status, printed, _ = run(
            capsysbinary, *self.arguments(signed), "--wrap", "--anchor", signed / "root.pem",
            "--at", "2026-11-30T12:00:00Z", "--out", out, "--json",
        )  # fmt: skip
        document = json.loads(printed)
        assert (status, document["envelopes"], document["alg"]) == (0, 2, "EdDSA")
        report = verify(out.read_bytes(), anchors=[pki.root], at=NOW)
        assert (report.verdict, report.axes["signature"].count) == ("verified", 2)

    def test_unverified(self, capsysbinary, signed, home):
        """What does not verify, or cannot be, is not signed around."""
        arguments = (*self.arguments(signed), "--wrap")
        at = ("--at", "2026-11-30T12:00:00Z")
        status, out, err = run(capsysbinary, *arguments, *at)
        assert (status, out) == (1, b"")
        assert "resign-unverified" in err
        message = json.loads((signed / "s.vcon").read_bytes())
        message["signatures"][0]["signature"] = "AA"
        (signed / "s.vcon").write_bytes(json.dumps(message).encode())
        assert run(capsysbinary, *arguments, *at, "--anchor", signed / "root.pem")[0] == 1

    def test_standard_input(self, capsysbinary, place, pki):
        """The vCon may come by standard input."""
        reader, writer = os.pipe()
        os.write(writer, text(DOCUMENT))
        os.close(writer)
        kept = os.dup(0)
        os.dup2(reader, 0)
        try:
            status, out, _ = run(capsysbinary, "-", *with_key(place))
        finally:
            os.dup2(kept, 0)
            os.close(kept)
            os.close(reader)
        assert status == 0
        assert verify(out, anchors=[pki.root], at=NOW).verdict == "verified"
