"""`onrecord show`: the story in text and JSON."""

import json

import pytest

from onrecord.cli.main import main
from onrecord.record.forms import sign
from onrecord.record.vcon.canonical_text import canonical_text
from support.vcons import UUID, Pki, answer, decision, invocation, text, vcon

DOCUMENT = vcon(decision(), invocation(), answer("tool-result"))


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["show", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out.decode(), captured.err.decode()


class TestShow:
    def test_text(self, capsysbinary, tmp_path):
        """The story names tool, decision and state."""
        (tmp_path / "a.vcon").write_bytes(text(DOCUMENT))
        code, out, _ = run(capsysbinary, tmp_path / "a.vcon")
        assert code == 0
        for part in ("clock › now", "allowed (once)", "completed"):
            assert part in out

    def test_json(self, capsysbinary, tmp_path):
        """The JSON story has operations with attempts, and says that nothing was verified."""
        (tmp_path / "a.vcon").write_bytes(text(DOCUMENT))
        story = json.loads(run(capsysbinary, tmp_path / "a.vcon", "--json")[1])
        assert story["signature"] == "not-checked"
        assert story["operations"][0]["attempts"] == [
            {"attempt": 1, "state": "completed", "decision": "allowed"}
        ]

    def test_signed(self, capsysbinary, tmp_path):
        """A signed file is shown and marked as not verified."""
        pki = Pki()
        data = sign(canonical_text(DOCUMENT), signer=pki.signer(), chain=pki.chain(), uuid=UUID)
        (tmp_path / "a.vcon").write_bytes(data)
        code, out, _ = run(capsysbinary, tmp_path / "a.vcon")
        assert code == 0
        assert "not verified" in out

    @pytest.mark.parametrize(
        ("data", "code", "status"),
        [
            (b"{", "json-invalid", 2),
            (b'{"a":1}', "form-unknown", 2),
            (b'{"ciphertext":"x","recipients":[]}', "form-encrypted", 3),
            (b'{"payload":"!","signatures":[]}', "jws-payload-invalid", 2),
            (b"eyJhbGciOiJub25lIn0.e30.", "form-compact", 2),
        ],
    )
    def test_refused(self, capsysbinary, tmp_path, data, code, status):
        """What cannot be shown is an error with a code and the file."""
        (tmp_path / "a.vcon").write_bytes(data)
        ended, out, _ = run(capsysbinary, tmp_path / "a.vcon", "--json")
        error = json.loads(out)["error"]
        assert (ended, error["code"]) == (status, code)
        assert error["where"]["file"].endswith("a.vcon")

    @pytest.mark.parametrize("version", ["0.0.1", "0.0.2", "0.3.0", "0.4.0", "0.5.0"])
    def test_every_version(self, capsysbinary, tmp_path, version):
        """A vCon of each version is shown, with or without sessions."""
        dialog = {"type": "text", "start": "2026-11-02T12:00:00Z", "parties": [0], "body": "good day"}
        document = {"vcon": version, "uuid": UUID, "parties": [{"tel": "+12025550101"}], "dialog": [dialog]}
        (tmp_path / "a.vcon").write_bytes(text(document))
        code, out, _ = run(capsysbinary, tmp_path / "a.vcon")
        assert code == 0
        for part in (f"core {version}", "+12025550101: text", "good day"):
            assert part in out

    def test_all(self, capsysbinary, tmp_path):
        """--all shows every operation of a long record, the JSON story has them in any case."""
        document = vcon(*(invocation(operation_id=str(number)) for number in range(700)))
        (tmp_path / "a.vcon").write_bytes(text(document))
        assert "--all shows them" in run(capsysbinary, tmp_path / "a.vcon")[1]
        out = run(capsysbinary, tmp_path / "a.vcon", "--all")[1]
        assert (out.count("  operation "), "--all" in out) == (700, False)
        story = json.loads(run(capsysbinary, tmp_path / "a.vcon", "--json")[1])
        assert len(story["operations"]) == 700

    def test_encrypted_says_what_next(self, capsysbinary, tmp_path):
        """For an encrypted file the command that helps is named."""
        (tmp_path / "a.vcon").write_bytes(b'{"ciphertext":"x","recipients":[]}')
        assert "onrecord decrypt FILE" in run(capsysbinary, tmp_path / "a.vcon")[2]

    def test_no_colour_in_a_pipe(self, capsysbinary, tmp_path):
        """What does not go to a terminal has no escape sequences, and its lines are not cut."""
        document = vcon(invocation(mediatype="text/plain", encoding="none", body="x" * 110))
        (tmp_path / "a.vcon").write_bytes(text(document))
        out = run(capsysbinary, tmp_path / "a.vcon")[1]
        assert "\x1b" not in out
        assert "x" * 110 in out


@pytest.mark.parametrize("critical", [["example"], "example", [7]])
@pytest.mark.parametrize("name", ["critical", "must_support"])
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_unknown_critical_extension(capsysbinary, tmp_path, name, critical, option):
    """Nothing is told of a vCon that needs an extension we do not know (record.md 2.8)."""
    document = DOCUMENT | {name: critical, "parties": [{"name": "canary-41d2"}]}
    (tmp_path / "a.vcon").write_bytes(text(document))
    code, out, err = run(capsysbinary, tmp_path / "a.vcon", *option)
    assert code == 2
    assert "critical-unsupported" in out + err
    assert "canary-41d2" not in out + err
