"""`onrecord check`: exit codes, JSON shape, suppression, explanations, many files and folders, Ctrl-C."""

import io
import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

import onrecord.cli.check as module
from onrecord.base.errors import UsageError
from onrecord.cli.files import expand
from onrecord.cli.findings import MAX_PLACE, SHOWN_FINDINGS, explain, print_explanation
from onrecord.cli.main import main
from onrecord.record.checks.catalogue import CATALOGUE
from onrecord.record.checks.collector import MAX_FINDINGS
from support.vcons import invocation, text, vcon

GOOD = vcon()
BAD = vcon(invocation(attempt=0))
WARNING = vcon(invocation(), extensions=None)


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["check", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out.decode(), captured.err.decode()


def codes(entry):
    return {finding["code"] for finding in entry["findings"]}


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch, tmp_path):
    """The tests do not depend on the configuration of whoever runs them."""
    monkeypatch.setenv("ONRECORD_CONFIG", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-such-folder"))


@pytest.fixture
def files(tmp_path):
    """A folder with a good, a bad, a warning, an old, an unreadable and a foreign file."""
    folder = tmp_path / "files"
    (folder / "sub").mkdir(parents=True)
    for name, content in {
        "good.vcon": text(GOOD),
        "bad.vcon.json": text(BAD),
        "sub/warning.json": text(WARNING),
        "sub/old.vcon": text({"vcon": "0.3.0", "uuid": "x", "parties": [{}]}),
        "sub/broken.vcon": b"{",
        "readme.txt": b"not a vCon",
    }.items():
        (folder / name).write_bytes(content)
    return folder


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
            ("sub/warning.json", ["--strict", "--fail-on", "never"], 0),
            ("good.vcon", ["--fail-on", "info"], 0),
            ("sub/warning.json", ["--fail-on", "info"], 1),
            ("sub/broken.vcon", [], 2),
            ("sub/broken.vcon", ["--fail-on", "never"], 2),
            ("sub/old.vcon", [], 1),
            ("sub/old.vcon", ["--profile", "0.5.0"], 1),
            ("good.vcon", ["--profile", "7"], 2),
            ("none.vcon", [], 2),
            ("good.vcon", ["--fail-on", "sometimes"], 2),
            ("good.vcon", ["--suppress", "no-such-code"], 2),
            ("good.vcon", ["--explain", "uuid-missing"], 2),
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
        assert by_name["old.vcon"]["version"] == "0.3.0"
        assert by_name["broken.vcon"]["form"] is None
        assert by_name["broken.vcon"]["findings"][0]["fatal"] is True

    def test_not_evaluated_beside_bad(self, capsysbinary, files, monkeypatch):
        """A fault of ours in one file is 3 for the run and no traceback; the other files are checked all the same."""
        real = module.check

        def broken(data, **options):
            if b'"attempt": 0' in data:
                raise ZeroDivisionError
            return real(data, **options)

        monkeypatch.setattr(module, "check", broken)
        code, out, _ = run(capsysbinary, files / "bad.vcon.json", files / "sub/old.vcon", "--json")
        first, second = json.loads(out)["files"]
        assert code == 3
        assert first["error"]["code"] == "internal-error"
        assert first["error"]["where"]["file"].endswith("bad.vcon.json")
        assert "uuid-invalid" in codes(second)

    def test_no_files(self, capsysbinary, tmp_path):
        """A folder without vCons, and no folder at all, is a usage error and not a success."""
        (tmp_path / "empty").mkdir()
        code, _, err = run(capsysbinary, tmp_path / "empty")
        assert (code, "no-files" in err) == (2, True)
        assert str(tmp_path / "empty") in err
        code, out, _ = run(capsysbinary, "--json")
        assert (code, json.loads(out)["error"]["code"]) == (2, "usage")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--suppress", "uuid-version", "--suppress", "legacy-nam"],
            ["--explain", "legacy-nam"],
            ["--profile", "legacy-nam"],
        ],
    )
    def test_word_that_is_wrong(self, capsysbinary, files, arguments):
        """What is not known is named: one of several words is wrong, and a reader need not guess which."""
        named = [] if "--explain" in arguments else [files / "good.vcon.json"]
        code, _, err = run(capsysbinary, *named, *arguments)
        assert code == 2
        assert "'legacy-nam'" in err


class TestJson:
    def test_document(self, capsysbinary, files):
        """The JSON document has the stable keys, and each finding its own."""
        code, out, err = run(capsysbinary, files / "bad.vcon.json", "--json")
        document = json.loads(out)
        (entry,) = document["files"]
        assert (code, err) == (1, "")
        assert set(entry) == {"file", "form", "version", "extensions", "findings", "suppressed"}
        assert (entry["form"], entry["version"], entry["extensions"]) == (
            "unsigned",
            "0.5.0",
            ["tool-invocation"],
        )
        finding = next(one for one in entry["findings"] if one["code"] == "attempt-invalid")
        assert finding["severity"] == "error"
        assert finding["pointer"] == "/events/0/attempt"
        assert finding["source"].startswith("TI")
        assert document["totals"]["codes"]["attempt-invalid"] == 1

    def test_totals(self, capsysbinary, files):
        """The totals of a run count files, and findings by code."""
        _, out, err = run(capsysbinary, files, files / "gone.vcon", "--json")
        totals = json.loads(out)["totals"]
        found = json.loads(out)["files"]
        assert err == ""
        assert (totals["files"], totals["withoutError"], totals["withErrors"], totals["notChecked"]) == (
            6,
            2,
            2,
            2,
        )
        assert sum(totals["codes"].values()) == sum(len(entry["findings"]) for entry in found)

    def test_error_names_the_file(self, capsysbinary, files):
        """What cannot be checked is an error with the file and what to do, alone and among others."""
        code, out, _ = run(capsysbinary, files / "gone.vcon", "--json")
        error = json.loads(out)["error"]
        assert (code, error["code"]) == (2, "file-missing")
        assert error["where"]["file"].endswith("gone.vcon")
        code, out, _ = run(capsysbinary, files / "gone.vcon", files / "good.vcon", "--json")
        assert code == 2
        assert json.loads(out)["files"][0]["error"] == error

    def test_complete_where_text_is_cut(self, capsysbinary, tmp_path):
        """The JSON has each of many findings, also those that the text groups."""
        path = tmp_path / "x.vcon"
        path.write_bytes(
            text(vcon(*[invocation(attempt=0, operation_id=f"o{number}") for number in range(300)]))
        )
        _, out, _ = run(capsysbinary, path, "--json")
        found = [one for one in json.loads(out)["files"][0]["findings"] if one["code"] == "attempt-invalid"]
        assert len({one["pointer"] for one in found}) == 300


class TestText:
    def test_lines(self, capsysbinary, files):
        """For people there is one line per finding with code and place, and below them what to change, once."""
        _, out, _ = run(capsysbinary, files / "bad.vcon.json")
        assert "attempt-invalid /events/0/attempt" in out
        assert "1 error" in out
        assert out.count(CATALOGUE["attempt-invalid"].change) == 1

    def test_repetitions(self, capsysbinary, tmp_path):
        """Of findings that differ in the place alone three are shown and the rest is counted, in document order."""
        path = tmp_path / "x.vcon"
        path.write_bytes(
            text(vcon(*[invocation(attempt=0, operation_id=f"o{number}") for number in range(10)]))
        )
        _, out, _ = run(capsysbinary, path)
        places = [
            line.split()[2] for line in out.splitlines() if line.startswith("  error   attempt-invalid /")
        ]
        assert places == [f"/events/{number}/attempt" for number in range(3)]
        assert "and 7 more attempt-invalid, the last at /events/9/attempt" in out
        assert out.count(CATALOGUE["attempt-invalid"].change) == 1

    def test_four_are_shown(self, capsysbinary, tmp_path):
        """A line that would stand for one finding is that finding."""
        path = tmp_path / "x.vcon"
        path.write_bytes(
            text(vcon(*[invocation(attempt=0, operation_id=f"o{number}") for number in range(4)]))
        )
        _, out, _ = run(capsysbinary, path)
        assert out.count("attempt-invalid /events/") == 4
        assert "more attempt-invalid" not in out

    def test_many_kinds(self, capsysbinary, tmp_path):
        """Findings that all differ end after some lines, with the number of those that are not shown."""
        path = tmp_path / "x.vcon"
        path.write_bytes(text(vcon(**{f"member_{number}": 1 for number in range(SHOWN_FINDINGS + 50)})))
        _, out, _ = run(capsysbinary, path)
        assert out.count("unknown-member /member_") == SHOWN_FINDINGS
        assert "and 50 more findings; --json has them all" in out

    def test_totals(self, capsysbinary, files):
        """With several files each code is counted over all of them, errors first, with what to change."""
        _, out, err = run(capsysbinary, files, files)
        summary = out[out.index("What to change:") :]
        assert "attempt-invalid, 2 times in 2 files" in summary
        assert summary.index("attempt-invalid") < summary.index("extension-not-listed")
        assert summary.count(CATALOGUE["attempt-invalid"].change) == 1
        assert "10 files: 4 without error, 4 with errors, 2 not checked" in summary
        assert "2 of 10 files could not be checked" in err

    def test_beyond_the_cap(self, capsysbinary, tmp_path):
        """Findings beyond the cap are counted in the file's line."""
        path = tmp_path / "x.vcon"
        path.write_bytes(text(vcon(parties=[1] * (MAX_FINDINGS + 5))))
        code, out, _ = run(capsysbinary, path)
        assert code == 1
        assert f"{MAX_FINDINGS + 5} errors" in out
        assert "more, counted and not kept" in out

    @pytest.mark.req("AA-153", "AA-154")
    def test_hostile_names(self, capsysbinary, tmp_path):
        """Escapes in names of files, members and extensions do not reach the terminal, and no line is endless."""
        path = tmp_path / "x\x1b[31m\n.vcon"
        name = "bad\x1b[31m\u202e\u200b" + "y" * 10_000
        path.write_bytes(text(vcon(extensions=["tool-invocation", name], **{name: 1})))
        _, out, _ = run(capsysbinary, path)
        assert not {"\x1b", "\u202e", "\u200b"} & set(out)
        assert "\\u{1b}" in out
        assert max(map(len, out.splitlines())) < 4 * MAX_PLACE

    def test_what_the_terminal_cannot_print(self, files):
        """Where the terminal's encoding lacks a character, its escape is printed."""
        path = files / "name-\u00e9.vcon"
        path.write_bytes(text(vcon(extensions=["tool-invocation", "\u00fc\U0001f600"])))
        done = subprocess.run(
            [sys.executable, "-m", "onrecord", "check", path],
            env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert rb"\xfc\U0001f600" in done.stdout


class TestFolders:
    def test_unreadable_folder(self, capsysbinary, files, monkeypatch):
        """A folder that may not be read is an error with its name, and the rest is checked."""
        real = os.scandir

        def scandir(folder):
            if os.fspath(folder).endswith("sub"):
                raise PermissionError(13, "Permission denied")
            return real(folder)

        monkeypatch.setattr(os, "scandir", scandir)
        code, out, _ = run(capsysbinary, files, "--json")
        entries = json.loads(out)["files"]
        assert code == 2
        assert [entry["file"].rpartition("/")[2] for entry in entries] == [
            "bad.vcon.json",
            "good.vcon",
            "sub",
        ]
        assert entries[2]["error"]["code"] == "folder-unreadable"

    def test_path_too_long(self, tmp_path, monkeypatch):
        """Folders within folders beyond what the system can name are an error, not a crash."""
        monkeypatch.chdir(tmp_path)
        for name in ["x" * 50] * 90:
            os.mkdir(name)
            os.chdir(name)
        found = list(expand([tmp_path]))
        assert [type(one) for one in found] == [UsageError]
        assert found[0].code == "folder-unreadable"

    def test_links(self, tmp_path):
        """Links to files are followed, links to folders are not, so that no link leads round in a circle."""
        folder = tmp_path / "top"
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "a.vcon").write_bytes(text(GOOD))
        (folder / "b.vcon").symlink_to(folder / "inner" / "a.vcon")
        (folder / "round").symlink_to(folder)
        (folder / "round.vcon").symlink_to(folder)
        (folder / "self.vcon").symlink_to(folder / "self.vcon")
        assert list(expand([folder])) == [
            folder / "b.vcon",
            folder / "self.vcon",
            folder / "inner" / "a.vcon",
        ]
        (tmp_path / "named").symlink_to(folder)
        assert len(list(expand([tmp_path / "named"]))) == 3

    def test_vanished_and_circular_files(self, capsysbinary, tmp_path):
        """A file that is gone when its turn comes, and a link to itself, are errors beside the others' results."""
        (tmp_path / "a.vcon").symlink_to(tmp_path / "gone")
        (tmp_path / "b.vcon").symlink_to(tmp_path / "b.vcon")
        (tmp_path / "c.vcon").write_bytes(text(GOOD))
        code, out, _ = run(capsysbinary, tmp_path, "--json")
        first, second, third = json.loads(out)["files"]
        assert code == 2
        assert (first["error"]["code"], second["error"]["code"]) == ("file-missing", "file-unreadable")
        assert third["form"] == "unsigned"

    @pytest.mark.parametrize("options", [[], ["--json"]])
    def test_names_that_are_no_text(self, capsysbinary, tmp_path, options):
        """Names with newlines and without UTF-8 are checked like others, and printed on one line."""
        for name in (b"new\nline.vcon", b"no-utf8-\xff.vcon", b"UPPER.VCON", "wide-\u4e2d.vcon".encode()):
            (tmp_path / os.fsdecode(name)).write_bytes(text(GOOD))
        code, out, _ = run(capsysbinary, tmp_path, *options)
        assert code == 0
        if options:
            assert len(json.loads(out)["files"]) == 4
        else:
            assert "new\\u{a}line.vcon" in out
            assert "4 files: 4 without error" in out

    @pytest.mark.parametrize("special", ["fifo", "folder-link"])
    def test_special_files(self, capsysbinary, tmp_path, special):
        """A pipe in place of a file is refused at once and not waited for."""
        path = tmp_path / "x.vcon"
        if special == "fifo":
            os.mkfifo(path)
            assert run(capsysbinary, path)[0] == 2
        else:
            path.symlink_to(tmp_path)
            assert run(capsysbinary, tmp_path)[0] == 2

    @pytest.mark.parametrize("options", [[], ["--json"]])
    def test_streaming(self, capsysbinary, files, monkeypatch, options):
        """What is known of a file is printed before the next one is read."""
        real, printed = module.check, []

        def spy(data, **settings):
            printed.append(capsysbinary.readouterr().out)
            return real(data, **settings)

        monkeypatch.setattr(module, "check", spy)
        _, rest, _ = run(capsysbinary, files / "good.vcon", files / "bad.vcon.json", *options)
        assert (printed[0], b"good.vcon" in printed[1]) == (b"", True)
        assert "bad.vcon.json" in rest
        if options:
            assert len(json.loads(b"".join(printed).decode() + rest)["files"]) == 2


class TestSuppression:
    def test_by_code(self, capsysbinary, files):
        """A suppressed code is counted and not reported, and no longer fails the run."""
        path = files / "bad.vcon.json"
        code, out, _ = run(capsysbinary, path, "--suppress", "attempt-invalid", "--json")
        (entry,) = json.loads(out)["files"]
        assert (code, entry["suppressed"], json.loads(out)["totals"]["suppressed"]) == (0, 1, 1)
        assert "attempt-invalid" not in codes(entry)
        _, out, _ = run(capsysbinary, path, "--suppress", "attempt-invalid")
        assert "1 suppressed" in out

    @pytest.mark.parametrize(
        ("place", "suppressed"),
        [
            ("/events/1", 1),
            ("/events/1/attempt", 1),
            ("/events", 12),
            ("/event", 0),
            ("/events/10", 1),
            ("", 12),
        ],
    )
    def test_by_place(self, capsysbinary, tmp_path, place, suppressed):
        """A place stands for itself and what is below it, by whole names."""
        path = tmp_path / "x.vcon"
        path.write_bytes(
            text(vcon(*[invocation(attempt=0, operation_id=f"o{number}") for number in range(12)]))
        )
        code, out, _ = run(capsysbinary, path, "--suppress", f"attempt-invalid={place}", "--json")
        (entry,) = json.loads(out)["files"]
        assert entry["suppressed"] == suppressed
        assert code == (0 if suppressed == 12 else 1)

    def test_beyond_the_cap(self, capsysbinary, tmp_path):
        """More suppressed findings than are kept do not fail the run through the count of those left out."""
        path = tmp_path / "x.vcon"
        path.write_bytes(text(vcon(parties=[1] * (MAX_FINDINGS + 5))))
        code, out, _ = run(capsysbinary, path, "--suppress", "type-mismatch=/parties", "--json")
        (entry,) = json.loads(out)["files"]
        assert (code, entry["suppressed"], entry.get("findingsLeftOut")) == (0, MAX_FINDINGS + 5, None)

    def test_in_an_envelope(self, capsysbinary, tmp_path):
        """Findings about an envelope are suppressed like others."""
        path = tmp_path / "x.vcon"
        path.write_bytes(b'{"payload":"e30","signatures":[]}')
        _, out, _ = run(capsysbinary, path, "--json")
        assert "jws-no-signature" in codes(json.loads(out)["files"][0])
        _, out, _ = run(capsysbinary, path, "--suppress", "jws-no-signature=/signatures", "--json")
        entry = json.loads(out)["files"][0]
        assert "jws-no-signature" not in codes(entry)
        assert entry["suppressed"] == 1

    def test_where_json_ends(self, capsysbinary, tmp_path):
        """Of a text that is no JSON the line and the column are said, and nothing of the text."""
        path = tmp_path / "x.vcon"
        path.write_bytes(b'{"uuid": 1,\n "secret": }')
        code, out, _ = run(capsysbinary, path)
        assert code == 2
        assert "not JSON at line 2, column 12" in out
        assert "secret" not in out

    def test_no_right_to_read(self, capsysbinary, files, monkeypatch):
        """Opening a file tells whether it may be read: no look ahead stops the run over the others as a usage error."""
        locked = files / "good.vcon"
        access = os.access
        monkeypatch.setattr(
            "os.access", lambda path, *mode, **how: str(path) != str(locked) and access(path, *mode, **how)
        )
        code, out, _ = run(capsysbinary, locked, files / "good.vcon", "--json")
        assert (code, json.loads(out)["totals"]["files"]) == (0, 2)

    def test_fatal_stays(self, capsysbinary, files):
        """A fatal finding cannot be suppressed."""
        code, out, _ = run(capsysbinary, files / "sub/broken.vcon", "--suppress", "json-invalid", "--json")
        assert (code, json.loads(out)["error"]["code"]) == (2, "finding-code-fatal")

    def test_from_the_configuration(self, capsysbinary, files, tmp_path):
        """The configuration suppresses too, beside the options."""
        config = tmp_path / "onrecord.toml"
        config.write_text(
            f'mode = "user"\n[paths]\nruntime = "{tmp_path}/r"\n[check]\n'
            'suppress = [{ code = "attempt-invalid", pointer = "/events" }, { code = "undecided" }]\n'
        )
        config.chmod(0o600)
        found = run(
            capsysbinary, files / "bad.vcon.json", "--suppress", "attempt-gap", "--config", config, "--json"
        )
        (entry,) = json.loads(found[1])["files"]
        assert (found[0], entry["suppressed"]) == (0, 3)
        assert not {"attempt-invalid", "undecided", "attempt-gap"} & codes(entry)

    def test_bad_configuration(self, capsysbinary, files, tmp_path):
        """A rule of the configuration that cannot be is an error which names the file and the place."""
        config = tmp_path / "onrecord.toml"
        config.write_text(
            f'mode = "user"\n[paths]\nruntime = "{tmp_path}/r"\n[check]\nsuppress = [{{ code = "uuid-mising" }}]\n'
        )
        config.chmod(0o600)
        code, out, _ = run(capsysbinary, files / "good.vcon", "--config", config, "--json")
        error = json.loads(out)["error"]
        assert (code, error["code"]) == (2, "finding-code-unknown")
        assert error["where"] == {"file": str(config), "pointer": "/check/suppress"}
        assert "uuid-missing" in error["hint"]

    def test_unusable_configuration(self, capsysbinary, files, tmp_path, monkeypatch):
        """A configuration that nobody named and that cannot be used is said so; the files are checked without it."""
        config = tmp_path / "onrecord.toml"
        config.write_text("mode = 3\n")
        config.chmod(0o600)
        monkeypatch.setenv("ONRECORD_CONFIG", str(config))
        code, out, err = run(capsysbinary, files / "good.vcon", "--json")
        assert (code, len(json.loads(out)["files"])) == (0, 1)
        assert "the configuration is not used" in err


class TestExplain:
    @pytest.mark.parametrize("code", ["uuid-missing", "legacy-name", "json-invalid", "undecided"])
    def test_from_the_command_line(self, capsysbinary, code):
        """A code is explained without a file: what it means, how severe it is, what to change, where it is from."""
        status, out, _ = run(capsysbinary, "--explain", code)
        entry = CATALOGUE[code]
        assert status == 0
        assert out.startswith(f"{code}: ")
        for part in (entry.meaning, entry.change, entry.source):
            assert part in out

    def test_every_code(self):
        """Each code of the catalogue is explained whole, as text and as JSON."""
        for code, entry in CATALOGUE.items():
            out = io.StringIO()
            document = explain(code)
            print_explanation(Console(file=out, width=80), document)
            for part in (code, entry.meaning, entry.change, entry.source):
                assert part in out.getvalue()
                assert part in document.values()

    def test_json(self, capsysbinary):
        """The JSON says what --strict makes of a code, and whether reading stops there."""
        _, out, _ = run(capsysbinary, "--explain", "legacy-name", "--json")
        explained = json.loads(out)
        assert (explained["severity"], explained["strict"], explained["fatal"]) == ("warning", "error", False)
        _, out, _ = run(capsysbinary, "--explain", "json-invalid", "--json")
        assert json.loads(out)["fatal"] is True

    def test_unknown(self, capsysbinary):
        """An unknown code is an error that names the nearest."""
        status, out, _ = run(capsysbinary, "--explain", "legacy-names", "--json")
        error = json.loads(out)["error"]
        assert (status, error["code"]) == (2, "finding-code-unknown")
        assert "legacy-name" in error["hint"]


_INTERRUPTED = """
import os, signal, sys
import onrecord.cli.check as module
from onrecord.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)
where, real, seen = sys.argv[1], module.check, []
def check(data, **options):
    seen.append(1)
    if len(seen) == 2 and where == "check":
        os.kill(os.getpid(), signal.SIGINT)
    return real(data, **options)
def report(self, checked, real=module.Report.add):
    if len(seen) == 2 and where == "print":
        os.kill(os.getpid(), signal.SIGINT)
    real(self, checked)
module.check = check
module.Report.add = report
main(["check", *sys.argv[2:]])
"""


class TestInterrupt:
    @pytest.mark.parametrize(("where", "files_before"), [("check", 1), ("print", 2)])
    def test_json_stays_whole(self, files, where, files_before):
        """Ctrl-C ends with 130 and a whole document of what was found; a file that is being printed is finished."""
        done = subprocess.run(
            [sys.executable, "-c", _INTERRUPTED, where, files, "--json"], capture_output=True, check=False
        )
        document = json.loads(done.stdout)
        assert done.returncode == 130
        assert document["interrupted"] is True
        assert len(document["files"]) == document["totals"]["files"] == files_before
        assert b"Traceback" not in done.stderr

    def test_text_has_the_totals(self, files):
        """For people the totals of what was checked are printed, and that it was interrupted."""
        done = subprocess.run(
            [sys.executable, "-c", _INTERRUPTED, "check", files], capture_output=True, check=False, text=True
        )
        assert done.returncode == 130
        assert "What to change:" in done.stdout
        assert "interrupted; 1 file was checked until then" in done.stderr

    def test_before_the_first_file(self, capsysbinary, files, monkeypatch):
        """A document that nothing stands in yet is whole too."""

        def check(data, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(module, "check", check)
        code, out, _ = run(capsysbinary, files, "--json")
        assert code == 130
        assert json.loads(out)["files"] == []
