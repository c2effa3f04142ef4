"""Coverage-guided fuzzing of all that reads vCons and native logs: `make fuzz`, or ARGS='check --seconds 600'.

Each target of tests/support/fuzz_targets.py runs in a process of its own, from the seeds of tests/support/hostile.py,
with a mutator that changes JSON as JSON. What falls out is kept in fuzz/found/TARGET/ and the exit status is 1.
It needs atheris: pip install 'onrecord[fuzz]'.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOUND = HERE / "found"
sys.path.insert(0, str(HERE.parent / "tests"))


def all_targets():
    from support.fuzz_targets import LOG_TARGETS, TARGETS

    return TARGETS | LOG_TARGETS


def write_seeds(directory):
    from support.fuzz_targets import LOG_TARGETS
    from support.hostile import texts
    from support.log_seeds import LINES, log

    seeds = {name: log(name) for name in LINES} if directory.name in LOG_TARGETS else texts()
    for name, data in seeds.items():
        (directory / name).write_bytes(data)


def write_dictionary(path):
    from support.hostile import NAMES, ODD_VALUES

    words = [f'"{name}"' for name in NAMES] + [json.dumps(value) for value in ODD_VALUES]
    lines = []
    for word in dict.fromkeys(words):
        escaped = word.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'"{escaped}"')
    path.write_text("\n".join(lines) + "\n")


def run_all(names, seconds):
    """Run targets one after the other, each in a process, and say how each ended."""
    failed = []
    with tempfile.TemporaryDirectory(prefix="onrecord-fuzz-") as directory:
        write_dictionary(Path(directory) / "words.txt")
        for name in names:
            corpus = Path(directory) / name
            corpus.mkdir()
            write_seeds(corpus)
            command = [
                sys.executable,
                str(HERE / "one.py"),
                name,
                str(seconds),
                str(corpus),
                str(FOUND / name),
            ]
            ended = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
            executed = [line for line in ended.stderr.splitlines() if "number_of_executed_units" in line]
            count = executed[0].split()[-1] if executed else "?"
            print(f"{name:12} {'ok' if ended.returncode == 0 else 'FAILED'}  {count} inputs", flush=True)
            if ended.returncode != 0:
                failed.append(name)
                print("\n".join((ended.stdout + ended.stderr).splitlines()[-40:]))
    if failed:
        print(f"kept in {FOUND}: make a test of each, then mend it", file=sys.stderr)
    return 1 if failed else 0


def replay(name, files):
    """Run a target on files that were kept."""
    for file in files:
        print(f"{name}: {file}", file=sys.stderr)
        all_targets()[name](Path(file).read_bytes())


def main():
    targets = all_targets()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(targets)}; all without one")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--replay", nargs="+", metavar="FILE", help="only run these files through the target")
    options = parser.parse_args()
    unknown = [name for name in options.targets if name not in targets]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; targets: {', '.join(targets)}")
    if options.replay:
        replay(options.targets[0], options.replay)
        return 0
    if importlib.util.find_spec("atheris") is None:
        print(
            "fuzz: atheris is not installed\n"
            "  next: .venv/bin/python -m pip install -c constraints.txt '.[fuzz]' "
            "(Apache-2.0; wheels for Linux and macOS)",
            file=sys.stderr,
        )
        return 3
    return run_all(options.targets or list(targets), options.seconds)


if __name__ == "__main__":
    sys.exit(main())
