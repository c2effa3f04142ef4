"""Make the environments of the peers, each from its own peers/NAME.txt. What cannot be installed is reported as absent.

Not part of the project's own environment: mcp-firewall is AGPL and is only ever run as a program. A first line
`# python>=3.12` asks for an interpreter at least that new; PEER_PYTHON names one that is not found otherwise.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from _measure import PEERS, say

NEWEST = 15
"""Newest minor version of Python 3 that is looked for."""


def environment(name):
    return PEERS / f".env-{name}"


def program(name, executable):
    return str(environment(name) / "bin" / executable)


def is_present(name):
    return (environment(name) / "complete").exists()


def least_python(name):
    """Return the oldest minor version of Python 3 that the peer runs on."""
    asked = re.match(r"# python>=3\.(\d+)\n", (PEERS / f"{name}.txt").read_text(encoding="utf-8"))
    return f"3.{asked[1]}" if asked else "3.0"


def interpreter(least):
    """Return an interpreter at least as new as `least`, our own if it is, else None."""
    minors = range(int(least.split(".")[1]), NEWEST + 1)
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [os.environ.get("PEER_PYTHON"), sys.executable]
    candidates += [shutil.which(f"python3.{minor}") for minor in minors]
    candidates += [
        str(path) for minor in minors for path in versions.glob(f"3.{minor}.*/bin/python3.{minor}")
    ]
    question = f"import sys, ensurepip; sys.exit(sys.version_info < (3, {least.split('.')[1]}))"
    for python in filter(None, candidates):
        if subprocess.run([python, "-c", question], check=False, capture_output=True).returncode == 0:
            return python
    return None


def make(name):
    """Return whether the environment of `name` is there, after trying."""
    if is_present(name):
        return True
    python = interpreter(least_python(name))
    if python is None:
        say(
            f"peers: {name} needs Python {least_python(name)}, which is not here (PEER_PYTHON=PATH names one)"
        )
        return False
    say(f"peers: installing {name}")
    if subprocess.run([python, "-m", "venv", "--clear", environment(name)], check=False).returncode != 0:
        say(f"peers: {python} makes no environment; benchmarks report {name} as absent")
        return False
    command = [program(name, "python"), "-m", "pip", "install", "--quiet", "-r", str(PEERS / f"{name}.txt")]
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode != 0:
        say(f"peers: {name} could not be installed; benchmarks report it as absent")
        return False
    (environment(name) / "complete").touch()
    return True


def main():
    for path in sorted(PEERS.glob("*.txt")):
        make(path.stem)


if __name__ == "__main__":
    main()
