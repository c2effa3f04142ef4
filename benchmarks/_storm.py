"""Load from clients through connector and guard while parts are killed, and what must hold afterwards.

Clients never send the same text twice, so a text that was executed twice, or without a proof of its own, is seen.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

from _deployment import TOOL, Raw
from _processes import family, role

from onrecord.authorize import digest
from onrecord.authorize.supervisor import authority_child, recorder_child, start_and_wait
from onrecord.base.keys import read_trusted_keys
from onrecord.base.namespaces import CALL_PROOF_META
from onrecord.examples.demo.journals import read_records
from onrecord.record.ledger.verify import verify_journal

PARTS = ("authority", "recorder", "guard", "server", "connector")
CLIENTS = 2
FLOW = 2
"""A round begins when so many more calls were executed: the kill falls into work, not into a start."""

FLOW_SECONDS = 30
START_SECONDS = 60
"""A recorder reads the open session again when it starts, here one of many thousand events on a busy machine."""
DRAIN_SECONDS = 30
PAUSE_SECONDS = 0.01
MAX_DELAY_SECONDS = 0.15


class Client(threading.Thread):
    """An agent's host: calls without end through `onrecord connect`, which it starts anew when it is gone.

    Permitted calls, denied ones, and behind `--pipe` unproven ones and proofs that are presented twice.
    """

    def __init__(self, storm, number):
        super().__init__(daemon=True)
        self.storm, self.number = storm, number
        self.is_pipe = number % 2 == 1
        self.count = 0
        self.answered, self.forbidden = set(), set()
        self.fault = None

    def run(self):
        while not self.storm.is_over:
            try:
                self.connection()
            except (OSError, ValueError):
                pass  # a part of the way was killed; the next connection begins anew
            except BaseException as error:
                self.fault = error
                return

    def connection(self):
        command = [*self.storm.deployment.connect_command(), *(["--pipe"] if self.is_pipe else [])]
        with (
            open(self.storm.deployment.directory / "clients.log", "ab") as log,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process,
        ):
            self.process = process
            try:
                opening = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "storm", "version": "1"},
                }
                self.ask("initialize", opening)
                self.send({"method": "notifications/initialized"})
                while not self.storm.is_over:
                    time.sleep(PAUSE_SECONDS)
                    (self.pipe_round if self.is_pipe else self.plain_round)()
            finally:
                with contextlib.suppress(OSError):
                    process.stdin.close()
                process.kill()

    def plain_round(self):
        self.call(TOOL, self.text())
        self.call("not_bound", self.text(forbidden=True))

    def pipe_round(self):
        self.call(TOOL, self.text(forbidden=True))
        text = self.text()
        params = {"method": "tools/call", "name": TOOL, "arguments": {"text": text}}
        try:
            with Raw(self.storm.deployment.sockets()[0]) as agent:
                issued = agent.ask("callProof/issue", {**params, "server": self.storm.deployment.server})
        except (OSError, SystemExit, ValueError):
            return  # the authority was killed, or does not know the tools again yet
        meta = {CALL_PROOF_META: issued["evidence"]}
        for _ in range(2):
            self.call(TOOL, text, meta)
        self.call(TOOL, self.text(forbidden=True), meta)

    def text(self, *, forbidden=False):
        self.count += 1
        text = f"{self.number}-{self.count}"
        if forbidden:
            self.forbidden.add(text)
        return text

    def call(self, name, text, meta=None):
        params = {"name": name, "arguments": {"text": text}, **({"_meta": meta} if meta else {})}
        if "result" in self.ask("tools/call", params):
            self.answered.add(text)

    def ask(self, method, params):
        self.send({"id": 1, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line.endswith(b"\n"):
                raise OSError("the connection ended")
            answer = json.loads(line)
            if "id" in answer and "method" not in answer:
                return answer

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()


class Storm:
    """Rounds of kill -9: each part in turn, in random order, and at times a second one with it.

    `deployment` runs the witness server, which writes to the file `witness`.
    """

    def __init__(self, deployment, *, witness, seed):
        self.deployment = deployment
        self.witness = Path(witness)
        self.choose = random.Random(seed)
        self.is_over = False
        self.coming = []
        self.killed = dict.fromkeys(PARTS, 0)
        self.clients = [Client(self, number) for number in range(CLIENTS)]

    def run(self, *, rounds, say=lambda _: None):
        with open(self.deployment.directory / "daemons.log", "ab") as self.log:
            for client in self.clients:
                client.start()
            try:
                for number in range(rounds):
                    self.wait_for_flow()
                    self.strike()
                    if (number + 1) % 20 == 0:
                        say(f"kills: {number + 1} of {rounds} rounds")
                self.wait_for_flow()
            finally:
                self.is_over = True
                for client in self.clients:
                    client.join(timeout=FLOW_SECONDS)
        for client in self.clients:
            if client.fault is not None:
                raise client.fault

    def strike(self):
        """Kill one or two parts at a random moment, and start what nobody else would start again."""
        time.sleep(self.choose.uniform(0, MAX_DELAY_SECONDS))
        if not self.coming:
            self.coming = self.choose.sample(PARTS, len(PARTS))
        first = self.coming.pop()
        others = [part for part in PARTS if part != first]
        wanted = [first, *self.choose.sample(others, self.choose.choice((0, 0, 1)))]
        running = {}
        for pid in family(os.getpid()):
            running.setdefault(role(pid), []).append(pid)
        for part in wanted:
            if part in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.choose.choice(running[part]), signal.SIGKILL)
                    self.killed[part] += 1
        configuration = self.deployment.configuration
        recorder, authority = self.deployment.children
        if "recorder" in wanted:
            recorder.wait()
            recorder = start_and_wait(recorder_child(configuration), timeout_s=START_SECONDS, stderr=self.log)
        if "authority" in wanted:
            authority.wait()
            authority = start_and_wait(
                authority_child(configuration), timeout_s=START_SECONDS, stderr=self.log
            )
        self.deployment.children[:] = [recorder, authority]

    def wait_for_flow(self):
        there = len(self.executed())
        end = time.monotonic() + FLOW_SECONDS
        while len(self.executed()) < there + FLOW:
            fault = next((client.fault for client in self.clients if client.fault is not None), None)
            if fault is not None:
                raise fault
            if time.monotonic() > end:
                raise SystemExit("kills: calls did not go on after a kill")
            time.sleep(PAUSE_SECONDS)

    def executed(self):
        """Return the texts of all executed calls."""
        if not self.witness.exists():
            return []
        return [json.loads(line) for line in self.witness.read_text().splitlines()]

    def drain(self):
        """Let the orphan spools be read: one more connection begins and ends, then all waits for the recorder."""
        client = Client(self, len(self.clients))
        self.is_over = True
        client.is_pipe = False
        client.connection()
        state = self.deployment.configuration.guard_state(self.deployment.server)
        end = time.monotonic() + DRAIN_SECONDS
        while list(state.glob("*.spool")) and time.monotonic() < end:
            time.sleep(PAUSE_SECONDS)

    def judge(self):
        """Return what was done, and the counts that must be zero, by name."""
        configuration = self.deployment.configuration
        decisions = read_records(configuration.authority_state)
        recorded = read_records(configuration.recorder_state)
        executed = self.executed()
        valid = [record.data for record in decisions if record.type == "verify.valid"]
        proofs_of = {}
        for data in valid:
            proofs_of.setdefault(data["actionDigest"], []).append(data["proofRef"])
        refs = [data["proofRef"] for data in valid]
        invocations = {
            record.data["entry"].get("proofRef")
            for record in recorded
            if record.type == "trace"
            and record.data["entry"]["kind"] == "invocation"
            and record.data["entry"]["admitted"]
        }
        digests = {
            text: digest.action_digest("tools/call", TOOL, {"text": text}, facts=None) for text in executed
        }
        forbidden = set().union(*(client.forbidden for client in self.clients))
        answered = set().union(*(client.answered for client in self.clients))
        verdicts = [
            verify_journal(
                sorted(state.glob("journal-*.db")),
                checkpoints=[(configuration.marks(name) / "high-water").read_bytes()],
                trusted=read_trusted_keys(configuration.trust.journal),
            ).verdict
            for name, state in (
                ("authority", configuration.authority_state),
                ("recorder", configuration.recorder_state),
            )
        ]
        counts = {
            "executed calls without a journaled valid verification": sum(
                digests[text] not in proofs_of for text in executed
            ),
            "calls executed twice": len(executed) - len(set(executed)),
            "denied, unproven or re-used calls that were executed": len(forbidden & set(executed)),
            "proofs with two valid verifications": len(refs) - len(set(refs)),
            "answers of calls that no server has seen": len(answered - set(executed)),
            "executed calls without an invocation on record": sum(
                not invocations.intersection(proofs_of.get(digests[text], ())) for text in executed
            ),
            "journals that do not verify after storms": sum(verdict != "verified" for verdict in verdicts),
        }
        done = {"executed": len(executed), "answered": len(answered), "killed": self.killed}
        return done, counts
