"""onrecord itself for the benchmarks: user mode, real daemons, 30 policies, the limiter on with high limits."""

import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from _measure import SERVERS

from onrecord.authorize import supervisor
from onrecord.authorize.policy.signing import sign_source
from onrecord.authorize.policy.starter import write_source
from onrecord.authorize.setup import initialize
from onrecord.base.keys import signer_from_uri
from onrecord.examples.stdio import LEGACY_VERSIONS

SERVER = "echo"
TOOL = "echo"
CALLER = "bench"
TEXT = "The parcel left the depot at noon and is expected on Thursday. " * 16
ECHO = (sys.executable, str(SERVERS / "echo.py"))
POLICIES = 30
STOP_SECONDS = 20
LOG_LINES = 8

LIMITS = {
    "issuePerSecond": 10**6,
    "issueBurst": 10**6,
    "connectionsPerUid": 128,
    "outstandingProofsPerCaller": 10**6,
    "tombstones": 10**5,
}


class Deployment:
    """Authority and recorder in a directory of their own; a context manager.

    `argv` is the tool server, `evidence` the enabled types, best first; `enforce` "audit" lets unproven calls run;
    `hook` says that the server checks its calls itself.
    """

    server = SERVER

    def __init__(
        self,
        directory,
        *,
        durability,
        limits=LIMITS,
        evidence=("handle",),
        argv=ECHO,
        enforce="required",
        hook=False,
    ):
        self.directory = Path(directory)
        self.durability = durability
        self.limits = limits
        self.evidence = evidence
        self.argv = list(argv)
        self.enforce = enforce
        self.hook = hook
        self.children = []
        self.tool = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.stop)
            self.directory.mkdir(mode=0o700)
            self.configuration = initialize(
                self.directory,
                mode="user",
                values={
                    "authority.durability": self.durability,
                    "authority.evidence": tuple(self.evidence),
                },
                servers={SERVER: {"command": self.argv[0], "args": tuple(self.argv[1:]), "hook": self.hook}},
                starter=False,
            ).configuration
            self.tool = tool_of(self.argv)
            self.write_policy()
            with open(self.directory / "daemons.log", "ab") as log:
                self.children.append(supervisor.start_recorder(self.configuration, stderr=log))
                self.children.append(supervisor.start_authority(self.configuration, stderr=log))
            stack.pop_all()
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            told = (self.directory / "daemons.log").read_text(errors="replace").splitlines()[-LOG_LINES:]
            print("The daemons said last:", *told, sep="\n  ", file=sys.stderr)
        self.stop()

    def stop(self):
        while self.children:
            child = self.children.pop()
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            child.wait(timeout=STOP_SECONDS)

    def write_policy(self):
        source = self.configuration.policy.source
        write_source(source, mode="user", uid=os.getuid() or 1, approver="ada", caller=CALLER)
        bundle = json.loads((source / "bundle.json").read_text())
        server = {
            "id": SERVER,
            "uid": os.getuid() or 1,
            "enforce": self.enforce,
            "refuse_methods": [],
            "discloseCaller": False,
            "roots": {},
            "bases": {},
            "bindings": f"bindings/{SERVER}.json",
        }
        bundle |= {"servers": [server], "limits": self.limits}
        (source / "bundle.json").write_text(json.dumps(bundle))
        from onrecord.authorize.policy import schema_hash

        binding = {
            "tool": TOOL,
            "inputSchemaSha256": str(schema_hash(self.tool["inputSchema"])),
            "op": "read",
            "impact": 0,
            "arguments": {"text": {"json": "string"}},
        }
        (source / "bindings").mkdir(exist_ok=True)
        (source / "bindings" / f"{SERVER}.json").write_text(json.dumps([binding]))
        there = sum(path.read_text().count("@id(") for path in (source / "policies").glob("*.cedar"))
        (source / "policies" / "90-bench.cedar").write_text("\n".join(map(rule, range(POLICIES - there))))
        (source / "tests.json").write_text("[]")
        signer = signer_from_uri(self.configuration.keys.policy, purpose="policy")
        sign_source(source, bundle=self.configuration.policy.bundle, signer=signer)

    def connect_command(self):
        """Return what stands in the client's configuration in place of the server."""
        return [sys.executable, "-m", "onrecord", "connect", SERVER, "--config", str(self.configuration.file)]

    def sockets(self):
        """Return the authority's socket for agents and the one for the guard of our server."""
        return self.configuration.agent_socket(), self.configuration.server_socket(SERVER)

    def call(self, text=TEXT[:1000]):
        return {"name": TOOL, "arguments": {"text": text}}

    def report_tools(self):
        """Tell the authority what the server advertises, as its guard would."""
        from onrecord.authorize.policy import schema_hash

        tools = [{"name": TOOL, "inputSchemaSha256": str(schema_hash(self.tool["inputSchema"]))}]
        with Raw(self.configuration.server_socket(SERVER)) as guard:
            guard.ask("callProof/tools", {"server": SERVER, "tools": tools})

    def stages(self, *, calls):
        """Return microseconds of the parts of a call that can be measured by themselves, by name.

        Issue and verify are round trips on raw sockets, each with its share of the journal; what the journal's own
        share is, the durable and the relaxed level show side by side.
        """
        self.report_tools()
        agent_path, guard_path = self.sockets()
        issue, verify = [], []
        params = {"method": "tools/call", "server": SERVER, "recordSession": "bench", **self.call()}
        with Raw(agent_path) as agent, Raw(guard_path) as guard:
            for _ in range(calls):
                begin = time.perf_counter_ns()
                granted = agent.ask("callProof/issue", params)
                middle = time.perf_counter_ns()
                proof = {
                    "actionDigest": granted["actionDigest"],
                    "server": SERVER,
                    "evidence": granted["evidence"],
                }
                guard.ask("callProof/verify", proof)
                issue.append(middle - begin)
                verify.append(time.perf_counter_ns() - middle)
        return {
            "issue (round trip, with journal)": statistics.median(issue) / 1000,
            "verify (round trip, with journal)": statistics.median(verify) / 1000,
        }

    def evidence_rounds(self, *, types, calls):
        """Return for each evidence type the microseconds of issue and verify together, taken by turns."""
        self.report_tools()
        agent_path, guard_path = self.sockets()
        taken = {type_: [] for type_ in types}
        params = {"method": "tools/call", "server": SERVER, "recordSession": "bench", **self.call()}
        with Raw(agent_path) as agent, Raw(guard_path) as guard:
            for _ in range(calls):
                for type_, times in taken.items():
                    begin = time.perf_counter_ns()
                    granted = agent.ask("callProof/issue", {**params, "evidenceTypes": [type_]})
                    proof = {
                        "actionDigest": granted["actionDigest"],
                        "server": SERVER,
                        "evidence": granted["evidence"],
                    }
                    guard.ask("callProof/verify", proof)
                    times.append((time.perf_counter_ns() - begin) / 1000)
        return taken


class Raw:
    """A JSON-RPC connection without anything around it."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(path))
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.sock.close()

    def ask(self, method, params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.sock.sendall(json.dumps(message).encode() + b"\n")
        answer = json.loads(self.file.readline())
        if "result" not in answer:
            raise SystemExit(f"{method}: {answer['error']['code']} {answer['error'].get('data')}")
        return answer["result"]


def rule(number):
    """Return a policy that is evaluated for each call and matches none."""
    return (
        f'@id("bench-{number}")\npermit(principal in Group::"agents", action == Action::"tools/call", resource)\n'
        f'when {{ context.op == "write" && context.impact <= {number % 4} && context has path &&\n'
        f'  context.path.root == "bench-{number}" && !context.path.dotdot }};\n'
    )


def tool_of(argv):
    """Start the server and return its first tool as advertised."""
    lines = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": LEGACY_VERSIONS[0],
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with process:
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                process.stdin.close()
                return answer["result"]["tools"][0]
    raise SystemExit("the echo server did not list its tools")
