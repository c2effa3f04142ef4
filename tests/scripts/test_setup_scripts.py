"""The scripts behind `make setup`: which interpreters are accepted, and that the entries exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from support.data import REPOSITORY

JUDGE = REPOSITORY / "scripts" / "judge_python.py"


def judge(executable, wanted):
    done = subprocess.run([executable, "-I", str(JUDGE), wanted], capture_output=True, text=True)
    return done.stdout.strip()


class TestJudge:
    def test_own_interpreter(self):
        """The interpreter of the tests has all that is needed."""
        assert judge(sys.executable, "any") in {"ok", "ok no-ensurepip"}

    def test_closed_interpreter(self, tmp_path):
        """A copy of an interpreter below a directory of mode 0700 is not reachable for other uids (running R-03)."""
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        copy = closed / "python3"
        shutil.copy(sys._base_executable, copy)
        done = subprocess.run([copy, "-I", "-c", "import ssl"], capture_output=True)
        if done.returncode != 0:
            pytest.skip("a copied interpreter does not run on this machine")
        assert judge(copy, "reachable") == "other uids cannot execute it"
        assert judge(copy, "any").startswith("ok")


class TestFiles:
    @pytest.mark.parametrize("name", ["setup.sh", "test-servers.sh", "clean.sh"])
    def test_shell_syntax(self, name):
        """The scripts are well-formed and executable."""
        path = REPOSITORY / "scripts" / name
        assert subprocess.run(["bash", "-n", str(path)]).returncode == 0
        assert path.stat().st_mode & 0o100

    def test_ci_calls_make(self):
        """Continuous integration runs the target that people run."""
        assert "make test" in (REPOSITORY / ".ci" / "run").read_text()

    def test_constraints_are_pinned(self):
        """Every line pins one package exactly; there are no addresses and no options."""
        lines = [
            line
            for line in (REPOSITORY / "constraints.txt").read_text().splitlines()
            if line and line[0] != "#"
        ]
        assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][a-z0-9.]*", line) for line in lines)
        assert len({line.split("==")[0] for line in lines}) == len(lines)

    def test_constraints_cover_the_project(self):
        """Everything that pyproject.toml asks for is pinned."""
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
        wanted = list(project["project"]["dependencies"])
        for extra in ("fast", "mcp", "dev"):
            wanted += project["project"]["optional-dependencies"][extra]
        wanted += project["build-system"]["requires"]
        names = {re.match(r"[A-Za-z0-9-]+", one)[0] for one in wanted}
        pinned = {line.split("==")[0] for line in (REPOSITORY / "constraints.txt").read_text().splitlines()}
        assert names <= pinned

    def test_every_target_is_explained(self):
        """`make` alone lists the targets of the house."""
        text = (REPOSITORY / "Makefile").read_text()
        for target in ("setup", "demo", "test", "check", "lint", "bench", "docs", "clean"):
            assert re.search(rf"^{target}:", text, re.MULTILINE)
            assert f"make {target}" in text
