"""Runs one fuzz target in this process: one.py TARGET SECONDS CORPUS KEPT. run.py starts it; it never returns.

Our code is instrumented as it is imported, so nothing of it may be imported before.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
with atheris.instrument_imports(include=["onrecord"]):
    from support.fuzz_targets import LOG_TARGETS, TARGETS
    from support.hostile import mutated, spelled, wrapped

MAX_BYTES = 16_384
"""Longest input made. Faults of size have tests of their own; coverage comes from short ones, quickly."""

TIMEOUT_S = 20
"""One input may take so long. Instrumented code is some ten times slower than usual."""


def mutate(data, max_size, seed):
    """Change a JSON text, or one line of a log, as JSON three times out of four, else as bytes."""
    source = random.Random(seed)
    if b"\n" in data.strip():
        lines = bytes(data).split(b"\n")
        place = source.randrange(len(lines))
        lines[place] = bytes(mutate(lines[place], max_size - len(data) + len(lines[place]), seed))
        return b"\n".join(lines)
    if source.randrange(4):
        try:
            value = json.loads(data)
            made = wrapped(spelled(mutated(value, source, source.choice([1, 1, 2, 5])), source), source)
        except (ValueError, RecursionError):
            made = b""
        if 0 < len(made) <= max_size:
            return made
    return atheris.Mutate(data, max_size)


def main():
    name, seconds, corpus, kept = sys.argv[1:]
    Path(kept).mkdir(parents=True, exist_ok=True)
    arguments = [
        sys.argv[0],
        corpus,
        f"-max_total_time={seconds}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={TIMEOUT_S}",
        f"-artifact_prefix={kept}/",
        f"-dict={Path(corpus).parent / 'words.txt'}",
        "-print_final_stats=1",
    ]
    atheris.Setup(arguments, (TARGETS | LOG_TARGETS)[name], custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
