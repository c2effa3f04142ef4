"""10,000 calls through real processes: what do they leave behind? Descriptors and private memory of each process.

What is remembered on purpose is bounded: 20,000 operations, decisions and proofs, here 1,000 used proofs. These tables
are filled on raw sockets before the measurement begins.
"""

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

import mcp
import pairs
from _deployment import LIMITS, Deployment
from _measure import arguments, bar, bar_lines, leave_root, machine, report, say
from _processes import family, role

TOMBSTONES = 1000
REMEMBERED = 22_000
"""Pairs before the measurement: more than the largest table of the authority and the recorder holds."""

TEXTS = 100
"""Different arguments; a decision is cached for each."""

GROWTH_KIB = 4096
"""Private memory that a process may gain while the calls run: allocators do not give every page back."""


def state(pids):
    """Return the room for descriptors and the private memory in KiB of each process, by role.

    The descriptors themselves cannot be listed: our daemons close /proc/PID/fd to their own uid too. The kernel's
    table has room for a power of two of them and grows with the 65th.
    """
    found = {}
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text()
        found[role(pid)] = tuple(
            int(re.search(rf"{key}:\s+(\d+)", status)[1]) for key in ("FDSize", "RssAnon")
        )
    return found


async def run(argv, *, warm_up, calls, step):
    """Return the states after the warm-up and after each `step` calls."""
    states = []
    with tempfile.TemporaryFile() as log:
        transport = mcp.stdio_client(
            mcp.StdioServerParameters(command=argv[0], args=list(argv[1:])), errlog=log
        )
        async with mcp.Client(transport, mode="auto") as client:
            pids = family(os.getpid()) - {os.getpid()}
            for number in range(warm_up + calls + 1):
                if number >= warm_up and (number - warm_up) % step == 0:
                    states.append(state(pids))
                    say(f"growth: {number - warm_up} calls")
                result = await client.call_tool("echo", {"text": f"{number % TEXTS:08d} " + "x" * 900})
                if result.is_error:
                    raise RuntimeError("growth: a call failed")
    return states


def main():
    options = arguments(__doc__.split("\n", 1)[0]).parse_args()
    leave_root()
    warm_up, calls, remembered = (200, 400, 200) if options.quick else (1000, 10_000, REMEMBERED)
    with tempfile.TemporaryDirectory(prefix="onrecord-bench-", dir="/var/tmp") as name:
        limits = LIMITS | {"tombstones": TOMBSTONES}
        with Deployment(Path(name) / "d", durability="relaxed", limits=limits) as deployment:
            deployment.report_tools()
            done = 0
            while done < remembered:
                done += len(pairs.run(deployment, clients=8, seconds=1))
            say(f"growth: {done} pairs before")
            states = asyncio.run(
                run(deployment.connect_command(), warm_up=warm_up, calls=calls, step=calls // 10)
            )
        where = machine(name)
    first, last = states[0], states[-1]
    results = [
        {
            "process": process,
            "descriptors": [first[process][0], last[process][0]],
            "memory_kib": [one[process][1] for one in states],
        }
        for process in sorted(first)
    ]
    bars = []
    for one in results:
        more = one["descriptors"][1] - one["descriptors"][0]
        bars.append(bar(f"{one['process']}: room for more descriptors", more, 0))
        grown = one["memory_kib"][-1] - one["memory_kib"][0]
        bars.append(bar(f"{one['process']}: more memory", grown, GROWTH_KIB, unit="KiB"))
    document = {
        "benchmark": "growth",
        "quick": options.quick,
        "settings": {"calls": calls, "warm_up": warm_up, "pairs_before": done, "tombstones": TOMBSTONES},
        "machine": where,
        "results": results,
        "bars": bars,
    }
    report(document, as_json=options.json, lines=lines(document))


def lines(document):
    yield f"{document['settings']['calls']} calls, private memory in KiB after each tenth"
    for one in document["results"]:
        yield f"  {one['process']:<10} {' '.join(map(str, one['memory_kib']))}"
    yield "Promises"
    yield from bar_lines(document["bars"])
    yield f"Machine: {document['machine']}"


if __name__ == "__main__":
    sys.exit(main())
