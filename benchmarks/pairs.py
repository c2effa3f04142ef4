"""Issue and verify pairs per second of one authority process, with 1, 8 and 64 clients on raw sockets.

A client is an agent connection and a tool-server connection: it asks for a proof, has it verified, and begins again.
All clients live in one other process, which waits for all of them at once. The limiter stays on, with high limits.
"""

import contextlib
import select
import socket
import tempfile
import time
from pathlib import Path

import orjson
from _deployment import Deployment
from _measure import Round, arguments, bar, bar_lines, leave_root, machine, report, say

CLIENTS = (1, 8, 64)
BUFFER_BYTES = 65536

VALUE = b'"value":"'
"""Where the proof stands in an answer to issue: compact JSON, and a value has no escapes."""


class Pair:
    """One client, its lines made beforehand: it must cost far less than what it measures.

    Each of its two sockets has a step that takes what arrived and sends what comes next.
    """

    def __init__(self, agent_path, server_path, *, server, call):
        self.agent, self.guard = connect(agent_path), connect(server_path)
        params = {"method": "tools/call", "server": server, "recordSession": "bench", **call}
        self.issue = (
            orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "callProof/issue", "params": params}) + b"\n"
        )
        self.server = server
        self.verify_head = self.verify_tail = b""
        self.begin = 0

    def start(self):
        self.begin = time.perf_counter_ns()
        self.agent.send(self.issue)

    def issued(self):
        """Take the proof and have it verified."""
        answer = self.receive(self.agent)
        at = answer.find(VALUE) + len(VALUE)
        if not self.verify_head:
            self.learn(answer)
        self.guard.send(self.verify_head + answer[at : answer.index(b'"', at)] + self.verify_tail)

    def verified(self):
        """Return the nanoseconds of the pair that is complete, and begin the next one."""
        answer = self.receive(self.guard)
        if b'"valid":true' not in answer:
            raise SystemExit(f"pairs: not valid, {orjson.loads(answer).get('result', {}).get('reason')}")
        taken = time.perf_counter_ns() - self.begin
        self.start()
        return taken

    def learn(self, answer):
        """Make the verify line from the first answer: all but the value is the same for every proof of a call."""
        result = orjson.loads(answer).get("result")
        if result is None:
            error = orjson.loads(answer)["error"]
            raise SystemExit(f"pairs: {error['code']} {error.get('data', {}).get('reason')}")
        params = {
            "actionDigest": result["actionDigest"],
            "server": self.server,
            "evidence": {"type": result["evidence"]["type"], "value": "@"},
        }
        request = {"jsonrpc": "2.0", "id": 2, "method": "callProof/verify", "params": params}
        self.verify_head, self.verify_tail = (orjson.dumps(request) + b"\n").split(b"@")

    @staticmethod
    def receive(sock):
        answer = sock.recv(BUFFER_BYTES)
        while not answer.endswith(b"\n"):
            more = sock.recv(BUFFER_BYTES)
            if not more:
                raise SystemExit("pairs: the authority closed a connection")
            answer += more
        return answer

    def close(self):
        self.agent.close()
        self.guard.close()


def connect(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(path))
    return sock


def run(deployment, *, clients, seconds):
    """Return the times of all pairs that were complete within `seconds`, after a tenth of it as warm-up.

    And the processor time of this process for each of them, in microseconds.
    """
    with contextlib.ExitStack() as stack:
        poller = select.epoll()
        stack.callback(poller.close)
        steps = {}
        pairs = []
        for _ in range(clients):
            pair = Pair(*deployment.sockets(), server=deployment.server, call=deployment.call())
            stack.callback(pair.close)
            pairs.append(pair)
            for sock, step in ((pair.agent, pair.issued), (pair.guard, pair.verified)):
                steps[sock.fileno()] = step
                poller.register(sock, select.EPOLLIN)
        for pair in pairs:
            pair.start()
        drive(poller, steps, seconds=seconds / 10)
        used = time.process_time_ns()
        taken = drive(poller, steps, seconds=seconds)
        used = time.process_time_ns() - used
    return taken, used / max(1, len(taken)) / 1000


def drive(poller, steps, *, seconds):
    taken = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for descriptor, _ in poller.poll(1):
            one = steps[descriptor]()
            if one is not None:
                taken.append(one)
    return taken


def main():
    options = arguments(__doc__.split("\n", 1)[0]).parse_args()
    leave_root()
    seconds = 1 if options.quick else 10
    results = []
    with tempfile.TemporaryDirectory(prefix="onrecord-bench-", dir="/var/tmp") as name:
        for level in ("relaxed", "durable"):
            with Deployment(Path(name) / level[0], durability=level) as deployment:
                deployment.report_tools()
                for clients in CLIENTS:
                    taken, load_us = run(deployment, clients=clients, seconds=seconds)
                    one = Round.of(taken)
                    results.append(
                        {
                            "durability": level,
                            "clients": clients,
                            "pairs_per_second": round(len(taken) / seconds),
                            "median_us": round(one.median_us, 1),
                            "p99_us": round(one.p99_us, 1),
                            "load_us_per_pair": round(load_us, 1),
                        }
                    )
                    say(f"pairs: {level}, {clients} clients done")
        where = machine(name)
    rate = {(one["durability"], one["clients"]): one["pairs_per_second"] for one in results}
    document = {
        "benchmark": "pairs",
        "quick": options.quick,
        "settings": {"seconds": seconds, "policies": 30, "bytes": 1000},
        "machine": where,
        "results": results,
        "bars": [
            bar("B5 pairs per second, 64 clients, relaxed", rate["relaxed", 64], 6000, at_least=True),
            bar("B5 pairs per second, 64 clients, durable", rate["durable", 64], 3000, at_least=True),
            bar(
                "B6 group commit: 8 clients, ratio to 1 (a sync per record)",
                rate["durable", 8] / max(1, rate["durable", 1]),
                1.4,
                at_least=True,
            ),
        ],
    }
    report(document, as_json=options.json, lines=lines(document))


def lines(document):
    yield "Issue and verify pairs of one authority process"
    for one in document["results"]:
        yield (
            f"  {one['durability']:<8} {one['clients']:>3} clients {one['pairs_per_second']:>8} per second"
            f"   median {one['median_us']} us, p99 {one['p99_us']} us"
            f"   (the clients' own processor time: {one['load_us_per_pair']} us a pair)"
        )
    yield "Promises"
    yield from bar_lines(document["bars"])
    yield f"Machine: {document['machine']}"


if __name__ == "__main__":
    main()
