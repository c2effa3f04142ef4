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


class Pair:
    """One client. `step` takes what arrived and sends what comes next."""

    def __init__(self, agent_path, server_path, *, server, call):
        self.agent, self.guard = connect(agent_path), connect(server_path)
        params = {"method": "tools/call", "server": server, "recordSession": "bench", **call}
        self.issue = (
            orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "callProof/issue", "params": params}) + b"\n"
        )
        self.server = server
        self.begin = 0
        self.buffer = b""

    def start(self):
        self.begin = time.perf_counter_ns()
        self.agent.sendall(self.issue)

    def step(self, sock):
        """Return the nanoseconds of a pair when it is complete, else None."""
        self.buffer += sock.recv(BUFFER_BYTES)
        if not self.buffer.endswith(b"\n"):
            if not self.buffer:
                raise SystemExit("pairs: the authority closed a connection")
            return None
        answer, self.buffer = orjson.loads(self.buffer), b""
        result = answer.get("result")
        if result is None:
            raise SystemExit(
                f"pairs: {answer['error']['code']} {answer['error'].get('data', {}).get('reason')}"
            )
        if sock is self.agent:
            params = {
                "actionDigest": result["actionDigest"],
                "server": self.server,
                "evidence": result["evidence"],
            }
            request = {"jsonrpc": "2.0", "id": 2, "method": "callProof/verify", "params": params}
            self.guard.sendall(orjson.dumps(request) + b"\n")
            return None
        if result["valid"] is not True:
            raise SystemExit(f"pairs: not valid, {result.get('reason')}")
        taken = time.perf_counter_ns() - self.begin
        self.start()
        return taken

    def close(self):
        self.agent.close()
        self.guard.close()


def connect(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(path))
    return sock


def run(deployment, *, clients, seconds):
    """Return the times of all pairs that were complete within `seconds`, after a tenth of it as warm-up."""
    with contextlib.ExitStack() as stack:
        poller = select.epoll()
        stack.callback(poller.close)
        owners = {}
        for _ in range(clients):
            pair = Pair(*deployment.sockets(), server=deployment.server, call=deployment.call())
            stack.callback(pair.close)
            for sock in (pair.agent, pair.guard):
                owners[sock.fileno()] = (pair, sock)
                poller.register(sock, select.EPOLLIN)
        for pair in {id(pair): pair for pair, _ in owners.values()}.values():
            pair.start()
        taken = []
        begin = time.perf_counter() + seconds / 10
        end = begin + seconds
        while (now := time.perf_counter()) < end:
            for descriptor, _ in poller.poll(1):
                pair, sock = owners[descriptor]
                if (one := pair.step(sock)) is not None and now >= begin:
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
                    taken = run(deployment, clients=clients, seconds=seconds)
                    one = Round.of(taken)
                    results.append(
                        {
                            "durability": level,
                            "clients": clients,
                            "pairs_per_second": round(len(taken) / seconds),
                            "median_us": round(one.median_us, 1),
                            "p99_us": round(one.p99_us, 1),
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
        )
    yield "Promises"
    yield from bar_lines(document["bars"])
    yield f"Machine: {document['machine']}"


if __name__ == "__main__":
    main()
