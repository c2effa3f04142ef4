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
            (b'{"vcon":"0.4.0","uuid":"x"}', "profile-unsupported", 3),
            (b'{"ciphertext":"x","recipients":[]}', "form-unsupported", 3),
            (b'{"payload":"!","signatures":[]}', "jws-payload-invalid", 2),
        ],
    )
    def test_refused(self, capsysbinary, tmp_path, data, code, status):
        """What cannot be shown is an error with a code and the file."""
        (tmp_path / "a.vcon").write_bytes(data)
        ended, out, _ = run(capsysbinary, tmp_path / "a.vcon", "--json")
        error = json.loads(out)["error"]
        assert (ended, error["code"]) == (status, code)
        assert error["where"]["file"].endswith("a.vcon")


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
