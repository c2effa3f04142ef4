"""`onrecord upgrade`: where results and reports go, signed files, exit statuses."""

import gzip
import json
import stat

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.cli.main import main
from onrecord.record.forms import sign
from onrecord.record.migration import STEPS
from support.legacy import UUID, call, old_vcon
from support.vcons import NOW, Pki, text

DOCUMENT = old_vcon(dialog=[call("2026-05-04T09:00:00Z", 5)], redacted={})
DONE = {
    **{name: value for name, value in DOCUMENT.items() if name not in ("vcon", "redacted")},
    "sessions": [{"start": "2026-05-04T09:00:00Z", "duration": 5, "parties": [0, 1], "dialog": [0]}],
}


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["upgrade", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out, captured.err.decode()


AT = ("--at", NOW.isoformat())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "old.vcon"
    path.write_bytes(text(DOCUMENT))
    return path


@pytest.fixture
def signed(tmp_path, pki):
    path = tmp_path / "signed.vcon"
    path.write_bytes(sign(text(DOCUMENT), signer=pki.signer(), chain=pki.chain(), uuid=UUID))
    return path


@pytest.fixture
def anchor(tmp_path, pki):
    path = tmp_path / "root.crt"
    path.write_bytes(pki.root.public_bytes(Encoding.PEM))
    return path


class TestOutput:
    def test_standard_output(self, capsysbinary, file):
        """The vCon goes to standard output, the report for people to standard error."""
        code, out, err = run(capsysbinary, file)
        done = json.loads(out)
        assert code == 0
        assert done.pop("updated_at")
        assert done == DONE
        assert "core 0.4.0, now 0.5.0" in err
        assert "session-derived" in err

    def test_file(self, capsysbinary, file, tmp_path):
        """With --out the vCon goes to a new private file, and nothing to standard output."""
        assert run(capsysbinary, file, "--out", tmp_path / "new.vcon")[:2] == (0, b"")
        assert stat.S_IMODE((tmp_path / "new.vcon").stat().st_mode) == 0o600
        assert json.loads((tmp_path / "new.vcon").read_bytes())["sessions"] == DONE["sessions"]

    def test_existing_file(self, capsysbinary, file):
        """No file is overwritten."""
        code, _, err = run(capsysbinary, file, "--out", file)
        assert (code, "file-exists" in err) == (2, True)
        assert file.read_bytes() == text(DOCUMENT)

    def test_json(self, capsysbinary, file, tmp_path):
        """--json prints one document: versions, totals, changes, and the findings about the result."""
        code, out, err = run(capsysbinary, file, "--out", tmp_path / "new.vcon", "--json")
        document = json.loads(out)
        assert (code, err) == (0, "")
        assert (document["form"], document["from"], document["to"]) == ("unsigned", "0.4.0", "0.5.0")
        assert (document["uuid"], document["out"]) == (UUID, str(tmp_path / "new.vcon"))
        assert document["changed"] is True
        assert document["totals"]["irreversible"] == 0
        assert {change["code"] for change in document["changes"]} <= set(STEPS)
        assert document["findings"] == []

    def test_json_needs_out(self, capsysbinary, file):
        """Two documents on one standard output are refused."""
        code, out, _ = run(capsysbinary, file, "--json")
        assert (code, json.loads(out)["error"]["code"]) == (2, "out-missing")

    def test_report(self, capsysbinary, file, tmp_path):
        """--report writes the same document as --json prints."""
        out, report = tmp_path / "new.vcon", tmp_path / "report.json"
        code, printed, _ = run(capsysbinary, file, "--out", out, "--report", report, "--json")
        assert code == 0
        assert json.loads(report.read_bytes()) == json.loads(printed)

    @pytest.mark.parametrize("options", [["--report", "-"], ["--out", "x", "--report", "x"]])
    def test_one_place(self, capsysbinary, file, tmp_path, monkeypatch, options):
        """Report and vCon cannot go to one place."""
        monkeypatch.chdir(tmp_path)
        code, _, err = run(capsysbinary, file, *options)
        assert (code, "out-missing" in err) == (2, True)
        assert not (tmp_path / "x").exists()

    @pytest.mark.parametrize(
        ("out", "report", "code"),
        [
            ("new.vcon", "old.vcon", "file-exists"),
            ("new.vcon", "link", "file-exists"),
            ("new.vcon", "missing/report.json", "file-unwritable"),
            ("x", "./folder/../x", "out-missing"),
            ("x", "same/x", "out-missing"),
        ],
    )
    def test_all_or_nothing(self, capsysbinary, file, tmp_path, monkeypatch, out, report, code):
        """If one of the two files cannot be written, or both are one, neither is."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "link").symlink_to("nowhere")
        (tmp_path / "folder").mkdir()
        (tmp_path / "same").symlink_to(".")
        before = sorted(tmp_path.iterdir())
        status, _, err = run(capsysbinary, file, "--out", out, "--report", report)
        assert (status, code in err) == (2, True)
        assert sorted(tmp_path.iterdir()) == before
        assert file.read_bytes() == text(DOCUMENT)

    def test_report_on_standard_output(self, capsysbinary, file, tmp_path):
        """The report may have standard output where the vCon does not need it."""
        _, out, _ = run(capsysbinary, file, "--out", tmp_path / "new.vcon", "--report", "-")
        assert json.loads(out)["to"] == "0.5.0"

    def test_dry_run(self, capsysbinary, file, tmp_path):
        """--dry-run writes no vCon, wherever it would go."""
        code, out, err = run(capsysbinary, file, "--dry-run", "--out", tmp_path / "new.vcon")
        assert (code, out) == (0, b"")
        assert "session-derived" in err
        assert not (tmp_path / "new.vcon").exists()
        assert json.loads(run(capsysbinary, file, "--dry-run", "--json")[1])["out"] is None


class TestResult:
    def test_twice(self, capsysbinary, file, tmp_path):
        """An upgraded vCon comes back byte for byte."""
        first = run(capsysbinary, file)[1]
        (tmp_path / "first.vcon").write_bytes(first)
        code, again, err = run(capsysbinary, tmp_path / "first.vcon")
        assert (code, again) == (0, first)
        assert "nothing to upgrade" in err

    def test_gzip(self, capsysbinary, tmp_path):
        """A compressed vCon is read."""
        (tmp_path / "old.vcon.gz").write_bytes(gzip.compress(text(DOCUMENT)))
        assert json.loads(run(capsysbinary, tmp_path / "old.vcon.gz")[1])["sessions"] == DONE["sessions"]

    def test_errors_of_the_source(self, capsysbinary, tmp_path):
        """What the source has no better answer to is named, and gives status 1; the result is written."""
        (tmp_path / "old.vcon").write_bytes(text(old_vcon(created_at=None)))
        code, out, err = run(capsysbinary, tmp_path / "old.vcon")
        assert code == 1
        assert "created-at-missing" in err
        assert "vcon" not in json.loads(out)

    def test_irreversible(self, capsysbinary, tmp_path):
        """The report marks what cannot be turned back."""
        attachment = {"start": "2026-05-04T09:00:00Z", "party": 0, "mediatype": "application/json"}
        content = {"encoding": "json", "body": '{"b":1,"a":2}'}
        (tmp_path / "old.vcon").write_bytes(text(old_vcon(attachments=[{**attachment, **content}])))
        err = run(capsysbinary, tmp_path / "old.vcon")[2]
        assert "1! json-parsed" in err
        assert "cannot be turned back" in err

    def test_hostile_names(self, capsysbinary, tmp_path):
        """Names out of the file neither steer the terminal nor fill it."""
        names = {"a\x1b[31m": 1, "\u202e": 2, "x" * 10_000: 3}
        (tmp_path / "old.vcon").write_bytes(text(old_vcon(**names)))
        err = run(capsysbinary, tmp_path / "old.vcon")[2]
        assert "\x1b" not in err
        assert "\u202e" not in err
        assert len(err) < 2_000

    def test_many_places(self, capsysbinary, tmp_path):
        """Places of one kind are named up to three, and counted."""
        analysis = [{"type": "summary", "vendor": "x", "mimetype": "text/plain"}] * 50
        (tmp_path / "old.vcon").write_bytes(text(old_vcon(analysis=analysis)))
        err = run(capsysbinary, tmp_path / "old.vcon")[2]
        assert "/analysis/2/mimetype and 47 more" in err


class TestSigned:
    def test_needs_a_word(self, capsysbinary, signed):
        """A signed file is not taken without saying how its signature is to be looked at."""
        code, out, err = run(capsysbinary, signed)
        assert (code, out) == (2, b"")
        assert "anchor-missing" in err

    def test_anchor(self, capsysbinary, signed, anchor):
        """Verified, it becomes an unsigned new instance."""
        code, out, err = run(capsysbinary, signed, "--anchor", anchor, *AT)
        done = json.loads(out)
        assert code == 0
        assert done["amended_from"] == {"uuid": UUID}
        assert done["uuid"] != UUID
        assert "not signed" in err

    def test_unverified(self, capsysbinary, signed):
        """On request it is taken as it is, and that is said."""
        code, _, err = run(capsysbinary, signed, "--unverified")
        assert code == 0
        assert "not verified" in err

    @pytest.mark.parametrize("fault", ["anchor", "payload", "time"])
    def test_not_good(self, capsysbinary, signed, anchor, tmp_path, fault):
        """A signature that does not verify, or that nobody trusted vouches for, stops the upgrade."""
        if fault == "anchor":
            anchor.write_bytes(Pki().root.public_bytes(Encoding.PEM))
        elif fault == "payload":
            envelope = json.loads(signed.read_bytes())
            envelope["payload"] = "eyJ1dWlkIjoieCJ9"
            signed.write_bytes(text(envelope))
        at = ("--at", "2020-01-01T00:00:00Z") if fault == "time" else AT
        code, out, err = run(capsysbinary, signed, "--anchor", anchor, "--out", tmp_path / "new.vcon", *at)
        assert (code, out) == (1, b"")
        assert "source-not-verified" in err
        assert not (tmp_path / "new.vcon").exists()

    def test_anchor_for_an_unsigned_file(self, capsysbinary, file, anchor):
        """Who names an anchor wants a signature; a file without one is no substitute."""
        code, _, err = run(capsysbinary, file, "--anchor", anchor)
        assert (code, "source-not-verified" in err) == (1, True)

    def test_nothing_to_do(self, capsysbinary, tmp_path, pki):
        """A signed vCon of the present version stays signed, byte for byte."""
        data = sign(text(DONE), signer=pki.signer(), chain=pki.chain(), uuid=UUID)
        (tmp_path / "signed.vcon").write_bytes(data)
        assert run(capsysbinary, tmp_path / "signed.vcon", "--unverified")[:2] == (0, data)


@pytest.mark.parametrize(
    ("data", "code", "status"),
    [
        (b"", "json-invalid", 2),
        (b"{", "json-invalid", 2),
        (b"\xff", "json-invalid", 2),
        (b'{"a":1}', "form-unknown", 2),
        (b'{"uuid":"x","uuid":"y"}', "json-duplicate-member", 2),
        (b'{"ciphertext":"x","recipients":[]}', "form-encrypted", 2),
        (b'{"payload":"!","signatures":[]}', "jws-payload-invalid", 2),
        (b'{"vcon":"1.0.0","uuid":"x"}', "version-newer", 2),
        (b'{"must_support":["x"],"uuid":"x"}', "critical-unsupported", 2),
        (b'{"vcon":"0.4.0","uuid":"\\ud800"}', "not-canonical", 2),
        (b'{"vcon":"0.4.0","uuid":"x","a":1e999}', "not-canonical", 2),
    ],
)
def test_refused(capsysbinary, tmp_path, data, code, status):
    """What cannot be upgraded is an error with a code, the file, and a next step."""
    (tmp_path / "a.vcon").write_bytes(data)
    found, out, _ = run(capsysbinary, tmp_path / "a.vcon", "--unverified", "--out", tmp_path / "b", "--json")
    error = json.loads(out)["error"]
    assert (found, error["code"]) == (status, code)
    assert error["where"]["file"] == str(tmp_path / "a.vcon")
    assert error["hint"]
    assert not (tmp_path / "b").exists()


def test_wrong_time(capsysbinary, signed, anchor):
    """A time that is none is a usage error."""
    code, _, err = run(capsysbinary, signed, "--anchor", anchor, "--at", "soon")
    assert (code, "date-invalid" in err) == (2, True)


def test_missing(capsysbinary, tmp_path):
    """A file that is not there is a usage error."""
    assert run(capsysbinary, tmp_path / "none.vcon")[0] == 2
