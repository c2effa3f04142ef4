"""`onrecord redact`: files, rules, proof, reports, what is refused, and exit codes."""

import json
import stat

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.cli.main import main
from onrecord.cli.redact import SHOWN_IDLE
from onrecord.record.forms import sign
from onrecord.record.vcon.canonical_text import canonical_text
from support.redaction import full, marker
from support.vcons import UUID, Pki, faults, invocation, text, vcon

RULES = '[[rule]]\npath = "/subject"\naction = "remove"\n'


@pytest.fixture
def folder(tmp_path):
    """A folder with a vCon that holds everything, and rules that leave a leak."""
    document, _ = full()
    document["dialog"][0]["body"] = document["subject"]
    (tmp_path / "a.vcon").write_bytes(text(document))
    (tmp_path / "rules.toml").write_text(RULES)
    return tmp_path


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["redact", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out.decode(), captured.err.decode()


class TestRedact:
    def test_to_a_file(self, capsysbinary, folder):
        """The result is a new file of mode 0600 without error; people are told what went and what cannot be undone."""
        out = folder / "b.vcon"
        code, printed, told = run(
            capsysbinary, folder / "a.vcon", "--rules", "content", "--prove", "--out", out
        )
        assert (code, printed) == (0, "")
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
        assert [fault for fault in faults(out.read_bytes()) if fault[1] == "error"] == []
        assert "zqx" not in out.read_text()
        assert "Proven" in told
        assert "cannot be recalled" in told
        assert "zqx" not in told

    def test_to_standard_output(self, capsysbinary, folder):
        """Without --out the vCon, and nothing else, is on standard output."""
        code, printed, _ = run(capsysbinary, folder / "a.vcon", "--rules", "pii", "--type", "my kind")
        members = json.loads(printed)
        assert code == 0
        assert members["redacted_from"] == {"uuid": UUID, "type": "my kind"}

    def test_json(self, capsysbinary, folder):
        """--json prints the report as the one document, with stable keys; --report writes the same."""
        arguments = (
            folder / "a.vcon",
            "--rules",
            "pii",
            "--out",
            folder / "b.vcon",
            "--report",
            folder / "r.json",
        )
        code, printed, _ = run(capsysbinary, *arguments, "--json")
        report = json.loads(printed)
        assert code == 0
        assert {
            "file", "out", "form", "uuid", "type", "rules", "sourceUuid", "counts", "changes", "tookOutNothing",
            "notUnderstood",
            "notSearched", "kept", "remains", "proven", "findings",
        } == set(report)  # fmt: skip
        assert (report["form"], report["proven"]) == ("unsigned", None)
        assert [(one["code"], one["severity"], one["pointer"]) for one in report["findings"]] == [
            ("redacted-unsigned", "info", ""),
            ("reasoning-unredacted", "info", "/events/5/content"),
        ]
        assert json.loads((folder / "r.json").read_bytes()) == report
        assert json.loads((folder / "b.vcon").read_bytes())["uuid"] == report["uuid"]

    def test_leak(self, capsysbinary, folder):
        """With --prove a result that leaks is not written, and the command ends with 1; without, it is written."""
        rules = ("--rules", folder / "rules.toml")
        code, printed, _ = run(
            capsysbinary, folder / "a.vcon", *rules, "--prove", "--out", folder / "b.vcon", "--json"
        )
        report = json.loads(printed)
        assert code == 1
        assert (report["out"], report["proven"]) == (None, False)
        found = [(one["code"], one["pointer"]) for one in report["findings"] if one["severity"] == "error"]
        assert found == [("redaction-leak", "/dialog/0/body")]
        assert not (folder / "b.vcon").exists()
        code, _, told = run(capsysbinary, folder / "a.vcon", *rules, "--prove")
        assert code == 1
        assert "nothing was written" in told
        assert run(capsysbinary, folder / "a.vcon", *rules, "--out", folder / "b.vcon")[0] == 0

    def test_compare(self, capsysbinary, folder):
        """--compare proves a redaction that somebody else made: 0 clean, 1 with findings."""
        run(capsysbinary, folder / "a.vcon", "--rules", "content", "--out", folder / "good.vcon")
        run(capsysbinary, folder / "a.vcon", "--rules", folder / "rules.toml", "--out", folder / "bad.vcon")
        assert run(capsysbinary, folder / "a.vcon", "--compare", folder / "good.vcon")[0] == 0
        assert run(capsysbinary, folder / "a.vcon", "--compare", folder / "bad.vcon")[0] == 1
        code, printed, _ = run(capsysbinary, folder / "a.vcon", "--compare", folder / "bad.vcon", "--json")
        assert code == 1
        assert [one["code"] for one in json.loads(printed)["findings"]] == ["redaction-leak"]

    def test_several_rules(self, capsysbinary, folder):
        """Profiles and files may be combined; the report names them all."""
        arguments = (
            "--rules",
            "pii",
            "--rules",
            "unlinkable",
            "--rules",
            folder / "rules.toml",
            "--domain",
            "example.com",
        )
        code, printed, _ = run(capsysbinary, folder / "a.vcon", *arguments)
        members = json.loads(printed)
        assert code == 0
        assert "uuid" not in members["redacted_from"]
        assert members["uuid"].endswith("-832a-bc92ac6830cd")

    def test_rule_that_took_nothing(self, capsysbinary, folder):
        """Each rule of one's own that took out nothing is told, on the screen and in the report; a profile's is not."""
        (folder / "mine.toml").write_text(
            f'extends = ["unlinkable"]\n{RULES}'
            '[[rule]]\npath = "/parties/*/name"\nwhere = { type = "nobody" }\naction = "remove"\n'
            "[[rule]]\nregex = 'no such text'\n"
        )
        arguments = (folder / "a.vcon", "--rules", folder / "mine.toml", "--out")
        code, _, told = run(capsysbinary, *arguments, folder / "b.vcon")
        assert code == 0
        assert [line.strip() for line in told.splitlines() if "took out nothing" in line] == [
            "rule mine 2 took out nothing",
            "rule mine 3 took out nothing",
        ]
        code, printed, _ = run(capsysbinary, *arguments, folder / "c.vcon", "--json")
        assert (code, json.loads(printed)["tookOutNothing"]) == (0, ["mine 2", "mine 3"])

    def test_many_rules_that_took_nothing(self, capsysbinary, folder):
        """Of many the first are named on the screen, and the rest counted."""
        (folder / "mine.toml").write_text("[[rule]]\nregex = 'no such text'\n" * (SHOWN_IDLE + 5))
        code, _, told = run(capsysbinary, folder / "a.vcon", "--rules", folder / "mine.toml")
        assert code == 0
        assert told.count(" took out nothing") == SHOWN_IDLE + 1
        assert "and 5 more rules took out nothing" in told

    @pytest.mark.parametrize(
        ("extra", "says", "proven"),
        [
            ({}, "Nothing was taken out, so nothing is proven.", None),
            ({"shoe_size": "of no table"}, "No rule took out anything.", True),
            ({"subject": "about a case"}, "Proven: nothing that was taken out", True),
        ],
        ids=["nothing", "not understood", "something"],
    )
    def test_nothing_to_prove(self, capsysbinary, folder, extra, says, proven):
        """With --prove nothing is called proven where no rule took anything out."""
        (folder / "c.vcon").write_bytes(text(vcon(invocation(), **extra)))
        arguments = (folder / "c.vcon", "--rules", folder / "rules.toml", "--prove")
        code, _, told = run(capsysbinary, *arguments)
        assert code == 0
        assert says in told
        assert told.count("Proven") == int("subject" in extra)
        code, printed, _ = run(capsysbinary, *arguments, "--out", folder / "d.vcon", "--json")
        assert (code, json.loads(printed)["proven"]) == (0, proven)

    def test_pseudonyms(self, capsysbinary, folder):
        """What pseudonyms stand for goes to a file of its own, of mode 0600, and nowhere else."""
        keep = folder / "names.json"
        code, _, told = run(
            capsysbinary,
            folder / "a.vcon",
            "--rules",
            "pii",
            "--out",
            folder / "b.vcon",
            "--pseudonyms",
            keep,
        )
        assert code == 0
        assert json.loads(keep.read_bytes())["party-1"] == marker("name")
        assert stat.S_IMODE(keep.stat().st_mode) == 0o600
        assert marker("name") not in told

    def test_show(self, capsysbinary):
        """--show prints a profile that a rule file can start from."""
        code, printed, _ = run(capsysbinary, "--show", "pii")
        assert code == 0
        assert printed.startswith('name = "pii"')


class TestSigned:
    @pytest.fixture
    def signed(self, folder, pki):
        """The vCon signed, its anchor beside it."""
        document = vcon(invocation(), subject="about ana@example.com")
        data = sign(canonical_text(document), signer=pki.signer(), chain=pki.chain(), uuid=UUID)
        (folder / "s.vcon").write_bytes(data)
        (folder / "root.pem").write_bytes(pki.root.public_bytes(Encoding.PEM))
        return folder

    def test_verified_first(self, capsysbinary, signed):
        """A signed vCon is redacted once its signature is good; the result is unsigned and names it."""
        code, printed, told = run(
            capsysbinary, signed / "s.vcon", "--rules", "pii", "--anchor", signed / "root.pem"
        )
        assert code == 0
        assert json.loads(printed)["redacted_from"]["uuid"] == UUID
        assert "not signed" in told

    def test_compare(self, capsysbinary, signed, pki):
        """A comparison verifies the original if an anchor is named, and says so if it does not."""
        original, copy = signed / "s.vcon", signed / "copy.vcon"
        run(capsysbinary, original, "--rules", "pii", "--unverified", "--out", copy)
        code, _, told = run(capsysbinary, original, "--compare", copy)
        assert (code, "signature was not verified" in told) == (0, True)
        code, _, told = run(capsysbinary, original, "--compare", copy, "--anchor", signed / "root.pem")
        assert (code, "not verified" in told) == (0, False)
        (signed / "other.pem").write_bytes(Pki().root.public_bytes(Encoding.PEM))
        assert run(capsysbinary, original, "--compare", copy, "--anchor", signed / "other.pem")[0] == 1

    def test_not_verified(self, capsysbinary, signed, pki):
        """Without an anchor it is refused, as with a bad signature; --unverified takes it as it is and says so."""
        assert run(capsysbinary, signed / "s.vcon", "--rules", "pii")[0] == 2
        message = json.loads((signed / "s.vcon").read_bytes())
        message["signatures"][0]["signature"] = "AA" + message["signatures"][0]["signature"][2:]
        (signed / "s.vcon").write_bytes(json.dumps(message).encode())
        code, printed, told = run(
            capsysbinary, signed / "s.vcon", "--rules", "pii", "--anchor", signed / "root.pem"
        )
        assert (code, printed) == (1, "")
        assert "source-not-verified" in told
        code, _, told = run(capsysbinary, signed / "s.vcon", "--rules", "pii", "--unverified")
        assert code == 0
        assert "not verified" in told


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["a.vcon"], "redaction-rules-missing"),
            (["a.vcon", "--rules", "pi"], "redaction-profile-unknown"),
            (["a.vcon", "--rules", "none.toml"], "redaction-rules-unreadable"),
            (["a.vcon", "--rules", "typo.toml"], "redaction-path-unknown"),
            (["a.vcon", "--rules", "structure.toml"], "redaction-path-structure"),
            (["gone.vcon", "--rules", "pii"], "file-missing"),
            (["a.vcon", "--rules", "pii", "--json"], "out-missing"),
            (["a.vcon", "--rules", "pii", "--out", "a.vcon"], "file-exists"),
            (["a.vcon", "--rules", "pii", "--anchor", "root.pem"], "source-not-verified"),
            (["junk", "--rules", "pii"], "json-invalid"),
            (["jwe", "--rules", "pii"], "form-encrypted"),
            (["unknown.vcon", "--rules", "pii"], "redactor-extension-unknown"),
            (["a.vcon", "--rules", "pii", "--salt", "short"], "redaction-salt-short"),
            (["big.vcon", "--rules", "pii"], None),
            (["surrogate.vcon", "--rules", "credentials"], "not-canonical"),
            ([], "usage"),
            (["--show", "nothing"], "redaction-profile-unknown"),
        ],
    )
    def test_codes(self, capsysbinary, folder, monkeypatch, arguments, code):
        """Each is refused by its code, with what to do next; nothing is written."""
        monkeypatch.chdir(folder)
        (folder / "junk").write_bytes(b"\xff\x00")
        (folder / "short").write_bytes(b"x")
        (folder / "typo.toml").write_text(RULES.replace("/subject", "/partys/*/name"))
        (folder / "structure.toml").write_text(RULES.replace("/subject", "/parties/*/type"))
        (folder / "jwe").write_text('{"ciphertext":"AA","recipients":[{}],"iv":"AA","tag":"AA"}')
        (folder / "unknown.vcon").write_bytes(text(vcon(invocation(), extensions=["x", "tool-invocation"])))
        big = vcon(invocation(encoding="json", mediatype="application/json", body={"id": 2**60}))
        (folder / "big.vcon").write_bytes(text(big))
        (folder / "surrogate.vcon").write_bytes(text(vcon(invocation(), subject="\ud800")))
        ended, printed, told = run(capsysbinary, *arguments)
        if code is None:
            assert ended == 0
            assert str(2**60) in printed
            return
        assert ended in (1, 2)
        told += printed
        assert code in told
        assert "next" in told or "hint" in told

    def test_unknown_profile_is_named(self, capsysbinary, folder):
        """Of several rules the one that is not known is named."""
        code, _, told = run(capsysbinary, folder / "a.vcon", "--rules", "pii", "--rules", "pi")
        assert code == 2
        assert "'pi'" in told

    def test_slip_in_a_path(self, capsysbinary, folder):
        """A path that can never fit is refused with file, rule and what was probably meant; nothing is written."""
        (folder / "typo.toml").write_text(RULES + RULES.replace("/subject", "/partys/*/name"))
        out = folder / "b.vcon"
        code, printed, told = run(
            capsysbinary, folder / "a.vcon", "--rules", folder / "typo.toml", "--out", out
        )
        assert (code, printed, out.exists()) == (2, "", False)
        assert "did you mean /parties/*/name?" in told
        assert "typo.toml:4 at /rule/1/path" in told

    def test_unknown_extension_allowed(self, capsysbinary, folder):
        """An unknown extension can be allowed by name; its members do not come along."""
        document = vcon(invocation(), extensions=["tool-invocation", "mood"], mood={"a": 1})
        (folder / "m.vcon").write_bytes(text(document))
        code, printed, told = run(
            capsysbinary, folder / "m.vcon", "--rules", "pii", "--allow-extension", "mood"
        )
        assert code == 0
        assert "mood" not in printed
        assert "Not understood" in told
