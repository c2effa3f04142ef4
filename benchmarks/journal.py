"""Measures the journal: what one append costs its caller, how long a durable one takes, how many fit into a second.

    python benchmarks/journal.py [--json] [--directory DIR] [--seconds S] [--rounds N] [--quick]

Records have about 0.8 kB. `--directory` chooses the file system; times hold for it only. The budgets are those of
transparency.md 6.4 (38) and of the plan of the spine. Proofs are measured in a tree of a million leaves.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onrecord.base.errors import OnrecordError
from onrecord.base.keys import PrivateKeySigner, generate_private_key
from onrecord.record.ledger import _rfc9162
from onrecord.record.ledger.journal import Durability, Journal, Receipt

WINDOW = 2048
"""Records under way at once in the throughput run: enough to fill every group, far below the journal's limit."""

DECISION = {
    "caller": "build-agent",
    "platform": {
        "uid": 59001,
        "pid": 4711,
        "exe": "/usr/bin/python3.11",
        "cgroup": "/user.slice/session-2.scope",
    },
    "server": "filesystem",
    "method": "tools/call",
    "name": "read_file",
    "actionDigest": "kYDQ0A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S0",
    "evidenceType": "dev.onrecord/handle",
    "proofRef": "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCd4",
    "rules": ["allow-reads-below-repo", "onrecord.default"],
    "policyVersion": 17,
    "operationId": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "isolation": "isolated",
    "detail": "x" * 120,
}


def open_journal(directory: Path, durability: Durability) -> Journal:
    signer = PrivateKeySigner(generate_private_key("ed25519"))
    return Journal.open(
        directory / "journal",
        signer=signer,
        name="bench/authority",
        marks=directory / "marks",
        durability=durability,
    )


def summary(times_us: list[float]) -> dict[str, float]:
    ordered = sorted(times_us)
    return {
        "median_us": round(statistics.median(ordered), 1),
        "p99_us": round(ordered[int(len(ordered) * 0.99)], 1),
        "count": len(ordered),
    }


def caller_cost(directory: Path, durability: Durability, seconds: float, *, is_idle: bool) -> dict[str, Any]:
    """What append() takes on the caller's thread, which works for 0.2 ms between two records, or sleeps."""
    with open_journal(directory, durability) as journal:
        times = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            begin = time.perf_counter_ns()
            journal.append("issue.granted", DECISION)
            times.append((time.perf_counter_ns() - begin) / 1000)
            if is_idle:
                time.sleep(0.0002)
            else:
                pause = time.perf_counter_ns() + 200_000
                while time.perf_counter_ns() < pause:
                    pass
    return summary(times)


def one_caller(directory: Path, seconds: float) -> dict[str, Any]:
    """One thread that waits for each of its records to be on disk."""
    with open_journal(directory, "durable") as journal:
        answered = threading.Semaphore(0)
        times = []
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            begin = time.perf_counter_ns()
            journal.append("verify.valid", DECISION, done=lambda _: answered.release())
            answered.acquire()
            times.append((time.perf_counter_ns() - begin) / 1000)
        elapsed = time.perf_counter() - began
    return summary(times) | {"records_per_second": round(len(times) / elapsed)}


def many_callers(directory: Path, callers: int, seconds: float) -> dict[str, Any]:
    """Coroutines of one event loop, each waiting for its own records."""
    times: list[float] = []

    async def caller(journal: Journal, end: float) -> None:
        while time.perf_counter() < end:
            begin = time.perf_counter_ns()
            await journal.append_async("verify.valid", DECISION)
            times.append((time.perf_counter_ns() - begin) / 1000)

    async def run(journal: Journal) -> float:
        began = time.perf_counter()
        await asyncio.gather(*(caller(journal, began + seconds) for _ in range(callers)))
        return time.perf_counter() - began

    with open_journal(directory, "durable") as journal:
        elapsed = asyncio.run(run(journal))
    return summary(times) | {"records_per_second": round(len(times) / elapsed)}


def throughput(directory: Path, durability: Durability, seconds: float) -> dict[str, Any]:
    """As many records as the journal takes; each counts once its commit is reported."""
    with open_journal(directory, durability) as journal:
        free = threading.Semaphore(WINDOW)

        def done(_: Receipt | OnrecordError) -> None:
            free.release()

        began = time.perf_counter()
        count = 0
        while time.perf_counter() < began + seconds:
            free.acquire()
            journal.append("verify.valid", DECISION, done=done)
            count += 1
        journal.flush()
        elapsed = time.perf_counter() - began
    return {"records_per_second": round(count / elapsed), "count": count}


def proofs(leaves: int) -> dict[str, Any]:
    """One inclusion proof in a large tree in memory."""
    nodes: dict[tuple[int, int], bytes] = {}
    frontier: list[bytes] = []
    began = time.perf_counter()
    for size in range(leaves):
        for level, index, digest in _rfc9162.append(frontier, size=size, leaf=size.to_bytes(32, "big")):
            nodes[level, index] = digest
    elapsed = time.perf_counter() - began
    choose = random.Random(1)
    times = []
    for _ in range(5000):
        index = choose.randrange(leaves)
        begin = time.perf_counter_ns()
        _rfc9162.inclusion_path(lambda level, at: nodes[level, at], index=index, size=leaves)
        times.append((time.perf_counter_ns() - begin) / 1000)
    return summary(times) | {"leaves": leaves, "appends_per_second": round(leaves / elapsed)}


def raw_sync(directory: Path) -> dict[str, Any]:
    """What the disk itself takes for 4 kB and fdatasync."""
    path = directory / "sync"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    times = []
    for _ in range(500):
        begin = time.perf_counter_ns()
        os.write(descriptor, b"x" * 4096)
        os.fdatasync(descriptor)
        times.append((time.perf_counter_ns() - begin) / 1000)
    os.close(descriptor)
    return summary(times)


def measure(base: Path | None, seconds: float, rounds: int) -> dict[str, Any]:
    runs: dict[str, Callable[[Path], dict[str, Any]]] = {
        "fdatasync": raw_sync,
        "append_durable": lambda path: caller_cost(path, "durable", seconds, is_idle=False),
        "append_relaxed": lambda path: caller_cost(path, "relaxed", seconds, is_idle=False),
        "append_durable_after_idle": lambda path: caller_cost(path, "durable", seconds, is_idle=True),
        "append_relaxed_after_idle": lambda path: caller_cost(path, "relaxed", seconds, is_idle=True),
        "durable_1_caller": lambda path: one_caller(path, seconds),
        "durable_8_callers": lambda path: many_callers(path, 8, seconds),
        "durable_32_callers": lambda path: many_callers(path, 32, seconds),
        "durable_128_callers": lambda path: many_callers(path, 128, seconds),
        "durable_throughput": lambda path: throughput(path, "durable", seconds),
        "relaxed_throughput": lambda path: throughput(path, "relaxed", seconds),
    }
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.sample(list(runs), len(runs)):
            directory = Path(tempfile.mkdtemp(prefix="onrecord-bench-", dir=base))
            try:
                results[name].append(runs[name](directory))
            finally:
                shutil.rmtree(directory)
    document: dict[str, Any] = {
        "machine": {
            "cpus": os.cpu_count(),
            "kernel": platform.release(),
            "python": platform.python_version(),
        },
        "sqlite": sqlite3.sqlite_version,
        "rounds": rounds,
        "runs": {name: _median_of(rows) for name, rows in results.items()},
        "inclusion_proof": proofs(1_000_000),
    }
    document["budgets"] = _budgets(document)
    return document


def _median_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    medians = {key: round(statistics.median(row[key] for row in rows), 1) for key in rows[0]}
    spread = {
        f"{key}_spread": [min(row[key] for row in rows), max(row[key] for row in rows)] for key in rows[0]
    }
    return medians | spread


def _budgets(document: dict[str, Any]) -> list[dict[str, Any]]:
    runs = document["runs"]
    rows = [
        ("durable records per second", runs["durable_throughput"]["records_per_second"], 20_000, True),
        ("one durable caller, median µs", runs["durable_1_caller"]["median_us"], 350, False),
        (
            "relaxed append on the caller's thread, median µs",
            runs["append_relaxed"]["median_us"],
            15,
            False,
        ),
        ("inclusion proof in a million, median µs", document["inclusion_proof"]["median_us"], 50, False),
    ]
    return [
        {
            "name": name,
            "measured": measured,
            "budget": budget,
            "ok": measured >= budget if more else measured <= budget,
        }
        for name, measured, budget, more in rows
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--directory", type=Path, default=None, help="where to write; default: the temporary directory"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="one short round: shows that it runs, proves nothing"
    )
    options = parser.parse_args()
    seconds, rounds = (0.2, 1) if options.quick else (options.seconds, options.rounds)
    document = measure(options.directory, seconds, rounds)
    if options.json:
        print(json.dumps(document, indent=2))
        return 0
    for name, run in document["runs"].items():
        print(
            f"{name:24} {', '.join(f'{key} {value}' for key, value in run.items() if not key.endswith('spread'))}"
        )
    print(f"{'inclusion_proof':24} {document['inclusion_proof']}")
    for row in document["budgets"]:
        print(
            f"{'ok' if row['ok'] else 'MISSED':7} {row['name']}: {row['measured']} (budget {row['budget']})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
