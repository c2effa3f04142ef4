"""Numbers and how they are reported: percentiles, rounds, the machine they come from."""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
SERVERS = HERE / "servers"


@dataclass(frozen=True)
class Round:
    """One variant in one round: microseconds of all its calls."""

    median_us: float
    p99_us: float

    @classmethod
    def of(cls, nanoseconds):
        ordered = sorted(nanoseconds)
        return cls(statistics.median(ordered) / 1e3, percentile(ordered, 0.99) / 1e3)


def percentile(ordered, share):
    """Return the value below which `share` of the sorted values lie (nearest rank)."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def spread(values):
    """Return median, lowest and highest of some rounds, rounded to a tenth."""
    return {
        "median": round(statistics.median(values), 1),
        "lowest": round(min(values), 1),
        "highest": round(max(values), 1),
    }


def machine(directory):
    """Say where absolute times come from: they mean nothing without it."""
    found = subprocess.run(
        ["stat", "-f", "-c", "%T", str(directory)], capture_output=True, text=True, check=False
    )
    return {
        "processor": processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "file_system": found.stdout.strip() or "unknown",
        "load_1min": round(os.getloadavg()[0], 2),
    }


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def bar(name, value, limit, *, at_least=False, unit=""):
    """Return one promise with what was measured; `value` None means that it could not be."""
    met = None if value is None else (value >= limit if at_least else value <= limit)
    sign = ">=" if at_least else "<="
    return {
        "bar": name,
        "value": None if value is None else round(value, 3),
        "limit": f"{sign} {limit}{f' {unit}' if unit else ''}",
        "met": met,
    }


def arguments(description):
    """Return the parser with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.add_argument(
        "--quick", action="store_true", help="small counts: shows that it runs, proves nothing"
    )
    return parser


def leave_root():
    """Go on as nobody in particular when started as root: our daemons refuse to run as root in user mode."""
    if os.geteuid() != 0:
        return
    from onrecord.base.uid_blocks import find_uid_block, refusal_of_interpreter

    block = find_uid_block()
    reason = "there is no free uid" if block is None else refusal_of_interpreter(block[0])
    if reason is not None:
        raise SystemExit(f"benchmark: run it as an ordinary user ({reason})")
    os.setgroups([])
    os.setgid(block[0])
    os.setuid(block[0])
    os.environ["HOME"] = "/nonexistent"


def say(message):
    print(message, file=sys.stderr, flush=True)


def report(document, *, as_json, lines):
    """Print the document, or `lines` made from it for people."""
    if as_json:
        print(json.dumps(document, indent=1))
    else:
        print("\n".join(lines))


def bar_lines(bars):
    words = {True: "met", False: "MISSED", None: "not measured"}
    return [
        f"  {entry['bar']:<58} {entry['value']!s:>10}  {entry['limit']:<14} {words[entry['met']]}"
        for entry in bars
    ]
