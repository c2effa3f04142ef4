"""A relay with both its ends in the test's hands."""

import json

import orjson

from onrecord.authorize.guard.authority_link import Verdict
from onrecord.authorize.guard.extension import Advertisement
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.recording import Recording
from onrecord.authorize.guard.relay import Relay
from onrecord.authorize.guard.relay_rules import ClientPeer, RelayRules
from onrecord.authorize.guard.spool import Spool
from onrecord.base.dates import ManualClock

PROOF = {"type": "dev.onrecord/handle", "value": "PROOF-CANARY-0001"}
PROOF_META = "io.modelcontextprotocol/callProof"
LABEL_META = "dev.onrecord/recordSession"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


VALID = Verdict(None)


class HeldVerifier:
    """Answers when the test says so; `at_once` is a verdict that is given immediately."""

    def __init__(self, at_once=None):
        self.asked = []
        self.waiting = []
        self.at_once = at_once
        self.reports = []
        self.acknowledges = True
        self.unacknowledged = []

    def verify(self, params, done):
        self.asked.append(params)
        if self.at_once is not None:
            done(self.at_once)
        else:
            self.waiting.append(done)

    def report(self, tools, done):
        self.reports.append(list(tools))
        if self.acknowledges:
            done()
        else:
            self.unacknowledged.append(done)


class Bench:
    """One relay; what it sends stands in `client` and `server`, as parsed messages."""

    def __init__(self, directory, *, verdict=VALID, enforces=True, refuse=(), settle=True, uid=2001, spool_bytes=1 << 20,  # noqa: E501
                 required=True, call_line_bytes=1 << 20):  # fmt: skip
        self.clock = ManualClock()
        self.log_path = directory / "guard.log"
        self.log = GuardLog(self.log_path, clock=self.clock)
        self.spool = Spool.create(directory / "g-test.spool", limit_bytes=spool_bytes, clock=self.clock)
        self.recording = Recording(
            self.spool, is_required=required, is_durable=False, written=lambda: None, clock=self.clock
        )
        self.verifier = HeldVerifier(verdict)
        self.client_bytes = []
        self.server_bytes = []
        self.later = []
        self.settled = 0
        self.relay = Relay(
            "1",
            rules=RelayRules(
                server="files",
                enforces=enforces,
                refuse_methods=frozenset(refuse),
                advertisement=Advertisement(
                    required=enforces,
                    methods=("tools/call",),
                    authority="unix:///run/agent.sock",
                    server="files",
                ),
                call_line_bytes=call_line_bytes,
                other_line_bytes=1 << 24,
            ),
            peer=ClientPeer(uid=uid, pid=4711, label="p4711-1-5b1f20c4", verified_uid=uid),
            verifier=self.verifier,
            recording=self.recording,
            log=self.log,
            to_client=self.client_bytes.append,
            to_server=self.server_bytes.append,
            settled=self._settled,
            later=self.later.append,
        )
        if settle:
            self.settle()

    def _settled(self):
        self.settled += 1

    def settle(self, tools=()):
        """Open the connection as a legacy client does, and let the server list its tools."""
        self.send({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {}})
        self.answer(
            "open",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "s", "version": "1"},
            },
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.answer("onrecord-tools-1", {"tools": list(tools)})
        self.client_bytes.clear()
        self.server_bytes.clear()

    def send(self, message):
        self.relay.client_line(message if isinstance(message, bytes) else json.dumps(message).encode())

    def say(self, message):
        self.relay.server_line(message if isinstance(message, bytes) else json.dumps(message).encode())

    def answer(self, request_id, result):
        self.say({"jsonrpc": "2.0", "id": request_id, "result": result})

    def call(self, request_id=7, *, name="echo", proof=PROOF, meta=None, **params):
        meta = {**({} if proof is None else {PROOF_META: proof}), **(meta or {})}
        members = {"name": name, **({"_meta": meta} if meta else {}), **params}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": members})

    @property
    def client(self):
        return [orjson.loads(line) for line in self.client_bytes]

    @property
    def server(self):
        return [orjson.loads(line) for line in self.server_bytes]

    @property
    def entries(self):
        entries = []
        while (batch := self.spool.batch()) is not None:
            entries += [orjson.loads(line) for line in batch.lines]
            self.spool.confirm(batch)
        return entries

    def log_text(self):
        return self.log_path.read_text()

    def close(self):
        self.log.close()
        self.recording.close()
        self.spool.close()
