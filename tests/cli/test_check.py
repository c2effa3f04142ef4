"""`onrecord check`: exit codes, JSON shape, many files and folders."""

import json

import pytest

from onrecord.cli.main import main
from support.vcons import invocation, text, vcon

GOOD = vcon()
BAD = vcon(invocation(attempt=0))
WARNING = vcon(invocation(), extensions=None)


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["check", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out.decode(), captured.err.decode()


@pytest.fixture
def files(tmp_path):
    """A folder with a good, a bad, a warning, an old, an unreadable and a foreign file."""
    (tmp_path / "sub").mkdir()
    for name, content in {
        "good.vcon": text(GOOD),
        "bad.vcon.json": text(BAD),
        "sub/warning.json": text(WARNING),
        "sub/old.vcon": b'{"vcon":"0.3.0","uuid":"x"}',
        "sub/broken.vcon": b"{",
        "readme.txt": b"not a vCon",
    }.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


class TestExitCodes:
    @pytest.mark.parametrize(
        ("name", "options", "code"),
        [
            ("good.vcon", [], 0),
            ("bad.vcon.json", [], 1),
            ("bad.vcon.json", ["--fail-on", "never"], 0),
            ("sub/warning.json", [], 0),
            ("sub/warning.json", ["--fail-on", "warning"], 1),
            ("sub/warning.json", ["--strict"], 1),
            ("sub/broken.vcon", [], 2),
            ("sub/broken.vcon", ["--fail-on", "never"], 2),
            ("sub/old.vcon", [], 3),
            ("sub/old.vcon", ["--profile", "0.5.0"], 1),
            ("good.vcon", ["--profile", "0.3.0"], 3),
            ("good.vcon", ["--profile", "7"], 2),
            ("none.vcon", [], 2),
            ("good.vcon", ["--fail-on", "sometimes"], 2),
        ],
    )
    def test_one_file(self, capsysbinary, files, name, options, code):
        """One file ends with the status that the house lays down."""
        assert run(capsysbinary, files / name, *options)[0] == code

    def test_folder(self, capsysbinary, files):
        """In a folder everything that looks like a vCon is checked; an unreadable one makes it 2."""
        code, out, _ = run(capsysbinary, files, "--json")
        checked = json.loads(out)["files"]
        assert code == 2
        assert [entry["file"].removeprefix(f"{files}/") for entry in checked] == [
            "bad.vcon.json",
            "good.vcon",
            "sub/broken.vcon",
            "sub/old.vcon",
            "sub/warning.json",
        ]
        by_name = {entry["file"].rsplit("/", 1)[-1]: entry for entry in checked}
        assert by_name["old.vcon"]["error"]["code"] == "profile-unsupported"
        assert by_name["broken.vcon"]["form"] is None
        assert by_name["broken.vcon"]["findings"][0]["fatal"] is True

    def test_old_beside_good(self, capsysbinary, files):
        """A file that could not be evaluated makes it 3, the others are reported."""
        code, out, _ = run(capsysbinary, files / "good.vcon", files / "sub/old.vcon", "--json")
        assert (code, len(json.loads(out)["files"])) == (3, 2)

    def test_empty_folder(self, capsysbinary, tmp_path):
        """A folder without vCons is a usage error, not a success."""
        code, _, err = run(capsysbinary, tmp_path)
        assert code == 2
        assert "no-files" in err


class TestOutput:
    def test_json(self, capsysbinary, files):
        """The JSON document has the stable keys, and each finding its own."""
        code, out, err = run(capsysbinary, files / "bad.vcon.json", "--json")
        (entry,) = json.loads(out)["files"]
        assert (code, err) == (1, "")
        assert set(entry) == {"file", "form", "version", "extensions", "findings"}
        assert (entry["form"], entry["version"], entry["extensions"]) == (
            "unsigned",
            "0.5.0",
            ["tool-invocation"],
        )
        finding = next(one for one in entry["findings"] if one["code"] == "attempt-invalid")
        assert finding["severity"] == "error"
        assert finding["pointer"] == "/events/0/attempt"
        assert finding["source"].startswith("TI")

    def test_text(self, capsysbinary, files):
        """For people there is one line per finding with code and place."""
        _, out, _ = run(capsysbinary, files / "bad.vcon.json")
        assert "attempt-invalid /events/0/attempt" in out
        assert "1 error" in out

    def test_error_names_the_file(self, capsysbinary, files):
        """What cannot be checked is an error with the file and what to do."""
        code, out, _ = run(capsysbinary, files / "sub/old.vcon", "--json")
        error = json.loads(out)["error"]
        assert (code, error["code"]) == (3, "profile-unsupported")
        assert error["where"]["file"].endswith("old.vcon")
        assert "--profile" in error["hint"]

    def test_hostile_names(self, capsysbinary, tmp_path):
        """Escapes in file names and member names do not reach the terminal."""
        path = tmp_path / "x\x1b[31m.vcon"
        path.write_bytes(text(vcon(**{"bad\x1b[31m\u202e": 1})))
        _, out, _ = run(capsysbinary, path)
        assert "\x1b" not in out
        assert "\u202e" not in out

    @pytest.mark.parametrize("special", ["fifo", "folder-link"])
    def test_special_files(self, capsysbinary, tmp_path, special):
        """A pipe in place of a file is refused at once and not waited for."""
        import os

        path = tmp_path / "x.vcon"
        if special == "fifo":
            os.mkfifo(path)
            assert run(capsysbinary, path)[0] == 2
        else:
            path.symlink_to(tmp_path)
            assert run(capsysbinary, tmp_path)[0] == 2
