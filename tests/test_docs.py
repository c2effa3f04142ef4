"""The documentation says what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.data import REPOSITORY
from support.runtime import make_short_dir
from support.uids import uid_block_or_skip

DOCS = REPOSITORY / "docs"


def test_generated_pages():
    """The pages of docs/reference are what docs/build.py makes of the code now."""
    run = subprocess.run([sys.executable, DOCS / "build.py"], capture_output=True, text=True, cwd=REPOSITORY)
    assert run.returncode == 0, run.stderr


def test_requirement_marks():
    """Every requirement id on a test exists in the table, so that no mark is a misprint."""
    sys.path.insert(0, str(DOCS))
    try:
        import build
    finally:
        sys.path.remove(str(DOCS))
    known = {
        line.split("\t")[0] for line in (DOCS / "reference/requirements.tsv").read_text().splitlines()[1:]
    }
    unknown = {name for name in build.marked_requirements() if name not in known and name[:2] in ("CP", "TI")}
    assert not unknown


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda path: path.name
)
def test_links(page):
    """Every relative link leads to a file that exists."""
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda path: path.name
)
def test_commands_exist(page):
    """Every `onrecord VERB` in the text is a command."""
    from onrecord.cli.main import VERBS

    for verb in re.findall(r"`onrecord ([a-z]+)", page.read_text(encoding="utf-8")):
        assert verb in VERBS, verb


def console_steps(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of the console blocks, each with the output lines shown for it.

    A here-document is one command: its lines stand with the same prompt.
    """
    steps: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                if steps and "<<END" in steps[-1][0] and not steps[-1][0].endswith("\nEND"):
                    steps[-1] = (f"{steps[-1][0]}\n{line[2:]}", [])
                else:
                    steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return steps


def matches(shown: str, line: str) -> bool:
    """Say whether an output line fits what the page shows, where `...` stands for anything."""
    return re.fullmatch(".*".join(re.escape(part) for part in shown.split("...")), line) is not None


class TestTutorial:
    def test_runs_as_written(self):
        """Each command of the tutorial ends well for a new user, and prints the lines that the page shows."""
        home = make_short_dir()
        identity = []
        if os.geteuid() == 0:  # user mode is for ordinary users
            uid = uid_block_or_skip()[0]
            os.chown(home, uid, uid)
            identity = [sys.executable, "-c", (
                "import os, sys; u = int(sys.argv[1]); os.setgroups([]); os.setgid(u); os.setuid(u);"
                "os.execvp(sys.argv[2], sys.argv[2:])"
            ), str(uid)]  # fmt: skip
        steps = console_steps((DOCS / "tutorial.md").read_text(encoding="utf-8"))
        script = ["set -m"]
        for number, (command, _) in enumerate(steps):
            script.append(f"echo '@@ {number}'\n{command}\necho \"@@ status $?\"")
            if command.startswith("onrecord up"):
                script.append(
                    "until onrecord control status >/dev/null 2>&1; do read -t 0.2 <> <(:) || true; done"
                )
        environment = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TMPDIR": str(home),
        }
        try:
            run = subprocess.run(
                [*identity, "bash", "-c", "\n".join(script)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=REPOSITORY,
                env=environment,
                timeout=100,
            )
        finally:
            subprocess.run(["rm", "-rf", str(home)], check=True)
        output = run.stdout.decode("utf-8", "replace")
        parts = re.split(r"^@@ (\d+)\n", output, flags=re.MULTILINE)
        assert len(parts) == 2 * len(steps) + 1, output
        for number, (command, shown) in enumerate(steps):
            printed = parts[2 * number + 2]
            assert "@@ status 0" in printed, f"{command}\n{printed}"
            lines = iter(printed.splitlines())
            for line in shown:
                assert any(matches(line, candidate) for candidate in lines), (
                    f"{command}: no line {line!r} in\n{printed}"
                )
