"""`onrecord import`: what is printed, exit codes, the report file, signing, Ctrl-C and a kill in the middle."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from rich.console import Console

from onrecord.base.keys import write_private_key
from onrecord.cli import import_reports
from onrecord.cli.import_progress import ImportProgress
from onrecord.cli.import_reports import print_report
from onrecord.cli.main import main
from onrecord.record.forms import open_form, verify
from onrecord.record.logs.importing import Import
from support.data import REPOSITORY
from support.diary import Registered, line, write
from support.vcons import NOW


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder of its own, with the invented format known."""
    monkeypatch.chdir(tmp_path)
    with Registered():
        yield


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["import", *map(str, arguments)])
    captured = capsysbinary.readouterr()
    return ended.value.code, captured.out.decode(), captured.err.decode()


@pytest.fixture
def logs(tmp_path):
    """Three files: a session with its sub-agent, a broken line, a secret, and a file of no format."""
    top = tmp_path / "logs"
    write(top / "a.jsonl", line(), '{"broken\n', line(said="key AKIAIOSFODNN7EXAMPLE", who="agent"))
    write(top / "a/child.jsonl", line(run="r2", below="r1"))
    write(top / "x.json", '{"x":1}')
    write(top / "notes.md", "x")
    return top


class TestText:
    def test_summary(self, capsysbinary, logs):
        """People see sessions, what was found and where, what was not imported, the account and the folder."""
        code, out, err = run(capsysbinary, logs)
        assert (code, err) == (0, "")
        rows = out.splitlines()
        assert rows[0].split() == [
            "agent",
            "session",
            "started",
            "turns",
            "calls",
            "tokens",
            "in",
            "out",
            "vCon",
        ]
        assert rows[1].split()[:5] == ["diary", "r1", "2026-07-01", "10:00", "1"]
        assert rows[2].split()[:3] == ["└", "diary", "r2"]
        assert "warning malformed-line  a piece of the log that is not JSON" in out
        assert f"files below {logs}/:\n" in out
        assert "        a.jsonl, record 2\n" in out
        assert "AKIA" not in out
        assert "unknown-format 1 file not imported" in out
        assert "4 records read = 3 mapped + 0 duplicates + 1 reported" in out
        assert rows[-1] == "1 vCon in vcons: 1 new"

    def test_again(self, capsysbinary, logs):
        """The second run says that nothing had to be read, and shows the sessions again."""
        run(capsysbinary, logs)
        _, out, _ = run(capsysbinary, logs)
        assert "2 unchanged since the last import" in out
        assert out.splitlines()[1].split()[:2] == ["diary", "r1"]
        assert out.splitlines()[-1] == "no vCon in vcons had to change"

    def test_many(self, capsysbinary, tmp_path):
        """Of many sessions the first are printed and the others counted."""
        count = import_reports.SHOWN_SESSIONS + 2
        write(tmp_path / "m.jsonl", *(line(run=f"r{number}") for number in range(count)))
        _, out, _ = run(capsysbinary, tmp_path / "m.jsonl")
        assert "and 2 more sessions; --json has them all" in out

    def test_sub_agents(self, capsysbinary, tmp_path):
        """Sessions whose ids begin alike are told apart: a sub-agent by its own part, what is a hash by its digits."""
        runs = ["0a1b2c3d-0000-4000-8000-000000000001", f"sha256-{'1f' * 32}", f"sha256-{'2e' * 32}"]
        children = (
            line(run=f"{runs[0]}/agent-a{number}", below=runs[0], id=f"c{number}") for number in (1, 2)
        )
        alone = line(run="feedbeef-0000-4000-8000-000000000001/agent-a3b4c5d6e7f8a9b0", id="d")
        rows = (line(run=one, id=one) for one in runs)
        write(tmp_path / "s.jsonl", *rows, *children, alone)
        _, out, _ = run(capsysbinary, tmp_path / "s.jsonl")
        shown = [row.split(" 2026-")[0].split()[-1] for row in out.splitlines()[1:7]]
        assert shown[:3] == ["0a1b2c3d…", "/agent-a1", "/agent-a2"]
        assert shown[3:] == ["sha256-1f1f1f1f…", "sha256-2e2e2e2e…", "…/agent-a3b4c5d6…"]

    def test_narrow(self, tmp_path):
        """On a narrow terminal columns are left out so that each session has one line, with the vCon at its end."""
        write(
            tmp_path / "n.jsonl", *(line(run=f"r{number}-{'x' * 20}", id=str(number)) for number in range(3))
        )
        work = Import([tmp_path / "n.jsonl"], to=tmp_path / "v")
        work.run()
        shown = {}
        for width in (120, 60):
            screen = io.StringIO()
            print_report(Console(file=screen, width=width, force_terminal=True, no_color=True), work.report())
            shown[width] = re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue()).splitlines()
            assert max(map(len, shown[width])) <= width
        assert shown[120][0].split()[3:] == ["turns", "calls", "tokens", "in", "out", "vCon"]
        assert shown[60][0].split()[2] == "started"
        assert "turns" not in shown[60][0]
        assert [row[-9:] for row in shown[60][1:4]] == [row[-9:] for row in shown[120][1:4]]

    def test_places(self, capsysbinary, tmp_path):
        """What is not printed of the places of a finding is counted whole, folded ones too."""
        write(tmp_path / "p.jsonl", line(), *["{broken\n"] * 40)
        _, out, _ = run(capsysbinary, tmp_path / "p.jsonl")
        assert "malformed-line 40×" in out
        assert "and 37 more; --json says where" in out

    def test_hostile_names(self, capsysbinary, tmp_path):
        """Names of files and sessions cannot steer the terminal."""
        write(tmp_path / "n\n\x1b[31m.jsonl", line(run="\x1b]0;x\x07"), "{x\n")
        _, out, _ = run(capsysbinary, tmp_path)
        assert "\x1b" not in out
        assert "\\u{a}\\u{1b}[31m.jsonl" in out

    def test_twins(self, capsysbinary, logs):
        """Duplicates are counted with their reasons."""
        write(logs / "b.jsonl", (logs / "a.jsonl").read_text())
        _, out, _ = run(capsysbinary, logs)
        assert "+ 3 duplicates (3 file-twin) + 1 reported" in out


class TestJson:
    def test_document(self, capsysbinary, logs, tmp_path):
        """One document on standard output, and the same in the report file, of mode 0600."""
        code, out, err = run(capsysbinary, logs, "--json", "--report", tmp_path / "r.json", "--to", "v")
        document = json.loads(out)
        assert (code, err) == (0, "")
        assert document == json.loads((tmp_path / "r.json").read_text())
        assert [part["format"] for part in document["files"]] == ["diary", None, "diary"]
        assert document["totals"]["not_looked_at"]["files"] == 1
        session = document["files"][0]["sessions"][0]
        assert os.path.exists(session["vcon"])
        assert session["counts"]["user_turns"] == 1

    def test_report_exists(self, capsysbinary, logs, tmp_path):
        """A report is not written over a file, and nothing is imported then."""
        (tmp_path / "r.json").write_text("mine")
        code, _, err = run(capsysbinary, logs, "--report", tmp_path / "r.json")
        assert (code, "file-exists" in err) == (2, True)
        assert not (tmp_path / "vcons").exists()


class TestExit:
    def test_findings(self, capsysbinary, logs):
        """--fail-on says from which severity on findings count; a named unknown file is an error."""
        assert run(capsysbinary, logs)[0] == 0
        assert run(capsysbinary, logs, "--fail-on", "warning")[0] == 1
        assert run(capsysbinary, logs / "x.json")[0] == 1
        assert run(capsysbinary, logs / "x.json", "--fail-on", "never")[0] == 0

    def test_input(self, capsysbinary, logs):
        """A missing path and no path at all are input errors; the other paths are imported."""
        code, out, _ = run(capsysbinary, "absent", logs)
        assert (code, "1 vCon in vcons: 1 new" in out) == (2, True)
        assert "error   unreadable-file 1 file not imported" in out
        assert run(capsysbinary)[0] == 2
        assert run(capsysbinary, logs, "--format", "novel")[0] == 2
        assert run(capsysbinary, logs, "--verify", "--no-rest")[0] == 2
        assert run(capsysbinary, logs, "--key", "k.pem")[0] == 2

    def test_fault(self, capsysbinary, logs):
        """A fault of ours in one file is exit 3, after all others were imported."""
        write(logs / "bad.jsonl", line(run="r9", said="fail"))
        code, out, _ = run(capsysbinary, logs)
        assert (code, "1 vCon in vcons: 1 new" in out) == (3, True)
        assert "importer-failed 1 file not imported" in out

    def test_verify(self, capsysbinary, logs):
        """--verify reports a text that is not in the vCon."""
        write(logs / "c.jsonl", line(run="r5", mood="very cheerful"))
        code, out, _ = run(capsysbinary, logs / "c.jsonl", "--verify")
        assert (code, "content-not-found" in out) == (1, True)


class TestOptions:
    def test_redact(self, capsysbinary, logs, tmp_path):
        """--redact replaces what is reported otherwise."""
        run(capsysbinary, logs, "--redact")
        text = b"".join(path.read_bytes() for path in (tmp_path / "vcons").glob("*.vcon"))
        assert b"AKIA" not in text
        assert b"hello" in text

    def test_sign(self, capsysbinary, logs, tmp_path, pki):
        """--sign writes signed vCons that verify; what has not changed is not signed anew, nor replaced unsigned."""
        write_private_key(tmp_path / "key.pem", pki.keys["p256"])
        chain = (*pki.chain("p256", start=NOW.replace(year=2020), end=NOW.replace(year=2050)), pki.root)
        (tmp_path / "chain.pem").write_bytes(b"".join(one.public_bytes(Encoding.PEM) for one in chain))
        key = ("--sign", "--key", tmp_path / "key.pem", "--certificate", tmp_path / "chain.pem")
        assert run(capsysbinary, logs, *key)[0] == 0
        (path,) = (tmp_path / "vcons").glob("*.vcon")
        before = path.read_bytes()
        assert verify(before, anchors=[pki.root]).verdict == "verified"
        _, out, _ = run(capsysbinary, logs, *key, "--all")
        assert "1 vCon in vcons: 1 the same as before" in out
        assert path.read_bytes() == before
        with open(logs / "a.jsonl", "a") as file:
            file.write(line(said="more"))
        assert run(capsysbinary, logs, *key)[0] == 0
        first, second = (open_form(text).payload.value for text in (before, path.read_bytes()))
        assert first["created_at"] == second["created_at"]
        assert len(second["dialog"]) == len(first["dialog"]) + 1
        signed = path.read_bytes()
        code, out, _ = run(capsysbinary, logs)
        assert (code, "vcon-not-replaced" in out) == (1, True)
        assert path.read_bytes() == signed


class Screen(io.StringIO):
    """A terminal without a size."""

    def isatty(self):
        return True


class TestProgress:
    def test_line(self):
        """The line says files, bytes, speed and findings, inside of a large file too."""
        now = [0.0]
        screen = Screen()
        progress = ImportProgress(stream=screen, clock=lambda: now[0])
        now[0] = 1.0
        progress.looking_at("/home/ann/a")
        assert "looking: 1 file; a" in screen.getvalue()
        progress.planned(2, 3_000_000)
        progress.begin("a.jsonl")
        progress.end(1_000_000, 3)
        progress.begin("/home/ann/b.jsonl")
        now[0] = 2.0
        progress.read(500_000)
        assert "importing: 1 of 2 files, 1.5 MB of 3.0 MB, 1.5 MB/s, 3 findings; b.jsonl" in screen.getvalue()
        progress.clear()
        assert screen.getvalue().endswith("\r\x1b[K")


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from support.diary import Diary, Registered
from onrecord.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)
whole = Diary.record

def record(self, record):
    if record.value.get("said") == "signal":
        os.kill(os.getpid(), signal.{name})
    whole(self, record)

Diary.record = record
with Registered():
    main(["import", *sys.argv[1:]])
"""


class TestSignals:
    @pytest.fixture
    def stopped(self, tmp_path):
        """Two folders, in the second one of which the importer is hit by a signal."""
        write(tmp_path / "logs/p1/a.jsonl", line())
        write(tmp_path / "logs/p2/b.jsonl", line(run="r2", said="one"), line(run="r2", said="signal"))

        def start(name, *arguments):
            script = SCRIPT.format(tests=str(REPOSITORY / "tests"), name=name)
            return subprocess.run(
                [sys.executable, "-c", textwrap.dedent(script), "logs", *arguments],
                capture_output=True,
                cwd=tmp_path,
                timeout=60,
                check=False,
            )

        return start

    def test_interrupted(self, stopped, tmp_path):
        """Ctrl-C: exit 130, the report of what was done, whole vCons only."""
        done = stopped("SIGINT", "--json")
        document = json.loads(done.stdout)
        assert (done.returncode, document["interrupted"]) == (130, True)
        assert [os.path.basename(part["file"]) for part in document["files"]] == ["a.jsonl"]
        assert b"interrupted" in done.stderr
        assert sorted(path.suffix for path in (tmp_path / "vcons").iterdir()) == [".state", ".vcon"]

    def test_killed(self, stopped, tmp_path, capsysbinary):
        """A kill leaves whole vCons; the next run finishes the work."""
        assert stopped("SIGKILL").returncode == -signal.SIGKILL
        assert [path.suffix for path in (tmp_path / "vcons").iterdir()] == [".vcon"]
        write(tmp_path / "logs/p2/b.jsonl", line(run="r2", said="one"))
        assert run(capsysbinary, "logs")[0] == 0
        assert len(list((tmp_path / "vcons").glob("*.vcon"))) == 2
