"""200 times kill -9 in the middle of work: first of the authority alone, then of any parts under load.

The authority alone: each round starts it on what the last one left, asks for proofs that are granted and denied, has
them verified, and kills it at a random request. Afterwards every valid answer and every denial that arrived must be in
the journal, which must verify, and a proof of an earlier start must be expired.

All parts: clients call through connector and guard while authority, recorder, guard, real server and connector are
killed at random. Afterwards no call was executed without a journaled valid verification, none twice for one proof,
and each executed call is on record.
"""

import random
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

import orjson
from _deployment import Deployment, Raw
from _measure import SERVERS, arguments, bar, bar_lines, leave_root, machine, report, say
from _storm import Storm

from onrecord.authorize import supervisor
from onrecord.base.hashes import ProofRef
from onrecord.base.keys import read_trusted_keys
from onrecord.examples.demo.journals import read_records
from onrecord.record.ledger.verify import verify_journal

MAX_REQUESTS = 80
"""The kill comes at a random one of so many requests."""


class Seen:
    """What answers said, over all rounds."""

    def __init__(self):
        self.valid, self.denied = set(), set()
        self.kept = []
        self.not_expired = 0


def work(deployment, process, seen, *, requests):
    """Ask as fast as answers come; after `requests` of them the authority is killed with questions on their way."""
    agent_path, guard_path = deployment.sockets()
    call = {
        "method": "tools/call",
        "server": deployment.server,
        "recordSession": "kills",
        **deployment.call(),
    }
    denied = {**call, "name": "not_bound"}
    with Raw(agent_path) as agent, Raw(guard_path) as guard:
        if seen.kept:
            answer = guard.ask("callProof/verify", seen.kept.pop())
            seen.not_expired += answer.get("reason") != "expired"
        seen.kept = [question(agent.ask("callProof/issue", call))]
        proof = question(agent.ask("callProof/issue", call))
        try:
            for number in range(MAX_REQUESTS):
                for raw, method, params in (
                    (agent, "callProof/issue", denied),
                    (agent, "callProof/issue", call),
                    (guard, "callProof/verify", proof),
                ):
                    line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                    raw.sock.sendall(orjson.dumps(line) + b"\n")
                if number == requests:
                    process.send_signal(signal.SIGKILL)
                answers = [raw.file.readline() for raw in (agent, agent, guard)]
                used = proof
                for answer in (orjson.loads(line) for line in answers if line.endswith(b"\n")):
                    if "error" in answer:
                        seen.denied.add(answer["error"]["data"]["ref"])
                    elif "evidence" in answer["result"]:
                        proof = question(answer["result"])
                    elif answer["result"]["valid"]:
                        seen.valid.add(str(ProofRef.of(used["evidence"]["value"].encode())))
        except OSError:
            pass
    process.wait()


def question(issued):
    return {name: issued[name] for name in ("actionDigest", "server", "evidence")}


def kill_the_authority(name, *, rounds, seed):
    """Return what answers said and what the journal says, after `rounds` kills of the authority alone."""
    seen, choose = Seen(), random.Random(seed)
    with Deployment(Path(name) / "d", durability="durable", argv=witness_argv(name, "d")) as deployment:
        configuration = deployment.configuration
        with open(deployment.directory / "daemons.log", "ab") as log:
            for number in range(rounds):
                deployment.report_tools()
                authority = deployment.children.pop()
                work(deployment, authority, seen, requests=choose.randrange(MAX_REQUESTS))
                deployment.children.append(supervisor.start_authority(configuration, stderr=log))
                if (number + 1) % 20 == 0:
                    say(f"kills: {number + 1} of {rounds}")
    records = read_records(configuration.authority_state)
    note = (configuration.marks("authority") / "high-water").read_bytes()
    verdict = verify_journal(
        sorted(configuration.authority_state.glob("journal-*.db")),
        checkpoints=[note],
        trusted=read_trusted_keys(configuration.trust.journal),
    ).verdict
    stored = {
        "valid": {one.data["proofRef"] for one in records if one.type == "verify.valid"},
        "denied": {one.data["ref"] for one in records if one.type == "issue.denied"},
    }
    done = {
        "valid_answers": len(seen.valid),
        "denials": len(seen.denied),
        "records": len(records),
        "journal": verdict,
    }
    counts = {
        "valid answers without a record": len(seen.valid - stored["valid"]),
        "denials without a record": len(seen.denied - stored["denied"]),
        "proofs of an earlier start that were not expired": seen.not_expired,
        "journals that do not verify": int(verdict != "verified"),
    }
    return done, counts


def kill_all_parts(name, *, rounds, seed, enforce):
    """Return what was done and what must be zero, after `rounds` kills of any parts under load."""
    argv = witness_argv(name, "a")
    with Deployment(Path(name) / "a", durability="durable", argv=argv, enforce=enforce) as deployment:
        storm = Storm(deployment, witness=argv[-1], seed=seed)
        storm.run(rounds=rounds, say=say)
        storm.drain()
        deployment.stop()
        return storm.judge()


def witness_argv(name, file):
    return [sys.executable, str(SERVERS / "witness.py"), str(Path(name) / f"{file}.witness")]


def main():
    parser = arguments(__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, help="rounds of each part (200)")
    parser.add_argument("--seed", type=int, default=20261130, help="of the random choices")
    parser.add_argument("--parts", choices=("authority", "all", "both"), default="both")
    parser.add_argument(
        "--enforce",
        choices=("required", "audit"),
        default="required",
        help="audit executes unproven calls: shows that this program finds them",
    )
    options = parser.parse_args()
    leave_root()
    rounds = options.rounds or (4 if options.quick else 200)
    results, counts = {}, {}
    with tempfile.TemporaryDirectory(prefix="onrecord-bench-", dir="/var/tmp") as name:
        for part, work_of in (
            ("authority", kill_the_authority),
            ("all", partial(kill_all_parts, enforce=options.enforce)),
        ):
            if options.parts in (part, "both"):
                results[part], found = work_of(name, rounds=rounds, seed=options.seed)
                counts |= found
        where = machine(name)
    document = {
        "benchmark": "kills",
        "quick": options.quick,
        "settings": {"rounds": rounds, "seed": options.seed},
        "machine": where,
        "results": results,
        "bars": [bar(text, count, 0) for text, count in counts.items()],
    }
    report(document, as_json=options.json, lines=lines(document))
    if any(not one["met"] for one in document["bars"]):
        sys.exit(1)


def lines(document):
    rounds, results = document["settings"]["rounds"], document["results"]
    if one := results.get("authority"):
        yield (
            f"{rounds} kills of the authority: {one['valid_answers']} valid answers and {one['denials']} denials "
            f"arrived, {one['records']} records, journal {one['journal']}"
        )
    if one := results.get("all"):
        killed = ", ".join(f"{part} {count}" for part, count in one["killed"].items())
        yield f"{rounds} rounds over all parts ({killed}): {one['executed']} calls executed, {one['answered']} answered"
    yield "Promises"
    yield from bar_lines(document["bars"])
    yield f"Machine: {document['machine']}"


if __name__ == "__main__":
    main()
