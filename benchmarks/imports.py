"""Import native logs: of Claude Code 49.8 MB and 1 GB, and the large logs of Codex, Gemini CLI and OpenCode.

Every number is of one fresh process: wall and CPU seconds, megabytes a second of the text, and the largest resident
memory. Ours is the whole import, with report and vCon on disk; `inside` are its own seconds, without the start of the
program. Beside it stand the converters of PyPI on the same Claude Code log and two floors, reading JSON line by line.
The logs are made of or lie in the shared sample data; without them
nothing is measured. `--json` prints one document, `--quick` takes 2 MB in place of 49.8 and leaves out the 1 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import arguments, bar, bar_lines, machine, report, say
from peers import is_present, program

COPIES = 43
"""Copies of one session in the log of 49.8 MB; 20 times as many give 1 GB."""

PEERS = {
    "claude-code-log, JSON": ("claude-code-log", ["convert", "{file}", "-o", "{out}/x.json", "--no-cache"]),
    "claude-code-log, HTML": ("claude-code-log", ["convert", "{file}", "-o", "{out}/x.html", "--no-cache"]),
    "claude-code-transcripts, HTML": ("claude-code-transcripts", ["json", "{file}", "-o", "{out}/html"]),
}
"""What the peers are called with. They write pages or lists of messages, no account of every record."""

FLOORS = {
    "floor: json.loads a line": "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)",
    "floor: orjson.loads a line": "import orjson, sys\nfor line in open(sys.argv[1], 'rb'): orjson.loads(line)",
}

OTHERS = {
    "Gemini CLI, 44 MB": ("gemini-json/own/gemini-0.61.0-big.jsonl.zst", 2.0, 200),
    "Codex, 9 MB": ("codex-jsonl/own/codex-0.171.0-big.jsonl.zst", 0.3, None),
    "OpenCode export, 7.8 MB": ("opencode-json/own/opencode-1.18.33-export-big.json.zst", 0.4, None),
}
"""Other large logs with the seconds and megabytes that native-logs.md section 11 allows."""


def traces():
    """Return the folder of sample logs, or None."""
    root = os.environ.get("ONRECORD_SHARED_DATA")
    here = Path(__file__).resolve().parents[1]
    places = [Path(root)] if root else [here / "shared/data", here.parent / "shared/data"]
    return next((place / "traces" for place in places if (place / "traces").is_dir()), None)


def run(command, size):
    """Run a process and return what it took."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=printed, stderr=errors, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        printed.seek(0)
        errors.seek(0)
        output, text = printed.read(), errors.read()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        say(
            f"imports: {command[0]} ended with {process.returncode}: {text[-300:].decode('utf-8', 'replace')}"
        )
        return None
    inside = json.loads(output)["totals"]["seconds"] if "--json" in command else None
    return {
        "seconds": round(seconds, 2),
        "inside": inside,
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "mb_per_second": round(size / 1e6 / seconds, 1),
        "peak_mb": round(used.ru_maxrss / 1e3),
    }


def best(command_of, size, runs):
    """Return the quickest of several runs, each with an empty folder for its results."""
    found = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="onrecord-bench-") as out:
            taken = run(command_of(out), size)
        if taken is None:
            return None
        found.append(taken)
    return min(found, key=lambda taken: taken["seconds"])


def ours(file):
    """Return how our import of a file is called."""
    return lambda out: [
        sys.executable,
        "-m",
        "onrecord",
        "import",
        str(file),
        "--to",
        f"{out}/vcons",
        "--json",
    ]


def measure_claude(file, runs):
    """Return what the import of a Claude Code log takes, with peers and floors."""
    size = file.stat().st_size
    say("imports: ours")
    results = {"onrecord import": best(ours(file), size, runs)}
    for name, (peer, options) in PEERS.items():
        say(f"imports: {name}")
        if not is_present(peer):
            results[name] = None
            continue
        executable = program(peer, peer)
        results[name] = best(
            lambda out, executable=executable, options=options: [
                executable,
                *(option.format(file=file, out=out) for option in options),
            ],
            size,
            min(runs, 2),
        )
    for name, code in FLOORS.items():
        results[name] = best(lambda _out, code=code: [sys.executable, "-c", code, str(file)], size, runs)
    return results


def make_claude(folder, copies):
    """Write a long log of one Claude Code session."""
    path = folder / f"claude-{copies}.jsonl"
    script = traces() / "bench/make_claude_big.py"
    subprocess.run(
        [sys.executable, str(script), str(path), "--copies", str(copies)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return path


def text_size(file):
    """Return the bytes of the text of a packed file."""
    from onrecord.record.logs.reading.opening import NativeFile

    with NativeFile(file).open() as stream:
        return sum(len(piece) for piece in iter(lambda: stream.read(1 << 20), b""))


def main():
    options = arguments(__doc__).parse_args()
    if traces() is None:
        raise SystemExit("imports: the shared sample data is not here; ONRECORD_SHARED_DATA names its folder")
    runs = 1 if options.quick else 5
    results, bars = {}, []
    with tempfile.TemporaryDirectory(prefix="onrecord-bench-") as directory:
        folder = Path(directory)
        results["claude"] = measure_claude(make_claude(folder, 2 if options.quick else COPIES), runs)
        own = results["claude"]["onrecord import"] or {}
        if not options.quick:
            bars.append(bar("Claude Code, 49.8 MB: MB/s", own.get("mb_per_second"), 60, at_least=True))
            bars.append(bar("Claude Code, 49.8 MB: peak MB", own.get("peak_mb"), 120))
            say("imports: 1 GB")
            file = make_claude(folder, 20 * COPIES)
            results["claude, 1 GB"] = {"onrecord import": best(ours(file), file.stat().st_size, 1)}
            file.unlink()
            large = results["claude, 1 GB"]["onrecord import"] or {}
            bars.append(bar("Claude Code, 1 GB: peak MB", large.get("peak_mb"), 250))
        for name, (path, seconds, peak_mb) in OTHERS.items():
            say(f"imports: {name}")
            file = traces() / path
            taken = best(ours(file), text_size(file), runs) if file.exists() else None
            results[name] = {"onrecord import": taken}
            bars.append(bar(f"{name}: seconds inside", (taken or {}).get("inside"), seconds))
            if peak_mb is not None:
                bars.append(bar(f"{name}: peak MB", (taken or {}).get("peak_mb"), peak_mb))
    document = {"machine": machine("."), "results": results, "bars": bars}
    report(document, as_json=options.json, lines=list(lines(document)))


def lines(document):
    for name, rows in document["results"].items():
        yield name
        for program_name, taken in rows.items():
            if taken is None:
                yield f"  {program_name:<32} absent or failed"
            else:
                yield (
                    f"  {program_name:<32} {taken['seconds']:>7} s  {taken['inside'] or '':>7}"
                    f"  {taken['cpu_seconds']:>7} s CPU"
                    f"  {taken['mb_per_second']:>7} MB/s  {taken['peak_mb']:>6} MB"
                )
    yield from bar_lines(document["bars"])


if __name__ == "__main__":
    main()
