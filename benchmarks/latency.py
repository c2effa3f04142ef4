"""Added latency of one authorized call, side by side with the same server called directly and with two peers.

One MCPServer with one tool, the official client, the modern era, one call outstanding. Each round starts every
variant anew, in random order; `added` is the median of a variant minus the direct median of the same round.
Warm: the same call again and again. Cold: the arguments differ in each call, so that facts and Cedar run.
With jws the proofs are signed; with hook the server checks them itself, and no relay stands before it.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mcp
import peers
from _deployment import Deployment
from _measure import SERVERS, Round, arguments, bar, bar_lines, leave_root, machine, report, say, spread
from _processes import family, used_us

from onrecord.base.namespaces import HANDLE_TYPE, JWS_TYPE

DIRECT = [sys.executable, str(SERVERS / "echo.py")]
HOOKED = [sys.executable, str(SERVERS / "hooked_echo.py")]
FIREWALL_RULES = 30

TEXT = "The parcel left the depot at noon and is expected on Thursday. "
ARGUMENT_BYTES = 1000


def same_text(_):
    return (TEXT * 20)[:ARGUMENT_BYTES]


def new_text(number):
    return f"{number:08d} {same_text(0)[9:]}"


@dataclass
class Variant:
    """One way to the server. `absent` says why it could not be measured."""

    name: str
    argv: Sequence[str] = ()
    text: Callable[[int], str] = same_text
    absent: str | None = None
    rounds: list[Round] = field(default_factory=list)
    processor_us: list[dict[str, float]] = field(default_factory=list)
    """For each round, processor time of one call by process."""


async def measure(variant, *, warm_up, calls):
    """Return the nanoseconds of `calls` calls, after `warm_up` others."""
    taken = []
    with tempfile.TemporaryFile() as log:
        transport = mcp.stdio_client(
            mcp.StdioServerParameters(command=variant.argv[0], args=list(variant.argv[1:])), errlog=log
        )
        async with mcp.Client(transport, mode="auto") as client:
            processes = family(os.getpid())
            for number in range(warm_up + calls):
                if number == warm_up:
                    before = used_us(processes)
                call = {"text": variant.text(number)}
                begin = time.perf_counter_ns()
                result = await client.call_tool("echo", call)
                taken.append(time.perf_counter_ns() - begin)
                if result.is_error or result.content[0].text != call["text"]:
                    raise RuntimeError(f"{variant.name}: wrong answer")
            after = used_us(processes)
    variant.processor_us.append({name: (after[name] - before[name]) / calls for name in after})
    return taken[warm_up:]


async def measure_listing(argv, *, calls):
    """Return the median microseconds of tools/list, a request that needs no proof."""
    with tempfile.TemporaryFile() as log:
        transport = mcp.stdio_client(
            mcp.StdioServerParameters(command=argv[0], args=list(argv[1:])), errlog=log
        )
        async with mcp.Client(transport, mode="auto", cache=None) as client:
            taken = []
            for _ in range(calls):
                begin = time.perf_counter_ns()
                await client.list_tools()
                taken.append(time.perf_counter_ns() - begin)
    return statistics.median(taken[calls // 10 :]) / 1000


def stages_of(deployment, *, calls):
    """Return microseconds of the stages of one added call that can be measured by themselves."""
    ways = {"direct": DIRECT, "ours": deployment.connect_command()}
    passage = {name: asyncio.run(measure_listing(argv, calls=calls)) for name, argv in ways.items()}
    return {
        "connector and relay, passing a line each way": passage["ours"] - passage["direct"],
        **deployment.stages(calls=calls),
    }


def evidence_of(directory, *, calls):
    """Return the median microseconds of issue and verify for both evidence types, taken by turns on raw sockets."""
    with Deployment(directory / "e", durability="relaxed", evidence=("handle", "jws")) as deployment:
        taken = deployment.evidence_rounds(types=(HANDLE_TYPE, JWS_TYPE), calls=calls)
    return {type_: round(statistics.median(times[calls // 10 :]), 1) for type_, times in taken.items()}


def evidence_bar(evidence):
    more = (evidence[JWS_TYPE] - evidence[HANDLE_TYPE]) / 1000
    return bar("B4 jws, added to handle, issue and verify by turns", more, 0.15, unit="ms")


def firewall_configuration(directory):
    """30 rules, as many as our policies; its own limit raised; everything else as it comes."""
    rules = "".join(
        f"  - name: rule-{number}\n    tool: tool_{number}\n    action: deny\n"
        for number in range(FIREWALL_RULES)
    )
    path = directory / "mcp-firewall.yaml"
    path.write_text(
        "version: 1\ndefaultAction: allow\nglobalRateLimit:\n  maxCalls: 1000000000\n  windowSeconds: 60\n"
        f"rules:\n{rules}audit:\n  enabled: true\n  path: {directory}/mcp-firewall.audit.jsonl\n"
    )
    return path


def peer_variants(directory):
    proxy = [peers.program("fastmcp", "python"), str(SERVERS / "fastmcp_proxy.py"), *DIRECT]
    wrap = [peers.program("mcp-firewall", "mcp-firewall"), "wrap", "--config"]
    firewall = [*wrap, str(firewall_configuration(directory)), "--", *DIRECT]
    for name, argv in (("fastmcp-proxy", proxy), ("mcp-firewall", firewall)):
        peer = name.removesuffix("-proxy")
        yield Variant(
            name, argv, absent=None if peers.is_present(peer) else "not installed, see benchmarks/peers.py"
        )


def our_variants(deployments):
    """Both levels, warm and cold, with the handle; the other ways warm, at the level relaxed and durable."""
    for name, deployment in deployments.items():
        connect = deployment.connect_command()
        yield Variant(f"onrecord-{name}-warm", connect)
        if name in ("relaxed", "durable"):
            yield Variant(f"onrecord-{name}-cold", connect, new_text)


def run_rounds(variants, *, rounds, warm_up, calls):
    for number in range(rounds):
        order = [variant for variant in variants if variant.absent is None]
        random.shuffle(order)
        for variant in order:
            try:
                taken = asyncio.run(measure(variant, warm_up=warm_up, calls=calls))
            except Exception as error:
                if variant.name == "direct" or variant.name.startswith("onrecord"):
                    raise
                variant.absent = f"did not run ({type(error).__name__})"
                continue
            variant.rounds.append(Round.of(taken))
        say(f"latency: round {number + 1} of {rounds} done")


def added(variant, direct):
    return [one.median_us - base.median_us for one, base in zip(variant.rounds, direct.rounds, strict=True)]


def summary(variant, direct):
    if variant.absent is not None:
        return {"name": variant.name, "absent": variant.absent}
    return {
        "name": variant.name,
        "rounds": [
            {"median_us": round(one.median_us, 1), "p99_us": round(one.p99_us, 1)} for one in variant.rounds
        ],
        "median_us": spread([one.median_us for one in variant.rounds]),
        "p99_us": spread([one.p99_us for one in variant.rounds]),
        "added_us": spread(added(variant, direct)),
        "processor_us_per_call": {
            name: round(statistics.median(one.get(name, 0) for one in variant.processor_us))
            for name in variant.processor_us[0]
        },
    }


def bars(by_name):
    """Compare with the promises: ratios count in every run, absolute times on a quiet machine."""
    direct = by_name["direct"]

    def middle(name):
        variant = by_name.get(name)
        return None if variant is None or variant.absent else statistics.median(added(variant, direct))

    def ratio(name, peer):
        ours, theirs = middle(name), middle(peer)
        return None if ours is None or not theirs or theirs <= 0 else ours / theirs

    def in_ms(name):
        return None if middle(name) is None else middle(name) / 1000

    def more(name, base):
        ours, handle = in_ms(f"onrecord-{name}-warm"), in_ms(f"onrecord-{base}-warm")
        return None if ours is None or handle is None else ours - handle

    def tail(name):
        variant = by_name.get(name)
        if variant is None or variant.absent:
            return None
        return statistics.median(one.p99_us / one.median_us for one in variant.rounds)

    return [
        bar("B1 warm, added, ratio to mcp-firewall", ratio("onrecord-relaxed-warm", "mcp-firewall"), 0.6),
        bar("B1 cold, added, ratio to mcp-firewall", ratio("onrecord-relaxed-cold", "mcp-firewall"), 0.9),
        bar("B2 cold, added, ratio to FastMCP proxy", ratio("onrecord-relaxed-cold", "fastmcp-proxy"), 0.5),
        bar("B4 handle, relaxed, warm, added", in_ms("onrecord-relaxed-warm"), 0.30, unit="ms"),
        bar("B4 handle, durable, warm, added", in_ms("onrecord-durable-warm"), 0.60, unit="ms"),
        bar("B4 jws, relaxed, warm, added to handle", more("relaxed-jws", "relaxed"), 0.15, unit="ms"),
        bar("B4 jws, durable, warm, added to handle", more("durable-jws", "durable"), 0.15, unit="ms"),
        bar("B6 p99 of the total, times its median, relaxed warm", tail("onrecord-relaxed-warm"), 3),
        bar("B6 p99 of the total, times its median, durable warm", tail("onrecord-durable-warm"), 3),
    ]


def lines(document):
    yield "Added latency of one call (median of rounds; microseconds)"
    for variant in document["variants"]:
        if "absent" in variant:
            yield f"  {variant['name']:<24} absent: {variant['absent']}"
        else:
            more = variant["added_us"]
            yield (
                f"  {variant['name']:<24} median {variant['median_us']['median']:>8}"
                f"  p99 {variant['p99_us']['median']:>8}"
                f"  added {more['median']:>8} ({more['lowest']} to {more['highest']})"
            )
    yield "Processor time of one call (microseconds)"
    for variant in document["variants"]:
        if "absent" not in variant:
            shares = (f"{name} {us}" for name, us in variant["processor_us_per_call"].items() if us)
            yield f"  {variant['name']:<24} {', '.join(shares)}"
    yield "Promises"
    yield from bar_lines(document["bars"])
    if document["stages"]:
        yield "Where the time of one added call goes (microseconds, relaxed and warm; shares of what was added)"
        for stage in document["stages"]:
            yield f"  {stage['stage']:<60} {stage['us']:>8}  {stage['share']:>6.0%}"
    yield f"Machine: {document['machine']}"


def main():
    options = arguments(__doc__.split("\n", 1)[0]).parse_args()
    leave_root()
    rounds, warm_up, calls = (2, 20, 100) if options.quick else (5, 200, 2000)
    with tempfile.TemporaryDirectory(prefix="onrecord-bench-", dir="/var/tmp") as name:
        directory = Path(name)
        with (
            Deployment(directory / "r", durability="relaxed") as relaxed,
            Deployment(directory / "d", durability="durable") as durable,
            Deployment(directory / "rj", durability="relaxed", evidence=("jws",)) as relaxed_jws,
            Deployment(directory / "dj", durability="durable", evidence=("jws",)) as durable_jws,
            Deployment(directory / "rh", durability="relaxed", argv=HOOKED, hook=True) as relaxed_hook,
        ):
            direct = Variant("direct", DIRECT)
            deployments = {
                "relaxed": relaxed,
                "durable": durable,
                "relaxed-jws": relaxed_jws,
                "durable-jws": durable_jws,
                "relaxed-hook": relaxed_hook,
            }
            ours = list(our_variants(deployments))
            variants = [direct, *ours, *peer_variants(directory)]
            run_rounds(variants, rounds=rounds, warm_up=warm_up, calls=calls)
            by_name = {variant.name: variant for variant in variants}
            found = bars(by_name)
            missed = any(entry["met"] is False for entry in found)
            stages = stages_of(relaxed, calls=calls) if missed else {}
            evidence = evidence_of(directory, calls=calls)
            total = statistics.median(added(by_name["onrecord-relaxed-warm"], direct))
        document = {
            "benchmark": "latency",
            "quick": options.quick,
            "settings": {
                "rounds": rounds,
                "warm_up": warm_up,
                "calls": calls,
                "policies": 30,
                "bytes": ARGUMENT_BYTES,
            },
            "machine": machine(directory),
            "variants": [summary(variant, direct) for variant in variants],
            "bars": [*found, evidence_bar(evidence)],
            "evidence_us": evidence,
            "stages": shares(stages, total),
        }
    report(document, as_json=options.json, lines=lines(document))


def shares(stages, total):
    """Add what the stages leave over, and the share of each in what one call costs more."""
    if not stages or total <= 0:
        return []
    rest = total - sum(stages.values())
    named = {**stages, "digests, writing the call anew, spool, recorder (the rest)": rest}
    return [
        {"stage": stage, "us": round(us, 1), "share": round(us / total, 3)} for stage, us in named.items()
    ]


if __name__ == "__main__":
    main()
