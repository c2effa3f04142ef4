"""Make the environments of the peers, each from its own peers/NAME.txt. What cannot be installed is reported as absent.

Not part of the project's own environment: mcp-firewall is AGPL and is only ever run as a program.
"""

import subprocess
import sys
import venv

from _measure import PEERS, say


def environment(name):
    return PEERS / f".env-{name}"


def program(name, executable):
    return str(environment(name) / "bin" / executable)


def is_present(name):
    return (environment(name) / "complete").exists()


def make(name):
    """Return whether the environment of `name` is there, after trying."""
    if is_present(name):
        return True
    say(f"peers: installing {name}")
    venv.create(environment(name), with_pip=True, clear=True)
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
