"""200 times kill -9 of the authority in the middle of its work: every answer that left it is in its journal.

Each round starts the authority on what the last one left, asks for proofs that are granted and denied, has them
verified, and kills it at a random request. Afterwards every valid answer and every denial that arrived must be in the
journal, which must verify, and a proof of an earlier start must be expired.
"""

import random
import signal
import tempfile
from pathlib import Path

import orjson
from _deployment import Deployment, Raw
from _measure import arguments, bar, bar_lines, leave_root, machine, report, say

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


def main():
    options = arguments(__doc__.split("\n", 1)[0]).parse_args()
    leave_root()
    rounds = 4 if options.quick else 200
    seen, choose = Seen(), random.Random(20261130)
    with tempfile.TemporaryDirectory(prefix="onrecord-bench-", dir="/var/tmp") as name:
        with Deployment(Path(name) / "d", durability="durable") as deployment:
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
        where = machine(name)
    stored = {
        "valid": {one.data["proofRef"] for one in records if one.type == "verify.valid"},
        "denied": {one.data["ref"] for one in records if one.type == "issue.denied"},
    }
    document = {
        "benchmark": "kills",
        "quick": options.quick,
        "settings": {"rounds": rounds},
        "machine": where,
        "results": [
            {
                "valid_answers": len(seen.valid),
                "denials": len(seen.denied),
                "records": len(records),
                "journal": verdict,
            }
        ],
        "bars": [
            bar("valid answers without a record", len(seen.valid - stored["valid"]), 0),
            bar("denials without a record", len(seen.denied - stored["denied"]), 0),
            bar("proofs of an earlier start that were not expired", seen.not_expired, 0),
            bar("journals that do not verify", int(verdict != "verified"), 0),
        ],
    }
    report(document, as_json=options.json, lines=lines(document))


def lines(document):
    (one,) = document["results"]
    yield (
        f"{document['settings']['rounds']} kills: {one['valid_answers']} valid answers and {one['denials']} denials "
        f"arrived, {one['records']} records, journal {one['journal']}"
    )
    yield "Promises"
    yield from bar_lines(document["bars"])
    yield f"Machine: {document['machine']}"


if __name__ == "__main__":
    main()
